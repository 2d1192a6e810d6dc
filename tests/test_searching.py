"""What a memory budget allows, on the CPU and on a device, and that partitions come to a device one at a time."""

import doctest
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pexeso import searching
from pexeso.engine.grid_options import GridOptions
from pexeso.engine.kernels import choose_kernel
from pexeso.engine.kernels.interface import BYTES_A_PAIR, MAX_PAIRS, WORKING_BYTES
from pexeso.engine.partition import Partition
from pexeso.errors import DeviceError
from pexeso.index import open_index
from pexeso.searching import MIN_PAIRS, PartitionScan
from pexeso.store.reader import open_store

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
MIB = 1 << 20


@pytest.fixture
def store(small_index):
    return open_store(small_index)


def scan_of(store, device: torch.device, memory_budget: int | None) -> PartitionScan:
    """A scan of what lies on that device, as far as it knows: there need not be such a device."""
    options = GridOptions(**store.manifest.options["grid"])
    return PartitionScan(store, options, device, memory_budget, choose_kernel("torch", CPU))


def test_the_examples_of_the_documentation():
    assert doctest.testmod(searching).failed == 0


def test_on_the_cpu_the_budget_is_for_the_pairs_and_the_pieces_that_are_worked_on(store):
    assert scan_of(store, CPU, None).max_pairs(0) == MAX_PAIRS
    assert scan_of(store, CPU, WORKING_BYTES + 48 * MIB).max_pairs(0) == 48 * MIB // BYTES_A_PAIR
    assert scan_of(store, CPU, 1).max_pairs(0) == MIN_PAIRS
    assert scan_of(store, CPU, 1 << 40).max_pairs(0) == MAX_PAIRS
    assert WORKING_BYTES + MIN_PAIRS * BYTES_A_PAIR == 140 * MIB  # as `open_index` says


@pytest.mark.parametrize("together", [1, 2])
def test_a_search_is_told_how_many_pairs_its_budget_allows(small_index, monkeypatch, together):
    told = []
    for name in ("search_partition", "search_batch_partition"):
        real = getattr(searching, name)

        def recorded(*given, real=real, max_pairs, **options):
            told.append(max_pairs)
            return real(*given, max_pairs=max_pairs, **options)

        monkeypatch.setattr(searching, name, recorded)
    found = open_index(small_index, memory_budget="200MiB").search_batch([["Oslo", "Rome"]] * together)
    assert len(found[-1]) > 1
    assert told == [72 * MIB // BYTES_A_PAIR]


def test_on_a_device_the_budget_is_for_the_partition_too(store, monkeypatch):
    arrays = store.partition(0)
    copied = sum(array.nbytes for name, array in arrays.items() if name not in ("column_ids", "posting_texts"))
    fixed = WORKING_BYTES + copied
    headers = 200 * len(arrays)
    left = 24 * MIB
    assert 0 <= left // BYTES_A_PAIR - scan_of(store, CUDA, fixed + left).max_pairs(0) <= headers // BYTES_A_PAIR
    least = fixed + MIN_PAIRS * BYTES_A_PAIR
    monkeypatch.setattr(Partition, "from_arrays", classmethod(lambda cls, *given: "copied"))
    assert list(scan_of(store, CUDA, least + headers)) == [(0, "copied")]
    expected = (
        r"^To search partition 0 of '.*' on the device cuda takes 140\.0 MiB, and the memory budget is 139\.0 MiB: raise the budget above that, build the "
        r"index with smaller partitions \(--partition-bytes\), or search on the CPU \(--device cpu\)\.$"
    )
    for too_little in (139 * MIB, least):
        with pytest.raises(DeviceError, match=expected if too_little < least else "To search partition 0"):
            next(iter(scan_of(store, CUDA, too_little)))


def test_a_partition_that_does_not_fit_on_the_device_is_refused(store, monkeypatch):
    def from_arrays(*given):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(Partition, "from_arrays", from_arrays)
    with pytest.raises(DeviceError, match=r"A partition of '.*' does not fit into the memory of the device cuda\."):
        list(scan_of(store, CUDA, None))


class Copied:
    """Stands for a partition on a device."""


@pytest.mark.parametrize(("device", "n_partitions", "n_copies"), [(CPU, 3, 3), (CUDA, 3, 6), (CUDA, 1, 1)])
def test_partitions_are_copied_to_a_device_one_at_a_time(monkeypatch, device, n_partitions, n_copies):
    copies: list[weakref.ref] = []

    def copy(scan, arrays):
        if device == CUDA:
            assert not any(each() for each in copies)
        partition = Copied()
        copies.append(weakref.ref(partition))
        return partition

    monkeypatch.setattr(PartitionScan, "_tensors", copy)
    store = SimpleNamespace(
        n_partitions=n_partitions,
        partition=lambda number: {},
        partition_entry=lambda number: SimpleNamespace(files=[]),
        array=lambda number, name: np.arange(0),
    )
    scan = PartitionScan(store, GridOptions(), device, None, choose_kernel("torch", CPU))
    for _ in range(2):
        assert searching.search_store(scan, [], []) == []
    assert len(copies) == n_copies
