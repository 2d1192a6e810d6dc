"""The number of levels of a grid, chosen by the published cost model (section 6 of the paper).

The expected number of distance computations of a query value is bounded by the smallest marginal
count over the axes of the mapped space:

    ``N_max(q) = min_i |{x : q_i - tau - w_i <= x_i <= q_i + tau + w_i}|``

with ``w_i = extent_i / 2**m`` the edge of a leaf cell (the paper prints ``1 / 2**(|P| m)``, which
is the share of a cell in the space). By that alone more levels are always better, so the cost of
touching a cell is added: how many cells a walk touches is estimated on a sample of the cells of
each level. The workload is drawn from the partition itself, with tau spread evenly over 0 to 10 %
of the largest distance; nothing is verified. The share T of a query column that must match has no
part in it, since blocking does not know of it. All of m = 1, 2, ... are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import torch

from pexeso.engine.layout.grid import MAX_CODE_BITS, corner_and_edges, leaf_codes, levels_upward

MAX_LEVELS = 12

MAX_DISTANCES = (0.0125, 0.0375, 0.0625, 0.0875)
"""The middles of four equal parts of 0 to 10 %."""

_SAMPLE_CELLS = 512
_CELL, _CELL_AXIS = 30.0, 6.0
_ROW, _ROW_AXIS = 25.0, 5.0
"""Nanoseconds on one core at 2.5 GHz: what a pair of cells and a row of a candidate cell take, and
what each axis adds."""


@dataclass(frozen=True)
class LevelTrial:
    """What a grid of so many levels would cost.

    Attributes
    ----------
    n_levels : int
        The paper's m.
    microseconds : float
        Of a query value.
    """

    n_levels: int
    cells: int
    distances: float
    cell_pairs: float
    microseconds: float

    def to_dict(self) -> dict[str, object]:
        """Return plain JSON."""
        return asdict(self)


def expected_distances(
    mapped: torch.Tensor, points: torch.Tensor, taus: torch.Tensor, leaf_edges: torch.Tensor
) -> torch.Tensor:
    """Return the bound on the distance computations of each query value: int64 (m, t, n).

    Parameters
    ----------
    mapped : float32 (N, P)
        All stored values.
    points : float32 (n, P)
        Mapped query values.
    taus : float32 (t,)
        Distances of a match.
    leaf_edges : float32 (m, P)
        Edges of the leaf cells of m grids.

    Notes
    -----
    One axis is sorted at a time: 16 N bytes beside the rows.
    """
    smallest = torch.full((len(leaf_edges), len(taus), len(points)), len(mapped))
    for axis in range(mapped.shape[1]):
        ascending = mapped[:, axis].sort().values
        reach = taus[:, None] + leaf_edges[:, None, None, axis]
        centre = points[:, axis]
        end = torch.searchsorted(ascending, centre + reach, right=True)
        count = end - torch.searchsorted(ascending, centre - reach)
        smallest = torch.minimum(smallest, count)
    return smallest


def choose_levels(
    mapped: torch.Tensor, queries: torch.Tensor, taus: Sequence[float]
) -> list[LevelTrial]:
    """Return what a grid would cost with each number of levels.

    Parameters
    ----------
    mapped : float32 (N, P)
    queries : float32 (n, P)
        The workload, drawn from the same space.

    Notes
    -----
    All rows are looked at: how many cells a sample of them fills says little of how many all fill.
    O(m N P + n P (m log N + 512)) time; two levels of the grid are held at a time, as in its build.
    """
    if not len(mapped) or not len(queries):
        return []
    n_axes = mapped.shape[1]
    max_levels = min(MAX_LEVELS, MAX_CODE_BITS // n_axes)
    origin, extent = corner_and_edges(mapped)
    edges = torch.stack([extent / 2**n_levels for n_levels in range(1, max_levels + 1)])
    bounds = expected_distances(mapped, queries, torch.tensor(taus), edges)
    walks = _walks(mapped, queries, origin, extent, max_levels, taus)
    trials = []
    for bound, (n_levels, cells, cell_pairs) in zip(bounds, walks, strict=True):
        distances = float(bound.double().mean())
        nanoseconds = distances * (_ROW + _ROW_AXIS * n_axes)
        nanoseconds += cell_pairs * (_CELL + _CELL_AXIS * n_axes)
        trials.append(
            LevelTrial(
                n_levels,
                cells,
                round(distances, 1),
                round(cell_pairs, 1),
                round(nanoseconds / 1000, 1),
            )
        )
    return sorted(trials, key=lambda trial: (trial.microseconds, trial.n_levels))


def _walks(
    rows: torch.Tensor,
    queries: torch.Tensor,
    origin: torch.Tensor,
    extent: torch.Tensor,
    max_levels: int,
    taus: Sequence[float],
) -> Iterator[tuple[int, int, float]]:
    """Yield each number of levels with its leaf cells and the cells touched per query value."""
    codes, order = torch.sort(leaf_codes(rows, origin, extent, max_levels), stable=True)
    sizes, near, below = [], [], []
    for level in levels_upward(codes, rows[order], max_levels):
        # Evenly spread; the same cells on every machine whose coordinates put rows into the same.
        some = torch.arange(min(len(level), _SAMPLE_CELLS)) * len(level)
        some = torch.div(some, min(len(level), _SAMPLE_CELLS), rounding_mode="floor")
        reached = _share_reached(queries, level.lower[some], level.upper[some], torch.tensor(taus))
        sizes.append(len(level))
        near.append(len(level) * float(reached.mean()))
        below.append(len(level) * float((reached * level.count[some].double()).mean()))
    sizes, near, below = sizes[::-1], near[::-1], below[::-1]  # coarse to fine
    touched = float(sizes[0])
    for n_levels in range(1, max_levels + 1):
        # The leaves that are left are looked at again, for each query value by itself.
        yield n_levels, sizes[n_levels - 1], touched + near[n_levels - 1]
        touched += below[n_levels - 1]


def _share_reached(
    queries: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor, taus: torch.Tensor
) -> torch.Tensor:
    """Return the share of (query value, tau) pairs that reach each cell, float64 (c,)."""
    gap = torch.zeros((len(queries), len(lower)), dtype=queries.dtype)
    for axis in range(queries.shape[1]):
        point = queries[:, axis, None]
        gap = torch.maximum(gap, torch.maximum(lower[:, axis] - point, point - upper[:, axis]))
    return (gap[:, :, None] <= taus).double().mean((0, 2))
