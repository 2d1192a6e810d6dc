"""One partition of an index: the arrays it consists of, as tensors on a device."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
import torch

from pexeso.engine.arrays import as_tensor
from pexeso.engine.fetching import Pages
from pexeso.engine.layout.blocks import Blocks
from pexeso.engine.layout.grid import Grid, Level
from pexeso.engine.layout.grid_cells import GridCells
from pexeso.engine.layout.maps import (
    PivotMap,
    ProjectionMap,
    choose_axes,
    choose_pivots,
    map_of,
    slack,
)
from pexeso.engine.layout.options import PartitionLayoutOptions
from pexeso.engine.layout.validation import require_shapes
from pexeso.engine.lists import Lists
from pexeso.engine.metrics import Metric
from pexeso.engine.postings import Csr

if TYPE_CHECKING:
    from pexeso.engine.interface import Kernel, Pairs, Query, Threshold
    from pexeso.engine.layout.partition import Partition
    from pexeso.engine.lemmas import Lemma
    from pexeso.engine.stats import SearchStats


class Cells(Protocol):
    """The cells of a partition.

    Attributes
    ----------
    has_summary : bool
        Whether coarse boxes stand for all that is below them. Only then can a search skip the
        partition by its summary, order query values by what they reach, and weigh products.
    """

    has_summary: ClassVar[bool]

    @property
    def blocks(self) -> Blocks:
        """What programs of a device walk: the cells themselves, or blocks made of them."""

    def outer_corners(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the corners of a box around every vector, float32 (A,) each."""

    def is_finite(self) -> bool:
        """Return whether the boxes that a search begins with have two finite corners, in order."""

    def corners_of_rows(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the corners that enclose the coordinates of stored rows, float32 (n, A) each."""

    def fetch_rows(self, partition: Partition, rows: torch.Tensor) -> None:
        """Request stored rows, ascending, from the partition's pages.

        What `corners_of_rows` reads is requested too.
        """

    def fetch(
        self, partition: Partition, query: Query, threshold: Threshold, kernel: Kernel
    ) -> None:
        """Ask the partition's pages for what can be known of a walk before it begins."""

    def candidates(
        self,
        partition: Partition,
        query: Query,
        threshold: Threshold,
        kernel: Kernel,
        max_pairs: int,
        stats: SearchStats,
    ) -> Iterator[tuple[slice, Pairs | None]]:
        """Yield runs of query values, in order, with their candidate pairs.

        Pairs are what `pexeso.engine.interface.Kernel.candidates` returns; None in their place says
        that the run has too many. There may be more than `max_pairs` where these take less than
        half of `pexeso.engine.vector_space.BYTES_A_PAIR`.
        """


LEVEL_ARRAYS = ("codes", "first", "count", "lower", "upper")
CSR_ARRAYS = ("value_columns", "column_values")


@dataclass(frozen=True)
class Partition:
    """The arrays of one partition as tensors on a device.

    Shape letters: N stored vectors (distinct values), d dimensions, P mapped coordinates, C
    columns.

    Attributes
    ----------
    vectors : float32 or float16 (N, d)
        In the order of the cells. What is computed with them is computed in float32 or float64,
        which hold each float16 number as it is: so no band depends on how they are stored.
    pages : Pages, optional
        What brings parts of the arrays into memory, where they are mapped files.
    """

    options: PartitionLayoutOptions
    vectors: torch.Tensor
    map: PivotMap | ProjectionMap
    cells: Cells
    value_columns: Csr
    column_values: Csr
    pages: Pages | None = None

    @cached_property
    def n_values(self) -> int:
        """N: distinct values with a vector."""
        return len(self.vectors)

    @cached_property
    def n_columns(self) -> int:
        """C: columns, those without any vector included."""
        return len(self.column_values)

    @cached_property
    def column_lists(self) -> Lists:
        """The values of each column, as arrays on the CPU."""
        csr = self.column_values
        return Lists(csr.offsets.numpy(force=True), csr.members.numpy(force=True))

    @property
    def dimensions(self) -> int:
        """d: vector dimensions."""
        return self.vectors.shape[1]

    @property
    def vector_bytes(self) -> int:
        """Bytes of one stored vector."""
        return self.dimensions * self.vectors.element_size()

    def vectors_of(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the vectors of stored rows, float32 (n, d); `rows` is int64 (n,)."""
        # Row by row: indexing with a tensor goes number by number.
        return self.vectors.index_select(0, rows).float()

    @cached_property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self.vectors.device

    @cached_property
    def metric(self) -> Metric:
        """The metric that the partition was built for."""
        return Metric(self.options.metric)

    @cached_property
    def blocks(self) -> Blocks:
        """The cells, or the blocks that are made of those of a grid."""
        return self.cells.blocks

    @cached_property
    def lower_corner(self) -> list[float]:
        """Return the smallest value of each mapped coordinate, (P,).

        They are infinite where there is no vector.
        """
        n_coordinates = (
            len(self.map.axes) + 1 if isinstance(self.map, ProjectionMap) else len(self.map.pivots)
        )
        return self.blocks.outer_corners()[0][:n_coordinates].tolist() or [math.inf] * n_coordinates

    @cached_property
    def thresholds(self) -> dict[tuple[float, frozenset[Lemma]], Threshold]:
        """Thresholds that searches asked for, by largest distance and lemmas."""
        return {}

    @cached_property
    def slack(self) -> float:
        """The tolerance of the mapped coordinates."""
        return slack(*self.cells.outer_corners())

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, np.ndarray],
        options: PartitionLayoutOptions,
        device: torch.device | str = "cpu",
        *,
        pages: Pages | None = None,
        copy: Callable[[Mapping[str, np.ndarray]], Mapping[str, torch.Tensor]] | None = None,
    ) -> Partition:
        """Create a partition from the arrays of `build_partition`.

        On the CPU nothing is copied, and only the numbers of levels are read. See
        `pexeso.engine.building.building.build_partition`. Where there is a `copy` it brings the
        arrays to the device.
        """
        require_shapes(arrays, options)
        if copy is None:
            tensors = {name: as_tensor(array, device) for name, array in arrays.items()}
        else:
            tensors = copy(arrays)
        partition = cls.from_tensors(tensors, options, pages)
        if partition.device.type != "cpu":
            # Programs of a device go where these numbers lead; compiled loops and tensor operations
            # look at them as they go.
            partition.value_columns.require_sound(partition.n_columns)
            partition.column_values.require_sound(partition.n_values)
            # Those of the host serve as they are: nothing is copied back.
            lists = (arrays[f"column_values_{name}"] for name in ("offsets", "members"))
            partition.__dict__["column_lists"] = Lists(*map(np.asarray, lists))
        return partition

    @classmethod
    def from_tensors(
        cls,
        tensors: Mapping[str, torch.Tensor],
        options: PartitionLayoutOptions,
        pages: Pages | None = None,
    ) -> Partition:
        """View the tensors that `pexeso.engine.building.building.build_checked` gave.

        They stay on the device where they are.
        """
        return cls(
            options=options,
            vectors=tensors["vectors"],
            map=map_of(tensors, options),
            cells=_blocks(tensors) if "block_codes" in tensors else _grid(tensors),
            **{
                name: Csr(tensors[f"{name}_offsets"], tensors[f"{name}_members"])
                for name in CSR_ARRAYS
            },
            pages=pages,
        )


def choose_anchors(
    rows: torch.Tensor, stored: torch.Tensor | None, options: PartitionLayoutOptions
) -> dict[str, torch.Tensor]:
    """Choose what the map is made of, pivots or axes, among the rows `stored` (None for all)."""
    if options.map == "projection":
        return {"axes": choose_axes(rows, options.n_axes, seed=options.seed, among=stored)}
    if len(rows if stored is None else stored) == 0:
        return {"pivots": torch.zeros((1, rows.shape[1]), device=rows.device)}
    pivots = choose_pivots(
        rows, options.n_pivots, choice=options.pivot_choice, seed=options.seed, among=stored
    )
    return {"pivots": pivots}


def _blocks(tensors: Mapping[str, torch.Tensor]) -> Blocks:
    # Level numbers steer the host's loops: they stay there.
    return Blocks(
        tensors["boxes"],
        tensors["box_starts"].cpu(),
        tensors["block_codes"],
        len(tensors["vectors"]),
    )


def _grid(tensors: Mapping[str, torch.Tensor]) -> GridCells:
    bounds = [0, *torch.cumsum(tensors["level_sizes"], 0).tolist()]
    levels = tuple(
        Level(*(tensors[f"cell_{name}"][begin:end] for name in LEVEL_ARRAYS))
        for begin, end in itertools.pairwise(bounds)
    )
    return GridCells(Grid(levels), *(tensors[name] for name in ("mapped", "origin", "extent")))
