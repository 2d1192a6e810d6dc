"""Tests of search over several partitions against plain loops, and of its memory budget."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples
from searching_stores import SmallLake, query_of, scan_of

from pexeso.engine import metrics
from pexeso.engine.dense import prefixes
from pexeso.engine.options import METRICS, Metric, PartitionLayoutOptions
from pexeso.options import JOINABILITY_OF, SearchOptions
from pexeso.semantic import partition_loader
from pexeso.semantic.executor import search_store

MAPS_AND_METRICS = [(chosen, metric) for chosen in ("pivots", "projection") for metric in METRICS]


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def far_apart(
    rng: np.random.Generator, n_groups: int, n_values: int, dimensions: int = 8
) -> np.ndarray:
    """Values around a few directions, those of one group close together."""
    centres = np.eye(dimensions)[rng.permutation(dimensions)[:n_groups]]
    return unit(
        np.repeat(centres, n_values, axis=0)
        + 0.02 * rng.normal(size=(n_groups * n_values, dimensions))
    )


@st.composite
def lakes(draw) -> tuple[SmallLake, list, PartitionLayoutOptions, np.random.Generator]:
    """A lake in a few partitions, and query columns, near the lake's values or not."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n_groups, n_partitions = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    vectors = far_apart(rng, n_groups, 12)
    columns = [
        sorted(
            rng.choice(
                np.arange(12) + 12 * int(rng.integers(n_groups)),
                int(rng.integers(1, 8)),
                replace=False,
            )
        )
        for _ in range(10)
    ]
    places = (
        sorted(rng.integers(0, n_partitions, len(columns)).tolist())
        if draw(st.booleans())
        else None
    )
    where = places or [min(int(column[0]) // 12, n_partitions - 1) for column in columns]
    where = np.unique(where, return_inverse=True)[1].tolist()
    names = [(f"t{rng.integers(4)}", f"c{number}") for number in range(len(columns))]
    names = [names[place] for place in rng.permutation(len(names))]
    lake = SmallLake(
        vectors, [[int(value) for value in column] for column in columns], names, where
    )
    queries = []
    for _ in range(draw(st.integers(1, 3))):
        rows = vectors[rng.choice(len(vectors), 5, replace=False)]
        rows = np.unique(
            unit(rows + 0.01 * rng.normal(size=rows.shape)) if draw(st.booleans()) else rows, axis=0
        )
        queries.append(query_of(rows, rng.integers(1, 4, len(rows)).tolist()))
    chosen, metric = draw(st.sampled_from(MAPS_AND_METRICS))
    options = PartitionLayoutOptions(
        metric=metric,
        map=chosen,
        n_pivots=3,
        n_axes=3,
        block_size=draw(st.sampled_from([1, 4, 64])),
    )
    return lake, queries, options, rng


def exact_fraction(metric: str, query, vectors: np.ndarray, rng: np.random.Generator) -> float:
    """A threshold that is one of the distances, to the bit, so that no filter has room to spare."""
    distances = metrics.distances(
        query.vectors[:1], torch.from_numpy(vectors[rng.integers(len(vectors), size=1)])
    )
    return min(1.0, float(Metric(metric).fraction(distances)[0]))


@settings(max_examples=examples(120))
@given(
    lakes(),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([None, 0.3, 0.8]),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_every_search_gives_what_plain_loops_give(made, k, joinability, ahead, deleting, data):
    lake, queries, options, rng = made
    tau = data.draw(st.sampled_from([0.0, 0.02, "exact"]))
    tau = exact_fraction(options.metric, queries[0], lake.vectors, rng) if tau == "exact" else tau
    table = lake.names[0][0] if data.draw(st.booleans()) else None
    if k is None and joinability is None:
        joinability = 0.5
    counted = data.draw(st.sampled_from(JOINABILITY_OF))
    request = SearchOptions(
        tau, min_joinability=joinability, joinability_of=counted, k=k, exclude_table=table
    )
    deleted = [0, 3] if deleting else []
    store = lake.store(options, deleted)
    kernel = data.draw(st.sampled_from(["compiled", "torch"]))
    scan = scan_of(store, options, kernel)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefixes, "LEAST_WORK", 0 if ahead else 1 << 60)
        if data.draw(st.booleans()):
            patch.setattr(prefixes, "LEAST_WORK_LOOKED", 0)
            patch.setattr(
                prefixes, "WALKED_IN_THE_TIME_OF_A_ROW", data.draw(st.sampled_from([0, 1]))
            )
        answers = search_store(scan, queries, [request] * len(queries))
    for query, (hits, stats) in zip(queries, answers, strict=True):
        assert [(hit.column_id, hit.matched) for hit in hits] == lake.answer(
            options.metric, query, request, deleted
        )
        assert all((hit.table, hit.label) == lake.names[hit.column_id] for hit in hits)
        if len(queries) == 1:
            assert stats.partitions + stats.partitions_skipped == store.n_partitions
    assert not [
        thread for thread in threading.enumerate() if thread.name.startswith("pexeso-prefetch")
    ]


def lake_of_groups(n_groups: int = 4, n_values: int = 40) -> SmallLake:
    """Partitions that have nothing in common: one for each direction, of two columns each."""
    vectors = far_apart(np.random.default_rng(1), n_groups, n_values)
    columns = [
        list(range(begin, begin + n_values // 2))
        for begin in range(0, n_groups * n_values, n_values // 2)
    ]
    names = [(f"t{number}", "c") for number in range(len(columns))]
    return SmallLake(vectors, columns, names, [number // 2 for number in range(len(columns))])


@pytest.mark.parametrize("kernel", ["compiled", "torch"])
@pytest.mark.parametrize("together", [1, 2])
def test_partitions_without_an_answer_are_skipped_by_their_summary(kernel, together):
    options = PartitionLayoutOptions(map="projection", n_axes=4, block_size=4)
    lake = lake_of_groups()
    store = lake.store(options)
    for number in range(4):  # nothing but what a summary needs is right elsewhere
        if number != 2:
            arrays = store._partitions[number]["arrays"]
            for name in ("vectors", "value_columns_offsets", "value_columns_members"):
                arrays[name] = np.full_like(arrays[name], 7)
    queries = [
        query_of(lake.vectors[80 + start : 90 + start], [1] * 10) for start in range(together)
    ]
    request = SearchOptions(max_distance=0.05, min_joinability=0.6)
    for hits, stats in search_store(scan_of(store, options, kernel), queries, [request] * together):
        assert {hit.partition for hit in hits} == {2}
        assert (stats.partitions, stats.partitions_skipped) == (1, 3)
        assert stats.bytes_read > 0


def test_with_k_the_partition_that_promises_most_comes_first_and_spares_the_others(monkeypatch):
    options = PartitionLayoutOptions(map="projection", n_axes=4, block_size=4)
    lake = lake_of_groups()
    searched = []
    monkeypatch.setattr(
        partition_loader.PartitionLoader,
        "open",
        recording(partition_loader.PartitionLoader.open, searched),
    )
    query = query_of(lake.vectors[[5, 45, 46, 120, 121, 122, 123, 124, 125, 126]], [1] * 10)
    [(hits, stats)] = search_store(
        scan_of(lake.store(options), options), [query], [SearchOptions(max_distance=0.001, k=1)]
    )
    assert [(hit.column_id, hit.matched) for hit in hits] == lake.answer(
        "euclidean", query, SearchOptions(max_distance=0.001, k=1)
    )
    assert searched[0] == 3
    assert stats.partitions_skipped >= 2


def recording(real, numbers):
    def record(self, number):
        numbers.append(number)
        return real(self, number)

    return record
