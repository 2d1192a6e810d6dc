"""Threshold and top-k search over one partition of sparse vectors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from pexeso.engine.lists import Lists
from pexeso.engine.sparse.compiled import Work, count_columns, matching_rows, pool
from pexeso.engine.sparse.loops import product_loops
from pexeso.engine.sparse.partition import SparsePartition
from pexeso.engine.sparse.space import NO_COMMON_PAIR
from pexeso.engine.sparse.vectors import SparseVectors
from pexeso.engine.vector_space import BatchColumn, ColumnCounts
from pexeso.runtime.threads import available_threads

PAIRS_AT_ONCE = 1 << 22
"""Of values whose distances are held together, by all threads: 32 MiB."""

VALUES_AT_ONCE = 256
"""Query values that are compared together: what is read of a stored word is read once for them."""

PAIRS_A_THREAD = 1 << 16
"""Pairs that are worth a thread of their own."""

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
    matches = find_rows(partition, vectors, max_distance, n_threads, work)
    offsets = np.concatenate([[0], np.cumsum([len(query.members) for query in queries])])
    members = np.concatenate([np.zeros(0, np.int64), *(query.members for query in queries)])
    weights = np.concatenate([np.zeros(0, np.int64), *(query.weights for query in queries)])
    needed = np.array([query.min_count for query in queries], np.int64)
    query, column, count = count_columns(
        partition, matches, offsets.astype(np.int64), members, weights, needed, n_threads
    )
    bounds = np.searchsorted(query, np.arange(len(queries) + 1))
    return [(column[begin:end], count[begin:end]) for begin, end in itertools.pairwise(bounds)]


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
        matches = find_rows(partition, part, max_distance, n_threads, work)
        _add(partition, matches, weights, counts, n_threads)
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
    ends : list of int
        The last is the number of values. One prefix where few values could be spared.
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


def pairs_within(
    partition: SparsePartition, vectors: SparseVectors, rows: np.ndarray, max_distance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs of query values and some stored rows that match, by brute force.

    Returns
    -------
    query : numpy.ndarray, int64
    position : numpy.ndarray, int64
        In `rows`. Ordered by query value, then position.
    distance : numpy.ndarray, float64
        As a fraction of the largest distance.
    """
    matches = []

    def keep(begin: int, first: int, distances: np.ndarray) -> None:
        query, position = np.nonzero((distances <= max_distance).T)
        matches.append((query + begin, position + first, distances[position, query]))

    compare(partition, vectors, rows, keep)
    if not matches:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    query, position, distance = (np.concatenate(part) for part in zip(*matches, strict=True))
    if len(matches) == 1:
        return query, position, distance
    order = np.lexsort((position, query))
    return query[order], position[order], distance[order]


def compare(
    partition: SparsePartition,
    vectors: SparseVectors,
    rows: np.ndarray,
    use: Callable[[int, int, np.ndarray], None],
) -> None:
    """Compute all distances of query values and some stored rows by the definition, in pieces.

    Parameters
    ----------
    use : callable
        Called with the first query value and the first position in `rows` of each piece, in any
        order and by several threads, and with its distances, float64 (rows, values), as fractions
        of the largest distance.
    """
    n_pairs = len(vectors) * len(rows)
    n_threads = max(1, min(available_threads(), n_pairs // PAIRS_A_THREAD))
    at_once = max(1, PAIRS_AT_ONCE // n_threads)
    n_values = max(1, min(VALUES_AT_ONCE, at_once, -(-len(vectors) // n_threads)))
    n_rows = max(1, at_once // n_values)
    for first in range(0, len(rows), n_rows):
        others = partition.vectors.take(rows[first : first + n_rows])

        def task(begin: int, others: SparseVectors = others, first: int = first) -> None:
            use(begin, first, vectors[begin : begin + n_values].distances(others).T)

        begins = range(0, len(vectors), n_values)
        for _ in map(task, begins) if n_threads == 1 else pool(n_threads).map(task, begins):
            pass


def nearest_in_columns(
    partition: SparsePartition, vectors: SparseVectors, columns: np.ndarray, max_distance: float
) -> np.ndarray:
    """Return the distance of each query value to the nearest value of each column, float64 (r, n).

    It is `max_distance` where no value is nearer.
    """
    owner, posting = partition.column_lists.of(columns)
    rows, position = np.unique(partition.column_lists.members[posting], return_inverse=True)
    order = np.argsort(position, kind="stable")
    owner, position = owner[order], position[order]
    nearest = np.full((len(columns), len(vectors)), max_distance)

    def lower(begin: int, first: int, distances: np.ndarray) -> None:
        start, stop = np.searchsorted(position, [first, first + len(distances)])
        product_loops.keep_nearest(
            distances, position[start:stop] - first, owner[start:stop],
            nearest[:, begin : begin + distances.shape[1]],
        )  # fmt: skip

    compare(partition, vectors, rows.astype(np.int64), lower)
    return nearest


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
