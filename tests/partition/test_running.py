"""Tests that running sums in shares equal those of columns held in memory.

This holds wherever the shares and batches are cut.
"""

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from partition.balance import cut, size_limits
from partition.running import KEYED, ORDER, PART_SUMS, key_pieces, part_sums, shares_before


def columns_of(seed, n):
    generator = np.random.default_rng(seed)
    return {
        "column_id": generator.permutation(n * 3)[:n],
        "n_bytes": generator.integers(1, 120, n),
        "tie": generator.integers(0, 4, n),
        "cluster": generator.integers(0, 3, n).astype(np.int32),
        "divergence": generator.integers(0, 5, n) / 4,
    }


@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 60),
    cuts=st.lists(st.integers(0, 60), max_size=5),
    rows_per_batch=st.integers(1, 20),
    piece_bytes=st.integers(1, 100),
)
def test_pieces_are_those_of_columns_in_memory(seed, n, cuts, rows_per_batch, piece_bytes):
    columns = columns_of(seed, n)
    limits = size_limits(8 * piece_bytes, n, int(columns["n_bytes"].sum()))
    table = pa.table({**columns, "own": columns["n_bytes"] > limits.piece_bytes})
    table = table.sort_by([(name, "ascending") for name in ORDER])
    borders = sorted({0, n, *(min(place, n) for place in cuts)})
    parts = []
    for number, (start, stop) in enumerate(itertools.pairwise(borders)):
        share = table.slice(start, stop - start)
        share = share.append_column("part", pa.array(np.full(len(share), number, np.int32)))
        # Other tasks finish in any order, and empty batches happen.
        parts.insert(
            number % 2,
            [share.slice(0, 0).combine_chunks().to_batches(), share.to_batches(rows_per_batch)],
        )
    parts = [[batch for batches in part for batch in batches] for part in parts]
    sums = [batch for part in parts for batch in part_sums(part)]
    before = shares_before(pa.Table.from_batches(sums, PART_SUMS))
    keyed = pa.Table.from_batches(
        [piece for part in parts for piece in key_pieces(part, before, limits)], KEYED
    )
    keyed = keyed.sort_by("column_id")

    expected, piece_of = cut(
        *(columns[name] for name in ("column_id", "cluster", "divergence", "tie", "n_bytes")),
        limits,
    )
    by_column = piece_of[np.argsort(columns["column_id"])]
    keys = [
        keyed[name].to_numpy() for name in ("cluster", "own_column", "size_step", "column_step")
    ]
    wanted = [
        array[by_column]
        for array in (expected.cluster, expected.column, expected.size_step, expected.column_step)
    ]
    np.testing.assert_array_equal(np.array(keys), np.array(wanted))
    order = np.argsort(columns["column_id"])
    np.testing.assert_array_equal(keyed["n_bytes"].to_numpy(), columns["n_bytes"][order])
