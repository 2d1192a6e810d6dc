"""The space of letters, searched by posting lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pexeso.engine.lists import Lists, distinct_numbers, offsets_of, ranges, ranked_numbers
from pexeso.engine.sparse.comparison import compare, compare_rows, pool
from pexeso.engine.sparse.partition import SparsePartition, build_partition
from pexeso.engine.sparse.search import (
    matches_in_runs,
    search,
    search_exhaustively,
    search_in_prefixes,
)
from pexeso.engine.sparse.vectors import (
    NO_COMMON_PAIR,
    LetterSpace,
    SparseVectors,
    distances_at,
    pair_costs,
    pair_distances,
)
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import (
    BatchColumn,
    ColumnCounts,
    Finder,
    Goal,
    Pairs,
    VectorSpace,
    best_columns,
)
from pexeso.errors import IndexCorruptError
from pexeso.runtime.compiled import compiled
from pexeso.runtime.progress import advance
from pexeso.runtime.threads import FEW_PAIRS, available_threads, require_memory_for_pairs

if TYPE_CHECKING:
    import torch

    from pexeso.engine.kernel import Kernel
    from pexeso.engine.partition import Pages

loops = compiled("pexeso.engine.sparse.loops")

ROWS_LOOKED_AT = 16

# From so many stored rows, and pairs of a query value and one of them, on lists are worth making;
# unless more than one of so many pairs matches.
ROWS_WORTH_LISTS, PAIRS_WORTH_LISTS, PAIRS_A_MATCH = 1 << 9, 1 << 19, 32

# Lists of a whole partition serve for some of its rows if these are at least such a share of it.
SHARE_WORTH_ALL = 0.25

_ROWS_AT_ONCE = 1 << 14
_PAIRS_AT_ONCE = 1 << 16
# Pairs that are compared before those that match are handed on: 0.4 GiB where all do.
_PAIRS_OF_A_RUN = 1 << 24


@dataclass(frozen=True)
class SparseProbe:
    """The rows of a query column whose values have words.

    known: bool (n,); weights: int64 (n,).
    """

    known: np.ndarray
    weights: np.ndarray

    @property
    def max_count(self) -> int:
        return int(self.weights[self.known].sum())

    @property
    def n_near(self) -> int:
        return int(self.known.sum())

    def reaching(self, n: int) -> np.ndarray:
        return self.known


@dataclass(frozen=True)
class SparseSpace(VectorSpace):
    """Values as bags of words, and words as bags of pairs of letters."""

    letters: LetterSpace
    device: torch.device | None = None
    has_kernels: ClassVar[bool] = False
    holds_pairs: ClassVar[bool] = False

    def concatenate(self, parts: Sequence[SparseVectors]) -> SparseVectors:
        return SparseVectors.concatenate(parts or [SparseVectors.empty(self.letters)])

    def distances(self, left: SparseVectors, right: SparseVectors) -> np.ndarray:
        return left.distances(right).astype(np.float32)

    def pair_distances(self, left: SparseVectors, right: SparseVectors) -> np.ndarray:
        return pair_distances(left, right)

    def stored(self, partition: SparsePartition, rows: np.ndarray) -> SparseVectors:
        return partition.vectors.take(np.asarray(rows, np.int64))

    def open(
        self,
        arrays: Mapping[str, np.ndarray],
        device: torch.device | str = "cpu",
        pages: Pages | None = None,
    ) -> SparsePartition:
        return SparsePartition.from_arrays(arrays, self.letters, self.device)

    def require_plausible(self, partition: SparsePartition, where: str, *, rows: bool) -> None:
        n = min(ROWS_LOOKED_AT, partition.n_values)
        if not rows or not n:
            return
        some = partition.vectors.take(np.arange(n) * partition.n_values // n)
        right = SparseVectors.from_words(
            self.letters, some.text, some.starts, some.weights, some.offsets, some.members
        )
        n_wrong = int((right.norms != some.norms).sum())
        if n_wrong:
            raise IndexCorruptError(
                f"{where} cannot be searched: Of {n} values looked at {n_wrong} do not have the "
                "length of their words. It was changed; 'pexeso check' tells more."
            )

    def probe(
        self,
        partition: SparsePartition,
        vectors: SparseVectors,
        weights: np.ndarray,
        total: int,
        goal: Goal,
        kernel: Kernel,
        stats: SearchStats,
    ) -> SparseProbe:
        return SparseProbe(vectors.is_known, weights)

    def prefetch(
        self, partition: SparsePartition, probe: SparseProbe, goal: Goal, kernel: Kernel,
        stats: SearchStats,
    ) -> None:  # fmt: skip
        """Leave reading ahead to the system."""

    def search(
        self,
        partition: SparsePartition,
        vectors: SparseVectors,
        weights: np.ndarray,
        total: int,
        goal: Goal,
        stats: SearchStats,
        left_out: np.ndarray | None = None,
        *,
        kernel: Kernel | None = None,
        max_pairs: int,
        probe: SparseProbe | None = None,
    ) -> ColumnCounts:
        occurring = np.flatnonzero(weights > 0)
        query = BatchColumn(occurring, weights[occurring], goal.min_count)
        with _counted(stats):
            columns, counts = search_in_prefixes(
                partition, vectors, query, goal.max_distance, available_threads(), stats
            )
        return best_columns(columns, counts, goal, left_out)

    def search_batch(
        self,
        partition: SparsePartition,
        vectors: SparseVectors,
        queries: Sequence[BatchColumn],
        goal: Goal,
        stats: SearchStats,
        *,
        kernel: Kernel | None = None,
        max_pairs: int,
    ) -> list[ColumnCounts]:
        n_threads = available_threads()
        with _counted(stats):
            return search(partition, vectors, queries, goal.max_distance, n_threads, stats)

    def search_exhaustively(
        self,
        partition: SparsePartition,
        vectors: SparseVectors,
        weights: np.ndarray,
        goal: Goal,
        stats: SearchStats,
        left_out: np.ndarray | None = None,
    ) -> ColumnCounts:
        query = BatchColumn(np.arange(len(vectors)), weights, goal.min_count)
        with _counted(stats):
            column_counts = search_exhaustively(partition, vectors, query, goal.max_distance)
        stats.defining_distances += len(vectors) * partition.n_values
        return best_columns(*column_counts, goal, left_out)

    def pairs_within(
        self,
        partition: SparsePartition,
        vectors: SparseVectors,
        rows: np.ndarray,
        max_distance: float,
        stats: SearchStats,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not _is_worth_lists(vectors, rows, max_distance):
            stats.defining_distances += len(vectors) * len(rows)
            return compare_rows(partition, vectors, rows, max_distance, report=advance)
        parts, n_pairs = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))], 0
        for pairs in _pairs_by_lists(partition, vectors, rows, max_distance, stats):
            parts.append(pairs)
            n_pairs += len(pairs[0])
            if n_pairs > FEW_PAIRS:
                require_memory_for_pairs(n_pairs, max_distance)
        query, position, distance = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((position, query))
        return query[order], position[order], distance[order]

    def finder(self, partition: SparsePartition, rows: np.ndarray) -> Finder:
        part, positions = _with_lists(partition, rows)

        def find(vectors: SparseVectors, max_distance: float) -> Iterator[Pairs]:
            n_threads = available_threads()
            for begin, matches in matches_in_runs(
                part, vectors, max_distance, n_threads, SearchStats(), limit=_PAIRS_OF_A_RUN
            ):
                query, members = _own_pairs(begin, matches, positions)
                distances = _distances_at(vectors, query, part, members, n_threads)
                yield query, positions[members], distances

        return find

    def costs(
        self,
        partition: SparsePartition,
        vectors: SparseVectors,
        query: np.ndarray,
        rows: np.ndarray,
        distances: np.ndarray,
    ) -> np.ndarray:
        costs = np.empty(len(query))
        for begin in range(0, len(query), _PAIRS_AT_ONCE):
            some = slice(begin, begin + _PAIRS_AT_ONCE)
            stored = self.stored(partition, rows[some])
            costs[some] = pair_costs(vectors.take(query[some]), stored, distances[some])
        return costs

    def nearest_in_columns(
        self,
        partition: SparsePartition,
        vectors: SparseVectors,
        columns: np.ndarray,
        max_distance: float,
        stats: SearchStats,
    ) -> np.ndarray:
        owner, posting = partition.column_lists.of(columns)
        members = partition.column_lists.members[posting]
        rows, position = ranked_numbers(members, partition.n_values)
        order = np.argsort(position, kind="stable")
        owner, position = owner[order], position[order]
        nearest = np.full((len(columns), len(vectors)), max_distance)
        first = offsets_of(np.bincount(position, minlength=len(rows)))

        def lower(query: np.ndarray, places: np.ndarray, distances: np.ndarray) -> None:
            sizes = np.diff(first)[places]
            pair = np.repeat(np.arange(len(query)), sizes)
            of_pair = owner[ranges(first[places], sizes)], query[pair]
            np.minimum.at(nearest, of_pair, distances[pair])

        rows = rows.astype(np.int64)
        if _is_worth_lists(vectors, rows, max_distance):
            lower(*_equal_pairs(partition, vectors, rows))
            # Nothing is nearer than an equal value: only what lacks one is searched for.
            lacking = (nearest > 0) & vectors.is_known
            some = np.flatnonzero(lacking.any(0))
            kept = distinct_numbers(position[lacking.any(1)[owner]])
            for query, places, distances in _pairs_by_lists(
                partition, vectors[some], rows[kept], max_distance, stats
            ):
                lower(some[query], kept[places], distances)
            return nearest
        stats.defining_distances += len(vectors) * len(rows)

        def keep(begin: int, first_row: int, distances: np.ndarray) -> None:
            start, stop = np.searchsorted(position, [first_row, first_row + len(distances)])
            loops.keep_nearest(
                distances, position[start:stop] - first_row, owner[start:stop],
                nearest[:, begin : begin + distances.shape[1]],
            )  # fmt: skip

        for n_pairs in compare(partition, vectors, rows, keep):
            advance(n_pairs)
        return nearest

    def nearest(
        self, partition: SparsePartition, vectors: SparseVectors, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        position, nearest = np.zeros(len(vectors), np.int64), np.full(len(vectors), np.inf)
        # By words: where the nearest is apart, that is what there is to say of a value.
        vectors = vectors.without_marks()
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            others = partition.vectors.take(rows[begin : begin + _ROWS_AT_ONCE])
            distances = vectors.distances(others.without_marks())
            which = distances.argmin(1)
            distance = distances[np.arange(len(vectors)), which]
            nearer = distance < nearest
            position[nearer], nearest[nearer] = which[nearer] + begin, distance[nearer]
        return position, nearest


def _is_worth_lists(vectors: SparseVectors, rows: np.ndarray, max_distance: float) -> bool:
    n_rows = len(rows)
    is_large = n_rows >= ROWS_WORTH_LISTS and len(vectors) * n_rows >= PAIRS_WORTH_LISTS
    return is_large and max_distance < NO_COMMON_PAIR


def _equal_pairs(
    partition: SparsePartition, vectors: SparseVectors, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pairs of query values and positions in `rows` at distance 0, by hashes of values."""
    ours, forms = vectors.marks.forms, partition.vectors.marks.forms[rows]
    order = np.argsort(forms, kind="stable")
    begin = np.searchsorted(forms, ours, "left", sorter=order)
    sizes = np.searchsorted(forms, ours, "right", sorter=order) - begin
    sizes[ours == 0] = 0  # the form is not known
    query, places = np.repeat(np.arange(len(ours)), sizes), order[ranges(begin, sizes)]
    distances = distances_at(vectors, query, partition.vectors, rows[places])
    is_equal = distances == 0
    return query[is_equal], places[is_equal], distances[is_equal]


def _pairs_by_lists(
    partition: SparsePartition,
    vectors: SparseVectors,
    rows: np.ndarray,
    max_distance: float,
    stats: SearchStats,
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the matching pairs of query values and some stored rows, some query values at a time.

    Query values, positions in `rows`, and distances. Few rows of a partition get lists of their
    own, which takes less time than to search all of it.
    """
    part, positions = _with_lists(partition, rows)
    counted, n_threads = SearchStats(), available_threads()
    for begin, matches in matches_in_runs(
        part, vectors, max_distance, n_threads, counted, limit=_PAIRS_OF_A_RUN
    ):
        n_compared = len(matches) * len(rows)
        if PAIRS_A_MATCH * len(matches.members) > n_compared:
            some_vectors = vectors[begin : begin + len(matches)]
            query, places, distances = compare_rows(partition, some_vectors, rows, max_distance)
            counted.defining_distances += n_compared
            yield query + begin, places, distances
            advance(n_compared)
            continue
        query, members = _own_pairs(begin, matches, positions)
        yield query, positions[members], _distances_at(vectors, query, part, members, n_threads)
        stats.defining_distances += len(query)
        advance(n_compared)
    stats.defining_distances += counted.defining_distances


def _with_lists(partition: SparsePartition, rows: np.ndarray) -> tuple[SparsePartition, np.ndarray]:
    """Return a partition that has some stored rows, and of its rows the position in them or -1."""
    if len(rows) >= SHARE_WORTH_ALL * partition.n_values:
        positions = np.full(partition.n_values, -1)
        positions[rows] = np.arange(len(rows))
        return partition, positions
    none = np.zeros(0, np.int64)
    arrays, positions = build_partition(partition.vectors.take(rows), np.zeros(1, np.int64), none)
    return SparsePartition.from_arrays(arrays, partition.space, partition.device), positions


def _own_pairs(begin: int, matches: Lists, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the query values and the rows that match, of the rows that have a position."""
    query = np.repeat(np.arange(len(matches)) + begin, np.diff(matches.offsets))
    is_own = positions[matches.members] >= 0
    return query[is_own], matches.members[is_own].astype(np.int64)


def _distances_at(
    vectors: SparseVectors,
    query: np.ndarray,
    partition: SparsePartition,
    rows: np.ndarray,
    n_threads: int,
) -> np.ndarray:
    """Return the distances of query values and stored rows, some of them in each thread."""
    firsts = range(0, len(query), _PAIRS_AT_ONCE)
    pieces = [slice(first, first + _PAIRS_AT_ONCE) for first in firsts]

    def compute(some: slice) -> np.ndarray:
        return distances_at(vectors, query[some], partition.vectors, rows[some])

    here = n_threads == 1 or len(pieces) == 1
    parts = map(compute, pieces) if here else pool(n_threads).map(compute, pieces)
    return np.concatenate([np.zeros(0), *parts])


@contextmanager
def _counted(stats: SearchStats) -> Iterator[None]:
    try:
        with stats.phase("verify"):
            yield
    finally:
        stats.partitions += 1
