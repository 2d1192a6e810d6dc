"""Checks of the answers of every kernel of a device against float64.

They run on small lakes with pairs within one step of tau.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.checking import difference, normal_form
from benchmarks.gpu.building import build_tensors
from benchmarks.gpu.neighbours import kernel_of
from benchmarks.gpu.timing import Clock
from pexeso.engine.arrays import csr_from_pairs
from pexeso.engine.dense.oracle import oracle_counts, oracle_pairs
from pexeso.engine.dense.search import (
    BatchQuery,
    Goal,
    exact_partition,
    search_batch_partition,
    search_partition,
)
from pexeso.engine.kernel import Kernel
from pexeso.engine.metrics import distances
from pexeso.engine.options import Metric, PartitionLayoutOptions
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats

CASES = (
    (50, PartitionLayoutOptions(map="projection")),
    (300, PartitionLayoutOptions(map="projection")),
    (50, PartitionLayoutOptions(map="pivots")),
    (16, PartitionLayoutOptions(map="projection", n_axes=7)),
    (100, PartitionLayoutOptions(map="projection", n_axes=23)),
    (17, PartitionLayoutOptions(map="pivots", n_pivots=3, cells="grid", n_levels=4)),
    (16, PartitionLayoutOptions(map="pivots", metric="angular")),
    (300, PartitionLayoutOptions(map="pivots", n_pivots=8)),
    (128, PartitionLayoutOptions(map="projection", metric="angular")),
)
"""Dimensions and build options, the most telling first."""

FRACTIONS = (0.0, 0.03, 0.06, 0.2)
"""Thresholds, beside those at a planted pair's very distance and one step below it."""

N_VALUES, N_COLUMNS, N_QUERY = 2000, 100, 90


class WrongAnswerError(Exception):
    """An answer that differs from float64's."""


@dataclass
class SmallLake:
    """A small lake on a device, as given and as built.

    Attributes
    ----------
    vectors : float32 (N, d)
    offsets, values : int64
        Values of each column.
    query : float32 (n, d), on the CPU
    weights : int64 (n,), on the CPU
    """

    vectors: torch.Tensor
    offsets: torch.Tensor
    values: torch.Tensor
    partition: Partition
    query: torch.Tensor
    weights: torch.Tensor
    fractions: list[float]


def check_kernels(
    device: torch.device, kernels: Sequence[str], clock: Clock, seconds: float
) -> list[dict[str, object]]:
    """Hold every kernel against float64 in every case that there is time for; the first always."""
    checked: list[dict[str, object]] = []
    started = clock.elapsed
    for number, (dimensions, options) in enumerate(CASES):
        name = f"{dimensions} dimensions, {options.metric}, {options.map}, {options.cells}"
        if number and clock.elapsed - started > seconds:
            clock.leave_out(f"check of {name}", f"the {seconds:.0f} s for checks are over")
            continue
        begun = clock.elapsed
        lake = small_lake(dimensions, options, device, seed=number)
        n_answers = _check(lake, {kernel: kernel_of(kernel, device) for kernel in kernels}, name)
        took = clock.elapsed - begun
        clock.say(f"checked: {name}: {n_answers} answers equal, {took:.1f} s")
        checked.append(
            {"case": name, "kernels": list(kernels), "answers": n_answers, "seconds": took}
        )
    return checked


def small_lake(
    dimensions: int, options: PartitionLayoutOptions, device: torch.device, seed: int
) -> SmallLake:
    """Draw a small lake of clusters with pairs planted about tau apart."""
    rng = np.random.default_rng(seed)
    metric = Metric(options.metric)
    n_planted = N_VALUES // 6
    centres = _unit(rng.normal(size=(N_VALUES // 40, dimensions)))
    spread = 10.0 ** rng.uniform(-3, -0.3, size=(N_VALUES, 1)) / math.sqrt(dimensions)
    cluster = np.sort(rng.integers(len(centres), size=N_VALUES))
    values = _unit(centres[cluster] + spread * rng.normal(size=(N_VALUES, dimensions)))
    query = _unit(
        values[rng.integers(N_VALUES, size=N_QUERY)]
        + 0.02 * rng.normal(size=(N_QUERY, dimensions)) / math.sqrt(dimensions)
    )
    planted = rng.choice(N_VALUES, n_planted, replace=False)
    owner = rng.integers(N_QUERY, size=n_planted)
    values[planted] = _planted(rng, query[owner], rng.choice(FRACTIONS[1:], size=n_planted))
    vectors, queries = (torch.from_numpy(part.astype(np.float32)) for part in (values, query))
    columns = [
        np.unique(
            np.concatenate(
                [
                    rng.integers(N_VALUES, size=5),
                    (rng.integers(N_VALUES) + np.arange(int(size))) % N_VALUES,
                ]
            )
        )
        for size in np.exp(rng.uniform(0, 6, size=N_COLUMNS))
    ]
    offsets = torch.from_numpy(np.cumsum([0, *map(len, columns)])).to(device)
    members = torch.from_numpy(np.concatenate(columns)).to(device)
    vectors = vectors.to(device)
    tensors, _ = build_tensors(vectors, offsets, members, options)
    largest = metric.threshold(1.0)
    fractions = list(FRACTIONS)
    for one in range(3):
        distance = float(distances(queries[owner[one]], vectors[planted[one]].cpu())[None])
        # Half of the distance, or whatever gives it again when it is doubled.
        fraction = (
            distance / largest
            if options.metric != "angular"
            else 2.0 * math.asin(distance / 2.0) / math.pi
        )
        fractions += [fraction, math.nextafter(fraction, 0.0)]
    weights = torch.from_numpy(rng.integers(1, 4, size=N_QUERY))
    return SmallLake(
        vectors,
        offsets,
        members,
        Partition.from_tensors(tensors, options),
        queries,
        weights,
        fractions,
    )


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _planted(rng: np.random.Generator, vectors: np.ndarray, fractions: np.ndarray) -> np.ndarray:
    """Return unit vectors at given distances from `vectors`."""
    aside = rng.normal(size=vectors.shape)
    aside = _unit(aside - (aside * vectors).sum(1, keepdims=True) * vectors)
    angle = 2.0 * np.arcsin(fractions)[:, None]
    targets = (np.cos(angle) * vectors + np.sin(angle) * aside).astype(np.float32)
    up = rng.random(targets.shape) < 0.1
    return np.where(up, np.nextafter(targets, np.float32(2.0)), targets).astype(np.float64)


def _check(lake: SmallLake, kernels: Mapping[str, Kernel], case: str) -> int:
    """Search single columns and a batch at every threshold; return the number of equal answers."""
    n_answers = 0
    total = int(lake.weights.sum()) + 2
    arguments = (lake.partition, lake.query, lake.weights)
    batch = _batch(lake)
    for fraction in lake.fractions:
        where = f"{case}, largest distance {fraction!r}"
        counts = _right_counts(lake, fraction)
        goals = (Goal(fraction), Goal(fraction, min_count=max(1, total // 10)), Goal(fraction, k=5))
        rights = [normal_form(exact_partition(*arguments, goal)) for goal in goals]
        for goal, right in zip(goals[:2], rights[:2], strict=True):
            columns = torch.nonzero(counts >= goal.min_count)[:, 0]
            refuse_difference(
                right,
                normal_form((columns, counts[columns])),
                f"float64 over the partition, {where}",
            )
        batch_rights = [_right_of_batch(lake, query, fraction) for query in batch]
        for name, kernel in kernels.items():
            for goal, right in zip(goals, rights, strict=True):
                answer = normal_form(
                    search_partition(*arguments, total, goal, SearchStats(), kernel=kernel)
                )
                refuse_difference(
                    answer,
                    right,
                    f"kernel {name}, {where}, at least {goal.min_count} matches, k={goal.k}",
                )
            answers = search_batch_partition(
                lake.partition, lake.query, batch, fraction, SearchStats(), kernel=kernel
            )
            for number, (answer, right) in enumerate(zip(answers, batch_rights, strict=True)):
                refuse_difference(
                    normal_form(answer),
                    right,
                    f"kernel {name}, {where}, query column {number} of a batch",
                )
            n_answers += len(goals) + len(batch)
    return n_answers


def _batch(lake: SmallLake) -> list[BatchQuery]:
    """Return query columns that share values."""
    order = torch.randperm(N_QUERY, generator=torch.Generator().manual_seed(0))
    members = [*order.split(17), order[:30], torch.arange(N_QUERY)]
    return [
        BatchQuery(part, lake.weights[part], 1 + number % 3) for number, part in enumerate(members)
    ]


def _right_of_batch(lake: SmallLake, query: BatchQuery, fraction: float) -> dict[int, int]:
    goal = Goal(fraction, min_count=query.min_count)
    return normal_form(
        exact_partition(lake.partition, lake.query[query.members], query.weights, goal)
    )


def _right_counts(lake: SmallLake, fraction: float) -> torch.Tensor:
    """Count from the values and columns as they were given, before anything was built."""
    device, metric = lake.vectors.device, lake.partition.metric
    tau = metric.threshold(fraction)
    query, value, _ = oracle_pairs(lake.query.to(device), lake.vectors, tau)
    owner = torch.repeat_interleave(torch.arange(N_COLUMNS, device=device), lake.offsets.diff())
    columns = csr_from_pairs(owner, lake.values, N_COLUMNS)
    return oracle_counts(query, value, lake.weights.to(device), columns, len(lake.vectors)).cpu()


def refuse_difference(answer: dict[int, int], right: dict[int, int], where: str) -> None:
    """Raise `WrongAnswerError` where an answer is not the right one."""
    what = difference(answer, right)
    if what is not None:
        raise WrongAnswerError(f"A wrong answer: {where}: {what}.")
