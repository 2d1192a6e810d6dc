"""Comparison of everything with everything, by the definition and in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from pexeso.engine.sparse.partition import SparsePartition
from pexeso.engine.sparse.vectors import SparseVectors
from pexeso.runtime.threads import FEW_PAIRS, available_threads, require_memory_for_pairs

PAIRS_AT_ONCE = 1 << 22  # of values whose distances are held together, by all threads: 32 MiB

# Query values that are compared together: what is read of a stored word is read once for them.
VALUES_AT_ONCE = 256

PAIRS_A_THREAD = 1 << 16  # pairs that are worth a thread of their own

# Query values that are compared together with all stored ones, however many these are.
LEAST_AT_ONCE = 16


@cache
def pool(n_threads: int) -> ThreadPoolExecutor:
    """Return the threads of this process for tasks that start none themselves."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="pexeso-sparse")


def compare_rows(
    partition: SparsePartition,
    vectors: SparseVectors,
    rows: np.ndarray,
    max_distance: float,
    *,
    report: Callable[[int], None] = lambda n_pairs: None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs of query values and some stored rows that match.

    `report` is called with the number of pairs of each piece that was compared.

    Returns query: int64; position: int64, in `rows`. Ordered by query value, then position;
    distance: float64, as a fraction of the largest distance.
    """
    matches: list[tuple[np.ndarray, ...]] = []

    def keep(begin: int, first: int, distances: np.ndarray) -> None:
        query, position = np.nonzero((distances <= max_distance).T)
        matches.append((query + begin, position + first, distances[position, query]))

    n_pieces = n_matches = 0
    for n_pairs in compare(partition, vectors, rows, keep):
        report(n_pairs)
        n_matches += sum(len(query) for query, *_ in matches[n_pieces:])
        n_pieces = len(matches)
        if n_matches > FEW_PAIRS:
            require_memory_for_pairs(n_matches, max_distance)
    nothing = np.zeros(0, np.int64)
    parts = zip((nothing, nothing, np.zeros(0)), *matches, strict=True)
    query, position, distance = (np.concatenate(part) for part in parts)
    order = np.lexsort((position, query))
    return query[order], position[order], distance[order]


def compare(
    partition: SparsePartition,
    vectors: SparseVectors,
    rows: np.ndarray,
    use: Callable[[int, int, np.ndarray], None],
) -> Iterator[int]:
    """Compute all distances of query values and some stored rows by the definition, in pieces.

    Nothing is done but while the caller goes through the numbers of pairs of the pieces.

    Parameters
    ----------
    use : callable
        Called with the first query value and the first position in `rows` of each piece, in any
        order and by several threads, and with its distances, float64 (rows, values), as fractions
        of the largest distance.
    """
    n_pairs = len(vectors) * len(rows)
    n_threads = n_pairs // PAIRS_A_THREAD
    n_threads = min(available_threads(), n_threads) if n_threads > 1 else 1
    chunk_size = max(1, PAIRS_AT_ONCE // n_threads)
    n_values = max(1, min(VALUES_AT_ONCE, chunk_size, -(-len(vectors) // n_threads)))
    n_rows = max(1, chunk_size // n_values)
    for first in range(0, len(rows), n_rows):
        others = partition.vectors.take(rows[first : first + n_rows])

        def task(begin: int, others: SparseVectors = others, first: int = first) -> int:
            distances = vectors[begin : begin + n_values].distances(others).T
            use(begin, first, distances)
            return distances.size

        begins = range(0, len(vectors), n_values)
        yield from map(task, begins) if n_threads == 1 else pool(n_threads).map(task, begins)


def matches_by_comparison(
    partition: SparsePartition, vectors: SparseVectors, max_distance: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the number of matching rows of each query value, and the rows, ascending, int32.

    A few query values at a time.
    """
    n_rows = partition.n_values
    n_values = max(LEAST_AT_ONCE, min(VALUES_AT_ONCE, 2 * PAIRS_AT_ONCE // max(1, n_rows)))
    rows = np.arange(n_rows)
    for begin in range(0, len(vectors), n_values):
        some = vectors[begin : begin + n_values]
        is_match = np.zeros((len(some), n_rows), bool)

        def mark(
            value: int, row: int, distances: np.ndarray, is_match: np.ndarray = is_match
        ) -> None:
            after = value + distances.shape[1], row + len(distances)
            is_match[value : after[0], row : after[1]] = (distances <= max_distance).T

        for _ in compare(partition, some, rows, mark):
            pass
        yield is_match.sum(1), np.nonzero(is_match)[1].astype(np.int32)
