"""Tests of which edges are kept of many."""

import pyarrow as pa
import pytest

from pexeso.joins.exports.files import EDGES, strongest


def batches(rows, size):
    table = pa.Table.from_pylist([dict.fromkeys(EDGES.names) | row for row in rows], EDGES)
    return table.to_batches(max_chunksize=size)


@pytest.mark.parametrize("size", [1, 3, 100])
def test_the_strongest_edges_are_those_of_most_joinability_then_values_then_names(size):
    given = [(0.5, 9, "a"), (1.0, 2, "b"), (1.0, 7, "d"), (1.0, 7, "c"), (0.9, 50, "e")]
    rows = [
        {"joinability": share, "matched": matched, "left_table": name}
        for share, matched, name in given
    ]
    best, n_edges = strongest(batches(rows, size), 4)
    assert best["left_table"].to_pylist() == ["c", "d", "b", "e"]
    assert n_edges == 5


def test_of_no_edges_none_is_the_strongest():
    best, n_edges = strongest([], 4)
    assert (best.schema, best.num_rows, n_edges) == (EDGES, 0, 0)
