"""How a partition is mapped and cut: the options of the engine's build."""

from __future__ import annotations

from dataclasses import dataclass

from pexeso.engine.layout.blocks import BLOCK_SIZE
from pexeso.engine.layout.grid import check_code_bits
from pexeso.engine.layout.maps import MAPS, check_pivot_choice
from pexeso.engine.metrics import Metric
from pexeso.errors import InputError

PROJECTED_METRICS = ("euclidean", "angular")
CELLS = ("blocks", "grid")
VECTOR_PRECISIONS = ("single", "half")
MAX_AXES = 127

MAX_BLOCK_SIZE = 4096


@dataclass(frozen=True)
class PartitionLayoutOptions:
    """How a partition is mapped and cut into cells.

    Attributes
    ----------
    metric : str
        See `pexeso.engine.metrics.Metric`.
    map : {"auto", "pivots", "projection"}
        The contractive map. ``"projection"`` prunes far more, and is for the Euclidean and angular
        metrics only; ``"auto"`` takes what costs least on a sample
        (`pexeso.engine.building.map_choice`).
    cells : {"blocks", "grid"}
        What the mapped space is cut into: blocks of equal size by halving, or the published
        hierarchy of equal cells.
    n_pivots : int
        The paper's |P|, at least 1. For the pivots.
    n_levels : int or None
        The paper's m, at least 1. For the grid: m times the number of coordinates is at most 62.
        None: the number that costs least by the published model (`pexeso.engine.building.levels`).
    pivot_choice : {"pca", "random"}
    seed : int
    n_axes : int or None
        Axes of the projection, 1 to 127; with the length of the rest that makes one coordinate
        more. None: as many as cost least.
    block_size : int
        Vectors of a block, 1 to 4,096.
    vector_precision : {"single", "half"}
        Stored vectors are float32, or float16, which must hold the entries as they are given.
    """

    metric: str = "euclidean"
    n_pivots: int = 5
    n_levels: int | None = 6
    pivot_choice: str = "pca"
    seed: int = 0
    map: str = "pivots"
    n_axes: int | None = 15
    block_size: int = BLOCK_SIZE
    cells: str = "blocks"
    vector_precision: str = "single"

    def __post_init__(self) -> None:
        Metric(self.metric)
        check_pivot_choice(self.pivot_choice)
        for name, allowed in (
            ("map", ("auto", *MAPS)),
            ("cells", CELLS),
            ("vector_precision", VECTOR_PRECISIONS),
        ):
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"The option {name} must be one of {', '.join(allowed)}. Got "
                    f"{getattr(self, name)!r} instead."
                )
        if self.map == "projection" and self.metric not in PROJECTED_METRICS:
            raise InputError(
                f"The map 'projection' is for the metrics {' and '.join(PROJECTED_METRICS)}. Got "
                f"{self.metric!r}; use the map 'pivots'."
            )
        for name, limit in (("n_axes", MAX_AXES), ("block_size", MAX_BLOCK_SIZE)):
            if (getattr(self, name) or 0) > limit:
                raise InputError(
                    f"{name} must be at most {limit:,}. Got {getattr(self, name):,} instead."
                )
        for name in ("n_pivots", "n_levels", "n_axes", "block_size"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1. Got {getattr(self, name)} instead.")
        if self.cells == "grid":
            if self.map == "auto" or self.n_axes is None:
                raise InputError(
                    "Only blocks leave the map or n_axes to choose: give both with the cells of "
                    "a grid."
                )
            check_code_bits(
                self.n_pivots if self.map == "pivots" else self.n_axes + 1, self.n_levels or 1
            )

    @property
    def is_resolved(self) -> bool:
        """Whether nothing is left to be chosen by cost."""
        if self.cells == "grid" and self.n_levels is None:
            return False
        return self.map != "auto" and (self.map != "projection" or self.n_axes is not None)
