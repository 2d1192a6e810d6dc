"""Threshold and top-k search over one partition of sparse vectors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from pexeso.engine.lists import Lists
from pexeso.engine.sparse.comparison import pairs_within
from pexeso.engine.sparse.compiled import VALUES_A_CALL, Work, count_columns, matching_rows
from pexeso.engine.sparse.partition import SparsePartition
from pexeso.engine.sparse.space import NO_COMMON_PAIR
from pexeso.engine.sparse.vectors import SparseVectors
from pexeso.engine.vector_space import BatchColumn, ColumnCounts

MATCHES_AT_ONCE = 1 << 26
"""Pairs of a query value and a stored value that are held together where all match: 0.25 GiB."""

PAIRS_WORTH_COMPARING = 1 << 9
"""Where no more rows are left they are compared with the other values one by one."""

LEAST_VALUES, LEAST_SPARED = 4, 1
"""A query column with fewer values is searched at once, and one of which no more can be spared."""


def find_rows(
    partition: SparsePartition,
    vectors: SparseVectors,
    max_distance: float,
    n_threads: int,
    work: Work,
) -> Lists:
    """Find the stored rows that match each query value, ascending.

    From the distance on that values without a common feature have, every value matches every other.
    """
    if max_distance >= NO_COMMON_PAIR:
        known = vectors.is_known
        offsets = np.concatenate([[0], np.cumsum(known * partition.n_values)]).astype(np.int64)
        rows = np.arange(partition.n_values, dtype=np.int32)
        return Lists(offsets, np.tile(rows, int(known.sum())))
    if partition.device is not None:
        from pexeso.engine.sparse import torch_rows  # brings torch

        return torch_rows.matching_rows(partition, vectors, max_distance, work)
    return matching_rows(partition, vectors, max_distance, n_threads, work)


def search(
    partition: SparsePartition,
    vectors: SparseVectors,
    queries: Sequence[BatchColumn],
    max_distance: float,
    n_threads: int,
    work: Work,
) -> list[ColumnCounts]:
    """Find the joinable columns of each query column, ascending, with their exact counts."""
    owner = np.repeat(np.arange(len(queries)), [len(query.members) for query in queries])
    members = np.concatenate([np.zeros(0, np.int64), *(query.members for query in queries)])
    weights = np.concatenate([np.zeros(0, np.int64), *(query.weights for query in queries)])
    needed = np.array([query.min_count for query in queries], np.int64)
    n_columns = max(1, partition.n_columns)
    place, count = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for begin, matches in _runs(partition, vectors, max_distance, n_threads, work):
        some = (begin <= members) & (members < begin + len(matches))
        offsets = np.searchsorted(owner[some], np.arange(len(queries) + 1))
        query, column, more = count_columns(
            partition, matches, offsets, members[some] - begin, weights[some],
            np.ones(len(queries), np.int64), n_threads,
        )  # fmt: skip
        place, of_place = np.unique(
            np.concatenate([place, query * n_columns + column]), return_inverse=True
        )
        # Sums of whole numbers below 2^53, which float64 holds exactly.
        count = np.bincount(of_place, np.concatenate([count, more])).astype(np.int64)
    place, count = (array[count >= needed[place // n_columns]] for array in (place, count))
    bounds = np.searchsorted(place, np.arange(len(queries) + 1) * n_columns)
    return [
        (place[begin:end] % n_columns, count[begin:end])
        for begin, end in itertools.pairwise(bounds)
    ]


def _runs(
    partition: SparsePartition,
    vectors: SparseVectors,
    max_distance: float,
    n_threads: int,
    work: Work,
) -> Iterator[tuple[int, Lists]]:
    """Yield runs of query values by their first and their rows, whose number is bounded."""
    chunk_size = max(VALUES_A_CALL * n_threads, MATCHES_AT_ONCE // max(1, partition.n_values))
    for begin in range(0, len(vectors), chunk_size):
        some = vectors[begin : begin + chunk_size]
        yield begin, find_rows(partition, some, max_distance, n_threads, work)


def search_in_prefixes(
    partition: SparsePartition,
    vectors: SparseVectors,
    query: BatchColumn,
    max_distance: float,
    n_threads: int,
    work: Work,
) -> ColumnCounts:
    """Do as `search` for one query column, and search no more values than it needs (Lemma 7).

    A column that none of the first values has a match in cannot reach the count needed once the
    other values occur in fewer rows; so the values whose words are the most common are left to the
    end, and need not be looked for where no column is left, nor in other rows than those of the
    columns that are left where these are few. On a device all are searched at once: two searches of
    some of them take longer there.
    """
    order, ends = prefixes_of(partition, vectors, query)
    if len(ends) == 1 or partition.device is not None:
        return search(partition, vectors, [query], max_distance, n_threads, work)[0]
    counts = np.zeros(partition.n_columns, np.int64)
    begin, left = 0, int(query.weights.sum())
    for end in ends:
        some = order[begin:end]
        weights = query.weights[some]
        left -= int(weights.sum())
        part = vectors[query.members[some]]
        for first, matches in _runs(partition, part, max_distance, n_threads, work):
            of_run = weights[first : first + len(matches)]
            _add(partition, matches, of_run, counts, n_threads)
        alive = np.flatnonzero(counts + left >= query.min_count)
        if not left or not len(alive):
            break
        begin = end
        rest = order[begin:]
        offsets = partition.column_lists.offsets
        if (offsets[alive + 1] - offsets[alive]).sum() <= PAIRS_WORTH_COMPARING:
            rows = np.unique(partition.column_lists.members[partition.column_lists.of(alive)[1]])
            _compare(partition, vectors, query, rest, rows, max_distance, counts, work)
            break
    columns = np.flatnonzero(counts >= query.min_count)
    return columns, counts[columns]


def prefixes_of(
    partition: SparsePartition, vectors: SparseVectors, query: BatchColumn
) -> tuple[np.ndarray, list[int]]:
    """Return an order of the values of a query column, and the ends of its prefixes.

    Returns
    -------
    order : numpy.ndarray, int64
        Positions in ``query.members``; values that are dear to search come last.
    """
    total = int(query.weights.sum())
    n = len(query.members)
    if n < LEAST_VALUES or query.min_count < 2:
        return np.arange(n), [n]
    costs = vectors.sizes_in_letters()[query.members]
    order = np.lexsort((np.arange(n), costs))
    weight_sums = np.cumsum(query.weights[order])
    # From here on what is left is too little for a column that was not found.
    first = int(np.searchsorted(weight_sums, total - query.min_count + 1)) + 1
    return (order, [first, n]) if first < n - LEAST_SPARED else (np.arange(n), [n])


def _add(
    partition: SparsePartition,
    matches: Lists,
    weights: np.ndarray,
    counts: np.ndarray,
    n_threads: int,
) -> None:
    """Add the rows of some values to the counts of the columns that they match."""
    _, column, count = count_columns(
        partition,
        matches,
        np.array([0, len(matches)]),
        np.arange(len(matches)),
        weights,
        np.ones(1, np.int64),
        n_threads,
    )
    counts[column] += count


def _compare(
    partition: SparsePartition,
    vectors: SparseVectors,
    query: BatchColumn,
    positions: np.ndarray,
    rows: np.ndarray,
    max_distance: float,
    counts: np.ndarray,
    work: Work,
) -> None:
    """Add the matches of some values among some rows alone."""
    part = vectors[query.members[positions]]
    which, row_index, _ = pairs_within(partition, part, rows.astype(np.int64), max_distance)
    work.decided += len(part) * len(rows)
    offsets = np.searchsorted(which, np.arange(len(part) + 1))
    matches = Lists(offsets.astype(np.int64), rows[row_index].astype(np.int32))
    _add(partition, matches, query.weights[positions], counts, 1)


def search_exhaustively(
    partition: SparsePartition, vectors: SparseVectors, query: BatchColumn, max_distance: float
) -> ColumnCounts:
    """Do as `search` for one query column by brute force: the oracle."""
    rows = np.arange(partition.n_values)
    which, row, _ = pairs_within(partition, vectors[query.members], rows, max_distance)
    owner, posting = partition.value_lists.of(row)
    column = partition.value_lists.members[posting].astype(np.int64)
    pairs = np.unique(which[owner] * max(1, partition.n_columns) + column)
    value, column = pairs // max(1, partition.n_columns), pairs % max(1, partition.n_columns)
    counts = np.bincount(
        column, weights=query.weights[value], minlength=partition.n_columns
    ).astype(np.int64)
    columns = np.flatnonzero(counts >= query.min_count)
    return columns, counts[columns]
