"""Keys of two columns in a real lake, with their counts."""

import csv
import gzip
from collections import defaultdict
from itertools import permutations

import pyarrow as pa
import pytest

from pexeso.composite.row_keys import build_row_keys
from pexeso.composite.search import key_query, search_keys

pytestmark = pytest.mark.lakes


def read(path):
    """Return the columns of a table, lower-cased."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    cells = [[cell.strip().lower() for cell in row] for row in rows]
    return [[row[column] for row in cells] for column in range(len(header))]


@pytest.fixture(scope="module")
def lake(lake_folder):
    paths = sorted(lake_folder("wikitables").rglob("*.csv"))
    columns = [read(path) for path in paths]
    tables = [pa.table(one, names=[str(n) for n in range(len(one))]) for one in columns]
    return [path.stem for path in paths], columns, tables


@pytest.fixture(scope="module")
def known_pairs(shared_lakes, lake):
    """Return query table and columns -> candidate table -> its columns -> common keys."""
    number = {name: at for at, name in enumerate(lake[0])}
    known = defaultdict(lambda: defaultdict(dict))
    path = shared_lakes / "wikitables" / "nary_pairs.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            columns, others = (
                tuple(map(int, row[f"{side}_columns"].split("|")))
                for side in ("query", "candidate")
            )
            query = number[row["query_table"]], columns
            known[query][number[row["candidate_table"]]][others] = int(row["joint_matches"])
    return known


def test_every_known_pair_is_found_with_its_keys(lake, known_pairs):
    _, columns, tables = lake
    rows = build_row_keys(tables)
    n_known = n_found = 0
    for at, ((table, key), candidates) in enumerate(known_pairs.items()):
        query = key_query([tables[table].column(column) for column in key])
        answer = search_keys(rows, query, None, at_least=4, excluded=[table])
        matches = {match.table: match for match in answer.matches}
        for candidate, mappings in candidates.items():
            n_known += len(mappings)
            n_found += sum(matches[candidate].keys >= n for n in mappings.values())
            if at % 10 == 0:
                match = matches[candidate]
                assert (match.keys, match.columns) == best(
                    [columns[table][column] for column in key], columns[candidate]
                )
    assert n_found == n_known == 17774


def best(key_columns, columns):
    """Return the most keys that a mapping joins, and the first such mapping, by plain sets."""
    keys = {key for key in zip(*key_columns, strict=True) if all(key)}
    counts = {
        mapping: len(keys.intersection(zip(*(columns[c] for c in mapping), strict=True)))
        for mapping in permutations(range(len(columns)), len(key_columns))
    }
    max_keys = max(counts.values())
    return max_keys, min(mapping for mapping, n in counts.items() if n == max_keys)
