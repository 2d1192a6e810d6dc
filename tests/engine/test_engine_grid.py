"""The grid: codes in Morton order, tight boxes, children that partition their parents."""

import numpy as np
import pytest
import torch
from engine_lakes import GridOptions, cases
from hypothesis import given, settings
from hypothesis import strategies as st

from pexeso.engine.blocking import query_grid
from pexeso.engine.grid import MAX_CODE_BITS, build_blocks, build_grid, check_code_bits, leaf_codes, order_by_splits
from pexeso.errors import InputError


def code_of(digits: list[int], n_levels: int) -> int:
    """Interleave the bits of the digits, the highest first and, within a level, by axis."""
    bits = "".join(format(digit, f"0{n_levels}b")[level] for level in range(n_levels) for digit in digits)
    return int(bits, 2)


@given(st.integers(1, 8), st.integers(1, 7), st.integers(0, 10**6))
def test_codes_interleave_the_cell_numbers_of_the_axes(n_axes, n_levels, seed):
    rng = np.random.default_rng(seed)
    digits = rng.integers(2**n_levels, size=(20, n_axes))
    centres = torch.from_numpy(((digits + 0.5) / 2**n_levels).astype(np.float32))
    codes = leaf_codes(centres, torch.zeros(n_axes), torch.ones(n_axes), n_levels)
    assert codes.tolist() == [code_of(row, n_levels) for row in digits.tolist()]


def test_a_border_belongs_to_the_cell_above_it_and_the_last_one_to_the_last_cell():
    origin, extent = torch.tensor([1.0]), torch.tensor([2.0])
    borders = torch.tensor([[1.0], [1.5], [2.0], [2.5], [3.0]])
    assert leaf_codes(borders, origin, extent, 2).tolist() == [0, 1, 2, 3, 3]
    below = torch.nextafter(borders, torch.tensor(0.0))
    assert leaf_codes(below, origin, extent, 2).tolist() == [0, 0, 1, 2, 3]


def test_what_lies_outside_goes_to_the_outermost_cells():
    far = torch.tensor([[-1e30, 1e30], [1e30, -1e30], [0.1, 7.0]])
    assert leaf_codes(far, torch.zeros(2), torch.ones(2), 1).tolist() == [0b01, 0b10, 0b01]


def test_an_axis_without_extent_has_one_cell_for_what_lies_on_it():
    mapped = torch.tensor([[0.1, 0.7], [0.9, 0.7]])
    codes = leaf_codes(mapped, torch.tensor([0.0, 0.7]), torch.tensor([1.0, 0.0]), 1)
    assert codes.tolist() == [0b00, 0b10]


@settings(max_examples=80)
@given(cases(min_values=1))
def test_the_grid_of_a_partition_and_of_a_query(case):
    partition = case.partition
    if partition.n_values == 0:
        return
    check_grid(partition.grid, partition.mapped, partition, len(partition.origin))
    np.testing.assert_array_equal(partition.mapped.amin(0), partition.origin)
    vectors = torch.from_numpy(case.query)
    query = query_grid(partition, partition.map.map(vectors))
    assert sorted(query.order.tolist()) == list(range(len(vectors)))
    check_grid(query.grid, query.mapped[query.order], partition, len(partition.origin))


def check_grid(grid, rows: torch.Tensor, partition, n_axes: int) -> None:
    n_levels = partition.options.n_levels
    assert len(grid.levels) == n_levels
    codes = leaf_codes(rows, partition.origin, partition.extent, n_levels)
    for depth, level in enumerate(grid.levels):
        below = grid.levels[depth + 1].codes if depth + 1 < n_levels else codes
        assert bool((level.codes.diff() > 0).all())
        assert bool((level.count >= 1).all())
        # The runs of children follow each other without gap or overlap, from the first child to the last.
        assert level.first.tolist() == [0, *torch.cumsum(level.count, 0).tolist()[:-1]]
        assert int(level.count.sum()) == len(below)
        shift = n_axes if depth + 1 < n_levels else 0
        assert torch.equal(torch.repeat_interleave(level.codes, level.count), below >> shift)
        prefix = codes >> (n_axes * (n_levels - 1 - depth))
        for cell, code in enumerate(level.codes.tolist()):
            inside = rows[prefix == code]
            assert torch.equal(level.lower[cell], inside.amin(0))
            assert torch.equal(level.upper[cell], inside.amax(0))


def test_a_grid_by_hand():
    mapped = torch.tensor([[0.1, 0.2], [0.2, 0.1], [0.3, 0.9], [0.9, 0.9]])
    codes = leaf_codes(mapped, torch.zeros(2), torch.ones(2), 2)
    assert codes.tolist() == [0b0000, 0b0000, 0b0111, 0b1111]
    grid = build_grid(codes, mapped, 2)
    top, leaves = grid.levels
    assert grid.leaves is leaves
    assert top.codes.tolist() == [0b00, 0b01, 0b11]
    assert (top.first.tolist(), top.count.tolist()) == ([0, 1, 2], [1, 1, 1])
    assert (leaves.first.tolist(), leaves.count.tolist()) == ([0, 2, 3], [2, 1, 1])
    torch.testing.assert_close(leaves.lower[0], torch.tensor([0.1, 0.1]))
    torch.testing.assert_close(leaves.upper[0], torch.tensor([0.2, 0.2]))


def test_codes_that_do_not_fit_are_refused():
    check_code_bits(31, 2)
    check_code_bits(MAX_CODE_BITS, 1)
    message = (
        r"^n_pivots \* n_levels must be at most 62, so that a cell's code fits in 64 bits\. Got 9 \* 7 = 63 instead; "
        r"lower n_levels to 6 or less\.$"
    )
    with pytest.raises(InputError, match=message):
        check_code_bits(9, 7)
    with pytest.raises(InputError, match=message):
        GridOptions(n_pivots=9, n_levels=7)
    with pytest.raises(InputError, match=message):
        leaf_codes(torch.zeros(1, 9), torch.zeros(9), torch.ones(9), 7)


def test_codes_use_all_62_bits_without_overflow():
    corner = leaf_codes(torch.ones(1, 31), torch.zeros(31), torch.ones(31), 2)
    assert corner.tolist() == [2**62 - 1]


@settings(max_examples=40)
@given(st.integers(0, 200), st.integers(1, 5), st.sampled_from((1, 2, 3, 16, 64)), st.integers(0, 2**32), st.booleans())
def test_blocks_are_full_hold_every_row_once_and_their_boxes_are_tight(n, axes, size, seed, repeated):
    mapped = torch.from_numpy(np.random.default_rng(seed).normal(size=(n, axes)).astype(np.float32))
    if repeated:
        mapped = mapped[torch.zeros(n, dtype=torch.int64)]
    order = order_by_splits(mapped, size)
    assert sorted(order.tolist()) == list(range(n))
    rows = mapped[order]
    grid = build_blocks(rows, size, fanout=3)
    assert grid.leaves.count.tolist() == [size] * (n // size) + [n % size] * (n % size > 0)
    below = grid.leaves
    for level in reversed(grid.levels):
        assert len(level) <= 3 or level is not grid.levels[0]
        if level is not grid.leaves:
            assert level.count.sum() == len(below)
            below = level
        first = 0
        for number, cell in enumerate(level.lower):
            members = rows_below(grid, level, number)
            assert members.start == first
            first = members.stop
            assert torch.equal(rows[members].amin(0), cell)
            assert torch.equal(rows[members].amax(0), level.upper[number])


def rows_below(grid, level, number):
    depth = next(place for place, each in enumerate(grid.levels) if each is level)
    start, stop = number, number + 1
    for each in grid.levels[depth:]:
        start, stop = int(each.first[start]), int(each.first[stop - 1] + each.count[stop - 1])
    return slice(start, stop)


def test_halving_puts_clusters_into_blocks_of_their_own():
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(8, 4)) * 10
    mapped = torch.from_numpy((centres[np.arange(64) % 8] + rng.normal(size=(64, 4)) * 0.01).astype(np.float32))
    order = order_by_splits(mapped, 8)
    assert all(len(set((block % 8).tolist())) == 1 for block in order.reshape(8, 8))
