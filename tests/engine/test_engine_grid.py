"""The grid: codes in Morton order, tight boxes, children that partition their parents."""

import numpy as np
import pytest
import torch
from engine_lakes import PartitionLayoutOptions, cases
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.engine.options import MAX_CODE_BITS, check_code_bits
from pexeso.engine.partition import GridCells
from pexeso.engine.published.grid import Grid, leaf_codes, order_by_cells
from pexeso.engine.published.walk import query_grid
from pexeso.errors import InputError


def code_of(digits: list[int], n_levels: int) -> int:
    """Interleave the bits of the digits, the highest first and, within a level, by axis."""
    bits = "".join(
        format(digit, f"0{n_levels}b")[level] for level in range(n_levels) for digit in digits
    )
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


@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 10**6))
def test_rows_of_a_leaf_are_in_the_order_of_finer_cells(n_axes, n_levels, seed):
    rng = np.random.default_rng(seed)
    rows = torch.from_numpy(rng.random((60, n_axes), np.float32))
    rows[::7] = rows[0]
    origin, extent = torch.zeros(n_axes), torch.ones(n_axes)
    codes, order = order_by_cells(rows, origin, extent, n_levels)
    assert sorted(order.tolist()) == list(range(60))
    for finer in range(n_levels, min(24, MAX_CODE_BITS // n_axes) + 1):
        there = leaf_codes(rows[order], origin, extent, finer)
        assert bool((there.diff() >= 0).all())
        if finer == n_levels:
            assert there.tolist() == codes.tolist()


def test_runs_of_rows_in_a_large_leaf_have_small_boxes():
    rows = torch.from_numpy(np.random.default_rng(0).random((4096, 3), np.float32))
    _, order = order_by_cells(rows, torch.zeros(3), torch.ones(3), 1)
    runs = rows[order].view(-1, 64, 3)
    edges = runs.amax(1) - runs.amin(1)
    # In any order they fill their leaves, cubes of edge 1/2; an even cut gives cubes of edge 1/4.
    assert float(edges.prod(1).mean()) < 0.5 / 2**3


def test_what_lies_outside_goes_to_the_outermost_cells():
    far = torch.tensor([[-1e30, 1e30], [1e30, -1e30], [0.1, 7.0]])
    assert leaf_codes(far, torch.zeros(2), torch.ones(2), 1).tolist() == [0b01, 0b10, 0b01]


def test_an_axis_without_extent_has_one_cell_for_what_lies_on_it():
    mapped = torch.tensor([[0.1, 0.7], [0.9, 0.7]])
    codes = leaf_codes(mapped, torch.tensor([0.0, 0.7]), torch.tensor([1.0, 0.0]), 1)
    assert codes.tolist() == [0b00, 0b10]


@settings(max_examples=examples(80))
@given(cases(min_values=1, cells=("grid",)))
def test_the_grid_of_a_partition_and_of_a_query(case):
    partition, cells, n_levels = (
        case.partition,
        case.partition.cells,
        case.partition.options.n_levels,
    )
    if partition.n_values == 0:
        return
    check_grid(cells.grid, cells.mapped, cells, n_levels)
    np.testing.assert_array_equal(cells.mapped.amin(0), cells.origin)
    np.testing.assert_array_equal(cells.mapped.amax(0) - cells.mapped.amin(0), cells.extent)
    vectors = torch.from_numpy(case.query)
    query = query_grid(cells, partition.map.map(vectors))
    assert sorted(query.order.tolist()) == list(range(len(vectors)))
    check_grid(query.grid, query.mapped[query.order], cells, n_levels)


def check_grid(grid: Grid, rows: torch.Tensor, cells: GridCells, n_levels: int) -> None:
    n_axes = len(cells.origin)
    assert len(grid.levels) == n_levels
    codes = leaf_codes(rows, cells.origin, cells.extent, n_levels)
    for depth, level in enumerate(grid.levels):
        below = grid.levels[depth + 1].codes if depth + 1 < n_levels else codes
        assert bool((level.codes.diff() > 0).all())
        assert bool((level.count >= 1).all())
        # The runs of children follow each other without gap or overlap, from the first child to the
        # last.
        assert level.first.tolist() == [0, *torch.cumsum(level.count, 0).tolist()[:-1]]
        assert int(level.count.sum()) == len(below)
        shift = n_axes if depth + 1 < n_levels else 0
        assert torch.equal(torch.repeat_interleave(level.codes, level.count), below >> shift)
        prefix = codes >> (n_axes * (n_levels - 1 - depth))
        for cell, code in enumerate(level.codes.tolist()):
            inside = rows[prefix == code]
            assert torch.equal(level.lower[cell], inside.amin(0))
            assert torch.equal(level.upper[cell], inside.amax(0))


def test_codes_that_do_not_fit_are_refused():
    check_code_bits(31, 2)
    check_code_bits(MAX_CODE_BITS, 1)
    message = (
        r"^n_pivots \* n_levels must be at most 62, so that a cell's code fits in 64 bits\. Got "
        r"9 \* 7 = 63 instead; "
        r"lower n_levels to 6 or less\.$"
    )
    with pytest.raises(InputError, match=message):
        check_code_bits(9, 7)
    with pytest.raises(InputError, match=message):
        PartitionLayoutOptions(n_pivots=9, n_levels=7, cells="grid")
    with pytest.raises(InputError, match=message):
        PartitionLayoutOptions(map="projection", n_axes=8, n_levels=7, cells="grid")
    PartitionLayoutOptions(n_pivots=9, n_levels=7)
    with pytest.raises(InputError, match=message):
        leaf_codes(torch.zeros(1, 9), torch.zeros(9), torch.ones(9), 7)


def test_codes_use_all_62_bits_without_overflow():
    corner = leaf_codes(torch.ones(1, 31), torch.zeros(31), torch.ones(31), 2)
    assert corner.tolist() == [2**62 - 1]
