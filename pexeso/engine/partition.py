"""One partition of an index: the arrays it consists of, how they are built, and their view as tensors."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from pexeso.engine.arrays import as_tensor
from pexeso.engine.grid import Grid, Level, build_blocks, build_grid, check_code_bits, leaf_codes, order_by_splits
from pexeso.engine.maps import (
    MAPS,
    MAX_DIMENSIONS,
    PivotMap,
    ProjectionMap,
    check_pivot_choice,
    choose_axes,
    choose_pivots,
)
from pexeso.engine.metrics import Metric
from pexeso.engine.postings import Csr, csr_from_pairs, transpose
from pexeso.errors import InputError

PROJECTED_METRICS = ("euclidean", "angular")
MAX_AXES = 127

_LEVEL_ARRAYS = ("codes", "first", "count", "lower", "upper")
_CSR_ARRAYS = ("value_columns", "leaf_columns", "column_values")


@dataclass(frozen=True)
class GridOptions:
    """How a partition is mapped and cut into cells.

    Attributes
    ----------
    metric : str
        See `pexeso.engine.metrics.Metric`.
    n_pivots : int
        The paper's |P|, at least 1; ``n_pivots * n_levels`` at most 62.
    n_levels : int
        The paper's m, at least 1.
    pivot_choice : {"pca", "random"}
    seed : int
    map : {"pivots", "projection"}
        The contractive map. ``"projection"`` prunes far more, and is for the Euclidean and angular metrics only; `n_pivots`, `n_levels` and
        `pivot_choice` have no meaning then.
    n_axes : int
        Axes of the projection, 1 to 127.
    block_size : int
        Vectors of a block under the projection, at least 1.
    """

    metric: str = "euclidean"
    n_pivots: int = 5
    n_levels: int = 6
    pivot_choice: str = "pca"
    seed: int = 0
    map: str = "pivots"
    n_axes: int = 16
    block_size: int = 64

    def __post_init__(self) -> None:
        Metric(self.metric)
        check_pivot_choice(self.pivot_choice)
        if self.map not in MAPS:
            raise InputError(f"The map must be one of {', '.join(MAPS)}. Got {self.map!r} instead.")
        if self.map == "projection" and self.metric not in PROJECTED_METRICS:
            raise InputError(
                f"The map 'projection' is for the metrics {' and '.join(PROJECTED_METRICS)}. Got {self.metric!r}; use the map 'pivots'."
            )
        if self.n_axes > MAX_AXES:
            raise InputError(f"n_axes must be at most {MAX_AXES}. Got {self.n_axes} instead.")
        for name in ("n_pivots", "n_levels", "n_axes", "block_size"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1. Got {getattr(self, name)} instead.")
        check_code_bits(self.n_pivots, self.n_levels)


@dataclass(frozen=True)
class Partition:
    """The arrays of one partition as tensors on a device.

    Shape letters: N stored vectors (distinct values), d dimensions, P pivots, C columns, L leaf cells.

    Attributes
    ----------
    options : GridOptions
    vectors : float32 (N, d)
        In cell order.
    mapped : float32 (N, P)
    pivots : float32 (P, d)
        None (0, d) under the projection.
    origin, extent : float32 (P,)
        Smallest corner and edge lengths of the mapped vectors.
    grid : Grid
    value_columns : Csr
        Columns of each of the N values.
    leaf_columns : Csr
        Distinct columns of each of the L leaf cells.
    column_values : Csr
        Values of each of the C columns.
    axes : float64 (P - 1, d), optional
        Of the projection.
    """

    options: GridOptions
    vectors: torch.Tensor
    mapped: torch.Tensor
    pivots: torch.Tensor
    origin: torch.Tensor
    extent: torch.Tensor
    grid: Grid
    value_columns: Csr
    leaf_columns: Csr
    column_values: Csr
    axes: torch.Tensor | None = None

    @property
    def n_values(self) -> int:
        """N: distinct values with a vector."""
        return len(self.vectors)

    @property
    def n_columns(self) -> int:
        """C: columns, those without any vector included."""
        return len(self.column_values)

    @property
    def dimensions(self) -> int:
        """d: vector dimensions."""
        return self.vectors.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self.vectors.device

    @cached_property
    def metric(self) -> Metric:
        """The metric that the partition was built for."""
        return Metric(self.options.metric)

    @cached_property
    def map(self) -> PivotMap | ProjectionMap:
        """The contractive map."""
        return PivotMap(self.pivots, self.metric) if self.axes is None else ProjectionMap(self.axes)

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], options: GridOptions, device: torch.device | str = "cpu"
    ) -> Partition:
        """View the arrays that `build_partition` gave; on the CPU nothing is copied."""
        tensors = {name: as_tensor(array, device) for name, array in arrays.items()}
        bounds = np.concatenate([[0], np.cumsum(arrays["level_sizes"])]).tolist()
        levels = tuple(
            Level(*(tensors[f"cell_{name}"][begin:end] for name in _LEVEL_ARRAYS))
            for begin, end in itertools.pairwise(bounds)
        )
        return cls(
            options=options,
            vectors=tensors["vectors"],
            mapped=tensors["mapped"],
            pivots=tensors["pivots"],
            origin=tensors["origin"],
            extent=tensors["extent"],
            grid=Grid(levels),
            axes=tensors.get("axes"),
            **{name: Csr(tensors[f"{name}_offsets"], tensors[f"{name}_members"]) for name in _CSR_ARRAYS},
        )


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
    O(n (d + P m) + n log n + postings log postings); memory about three times the arrays.
    """
    stored = check_vectors(vectors)
    rows = as_tensor(vectors)[stored]
    anchors = _choose_anchors(rows, options)
    mapped = _map_of(anchors, options).map(rows)
    origin, extent = _corner_and_edges(mapped)
    grid, by_cell = _cells(mapped, origin, extent, options)
    order = stored[by_cell]
    column_csr = _column_values(column_offsets, column_values, order, len(vectors))
    value_csr = transpose(column_csr, len(order))
    csrs = {
        "column_values": column_csr,
        "value_columns": value_csr,
        "leaf_columns": _leaf_columns(value_csr, grid.leaves),
    }
    arrays = {
        "vectors": rows[by_cell],
        "mapped": mapped[by_cell],
        **anchors,
        "origin": origin,
        "extent": extent,
        "level_sizes": torch.tensor([len(level) for level in grid.levels]),
    }
    for name in _LEVEL_ARRAYS:
        arrays[f"cell_{name}"] = torch.cat([getattr(level, name) for level in grid.levels])
    for name, csr in csrs.items():
        arrays[f"{name}_offsets"], arrays[f"{name}_members"] = csr.offsets, csr.members
    return {name: tensor.numpy() for name, tensor in arrays.items()}, order.numpy()


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
    nothing = torch.zeros((0, rows.shape[1]))
    if options.map == "projection":
        return {"pivots": nothing, "axes": choose_axes(rows, options.n_axes, seed=options.seed)}
    if len(rows) == 0:
        return {"pivots": torch.zeros((1, rows.shape[1]))}
    return {"pivots": choose_pivots(rows, options.n_pivots, choice=options.pivot_choice, seed=options.seed)}


def _map_of(anchors: Mapping[str, torch.Tensor], options: GridOptions) -> PivotMap | ProjectionMap:
    if "axes" in anchors:
        return ProjectionMap(anchors["axes"])
    return PivotMap(anchors["pivots"], Metric(options.metric))


def _cells(
    mapped: torch.Tensor, origin: torch.Tensor, extent: torch.Tensor, options: GridOptions
) -> tuple[Grid, torch.Tensor]:
    """Build the cells; give them and the order of the rows in them."""
    if options.map == "projection":
        order = order_by_splits(mapped, options.block_size)
        return build_blocks(mapped[order], options.block_size), order
    codes, order = torch.sort(leaf_codes(mapped, origin, extent, options.n_levels), stable=True)
    return build_grid(codes, mapped[order], options.n_levels), order


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


def _leaf_columns(value_columns: Csr, leaves: Level) -> Csr:
    leaf_of_value = torch.repeat_interleave(torch.arange(len(leaves)), leaves.count)
    leaf_of_posting = torch.repeat_interleave(leaf_of_value, value_columns.sizes)
    return csr_from_pairs(leaf_of_posting, value_columns.members.long(), len(leaves))
