"""Tests of search memory: pairs keep their budget, fewer of them after a device runs out."""

import weakref

import numpy as np
import pytest
import torch
from engine_lakes import as_dict, build, kernel_named, sphere, unit

from benchmarks.memory import peak_memory
from pexeso.engine.dense.search import (
    BatchQuery,
    Goal,
    exact_partition,
    search_batch_partition,
    search_partition,
)
from pexeso.engine.kernels import torch_kernel
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.kernels.torch_kernel import TorchKernel
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import BYTES_A_PAIR, MAX_PAIRS, WORKING_BYTES
from pexeso.errors import DeviceError

CPU = torch.device("cpu")
N_COLUMNS = 400
TAU = 0.3


BLOCKS = PartitionLayoutOptions(map="projection", n_axes=8)
GRID = PartitionLayoutOptions(map="pivots", cells="grid", n_pivots=3, n_levels=3)


def crowded(n_values: int, n_queries: int, layout: PartitionLayoutOptions = BLOCKS):
    """Return a lake in which every query value matches every value.

    It has as many pairs as possible.
    """
    rng = np.random.default_rng(0)
    middle = sphere(rng, 1, 16)
    vectors = unit(middle + 0.05 * rng.normal(size=(n_values, 16)))
    columns = np.array_split(np.arange(n_values), N_COLUMNS)
    partition, _ = build(vectors, columns, layout, raw_tau=False)
    return partition, torch.from_numpy(vectors[rng.integers(n_values, size=n_queries)])


def peak_of_search(partition, query: torch.Tensor, kernel, max_pairs: int, *, batch: bool) -> int:
    """Search, check the answer, and return the peak memory in bytes.

    The search is a single one or a batch of two.
    """
    weights, n, stats = torch.ones(len(query), dtype=torch.int64), len(query), SearchStats()
    members = torch.arange(n)
    with peak_memory(CPU) as peak:
        if batch:
            half = (
                BatchQuery(members[: n // 2], weights[: n // 2], 1),
                BatchQuery(members, weights, n),
            )
            answers = search_batch_partition(
                partition, query, half, TAU, stats, kernel=kernel, max_pairs=max_pairs
            )
        else:
            goal = Goal(TAU, min_count=n)
            answers = [
                search_partition(
                    partition, query, weights, n, goal, stats, kernel=kernel, max_pairs=max_pairs
                )
            ]
    assert as_dict(answers[-1]) == dict.fromkeys(range(N_COLUMNS), n)
    assert as_dict(answers[0]) == dict.fromkeys(range(N_COLUMNS), n // 2 if batch else n)
    assert stats.candidates >= n * partition.n_values
    if peak.n_bytes is None:
        pytest.skip("this system does not tell a process its peak memory")
    return peak.n_bytes


@pytest.mark.parametrize(
    ("batch", "layout", "at_least"),
    [
        pytest.param(False, BLOCKS, 80 << 20, id="single search, blocks"),
        pytest.param(True, GRID, 32 << 20, id="batch, grid"),
        pytest.param(True, BLOCKS, 80 << 20, id="batch, blocks", marks=pytest.mark.long),
        pytest.param(False, GRID, 32 << 20, id="single search, grid", marks=pytest.mark.long),
    ],
)
def test_compiled_searches_stay_within_their_budget(batch, layout, at_least):
    kernel, (partition, query) = kernel_named("compiled"), crowded(20_000, 400, layout)
    few, rest = 1 << 18, 8 << 20
    peak_of_search(
        partition, query[:4], kernel, few, batch=batch
    )  # Whatever is loaded or compiled at first use.
    within = peak_of_search(partition, query, kernel, few, batch=batch)
    without = peak_of_search(partition, query, kernel, MAX_PAIRS, batch=batch)
    assert within <= few * BYTES_A_PAIR + rest < 21 << 20
    # Were the budget ignored, it would take as much as this.
    assert at_least < without <= len(query) * partition.n_values * BYTES_A_PAIR + rest


@pytest.mark.parametrize(
    ("name", "batch"), [("torch", False), pytest.param("torch", True, marks=pytest.mark.long)]
)
def test_searches_by_tensors_stay_within_their_budget(monkeypatch, name, batch):
    kernel, (partition, query) = kernel_named(name), crowded(10_000, 60)
    few, rest = 1 << 14, 12 << 20
    # Else the pieces that are worked on would hide the pairs of so small a lake.
    for constant in ("FRONTIER", "BOX_CHUNK_SIZE", "CHUNK_SIZE", "PAIRS_CHUNK_SIZE"):
        monkeypatch.setattr(torch_kernel, constant, 1 << 14)
    peak_of_search(partition, query[:4], kernel, few, batch=batch)
    within = peak_of_search(partition, query, kernel, few, batch=batch)
    without = peak_of_search(partition, query, kernel, MAX_PAIRS, batch=batch)
    assert within <= few * BYTES_A_PAIR + rest
    assert within + (8 << 20) <= without


@pytest.mark.parametrize("name", ["compiled", "torch"])
def test_pieces_of_many_dimensions_take_no_more_than_is_said(name):
    """Check the memory of pieces for long vectors and many axes.

    Nothing is near, so only pieces are held.
    """
    rng = np.random.default_rng(3)
    vectors = sphere(rng, 6_000, 500)
    options = PartitionLayoutOptions(map="projection", n_axes=120)
    partition, _ = build(vectors, [[value] for value in range(6_000)], options)
    query, kernel = torch.from_numpy(vectors[:40]), kernel_named(name)
    weights, goal = torch.ones(40, dtype=torch.int64), Goal(1e-9)
    search_partition(partition, query[:1], weights[:1], 1, goal, SearchStats(), kernel=kernel)
    with peak_memory(CPU) as peak:
        answer = search_partition(
            partition, query, weights, 40, goal, SearchStats(), kernel=kernel, max_pairs=1 << 18
        )
    assert as_dict(answer) == dict.fromkeys(range(40), 1)
    assert peak.n_bytes is None or peak.n_bytes <= WORKING_BYTES


class RunsOut(TorchKernel):
    """Runs out of memory in one of its steps when there are more than some pairs."""

    def __init__(self, step: str, max_pairs: int) -> None:
        self._step, self._max_pairs = step, max_pairs
        self.n_forgotten = 0
        self._held: weakref.ref | None = None

    def candidates(self, *arguments):
        return self._checked("candidates", super().candidates(*arguments))

    def count(self, query, pairs, *rest):
        return super().count(query, self._checked("count", pairs), *rest)

    def verify(self, query, pairs, *rest):
        super().verify(query, self._checked("verify", pairs), *rest)

    def matches(self, query, pairs, *rest):
        return super().matches(query, self._checked("matches", pairs), *rest)

    def count_batch(self, partition, matches, groups):
        return super().count_batch(partition, self._checked("count_batch", matches), groups)

    def forget(self):
        """Check that the memory of the search has been released.

        Otherwise the next attempt would have less memory than it could.
        """
        assert self._held() is None
        self.n_forgotten += 1

    def _checked(self, step, pairs):
        if step == self._step and pairs is not None and len(pairs) > self._max_pairs:
            self._held = weakref.ref(pairs)
            raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 2.00 GiB.")
        return pairs


STEPS = {
    "alone": ("candidates", "count", "verify"),
    "in a batch": ("candidates", "matches", "count_batch"),
}


@pytest.mark.parametrize(
    ("way", "step"), [(way, step) for way, steps in STEPS.items() for step in steps]
)
def test_a_device_that_runs_out_of_memory_goes_on_with_less(way, step):
    rng = np.random.default_rng(1)
    vectors = sphere(rng, 300, 8, "clustered")
    columns = np.array_split(np.arange(300), 30)
    partition, _ = build(
        vectors, columns, PartitionLayoutOptions(map="projection", n_axes=4), raw_tau=False
    )
    query, weights, stats = (
        torch.from_numpy(vectors[::10]),
        torch.ones(30, dtype=torch.int64),
        SearchStats(),
    )
    expected = as_dict(exact_partition(partition, query, weights, Goal(TAU, 2)))
    assert len(expected) > 10
    kernel = RunsOut(step, 80)
    if way == "alone":
        answer = search_partition(partition, query, weights, 30, Goal(TAU, 2), stats, kernel=kernel)
    else:
        batch = [
            BatchQuery(torch.arange(7), weights[:7], 1),
            BatchQuery(torch.arange(30), weights, 2),
        ]
        first, answer = search_batch_partition(partition, query, batch, TAU, stats, kernel=kernel)
        assert as_dict(first) == as_dict(
            exact_partition(partition, query[:7], weights[:7], Goal(TAU, 1))
        )
    assert as_dict(answer) == expected
    assert stats.times_out_of_memory == kernel.n_forgotten > 3
    assert stats.partitions == 1
    plenty = SearchStats()
    search_partition(
        partition, query, weights, 30, Goal(TAU, 2), plenty, kernel=RunsOut(step, 1 << 30)
    )
    assert plenty.times_out_of_memory == 0


def test_a_device_without_room_for_a_single_query_value_is_said_so():
    partition, _ = build(
        sphere(np.random.default_rng(2), 50, 4), [[0, 1]], PartitionLayoutOptions(), raw_tau=False
    )
    query, weights, stats = partition.vectors[:2], torch.ones(2, dtype=torch.int64), SearchStats()
    expected = (
        r"^The device cpu has not enough memory for a single query value over 50 stored values "
        r"\(CUDA out of memory\.\)\. "
        r"Build the index with smaller partitions \(--partition-bytes\), or search on the CPU "
        r"\(--device cpu\)\.$"
    )
    with pytest.raises(DeviceError, match=expected):
        search_partition(
            partition, query, weights, 2, Goal(0.1), stats, kernel=RunsOut("candidates", -1)
        )
    batch = [BatchQuery(torch.arange(2), weights, 1)]
    with pytest.raises(DeviceError, match=expected):
        search_batch_partition(partition, query, batch, 0.1, stats, kernel=RunsOut("matches", -1))


def test_a_batch_with_more_matches_than_may_be_held_is_searched_in_parts():
    partition, query = crowded(500, 12)
    weights = torch.ones(12, dtype=torch.int64)
    batch = [BatchQuery(torch.arange(begin, 12), weights[begin:], 1) for begin in range(12)]
    for max_pairs in (MAX_PAIRS, 1_000, 1):
        stats, kernel = SearchStats(), choose_kernel("torch", CPU)
        answers = search_batch_partition(
            partition, query, batch, TAU, stats, kernel=kernel, max_pairs=max_pairs
        )
        assert [as_dict(answer) for answer in answers] == [
            dict.fromkeys(range(N_COLUMNS), 12 - begin) for begin in range(12)
        ]
        assert (stats.candidates > 12 * 500) == (max_pairs < MAX_PAIRS)
