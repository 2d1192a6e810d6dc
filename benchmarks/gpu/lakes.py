"""Calibrated lakes that are made, built and kept on a device.

Only plans, query columns and answers are on the host.
"""

from __future__ import annotations

import gc
import itertools
import resource
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from benchmarks.datasets.calibrated import CalibratedModel, VectorChunks, plan_lake
from benchmarks.datasets.calibrated_columns import ColumnPlan, piece_seed, postings
from benchmarks.gpu.building import build_from_pieces
from benchmarks.gpu.timing import Clock
from benchmarks.lake import BenchmarkQuery
from benchmarks.timing import wait_for
from pexeso.engine.arrays import Csr, offsets_of
from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.partition import Partition
from pexeso.engine.vector_space import count_needed

if TYPE_CHECKING:
    from benchmarks.gpu.fused_kernel import Tuner

_PARTS = 4


@dataclass(frozen=True)
class Wanted:
    """What is asked of a lake."""

    options: PartitionLayoutOptions
    queries: int = 100
    batch: int = 1000
    partition_values: int = 75_000_000
    max_distance: float = 0.06
    min_joinability: float = 0.6
    seed: int = 0


@dataclass(frozen=True)
class Run:
    """What all parts of a run share."""

    wanted: Wanted
    scale: float
    device: torch.device
    kernels: Sequence[str]
    ceilings: Mapping[str, float]
    clock: Clock
    tuner: Tuner | None = None


@dataclass
class Part:
    """One partition, and the number of its first column in the lake."""

    partition: Partition
    first_column: int

    @cached_property
    def space(self) -> DenseSpace:
        return DenseSpace(self.partition.options)


@dataclass
class ResidentLake:
    """A lake on a device.

    Attributes
    ----------
    facts : dict
        Sizes, seconds and bytes, plain JSON.
    """

    model: CalibratedModel
    scale: float
    device: torch.device
    keeps_values_of_columns: bool = True
    parts: list[Part] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    queries: list[BenchmarkQuery] = field(default_factory=list)
    batch: list[BenchmarkQuery] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def n_values(self) -> int:
        return sum(part.partition.n_values for part in self.parts)

    def release(self) -> None:
        self.parts.clear()
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def make_lake(lake: ResidentLake, wanted: Wanted, clock: Clock) -> None:
    """Plan a lake on the host, then make and build it on the device, partition by partition."""
    model, started = lake.model, time.perf_counter()
    plan = plan_lake(model, lake.scale, wanted.seed)
    n_parts = max(1, round(plan.n_values / wanted.partition_values))
    parts = list(cut_plan(plan, n_parts))
    sizes = torch.cat([part.sizes for part in parts]).numpy()
    typical = typical_columns(
        sizes, plan.n_values / len(plan.sizes), max(wanted.queries, wanted.batch), wanted.seed
    )
    planned = time.perf_counter() - started
    clock.say(
        f"{model.name}: {plan.n_values:,} values in {len(plan.sizes):,} columns planned in "
        f"{planned:.1f} s"
    )
    lake.facts = {
        "values": plan.n_values,
        "columns": len(plan.sizes),
        "postings": plan.n_postings,
        "dimensions": model.dimensions,
        "scale": lake.scale,
        "partitions": len(parts),
        "plan_seconds": planned,
        "host_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "bytes_by_array": Counter(),
    }
    del plan, sizes
    _build_all(lake, parts, typical, wanted, clock)


def typical_columns(sizes: np.ndarray, typical: float, n_most: int, seed: int) -> list[int]:
    """Draw columns of about a typical size: within a twentieth, or within one, or the nearest."""
    apart = np.abs(sizes - typical)
    near = apart <= max(1.0, typical / 20, apart.min())
    return np.random.default_rng(seed).permutation(np.flatnonzero(near))[:n_most].tolist()


def cut_plan(plan: ColumnPlan, n_parts: int) -> Iterator[ColumnPlan]:
    """Cut a plan into plans of about as many values, each with the copies of its own originals."""
    if n_parts == 1:
        yield plan
        return
    ends = plan.original_sizes.cumsum(0)
    bounds = [
        0,
        *(int(torch.searchsorted(ends, plan.n_values * k // n_parts)) for k in range(1, n_parts)),
        len(ends),
    ]
    for number, (begin, end) in enumerate(itertools.pairwise(bounds)):
        if begin == end:
            continue
        inside = (plan.source >= begin) & (plan.source < end)
        yield ColumnPlan(
            plan.sizes[inside],
            plan.source[inside] - begin,
            plan.original_sizes[begin:end],
            piece_seed(plan.seed, _PARTS, number),
        )


def _build_all(
    lake: ResidentLake,
    plans: list[ColumnPlan],
    typical: Sequence[int],
    request: Wanted,
    clock: Clock,
) -> None:
    if lake.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(lake.device)
    queries: dict[int, BenchmarkQuery] = {}
    columns = torch.tensor(sorted(typical))
    first_column, seconds = 0, {"postings_seconds": 0.0, "build_seconds": 0.0}
    for number in range(len(plans)):
        # A plan is dropped when its partition is there.
        plan, plans[number] = plans[number], None
        local_columns = (
            columns[(columns >= first_column) & (columns < first_column + len(plan.sizes))]
            - first_column
        )
        partition, part_queries = _build(lake, plan, local_columns, request, seconds)
        lake.parts.append(Part(partition, first_column))
        for local, query in zip(local_columns.tolist(), part_queries, strict=True):
            queries[first_column + local] = query
        first_column += len(plan.sizes)
        clock.say(
            f"{lake.model.name}: partition {number + 1} of {len(plans)} built, "
            f"{partition.n_values:,} values"
        )
    lake.columns = list(typical[: request.queries])
    lake.queries = [queries[column] for column in lake.columns]
    lake.batch = [queries[column] for column in typical[: request.batch]]
    lake.facts |= seconds | {"build_vectors_per_second": lake.n_values / seconds["build_seconds"]}
    if lake.device.type == "cuda":
        lake.facts["device_bytes_held"] = torch.cuda.memory_allocated(lake.device)
        lake.facts["device_bytes_peak"] = torch.cuda.max_memory_allocated(lake.device)


def _build(
    lake: ResidentLake,
    plan: ColumnPlan,
    chosen: torch.Tensor,
    request: Wanted,
    seconds: dict[str, float],
) -> tuple[Partition, list[BenchmarkQuery]]:
    """Make the values of a plan's columns, build them, and take the query columns out."""
    device = lake.device
    started = time.perf_counter()
    column_values = torch.empty(plan.n_postings, dtype=torch.int32, device=device)
    value_rows = torch.empty(plan.n_postings, dtype=torch.int16, device=device)  # at most 10,000
    n_written = 0
    for values, rows in postings(plan, device):
        column_values[n_written : n_written + len(values)] = values
        value_rows[n_written : n_written + len(rows)] = rows
        n_written += len(values)
    offsets = offsets_of(plan.sizes)
    starts, sizes = offsets[chosen].tolist(), plan.sizes[chosen].tolist()
    spans = [slice(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    values = [column_values[span].long() for span in spans]
    rows = [value_rows[span].cpu().long() for span in spans]
    del value_rows
    wait_for(device)
    seconds["postings_seconds"] += time.perf_counter() - started
    started = time.perf_counter()
    pieces = VectorChunks(lake.model, plan, device)
    tensors, order = build_from_pieces(pieces, offsets.to(device), column_values, request.options)
    wait_for(device)
    seconds["build_seconds"] += time.perf_counter() - started
    new_rows = torch.empty_like(order)
    new_rows[order] = torch.arange(len(order), device=device)
    vectors = [tensors["vectors"][new_rows[numbers]].cpu() for numbers in values]
    queries = [
        BenchmarkQuery(
            f"column of {len(part)} values",
            part,
            weights,
            int(weights.sum()),
            request.max_distance,
            count_needed(request.min_joinability, int(weights.sum())),
        )
        for part, weights in zip(vectors, rows, strict=True)
    ]
    dropped = {} if lake.keeps_values_of_columns else _no_column_values(len(plan.sizes), device)
    lake.facts["bytes_by_array"].update(
        {name: tensor.nbytes for name, tensor in tensors.items() if name not in dropped}
    )
    return Partition.from_tensors(tensors | dropped, request.options), queries


def _no_column_values(n_columns: int, device: torch.device) -> dict[str, torch.Tensor]:
    """Return empty values for every column, in no memory."""
    none = Csr(
        torch.zeros(1, dtype=torch.int64, device=device).expand(n_columns + 1),
        torch.zeros(0, dtype=torch.int32, device=device),
    )
    return {"column_values_offsets": none.offsets, "column_values_members": none.members}
