"""The columns of a synthetic lake: sizes, copies, and the values that each holds.

Vectors are made in `benchmarks.datasets.calibrated`.

A column is an *original*, whose values are its own, or a *copy* of a part of an original, as tables
of the real web repeat each other. Most copies go to few popular originals, which gives joinable
columns and values that stand in hundreds of columns. Sizes are log-normal, as those of the real
lake are. All draws for columns are made on the CPU and are the same for every device; draws for
single postings are the device's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from pexeso.engine.arrays import expand_ranges, offsets_of

COPY_SHARE = 0.5
"""Of the columns: with `_PART_LEAST` it gives 1.5 postings a value."""

POPULAR_SHARE = 0.6
"""Of the copies; the others copy any original."""

LEAST_SIZE = 2

_POPULAR = 200
_PART_LEAST = 0.2
_SIZE_SIGMA = 1.4
_POPULAR_QUANTILES = (0.25, 0.75)
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_ROWS_EXPONENT, _ROWS_MOST = 2.0, 10_000
_POSTINGS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class ColumnPlan:
    """What is drawn for columns; 24 bytes a column, and about 100 while it is made.

    Attributes
    ----------
    sizes : int64 (C,)
        Values of each column, at least 2.
    source : int32 (C,)
        The original that a column's values come from: itself, numbered among the originals, or the
        one it copies.
    original_sizes : int64 (O,)
        Values of each original; they sum to N.
    """

    sizes: torch.Tensor
    source: torch.Tensor
    original_sizes: torch.Tensor
    seed: int

    @property
    def n_values(self) -> int:
        return int(self.original_sizes.sum())

    @property
    def n_postings(self) -> int:
        return int(self.sizes.sum())


def plan_columns(n_values: int, n_columns: int, seed: int) -> ColumnPlan:
    generator = torch.Generator().manual_seed(seed)
    n_originals = n_columns - round(COPY_SHARE * n_columns)
    strata = torch.randperm(n_originals, generator=generator)
    original_sizes = _original_sizes(strata, n_values, generator)
    copies = torch.ones(n_columns, dtype=torch.bool)
    copies[torch.randperm(n_columns, generator=generator)[:n_originals]] = False
    source = torch.empty(n_columns, dtype=torch.int32)
    source[~copies] = torch.arange(n_originals, dtype=torch.int32)
    source[copies] = _copied(strata, n_columns - n_originals, generator)
    sizes = original_sizes[source.long()]
    part = (
        torch.rand(n_columns - n_originals, generator=generator)
        .mul_(1.0 - _PART_LEAST)
        .add_(_PART_LEAST)
    )
    sizes[copies] = (sizes[copies] * part).round_().long().clamp_(min=LEAST_SIZE)
    return ColumnPlan(sizes, source, original_sizes, seed)


def _original_sizes(
    strata: torch.Tensor, n_values: int, generator: torch.Generator
) -> torch.Tensor:
    """Draw log-normal sizes that sum to `n_values`."""
    n = len(strata)
    quantiles = (strata + torch.rand(n, generator=generator, dtype=torch.float64)) / n
    weights = torch.special.ndtri(quantiles.clamp_(1e-12, 1.0 - 1e-12)).mul_(_SIZE_SIGMA).exp_()
    spare = n_values - LEAST_SIZE * n
    sizes = (weights * (spare / float(weights.sum()))).floor_().long()
    sizes += LEAST_SIZE
    missing = n_values - int(sizes.sum())
    sizes[:missing] += 1
    return sizes


def _copied(strata: torch.Tensor, n_copies: int, generator: torch.Generator) -> torch.Tensor:
    """Draw the original that each copy copies, int32."""
    n = len(strata)
    chosen = torch.randint(n, (n_copies,), generator=generator, dtype=torch.int32)
    n_popular = min(_POPULAR, n // 4)
    weights = 1.0 / (torch.arange(n_popular, dtype=torch.float64) + 1.0)
    popular = torch.rand(n_copies, generator=generator) < POPULAR_SHARE
    rank = torch.multinomial(weights, int(popular.sum()), replacement=True, generator=generator)
    # Popular originals are of middling size, spread evenly over it: else the seed alone would
    # decide how many postings there are.
    low, high = _POPULAR_QUANTILES
    spread = torch.frac((torch.arange(n_popular, dtype=torch.float64) + 0.5) * _GOLDEN)
    popular_strata = ((low + (high - low) * spread) * n).long()
    by_stratum = torch.empty(n, dtype=torch.int32)
    by_stratum[strata] = torch.arange(n, dtype=torch.int32)
    chosen[popular] = by_stratum[popular_strata[rank]]
    return chosen


def postings(plan: ColumnPlan, device: torch.device) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield the values of columns, and the number of rows that hold each."""
    first = offsets_of(plan.original_sizes)[:-1]
    ends = plan.sizes.cumsum(0)
    begin = 0
    while begin < len(plan.sizes):
        offset = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(torch.searchsorted(ends, offset + _POSTINGS_AT_ONCE, right=True)))
        generator = torch.Generator(device).manual_seed(piece_seed(plan.seed, 1, begin))
        source = plan.source[begin:end].long()
        sizes, whole, starts = (
            array.to(device)
            for array in (plan.sizes[begin:end], plan.original_sizes[source], first[source])
        )
        owner, position = expand_ranges(torch.zeros_like(sizes), sizes)
        # One value from each of `size` slices of the original, none of them empty: distinct,
        # ascending, and all of them where size = whole.
        chance = torch.rand(len(owner), generator=generator, device=device, dtype=torch.float64)
        whole, size = whole[owner], sizes[owner]
        low, high = position * whole // size, (position + 1) * whole // size
        values = starts[owner] + torch.minimum(low + (chance * (high - low)).long(), high - 1)
        chance = torch.rand(len(owner), generator=generator, device=device, dtype=torch.float64)
        rows = (1.0 - chance).pow_(-1.0 / _ROWS_EXPONENT).clamp_(max=_ROWS_MOST)
        yield values.int(), rows.int()
        begin = end


def piece_seed(seed: int, kind: int, number: int) -> int:
    """Return the seed of one piece of a lake's draws."""
    state = seed & _MASK
    for part in (kind, number):
        state = _mix(state ^ _mix(part + 1))
    return state >> 1


_MASK = (1 << 64) - 1


def _mix(number: int) -> int:
    number = (number * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)
