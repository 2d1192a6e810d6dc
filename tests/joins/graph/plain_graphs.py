"""Small random lakes as plain sets, and their join graphs by brute force."""

from fractions import Fraction

import numpy as np

Columns = dict[tuple[str, str], set[str]]


def random_columns(seed: int, n_tables: int = 6) -> Columns:
    """Return columns of few tokens that overlap, some of them copies of others."""
    random = np.random.default_rng(seed)
    columns: Columns = {}
    for table in range(n_tables):
        for label in range(int(random.integers(1, 4))):
            begin, size = int(random.integers(0, 20)), int(random.integers(1, 25))
            drawn = begin + random.permutation(30)[:size]
            if columns and random.random() < 0.2:
                drawn = [int(token[1:]) for token in random.choice(list(columns.values()))]
            columns[f"t{table}.csv", f"c{label}"] = {f"v{number}" for number in drawn}
    return columns


def edges_of(
    columns: Columns, min_joinability: float, k: int | None
) -> dict[tuple[tuple[str, str], tuple[str, str]], tuple[int, int]]:
    """Return (left, right) -> (values that match, values of the left), each pair looked at."""
    edges = {}
    floor = Fraction(str(min_joinability))
    for left in sorted(columns):
        mine = [
            (len(columns[left] & columns[right]), right)
            for right in sorted(columns)
            if right[0] != left[0]
        ]
        mine = [pair for pair in mine if pair[0] and Fraction(pair[0], len(columns[left])) >= floor]
        mine.sort(key=lambda pair: -pair[0])  # stable: equal ones stay by name
        for matched, right in mine[:k]:
            edges[left, right] = (matched, len(columns[left]))
    return edges


def jaccard_leaders(columns: Columns) -> dict[tuple[str, str], tuple[str, str]]:
    """Return for each column the first that has nine tenths of what either has."""
    leaders: dict[tuple[str, str], tuple[str, str]] = {}
    for name in sorted(columns):
        alike = [
            other
            for other in leaders
            if leaders[other] == other
            and 10 * len(columns[name] & columns[other]) >= 9 * len(columns[name] | columns[other])
        ]
        leaders[name] = alike[0] if alike else name
    return leaders


def pairs_of(rows: list[dict]) -> dict:
    """Return rows as `edges_of` does, in their order."""
    return {
        ((row["left_table"], row["left_column"]), (row["right_table"], row["right_column"])): (
            row["matched"],
            row["total"],
        )
        for row in rows
    }
