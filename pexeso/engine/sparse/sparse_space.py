"""The space of letters, searched by posting lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pexeso.engine.sparse.comparison import nearest_in_columns, pairs_within
from pexeso.engine.sparse.compiled import Work
from pexeso.engine.sparse.partition import SparsePartition
from pexeso.engine.sparse.search import search, search_exhaustively, search_in_prefixes
from pexeso.engine.sparse.space import LetterSpace
from pexeso.engine.sparse.vectors import SparseVectors, pair_distances
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import BatchColumn, ColumnCounts, Goal, VectorSpace
from pexeso.errors import IndexCorruptError
from pexeso.runtime.threads import available_threads

if TYPE_CHECKING:
    import torch

    from pexeso.engine.fetching import Pages
    from pexeso.engine.interface import KernelChoice

ROWS_LOOKED_AT = 16

_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class SparseProbe:
    """The rows of a query column whose values have words.

    Attributes
    ----------
    known : numpy.ndarray of shape (n,), bool
    weights : numpy.ndarray of shape (n,), int64
    """

    known: np.ndarray
    weights: np.ndarray

    @property
    def max_count(self) -> int:
        """Rows that can match something."""
        return int(self.weights[self.known].sum())

    @property
    def n_near(self) -> int:
        """Values that can match something."""
        return int(self.known.sum())

    def reaching(self, n: int) -> np.ndarray:
        """Return which values may match something, bool (n,)."""
        return self.known


@dataclass(frozen=True)
class SparseSpace(VectorSpace):
    """Values as bags of words, and words as bags of pairs of letters."""

    letters: LetterSpace
    device: torch.device | None = None
    has_kernels: ClassVar[bool] = False

    def concatenate(self, parts: Sequence[SparseVectors]) -> SparseVectors:
        """Return several sets as one, over the words of all."""
        return SparseVectors.concatenate(parts or [SparseVectors.empty(self.letters)])

    def distances(self, left: SparseVectors, right: SparseVectors) -> np.ndarray:
        """Return all distances by the definition, rounded to float32."""
        return left.distances(right).astype(np.float32)

    def pair_distances(self, left: SparseVectors, right: SparseVectors) -> np.ndarray:
        """Return the distances of row pairs by the definition."""
        return pair_distances(left, right)

    def stored(self, partition: SparsePartition, rows: np.ndarray) -> SparseVectors:
        """Return the stored values of some rows."""
        return partition.vectors.take(np.asarray(rows, np.int64))

    def open(
        self,
        arrays: Mapping[str, np.ndarray],
        device: torch.device | str = "cpu",
        pages: Pages | None = None,
    ) -> SparsePartition:
        """View the arrays of `pexeso.engine.sparse.building.build_partition`."""
        return SparsePartition.from_arrays(arrays, self.letters, self.device)

    def require_plausible(self, partition: SparsePartition, where: str, *, rows: bool) -> None:
        """Hold the lengths of some values against their words."""
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
        kernel: KernelChoice,
        stats: SearchStats,
    ) -> SparseProbe:
        """Count the values that have words."""
        return SparseProbe(vectors.is_known, weights)

    def prefetch(
        self, partition: SparsePartition, probe: SparseProbe, goal: Goal, kernel: KernelChoice,
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
        kernel: KernelChoice | None = None,
        max_pairs: int,
        probe: SparseProbe | None = None,
    ) -> ColumnCounts:
        """Search by posting lists; counts are exact."""
        occurring = np.flatnonzero(weights > 0)
        query = BatchColumn(occurring, weights[occurring], goal.min_count)
        with _Counted(stats) as work:
            columns, counts = search_in_prefixes(
                partition, vectors, query, goal.max_distance, available_threads(), work
            )
        return _ranked(columns, counts, goal, left_out)

    def search_batch(
        self,
        partition: SparsePartition,
        vectors: SparseVectors,
        queries: Sequence[BatchColumn],
        goal: Goal,
        stats: SearchStats,
        *,
        kernel: KernelChoice | None = None,
        max_pairs: int,
    ) -> list[ColumnCounts]:
        """Search for many query columns in one pass."""
        with _Counted(stats) as work:
            return search(partition, vectors, queries, goal.max_distance, available_threads(), work)

    def search_exhaustively(
        self,
        partition: SparsePartition,
        vectors: SparseVectors,
        weights: np.ndarray,
        goal: Goal,
        stats: SearchStats,
        left_out: np.ndarray | None = None,
    ) -> ColumnCounts:
        """Search by all distances."""
        query = BatchColumn(np.arange(len(vectors)), weights, goal.min_count)
        with _Counted(stats):
            column_counts = search_exhaustively(partition, vectors, query, goal.max_distance)
        stats.defining_distances += len(vectors) * partition.n_values
        return _ranked(*column_counts, goal, left_out)

    def pairs_within(
        self,
        partition: SparsePartition,
        vectors: SparseVectors,
        rows: np.ndarray,
        max_distance: float,
        stats: SearchStats,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compare with all of the rows."""
        stats.defining_distances += len(vectors) * len(rows)
        return pairs_within(partition, vectors, rows, max_distance)

    def nearest_in_columns(
        self,
        partition: SparsePartition,
        vectors: SparseVectors,
        columns: np.ndarray,
        max_distance: float,
        stats: SearchStats,
    ) -> np.ndarray:
        """Compare with all values of the columns, and hold no pairs."""
        stats.defining_distances += len(vectors) * int(partition.column_lists.sizes(columns).sum())
        return nearest_in_columns(partition, vectors, columns, max_distance)

    def nearest(
        self, partition: SparsePartition, vectors: SparseVectors, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compare with all of the rows."""
        position, nearest = np.zeros(len(vectors), np.int64), np.full(len(vectors), np.inf)
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            others = partition.vectors.take(rows[begin : begin + _ROWS_AT_ONCE])
            distances = vectors.distances(others)
            which = distances.argmin(1)
            distance = distances[np.arange(len(vectors)), which]
            nearer = distance < nearest
            position[nearer], nearest[nearer] = which[nearer] + begin, distance[nearer]
        return position, nearest


class _Counted:
    """Adds the work of one search of a partition to its stats."""

    def __init__(self, stats: SearchStats) -> None:
        self._stats, self._work = stats, Work()

    def __enter__(self) -> Work:
        self._phase = self._stats.phase("verify")
        self._phase.__enter__()
        return self._work

    def __exit__(self, *error: object) -> None:
        self._phase.__exit__(*error)
        self._stats.partitions += 1
        self._stats.vectors_touched += self._work.visits
        self._stats.candidates += self._work.candidates
        self._stats.defining_distances += self._work.decided
        self._stats.bytes_read += 4 * self._work.entries


def _ranked(
    columns: np.ndarray, counts: np.ndarray, goal: Goal, left_out: np.ndarray | None
) -> ColumnCounts:
    """Keep the best columns, those that tie with the last of them too; all without ``goal.k``."""
    if left_out is not None:
        mask = ~left_out[columns]
        columns, counts = columns[mask], counts[mask]
    if goal.k is not None and len(counts) > goal.k:
        mask = counts >= np.partition(counts, -goal.k)[-goal.k]
        columns, counts = columns[mask], counts[mask]
    return columns.astype(np.int64), counts.astype(np.int64)
