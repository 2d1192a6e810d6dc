"""Edges by equal values, against plain sets."""

import numpy as np
import pyarrow as pa
import pytest
from equal_text_lakes import shard_of
from hypothesis import given, settings
from hypothesis import strategies as st

from pexeso.joins.graph import edges as containers
from pexeso.joins.graph.edges import EqualValues, edges_between
from pexeso.sets.lake_columns import LakeColumns
from tests.joins.graph.plain_graphs import edges_of, jaccard_leaders, random_columns


def lake_of(folder, columns, *, shards=1, deleted=()):
    """Write the columns of a lake into shards by table; each table has 30 rows."""
    opened = []
    for number in range(shards):
        mine = {
            name: tokens
            for name, tokens in columns.items()
            if int(name[0][1:-4]) % shards == number
        }
        if mine:
            gone = [at for at, name in enumerate(sorted(mine)) if name[0] in deleted]
            place = folder / str(number)
            place.mkdir()
            opened.append(shard_of(place, mine, deleted=gone))
    tables = sorted({table for table, _ in columns})
    return LakeColumns.of(
        opened, pa.array(tables, pa.string()), pa.array([30] * len(tables), pa.int64())
    )


def found_in(compared, edges):
    """Return edges as `edges_of` does, in their order."""
    nodes, pairs = compared.nodes, {}
    names = list(zip(nodes.tables.to_pylist(), nodes.labels.to_pylist(), strict=True))
    for left, right, matched, _ in edges:
        for one, other, n in zip(left.tolist(), right.tolist(), matched.tolist(), strict=True):
            pairs[names[one], names[other]] = (n, int(nodes.totals[one]))
    return pairs


def missing(columns):
    return np.full(len(columns), -1, np.int64)


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1e-9, 0.1, 0.5, 0.8, 1.0]),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([1, 2]),
)
def test_edges_are_those_of_plain_sets(tmp_path_factory, seed, min_joinability, k, shards):
    columns = random_columns(seed)
    known = lake_of(tmp_path_factory.mktemp("lake"), columns, shards=shards)
    compared = EqualValues.of(known, missing(known), folds=False)
    truth = edges_of(columns, min_joinability, k)
    edges = found_in(compared, compared.edges(min_joinability, k))
    assert edges == truth
    assert list(edges) == list(truth)


@pytest.mark.parametrize("at_once", [1, 20, 1 << 21])
def test_the_tokens_that_are_taken_at_a_time_do_not_matter(tmp_path, monkeypatch, at_once):
    columns = random_columns(3, n_tables=12)
    known = lake_of(tmp_path, columns, shards=3)
    compared = EqualValues.of(known, missing(known), folds=False)
    monkeypatch.setattr(containers, "CHUNK_TOKENS", at_once)
    truth = edges_of(columns, 0.3, 2)
    assert found_in(compared, compared.edges(0.3, 2)) == truth
    assert len(truth) > 30


def test_ranges_of_columns_make_up_the_whole(tmp_path):
    columns = random_columns(4, n_tables=12)
    known = lake_of(tmp_path, columns)
    compared = EqualValues.of(known, missing(known), folds=False)
    parts = {}
    for begin in range(0, len(known), 5):
        end = min(begin + 5, len(known))
        parts |= found_in(compared, edges_between(known, 0.3, None, begin, end))
    assert parts == edges_of(columns, 0.3, None)


def test_deleted_tables_have_no_edge(tmp_path):
    columns = random_columns(5, n_tables=8)
    known = lake_of(tmp_path, columns, shards=2, deleted=("t2.csv", "t5.csv"))
    compared = EqualValues.of(known, missing(known), folds=False)
    live = {name: tokens for name, tokens in columns.items() if name[0] not in ("t2.csv", "t5.csv")}
    assert found_in(compared, compared.edges(0.2, None)) == edges_of(live, 0.2, None)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]))
def test_copies_are_folded_as_plain_sets_are(tmp_path_factory, seed, shards):
    columns = random_columns(seed, n_tables=9)
    known = lake_of(tmp_path_factory.mktemp("lake"), columns, shards=shards)
    compared = EqualValues.of(known, missing(known), folds=True)
    leaders = jaccard_leaders(columns)
    kept = {name: columns[name] for name in columns if leaders[name] == name}
    assert found_in(compared, compared.edges(0.3, None)) == edges_of(kept, 0.3, None)
    copies = {
        (row["table"], row["column"]): (row["of_table"], row["of_column"])
        for row in compared.copies.to_pylist()
    }
    assert copies == {name: leader for name, leader in leaders.items() if name != leader}
    assert compared.nodes.n_copies.sum() == len(copies)


def test_a_column_is_unique_where_all_its_cells_differ(tmp_path):
    columns = {
        ("t0.csv", "c0"): {f"v{at}" for at in range(30)},  # all 30 rows
        ("t0.csv", "c1"): {f"v{at}" for at in range(28)},  # and two cells without a value
        ("t1.csv", "c0"): {f"v{at}" for at in range(29)},  # one value twice, or one "n/a"
        ("t1.csv", "c1"): {f"v{at}" for at in range(30, 60)},  # nothing known of its cells
    }
    known = lake_of(tmp_path, columns)
    nodes = EqualValues.of(known, np.array([0, 2, 0, -1]), folds=False).nodes
    assert nodes.unique.tolist() == [True, True, False, False]


def test_a_lake_without_columns_has_no_edge(tmp_path):
    known = LakeColumns.of([], pa.array([], pa.string()), pa.array([], pa.int64()))
    for folds in (False, True):
        compared = EqualValues.of(known, missing(known), folds=folds)
        assert found_in(compared, compared.edges(0.5, None)) == {}
