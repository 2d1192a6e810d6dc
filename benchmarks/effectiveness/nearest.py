"""Each value joined with its nearest other value: their similarity, and whether it is right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from benchmarks.effectiveness.methods import Method
from benchmarks.effectiveness.similar import Similar
from benchmarks.effectiveness.tasks import Task

TIE = 1e-6
"""Similarities that differ by less are equal: float32 sums differ so much from piece to piece."""


@dataclass(frozen=True)
class Joined:
    """What a method joins in one task.

    Attributes
    ----------
    similarity : numpy.ndarray, float32 (n,)
        Of each asked cell with its nearest other one; minus infinity where nothing reaches the
        lowest similarity asked for.
    credit : numpy.ndarray, float64 (n,)
        The share of right ones among the nearest: where several are equally near, any of them may
        be taken.
    nearest : numpy.ndarray, int64 (n,)
        The first of the nearest, by number; -1: none.
    """

    task: str
    group: str
    similarity: np.ndarray
    credit: np.ndarray
    nearest: np.ndarray
    has_partner: np.ndarray
    has_equal_partner: np.ndarray
    similarities: list[float]

    def at(self, place: int) -> np.ndarray:
        """Return which asked cells are joined at a threshold, by its place; bool (n,)."""
        return self.similarity >= self.similarities[place] - TIE


def join_nearest(method: Method, task: Task) -> Joined:
    """Compare all asked cells of a task with all others."""
    similarities = method.similarities(method.nearest_thresholds)
    cells, others = method.prepare([task.queries, task.others])
    similarity, credit, nearest = nearest_of(
        method.compare(cells, others, min(similarities)), task.partners
    )
    return Joined(
        task.name,
        task.group,
        similarity,
        credit,
        nearest,
        task.has_partner(),
        task.has_equal_partner(),
        similarities,
    )


def nearest_of(
    pieces: Iterable[Similar], partners: sp.csr_matrix
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the highest similarity of each row, its share of right values, and the nearest."""
    similarity = np.full(partners.shape[0], -np.inf, np.float32)
    credit, nearest = np.zeros(partners.shape[0]), np.full(partners.shape[0], -1, np.int64)
    start = 0
    for piece in pieces:
        some = slice(start, start + piece.shape[0])
        pairs = piece.tocoo()
        np.maximum.at(similarity[some], pairs.row, pairs.data)
        tied = pairs.data >= similarity[some][pairs.row] - TIE
        row, column = pairs.row[tied], pairs.col[tied]
        ties = sp.csr_matrix((np.ones(len(row)), (row, column)), shape=piece.shape)
        n_ties = np.diff(ties.indptr)
        right = np.asarray(ties.multiply(partners[some]).sum(1)).ravel()
        credit[some] = right / np.maximum(n_ties, 1)
        ties.sort_indices()
        nearest[some][n_ties > 0] = ties.indices[ties.indptr[:-1][n_ties > 0]]
        start = some.stop
    return similarity, credit, nearest
