"""Quality of tables by approximate dependencies, and their discovery on samples of rows.

For F: X -> Y the rows with the most frequent Y of their X are correct, of equally frequent ones
that whose text comes first, a missing cell before all texts. For several dependencies a row must be
correct for each; quality is the share of correct rows, 0 without a row.

Dependencies are discovered on the rows with the `MAX_ROWS` smallest hashes of those that differ,
each counted as often as it is there: a sample that does not depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.joins.measures import column_of, encoded, paired_codes, row_codes, row_weights
from pexeso.runtime.ranges import mixed
from pexeso.sets.containment.hashing import hash_tokens


@dataclass(frozen=True)
class Dependency:
    """A functional dependency X -> Y."""

    left: tuple[str, ...]
    right: str


@dataclass(frozen=True, eq=False)
class CodedDependency:
    """A dependency of a table as numbers: the pairs of X and Y that its rows have."""

    pair_of_row: np.ndarray
    starts: np.ndarray
    holds: bool

    @classmethod
    def of(cls, x: np.ndarray, y_ranks: np.ndarray) -> CodedDependency:
        """Return a dependency of rows with codes of X and ranks of Y by their texts."""
        pairs = x * (int(y_ranks.max(initial=0)) + 1) + y_ranks
        _, first, pair_of_row = np.unique(pairs, return_index=True, return_inverse=True)
        x_of_pair = x[first]
        starts = np.flatnonzero(np.diff(x_of_pair, prepend=-1))
        return cls(pair_of_row.astype(np.int64), starts, len(starts) == len(first))

    def correct(self, counts: np.ndarray) -> np.ndarray:
        """Return which rows have the most frequent Y of their X, of equal ones the first."""
        sizes = np.bincount(self.pair_of_row, counts)
        lengths = np.diff(self.starts, append=len(sizes))
        largest = np.repeat(np.maximum.reduceat(sizes, self.starts), lengths)
        winners = np.flatnonzero(sizes == largest)
        x_of_winner = np.repeat(np.arange(len(self.starts)), lengths)[winners]
        is_first = np.diff(x_of_winner, prepend=-1) > 0
        chosen = np.zeros(len(sizes), bool)
        chosen[winners[is_first]] = True
        return chosen[self.pair_of_row]


class QualityOfCounts:
    """The quality Q of a table as a function of how often each of its rows is there.

    Values are compared once, so it is quick for many counts of the same rows.
    """

    def __init__(self, table: pa.Table, dependencies: Sequence[Dependency]) -> None:
        self._n_rows = table.num_rows
        self.left_codes = [row_codes(table, dependency.left) for dependency in dependencies]
        self._dependencies = [
            CodedDependency.of(left, text_ranks(column_of(table, one.right), one.right))
            for left, one in zip(self.left_codes, dependencies, strict=True)
        ]

    def __call__(self, counts: np.ndarray | None = None) -> float:
        weights = row_weights(self._n_rows, counts)
        n = int(weights.sum())
        return int(weights[self.correct(weights)].sum()) / n if n else 0.0

    def correct(self, counts: np.ndarray | None = None) -> np.ndarray:
        weights = row_weights(self._n_rows, counts)
        correct = np.ones(self._n_rows, bool)
        for dependency in self._dependencies:
            correct &= dependency.correct(weights)
        return correct


def approximate_dependencies(
    table: pa.Table,
    *,
    max_error: float = 0.1,
    max_left: int = 2,
    counts: np.ndarray | None = None,
) -> list[Dependency]:
    """Return the minimal dependencies that hold approximately, by growing left sides.

    Of left sides that determine the same attribute only those are returned of which no part
    determines it: a further attribute on the left never lowers Q. The work grows with the number
    of columns to the power of `max_left` + 1.
    """
    weights = row_weights(table.num_rows, counts)
    table, weights = table.filter(pa.array(weights > 0)), weights[weights > 0]
    names = table.column_names
    codes = {name: text_ranks(column_of(table, name), name) for name in names}
    left_sides: dict[str, list[frozenset[str]]] = {name: [] for name in names}
    result = []
    for left in (left for n in range(1, max_left + 1) for left in combinations(names, n)):
        x = reduce(paired_codes, [codes[name] for name in left])
        if len(np.unique(x)) == int(weights.sum()):  # a key
            continue
        for right in (name for name in names if name not in left):
            if any(part < set(left) for part in left_sides[right]):
                continue
            correct = CodedDependency.of(x, codes[right]).correct(weights)
            if int(weights[~correct].sum()) / max(int(weights.sum()), 1) <= max_error:
                left_sides[right].append(frozenset(left))
                result.append(Dependency(left, right))
    return result


def text_ranks(column: pa.Array, name: str = "") -> np.ndarray:
    """Return the rank of each value among the distinct values, by its text."""
    pieces = encoded(column, name)
    texts = pieces.dictionary
    if not pa.types.is_binary(texts.type) and not pa.types.is_large_binary(texts.type):
        texts = pc.cast(texts, pa.large_string())
    kind = pieces.dictionary.type
    if pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        texts = pc.replace_substring_regex(texts, r"(\.[0-9]*[1-9])0+$", r"\1")
        texts = pc.replace_substring_regex(texts, r"\.0*$", "")
    order = np.roll(pc.sort_indices(texts).to_numpy(), texts.null_count)  # Arrow sorts it last
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks[pieces.indices.to_numpy()]


MAX_ROWS = 10_000  # Rows of a table that dependencies are discovered on

# Columns of a table among which dependencies are discovered: the first that hold no numbers.
MAX_COLUMNS = 32

# Of a table of more columns left sides of two columns are not tried: these grow as the cube.
MAX_PAIRED = 10

_MISSING = np.uint64(0x9E3779B97F4A7C15)


def discovered(
    read: Callable[[Sequence[str]], pa.Table], columns: Sequence[str], numeric: Collection[str]
) -> tuple[Dependency, ...]:
    usable = [name for name in columns if name not in numeric][:MAX_COLUMNS]
    if len(usable) < 2:
        return ()
    sample, counts = sampled(read(usable), MAX_ROWS)
    max_left = 2 if len(usable) <= MAX_PAIRED else 1
    return tuple(approximate_dependencies(sample, max_left=max_left, counts=counts))


def sampled(rows: pa.Table, max_rows: int) -> tuple[pa.Table, np.ndarray]:
    """Return the distinct rows of the smallest hashes, and how often each is there."""
    hashes = np.zeros(rows.num_rows, np.uint64)
    for column in rows.columns:
        texts = pc.dictionary_encode(column.cast(pa.large_string()))
        coded = pa.concat_arrays(texts.unify_dictionaries().chunks) if rows.num_rows else None
        if coded is None:
            continue
        of_text = np.append(hash_tokens(coded.dictionary), _MISSING)
        at = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)
        hashes = mixed(hashes * np.uint64(3) + of_text[at])
    _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    return rows.take(pa.array(first[:max_rows])), counts[:max_rows]
