"""A device that is too small, or fails: the CPU answers, and it is said once."""

import numpy as np
import pytest
import torch
from searching_stores import SmallLake, query_of

from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import BYTES_A_PAIR, MAX_PAIRS
from pexeso.errors import DeviceError
from pexeso.options import SearchOptions
from pexeso.semantic import partition_loader
from pexeso.semantic.executor import search_store
from pexeso.semantic.partition_loader import CHECK_BYTES, PartitionLoader
from pexeso.semantic.similarity import similarities

CPU = torch.device("cpu")
OPTIONS = PartitionLayoutOptions(map="projection", n_axes=4, block_size=4)
REQUEST = SearchOptions(max_distance=0.2, min_joinability=0.1)
N_PARTITIONS = 4
ILLEGAL = "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be"
FAILED = (
    "The device cpu failed (CUDA error: an illegal memory access was encountered), so 'None' is "
    "searched on the CPU from now on."
)
NO_ROOM = (
    "The device cpu has not enough memory for all partitions of 'None', so some are searched on "
    "the CPU. Build the index with smaller partitions (--partition-bytes) to search them on the "
    "device."
)

FAILURES = [
    RuntimeError(ILLEGAL),
    RuntimeError("Triton Error [CUDA]: device-side assert triggered"),
    RuntimeError("Found no NVIDIA driver on your system."),
    *([torch.AcceleratorError("the device is lost")] if hasattr(torch, "AcceleratorError") else []),
]


@pytest.fixture(scope="module")
def lake() -> SmallLake:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(400, 8))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    columns = [rng.choice(400, size=30, replace=False).tolist() for _ in range(24)]
    names = [(f"t{number:02d}", "c") for number in range(24)]
    return SmallLake(vectors, columns, names, [number % N_PARTITIONS for number in range(24)])


@pytest.fixture(scope="module")
def queries(lake):
    return [
        query_of(lake.vectors[begin : begin + n], [1] * n)
        for begin, n in ((0, 40), (100, 5), (200, 80))
    ]


def on_device(lake: SmallLake, *, kept: bool) -> PartitionLoader:
    """The CPU as a device, on which all partitions stay, or two at a time have room."""
    store, kernel = lake.store(OPTIONS), choose_kernel("torch", CPU)
    beside = kernel.working_bytes + MAX_PAIRS * BYTES_A_PAIR + CHECK_BYTES
    sizes = [
        PartitionLoader(store, DenseSpace(OPTIONS), CPU, 0, kernel)._copied_bytes(number)
        for number in range(N_PARTITIONS)
    ]
    budget = beside + (sum(sizes) if kept else 2 * max(sizes))
    scan = PartitionLoader(store, DenseSpace(OPTIONS), CPU, budget, kernel)
    scan.on_cpu = False
    assert len(scan.kept_numbers) == (N_PARTITIONS if kept else 0)
    return scan


def check(scan: PartitionLoader, lake: SmallLake, queries) -> None:
    """Search for each query column and for all at once."""
    for batch in ([queries[0]], queries):
        answers = search_store(scan, batch, [REQUEST] * len(batch))
        for query, (hits, _) in zip(batch, answers, strict=True):
            assert [(hit.column_id, hit.matched) for hit in hits] == lake.answer(
                "euclidean", query, REQUEST
            )


class Failing:
    """Fails in the named method of a class from the n-th call on that is for the device."""

    def __init__(self, monkeypatch, owner, name, error, first, scan):
        self.calls, real = 0, getattr(owner, name)

        def wrapped(subject, *given, **options):
            partition = None if name == "open" else given[0]
            if partition is None or not any(partition is it for it in scan._mapped.values()):
                self.calls += 1
                if self.calls >= first:
                    raise error
            return real(subject, *given, **options)

        monkeypatch.setattr(owner, name, wrapped)


def messages(caplog):
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("first", [1, 3])
@pytest.mark.parametrize("error", FAILURES, ids=lambda error: str(error)[:24])
def test_a_device_that_fails_while_it_searches(
    lake, queries, monkeypatch, caplog, kept, first, error
):
    scan = on_device(lake, kept=kept)
    if kept:  # all partitions are searched together
        failing = Failing(monkeypatch, DenseSpace, "search_all", error, first, scan)
        for _ in range(first):
            check(scan, lake, queries)
    else:
        failing = Failing(monkeypatch, DenseSpace, "search", error, first, scan)
        Failing(monkeypatch, DenseSpace, "search_batch", error, first, scan)
        check(scan, lake, queries)
    assert failing.calls == first
    assert scan.on_cpu
    check(scan, lake, queries)
    assert failing.calls == first  # later searches ask nothing of the device
    assert len(messages(caplog)) == 1
    assert messages(caplog)[0].startswith("The device cpu failed (")
    if str(error) == ILLEGAL:
        assert messages(caplog) == [FAILED]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("first", [1, 3])
def test_a_device_that_fails_while_a_partition_is_copied(
    lake, queries, monkeypatch, caplog, kept, first
):
    from pexeso.engine.partition import DeviceStage

    scan = on_device(lake, kept=kept)
    failing = Failing(monkeypatch, DeviceStage, "open", RuntimeError(ILLEGAL), first, scan)
    check(scan, lake, queries)
    check(scan, lake, queries)
    assert failing.calls == first
    assert messages(caplog) == [FAILED]


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: str(error)[:24])
def test_a_device_that_fails_while_it_compares_pairs(lake, queries, monkeypatch, caplog, error):
    scan = on_device(lake, kept=True)
    [(hits, _)] = search_store(scan, [queries[0]], [REQUEST])
    assert len({hit.partition for hit in hits}) > 1
    wanted = similarities(scan, queries[0], hits, 0.2, SearchStats())
    monkeypatch.setattr(partition_loader, "PAIRS_ON_HOST", 0)
    failing = Failing(monkeypatch, DenseSpace, "nearest_in_columns", error, 2, scan)
    for _ in range(2):
        scores = similarities(scan, queries[0], hits, 0.2, SearchStats())
        np.testing.assert_array_equal(scores, wanted)
    assert failing.calls == 2
    assert scan.on_cpu
    assert len(messages(caplog)) == 1


def test_a_device_that_does_not_tell_its_memory_is_one_that_fails(
    lake, queries, monkeypatch, caplog
):
    def fail(device):
        raise RuntimeError("CUDA unknown error - this may be due to the environment")

    monkeypatch.setattr(partition_loader, "free_bytes", fail)
    scan = PartitionLoader(
        lake.store(OPTIONS), DenseSpace(OPTIONS), CPU, None, choose_kernel("torch", CPU)
    )
    scan.on_cpu = False
    check(scan, lake, queries)
    [message] = messages(caplog)
    assert message.startswith("The device cpu failed (CUDA unknown error")


@pytest.mark.parametrize("error", [RuntimeError("a mistake"), ValueError("CUDA error: no")])
def test_errors_that_are_not_the_devices_are_raised(lake, queries, monkeypatch, caplog, error):
    scan = on_device(lake, kept=True)
    Failing(monkeypatch, DenseSpace, "search_all", error, 1, scan)
    with pytest.raises(type(error), match=str(error)):
        search_store(scan, queries[:1], [REQUEST])
    assert not messages(caplog)


@pytest.mark.parametrize("kept", [True, False])
def test_partitions_that_do_not_fit_are_searched_on_the_cpu(
    lake, queries, monkeypatch, caplog, kept
):
    real, tried = Partition.from_arrays, []
    scan = on_device(lake, kept=kept)
    large = len(scan.store.array(2, "vectors"))

    def from_arrays(arrays, options, device=CPU, *, pages=None, copy=None):
        if copy is not None and len(arrays["vectors"]) == large:
            tried.append(large)
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(arrays, options, device, pages=pages, copy=copy)

    monkeypatch.setattr(Partition, "from_arrays", from_arrays)
    for _ in range(3):
        check(scan, lake, queries)
    assert messages(caplog) == [NO_ROOM]
    assert not scan.on_cpu
    assert scan.is_on_host(2, scan.open(2))
    assert not scan.is_on_host(1, scan.open(1))
    # With another one beside it, and alone; then no more.
    assert len(tried) == 2


@pytest.mark.parametrize("names", [("search_all", "search"), ("search_batch",)])
def test_a_partition_that_the_device_cannot_search_is_searched_on_the_cpu(
    lake, queries, monkeypatch, caplog, names
):
    scan = on_device(lake, kept=True)
    error = DeviceError("The device has not enough memory for a single query value.")
    for name in names:
        Failing(monkeypatch, DenseSpace, name, error, 1, scan)
    for _ in range(2):
        check(scan, lake, queries)
    assert messages(caplog) == [NO_ROOM]
    assert not scan.on_cpu
