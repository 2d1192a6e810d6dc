"""Synthetic lakes as large as the published ones, calibrated to be as hard as a real lake.

A uniform random sphere is not a lake: its values are all equally far apart, and every filter looks
perfect on it. Here a value is ::

    normalise( mean + topic + family + length * noise )

with few topics, some families in each, and noise of log-normal length. A share of the values are
near copies of one of a family's words, so that distances have the heavy tail towards 0 of real
misspellings. The parameters were fitted once so that the rates of pairs agree with those of the
real lake ``web`` at every scale; the figures stand in ``benchmarks/datasets/README.md``.

The same (name, scale, seed) gives the same columns on every device; vectors and row counts are
those of the device's own generator, alike in distribution only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from benchmarks.datasets.calibrated_columns import ColumnPlan, piece_seed, plan_columns
from pexeso.engine.arrays import expand_ranges_in_chunks
from pexeso.errors import InputError

LEAST_COLUMNS = 20
CHUNK_BYTES = 64 << 20
"""Vectors made at a time.

A chunk holds two arrays of this size (values and noise), and 100 bytes a value beside them.
"""

_VECTORS, _TABLES = 2, 3
_WORLD = 0
"""Seed of topics, families and words.

It is the same for every lake of a data set, as its parameters are. They were fitted together; a
lake's own seed draws its columns and values.
"""


@dataclass(frozen=True)
class Shape:
    """The few fitted numbers of a data set."""

    mean: float
    topic_share: float
    topics: int
    families: int
    words: int
    column_topics: int
    topic_decay: float
    family_decay: float
    noise_decay: float
    length: float
    length_sigma: float
    near_share: float
    near_length: float
    near_sigma: float


@dataclass(frozen=True)
class CalibratedModel:
    """A data set at full size.

    Attributes
    ----------
    shape : Shape
    """

    name: str
    n_values: int
    n_columns: int
    dimensions: int
    shape: Shape

    @property
    def smallest_scale(self) -> float:
        """The scale at which the fewest columns are left that a lake may have."""
        return LEAST_COLUMNS / self.n_columns

    def size_at(self, scale: float) -> tuple[int, int]:
        n_values, n_columns = round(self.n_values * scale), round(self.n_columns * scale)
        if n_columns < LEAST_COLUMNS:
            raise InputError(
                f"{self.name} at the scale {scale:g} would have {n_columns} columns; at least "
                f"{LEAST_COLUMNS} are needed, "
                f"so the scale must be at least {self.smallest_scale:.2g}."
            )
        return n_values, n_columns


_WORDS_50 = Shape(0.45, 0.28, 36, 4, 16, 2, 0.5, 0.7, -0.72, 0.48, 0.335, 0.355, 0.275, 1.1)
_WORDS_300 = Shape(0.42, 0.55, 30, 4, 16, 4, 1.05, 0.7, 0.66, 0.48, 0.33, 0.27, 0.25, 1.1)

MODELS = {
    model.name: model
    for model in (
        CalibratedModel("swdc", 8_600_000, 516_000, 50, _WORDS_50),
        CalibratedModel("open", 17_200_000, 21_600, 300, _WORDS_300),
        CalibratedModel("lwdc", 602_000_000, 48_900_000, 50, _WORDS_50),
    )
}


def calibrated_model(name: str) -> CalibratedModel:
    """Return a data set by name; refuses names that are none."""
    if name not in MODELS:
        raise InputError(f"Calibrated data sets are {', '.join(MODELS)}. Got {name!r} instead.")
    return MODELS[name]


@dataclass(frozen=True)
class VectorChunks:
    """The vectors of a lake in chunks, generated anew in every pass over them."""

    model: CalibratedModel
    plan: ColumnPlan
    device: torch.device
    _tables: tuple[torch.Tensor, torch.Tensor] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tables", _tables(self.model, self.device))

    @property
    def shape(self) -> tuple[int, int]:
        return self.plan.n_values, self.model.dimensions

    def __iter__(self) -> Iterator[torch.Tensor]:
        """Yield float32 (n, d) unit vectors on the device, in row order."""
        centres, noise_axes = self._tables
        shape, device = self.model.shape, self.device
        columns = torch.Generator().manual_seed(piece_seed(self.plan.seed, _TABLES, 1))
        topics, start, width = (
            table.to(device) for table in _column_families(self.plan, shape, columns)
        )
        sizes = self.plan.original_sizes.to(device)
        chunks = expand_ranges_in_chunks(torch.zeros_like(sizes), sizes, self.chunk_rows)
        for number, (owner, _) in enumerate(chunks):
            generator = torch.Generator(device).manual_seed(
                piece_seed(self.plan.seed, _VECTORS, number)
            )
            chance = torch.rand((4, len(owner)), generator=generator, device=device)
            fraction = torch.frac(start[owner] + width[owner] * chance[0])
            family = (fraction * shape.families).long().clamp_(max=shape.families - 1)
            slot = (chance[3] * shape.column_topics).long().clamp_(max=shape.column_topics - 1)
            family += topics[owner, slot].long() * shape.families
            near = chance[1] < shape.near_share
            word = (chance[2] * shape.words).long().clamp_(max=shape.words - 1)
            vectors = centres[family, torch.where(near, word + 1, 0)]
            lengths = torch.randn(len(owner), generator=generator, device=device)
            lengths = torch.where(
                near,
                (lengths * shape.near_sigma).exp_().mul_(shape.near_length),
                (lengths * shape.length_sigma).exp_().mul_(shape.length),
            )
            noise = torch.randn(
                (len(owner), self.model.dimensions), generator=generator, device=device
            )
            vectors.addmm_(noise.mul_(lengths[:, None]), noise_axes)
            yield vectors.div_(torch.linalg.vector_norm(vectors, dim=1, keepdim=True))

    @property
    def chunk_rows(self) -> int:
        return CHUNK_BYTES // (4 * self.model.dimensions)


def _column_families(
    plan: ColumnPlan, shape: Shape, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw the topics of each original and the stretch of families that its values come from."""
    n = len(plan.original_sizes)
    weights = 1.0 / (torch.arange(shape.topics, dtype=torch.float64) + 5.0)
    limits = (weights.cumsum(0) / weights.sum()).float()
    topics = torch.searchsorted(limits, torch.rand((n, shape.column_topics), generator=generator))
    topics = topics.clamp_(max=shape.topics - 1).short()
    start = torch.rand(n, generator=generator)
    width = torch.rand(n, generator=generator).square_()
    return topics, start, width


def _tables(model: CalibratedModel, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw the centres and the axes of the noise."""
    shape, d = model.shape, model.dimensions
    generator = torch.Generator().manual_seed(piece_seed(_WORLD, _TABLES, 0))

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=generator, dtype=torch.float64)

    # A random rotation: no coordinate is a principal axis, as in a trained model.
    rotation = torch.linalg.qr(normal(d, d))[0]
    common = normal(d)
    common *= shape.mean / float(common.norm())
    between = 1.0 - shape.mean**2
    topics = normal(shape.topics, d) * _spectrum(d, shape.topic_decay).sqrt()
    families = normal(shape.topics, shape.families, d) * _spectrum(d, shape.family_decay).sqrt()
    families = (between * (1.0 - shape.topic_share)) ** 0.5 * families
    families = ((between * shape.topic_share) ** 0.5 * topics[:, None] + families).flatten(
        0, 1
    ) @ rotation + common
    noise_axes = _spectrum(d, shape.noise_decay).sqrt()[:, None] * rotation
    lengths = shape.length * torch.exp(shape.length_sigma * normal(len(families), shape.words, 1))
    words = families[:, None] + lengths * normal(len(families), shape.words, d) @ noise_axes
    centres = torch.cat([families[:, None], words], 1)
    return centres.float().to(device), noise_axes.float().to(device)


def _spectrum(dimensions: int, decay: float) -> torch.Tensor:
    """Return variances that fall as a power and sum to 1, float64 (d,)."""
    variances = torch.arange(1, dimensions + 1, dtype=torch.float64) ** -decay
    return variances / variances.sum()


def plan_lake(model: CalibratedModel, scale: float, seed: int) -> ColumnPlan:
    """Draw the columns of a lake."""
    n_values, n_columns = model.size_at(scale)
    return plan_columns(n_values, n_columns, seed)
