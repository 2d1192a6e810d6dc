"""Building a partition: vectors are checked, mapped, ordered and cut into cells.

Postings are stored in both directions. The build runs on any device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from pexeso.engine.arrays import Csr, as_tensor, csr_from_pairs, transpose
from pexeso.engine.blocks import AXES_MULTIPLE, build_blocks
from pexeso.engine.kernel import Query, Threshold
from pexeso.engine.kernels.choice import choose_kernel, fastest_order
from pexeso.engine.maps import check_vectors, choose_anchors, map_of, slack
from pexeso.engine.options import Metric, PartitionLayoutOptions
from pexeso.engine.partition import LEVEL_ARRAYS, Partition
from pexeso.engine.published.grid import MAX_DISTANCES as LEVEL_DISTANCES
from pexeso.engine.published.grid import (
    LevelTrial,
    build_grid,
    choose_levels,
    corner_and_edges,
    order_by_cells,
)
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import MAX_PAIRS
from pexeso.errors import InputError

AXES_TRIED = (7, 15, 23, 31)
PIVOTS_TRIED = (8, 16)
DEFAULT_AXES = 15
MIN_VALUES = 4_096  # fewer are searched in no time under any map: the defaults are taken

_CHUNK_SIZE = 1 << 20
_SAMPLE_VALUES = 1 << 15
_QUERY_VALUES = 512
_MAX_DISTANCES = (0.02, 0.06, 0.1)  # the paper draws tau uniformly from 0 to 10 %

# Nanoseconds on one core at 2.5 GHz: what a box, a row of mapped coordinates and a candidate's
# vector take, and what each of their axes adds.
_BOX, _BOX_AXIS = 1.5, 0.25
_ROW, _ROW_AXIS = 0.5, 0.06
_CANDIDATE, _CANDIDATE_AXIS = 60.0, 0.15


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
    chunk_size = max(1, _CHUNK_SIZE // max(1, vectors.shape[1]))
    for begin in range(0, len(vectors), chunk_size):
        piece = vectors[begin : begin + chunk_size]
        halves[begin : begin + chunk_size] = piece
        if not np.array_equal(halves[begin : begin + chunk_size], piece):
            raise InputError(
                "Vectors that are stored as float16 must hold numbers that float16 has. Got "
                f"others among rows {begin:,} to {begin + len(piece) - 1:,}: round them before "
                "the partition is built (embed.stored.in_half)."
            )
    return halves


def n_cells(arrays: Mapping[str, np.ndarray]) -> int:
    return len(arrays["block_codes"]) if "block_codes" in arrays else int(arrays["level_sizes"][-1])


def n_coordinates(arrays: Mapping[str, np.ndarray]) -> int:
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
    chosen = map_of(anchors)
    if everything:
        mapped = chosen.map(vectors)
    else:
        parts = torch.split(stored, _CHUNK_SIZE)
        mapped = torch.cat([chosen.map(vectors[part]) for part in parts])
    cells, by_cell = cut_into_cells(mapped, options)
    del mapped
    order = by_cell if everything else stored[by_cell]
    postings = turned_postings(column_offsets, column_values, order, len(vectors))
    # Row by row: indexing with a tensor goes number by number.
    return {"vectors": vectors.index_select(0, order), **anchors, **cells, **postings}, order


def cut_into_cells(
    mapped: torch.Tensor, options: PartitionLayoutOptions
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    if options.cells == "blocks":
        order = fastest_order(mapped)(mapped, options.block_size)
        blocks = build_blocks(mapped, options.block_size, order)
        arrays = {"boxes": blocks.boxes, "box_starts": blocks.starts, "block_codes": blocks.codes}
        return arrays, order
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
    device = order.device
    stored_row = torch.full((n_given,), -1, dtype=torch.int64, device=device)
    stored_row[order] = torch.arange(len(order), device=device)
    rows = stored_row[values]
    sizes = offsets[1:] - offsets[:-1]
    columns = torch.repeat_interleave(torch.arange(len(sizes), device=device), sizes)
    if len(order) < n_given:  # values without a vector drop out
        mask = rows >= 0
        columns, rows = columns[mask], rows[mask]
    column_csr = csr_from_pairs(columns, rows, len(sizes))
    value_csr = transpose(column_csr, len(order))
    return {
        "column_values_offsets": column_csr.offsets,
        "column_values_members": column_csr.members,
        "value_columns_offsets": value_csr.offsets,
        "value_columns_members": value_csr.members,
    }


class Trial(NamedTuple):
    map: str
    n_coordinates: int
    boxes: int
    rows: int
    candidates: int
    microseconds: float


def resolve_options(
    vectors: np.ndarray,
    column_offsets: np.ndarray,
    column_values: np.ndarray,
    options: PartitionLayoutOptions,
) -> tuple[PartitionLayoutOptions, list[Trial] | list[LevelTrial]]:
    """Replace what is left to choose by what costs least, on a sample of the partition's columns.

    Section 6 of the paper estimates the distance computations of a workload drawn from the lake and
    takes the number of levels that makes them fewest. By that alone finer is always better, since
    looking at a cell costs nothing there. Here a few maps are tried on a sample of the values:
    query columns drawn from the partition's own walk the boxes of each, at several thresholds, and
    boxes, rows by their mapped coordinates and candidates by their distance are counted and
    weighed. Counts depend on the data alone, so the same partition gets the same choice on every
    machine.

    Returns options: PartitionLayoutOptions; trials: list of Trial or LevelTrial, cheapest first;
    empty where nothing was to choose, or the partition is too small to tell.
    """
    if options.is_resolved:
        return options, []
    real = np.flatnonzero(vectors.any(axis=1))
    if options.cells == "grid":
        if not len(real):
            return replace(options, n_levels=1), []
        _, queries = _sample(vectors, real, column_offsets, column_values, options.seed)
        everything = as_tensor(vectors)
        stored = None if len(real) == len(vectors) else torch.from_numpy(real)
        chosen = map_of(choose_anchors(everything, stored, options))
        mapped = chosen.map(everything if stored is None else everything[stored])
        taus = [Metric(options.metric).threshold(distance) for distance in LEVEL_DISTANCES]
        trials = choose_levels(mapped, chosen.map(queries), taus)
        return replace(options, n_levels=trials[0].n_levels if trials else 1), trials
    if len(real) < MIN_VALUES:
        chosen_map = "projection" if options.map == "auto" else options.map
        return replace(options, map=chosen_map, n_axes=options.n_axes or DEFAULT_AXES), []
    sample, queries = _sample(vectors, real, column_offsets, column_values, options.seed)
    tried = sorted(
        (
            (_trial(sample, queries, alternative), alternative)
            for alternative in _alternatives(options, vectors.shape[1])
        ),
        key=lambda pair: pair[0].microseconds,
    )
    return tried[0][1], [trial for trial, _ in tried]


def _alternatives(
    options: PartitionLayoutOptions, dimensions: int
) -> Iterator[PartitionLayoutOptions]:
    if options.map in ("auto", "projection"):
        for n_axes in AXES_TRIED if options.n_axes is None else (options.n_axes,):
            if n_axes <= max(dimensions, AXES_TRIED[0]):
                yield replace(options, map="projection", n_axes=n_axes)
    if options.map == "auto":
        n_axes = options.n_axes or DEFAULT_AXES
        for n_pivots in PIVOTS_TRIED:
            yield replace(options, map="pivots", n_pivots=n_pivots, n_axes=n_axes)


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
    """Let the query values walk the boxes over the sample, and weigh what they examine."""
    chosen = map_of(choose_anchors(sample, None, options))
    stored = chosen.map(sample)
    order = fastest_order(stored)(stored, options.block_size)
    blocks = build_blocks(stored[order], options.block_size)
    nothing = torch.zeros(0, dtype=torch.int32)
    no_columns, no_values = (
        Csr(nothing.new_zeros(n, dtype=torch.int64), nothing) for n in (len(sample) + 1, 1)
    )
    partition = Partition(options, sample[order], chosen, blocks, no_columns, no_values)
    mapped = chosen.map(queries)
    ones = torch.ones(len(queries), dtype=torch.int64)
    kernel, stats = choose_kernel("auto", torch.device("cpu")), SearchStats()
    for max_distance in _MAX_DISTANCES:
        tau = partition.metric.threshold(max_distance)
        threshold = Threshold(tau, max(slack(mapped), partition.slack))
        room = max(MAX_PAIRS, len(queries) * len(sample))
        query = Query(partition, threshold, queries, mapped, ones, len(queries))
        kernel.candidates(query, room, stats)
    n_axes = -(-mapped.shape[1] // AXES_MULTIPLE) * AXES_MULTIPLE
    nanoseconds = (
        stats.box_pairs * (_BOX + _BOX_AXIS * n_axes)
        + stats.vectors_touched * (_ROW + _ROW_AXIS * n_axes)
        + stats.candidates * (_CANDIDATE + _CANDIDATE_AXIS * partition.dimensions)
    )
    n_searches = max(1, len(queries) * len(_MAX_DISTANCES))
    return Trial(
        options.map, mapped.shape[1], stats.box_pairs, stats.vectors_touched, stats.candidates,
        round(nanoseconds / n_searches / 1000, 3),
    )  # fmt: skip
