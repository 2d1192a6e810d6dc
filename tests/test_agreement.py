"""The index gives the answer of brute force on real query columns, in one partition and in many.

Columns, counts and pairs of values are compared under every setting; a longer run:
``PEXESO_QUERIES=200``.
"""

import os
import shutil

import numpy as np
import pyarrow.compute as pc
import pytest
from long_runs import EVERYTHING

from pexeso.index import build_index, open_index
from pexeso.lake.catalog import Catalog
from pexeso.results.query import read_query
from tests.conftest import ROOT

QUERIES = int(os.environ.get("PEXESO_QUERIES", "10" if EVERYTHING else "4"))
SETTINGS = (
    {"max_distance": 0.02, "min_joinability": 0.2, "k": "all"},
    {"max_distance": 0.06, "min_joinability": 0.6, "k": "all"},
    {"max_distance": 0.08, "min_joinability": 0.8, "k": "all"},
    {"max_distance": 0.06, "k": 10},
)


def draw_queries(index, n_queries):
    """Draw indexed columns evenly from the lake's top folders, and read all their rows."""
    columns = Catalog(index.store.catalog_files).columns(["table", "label", "reason"])
    columns = columns.filter(pc.is_null(columns["reason"]))
    tables, labels = columns["table"].to_pylist(), columns["label"].to_pylist()
    folders = np.array([table.split("/")[0] if "/" in table else "" for table in tables])
    generator, names, drawn = np.random.default_rng(0), np.unique(folders), []
    for position, folder in enumerate(names):
        rows = np.flatnonzero(folders == folder)
        share = n_queries // len(names) + (position < n_queries % len(names))
        drawn += generator.choice(rows, min(share, len(rows)), replace=False).tolist()
    return [read_query(index.lake / tables[row], labels[row]) for row in sorted(drawn)]


def answer(result):
    """Return a result as plain data: columns, counts and every pair."""
    return [
        (match.table, match.column, match.matched, match.total, match.pairs()) for match in result
    ]


def differences(*indexes, n_queries=QUERIES):
    """Search every index both ways; return what differs from the first answer."""
    different, n_columns = [], 0
    queries = draw_queries(indexes[0], n_queries)
    assert len(queries) == n_queries
    for query in queries:
        for options in SETTINGS:
            expected, *others = (
                answer(index.search(query, exact=exact, rerank=False, fold_copies=False, **options))
                for index in indexes
                for exact in (True, False)
            )
            n_columns += len(expected)
            if any(other != expected for other in others):
                different.append(f"{query.file}:{query.column} {options}")
    assert n_columns > 0
    return different


def test_on_a_part_of_the_demo_lake(tmp_path):
    lake = ROOT / "examples" / "lake" / "business"
    one = build_index(lake, tmp_path / "one.pexeso", model="hashing", n_partitions=1)
    model = str(one.store.embedder_folder)
    many = build_index(lake, tmp_path / "many.pexeso", model=model, n_partitions=8)
    assert (one.store.n_partitions, many.store.n_partitions) == (1, 8)
    assert differences(one, many) == []


@pytest.mark.lakes
@pytest.mark.long
def test_on_a_real_lake(lake_folder, tmp_path):
    """Compare with brute force in the same partitions, on some tables of a real lake.

    Not all tables are used, since a second build would take half a minute.
    """
    lake = tmp_path / "lake"
    lake.mkdir()
    for path in sorted(lake_folder("pudding").rglob("*.csv"))[::8]:
        shutil.copy(path, lake)
    index = build_index(lake, tmp_path / "many.pexeso", model="hashing", n_partitions=8)
    assert differences(index, n_queries=4) == []


def test_a_difference_is_told(small_index, monkeypatch):
    real, answers = answer, iter(range(1000))
    monkeypatch.setitem(globals(), "answer", lambda result: [*real(result), next(answers)])
    assert len(differences(open_index(small_index), n_queries=1)) == len(SETTINGS)
