"""Threshold and top-k search over one partition of sparse vectors."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from pexeso.engine.lists import Lists, distinct_numbers, offsets_of
from pexeso.engine.sparse.comparison import compare_rows, matches_by_comparison, pool
from pexeso.engine.sparse.partition import SparsePartition
from pexeso.engine.sparse.vectors import NO_COMMON_PAIR, SparseVectors
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import BatchColumn, ColumnCounts
from pexeso.runtime.compiled import compiled
from pexeso.runtime.progress import advance

loops = compiled("pexeso.engine.sparse.loops")
kernel_loops = compiled("pexeso.engine.kernels.loops")

VALUES_A_TASK = 2  # query values that are worth a thread of their own

# Query values that compiled code searches at a time, during which nothing interrupts it.
VALUES_A_CALL = 64

# To go through all rows takes as long as to visit so many times as many here and there.
VISITS_A_SCAN = 1.5

# In the place of a cosine of 0: values that share no feature are left to the caller.
_MATCHES_A_TASK = 1 << 12
_LEAST_COSINE = 1e-9


_kept = threading.local()


def matching_rows(
    partition: SparsePartition,
    vectors: SparseVectors,
    max_distance: float,
    n_threads: int,
    stats: SearchStats,
) -> Lists:
    """Find the stored rows that match each query value.

    Returns Lists: the rows of each query value, ascending.
    """
    own_words = np.empty(len(vectors.weights), np.int64)
    words = partition.vectors
    loops.find_words(vectors.text, vectors.starts, words.text, words.starts, own_words)
    n_tasks = max(1, min(2 * n_threads if n_threads > 1 else 1, len(vectors) // VALUES_A_TASK))
    n_tasks = max(n_tasks, -(-len(vectors) // VALUES_A_CALL))
    bounds = [len(vectors) * number // n_tasks for number in range(n_tasks + 1)]
    runs = list(itertools.pairwise(bounds))

    find = partial(_find, partition, vectors, own_words, max_distance)
    here = n_threads == 1 or n_tasks == 1
    results = []
    for result in map(find, runs) if here else pool(n_threads).map(find, runs):
        results.append(result)
        advance(int((result[2] != loops.DEAR).sum()))
    for *_, counts in results:
        entries, visits, decided, _, candidates = counts.tolist()
        stats.bytes_read += 4 * entries
        stats.vectors_touched += visits
        stats.defining_distances += decided
        stats.candidates += candidates
    before = offsets_of(np.array([len(rows) for rows, *_ in results]))
    found_rows = [rows for rows, *_ in results]
    starts = np.concatenate(
        [starts + first for (_, starts, *_), first in zip(results, before, strict=False)]
    )
    sizes = np.concatenate([sizes for _, _, sizes, _ in results])
    dear, n_rows, n_done = np.flatnonzero(sizes == loops.DEAR), int(before[-1]), 0
    compared = matches_by_comparison(partition, vectors[dear], max_distance) if len(dear) else ()
    for n_matches, some in compared:
        these = dear[n_done : n_done + len(n_matches)]
        sizes[these], starts[these] = n_matches, n_rows + offsets_of(n_matches)[:-1]
        found_rows.append(some)
        n_rows, n_done = n_rows + len(some), n_done + len(these)
        stats.defining_distances += len(these) * partition.n_values
        advance(len(these))
    rows, offsets = np.concatenate(found_rows), offsets_of(sizes)
    members = np.empty_like(rows)
    loops.put_in_order(starts, rows, offsets, members)
    return Lists(offsets, members)


def _find(
    partition: SparsePartition,
    vectors: SparseVectors,
    own_words: np.ndarray,
    max_distance: float,
    run: tuple[int, int],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows, where those of each value begin, their numbers, and the work."""
    n_words, n_values, (begin, end) = partition.n_words, partition.n_values, run
    # This thread keeps its working memory for the partition that it searched last. It is not there
    # while it is in use, so that a search that fails leaves none that is not empty.
    room, _kept.room = getattr(_kept, "room", None), None
    if room is None or (room.n_words, room.n_values) != (n_words, n_values):
        room = loops.Room(n_words, n_values)
    starts, sizes = np.zeros((2, end - begin), np.int64)
    counts = np.zeros(5, np.int64)
    cosine = max((1.0 - 2.0 * max_distance * max_distance) * (1.0 - 1e-9), _LEAST_COSINE)
    rows = loops.find_matches(
        begin, end, vectors.view, own_words, partition.view, room, partition.longest_word,
        partition.most_value_words, partition.space.letters, cosine, max_distance,
        VISITS_A_SCAN, starts, sizes, counts,
    )  # fmt: skip
    _kept.room = room
    return rows, starts, sizes, counts


def count_columns(
    partition: SparsePartition,
    matches: Lists,
    offsets: np.ndarray,
    members: np.ndarray,
    weights: np.ndarray,
    needed: np.ndarray,
    n_threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count, for query columns, the rows that have a match in each column of the partition.

    offsets, members, weights: int64, query column i has the values ``members[offsets[i]:offsets[i +
    1]]``, and so many rows of each; needed: int64, columns with fewer are left out; at least 1.
    Returns query, column, count: int64, ordered by query column, then column.
    """
    columns = partition.value_lists
    lists = kernel_loops.PairLists(
        matches.offsets, matches.members, columns.offsets, columns.members
    )
    n_tasks = 1
    if n_threads > 1:
        n_tasks = max(1, min(n_threads, len(matches.members) // _MATCHES_A_TASK, len(needed)))
    bounds = [len(needed) * number // n_tasks for number in range(n_tasks + 1)]

    def task(run: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return kernel_loops.count_batch(
            *run, offsets, members, weights, needed, lists, np.zeros(partition.n_columns, np.int32),
            np.zeros(partition.n_columns, np.int64), partition.n_columns,
        )  # fmt: skip

    runs = list(itertools.pairwise(bounds))
    parts = [task(run) for run in runs] if n_tasks == 1 else list(pool(n_threads).map(task, runs))
    query, column, count = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((column, query))
    return query[order], column[order], count[order]


# Pairs of a query value and a stored value that are held together where all match: 0.25 GiB.
MATCHES_AT_ONCE = 1 << 26

# Where no more rows are left they are compared with the other values one by one.
PAIRS_WORTH_COMPARING = 1 << 9

# A query column with fewer values is searched at once, and one of which no more can be spared.
LEAST_VALUES, LEAST_SPARED = 4, 1


def find_rows(
    partition: SparsePartition,
    vectors: SparseVectors,
    max_distance: float,
    n_threads: int,
    stats: SearchStats,
) -> Lists:
    """Find the stored rows that match each query value, ascending."""
    if max_distance >= NO_COMMON_PAIR:
        known, every = vectors.is_known, np.arange(partition.n_values, dtype=np.int32)
        sizes = known * len(every)
        alike = Lists(offsets_of(sizes), np.tile(every, int(known.sum())))
    elif partition.device is not None:
        from pexeso.engine.sparse import torch_rows  # brings torch

        alike = torch_rows.matching_rows(partition, vectors, max_distance, stats)
    else:
        alike = matching_rows(partition, vectors, max_distance, n_threads, stats)
    if max_distance >= 1.0:
        return alike
    sizes = np.empty(len(vectors), np.int64)
    rows = loops.complete_rows(
        vectors.view, partition.vectors.view, *partition.orders, partition.space.letters,
        max_distance, partition.longest_word, alike.offsets, alike.members, sizes,
    )  # fmt: skip
    return Lists(offsets_of(sizes), rows)


def search(
    partition: SparsePartition,
    vectors: SparseVectors,
    queries: Sequence[BatchColumn],
    max_distance: float,
    n_threads: int,
    stats: SearchStats,
) -> list[ColumnCounts]:
    """Find the joinable columns of each query column, ascending, with their exact counts."""
    owner = np.repeat(np.arange(len(queries)), [len(query.members) for query in queries])
    members = np.concatenate([np.zeros(0, np.int64), *(query.members for query in queries)])
    weights = np.concatenate([np.zeros(0, np.int64), *(query.weights for query in queries)])
    needed = np.array([query.min_count for query in queries], np.int64)
    n_columns = max(1, partition.n_columns)
    place, count = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for begin, matches in matches_in_runs(partition, vectors, max_distance, n_threads, stats):
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


def matches_in_runs(
    partition: SparsePartition,
    vectors: SparseVectors,
    max_distance: float,
    n_threads: int,
    stats: SearchStats,
    limit: int = MATCHES_AT_ONCE,
) -> Iterator[tuple[int, Lists]]:
    """Yield the first query value of each run of them, and the rows that match its values.

    limit: pairs that a run compares, unless it has one call of each thread.
    """
    chunk_size = max(VALUES_A_CALL * n_threads, limit // max(1, partition.n_values))
    for begin in range(0, len(vectors), chunk_size):
        some = vectors[begin : begin + chunk_size]
        yield begin, find_rows(partition, some, max_distance, n_threads, stats)


def search_in_prefixes(
    partition: SparsePartition,
    vectors: SparseVectors,
    query: BatchColumn,
    max_distance: float,
    n_threads: int,
    stats: SearchStats,
) -> ColumnCounts:
    """Do as `search` for one query column, and search no more values than it needs (Lemma 7).

    A column that none of the first values has a match in cannot reach the count needed once the
    other values occur in fewer rows; so the values whose words are the most common are left to the
    end, and need not be looked for where no column is left, nor in other rows than those of the
    columns that are left where these are few. On a device all are searched at once: two searches of
    some of them take longer there.
    """
    order, ends = prefixes_of(vectors, query)
    if len(ends) == 1 or partition.device is not None:
        return search(partition, vectors, [query], max_distance, n_threads, stats)[0]
    counts = np.zeros(partition.n_columns, np.int64)
    begin, left = 0, int(query.weights.sum())
    for end in ends:
        some = order[begin:end]
        weights = query.weights[some]
        left -= int(weights.sum())
        part = vectors[query.members[some]]
        for first, matches in matches_in_runs(partition, part, max_distance, n_threads, stats):
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
            part = vectors[query.members[rest]]
            which, row_index, _ = compare_rows(partition, part, rows.astype(np.int64), max_distance)
            stats.defining_distances += len(rest) * len(rows)
            offsets = np.searchsorted(which, np.arange(len(rest) + 1)).astype(np.int64)
            matches = Lists(offsets, rows[row_index].astype(np.int32))
            _add(partition, matches, query.weights[rest], counts, 1)
            break
    columns = np.flatnonzero(counts >= query.min_count)
    return columns, counts[columns]


def prefixes_of(vectors: SparseVectors, query: BatchColumn) -> tuple[np.ndarray, list[int]]:
    """Return an order of the values of a query column, and the ends of its prefixes.

    Returns order: int64, positions in ``query.members``; values that are dear to search come last.
    """
    total = int(query.weights.sum())
    n = len(query.members)
    if n < LEAST_VALUES or query.min_count < 2:
        return np.arange(n), [n]
    ends = offsets_of(np.diff(vectors.starts)[vectors.members])  # of each word, in bytes
    costs = np.diff(ends[vectors.offsets])[query.members]
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


def search_exhaustively(
    partition: SparsePartition, vectors: SparseVectors, query: BatchColumn, max_distance: float
) -> ColumnCounts:
    """Do as `search` for one query column by brute force: the oracle."""
    rows = np.arange(partition.n_values)
    which, row, _ = compare_rows(partition, vectors[query.members], rows, max_distance)
    owner, posting = partition.value_lists.of(row)
    column = partition.value_lists.members[posting].astype(np.int64)
    pairs = distinct_numbers(which[owner] * max(1, partition.n_columns) + column)
    value, column = pairs // max(1, partition.n_columns), pairs % max(1, partition.n_columns)
    counts = np.bincount(
        column, weights=query.weights[value], minlength=partition.n_columns
    ).astype(np.int64)
    columns = np.flatnonzero(counts >= query.min_count)
    return columns, counts[columns]
