"""The pair rates that decide how hard a lake is to search.

They are measured on a seeded sample of any `BenchmarkLake`.

A pair is a value of a drawn query column and a value of the lake, never a value and itself. Query
columns are drawn as the benchmark draws them, every class of size alike. A lake made up for
measurements has to agree with a real one in these rates, else it flatters or slanders filters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.drawing import SIZE_CLASSES, draw_queries
from benchmarks.lake import METRIC, BenchmarkLake, BenchmarkQuery
from pexeso.engine.arrays import as_tensor
from pexeso.engine.layout.maps import PivotMap, ProjectionMap, choose_axes, choose_pivots
from pexeso.errors import InputError

MAX_DISTANCE, MIN_JOINABILITY = 0.06, 0.6
"""The declared runs' thresholds: tau = 0.12 on unit vectors, T = 60 %."""

N_PIVOTS = 5
N_AXES = (8, 16)
EDGES = (0.04, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.7, 1.0, 1.3)
"""Distances at which the share of nearer pairs is told."""

SIZE_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)

_PAIRS_AT_ONCE = 1 << 21
_PIVOT_LAKE_VALUES = 1 << 16


@dataclass(frozen=True)
class LakeProfile:
    """The rates of one lake.

    Attributes
    ----------
    name, fingerprint : str
    values, columns, dimensions, postings : int
    query_values, lake_values : int
        How many of each make the pairs.
    match_rate : float
        Pairs at a distance of at most tau = 0.12.
    duplicate_rate : float
        Postings per distinct value.
    pivots_5 : float
        Pairs that five PCA pivots leave (Lemma 1 alone), of a quarter of the query values and
        65,536 lake values or a few more.
    axes_8, axes_16 : float
        Pairs that so many principal axes with the length of the rest leave.
    nearer : dict of float to float
        Share of the pairs nearer than each of `EDGES`.
    sizes : dict of float to int
        Quantiles of the number of values of a column.
    joinable_share : float or None
        Mean share of the lake's other columns that are joinable with a drawn one at T = 60 %; None
        where it was not asked for.
    joined_queries : int
        Query columns behind `joinable_share`.
    """

    name: str
    fingerprint: str
    values: int
    columns: int
    dimensions: int
    postings: int
    query_values: int
    lake_values: int
    match_rate: float
    duplicate_rate: float
    pivots_5: float
    axes_8: float
    axes_16: float
    nearer: dict[float, float]
    sizes: dict[float, int]
    joinable_share: float | None
    joined_queries: int

    @property
    def rates(self) -> dict[str, float]:
        """The five rates that a calibrated lake must share with the real one."""
        names = ("match_rate", "duplicate_rate", "pivots_5", "axes_8", "axes_16")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain JSON."""
        return dataclasses.asdict(self)


def profile_lake(
    lake: BenchmarkLake,
    *,
    n_columns: int = 1000,
    values_each: int = 4,
    n_lake_values: int = 1 << 17,
    n_joined: int = 0,
    seed: int = 0,
) -> LakeProfile:
    """Measure a lake.

    Memory: the sampled vectors and their maps,
    ``4 (n_lake_values + n_columns values_each) (d + 24)`` bytes, and 64 MiB for the products held
    at a time.

    Parameters
    ----------
    lake : BenchmarkLake
    n_columns : int
        Query columns to draw, at least 1; all that fit where the lake has fewer.
    values_each : int
        Most values taken of one query column, at least 1, so that no large column decides a rate
        alone.
    n_lake_values : int
        Most lake values, at least 1.
    n_joined : int
        Query columns whose joinable columns are counted by brute force, at least 0.
    seed : int
        Of all draws.

    Raises
    ------
    InputError
        When a number is out of range, or the lake has no column of a size that is drawn.
    """
    for name, number, minimum in (
        ("n_columns", n_columns, 1),
        ("values_each", values_each, 1),
        ("n_lake_values", n_lake_values, 1),
        ("n_joined", n_joined, 0),
    ):
        if number < minimum:
            raise InputError(f"{name} must be at least {minimum}. Got {number} instead.")
    sizes = np.diff(lake.column_offsets)
    generator = np.random.default_rng(seed)
    query_rows = _query_rows(lake, sizes, n_columns, values_each, generator)
    lake_rows = np.sort(generator.permutation(lake.n_values)[:n_lake_values])
    shares = pair_shares(
        as_tensor(lake.vectors), torch.from_numpy(query_rows), torch.from_numpy(lake_rows)
    )
    share, joined = _joinable_share(lake, n_joined, seed) if n_joined else (None, 0)
    return LakeProfile(
        name=lake.name,
        fingerprint=lake.fingerprint,
        values=lake.n_values,
        columns=lake.n_columns,
        dimensions=lake.dimensions,
        postings=len(lake.column_values),
        query_values=len(query_rows),
        lake_values=len(lake_rows),
        duplicate_rate=len(lake.column_values) / lake.n_values,
        sizes={
            q: int(size)
            for q, size in zip(SIZE_QUANTILES, np.quantile(sizes, SIZE_QUANTILES), strict=True)
        },
        joinable_share=share,
        joined_queries=joined,
        **shares,
    )


def _query_rows(
    lake: BenchmarkLake,
    sizes: np.ndarray,
    n_columns: int,
    values_each: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Draw columns from the size classes in turn, and return the rows of some values of each."""
    classes = [
        generator.permutation(np.flatnonzero((sizes >= low) & (sizes <= high)))
        for low, high in SIZE_CLASSES
    ]
    columns: list[int] = []
    for rank in range(max(map(len, classes))):
        columns += [int(members[rank]) for members in classes if rank < len(members)]
        if len(columns) >= n_columns:
            break
    if not columns:
        raise InputError(
            f"The lake {lake.name} has no column with {SIZE_CLASSES[0][0]} to "
            f"{SIZE_CLASSES[-1][1]:,} values to ask for."
        )
    rows = [
        generator.permutation(
            lake.column_values[lake.column_offsets[column] : lake.column_offsets[column + 1]]
        )
        for column in columns[:n_columns]
    ]
    return np.concatenate([values[:values_each] for values in rows])


def pair_shares(
    vectors: torch.Tensor, query_rows: torch.Tensor, lake_rows: torch.Tensor
) -> dict[str, object]:
    """Count pairs by distance and by what each map leaves."""
    ours, lake = vectors[query_rows], vectors[lake_rows]
    tau = METRIC.threshold(MAX_DISTANCE, vectors.shape[1])
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
    pivots = PivotMap(choose_pivots(vectors, N_PIVOTS), METRIC)
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


def _joinable_share(lake: BenchmarkLake, n_joined: int, seed: int) -> tuple[float, int]:
    """Return the mean share of other columns joinable with a drawn column, and the number drawn.

    The share is computed by brute force.
    """
    from benchmarks.declared import load_candidates

    sizes = np.diff(lake.column_offsets)
    n_fit = int(((sizes >= SIZE_CLASSES[0][0]) & (sizes <= SIZE_CLASSES[-1][1])).sum())
    queries: list[BenchmarkQuery] = draw_queries(
        lake,
        min(n_joined, n_fit),
        max_distance=MAX_DISTANCE,
        min_joinability=MIN_JOINABILITY,
        seed=seed,
    )
    candidate = load_candidates(["brute_gemm"], torch.device("cpu"))[0]
    brute = candidate.adapter(torch.device("cpu"))
    brute.build(lake, candidate.build_arguments)
    counts = [len(brute.query(query)[0]) for query in queries]
    return (float(np.mean(counts)) - 1.0) / max(1, lake.n_columns - 1), len(queries)
