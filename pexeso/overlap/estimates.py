"""What candidates are expected to share with the rest of a query; it decides what is read next, never what is found."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np

_SIZES, _SOME_LISTS, _TABLE_BITS = 24, 64, 12


class CandidateColumns(Protocol):
    """Candidates as columns, int64 (w,) each; see `pexeso.overlap.candidates.Candidates`."""

    count: np.ndarray
    first: np.ndarray


def expected_matches(rest: np.ndarray, frequencies: np.ndarray, weights: np.ndarray, n_pairs: int) -> np.ndarray:
    """Return how many of some query tokens a set has by chance, from how often these are held and how much of the set is left.

    Parameters
    ----------
    rest : int64 (w,)
        Tokens of each set that may be among them.
    frequencies, weights : int64 (m,)
        The length of each posting list, and the query tokens that it stands for.
    n_pairs : int
        Entries of all posting lists that the rest of a set may be in.

    Returns
    -------
    float64 (w,)

    Notes
    -----
    A set of which z tokens are left holds one with f entries with probability 1 - exp(-z f / n_pairs), as though they were drawn one by one. Computed for
    `_SIZES` sizes and at most `_SOME_LISTS` lists, and interpolated: O(w).
    """
    if not len(rest) or not len(frequencies):
        return np.zeros(len(rest))
    if len(frequencies) > _SOME_LISTS:
        # Lists ascend in length: of so many neighbours one stands for all.
        edges = np.linspace(0, len(frequencies), _SOME_LISTS + 1).astype(np.int64)
        frequencies, weights = frequencies[(edges[:-1] + edges[1:]) // 2], np.add.reduceat(weights, edges[:-1])
    largest = int(rest.max())
    shift = max(0, largest.bit_length() - _TABLE_BITS)
    sizes = _sizes_up_to(largest)
    held = -np.expm1(-np.outer(sizes, frequencies / max(n_pairs, 1))) @ weights
    table = np.interp(np.arange((largest >> shift) + 1) << shift, np.append(0, sizes), np.append(0.0, held))
    return table[rest >> shift]


@lru_cache(maxsize=1024)
def _sizes_up_to(largest: int) -> np.ndarray:
    # Kept, since a search asks for the same few again and again, and making them takes longer than the rest of an estimate.
    sizes = np.unique(np.geomspace(1, max(largest, 2), _SIZES).astype(np.int64))
    sizes.flags.writeable = False
    return sizes


def rate_since_first(candidates: CandidateColumns, accounted: int) -> np.ndarray:
    """Return matches per query token since the first, which is not counted: a set is no candidate without it.

    Parameters
    ----------
    candidates : w of them
    accounted : int
        Query tokens accounted for (i).

    Returns
    -------
    float64 (w,)
        Two more tokens without a match are taken for granted, so that few say little.
    """
    return (candidates.count - 1) / (accounted - candidates.first + 2)
