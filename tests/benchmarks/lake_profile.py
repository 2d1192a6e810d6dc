"""The pair rates that decide how hard a lake is to search.

They are measured on a seeded sample of any `BenchmarkLake`.

A pair is a value of a drawn query column and a value of the lake, never a value and itself. Query
columns are drawn as the benchmark draws them, every class of size alike. A lake made up for
measurements has to agree with a real one in these rates, else it flatters or slanders filters.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.drawing import SIZE_CLASSES
from benchmarks.lake import METRIC, BenchmarkLake
from pexeso.engine.arrays import as_tensor
from pexeso.engine.maps import PivotMap, ProjectionMap, choose_axes, choose_pivots

MAX_DISTANCE = 0.06
"""The declared runs' threshold: tau = 0.12 on unit vectors."""

N_PIVOTS = 5
N_AXES = (8, 16)
EDGES = (0.04, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.7, 1.0, 1.3)
"""Distances at which the share of nearer pairs is told."""

_PAIRS_AT_ONCE = 1 << 21
_PIVOT_LAKE_VALUES = 1 << 16
_VALUES_OF_A_COLUMN = 4
"""Most values taken of one query column, so that no large column decides a rate alone."""


def profile_lake(
    lake: BenchmarkLake, *, n_columns: int = 1000, n_lake_values: int = 1 << 17, seed: int = 0
) -> dict[str, object]:
    """Return the rates of a lake, of so many query columns and values of the lake at most."""
    generator = np.random.default_rng(seed)
    query_rows = _query_rows(lake, n_columns, generator)
    lake_rows = np.sort(generator.permutation(lake.n_values)[:n_lake_values])
    shares = pair_shares(
        as_tensor(lake.vectors), torch.from_numpy(query_rows), torch.from_numpy(lake_rows)
    )
    return {"duplicate_rate": len(lake.column_values) / lake.n_values, **shares}


def _query_rows(lake: BenchmarkLake, n_columns: int, generator: np.random.Generator) -> np.ndarray:
    """Draw columns from the size classes in turn, and return the rows of some values of each."""
    sizes = np.diff(lake.column_offsets)
    classes = [
        generator.permutation(np.flatnonzero((sizes >= low) & (sizes <= high)))
        for low, high in SIZE_CLASSES
    ]
    columns = [
        int(members[rank])
        for rank in range(max(map(len, classes)))
        for members in classes
        if rank < len(members)
    ]
    rows = [
        generator.permutation(
            lake.column_values[lake.column_offsets[column] : lake.column_offsets[column + 1]]
        )
        for column in columns[:n_columns]
    ]
    return np.concatenate([values[:_VALUES_OF_A_COLUMN] for values in rows])


def pair_shares(
    vectors: torch.Tensor, query_rows: torch.Tensor, lake_rows: torch.Tensor
) -> dict[str, object]:
    """Count pairs by distance and by what each map leaves."""
    ours, lake = vectors[query_rows], vectors[lake_rows]
    tau = METRIC.threshold(MAX_DISTANCE)
    n_same = _pairs_with_itself(query_rows, lake_rows)
    n_pairs = len(ours) * len(lake) - n_same
    edges = sorted({*EDGES, tau})
    nearer = {
        edge: (count - n_same) / n_pairs for edge, count in _count_nearer(ours, lake, edges).items()
    }
    shares: dict[str, object] = {
        "match_rate": nearer[tau],
        "nearer": {edge: nearer[edge] for edge in EDGES},
    }
    for n_axes in N_AXES:
        projection = ProjectionMap(choose_axes(vectors, n_axes))
        left = _count_nearer(projection.map(ours), projection.map(lake), [tau])[tau]
        shares[f"axes_{n_axes}"] = (left - n_same) / n_pairs
    step = max(1, len(lake) // _PIVOT_LAKE_VALUES)
    some_rows, some = lake_rows[::step], lake[::step]
    asked_rows, queries = query_rows[::4], ours[::4]
    n_same = _pairs_with_itself(asked_rows, some_rows)
    pivots = PivotMap(choose_pivots(vectors, N_PIVOTS))
    left = _count_within_all(pivots.map(queries), pivots.map(some), tau)
    shares[f"pivots_{N_PIVOTS}"] = (left - n_same) / (len(queries) * len(some) - n_same)
    return shares


def _pairs_with_itself(query_rows: torch.Tensor, lake_rows: torch.Tensor) -> int:
    return int(torch.isin(query_rows, lake_rows).sum())


def _blocks(n_ours: int, n_theirs: int) -> Iterator[slice]:
    rows = max(1, _PAIRS_AT_ONCE // max(1, n_theirs))
    return (slice(begin, begin + rows) for begin in range(0, n_ours, rows))


def _count_nearer(ours: torch.Tensor, lake: torch.Tensor, edges: list[float]) -> dict[float, int]:
    """Count the pairs of rows not farther apart than each of the ascending edges.

    Products are float32, and squared distances are correct to about 1e-6.
    """
    squares = torch.tensor(edges, dtype=torch.float64) ** 2
    counts = torch.zeros(len(edges), dtype=torch.int64)
    left = torch.cat([-2.0 * ours, ours.square().sum(1, keepdim=True), torch.ones(len(ours), 1)], 1)
    right = torch.cat(
        [lake, torch.ones(len(lake), 1), lake.square().sum(1, keepdim=True)], 1
    ).T.contiguous()
    # Most pairs are far: only those under the second-largest edges are looked at one by one.
    close = float(squares[squares <= 0.25].amax()) if bool((squares <= 0.25).any()) else -1.0
    for block in _blocks(len(ours), len(lake)):
        products = (left[block] @ right).numpy()
        few = products.ravel()[np.flatnonzero(products <= close)]
        for number, square in enumerate(squares.tolist()):
            counts[number] += int(
                np.count_nonzero((few if square <= close else products) <= square)
            )
    return dict(zip(edges, counts.tolist(), strict=True))


def _count_within_all(ours: torch.Tensor, lake: torch.Tensor, reach: float) -> int:
    """Count the pairs of rows that no axis puts farther apart than `reach`."""
    count = 0
    turned = lake.T.contiguous()
    for block in _blocks(len(ours), len(lake)):
        within = torch.ones((len(ours[block]), len(lake)), dtype=torch.bool)
        for axis, coordinates in enumerate(turned):
            within &= (ours[block, axis, None] - coordinates).abs_() <= reach
        count += int(np.count_nonzero(within.numpy()))
    return count
