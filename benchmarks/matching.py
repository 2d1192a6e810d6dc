"""What the rivals share, so that only the matching differs: deciding pairs near the threshold, and counting per column.

Whether a pair matches is defined by its float64 distance. A float32 method may decide a pair alone only where its rounding error cannot change the
outcome; what lies in between, the band, is decided again by the defining distance. Without that, agreement would be luck.
"""

from __future__ import annotations

import torch

from benchmarks.lake import METRIC, Answer, BenchmarkQuery
from pexeso.engine.arrays import expand_ranges, expand_ranges_in_chunks
from pexeso.engine.postings import Csr

UNIT_ROUNDOFF = 2.0**-24
ROWS_AT_ONCE = 1 << 16
POSTINGS_AT_ONCE = 1 << 20
MATRIX_CELLS = 1 << 26

_FLOAT64_SLACK = 2.0**-40


def product_error(dimensions: int, largest_norm: float) -> float:
    """Bound the error of a float32 inner product of two vectors.

    Summed in any order, with or without fused multiply-add, ``|fl(x . y) - x . y| <= g |x|.|y| <= g |x| |y|`` with
    ``g = d u / (1 - d u)`` and ``u = 2**-24`` (Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1; the second step is Cauchy and
    Schwarz). ``2**-40`` is added for the float64 rounding of norms and of the defining distance, which is below ``d 2**-52``.

    Parameters
    ----------
    dimensions : int
        d, at most 4,096.
    largest_norm : float
        No vector of either side is longer.

    Examples
    --------
    >>> 5.9e-6 < product_error(100, 1.0) < 6.0e-6
    True
    """
    relative = dimensions * UNIT_ROUNDOFF / (1.0 - dimensions * UNIT_ROUNDOFF)
    return relative * largest_norm**2 + _FLOAT64_SLACK


def square_error(dimensions: int, largest_norm: float) -> float:
    """Bound the error of a float32 squared distance, computed directly or as ``|x|^2 + |y|^2 - 2 x . y``.

    The second form holds three inner products, each off by at most `product_error` and the last counted twice, and three more roundings of
    numbers up to ``4 L^2`` (L the largest norm). The first form rounds each difference once, squares it and sums d terms: off by less than
    ``(d + 3) u / (1 - (d + 3) u)`` of a number of at most ``4 L^2``. The bound of the second form, with d + 8 for d, covers both.

    Examples
    --------
    >>> 2.5e-5 < square_error(100, 1.0) < 2.7e-5
    True
    """
    return 4.0 * product_error(dimensions + 8, largest_norm)


def decide(
    queries: torch.Tensor, values: torch.Tensor, open_pairs: torch.Tensor, query: BenchmarkQuery, vectors: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Keep the pairs that match: those that are sure, and of the open ones those whose defining distance is within tau.

    Parameters
    ----------
    queries, values : int64 (p,)
        Rows of ``query.vectors`` and of `vectors`.
    open_pairs : bool (p,)
        Pairs in the band.
    vectors : float32 (N, d)

    Returns
    -------
    tuple of int64 tensors
    """
    places = torch.nonzero(open_pairs)[:, 0]
    if not len(places):
        return queries, values
    kept = torch.ones_like(open_pairs)
    ours = query.vectors.to(vectors.device)
    for part in torch.split(places, ROWS_AT_ONCE):
        distance = METRIC.distances(ours[queries[part]], vectors[values[part]])
        kept[part] = distance <= query.tau
    return queries[kept], values[kept]


def count_columns(
    queries: torch.Tensor, values: torch.Tensor, query: BenchmarkQuery, value_columns: Csr, n_columns: int
) -> Answer:
    """Count, for each column, the query rows with a match in it; keep the columns with as many as needed.

    Parameters
    ----------
    queries, values : int64 (p,)
        Matching pairs.
    query : BenchmarkQuery
    value_columns : Csr
        Columns of each value, on the pairs' device.
    n_columns : int

    Notes
    -----
    A boolean matrix (query values, columns) of at most 64 Mi cells at a time: a query value counts once for a column, however many
    of its values match.
    """
    device = queries.device
    weights = query.weights.to(device)
    counts = torch.zeros(n_columns, dtype=torch.int64, device=device)
    rows = max(1, MATRIX_CELLS // max(1, n_columns))
    for begin in range(0, len(query), rows):
        inside = slice(None) if rows >= len(query) else (queries >= begin) & (queries < begin + rows)
        ours, theirs = queries[inside] - begin, values[inside]
        hit = torch.zeros((min(rows, len(query) - begin), n_columns), dtype=torch.bool, device=device)
        _mark(hit, ours, theirs, value_columns)
        row, column = torch.nonzero(hit, as_tuple=True)
        counts.index_add_(0, column, weights[begin + row])
    columns = torch.nonzero(counts >= query.needed)[:, 0]
    return columns.cpu(), counts[columns].cpu()


def _mark(hit: torch.Tensor, queries: torch.Tensor, values: torch.Tensor, value_columns: Csr) -> None:
    starts, sizes = value_columns.offsets[values], value_columns.offsets[values + 1] - value_columns.offsets[values]
    few = int(sizes.sum()) <= POSTINGS_AT_ONCE
    chunks = [expand_ranges(starts, sizes)] if few else expand_ranges_in_chunks(starts, sizes, POSTINGS_AT_ONCE)
    for owner, posting in chunks:
        hit[queries[owner], value_columns.members[posting].long()] = True
