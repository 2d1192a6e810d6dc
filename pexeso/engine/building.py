"""Building a partition: vectors checked, mapped, ordered and cut into cells; postings turned both ways."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from pexeso.engine.arrays import as_tensor
from pexeso.engine.blocks import build_blocks
from pexeso.engine.cost import resolve_options
from pexeso.engine.grid import build_grid, leaf_codes
from pexeso.engine.grid_options import GridOptions
from pexeso.engine.kernels import fastest_order
from pexeso.engine.maps import MAX_DIMENSIONS, choose_axes, choose_pivots
from pexeso.engine.partition import LEVEL_ARRAYS, map_of
from pexeso.engine.postings import Csr, csr_from_pairs, transpose
from pexeso.errors import InputError


def build_partition(
    vectors: np.ndarray, column_offsets: np.ndarray, column_values: np.ndarray, options: GridOptions
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Build the arrays of one partition.

    Parameters
    ----------
    vectors : float32 (n, d)
        The distinct values' vectors: unit length, or zero where a value has no meaning. Zero vectors are left out: they match nothing.
    column_offsets : int64 (C + 1,)
    column_values : int64 (column_offsets[-1],)
        Row numbers of `vectors` for each column (CSR); repeats are merged.
    options : GridOptions

    Returns
    -------
    arrays : dict of str to ndarray
        What `Partition.from_arrays` takes and the store writes.
    order : int64 (N,)
        The row of `vectors` that each stored vector came from.

    Raises
    ------
    InputError
        When a vector is not finite or neither zero nor of unit length.

    Notes
    -----
    O(n P (d + log n) + postings log postings); memory about three times the arrays.
    """
    stored = check_vectors(vectors)
    options, _ = resolve_options(vectors, column_offsets, column_values, options)
    rows = as_tensor(vectors)[stored]
    anchors = _choose_anchors(rows, options)
    mapped = map_of(anchors, options).map(rows)
    cells, by_cell = (_blocks if options.cells == "blocks" else _grid)(mapped, options)
    order = stored[by_cell]
    column_csr = _column_values(column_offsets, column_values, order, len(vectors))
    arrays = {"vectors": rows[by_cell], **anchors, **cells}
    for name, csr in (("column_values", column_csr), ("value_columns", transpose(column_csr, len(order)))):
        arrays[f"{name}_offsets"], arrays[f"{name}_members"] = csr.offsets, csr.members
    return {name: tensor.numpy() for name, tensor in arrays.items()}, order.numpy()


def n_cells(arrays: Mapping[str, np.ndarray]) -> int:
    """Give the number of blocks, or of leaf cells of the grid."""
    return len(arrays["block_codes"]) if "block_codes" in arrays else int(arrays["level_sizes"][-1])


def n_coordinates(arrays: Mapping[str, np.ndarray]) -> int:
    """Give the number of mapped coordinates."""
    return len(arrays["axes"]) + 1 if "axes" in arrays else len(arrays["pivots"])


def check_vectors(vectors: np.ndarray) -> torch.Tensor:
    """Refuse vectors that are not finite or not of unit length; give the numbers of those that are not zero, int64."""
    if vectors.ndim != 2 or vectors.dtype != np.float32:
        raise InputError(
            f"Vectors must be a float32 array of two axes. Got {vectors.dtype} of shape {vectors.shape} instead."
        )
    if vectors.shape[1] > MAX_DIMENSIONS:
        raise InputError(f"Vectors must have at most {MAX_DIMENSIONS:,} dimensions. Got {vectors.shape[1]:,} instead.")
    # In float64 no square of a float32 number vanishes or overflows, so that only zero vectors have length 0.
    norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    wrong = ~(np.abs(norms - 1.0) <= 1e-3) & (norms != 0)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"Vectors must be of unit length or zero. Got length {norms[row]} at row {row} ({int(wrong.sum())} of {len(vectors)} rows are wrong); "
            "divide each vector by its length, and leave out those with NaN or infinite entries."
        )
    return torch.from_numpy(np.flatnonzero(norms))


def _choose_anchors(rows: torch.Tensor, options: GridOptions) -> dict[str, torch.Tensor]:
    """Choose what the map is made of: pivots or axes."""
    if options.map == "projection":
        return {"axes": choose_axes(rows, options.n_axes, seed=options.seed)}
    if len(rows) == 0:
        return {"pivots": torch.zeros((1, rows.shape[1]))}
    return {"pivots": choose_pivots(rows, options.n_pivots, choice=options.pivot_choice, seed=options.seed)}


def _blocks(mapped: torch.Tensor, options: GridOptions) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Cut the rows into blocks; give the arrays, and the order of the rows."""
    order = fastest_order(len(mapped))(mapped, options.block_size)
    blocks = build_blocks(mapped[order], options.block_size)
    return {"boxes": blocks.boxes, "box_starts": blocks.starts, "block_codes": blocks.codes}, order


def _grid(mapped: torch.Tensor, options: GridOptions) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Cut the space into a grid; give the arrays, and the order of the rows."""
    origin, extent = _corner_and_edges(mapped)
    codes, order = torch.sort(leaf_codes(mapped, origin, extent, options.n_levels), stable=True)
    grid = build_grid(codes, mapped[order], options.n_levels)
    arrays = {"mapped": mapped[order], "origin": origin, "extent": extent}
    arrays["level_sizes"] = torch.tensor([len(level) for level in grid.levels])
    for name in LEVEL_ARRAYS:
        arrays[f"cell_{name}"] = torch.cat([getattr(level, name) for level in grid.levels])
    return arrays, order


def _corner_and_edges(mapped: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if len(mapped) == 0:
        nothing = torch.zeros(mapped.shape[1])
        return nothing, nothing
    lower = mapped.amin(0)
    return lower, mapped.amax(0) - lower


def _column_values(offsets: np.ndarray, values: np.ndarray, order: torch.Tensor, n_given: int) -> Csr:
    """Renumber the columns' values to stored rows; values without a vector drop out."""
    stored_row = torch.full((n_given,), -1, dtype=torch.int64)
    stored_row[order] = torch.arange(len(order))
    rows = stored_row[as_tensor(values).long()]
    sizes = as_tensor(np.diff(offsets)).long()
    columns = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    kept = rows >= 0
    return csr_from_pairs(columns[kept], rows[kept], len(sizes))
