"""Searches of an index whose partitions are copied to a device: the same answers, few copies."""

from collections import Counter

import numpy as np
import pytest
import torch
from searching_stores import SmallLake, query_of, scan_of

from pexeso.engine.dense_space import DenseSpace
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.layout.options import PartitionLayoutOptions
from pexeso.engine.vector_space import BYTES_A_PAIR, MAX_PAIRS
from pexeso.options import SearchOptions
from pexeso.search.executor import search_store
from pexeso.search.partition_loader import PartitionLoader

OPTIONS = PartitionLayoutOptions(map="projection", n_axes=6)
N_PARTITIONS = 6
REQUESTS = (
    SearchOptions(max_distance=0.06, min_joinability=0.3),
    SearchOptions(max_distance=0.06, k=3),
    SearchOptions(max_distance=0.12, min_joinability=0.05, k=7),
)

KERNELS = [
    pytest.param("torch", "cpu", id="as if on a device"),
    *(
        pytest.param(
            kernel,
            "cuda",
            id=f"{kernel} on a GPU",
            marks=[
                pytest.mark.gpu,
                pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU"),
            ],
        )
        for kernel in ("triton", "torch")
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


@pytest.mark.parametrize("n_kept", [0, 2, N_PARTITIONS])
@pytest.mark.parametrize(("kernel", "device"), KERNELS)
def test_answers_do_not_depend_on_which_partitions_stay(lake, queries, kernel, device, n_kept):
    right = answers(scan_of(lake.store(OPTIONS), OPTIONS), queries)
    assert sum(map(len, right)) > 300
    store, where = lake.store(OPTIONS), torch.device(device)
    chosen = choose_kernel(kernel, where)

    def loader(budget):
        made = PartitionLoader(store, DenseSpace(OPTIONS), where, budget, chosen)
        made.on_cpu = False  # also where the CPU stands for a device
        return made

    sizes = [loader(0)._copied_bytes(number) for number in range(N_PARTITIONS)]
    beside = chosen.working_bytes + MAX_PAIRS * BYTES_A_PAIR
    passing = 0 if n_kept == N_PARTITIONS else 2 * max(sizes)
    scan = loader(beside + sum(sizes[:n_kept]) + passing)
    assert scan.kept_numbers == frozenset(range(n_kept))
    for _ in range(3):
        assert answers(scan, queries) == right
    opened = Counter(store.opened)
    for number in range(N_PARTITIONS):
        # Once to look at it on the host, and once to bring it over where it stays.
        assert (opened[number] == 2) == (number < n_kept)
    assert scan.open(0).device.type == where.type
