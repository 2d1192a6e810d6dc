"""Which columns are asked for: drawn from the lake's own, from every class of size alike."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.lake import BenchmarkLake, BenchmarkQuery
from pexeso.engine.vector_space import count_needed
from pexeso.errors import InputError

SIZE_CLASSES = ((2, 9), (10, 31), (32, 99), (100, 315), (316, 1000))
"""Smallest and largest number of distinct values with a vector, half a power of ten each.

Most columns of real lakes are of the first two; drawn in proportion, nothing would be learnt about
the others.
"""


def size_class(n_values: int) -> int:
    """Return the number of the size class, or -1.

    Examples
    --------
    >>> size_class(1), size_class(9), size_class(10)
    (-1, 0, 1)
    """
    for number, (smallest, largest) in enumerate(SIZE_CLASSES):
        if smallest <= n_values <= largest:
            return number
    return -1


def draw_queries(
    lake: BenchmarkLake, n_queries: int, *, max_distance: float, min_joinability: float, seed: int
) -> list[BenchmarkQuery]:
    """Draw query columns, none twice, the classes in turn while they last."""
    columns = choose_columns(np.diff(lake.column_offsets), n_queries, seed=seed, name=lake.name)
    return [_query(lake, column, max_distance, min_joinability) for column in columns]


def choose_columns(sizes: np.ndarray, n_queries: int, *, seed: int, name: str) -> list[int]:
    """Draw columns by their numbers of values, none twice, the classes in turn while they last."""
    generator = np.random.default_rng(seed)
    of_size = np.array(
        [size_class(size) for size in range(int(sizes.max(initial=0)) + 1)], dtype=np.int8
    )
    classes = of_size[sizes]
    orders = [
        generator.permutation(np.flatnonzero(classes == number))
        for number in range(len(SIZE_CLASSES))
    ]
    n_fit = sum(map(len, orders))
    if not 1 <= n_queries <= n_fit:
        smallest, largest = SIZE_CLASSES[0][0], SIZE_CLASSES[-1][1]
        raise InputError(
            f"The number of queries must lie between 1 and {n_fit:,}, the columns of {name} with "
            f"{smallest} to {largest:,} values. "
            f"Got {n_queries} instead."
        )
    waiting = [order[-n_queries:].tolist() for order in orders]  # no class gives more
    chosen: list[int] = []
    while len(chosen) < n_queries:
        chosen += [columns.pop() for columns in waiting if columns]
    return chosen[:n_queries]


def _query(
    lake: BenchmarkLake, column: int, max_distance: float, min_joinability: float
) -> BenchmarkQuery:
    begin, end = lake.column_offsets[column : column + 2]
    total = int(lake.column_rows[column])
    return BenchmarkQuery(
        lake.columns[column],
        torch.from_numpy(np.ascontiguousarray(lake.vectors[lake.column_values[begin:end]])),
        torch.from_numpy(lake.value_rows[begin:end].astype(np.int64)),
        total,
        max_distance,
        count_needed(min_joinability, total),
    )
