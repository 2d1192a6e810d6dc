"""From similar values to joinable columns: what a method returns at each of its thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from benchmarks.effectiveness.judged import BY_MEANING, BY_TEXT, MIN_MATCHES, NEGATIVE, Judged

LEAST_JOINABILITY = 0.3
"""Pairs with less are not kept; thresholds lie above it."""


@dataclass(frozen=True)
class FoundPairs:
    """The column pairs that a method returns at one threshold for values.

    Each pair has at least `MIN_MATCHES` matching values.

    Attributes
    ----------
    query, candidate : numpy.ndarray, int64
        Columns, by number.
    joinability : numpy.ndarray, float64
        Matching values by distinct values of the query column, at least `LEAST_JOINABILITY`.
    label : numpy.ndarray, int8
        What the pair is; see `benchmarks.effectiveness.judged`.
    """

    threshold: float
    query: np.ndarray
    candidate: np.ndarray
    joinability: np.ndarray
    label: np.ndarray

    def of(self, queries: np.ndarray) -> FoundPairs:
        return self._where(np.isin(self.query, queries))

    def from_joinability(self, min_joinability: float) -> FoundPairs:
        """Keep the pairs of at least this joinability."""
        return self._where(self.joinability >= min_joinability - 1e-9)

    def _where(self, mask: np.ndarray) -> FoundPairs:
        return FoundPairs(
            self.threshold,
            self.query[mask],
            self.candidate[mask],
            self.joinability[mask],
            self.label[mask],
        )

    def counts(self) -> tuple[int, int, int]:
        """Count true pairs, false pairs, and the true pairs that are semantic only."""
        by_meaning = int((self.label == BY_MEANING).sum())
        return (
            int((self.label == BY_TEXT).sum()) + by_meaning,
            int((self.label == NEGATIVE).sum()),
            by_meaning,
        )


def found_by_values(
    judged: Judged, held: sp.csr_matrix, similar: sp.csr_matrix, thresholds: Iterable[float]
) -> Iterator[FoundPairs]:
    """Count for pairs of columns the values of the one with a similar value in the other."""
    sizes = np.asarray(held.sum(1)).ravel()
    for threshold in thresholds:
        enough = similar.multiply(similar >= threshold).tocsr()
        enough.eliminate_zeros()
        reached = enough @ held.T.tocsr()  # value by column: whether the column has a similar value
        reached.data[:] = 1
        counts = (held @ reached).tocoo()
        yield found_pairs(
            judged, threshold, counts.row, counts.col, counts.data, counts.data / sizes[counts.row]
        )


def found_pairs(
    judged: Judged,
    threshold: float,
    query: np.ndarray,
    candidate: np.ndarray,
    matches: np.ndarray,
    joinability: np.ndarray,
) -> FoundPairs:
    """Keep what counts as returned, of the columns that are asked, and label it."""
    mask = (matches >= MIN_MATCHES) & (joinability >= LEAST_JOINABILITY) & (query != candidate)
    if judged.allowed_queries is not None:
        mask &= np.isin(query, judged.allowed_queries)
    query, candidate = query[mask].astype(np.int64), candidate[mask].astype(np.int64)
    return FoundPairs(
        threshold,
        query,
        candidate,
        joinability[mask].astype(float),
        judged.classes(query, candidate),
    )
