"""Tests that one lake has one answer, whatever the layout and the kind of execution."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch
from engine_lakes import (
    KERNELS,
    as_dict,
    build,
    defining_distances,
    kernel_named,
    sphere,
    threads_of_torch,
    unit,
)
from long_runs import long_but

from pexeso.engine.dense.search import (
    BatchQuery,
    Goal,
    exact_partition,
    search_batch_partition,
    search_partition,
)
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats

N_VALUES, N_COLUMNS, DIMS = 3_000, 300, 24

BUILDS = {
    "projection, blocks of 64": PartitionLayoutOptions(map="projection"),
    "projection, blocks of 7": PartitionLayoutOptions(map="projection", block_size=7, n_axes=9),
    "projection, blocks of 1": PartitionLayoutOptions(map="projection", block_size=1, n_axes=24),
    "projection, one block": PartitionLayoutOptions(map="projection", block_size=4096, n_axes=3),
    "pivots, blocks of 64": PartitionLayoutOptions(map="pivots"),
    "pivots, blocks of 5": PartitionLayoutOptions(
        map="pivots", block_size=5, n_pivots=9, pivot_choice="random"
    ),
    "chosen by cost": PartitionLayoutOptions(map="auto", n_axes=None),
    "pivots, grid": PartitionLayoutOptions(map="pivots", cells="grid"),
    "projection, grid": PartitionLayoutOptions(
        map="projection", cells="grid", n_axes=8, n_levels=4
    ),
}


@dataclass(frozen=True)
class Lake:
    vectors: np.ndarray
    columns: list[list[int]]
    queries: torch.Tensor
    batch: list[BatchQuery]
    tau: float


@cache
def lake() -> Lake:
    """Return a lake with clusters of near values, repeated values and zero vectors.

    tau is the exact distance of a pair, so that it decides.
    """
    rng = np.random.default_rng(42)
    centres = sphere(rng, N_VALUES // 10, DIMS)
    spread = 10.0 ** rng.uniform(-3, -0.7, size=(N_VALUES, 1))
    vectors = unit(
        centres[rng.integers(len(centres), size=N_VALUES)]
        + spread * rng.normal(size=(N_VALUES, DIMS))
    )
    repeated = rng.integers(N_VALUES, size=(2, N_VALUES // 20))
    vectors[repeated[0]] = vectors[repeated[1]]
    vectors[rng.integers(N_VALUES, size=20)] = 0
    columns = [rng.integers(N_VALUES, size=rng.integers(0, 40)).tolist() for _ in range(N_COLUMNS)]
    queries = vectors[[value for column in columns[:2] for value in column]].copy()
    moved = unit(queries[::3] + 0.02 * rng.normal(size=queries[::3].shape))
    queries[::3] = np.where(queries[::3].any(1)[:, None], moved, 0)
    batch = []
    for size, needed in ((1, 1), (12, 2), (len(queries), 3), (0, 1), (25, 1)):
        members = torch.from_numpy(rng.integers(len(queries), size=size))
        batch.append(BatchQuery(members, torch.from_numpy(rng.integers(0, 3, size=size)), needed))
    distances = np.sort(defining_distances(queries, vectors), axis=None)
    tau = float(distances[np.searchsorted(distances, 0.25)])
    return Lake(vectors, columns, torch.from_numpy(queries), batch, tau)


@cache
def partition_of(name: str) -> Partition:
    with pytest.MonkeyPatch.context() as patch:
        # Even a lake as small as this one is worth a measured choice of map here.
        patch.setattr("pexeso.engine.dense.building.MIN_VALUES", 1000)
        return build(lake().vectors, lake().columns, BUILDS[name])[0]


@cache
def expected() -> dict[str, object]:
    """What plain loops over all pairs count."""
    given = lake()
    matches = defining_distances(given.queries.numpy(), given.vectors) <= given.tau
    matches &= given.queries.numpy().any(1)[:, None] & given.vectors.any(1)[None]
    hit = np.stack([matches[:, column].any(1) for column in given.columns], 1)  # (n, C)
    everyone = hit.sum(0)
    third = np.sort(everyone)[-3]
    return {
        "threshold": {c: int(n) for c, n in enumerate(everyone) if n >= 3},
        "top": {c: int(n) for c, n in enumerate(everyone) if n >= third},
        "batch": [counted(hit, query) for query in given.batch],
    }


def counted(hit: np.ndarray, query: BatchQuery) -> dict[int, int]:
    counts = (hit[query.members.numpy()] * query.weights.numpy()[:, None]).sum(0)
    return {c: int(n) for c, n in enumerate(counts) if n >= query.min_count}


def answers(
    partition, kernel, max_pairs: int, stats: SearchStats | None = None
) -> dict[str, object]:
    given = lake()
    ones, cut = (
        torch.ones(len(given.queries), dtype=torch.int64),
        {"kernel": kernel, "max_pairs": max_pairs},
    )
    arguments = partition, given.queries, ones, len(ones)
    decided = search_partition(*arguments, Goal(given.tau, 3, decide=True), SearchStats(), **cut)
    batch = search_batch_partition(
        partition, given.queries, given.batch, given.tau, SearchStats(), **cut
    )
    results = {
        "threshold": as_dict(
            search_partition(*arguments, Goal(given.tau, 3), stats or SearchStats(), **cut)
        ),
        "top": as_dict(search_partition(*arguments, Goal(given.tau, k=3), SearchStats(), **cut)),
        "batch": [as_dict(answer) for answer in batch],
    }
    assert as_dict(decided).keys() == results["threshold"].keys()
    return results


def test_the_lake_asks_something_of_the_search():
    given, answer = lake(), expected()
    assert 20 < len(answer["threshold"]) < N_COLUMNS // 2
    assert 3 <= len(answer["top"]) < 20
    assert sum(len(columns) for columns in answer["batch"]) > 50
    partition, ones = (
        partition_of("projection, blocks of 64"),
        torch.ones(len(given.queries), dtype=torch.int64),
    )
    assert (
        as_dict(exact_partition(partition, given.queries, ones, Goal(given.tau, 3)))
        == answer["threshold"]
    )


@pytest.mark.parametrize("kernel", [*KERNELS, "auto"])
@pytest.mark.parametrize(
    "name", long_but(["projection, blocks of 64", "pivots, blocks of 5", "pivots, grid"], BUILDS)
)
def test_the_answer_depends_on_the_lake_and_the_query_alone(monkeypatch, name, kernel):
    partition, chosen = partition_of(name), None if kernel == "auto" else kernel_named(kernel)
    if kernel == "compiled":
        # So that tasks of such a small lake are shared out at all.
        monkeypatch.setattr("pexeso.engine.kernels.compiled._TESTS_A_TASK", 1 << 8)
        monkeypatch.setattr("pexeso.engine.kernels.compiled._PAIRS_A_TASK", 1 << 6)
    stats = SearchStats()
    assert answers(partition, chosen, 1 << 24, stats) == expected()
    # A room that the query column has to be cut for.
    for threads, max_pairs in ((2, 1 << 24), (1, stats.candidates // 4)):
        with threads_of_torch(threads):
            assert answers(partition, chosen, max_pairs) == expected(), (threads, max_pairs)


@pytest.mark.parametrize("name", BUILDS)
def test_values_in_another_order_give_the_same_columns(name):
    """The build may order and cut otherwise then, and choose other pivots; the answer stays."""
    given = lake()
    shuffle = np.random.default_rng(1).permutation(N_VALUES)
    place = np.argsort(shuffle)
    columns = [place[column].tolist() for column in given.columns]
    partition, _ = build(given.vectors[shuffle], columns, BUILDS[name])
    assert answers(partition, None, 1 << 24) == expected()
