"""Validation of the cells of a partition.

Every box must enclose all that is below it, as each filter takes for granted.

Coordinates are computed again from the vectors and held against boxes and codes, with the tolerance
that the filters have (`pexeso.engine.layout.maps.slack`): what lies within it is found by every
search all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pexeso.engine.arrays import as_tensor
from pexeso.engine.layout.blocks import FANOUT, NOWHERE, STEPS, pad_axes
from pexeso.engine.layout.maps import map_of, slack_of
from pexeso.engine.layout.options import PartitionLayoutOptions

Arrays = Mapping[str, np.ndarray]

_ITEMS_AT_ONCE = 1 << 21
_ORTHONORMAL_ERROR = 1e-9


def check_cells(arrays: Arrays, options: PartitionLayoutOptions) -> Iterator[str]:
    """Return what is wrong with the map and the cells of a partition whose shapes are right.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        For which `pexeso.engine.layout.validation.require_shapes` holds, with vectors of unit
        length.
    """
    anchors = "axes" if "axes" in arrays else "pivots"
    if not np.isfinite(arrays[anchors]).all():
        yield f"{anchors}: some entry is not finite."
        return
    if anchors == "axes":
        products = arrays["axes"] @ arrays["axes"].T
        if np.abs(products - np.eye(len(products))).max() > _ORTHONORMAL_ERROR:
            yield "axes: its rows are not orthonormal."
            return
    yield from (
        _check_blocks(arrays, options) if "block_codes" in arrays else _check_grid(arrays, options)
    )


def _mapped_pieces(
    arrays: Arrays, options: PartitionLayoutOptions, multiple: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the recomputed coordinates of runs of vectors.

    The length of each run but the last is a multiple of `multiple`.
    """
    anchors = "axes" if "axes" in arrays else "pivots"
    chosen = map_of({anchors: as_tensor(arrays[anchors])}, options)
    vectors = arrays["vectors"]
    chunk_size = (
        max(1, _ITEMS_AT_ONCE // (max(vectors.shape[1], len(arrays[anchors]) + 8) * multiple))
        * multiple
    )
    for begin in range(0, len(vectors), chunk_size):
        yield begin, chosen.map(as_tensor(vectors[begin : begin + chunk_size]))


def _check_blocks(arrays: Arrays, options: PartitionLayoutOptions) -> Iterator[str]:
    boxes, starts, codes = arrays["boxes"], arrays["box_starts"].tolist(), arrays["block_codes"]
    yield from _check_levels(boxes, starts, len(codes))
    size, leaves = codes.shape[2], boxes[starts[-2] :]
    for begin, mapped in _mapped_pieces(arrays, options, size):
        points = pad_axes(mapped).numpy()
        block = np.arange(begin // size, -(-(begin + len(points)) // size))
        lower, upper = (
            leaves[block // FANOUT, :, side, block % FANOUT] for side in (0, 1)
        )  # (k, A)
        owner = np.arange(len(points)) // size
        position = np.arange(len(points)) % size
        step = (upper - lower) / STEPS
        low = lower[owner] + codes[block[owner], :, position].astype(np.float32) * step[owner]
        wrong = _outside(points, low, low + step[owner])
        # A box is where its codes say that it is, only if it is finite and the right way round.
        wrong |= ~(np.isfinite(lower) & (lower <= upper)).all(1)[owner]
        if wrong.any():
            row = begin + int(np.flatnonzero(wrong)[0])
            yield (
                f"boxes and block_codes: vector {row:,}, in block {row // size:,}, "
                "does not lie where its code says."
            )
            return


def _outside(points: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return which points, float32 (n, A), lie outside their interval on some axis.

    Differences up to the tolerance are allowed.
    """
    slack = slack_of(float(np.abs(points).max(initial=1.0)))
    return ~((points >= low - slack) & (points <= high + slack)).all(1)


def _check_levels(boxes: np.ndarray, starts: list[int], n_blocks: int) -> Iterator[str]:
    """Check that each coarse box encloses its group of the next level.

    Boxes beyond the last one must be padding.
    """
    n_levels = len(starts) - 1
    for level in range(n_levels):
        n_real = n_blocks if level == n_levels - 1 else starts[level + 2] - starts[level + 1]
        chunk_size = max(1, _ITEMS_AT_ONCE // max(1, boxes.shape[1] * 2 * FANOUT))
        for begin in range(starts[level], starts[level + 1], chunk_size):
            end = min(begin + chunk_size, starts[level + 1])
            part = (
                boxes[begin:end].transpose(0, 3, 1, 2).reshape(-1, boxes.shape[1], 2)
            )  # boxes in order
            number = (begin - starts[level]) * FANOUT + np.arange(len(part))
            padding = part[number >= n_real]
            if not (padding == NOWHERE).all():
                yield (
                    f"boxes: level {level} has {n_real:,} boxes, "
                    "and one that is only padding is somewhere."
                )
                return
            if level < n_levels - 1:
                real = number[number < n_real]
                below = boxes[
                    starts[level + 1] + real
                ]  # (r, A, 2, 16): the groups that these boxes enclose
                wrong = ~_encloses(part[: len(real)], below)
                if wrong.any():
                    yield (
                        f"boxes: box {int(real[np.flatnonzero(wrong)[0]]):,} of level {level} "
                        "does not enclose its group of the next level."
                    )
                    return


def _encloses(outer: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return whether each box, (r, A, 2), encloses a group, (r, A, 2, 16), but for its padding."""
    real = groups[:, :, 0] < NOWHERE / 2
    low = (groups[:, :, 0] >= outer[:, :, 0, None]) | ~real
    high = (groups[:, :, 1] <= outer[:, :, 1, None]) | ~real
    return (low & high).all((1, 2)) & np.isfinite(outer).all((1, 2))


def _check_grid(arrays: Arrays, options: PartitionLayoutOptions) -> Iterator[str]:
    sizes = arrays["level_sizes"].tolist()
    if not all(
        np.isfinite(arrays[name]).all()
        for name in ("mapped", "origin", "extent", "cell_lower", "cell_upper")
    ):
        yield "mapped, origin, extent or the boxes of the cells: some entry is not finite."
        return
    for begin, mapped in _mapped_pieces(arrays, options, 1):
        stored = arrays["mapped"][begin : begin + len(mapped)]
        wrong = _outside(mapped.numpy(), stored, stored)
        if wrong.any():
            yield (
                f"mapped: the coordinates of vector {begin + int(np.flatnonzero(wrong)[0]):,} "
                "are not those of the vector."
            )
            return
    origin, reach = arrays["origin"], arrays["origin"] + arrays["extent"]
    if len(arrays["mapped"]) and _outside(arrays["mapped"], origin, reach).any():
        yield "origin and extent: some vector lies outside of them."
    begin, n_axes = 0, len(origin)
    for level, size in enumerate(sizes):
        cells = slice(begin, begin + size)
        yield from _check_level(
            arrays,
            level,
            cells,
            n_axes,
            None if level == len(sizes) - 1 else slice(cells.stop, cells.stop + sizes[level + 1]),
        )
        begin += size


def _check_level(
    arrays: Arrays, level: int, cells: slice, n_axes: int, below: slice | None
) -> Iterator[str]:
    """Check the order, prefixes and boxes of one level's cells against what is below.

    Below are cells, or vectors.
    """
    codes, count = arrays["cell_codes"][cells], arrays["cell_count"][cells]
    if not bool((codes[1:] > codes[:-1]).all()):
        yield f"cell_codes: those of level {level} are not ascending."
    owner = np.repeat(np.arange(len(codes)), count)
    if below is not None and not bool(
        (arrays["cell_codes"][below] >> n_axes == codes[owner]).all()
    ):
        yield f"cell_codes: some cell of level {level + 1} does not lie in the one above it."
    inner = (
        [arrays["mapped"]] * 2
        if below is None
        else [arrays[f"cell_{side}"][below] for side in ("lower", "upper")]
    )
    lower, upper = arrays["cell_lower"][cells][owner], arrays["cell_upper"][cells][owner]
    wrong = ~((inner[0] >= lower) & (inner[1] <= upper)).all(1)
    if wrong.any():
        name = "vector" if below is None else f"cell of level {level + 1}"
        yield (
            f"cell_lower and cell_upper: {name} {int(np.flatnonzero(wrong)[0]):,} "
            "lies outside of the box above it."
        )
