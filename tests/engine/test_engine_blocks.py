"""Tests of blocks: every row once, tight boxes on every level, enclosing codes, one order."""

import numpy as np
import pytest
import torch
from engine_lakes import threads_of_torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.engine.blocks import (
    AXES_MULTIPLE,
    FANOUT,
    NOWHERE,
    STEPS,
    Blocks,
    build_blocks,
    left_sizes,
    order_by_splits,
    pad_axes,
)
from pexeso.engine.kernels import compiled
from pexeso.engine.maps import PivotMap, ProjectionMap, slack

SIZES = (1, 2, 3, 7, 16, 64)
KINDS = ("normal", "repeated", "ties", "constant axis", "far", "tiny")


def coordinates(kind: str, n: int, n_axes: int, seed: int) -> torch.Tensor:
    """Return mapped coordinates, float32 (n, P).

    Some of them tie, have no extent, or differ by one step.
    """
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, n_axes))
    if kind == "repeated":
        rows = rows[rng.integers(max(1, n // 10), size=n)] if n else rows
    elif kind == "ties":
        rows = np.round(rows)
    elif kind == "constant axis":
        rows[:, rng.integers(n_axes)] = 0.3
    elif kind == "far":
        rows = 190.0 + rows
    elif kind == "tiny":
        rows = 0.5 + rng.integers(-3, 4, size=rows.shape) * 2.0**-24
    return torch.from_numpy(rows.astype(np.float32))


def lakes(max_rows: int = 300):
    return st.builds(
        coordinates,
        st.sampled_from(KINDS),
        st.integers(0, max_rows),
        st.integers(1, 9),
        st.integers(0, 2**32),
    )


def ordered(mapped: torch.Tensor, size: int) -> torch.Tensor:
    return mapped[order_by_splits(mapped, size)]


def boxes_of(blocks: Blocks, level: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the lower and upper corners of the boxes of a level, float32 (16 groups, A).

    The boxes are in the order of their numbers, padding included.
    """
    groups = blocks.boxes[int(blocks.starts[level]) : int(blocks.starts[level + 1])]
    flat = groups.permute(0, 3, 2, 1).reshape(-1, 2, groups.shape[1])
    return flat[:, 0], flat[:, 1]


@settings(max_examples=examples(60))
@given(lakes(), st.sampled_from(SIZES))
def test_every_row_stands_once_and_all_blocks_but_the_last_are_full(mapped, size):
    n = len(mapped)
    order = order_by_splits(mapped, size)
    assert order.dtype == torch.int64
    assert sorted(order.tolist()) == list(range(n))
    blocks = build_blocks(mapped[order], size)
    assert len(blocks) == -(-n // size)
    assert (blocks.n_rows, blocks.size) == (n, size)
    assert blocks.codes.dtype == torch.uint8
    assert blocks.codes.shape == (len(blocks), blocks.boxes.shape[1], size)
    assert blocks.boxes.shape[1] % AXES_MULTIPLE == 0
    assert mapped.shape[1] <= blocks.boxes.shape[1] < mapped.shape[1] + AXES_MULTIPLE
    sizes = blocks.starts.diff().tolist()
    # One group on top, and a group for each box below it.
    assert sizes[0] == min(1, n)
    below = [*sizes[1:], len(blocks)]
    assert sizes == [-(-count // FANOUT) for count in below]


@settings(max_examples=examples(60))
@given(lakes(), st.sampled_from(SIZES))
@example(coordinates("normal", 300, 5, 1), 1)
@example(coordinates("ties", 257, 3, 2), 1)
def test_boxes_are_tight_on_every_level(mapped, size):
    rows = ordered(mapped, size)
    blocks = build_blocks(rows, size)
    n_axes, span = mapped.shape[1], size
    for level in range(blocks.n_levels - 1, -1, -1):
        lower, upper = boxes_of(blocks, level)
        n_real = -(-len(rows) // span)
        for number in range(len(lower)):
            members = rows[number * span : (number + 1) * span]
            if number >= n_real:
                assert bool((lower[number] == NOWHERE).all() & (upper[number] == NOWHERE).all())
                continue
            assert torch.equal(lower[number, :n_axes], members.amin(0))
            assert torch.equal(upper[number, :n_axes], members.amax(0))
            assert not bool(lower[number, n_axes:].any() | upper[number, n_axes:].any())
        span *= FANOUT
    if len(rows):
        lower, upper = blocks.outer_corners()
        assert torch.equal(lower[:n_axes], rows.amin(0))
        assert torch.equal(upper[:n_axes], rows.amax(0))
        leaf_lower, leaf_upper = blocks.corners_of(torch.arange(len(blocks)))
        assert torch.equal(leaf_lower, boxes_of(blocks, blocks.n_levels - 1)[0][: len(blocks)])
        assert torch.equal(leaf_upper, boxes_of(blocks, blocks.n_levels - 1)[1][: len(blocks)])
    else:
        assert [len(corner) for corner in blocks.outer_corners()] == [0, 0]
        assert [len(corner) for corner in blocks.corners_of(torch.arange(len(blocks)))] == [0, 0]


@settings(max_examples=examples(80))
@given(lakes(), st.sampled_from(SIZES))
def test_the_interval_of_a_code_encloses_its_coordinate_within_the_tolerance(mapped, size):
    rows = pad_axes(ordered(mapped, size))
    blocks = build_blocks(ordered(mapped, size), size)
    lower, upper = (corner.double() for corner in blocks.corners_of(torch.arange(len(blocks))))
    owner = torch.arange(len(rows)) // size
    codes = blocks.codes.permute(0, 2, 1).reshape(-1, rows.shape[1])[: len(rows)].double()
    step = ((upper - lower) / STEPS)[owner]
    begin = lower[owner] + codes * step
    # What `slack` grants a coordinate for its recovery from a step of the box.
    granted = 5 * 2.0**-23 * rows.abs().amax().double() if len(rows) else 0.0
    assert bool((begin - granted <= rows).all())
    assert bool((rows <= begin + step + granted).all())
    assert float(granted) < slack(rows) / 16


@pytest.mark.parametrize("reach", [0.0, 2.0, 500.0])
def test_nothing_is_near_to_the_boxes_that_pad_a_group(reach):
    rows = coordinates("far", 5, 8, 3)
    blocks = build_blocks(rows, 1)
    lower, upper = boxes_of(blocks, 0)
    assert len(lower) == FANOUT
    for chosen in (PivotMap(torch.eye(8)), ProjectionMap(torch.eye(8, dtype=torch.float64)[:7])):
        near = chosen.near_box(pad_axes(rows)[:, None], lower, upper, reach)
        assert not bool(near[:, 5:].any())
        # A real box is near its own row.
        assert bool(near[:, :5].diagonal().all())


def test_padding_adds_zeros_or_what_is_asked_for():
    mapped = torch.arange(1.0, AXES_MULTIPLE + 2)[None]
    more = AXES_MULTIPLE - 1
    assert pad_axes(mapped).tolist() == [[*mapped[0].tolist(), *[0.0] * more]]
    assert pad_axes(mapped, NOWHERE)[0, -more:].tolist() == [NOWHERE] * more
    assert torch.equal(pad_axes(mapped[:, :AXES_MULTIPLE]), mapped[:, :AXES_MULTIPLE])


@settings(max_examples=examples(150))
@given(lakes(), st.sampled_from((*SIZES, 5, 100)))
def test_the_compiled_order_is_the_same_to_the_last_row(mapped, size):
    assert torch.equal(compiled.order_by_splits(mapped, size), order_by_splits(mapped, size))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 3, 64])
def test_the_compiled_order_is_the_same_with_two_threads(monkeypatch, kind, size):
    monkeypatch.setattr(compiled, "_ROWS_A_TASK", 10)
    mapped = coordinates(kind, 300, 4, 11)
    with threads_of_torch(2):
        order = compiled.order_by_splits(mapped, size)
    assert torch.equal(order, order_by_splits(mapped, size))


@pytest.mark.parametrize("kind", KINDS)
def test_the_compiled_order_of_many_rows_is_the_same(kind):
    """Enough to be counted in bins, and to be copied in parts."""
    mapped = coordinates(kind, 20_000, 3, 12)
    assert torch.equal(compiled.order_by_splits(mapped, 64), order_by_splits(mapped, 64))


def test_zeros_of_both_signs_tie():
    signs = torch.tensor([1.0, -1.0]).repeat(50)[
        torch.randperm(100, generator=torch.Generator().manual_seed(1))
    ]
    mapped = torch.stack([0.0 * signs, 0.0 * signs.flip(0)], 1)
    assert torch.equal(order_by_splits(mapped, 3), torch.arange(100))
    assert torch.equal(compiled.order_by_splits(mapped, 3), torch.arange(100))


@settings(max_examples=examples(60))
@given(lakes(), st.sampled_from((1, 2, 3, 7, 16)))
def test_a_segment_is_halved_at_a_value_of_its_widest_axis_into_whole_blocks(mapped, size):
    order = order_by_splits(mapped, size)
    segments = [(0, len(mapped))]
    while segments:
        begin, end = segments.pop()
        if end - begin <= size:
            continue
        rows = mapped[order[begin:end]]
        left = int(left_sizes(torch.tensor([end - begin]), size)[0])
        assert left % size == 0
        assert 0 < left < end - begin
        n_blocks = -(-(end - begin) // size)
        assert left // size == (n_blocks + 1) // 2
        axis = int((rows.amax(0) - rows.amin(0)).argmax())
        assert float(rows[:left, axis].max()) <= float(rows[left:, axis].min())
        segments += [(begin, begin + left), (begin + left, end)]


def test_rows_that_tie_keep_their_order():
    mapped = torch.tensor([[1.0], [0.0], [1.0], [0.0], [1.0], [0.0]])
    assert order_by_splits(mapped, 3).tolist() == [1, 3, 5, 0, 2, 4]
    # Two whole blocks go left: the zeros and the first of the ones, which then stands before the
    # last zero.
    assert order_by_splits(mapped, 2).tolist() == [1, 3, 0, 5, 2, 4]
    assert order_by_splits(torch.zeros(50, 3), 4).tolist() == list(range(50))
