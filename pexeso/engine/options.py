"""How a partition is mapped and cut: the options of the engine's build."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pexeso.errors import InputError

if TYPE_CHECKING:
    import torch

METRICS = ("euclidean", "angular")
MAPS = ("projection", "pivots")
PIVOT_CHOICES = ("pca", "random")
CELLS = ("blocks", "grid")
VECTOR_PRECISIONS = ("single", "half")
MAX_AXES = 127

BLOCK_SIZE, MAX_BLOCK_SIZE = 64, 4096

MAX_CODE_BITS = 62

# What the length of a vector may differ from 1 by.
LENGTH_ERROR = 1e-3


@dataclass(frozen=True)
class Metric:
    """The scale of distances of unit vectors.

    The angle between two is compared through its chord, ``2 sin(angle / 2)``, which is their
    Euclidean distance: the two order pairs alike, and no arc cosine has to agree between devices.
    """

    name: str = "euclidean"

    def __post_init__(self) -> None:
        if self.name not in METRICS:
            raise InputError(
                f"The metric must be one of {', '.join(METRICS)}. Got {self.name!r} "
                "instead. For a cosine similarity use "
                "the angular or Euclidean metric: on unit vectors d = sqrt(2 - 2 cos)."
            )

    def threshold(self, max_distance: float) -> float:
        """Turn a fraction of the largest distance into tau, a Euclidean distance."""
        if self.name == "angular":
            return 2.0 * math.sin(max_distance * math.pi / 2.0)
        return max_distance * 2.0

    def fraction(self, apart: torch.Tensor) -> torch.Tensor:
        """Convert Euclidean distances to fractions of the largest distance, float64."""
        if self.name == "angular":
            return 2.0 * (apart / 2.0).clamp(max=1.0).asin() / math.pi
        return apart / 2.0


def check_code_bits(n_axes: int, n_levels: int) -> None:
    if n_axes * n_levels > MAX_CODE_BITS:
        raise InputError(
            f"n_pivots * n_levels must be at most {MAX_CODE_BITS}, so that a cell's code fits in "
            f"64 bits. Got {n_axes} * {n_levels} = "
            f"{n_axes * n_levels} instead; lower n_levels to {max(1, MAX_CODE_BITS // n_axes)} "
            "or less."
        )


@dataclass(frozen=True)
class PartitionLayoutOptions:
    """How a partition is mapped and cut into cells.

    Attributes
    ----------
    metric : {"euclidean", "angular"}
    map : {"auto", "pivots", "projection"}
        The contractive map. ``"projection"`` prunes far more; ``"auto"`` takes what costs least on
        a sample (`pexeso.engine.dense.building`).
    cells : {"blocks", "grid"}
        What the mapped space is cut into: blocks of equal size by halving, or the published
        hierarchy of equal cells.
    n_pivots : int
        The paper's |P|, at least 1. For the pivots.
    n_levels : int or None
        The paper's m, at least 1. For the grid: m times the number of coordinates is at most 62.
        None: the number that costs least by the published model (`pexeso.engine.published.grid`).
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
        if self.pivot_choice not in PIVOT_CHOICES:
            raise InputError(
                f"The pivot choice must be one of {', '.join(PIVOT_CHOICES)}. Got "
                f"{self.pivot_choice!r} instead."
            )
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
        if self.cells == "grid" and self.n_levels is None:
            return False
        return self.map != "auto" and (self.map != "projection" or self.n_axes is not None)
