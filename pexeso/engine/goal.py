"""What is searched for in a partition, whatever its space; nothing here loads torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pexeso.engine.lemmas import ALL_LEMMAS, Lemma

MAX_PAIRS = 1 << 24
"""Most pairs of a query value and a stored value that a search holds at a time: 768 MiB."""

BYTES_A_PAIR = 48
"""What a search takes for each pair that it may hold, at most: 24 while pairs are gathered, and 8
for each of three matches of a batch."""

WORKING_BYTES = 128 << 20
"""What a search takes whatever it holds, at most: pieces of boxes, codes and vectors."""

LAYOUT_VERSION = 2
"""Of the arrays of a partition: changes when one written before cannot be searched any more."""

_DECIMALS = 10**9

Found = tuple[np.ndarray, np.ndarray]
"""Columns and their counts, int64 (r,) each."""


@dataclass(frozen=True)
class Goal:
    """What is searched for.

    Attributes
    ----------
    max_distance : float
        In [0, 1], inclusive; a fraction of the largest distance (the paper's tau as a ratio).
    min_count : int
        Matches a column needs, at least 1.
    k : int or None
        Keep only the k columns of highest count.
    decide : bool
        Counts may be lower bounds (the paper's early acceptance). With `k` counts are always exact.
    lemmas : frozenset of Lemma
    """

    max_distance: float
    min_count: int = 1
    k: int | None = None
    decide: bool = False
    lemmas: frozenset[Lemma] = ALL_LEMMAS


@dataclass(frozen=True)
class BatchColumn:
    """One query column of a batch.

    Attributes
    ----------
    members : numpy.ndarray of shape (m,), int64
        Its distinct values, rows of the batch's vectors.
    weights : numpy.ndarray of shape (m,), int64
        How often each occurs.
    min_count : int
        Matches a column needs, at least 1.
    """

    members: np.ndarray
    weights: np.ndarray
    min_count: int


def count_needed(min_joinability: float, total: int) -> int:
    """Compute the smallest count c >= 1 with c / total >= min_joinability.

    The result is free of floating-point surprises.

    Thresholds are taken to nine decimals: ``c * 10**9 >= round(T * 10**9) * |Q|``.

    Examples
    --------
    >>> count_needed(0.6, 10)
    6
    """
    scaled = round(min_joinability * _DECIMALS) * total
    return max(1, -(-scaled // _DECIMALS))
