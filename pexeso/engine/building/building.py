"""Building a partition: vectors are checked, mapped, ordered and cut into cells.

Postings are stored in both directions. The build runs on any device.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from pexeso.engine.arrays import as_tensor
from pexeso.engine.building.map_choice import resolve_options
from pexeso.engine.kernels.choice import fastest_order
from pexeso.engine.layout.blocks import build_blocks
from pexeso.engine.layout.grid import build_grid, corner_and_edges, order_by_cells
from pexeso.engine.layout.maps import map_of
from pexeso.engine.layout.options import PartitionLayoutOptions
from pexeso.engine.layout.ordering import order_by_splits
from pexeso.engine.layout.partition import LEVEL_ARRAYS, choose_anchors
from pexeso.engine.layout.unit_vectors import check_vectors
from pexeso.engine.postings import Csr, csr_from_pairs, transpose
from pexeso.errors import InputError

_ROWS_AT_ONCE = 1 << 20
_ITEMS_AT_ONCE = 1 << 20


def build_partition(
    vectors: np.ndarray,
    column_offsets: np.ndarray,
    column_values: np.ndarray,
    options: PartitionLayoutOptions,
    *,
    device: torch.device | str = "cpu",
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Build the arrays of one partition.

    Parameters
    ----------
    vectors : float32 (n, d)
        The distinct values' vectors: unit length, or zero where a value has no meaning. Zero
        vectors are left out: they match nothing. Where the options store them as float16, their
        entries are numbers that float16 has.
    column_offsets : int64 (C + 1,)
    column_values : int64 (column_offsets[-1],)
        Row numbers of `vectors` for each column (CSR); repeats are merged.
    device : torch.device or str
        Where the work is done. Mapped coordinates may differ in their last bits from one device to
        another, and with them the order; answers do not.

    Returns
    -------
    arrays : dict of str to ndarray
        What `Partition.from_arrays` takes and the store writes.
    order : int64 (N,)
        The row of `vectors` that each stored vector came from.

    Notes
    -----
    O(n P (d + log n) + postings log postings); memory about three times the arrays.
    """
    stored = check_vectors(vectors)
    options, _ = resolve_options(vectors, column_offsets, column_values, options)
    columns = (
        as_tensor(np.ascontiguousarray(part), device).long()
        for part in (column_offsets, column_values)
    )
    tensors, order = build_checked(as_tensor(vectors, device), stored.to(device), *columns, options)
    arrays = {name: tensor.numpy(force=True) for name, tensor in tensors.items()}
    if options.vector_precision == "half":
        arrays["vectors"] = _as_halves(arrays["vectors"])
    return arrays, order.numpy(force=True)


def _as_halves(vectors: np.ndarray) -> np.ndarray:
    """Return float32 vectors as float16, for which their entries must be float16 numbers already.

    Cells are made of what is stored: vectors that were rounded after it would lie outside.
    """
    halves = np.empty(vectors.shape, np.float16)
    chunk_size = max(1, _ITEMS_AT_ONCE // max(1, vectors.shape[1]))
    for begin in range(0, len(vectors), chunk_size):
        piece = vectors[begin : begin + chunk_size]
        halves[begin : begin + chunk_size] = piece
        if not np.array_equal(halves[begin : begin + chunk_size], piece):
            raise InputError(
                "Vectors that are stored as float16 must hold numbers that float16 has. Got "
                f"others among rows {begin:,} to {begin + len(piece) - 1:,}: round them before "
                "the partition is built (embed.half.in_half)."
            )
    return halves


def n_cells(arrays: Mapping[str, np.ndarray]) -> int:
    """Return the number of blocks, or of leaf cells of the grid."""
    return len(arrays["block_codes"]) if "block_codes" in arrays else int(arrays["level_sizes"][-1])


def n_coordinates(arrays: Mapping[str, np.ndarray]) -> int:
    """Return the number of mapped coordinates."""
    return len(arrays["axes"]) + 1 if "axes" in arrays else len(arrays["pivots"])


def n_levels(arrays: Mapping[str, np.ndarray]) -> int | None:
    """Return the number of levels of the grid; None for blocks."""
    return None if "block_codes" in arrays else len(arrays["level_sizes"])


def build_checked(
    vectors: torch.Tensor,
    stored: torch.Tensor,
    column_offsets: torch.Tensor,
    column_values: torch.Tensor,
    options: PartitionLayoutOptions,
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Build from vectors that are checked; `stored` are the rows that are not zero."""
    everything = len(stored) == len(vectors)
    anchors = choose_anchors(vectors, None if everything else stored, options)
    chosen = map_of(anchors, options)
    if everything:
        mapped = chosen.map(vectors)
    else:
        parts = torch.split(stored, _ROWS_AT_ONCE)
        mapped = torch.cat([chosen.map(vectors[part]) for part in parts or (stored,)])
    cells, by_cell = cut_into_cells(mapped, options)
    del mapped
    order = by_cell if everything else stored[by_cell]
    postings = turned_postings(column_offsets, column_values, order, len(vectors))
    # Row by row: indexing with a tensor goes number by number.
    return {"vectors": vectors.index_select(0, order), **anchors, **cells, **postings}, order


def cut_into_cells(
    mapped: torch.Tensor, options: PartitionLayoutOptions
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Cut the rows into blocks or a grid; give the arrays, and the order of the rows."""
    return (_blocks if options.cells == "blocks" else _grid)(mapped, options)


def _blocks(
    mapped: torch.Tensor, options: PartitionLayoutOptions
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    order_rows = fastest_order(len(mapped)) if mapped.device.type == "cpu" else order_by_splits
    order = order_rows(mapped, options.block_size)
    blocks = build_blocks(mapped, options.block_size, order)
    return {"boxes": blocks.boxes, "box_starts": blocks.starts, "block_codes": blocks.codes}, order


def _grid(
    mapped: torch.Tensor, options: PartitionLayoutOptions
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    origin, extent = corner_and_edges(mapped)
    codes, order = order_by_cells(mapped, origin, extent, options.n_levels)
    mapped = mapped.index_select(0, order)
    grid = build_grid(codes, mapped, options.n_levels)
    arrays = {"mapped": mapped, "origin": origin, "extent": extent}
    arrays["level_sizes"] = torch.tensor([len(level) for level in grid.levels])
    for name in LEVEL_ARRAYS:
        arrays[f"cell_{name}"] = torch.cat([getattr(level, name) for level in grid.levels])
    return arrays, order


def turned_postings(
    offsets: torch.Tensor, values: torch.Tensor, order: torch.Tensor, n_given: int
) -> dict[str, torch.Tensor]:
    """Return the values of each column and the columns of each value, both in stored rows."""
    column_csr = _column_values(offsets, values, order, n_given)
    value_csr = transpose(column_csr, len(order))
    return {
        "column_values_offsets": column_csr.offsets,
        "column_values_members": column_csr.members,
        "value_columns_offsets": value_csr.offsets,
        "value_columns_members": value_csr.members,
    }


def _column_values(
    offsets: torch.Tensor, values: torch.Tensor, order: torch.Tensor, n_given: int
) -> Csr:
    """Renumber the columns' values to stored rows; values without a vector drop out."""
    device = order.device
    stored_row = torch.full((n_given,), -1, dtype=torch.int64, device=device)
    stored_row[order] = torch.arange(len(order), device=device)
    rows = stored_row[values]
    sizes = offsets[1:] - offsets[:-1]
    columns = torch.repeat_interleave(torch.arange(len(sizes), device=device), sizes)
    if len(order) < n_given:
        mask = rows >= 0
        columns, rows = columns[mask], rows[mask]
    return csr_from_pairs(columns, rows, len(sizes))
