"""CSR rows against plain dictionaries."""

from itertools import pairwise

import torch
from engine_lakes import cases
from hypothesis import given
from hypothesis import strategies as st

from pexeso.engine.arrays import (
    Csr,
    any_in_rows,
    expand_ranges,
    expand_ranges_in_chunks,
    offsets_of,
)

SIZES = st.lists(st.integers(0, 6), max_size=12)


def rows_of(csr: Csr) -> list[list[int]]:
    bounds = csr.offsets.tolist()
    return [csr.members[begin:end].tolist() for begin, end in pairwise(bounds)]


def int64(numbers) -> torch.Tensor:
    return torch.tensor(list(numbers), dtype=torch.int64)


@given(cases())
def test_the_lists_of_a_partition(case):
    partition = case.partition
    values = case.order.tolist()
    stored = {value: row for row, value in enumerate(values)}
    assert len(stored) == len(values)
    assert sorted(stored) == [value for value, vector in enumerate(case.vectors) if vector.any()]
    assert rows_of(partition.column_values) == [
        sorted({stored[v] for v in column if v in stored}) for column in case.columns
    ]
    holders = [[c for c, column in enumerate(case.columns) if value in column] for value in values]
    assert rows_of(partition.value_columns) == holders


@given(SIZES, st.integers(1, 9), st.integers(0, 50))
def test_ranges_are_listed_whole_and_in_chunks(sizes, chunk, start):
    starts = [start + 3 * index for index in range(len(sizes))]
    expected = [
        (index, starts[index] + step) for index, size in enumerate(sizes) for step in range(size)
    ]
    owner, member = expand_ranges(int64(starts), int64(sizes))
    assert list(zip(owner.tolist(), member.tolist(), strict=True)) == expected
    pieces = list(expand_ranges_in_chunks(int64(starts), int64(sizes), chunk))
    assert all(1 <= len(owner) == len(member) <= chunk for owner, member in pieces)
    assert [
        pair for o, m in pieces for pair in zip(o.tolist(), m.tolist(), strict=True)
    ] == expected


@given(SIZES, st.randoms(use_true_random=False))
def test_any_in_rows_and_offsets(sizes, random):
    rows = [[random.random() < 0.3 for _ in range(size)] for size in sizes]
    offsets = offsets_of(int64(sizes))
    assert offsets.tolist() == [sum(sizes[:index]) for index in range(len(sizes) + 1)]
    flags = torch.tensor([flag for row in rows for flag in row], dtype=torch.bool)
    assert any_in_rows(flags, offsets).tolist() == [any(row) for row in rows]
