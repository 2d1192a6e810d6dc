"""Searches of an index whose partitions are copied to a device: the same answers, few copies."""

import _thread
import threading
import weakref
from collections import Counter
from itertools import chain

import numpy as np
import pytest
import torch
from long_runs import long_but
from searching_stores import SmallLake, query_of

from pexeso.build.parts.metadata import build_options, choose_device
from pexeso.engine import partition as device_stage
from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.partition import DeviceStage
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import BYTES_A_PAIR, MAX_PAIRS
from pexeso.options import SearchOptions
from pexeso.semantic.executor import search_store
from pexeso.semantic.partition_loader import CHECK_BYTES, PAIRS_ON_HOST, PartitionLoader

OPTIONS = PartitionLayoutOptions(map="projection", n_axes=6)
N_PARTITIONS = 6
PUBLISHED = PartitionLayoutOptions(**build_options({}, "published").grid())
REQUESTS = (
    SearchOptions(max_distance=0.06, min_joinability=0.3),
    SearchOptions(max_distance=0.06, k=3),
    SearchOptions(max_distance=0.12, min_joinability=0.05, k=7),
    SearchOptions(max_distance=0.3, min_joinability=0.9),
)

KERNELS = [
    pytest.param(OPTIONS, "torch", "cpu", id="as if on a device"),
    pytest.param(PUBLISHED, "auto", "cpu", id="published, as if on a device"),
    *(
        pytest.param(
            layout,
            kernel,
            "cuda",
            id=f"{kernel} on a GPU",
            marks=[
                pytest.mark.gpu,
                pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU"),
            ],
        )
        for layout, kernel in ((OPTIONS, "triton"), (OPTIONS, "torch"), (PUBLISHED, "auto"))
    ),
]


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def lake() -> SmallLake:
    """Columns of near copies of 40 values, so that a query column finds some in every partition."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(40, 24))
    vectors = unit(np.repeat(centres, 90, 0) + 0.04 * rng.normal(size=(3600, 24)))
    columns = [
        rng.choice(3600, size=int(n), replace=False).tolist() for n in rng.integers(5, 60, 60)
    ]
    names = [(f"t{number:02d}", "c") for number in range(60)]
    return SmallLake(vectors, columns, names, [number % N_PARTITIONS for number in range(60)])


@pytest.fixture(scope="module")
def queries(lake):
    rng = np.random.default_rng(1)
    query_columns = []
    for n in (1, 12, 40, 300):
        near = lake.vectors[rng.choice(3600, size=n, replace=False)]
        weights = rng.integers(1, 4, size=n).tolist()
        query_columns.append(query_of(unit(near + 0.01 * rng.normal(size=(n, 24))), weights))
    return query_columns


@pytest.fixture(scope="module")
def right(lake, queries):
    """Answer all of that by plain loops: by query column, then by request."""
    table = [
        [lake.answer("euclidean", query, request) for request in REQUESTS] for query in queries
    ]
    assert sum(map(len, chain.from_iterable(table))) > 150
    return [*chain.from_iterable(table), *chain.from_iterable(zip(*table, strict=True))]


def answers(scan, queries):
    """Ask each query column in every way, alone, and all of them in one call."""
    alone = [
        search_store(scan, [query], [request])[0][0] for query in queries for request in REQUESTS
    ]
    together = [
        hits
        for request in REQUESTS
        for hits, _ in search_store(scan, queries, [request] * len(queries))
    ]
    return [[(hit.column_id, hit.matched) for hit in hits] for hits in alone + together]


@pytest.mark.parametrize("n_kept", long_but([0, 2], [0, 2, N_PARTITIONS]))
@pytest.mark.parametrize(("layout", "kernel", "device"), KERNELS)
def test_answers_do_not_depend_on_which_partitions_stay(
    lake, queries, right, monkeypatch, layout, kernel, device, n_kept
):
    # Partitions take several turns of the buffers, and arrays lie across their ends.
    monkeypatch.setattr(device_stage, "STAGED_BYTES", 10_000)
    store, where = lake.store(layout), torch.device(device)
    chosen = choose_kernel(kernel, where)

    def loader(budget):
        made = PartitionLoader(store, DenseSpace(layout), where, budget, chosen)
        made.on_cpu = False  # also where the CPU stands for a device
        return made

    sizes = [loader(0)._copied_bytes(number) for number in range(N_PARTITIONS)]
    beside = chosen.working_bytes + MAX_PAIRS * BYTES_A_PAIR + CHECK_BYTES
    passing = 0 if n_kept == N_PARTITIONS else 2 * max(sizes)
    scan = loader(beside + sum(sizes[:n_kept]) + passing)
    assert scan.kept_numbers == frozenset(range(n_kept))
    for _ in range(2):
        assert answers(scan, queries) == right
    opened = Counter(store.opened)
    for number in range(N_PARTITIONS):
        # Once to look at it on the host, and once to bring it over where it stays.
        assert (opened[number] == 2) == (number < n_kept)
    assert scan.open(0).device.type == where.type


@pytest.mark.parametrize("there", [False, True])
def test_auto_takes_the_gpu_that_there_is(monkeypatch, there):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: int(there))
    assert choose_device("auto").type == ("cuda" if there else "cpu")


class SmallDevice:
    """The CPU as a device: what is copied there, in which order, and how much is held at a time."""

    def __init__(self, monkeypatch, store, n_kept=0, n_at_once=2):
        where = torch.device("cpu")
        kernel = choose_kernel("torch", where)
        free = PartitionLoader(store, DenseSpace(OPTIONS), where, 0, kernel)
        sizes = [free._copied_bytes(number) for number in range(store.n_partitions)]
        self.room = sum(sizes[:n_kept]) + n_at_once * max(sizes)
        beside = kernel.working_bytes + MAX_PAIRS * BYTES_A_PAIR + CHECK_BYTES
        self.scan = PartitionLoader(store, DenseSpace(OPTIONS), where, beside + self.room, kernel)
        self.scan.on_cpu = False
        self.copied, self.peak = [], 0
        self._held = weakref.WeakKeyDictionary()
        real_copy, real_memory = DeviceStage._copied, DeviceStage._memory
        vectors = [store.array(number, "vectors").shape for number in range(store.n_partitions)]
        assert len({*vectors}) == store.n_partitions  # they are told apart by their sizes

        def copy(stage, arrays, passing_bytes):
            self.copied.append(vectors.index(arrays["vectors"].shape))
            return real_copy(stage, arrays, passing_bytes)

        def memory(stage, n_bytes, passing_bytes):
            made = real_memory(stage, n_bytes, passing_bytes)
            # The views of the arrays keep the storage, not this tensor.
            self._held[made.untyped_storage()] = made.nbytes
            self.peak = max(self.peak, sum(self._held.values()))
            return made

        monkeypatch.setattr(DeviceStage, "_copied", copy)
        monkeypatch.setattr(DeviceStage, "_memory", memory)
        # Partitions take several turns of the buffers, and arrays lie across their ends.
        monkeypatch.setattr(device_stage, "STAGED_BYTES", 10_000)


ALL = SearchOptions(max_distance=0.12, min_joinability=0.01)


def counts_of(hits):
    return [(hit.column_id, hit.matched) for hit in hits]


def no_threads_left():
    names = [thread.name for thread in threading.enumerate()]
    return not [name for name in names if name.startswith("pexeso-prefetch")]


def test_what_a_partition_is_after_its_copy(lake, monkeypatch):
    store = lake.store(OPTIONS)
    device = SmallDevice(monkeypatch, store)
    for number in range(N_PARTITIONS):
        partition, right = device.scan.open(number), device.scan.mapped(number)
        assert torch.equal(partition.vectors, right.vectors)
        assert torch.equal(partition.cells.boxes, right.cells.boxes)
        assert torch.equal(partition.column_values.members, right.column_values.members)
        assert partition.vectors.data_ptr() != right.vectors.data_ptr()


@pytest.mark.parametrize(("n_kept", "n_at_once"), [(0, 1), (0, 2), (2, 2)])
def test_each_search_or_batch_copies_each_partition_once_in_order(
    lake, queries, monkeypatch, n_kept, n_at_once
):
    deleted = [hit for hit, _ in lake.answer("euclidean", queries[2], ALL)[:5]]
    store = lake.store(OPTIONS, deleted=deleted)
    device = SmallDevice(monkeypatch, store, n_kept, n_at_once)
    assert device.scan.copies_ahead == (n_at_once == 2)
    passing = list(range(n_kept, N_PARTITIONS))
    for batch in ([queries[2]], queries, queries[1:3]):
        first = not device.copied
        device.copied.clear()
        answers = search_store(device.scan, batch, [ALL] * len(batch))
        assert device.copied == (list(range(N_PARTITIONS)) if first else passing)
        for query, (hits, _) in zip(batch, answers, strict=True):
            assert counts_of(hits) == lake.answer("euclidean", query, ALL, deleted)
    assert device.room >= device.peak >= (n_at_once * device.room // (n_at_once + n_kept))
    assert no_threads_left()


def test_a_batch_asked_in_different_ways_copies_each_partition_once(lake, queries, monkeypatch):
    device = SmallDevice(monkeypatch, lake.store(OPTIONS))
    batch = [query for query in queries for _ in REQUESTS]
    answers = search_store(device.scan, batch, [*REQUESTS] * len(queries))
    assert sorted(device.copied) == list(range(N_PARTITIONS))
    for query, request, (hits, _) in zip(batch, [*REQUESTS] * len(queries), answers, strict=True):
        assert counts_of(hits) == lake.answer("euclidean", query, request)


def lose_the_disk():
    raise OSError("The disk is gone.")


@pytest.mark.parametrize(
    ("stop", "error"),
    [(lose_the_disk, OSError), (_thread.interrupt_main, KeyboardInterrupt)],
)
def test_a_search_that_is_stopped_while_it_copies_leaves_no_thread(
    lake, queries, monkeypatch, stop, error
):
    device = SmallDevice(monkeypatch, lake.store(OPTIONS))
    real = device.scan.store.partition

    def stopped(number):
        arrays = real(number)
        if number >= 3 and 2 in device.copied:
            stop()
        return arrays

    for number in range(N_PARTITIONS):
        device.scan.mapped(number)
    monkeypatch.setattr(device.scan.store, "partition", stopped)
    with pytest.raises(error):
        search_store(device.scan, [queries[2]], [ALL])
    assert no_threads_left()
    monkeypatch.setattr(device.scan.store, "partition", real)
    [(hits, _)] = search_store(device.scan, [queries[2]], [ALL])
    assert counts_of(hits) == lake.answer("euclidean", queries[2], ALL)


@pytest.mark.parametrize("request_", REQUESTS)
def test_partitions_that_all_stay_are_searched_together(lake, queries, monkeypatch, request_):
    deleted = [hit for hit, _ in lake.answer("euclidean", queries[2], ALL)[:5]]
    device = SmallDevice(monkeypatch, lake.store(OPTIONS, deleted=deleted), N_PARTITIONS)
    together = []
    real = DenseSpace.search_all

    def search_all(space, partitions, *arguments, **options):
        together.append(len(partitions))
        return real(space, partitions, *arguments, **options)

    monkeypatch.setattr(DenseSpace, "search_all", search_all)
    [(hits, stats)] = search_store(device.scan, [queries[2]], [request_])
    assert counts_of(hits) == lake.answer("euclidean", queries[2], request_, deleted)
    assert together == [N_PARTITIONS]
    assert stats.partitions == N_PARTITIONS
    assert "probe" not in stats.seconds


def test_pairs_of_found_columns_copy_no_partition(lake, queries, monkeypatch):
    device = SmallDevice(monkeypatch, lake.store(OPTIONS), n_kept=2)
    search_store(device.scan, [queries[2]], [ALL])
    device.copied.clear()
    for number in range(N_PARTITIONS):
        right = device.scan.space.column_pairs(
            device.scan.mapped(number), queries[2].vectors, np.arange(3), 0.12, SearchStats()
        )

        def find(partition, number=number):
            assert device.scan.is_on_host(number, partition) == (number >= 2)
            return device.scan.space.column_pairs(
                partition, queries[2].vectors, np.arange(3), 0.12, SearchStats()
            )

        pairs = device.scan.compare(number, PAIRS_ON_HOST + 1, find)
        for ours, theirs in zip(pairs, right, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert not device.copied
