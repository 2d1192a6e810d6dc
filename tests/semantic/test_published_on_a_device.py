"""Searches of published partitions that are copied to a device: the answers of plain loops."""

import numpy as np
import pytest
import torch
from searching_stores import CPU, SmallLake, query_of

from pexeso.build.opening import choose_device
from pexeso.build.parts.presets import build_options
from pexeso.engine.dense_space import DenseSpace
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.layout.options import PartitionLayoutOptions
from pexeso.engine.vector_space import BYTES_A_PAIR, MAX_PAIRS
from pexeso.options import SearchOptions
from pexeso.semantic.executor import search_store
from pexeso.semantic.partition_loader import PartitionLoader

OPTIONS = PartitionLayoutOptions(**build_options({}, "published").grid())
N_PARTITIONS = 4
REQUESTS = (
    SearchOptions(max_distance=0.06, min_joinability=0.3),
    SearchOptions(max_distance=0.12, min_joinability=0.05, k=7),
    SearchOptions(max_distance=0.3, min_joinability=0.9),
    SearchOptions(max_distance=0.06, k=3, min_joinability=None),
)
DEVICES = [
    pytest.param("cpu", id="as if on a device"),
    pytest.param(
        "auto",
        id="on a GPU",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU"),
        ],
    ),
]


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def lake() -> SmallLake:
    """Columns of near copies of 30 values, each partition with some of its own."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(30, 20))
    vectors = unit(np.repeat(centres, 40, 0) + 0.05 * rng.normal(size=(1200, 20)))
    columns = [rng.choice(1200, size=int(n), replace=False) for n in rng.integers(5, 60, 40)]
    names = [(f"t{number:02d}", "c") for number in range(40)]
    return SmallLake(vectors, columns, names, [number % N_PARTITIONS for number in range(40)])


@pytest.mark.parametrize("n_kept", [0, 1, N_PARTITIONS])
@pytest.mark.parametrize("device", DEVICES)
def test_answers_are_those_of_plain_loops(lake, device, n_kept):
    rng = np.random.default_rng(1)
    near = [lake.vectors[rng.choice(1200, size=n, replace=False)] for n in (1, 30, 200)]
    queries = [
        query_of(unit(some + 0.01 * rng.normal(size=some.shape)), np.ones(len(some), np.int64))
        for some in near
    ]
    where = choose_device(device)
    assert where.type == ("cpu" if device == "cpu" else "cuda")
    kernel = choose_kernel("auto", where)
    store = lake.store(OPTIONS)

    def loader(budget):
        made = PartitionLoader(store, DenseSpace(OPTIONS), where, budget, kernel)
        made.on_cpu = False  # also where the CPU stands for a device
        return made

    sizes = [loader(0)._copied_bytes(number) for number in range(N_PARTITIONS)]
    beside = getattr(kernel, "working_bytes", 0) + MAX_PAIRS * BYTES_A_PAIR
    passing = 0 if n_kept == N_PARTITIONS else 2 * max(sizes)
    scan = loader(beside + sum(sizes[:n_kept]) + passing)
    n_found = 0
    for request in REQUESTS:
        expected = [lake.answer("euclidean", query, request) for query in queries]
        alone = [search_store(scan, [query], [request])[0][0] for query in queries]
        together = [hits for hits, _ in search_store(scan, queries, [request] * len(queries))]
        for hits in (alone, together):
            assert [[(hit.column_id, hit.matched) for hit in some] for some in hits] == expected
        n_found += sum(map(len, expected))
    assert n_found > 100
    assert scan.open(0).device.type == where.type


@pytest.mark.parametrize("there", [False, True])
def test_auto_takes_the_gpu_that_there_is(monkeypatch, there):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: int(there))
    assert choose_device("auto").type == ("cuda" if there else CPU.type)
