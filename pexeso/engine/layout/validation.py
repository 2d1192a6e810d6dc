"""Validation of the arrays of a partition, whoever wrote them.

Shapes are checked before they are used, and all the rest when an index is checked.

`require_shapes` reads hardly a byte. After it no shape leads a loop out of an array, and nothing is
allocated by a number that a file has made up; numbers that are read during a search are looked at
where they are used (`pexeso.engine.kernels.numba.counts`, `pexeso.engine.postings`). `check_arrays`
reads everything and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pexeso.engine.layout.blocks import AXES_MULTIPLE, FANOUT
from pexeso.engine.layout.grid import MAX_CODE_BITS
from pexeso.engine.layout.maps import MAX_DIMENSIONS
from pexeso.engine.layout.options import (
    MAX_AXES,
    MAX_BLOCK_SIZE,
    PROJECTED_METRICS,
    PartitionLayoutOptions,
)
from pexeso.errors import IndexCorruptError
from pexeso.runtime.mixing import mixed

Arrays = Mapping[str, np.ndarray]

ITEMS_AT_ONCE = 1 << 21
"""Numbers that are checked together: with all that comes of them 200 MiB at most."""

_LENGTH_ERROR = 1e-3
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


def require_shapes(arrays: Arrays, options: PartitionLayoutOptions) -> None:
    """Refuse arrays that are no partition by their types and shapes.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Those that `pexeso.engine.building.building.build_partition` gives; `column_ids` and
        `posting_texts` too, where they are there. Of the arrays of blocks the numbers of levels are
        read, a few bytes; of those of a grid the levels and the runs of its cells, 16 bytes a cell.
    """
    cells = _BLOCK_ARRAYS if "block_codes" in arrays else tuple(_GRID_ARRAYS)
    for name in (
        "vectors",
        *cells,
        *(f"{csr}_{part}" for csr in _CSR_NAMES for part in ("offsets", "members")),
    ):
        if name not in arrays:
            _refuse(f"The array {name} of a partition is missing")
    if ("axes" in arrays) == ("pivots" in arrays):
        _refuse("A partition must have one of the arrays axes and pivots")
    for name, array in arrays.items():
        dtype, n_axes = _KINDS.get(name, (None, None))
        if dtype is not None and (
            array.dtype not in [np.dtype(type_name) for type_name in dtype.split(" or ")]
            or array.ndim != n_axes
        ):
            _refuse(
                f"The array {name} of a partition holds {array.dtype} with {array.ndim} axes, "
                f"where {dtype} with {n_axes} must be"
            )
    n_coordinates = _require_map(arrays, options)
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
    from pexeso.engine.layout.validation_cells import check_cells

    try:
        require_shapes(arrays, options)
    except IndexCorruptError as error:
        return [str(error)]
    wrong = [*_check_options(arrays, options), *_check_vectors(arrays["vectors"])]
    sound = [
        name
        for name in _CSR_NAMES
        if not (problems := list(_check_postings(arrays, name))) or wrong.extend(problems)
    ]
    if len(sound) == len(_CSR_NAMES) and _pairs_hash(arrays, "value_columns", 1) != _pairs_hash(
        arrays, "column_values", 0
    ):
        wrong.append(
            "value_columns and column_values: they do not hold the same pairs of values and "
            "columns."
        )
    wrong += _check_numbers(arrays, n_texts)
    # Mapping vectors that are not finite tells nothing more.
    return wrong if wrong else [*wrong, *check_cells(arrays, options)]


def _refuse(what: str) -> None:
    raise IndexCorruptError(f"{what}: it was changed. 'pexeso check' tells more.")


def _require(arrays: Arrays, name: str, *shape: int) -> None:
    if arrays[name].shape != shape:
        _refuse(f"The array {name} of a partition has shape {arrays[name].shape}, not {shape}")


def _require_map(arrays: Arrays, options: PartitionLayoutOptions) -> int:
    """Check the map against the vectors; give the number of coordinates."""
    dimensions = arrays["vectors"].shape[1]
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        _refuse(
            f"The array vectors of a partition has {dimensions:,} dimensions; allowed are 1 to "
            f"{MAX_DIMENSIONS:,}"
        )
    name = "axes" if "axes" in arrays else "pivots"
    n_anchors = len(arrays[name])
    if n_anchors < 1 or (name == "axes" and n_anchors > MAX_AXES):
        _refuse(
            f"The array {name} of a partition has {n_anchors:,} rows; allowed are 1 to {MAX_AXES}"
        )
    if name == "axes" and options.metric not in PROJECTED_METRICS:
        _refuse(f"A partition has the array axes, which is not for the metric {options.metric}")
    _require(arrays, name, n_anchors, dimensions)
    return n_anchors + (name == "axes")


def _require_postings(arrays: Arrays) -> None:
    n_values, n_postings = len(arrays["vectors"]), len(arrays["value_columns_members"])
    n_columns = len(arrays["column_values_offsets"]) - 1
    if n_columns < 0 or max(n_values, n_columns) >= 2**31:
        _refuse(
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
        _refuse(
            f"The blocks of a partition hold {size:,} vectors; allowed are 1 to {MAX_BLOCK_SIZE:,}"
        )
    n_blocks, n_axes = -(-n_values // size), n_coordinates + -n_coordinates % AXES_MULTIPLE
    _require(arrays, "block_codes", n_blocks, n_axes, size)
    starts = level_starts(n_blocks)
    _require(arrays, "box_starts", len(starts))
    if arrays["box_starts"].tolist() != starts:
        _refuse(
            f"The array box_starts of a partition does not hold the levels of {n_blocks:,} blocks"
        )
    _require(arrays, "boxes", starts[-1], n_axes, 2, FANOUT)


def _require_grid(arrays: Arrays, n_coordinates: int) -> None:
    n_values, n_levels = len(arrays["vectors"]), len(arrays["level_sizes"])
    if not 1 <= n_levels <= MAX_CODE_BITS:
        _refuse(
            f"The grid of a partition has {n_levels:,} levels; allowed are 1 to {MAX_CODE_BITS}"
        )
    sizes = [int(size) for size in arrays["level_sizes"]]
    if min(sizes) < 0 or max(sizes) > n_values:
        _refuse(
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
            _refuse(
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
        wrong = np.flatnonzero(~(np.abs(lengths - 1.0) <= _LENGTH_ERROR))
        first = begin + int(wrong[0]) if first < 0 and len(wrong) else first
        n_wrong += len(wrong)
    if n_wrong:
        yield (
            f"vectors: {n_wrong:,} of {len(vectors):,} are not of unit length, "
            f"the first is {first:,}."
        )


def _check_postings(arrays: Arrays, name: str) -> Iterator[str]:
    """Check one inverted index: consecutive runs, members in range and ascending in each run."""
    offsets, members = arrays[f"{name}_offsets"], arrays[f"{name}_members"]
    n_members = len(arrays["column_values_offsets" if name == "value_columns" else "vectors"])
    n_members -= name == "value_columns"
    if offsets[0] != 0 or offsets[-1] != len(members):
        yield (
            f"{name}_offsets: it goes from {offsets[0]} to {offsets[-1]} "
            f"instead of from 0 to {len(members)}."
        )
        return
    for begin in range(0, len(offsets) - 1, ITEMS_AT_ONCE):
        part = offsets[begin : begin + ITEMS_AT_ONCE + 1]
        falls = np.flatnonzero(part[1:] < part[:-1])
        if len(falls):
            yield f"{name}_offsets: it falls after row {begin + int(falls[0]):,}."
            return
    for begin in range(0, len(members), ITEMS_AT_ONCE):
        end = min(begin + ITEMS_AT_ONCE, len(members))
        part = members[begin:end]
        outside = np.flatnonzero((part < 0) | (part >= n_members))
        if len(outside):
            position = int(outside[0])
            yield (
                f"{name}_members: entry {begin + position:,} is {part[position]}, "
                f"which is not from 0 to {n_members - 1}."
            )
            return
        before = members[max(0, begin - 1) : end]
        rises = np.ones(len(part), dtype=bool)
        rises[len(part) - len(before) + 1 :] = before[1:] > before[:-1]
        rises[_starts_within(offsets, begin, end)] = True
        if not rises.all():
            yield (
                f"{name}_members: entry {begin + int(np.flatnonzero(~rises)[0]):,} "
                "is no more than the one before it in its row."
            )
            return


def _starts_within(offsets: np.ndarray, begin: int, end: int) -> np.ndarray:
    """Return the places in [begin, end), less begin, at which rows start."""
    low, high = np.searchsorted(offsets, [begin, end])
    return np.asarray(offsets[low:high]) - begin


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


def _check_numbers(arrays: Arrays, n_texts: int | None) -> Iterator[str]:
    ids = arrays.get("column_ids")
    if ids is not None and len(ids) and not (ids[0] >= 0 and bool((ids[1:] > ids[:-1]).all())):
        yield "column_ids: the numbers are not ascending, or one is below 0."
    texts = arrays.get("posting_texts")
    if texts is None or n_texts is None:
        return
    for begin in range(0, len(texts), ITEMS_AT_ONCE):
        part = texts[begin : begin + ITEMS_AT_ONCE]
        outside = np.flatnonzero((part < 0) | (part >= n_texts))
        if len(outside):
            position = int(outside[0])
            yield (
                f"posting_texts: entry {begin + position:,} is {part[position]}, "
                f"and there are {n_texts:,} texts."
            )
            return
