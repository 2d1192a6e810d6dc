"""Searches on CUDA that are asked again are recorded as graphs, and find the same."""

import gc
import os
import threading

import numpy as np
import pytest
import torch

from pexeso.engine.dense.building import build_partition
from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import MAX_PAIRS, Goal

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU"),
]

# The interpreter of a simulated GPU takes seconds for what a GPU does in microseconds.
FEW = os.environ.get("TRITON_INTERPRET") == "1"
SIZES = (2, 17) if FEW else (1, 2, 15, 16, 17, 31, 32, 33, 100, 255, 256, 257, 700, 1100)
DIMENSIONS = 24


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def lake(seed, map_name="projection", cells="blocks", n=400 if FEW else 6000):
    """Return a partition of clusters on the device, one on the host, and its vectors."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(60, DIMENSIONS))
    vectors = unit(centres[rng.integers(60, size=n)] + 0.2 * rng.normal(size=(n, DIMENSIONS)))
    members = rng.integers(n, size=1200 if FEW else 20_000)
    # One value is in every column, so that its columns are shared among programs.
    members[::40] = 0
    n_axes = 7 if map_name == "projection" or cells == "grid" else None
    options = PartitionLayoutOptions(map=map_name, cells=cells, n_axes=n_axes)
    arrays, _ = build_partition(vectors, np.arange(0, len(members) + 1, 40), members, options)
    there = [Partition.from_arrays(arrays, options, device) for device in ("cuda", "cpu")]
    return *there, vectors


def query_near(rng, vectors, n):
    """Return a query column near to stored values, with a zero vector and unequal weights."""
    rows = rng.integers(len(vectors), size=n)
    rows[0] = 0
    query = unit(vectors[rows] + 0.03 * rng.normal(size=(n, DIMENSIONS)))
    query[n // 2 :: 13] = 0
    return torch.from_numpy(query), rng.integers(0, 4, size=n)


def counts_by_column(partition, query, weights, kernel, needed=2, distance=0.08):
    columns, counts = DenseSpace(partition.options).search(
        partition, query, weights, len(weights), Goal(distance, needed), SearchStats(),
        kernel=kernel, max_pairs=MAX_PAIRS,
    )  # fmt: skip
    return dict(zip(columns.tolist(), counts.tolist(), strict=True))


@pytest.mark.parametrize(
    ("map_name", "cells"), [("projection", "blocks"), ("pivots", "blocks"), ("pivots", "grid")]
)
def test_every_size_thrice(map_name, cells):
    on_device, on_host, vectors = lake(0, map_name, cells)
    kernel, right = (
        choose_kernel(*pair) for pair in (("triton", on_device.device), ("torch", on_host.device))
    )
    rng, n_found = np.random.default_rng(1), 0
    for _ in range(3):
        for size in SIZES:
            query, weights = query_near(rng, vectors, size)
            for needed, distance in ((1, 0.08), (3, 0.08), (2, 0.2)):
                expected = counts_by_column(on_host, query, weights, right, needed, distance)
                assert (
                    counts_by_column(on_device, query, weights, kernel, needed, distance)
                    == expected
                )
                n_found += len(expected)
    assert n_found > 70 * len(SIZES)


def test_lists_that_grow_and_partitions_that_go(monkeypatch):
    from pexeso.engine.kernels.triton import lists as workspace

    monkeypatch.setattr(workspace, "FIRST_ROOM", dict.fromkeys(workspace.FIRST_ROOM, 4))
    kernel = choose_kernel("triton", torch.device("cuda"))
    kernel.forget()
    rng = np.random.default_rng(2)
    for seed in (3, 4, 5):
        on_device, on_host, vectors = lake(seed)
        right = choose_kernel("torch", on_host.device)
        for distance in (0.01, 0.05, 0.3, 0.05, 0.05, 0.3):
            query, weights = query_near(rng, vectors, 20)
            expected = counts_by_column(on_host, query, weights, right, 1, distance)
            assert counts_by_column(on_device, query, weights, kernel, 1, distance) == expected
        held = torch.cuda.memory_allocated()
        size = on_device.vectors.nbytes + on_device.blocks.codes.nbytes
        del on_device
        gc.collect()
        # A recording does not keep a partition; one that is simulated keeps its arguments.
        assert FEW or torch.cuda.memory_allocated() <= held - size
    kernel.forget()


def test_threads_have_recordings_of_their_own():
    on_device, on_host, vectors = lake(6)
    kernel, right = (
        choose_kernel(*pair) for pair in (("triton", on_device.device), ("torch", on_host.device))
    )
    wrong = []

    def search(seed):
        rng = np.random.default_rng(seed)
        for _ in range(12):
            query, weights = query_near(rng, vectors, 20)
            if counts_by_column(on_device, query, weights, kernel) != counts_by_column(
                on_host, query, weights, right
            ):
                wrong.append(seed)

    threads = [threading.Thread(target=search, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
