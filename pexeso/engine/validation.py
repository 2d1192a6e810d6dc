"""Validation of the arrays of a partition, whoever wrote them.

Shapes are checked before they are used, and all the rest when an index is checked.

`require_shapes` reads hardly a byte. After it no shape leads a loop out of an array, and nothing is
allocated by a number that a file has made up; numbers that are read during a search are looked at
where they are used (`pexeso/engine/kernels/count.pxi`, `pexeso.engine.arrays`). `check_arrays`
reads everything and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pexeso.engine.arrays import as_tensor
from pexeso.engine.blocks import AXES_MULTIPLE, FANOUT, NOWHERE, STEPS, pad_axes
from pexeso.engine.lists import (
    ITEMS_AT_ONCE,
    Arrays,
    refuse,
    require_kinds,
    require_there,
    wrong_list,
    wrong_numbers,
)
from pexeso.engine.maps import MAX_DIMENSIONS, map_of, slack_of
from pexeso.engine.options import (
    LENGTH_ERROR,
    MAX_AXES,
    MAX_BLOCK_SIZE,
    MAX_CODE_BITS,
    PartitionLayoutOptions,
)
from pexeso.errors import IndexCorruptError
from pexeso.runtime.ranges import mixed

_SALTS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)
_CSR_NAMES = ("value_columns", "column_values")
_BLOCK_ARRAYS = ("boxes", "box_starts", "block_codes")
_GRID_ARRAYS = {
    "mapped": ("float32", 2),
    "origin": ("float32", 1),
    "extent": ("float32", 1),
    "level_sizes": ("int64", 1),
    "cell_codes": ("int64", 1),
    "cell_first": ("int64", 1),
    "cell_count": ("int64", 1),
    "cell_lower": ("float32", 2),
    "cell_upper": ("float32", 2),
}
_KINDS = {
    "vectors": ("float32 or float16", 2),
    "axes": ("float64", 2),
    "pivots": ("float32", 2),
    "boxes": ("float32", 4),
    "box_starts": ("int64", 1),
    "block_codes": ("uint8", 3),
    **{f"{name}_offsets": ("int64", 1) for name in _CSR_NAMES},
    **{f"{name}_members": ("int32", 1) for name in _CSR_NAMES},
    "column_ids": ("int64", 1),
    "posting_texts": ("int32", 1),
    **_GRID_ARRAYS,
}


def require_shapes(arrays: Arrays) -> None:
    """Refuse arrays that are no partition by their types and shapes.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Those that `pexeso.engine.dense.building.build_partition` gives; `column_ids` and
        `posting_texts` too, where they are there. Of the arrays of blocks the numbers of levels are
        read, a few bytes; of those of a grid the levels and the runs of its cells, 16 bytes a cell.
    """
    cells = _BLOCK_ARRAYS if "block_codes" in arrays else tuple(_GRID_ARRAYS)
    lists = (f"{csr}_{part}" for csr in _CSR_NAMES for part in ("offsets", "members"))
    require_there(arrays, ("vectors", *cells, *lists))
    if ("axes" in arrays) == ("pivots" in arrays):
        refuse("A partition must have one of the arrays axes and pivots")
    require_kinds(arrays, _KINDS)
    n_coordinates = _require_map(arrays)
    _require_postings(arrays)
    if "block_codes" in arrays:
        _require_blocks(arrays, n_coordinates)
    else:
        _require_grid(arrays, n_coordinates)


def level_starts(n_blocks: int) -> list[int]:
    """Return the first group of each level of boxes, and their number, over so many blocks."""
    sizes = [-(-n_blocks // FANOUT)]
    while sizes[0] > 1:
        sizes.insert(0, -(-sizes[0] // FANOUT))
    return [sum(sizes[:level]) for level in range(len(sizes) + 1)]


def check_arrays(
    arrays: Arrays, options: PartitionLayoutOptions, *, n_texts: int | None = None
) -> list[str]:
    """Return everything that is wrong with the arrays of a partition.

    Parameters
    ----------
    n_texts : int, optional
        Texts that `posting_texts` may name; not checked without.

    Notes
    -----
    O(N P d + postings) time; 300 MiB at most are held, whatever the size of the partition. That one
    inverted index is the other one turned is told by two sums of 64 bits over a hash of all their
    pairs, so that neither need be turned.
    """
    try:
        require_shapes(arrays)
    except IndexCorruptError as error:
        return [str(error)]
    wrong = [*_check_options(arrays, options), *_check_vectors(arrays["vectors"])]
    sizes = (len(arrays["column_values_offsets"]) - 1, len(arrays["vectors"]))
    unsound = [
        problem
        for name, n_members in zip(_CSR_NAMES, sizes, strict=True)
        for problem in wrong_list(arrays, name, n_members)
    ]
    wrong += unsound
    if not unsound and _pairs_hash(arrays, "value_columns", 1) != _pairs_hash(
        arrays, "column_values", 0
    ):
        wrong.append(
            "value_columns and column_values: they do not hold the same pairs of values and "
            "columns."
        )
    wrong += wrong_numbers(arrays, n_texts)
    # Mapping vectors that are not finite tells nothing more.
    return wrong if wrong else [*wrong, *check_cells(arrays)]


def _require(arrays: Arrays, name: str, *shape: int) -> None:
    if arrays[name].shape != shape:
        refuse(f"The array {name} of a partition has shape {arrays[name].shape}, not {shape}")


def _require_map(arrays: Arrays) -> int:
    """Check the map against the vectors; give the number of coordinates."""
    dimensions = arrays["vectors"].shape[1]
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        refuse(
            f"The array vectors of a partition has {dimensions:,} dimensions; allowed are 1 to "
            f"{MAX_DIMENSIONS:,}"
        )
    name = "axes" if "axes" in arrays else "pivots"
    n_anchors = len(arrays[name])
    if n_anchors < 1 or (name == "axes" and n_anchors > MAX_AXES):
        refuse(
            f"The array {name} of a partition has {n_anchors:,} rows; allowed are 1 to {MAX_AXES}"
        )
    _require(arrays, name, n_anchors, dimensions)
    return n_anchors + (name == "axes")


def _require_postings(arrays: Arrays) -> None:
    n_values, n_postings = len(arrays["vectors"]), len(arrays["value_columns_members"])
    n_columns = len(arrays["column_values_offsets"]) - 1
    if n_columns < 0 or max(n_values, n_columns) >= 2**31:
        refuse(
            f"A partition has {n_values:,} values and {n_columns:,} columns; their numbers must "
            "fit 31 bits"
        )
    _require(arrays, "value_columns_offsets", n_values + 1)
    _require(arrays, "column_values_members", n_postings)
    if "column_ids" in arrays:
        _require(arrays, "column_ids", n_columns)
    if "posting_texts" in arrays:
        _require(arrays, "posting_texts", n_postings)


def _require_blocks(arrays: Arrays, n_coordinates: int) -> None:
    n_values, size = len(arrays["vectors"]), arrays["block_codes"].shape[2]
    if not 1 <= size <= MAX_BLOCK_SIZE:
        refuse(
            f"The blocks of a partition hold {size:,} vectors; allowed are 1 to {MAX_BLOCK_SIZE:,}"
        )
    n_blocks, n_axes = -(-n_values // size), n_coordinates + -n_coordinates % AXES_MULTIPLE
    _require(arrays, "block_codes", n_blocks, n_axes, size)
    starts = level_starts(n_blocks)
    _require(arrays, "box_starts", len(starts))
    if arrays["box_starts"].tolist() != starts:
        refuse(
            f"The array box_starts of a partition does not hold the levels of {n_blocks:,} blocks"
        )
    _require(arrays, "boxes", starts[-1], n_axes, 2, FANOUT)


def _require_grid(arrays: Arrays, n_coordinates: int) -> None:
    n_values, n_levels = len(arrays["vectors"]), len(arrays["level_sizes"])
    if not 1 <= n_levels <= MAX_CODE_BITS:
        refuse(f"The grid of a partition has {n_levels:,} levels; allowed are 1 to {MAX_CODE_BITS}")
    sizes = [int(size) for size in arrays["level_sizes"]]
    if min(sizes) < 0 or max(sizes) > n_values:
        refuse(
            "The array level_sizes of a partition does not hold the levels of a grid over "
            f"{n_values:,} vectors"
        )
    n_cells = sum(sizes)
    for name in ("codes", "first", "count"):
        _require(arrays, f"cell_{name}", n_cells)
    for name, length in (("cell_lower", n_cells), ("cell_upper", n_cells), ("mapped", n_values)):
        _require(arrays, name, length, n_coordinates)
    for name in ("origin", "extent"):
        _require(arrays, name, n_coordinates)
    begin = 0
    for size, n_below in zip(sizes, [*sizes[1:], n_values], strict=True):
        first, count = (arrays[f"cell_{name}"][begin : begin + size] for name in ("first", "count"))
        # Compared, not added up: the sum of two numbers of a file may overflow.
        runs_on = bool((first[1:] == first[:-1] + count[:-1]).all()) and bool(
            ((count > 0) & (count <= n_below)).all()
        )
        if (
            not runs_on
            or (size and (first[0] != 0 or first[-1] != n_below - count[-1]))
            or (not size and n_below)
        ):
            refuse(
                "The cells of a partition's grid do not have all cells or vectors below them, "
                "each once"
            )
        begin += size


def _check_options(arrays: Arrays, options: PartitionLayoutOptions) -> Iterator[str]:
    """Yield a message for each option that does not agree with the arrays.

    Searches use the arrays, and updates use the options.
    """
    layout = {"cells": "blocks" if "block_codes" in arrays else "grid"}
    layout["map"] = "projection" if "axes" in arrays else "pivots"
    layout["vector_precision"] = "half" if arrays["vectors"].dtype == np.float16 else "single"
    for name, value in layout.items():
        if getattr(options, name) not in (value, "auto"):
            yield (
                f"The arrays are those of the {name} {value!r}, "
                f"and the options of the index say {getattr(options, name)!r}."
            )
    if options.map == "auto":
        return
    max_anchors = options.n_pivots if layout["map"] == "pivots" else options.n_axes
    n_anchors = len(arrays["pivots" if layout["map"] == "pivots" else "axes"])
    if max_anchors is not None and n_anchors > max_anchors:
        yield (
            f"{'pivots' if layout['map'] == 'pivots' else 'axes'}: "
            f"there are {n_anchors:,}, and the options of the index say {max_anchors:,}."
        )
    if layout["cells"] == "grid":
        n_levels = len(arrays["level_sizes"])
        if options.n_levels is not None and n_levels != options.n_levels:
            yield (
                f"level_sizes: there are {n_levels} levels, "
                f"and the options of the index say {options.n_levels}."
            )
    elif arrays["block_codes"].shape[2] != options.block_size:
        yield (
            f"block_codes: blocks hold {arrays['block_codes'].shape[2]:,} vectors, "
            f"and the options of the index say {options.block_size:,}."
        )


def _check_vectors(vectors: np.ndarray) -> Iterator[str]:
    chunk_size = max(1, ITEMS_AT_ONCE // vectors.shape[1])
    n_wrong, first = 0, -1
    for begin in range(0, len(vectors), chunk_size):
        rows = vectors[begin : begin + chunk_size].astype(np.float32, copy=False)
        lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64))
        # Written so that NaN, which compares false with everything, is wrong.
        wrong = np.flatnonzero(~(np.abs(lengths - 1.0) <= LENGTH_ERROR))
        first = begin + int(wrong[0]) if first < 0 and len(wrong) else first
        n_wrong += len(wrong)
    if n_wrong:
        yield (
            f"vectors: {n_wrong:,} of {len(vectors):,} are not of unit length, "
            f"the first is {first:,}."
        )


def _pairs_hash(arrays: Arrays, name: str, value_first: int) -> tuple[int, int]:
    """Sum two hashes of all (value, column) pairs; `value_first` is 1 where the rows are values."""
    offsets, members = arrays[f"{name}_offsets"], arrays[f"{name}_members"]
    sums = np.zeros(2, dtype=np.uint64)
    for begin in range(0, len(members), ITEMS_AT_ONCE):
        end = min(begin + ITEMS_AT_ONCE, len(members))
        low = int(np.searchsorted(offsets, begin, side="right")) - 1
        high = int(np.searchsorted(offsets, end, side="left"))
        sizes = np.diff(np.clip(offsets[low : high + 1], begin, end))
        rows = np.repeat(np.arange(low, high, dtype=np.uint64), sizes)
        others = members[begin:end].astype(np.uint64)
        values, columns = (rows, others) if value_first else (others, rows)
        key = (values << np.uint64(32)) | columns
        sums += np.array([mixed(key + salt).sum() for salt in _SALTS], dtype=np.uint64)
    return int(sums[0]), int(sums[1])


_ORTHONORMAL_ERROR = 1e-9


def check_cells(arrays: Arrays) -> Iterator[str]:
    """Return what is wrong with the map and the cells of a partition whose shapes are right.

    arrays: mapping of str to ndarray, for which `pexeso.engine.validation.require_shapes` holds,
    with vectors of unit length.
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
    yield from (_check_blocks(arrays) if "block_codes" in arrays else _check_grid(arrays))


def _mapped_pieces(arrays: Arrays, multiple: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the recomputed coordinates of runs of vectors.

    The length of each run but the last is a multiple of `multiple`.
    """
    anchors = "axes" if "axes" in arrays else "pivots"
    chosen = map_of({anchors: as_tensor(arrays[anchors])})
    vectors = arrays["vectors"]
    chunk_size = (
        max(1, ITEMS_AT_ONCE // (max(vectors.shape[1], len(arrays[anchors]) + 8) * multiple))
        * multiple
    )
    for begin in range(0, len(vectors), chunk_size):
        yield begin, chosen.map(as_tensor(vectors[begin : begin + chunk_size]))


def _check_blocks(arrays: Arrays) -> Iterator[str]:
    boxes, starts, codes = arrays["boxes"], arrays["box_starts"].tolist(), arrays["block_codes"]
    yield from _check_levels(boxes, starts, len(codes))
    size, leaves = codes.shape[2], boxes[starts[-2] :]
    for begin, mapped in _mapped_pieces(arrays, size):
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
        chunk_size = max(1, ITEMS_AT_ONCE // max(1, boxes.shape[1] * 2 * FANOUT))
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


def _check_grid(arrays: Arrays) -> Iterator[str]:
    sizes = arrays["level_sizes"].tolist()
    if not all(
        np.isfinite(arrays[name]).all()
        for name in ("mapped", "origin", "extent", "cell_lower", "cell_upper")
    ):
        yield "mapped, origin, extent or the boxes of the cells: some entry is not finite."
        return
    for begin, mapped in _mapped_pieces(arrays, 1):
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
