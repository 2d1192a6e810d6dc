"""The search for matching values by loops compiled by numba, in as many threads as there are."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass

import numpy as np

from pexeso.engine.kernels.numba.counts import count_batch
from pexeso.engine.lists import Lists
from pexeso.engine.sparse.comparison import matches_by_comparison, pool
from pexeso.engine.sparse.loops import word_loops
from pexeso.engine.sparse.loops.lane_loops import LANES
from pexeso.engine.sparse.loops.search_loops import (
    CANDIDATES,
    DEAR,
    DECIDED,
    ENTRIES,
    LEFT_OUT,
    VISITS,
    find_matches,
)
from pexeso.engine.sparse.loops.views import QueryValues, Room
from pexeso.engine.sparse.partition import SparsePartition
from pexeso.engine.sparse.vectors import SparseVectors
from pexeso.runtime.progress import advance
from pexeso.runtime.ranges import offsets_of

VALUES_A_TASK = 32
"""Query values that are worth a thread of their own."""

VALUES_A_CALL = 64
"""Query values that compiled code searches at a time, during which nothing interrupts it."""

VISITS_A_SCAN = 1.5
"""To go through all rows takes as long as to visit so many times as many here and there."""

_MATCHES_A_TASK = 1 << 12
_LEAST_COSINE = 1e-9
"""In the place of a cosine of 0: values that share no feature are left to the caller."""


@dataclass
class Work:
    """What a search looked at."""

    entries: int = 0
    visits: int = 0
    candidates: int = 0
    decided: int = 0
    lists_left_out: int = 0

    def add(self, counts: np.ndarray) -> None:
        """Add the counts of a task."""
        self.entries += int(counts[ENTRIES])
        self.visits += int(counts[VISITS])
        self.candidates += int(counts[CANDIDATES])
        self.decided += int(counts[DECIDED])
        self.lists_left_out += int(counts[LEFT_OUT])


_kept = threading.local()


def _room_for(partition: SparsePartition) -> Room:
    """Return the working memory of this thread for a partition; that for the last one is kept.

    It takes 61 bytes a word and 9 a value of the partition.
    """
    n_words, n_values = partition.n_words, partition.n_values
    room = getattr(_kept, "room", None)
    # Not there while it is in use, so that a search that fails leaves none that is not empty.
    _kept.room = None
    if room is not None and (len(room.words), len(room.rows)) == (n_words, n_values):
        return room
    return Room(
        lanes=np.zeros((LANES, n_words), np.float32),
        packed=np.empty((n_words, 2), np.uint64),
        words=np.empty(n_words, np.int32),
        flags=np.zeros(-(-n_words // 8) * 8, np.uint8),
        known=np.full(n_words, -1.0),
        known_words=np.empty(n_words, np.int32),
        gained=np.zeros(n_values, np.uint8),
        touched=np.empty(n_values, np.int32),
        rows=np.empty(n_values, np.int32),
    )


def matching_rows(
    partition: SparsePartition,
    vectors: SparseVectors,
    max_distance: float,
    n_threads: int,
    work: Work,
) -> Lists:
    """Find the stored rows that match each query value.

    Returns
    -------
    Lists
        The rows of each query value, ascending.
    """
    own_words = np.empty(len(vectors.weights), np.int64)
    words = partition.vectors
    word_loops.find_words(vectors.text, vectors.starts, words.text, words.starts, own_words)
    n_tasks = max(1, min(4 * n_threads if n_threads > 1 else 1, len(vectors) // VALUES_A_TASK))
    n_tasks = max(n_tasks, -(-len(vectors) // VALUES_A_CALL))
    bounds = [len(vectors) * number // n_tasks for number in range(n_tasks + 1)]
    runs = list(itertools.pairwise(bounds))

    def task(run: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return _find(partition, vectors, own_words, max_distance, *run)

    here = n_threads == 1 or n_tasks == 1
    results = []
    for result in map(task, runs) if here else pool(n_threads).map(task, runs):
        results.append(result)
        advance(int((result[2] != DEAR).sum()))
    for *_, counts in results:
        work.add(counts)
    before = offsets_of(np.array([len(rows) for rows, *_ in results]))
    found_rows = [rows for rows, *_ in results]
    starts = np.concatenate(
        [starts + first for (_, starts, *_), first in zip(results, before, strict=False)]
    )
    sizes = np.concatenate([sizes for _, _, sizes, _ in results])
    dear, n_rows, n_done = np.flatnonzero(sizes == DEAR), int(before[-1]), 0
    for n_matches, some in matches_by_comparison(partition, vectors[dear], max_distance):
        these = dear[n_done : n_done + len(n_matches)]
        sizes[these], starts[these] = n_matches, n_rows + offsets_of(n_matches)[:-1]
        found_rows.append(some)
        n_rows, n_done = n_rows + len(some), n_done + len(these)
        work.decided += len(these) * partition.n_values
        advance(len(these))
    rows, offsets = np.concatenate(found_rows), offsets_of(sizes)
    members = np.empty_like(rows)
    word_loops.put_in_order(starts, rows, offsets, members)
    return Lists(offsets, members)


def _find(
    partition: SparsePartition,
    vectors: SparseVectors,
    own_words: np.ndarray,
    max_distance: float,
    begin: int,
    end: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows, where those of each value begin, their numbers, and the work."""
    room = _room_for(partition)
    starts, sizes = np.zeros((2, end - begin), np.int64)
    counts = np.zeros(5, np.int64)
    cosine = max((1.0 - 2.0 * max_distance * max_distance) * (1.0 - 1e-9), _LEAST_COSINE)
    query = QueryValues(
        vectors.text, vectors.starts, vectors.weights, vectors.squares, vectors.offsets,
        vectors.members, vectors.norms, own_words,
    )  # fmt: skip
    rows = find_matches(
        begin, end, query, partition.stored, room, partition.longest_word,
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

    Parameters
    ----------
    offsets, members, weights : numpy.ndarray, int64
        Query column i has the values ``members[offsets[i]:offsets[i + 1]]``, and so many rows of
        each.
    needed : numpy.ndarray, int64
        Columns with fewer are left out; at least 1.

    Returns
    -------
    query, column, count : numpy.ndarray, int64
        Ordered by query column, then column.
    """
    columns = partition.value_lists
    n_tasks = 1
    if n_threads > 1:
        n_tasks = max(1, min(n_threads, len(matches.members) // _MATCHES_A_TASK, len(needed)))
    bounds = [len(needed) * number // n_tasks for number in range(n_tasks + 1)]

    def task(run: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return count_batch(
            *run, offsets, members, weights, needed, matches.offsets, matches.members,
            columns.offsets, columns.members, np.zeros(partition.n_columns, np.int32),
            np.zeros(partition.n_columns, np.int64), partition.n_columns,
        )  # fmt: skip

    runs = list(itertools.pairwise(bounds))
    parts = [task(run) for run in runs] if n_tasks == 1 else list(pool(n_threads).map(task, runs))
    query, column, count = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((column, query))
    return query[order], column[order], count[order]
