"""Prefixes of the query values, which rule out most columns.

The remaining query values are compared only with the columns that are left.

A column needs ``min_count`` of the query values. If it matches none of any |Q| - ``min_count`` + 1
of them, it cannot have as many (the prefix filter of set similarity joins: Chaudhuri, Ganti and
Kaushik, *A primitive operator for similarity joins in data cleaning*, 2006; here values match
approximately). If it matches fewer than r of any |Q| - ``min_count`` + r, neither. So a prefix of
the query values walks the whole partition and is verified; what is left are a few columns, whose
values are compared with the other query values outright. The values that reach the fewest blocks
come first: on a large lake a few values reach most of the blocks and have nearly all the
candidates, and as a rule they never have to walk.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from pexeso.engine.arrays import expand_ranges
from pexeso.engine.fetching import fetch_columns
from pexeso.engine.interface import Kernel, Pairs, Query, Threshold, pairs_by_query
from pexeso.engine.layout.partition import Partition
from pexeso.engine.precision import product_band
from pexeso.engine.search.summary import PartitionProbe
from pexeso.engine.stats import SearchStats
from pexeso.engine.threads import few_threads

LEAST_WORK = 1 << 25
"""(query value, stored value) pairs that are walked faster than another step is begun."""

WALKED_IN_THE_TIME_OF_A_ROW = 12_500
"""(query value, stored value) pairs that are walked in the time in which one value of the columns
that are left is fetched and multiplied."""

LEAST_WORK_LOOKED = 1 << 22
"""The same where the partition's summary has been looked at, so that their order is known
already."""

LEAST_WORK_MULTIPLIED = 1 << 21
"""The same where query values are multiplied with all that is stored
(`pexeso.engine.search.products`)."""

_PRODUCTS_AT_ONCE = 1 << 20
_GATHERED = 2
"""Stored values that are multiplied where they stand in the time in which one is fetched and
multiplied."""

_MARGINS = (8, 3)
"""The prefixes that are tried leave columns with an eighth, and with a third, of the count that is
needed."""


def prefix_sizes(
    weights: torch.Tensor, min_count: int, n_values: int, least_work: int = LEAST_WORK
) -> list[int]:
    """Return how many query values each prefix has, ascending; the last has all.

    Parameters
    ----------
    weights : int64 (n,)
        Of the query values, in the order in which they walk.
    min_count : int
        Matching rows that a column needs, at least 1.
    """
    n = len(weights)
    reached = torch.cumsum(weights, 0)
    sizes = []
    for margin in _MARGINS:
        required = max(min(2, min_count), min_count // margin)
        walked = int(reached[-1]) - min_count + required if n else 0
        size = int(torch.searchsorted(reached, walked)) + 1
        if size < n and (n - size) * n_values >= least_work and size not in sizes:
            sizes.append(size)
    return [*sizes, n]


def prefixes_of(
    partition: Partition,
    outlook: PartitionProbe,
    min_count: int,
    kernel: Kernel,
    stats: SearchStats,
) -> tuple[Query, list[int]]:
    """Return the query values ordered by the blocks that they reach, and the prefix sizes.

    Values that reach the fewest blocks come first.

    Where prefixes do not pay the values stay as they are, and there is one size.
    """
    reached, query = outlook.boxes, outlook.query
    least_work = LEAST_WORK if reached is None else LEAST_WORK_LOOKED
    sizes = prefix_sizes(query.weights, min_count, partition.n_values, least_work)
    if len(sizes) == 1:
        return query, sizes
    if reached is None:
        reached = kernel.blocks_reached(partition, query, outlook.threshold, stats)
    if reached is None:
        return query, sizes
    query = query.take(torch.argsort(reached, stable=True))
    return query, prefix_sizes(query.weights, min_count, partition.n_values, least_work)


def prefixes_multiplied(query: Query, min_count: int, n_values: int) -> tuple[Query, list[int]]:
    """Return the query values in the order of multiplication, and the prefix sizes.

    They are multiplied with all stored vectors.

    Each takes as long as any other: those that stand for the most rows come first, so that a prefix
    has few.
    """
    query = query.take(torch.argsort(query.weights, descending=True, stable=True))
    return query, prefix_sizes(query.weights, min_count, n_values, LEAST_WORK_MULTIPLIED)


def few_values(
    partition: Partition, columns: torch.Tensor, n_queries: int, *, multiplied: bool = False
) -> bool:
    """Return whether comparing with the values of some columns is the cheaper way.

    The alternative is that `n_queries` query values walk, or with `multiplied` that they are
    multiplied with all stored vectors.
    """
    n_rows = int(partition.column_values.sizes_of(columns).sum())
    if multiplied:
        return _GATHERED * n_rows <= partition.n_values
    return n_rows * WALKED_IN_THE_TIME_OF_A_ROW <= n_queries * partition.n_values


def compare_with_columns(
    partition: Partition,
    query: Query,
    columns: torch.Tensor,
    threshold: Threshold,
    max_pairs: int,
    stats: SearchStats,
) -> Iterator[tuple[Query, Pairs]]:
    """Yield runs of query values with their pairs that may match in some columns.

    The pairs are with the values of these columns.

    Parameters
    ----------
    columns : int64 (c,)

    Notes
    -----
    Under the Euclidean and angular metrics products leave what their band cannot rule out
    (`pexeso.engine.precision`); under the others all pairs are left.
    """
    csr = partition.column_values
    _, posting = expand_ranges(csr.offsets[columns], csr.sizes_of(columns))
    rows = torch.unique(csr.members[posting])
    chunk_size = max(1, min(_PRODUCTS_AT_ONCE, max_pairs) // max(1, len(rows)))
    fetch_columns(partition, rows)
    stored = partition.vectors_of(rows)
    stats.bytes_read += len(rows) * partition.vector_bytes
    for begin in range(0, len(query), chunk_size):
        part = query.take(slice(begin, begin + chunk_size))
        with few_threads(stored.numel()):
            yield part, _near(partition, part, stored, rows, threshold, stats)


def _near(
    partition: Partition,
    query: Query,
    stored: torch.Tensor,
    rows: torch.Tensor,
    threshold: Threshold,
    stats: SearchStats,
) -> Pairs:
    """Return the pairs of query values and stored vectors that may match.

    Rows that surely match are given as complements.
    """
    if partition.metric.name in ("euclidean", "angular"):
        band = product_band(threshold.tau, partition.dimensions)
        quick = (
            _squares(query.vectors)[:, None] + _squares(stored) - 2.0 * (query.vectors @ stored.T)
        )
        stats.distances += quick.numel()
        queries, positions = torch.nonzero(quick <= band.possibly, as_tuple=True)
        candidates = rows[positions]
        candidates = torch.where(quick[queries, positions] <= band.surely, ~candidates, candidates)
    else:
        queries = torch.arange(len(query), device=rows.device).repeat_interleave(len(rows))
        candidates = rows.repeat(len(query))
    stats.candidates += len(candidates)
    return pairs_by_query(queries, candidates, len(query))


def _squares(vectors: torch.Tensor) -> torch.Tensor:
    return vectors.double().square_().sum(1).float()
