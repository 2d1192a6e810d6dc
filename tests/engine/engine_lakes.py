"""Random lakes and queries, and the answers counted in plain loops from the definition."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

import numpy as np
import torch
from hypothesis import strategies as st

from embed.stored import in_half
from pexeso.engine import metrics
from pexeso.engine.dense.building import build_partition
from pexeso.engine.kernel import Kernel, Pairs, Query, Threshold
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.maps import slack
from pexeso.engine.options import (
    CELLS,
    MAPS,
    MAX_CODE_BITS,
    METRICS,
    VECTOR_PRECISIONS,
    Metric,
    PartitionLayoutOptions,
)
from pexeso.engine.partition import Partition
from pexeso.engine.vector_space import ALL_LEMMAS, Lemma

SHAPES = ("uniform", "clustered", "coarse")
KERNELS = (
    "compiled",
    "torch",
    # Triton's programs run on the CPU in its interpreter alone: `test_kernel_triton` runs tests of
    # all kernels again with it.
    *(("triton",) if os.environ.get("TRITON_INTERPRET") == "1" else ()),
)

ROW_KERNELS = ("compiled", "torch")  # those that compare mapped coordinates one by one

MAPS_AND_METRICS = tuple((chosen, metric) for chosen in MAPS for metric in METRICS)
TAUS = ("zero", "tie", "above", "below", "largest", "paper", "middle")


class TauMetric(Metric):
    """A metric that takes tau itself in place of the fraction.

    A test can therefore set tau to a distance, exact to the last bit.
    """

    def threshold(self, max_distance: float) -> float:
        return max_distance


def unit(rows: np.ndarray) -> np.ndarray:
    """Divide rows by their length, as float32; zero rows stay."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(length > 0, length, 1.0)).astype(np.float32)


def sphere(rng: np.random.Generator, n: int, dims: int, shape: str = "uniform") -> np.ndarray:
    """Return random unit vectors of a shape.

    Coarse vectors have few different entries, so many of their distances tie.
    """
    if shape == "uniform":
        return unit(rng.normal(size=(n, dims)))
    if shape == "coarse":
        rows = rng.integers(-1, 2, size=(n, dims)).astype(float)
        rows[~rows.any(1), 0] = 1.0
        return unit(rows)
    centres = unit(rng.normal(size=(max(1, n // 8), dims)))
    spread = 10.0 ** rng.uniform(-4, -1, size=(n, 1))
    return unit(centres[rng.integers(len(centres), size=n)] + spread * rng.normal(size=(n, dims)))


@dataclass(frozen=True)
class Case:
    """A built lake, a query and a threshold.

    `vectors` are the lake's values as given, `columns` the value numbers of each column, `order`
    the value of each stored row.
    """

    vectors: np.ndarray
    columns: Sequence[Sequence[int]]
    partition: Partition
    order: np.ndarray
    query: np.ndarray
    weights: np.ndarray
    total: int
    tau: float

    @cached_property
    def matches(self) -> np.ndarray:
        """Which query row matches which value of the lake, bool (n, N)."""
        real = self.query.any(1)[:, None] & self.vectors.any(1)[None]
        return real & (self.distances <= self.tau)

    @cached_property
    def distances(self) -> np.ndarray:
        """The defining distances, float64 (n, N)."""
        return defining_distances(self.query, self.vectors)

    @cached_property
    def counts(self) -> list[int]:
        """Matching query rows per column."""
        counts = []
        for column in self.columns:
            count = 0
            for row, weight in enumerate(self.weights):
                if any(self.matches[row, value] for value in column):
                    count += int(weight)
            counts.append(count)
        return counts

    def joinable(self, needed: int, left_out: Sequence[int] = ()) -> dict[int, int]:
        """Columns with at least the count needed, and their counts."""
        return {
            c: count for c, count in enumerate(self.counts) if count >= needed and c not in left_out
        }

    def best(self, k: int, needed: int, left_out: Sequence[int] = ()) -> dict[int, int]:
        """Columns that fewer than k others beat, and their counts."""
        allowed = self.joinable(needed, left_out)
        return {
            c: n for c, n in allowed.items() if sum(other > n for other in allowed.values()) < k
        }

    def arguments(self) -> tuple[Partition, torch.Tensor, torch.Tensor, int]:
        """What `search_partition` takes first."""
        return (
            self.partition,
            torch.from_numpy(self.query),
            torch.from_numpy(self.weights),
            self.total,
        )


def defining_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return metrics.distances(torch.from_numpy(left)[:, None], torch.from_numpy(right)[None]).numpy()


def to_csr(columns: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.concatenate([[0], np.cumsum([len(column) for column in columns])]).astype(np.int64)
    return offsets, np.array([value for column in columns for value in column], dtype=np.int64)


def build(
    vectors: np.ndarray,
    columns: Sequence[Sequence[int]],
    options: PartitionLayoutOptions,
    *,
    raw_tau: bool = True,
) -> tuple[Partition, np.ndarray]:
    """Build a partition; with `raw_tau` its searches take tau in place of a fraction."""
    arrays, order = build_partition(vectors, *to_csr(columns), options)
    partition = Partition.from_arrays(arrays, options)
    if raw_tau:
        partition.__dict__["metric"] = TauMetric(options.metric)
    return partition, order


def draw_columns(rng: np.random.Generator, n_values: int, n_columns: int) -> list[list[int]]:
    """Return columns that share values: some empty, some of one value, some with duplicates."""
    columns = []
    for _ in range(n_columns):
        size = int(rng.choice([0, 1, 2, 5, 12])) if n_values else 0
        columns.append(rng.integers(n_values, size=size).tolist() if size else [])
    return columns


def draw_query(rng: np.random.Generator, vectors: np.ndarray, n: int, dims: int) -> np.ndarray:
    """Draw query rows: values of the lake, values near them, far ones, a zero vector, repeats."""
    rows = sphere(rng, n, dims)
    for row in range(n):
        kind = rng.integers(6)
        if kind <= 2 and len(vectors):
            rows[row] = vectors[rng.integers(len(vectors))]
        if kind == 2:
            rows[row] = unit(
                rows[row : row + 1] + 10.0 ** rng.uniform(-8, -1) * rng.normal(size=(1, dims))
            )[0]
        if kind == 3 and row:
            rows[row] = rows[rng.integers(row)]
        if kind == 4 and rng.random() < 0.3:
            rows[row] = 0
    return rows


def choose_tau(
    rng: np.random.Generator, kind: str, metric: str, query: np.ndarray, vectors: np.ndarray
) -> float:
    """Return tau for a kind of case.

    `tie` is the exact distance of some pair; `above` and `below` are one ulp off it.
    """
    fixed = {
        "zero": 0.0,
        "largest": Metric(metric).threshold(1.0),
        "paper": Metric(metric).threshold(0.06),
    }
    if kind in fixed or len(vectors) == 0:
        return fixed.get(kind, 0.5)
    distances = defining_distances(query, vectors)
    if kind == "middle":
        return float(np.quantile(distances, rng.uniform(0, 0.6)))
    distance = float(np.sort(distances, axis=None)[int(distances.size * rng.random() ** 2)])
    return {
        "tie": distance,
        "above": np.nextafter(distance, 9.0),
        "below": max(0.0, np.nextafter(distance, -1.0)),
    }[kind]


@st.composite
def options(
    draw,
    maps: tuple[str, ...] = MAPS,
    cells: tuple[str, ...] = CELLS,
    metrics: tuple[str, ...] = METRICS,
) -> PartitionLayoutOptions:
    chosen = {"map": draw(st.sampled_from(maps)), "cells": draw(st.sampled_from(cells))}
    if chosen["map"] == "projection":
        chosen["metric"] = draw(st.sampled_from(metrics))
        chosen["n_axes"] = draw(st.integers(1, 24))
        n_coordinates = chosen["n_axes"] + 1
    else:
        chosen["metric"] = draw(st.sampled_from(metrics))
        chosen["n_pivots"] = n_coordinates = draw(st.integers(1, 8))
        chosen["pivot_choice"] = draw(st.sampled_from(("pca", "random")))
    if chosen["cells"] == "grid":
        chosen["n_levels"] = draw(st.integers(1, min(8, MAX_CODE_BITS // n_coordinates)))
    else:
        chosen["block_size"] = draw(st.sampled_from((1, 2, 3, 7, 64)))
    chosen["vector_precision"] = draw(st.sampled_from(VECTOR_PRECISIONS))
    return PartitionLayoutOptions(**chosen)


@st.composite
def cases(
    draw,
    min_values: int = 0,
    maps: tuple[str, ...] = MAPS,
    cells: tuple[str, ...] = CELLS,
    metrics: tuple[str, ...] = METRICS,
) -> Case:
    """Draw a lake of any kind with a query and a threshold.

    What is not worth shrinking comes from a seed.
    """
    chosen = draw(options(maps, cells, metrics))
    dims = draw(st.sampled_from((1, 2, 3, 5, 8, 17, 40)))
    n_values, n_columns, n_query = (
        draw(st.integers(min_values, 60)),
        draw(st.integers(1, 12)),
        draw(st.integers(1, 9)),
    )
    shape, kind = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(TAUS))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return draw_case(rng, chosen, dims, n_values, n_columns, n_query, shape, kind)


def draw_case(
    rng: np.random.Generator,
    chosen: PartitionLayoutOptions,
    dims: int,
    n_values: int,
    n_columns: int,
    n_query: int,
    shape: str,
    tau: str,
) -> Case:
    vectors = sphere(rng, n_values, dims, shape)
    for row in np.flatnonzero(rng.random(n_values) < 0.2):
        vectors[row] = vectors[rng.integers(n_values)]
    vectors[rng.random(n_values) < 0.05] = 0
    columns = draw_columns(rng, n_values, n_columns)
    query = draw_query(rng, vectors, n_query, dims)
    if chosen.vector_precision == "half":
        vectors, query = in_half(vectors), in_half(query)
    partition, order = build(vectors, columns, chosen)
    weights = (
        rng.integers(1, 4, size=n_query) if rng.random() < 0.5 else np.ones(n_query, dtype=np.int64)
    )
    missing = int(rng.integers(0, 3)) if rng.random() < 0.3 else 0
    return Case(
        vectors=vectors,
        columns=columns,
        partition=partition,
        order=order,
        query=query,
        weights=weights,
        total=int(weights.sum()) + missing,
        tau=choose_tau(rng, tau, chosen.metric, query, vectors),
    )


def smallest_count(min_joinability: str, total: int) -> int:
    """Return the smallest count, of at least 1, that is `min_joinability` of `total`.

    The arithmetic is exact on the decimal as written.
    """
    return max(1, ceil(Fraction(min_joinability) * total))


def as_dict(answer: tuple[torch.Tensor, torch.Tensor]) -> dict[int, int]:
    columns, counts = answer
    assert columns.tolist() == sorted(set(columns.tolist()))
    return dict(zip(columns.tolist(), counts.tolist(), strict=True))


def real_query(case: Case, lemmas: frozenset[Lemma] = ALL_LEMMAS) -> tuple[Query, np.ndarray]:
    """Return the query as the engine maps it, and its matches with stored rows, bool (n, N)."""
    real = case.query.any(1)
    vectors = torch.from_numpy(case.query[real])
    partition, mapped = case.partition, case.partition.map.map(vectors)
    threshold = Threshold(case.tau, max(slack(mapped), partition.slack), lemmas)
    weights = torch.from_numpy(case.weights[real])
    query = Query(partition, threshold, vectors, mapped, weights, case.total)
    return query, case.matches[real][:, case.order]


def kernel_named(name: str) -> Kernel:
    """Return a kernel for the CPU."""
    return choose_kernel(name, torch.device("cpu"))


def pairs_by_hand(pairs: Iterable[tuple[int, int]], n_queries: int) -> Pairs:
    """Return pairs of a query value and a row in CSR form, in their order.

    A row that surely matches is given as its complement.
    """
    lists = [[row for query, row in pairs if query == number] for number in range(n_queries)]
    offsets, rows = to_csr(lists)
    return Pairs(torch.from_numpy(offsets), torch.from_numpy(rows).int())


def listed(pairs: Pairs) -> list[tuple[int, int]]:
    """Pairs of a query value and a row, in their order."""
    queries = torch.repeat_interleave(torch.arange(len(pairs.sizes)), pairs.sizes)
    return list(zip(queries.tolist(), pairs.rows.tolist(), strict=True))


@contextmanager
def threads_of_torch(n_threads: int) -> Iterator[None]:
    """Let torch, and with it the engine, use that many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
