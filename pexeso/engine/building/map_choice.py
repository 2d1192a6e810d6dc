"""The choice of the map and of the number of axes by measured cost.

The cost is measured on a sample of the partition's own columns.

Section 6 of the paper estimates the distance computations of a workload drawn from the lake and
takes the number of levels that makes them fewest. By that alone finer is always better, since
looking at a cell costs nothing there. Here a few maps are tried on a sample of the values: query
columns drawn from the partition's own walk the boxes of each, at several thresholds, and everything
they look at is counted and weighed: boxes, rows by their mapped coordinates, and candidates by
their distance. Counts depend on the data alone, so the same partition gets the same choice on every
machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch

from pexeso.engine.arrays import as_tensor
from pexeso.engine.building.levels import MAX_DISTANCES as LEVEL_DISTANCES
from pexeso.engine.building.levels import LevelTrial, choose_levels
from pexeso.engine.interface import Query, Threshold
from pexeso.engine.kernels.choice import choose_kernel, fastest_order
from pexeso.engine.layout.blocks import AXES_MULTIPLE, build_blocks
from pexeso.engine.layout.maps import (
    PivotMap,
    ProjectionMap,
    choose_axes,
    choose_pivots,
    map_of,
    slack,
)
from pexeso.engine.layout.options import PROJECTED_METRICS, PartitionLayoutOptions
from pexeso.engine.layout.partition import Partition, choose_anchors
from pexeso.engine.metrics import Metric
from pexeso.engine.postings import Csr
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import MAX_PAIRS

AXES_TRIED = (7, 15, 23, 31)
PIVOTS_TRIED = (8, 16)
DEFAULT_AXES = 15

MIN_VALUES = 4_096
"""Fewer values are searched in no time under any map: the defaults are taken."""

_SAMPLE_VALUES = 1 << 15
_QUERY_VALUES = 512
_MAX_DISTANCES = (0.02, 0.06, 0.1)
"""The paper draws tau uniformly from 0 to 10 %."""

_BOX, _BOX_AXIS = 1.5, 0.25
_ROW, _ROW_AXIS = 0.5, 0.06
_CANDIDATE, _CANDIDATE_AXIS = 60.0, 0.15
"""Nanoseconds on one core at 2.5 GHz: what a box, a row of mapped coordinates and a candidate's
vector take, and what each of their axes adds."""


@dataclass(frozen=True)
class Trial:
    """What one map would cost.

    Attributes
    ----------
    n_coordinates : int
        Pivots, or axes and the rest.
    microseconds : float
        Estimated for a query value, on the sample.
    """

    map: str
    n_coordinates: int
    boxes: int
    rows: int
    candidates: int
    microseconds: float

    def to_dict(self) -> dict[str, object]:
        """Return plain JSON."""
        return asdict(self)


def resolve_options(
    vectors: np.ndarray,
    column_offsets: np.ndarray,
    column_values: np.ndarray,
    options: PartitionLayoutOptions,
) -> tuple[PartitionLayoutOptions, list[Trial] | list[LevelTrial]]:
    """Replace what is left to choose by what costs least.

    Parameters
    ----------
    options : PartitionLayoutOptions
        With ``map="auto"``, a projection with ``n_axes=None``, or a grid with ``n_levels=None``.

    Returns
    -------
    options : PartitionLayoutOptions
    trials : list of Trial or LevelTrial
        Cheapest first; empty where nothing was to choose, or the partition is too small to tell.
    """
    if options.is_resolved:
        return options, []
    if options.cells == "grid":
        return _resolve_levels(vectors, column_offsets, column_values, options)
    fallback = replace(
        options,
        map=("projection" if options.metric in PROJECTED_METRICS else "pivots")
        if options.map == "auto"
        else options.map,
        n_axes=options.n_axes or DEFAULT_AXES,
    )
    real = np.flatnonzero(vectors.any(axis=1))
    if len(real) < MIN_VALUES:
        return fallback, []
    sample, queries = _sample(vectors, real, column_offsets, column_values, options.seed)
    tried = sorted(
        (
            (_trial(sample, queries, alternative), alternative)
            for alternative in _alternatives(options, vectors.shape[1])
        ),
        key=lambda pair: pair[0].microseconds,
    )
    return tried[0][1], [trial for trial, _ in tried]


def _resolve_levels(
    vectors: np.ndarray,
    column_offsets: np.ndarray,
    column_values: np.ndarray,
    options: PartitionLayoutOptions,
) -> tuple[PartitionLayoutOptions, list[LevelTrial]]:
    """Choose the number of levels of a grid by the published model."""
    real = np.flatnonzero(vectors.any(axis=1))
    if not len(real):
        return replace(options, n_levels=1), []
    _, queries = _sample(vectors, real, column_offsets, column_values, options.seed)
    everything = as_tensor(vectors)
    stored = None if len(real) == len(vectors) else torch.from_numpy(real)
    chosen = map_of(choose_anchors(everything, stored, options), options)
    mapped = chosen.map(everything if stored is None else everything[stored])
    metric = Metric(options.metric)
    taus = [metric.threshold(distance, vectors.shape[1]) for distance in LEVEL_DISTANCES]
    trials = choose_levels(mapped, chosen.map(queries), taus)
    return replace(options, n_levels=trials[0].n_levels if trials else 1), trials


def _alternatives(
    options: PartitionLayoutOptions, dimensions: int
) -> Iterator[PartitionLayoutOptions]:
    if options.metric in PROJECTED_METRICS and options.map in ("auto", "projection"):
        for n_axes in AXES_TRIED if options.n_axes is None else (options.n_axes,):
            if n_axes <= max(dimensions, AXES_TRIED[0]):
                yield replace(options, map="projection", n_axes=n_axes)
    if options.map == "auto":
        for n_pivots in PIVOTS_TRIED:
            yield replace(
                options, map="pivots", n_pivots=n_pivots, n_axes=options.n_axes or DEFAULT_AXES
            )


def _sample(
    vectors: np.ndarray, real: np.ndarray, offsets: np.ndarray, values: np.ndarray, seed: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sample values of the partition, and the values of whole columns as queries.

    Queries are whole columns because a column holds values of one kind.
    """
    generator = np.random.default_rng(seed)
    rows = (
        real
        if len(real) <= _SAMPLE_VALUES
        else np.sort(generator.choice(real, _SAMPLE_VALUES, replace=False))
    )
    queries: list[np.ndarray] = []
    n_values = 0
    sizes = np.diff(offsets)
    for column in generator.permutation(np.flatnonzero(sizes)).tolist():
        queries.append(values[offsets[column] : offsets[column + 1]][:_QUERY_VALUES])
        n_values += len(queries[-1])
        if n_values >= _QUERY_VALUES:
            break
    chosen = np.unique(np.concatenate(queries)) if queries else rows[:_QUERY_VALUES]
    chosen = chosen[vectors[chosen].any(axis=1)]
    return as_tensor(vectors[rows]), as_tensor(vectors[chosen])


def _trial(sample: torch.Tensor, queries: torch.Tensor, options: PartitionLayoutOptions) -> Trial:
    """Let the query values walk the boxes over the sample, and weigh what they look at."""
    partition = _without_columns(sample, options)
    mapped = partition.map.map(queries)
    ones = torch.ones(len(queries), dtype=torch.int64)
    stats = SearchStats()
    for max_distance in _MAX_DISTANCES:
        tau = partition.metric.threshold(max_distance, partition.dimensions)
        threshold = Threshold(tau, max(slack(mapped), partition.slack))
        room = max(MAX_PAIRS, len(queries) * len(sample))
        choose_kernel("auto", torch.device("cpu")).for_work(len(queries) * len(sample)).candidates(
            partition, Query(queries, mapped, ones, len(queries)), threshold, room, stats
        )
    n_axes = -(-mapped.shape[1] // AXES_MULTIPLE) * AXES_MULTIPLE
    nanoseconds = (
        stats.box_pairs * (_BOX + _BOX_AXIS * n_axes)
        + stats.vectors_touched * (_ROW + _ROW_AXIS * n_axes)
        + stats.candidates * (_CANDIDATE + _CANDIDATE_AXIS * partition.dimensions)
    )
    looks = max(1, len(queries) * len(_MAX_DISTANCES))
    return Trial(
        options.map,
        mapped.shape[1],
        stats.box_pairs,
        stats.vectors_touched,
        stats.candidates,
        round(nanoseconds / looks / 1000, 3),
    )


def _without_columns(sample: torch.Tensor, options: PartitionLayoutOptions) -> Partition:
    """Make a partition that can be walked, of the sample alone."""
    if options.map == "projection":
        chosen: PivotMap | ProjectionMap = ProjectionMap(
            choose_axes(sample, options.n_axes, seed=options.seed)
        )
    else:
        pivots = choose_pivots(
            sample, options.n_pivots, choice=options.pivot_choice, seed=options.seed
        )
        chosen = PivotMap(pivots, Metric(options.metric))
    mapped = chosen.map(sample)
    order = fastest_order(len(mapped))(mapped, options.block_size)
    nothing = Csr(
        torch.zeros(len(sample) + 1, dtype=torch.int64), torch.zeros(0, dtype=torch.int32)
    )
    none = Csr(torch.zeros(1, dtype=torch.int64), torch.zeros(0, dtype=torch.int32))
    return Partition(
        options,
        sample[order],
        chosen,
        build_blocks(mapped[order], options.block_size),
        nothing,
        none,
    )
