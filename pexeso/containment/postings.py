"""Posting lists: which sets have a token, for queries so small beside the sets that no bands find them.

An entry is the upper half of a token and a set: tokens that share 32 bits are told apart by verification. Sets are numbered by size, so those that are large
enough stand at the end of each list.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pexeso.containment.bands import next_of
from pexeso.containment.compiling import loop
from pexeso.errors import IndexCorruptError

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Postings:
    """All pairs of token and set, by token, then by set.

    Attributes
    ----------
    halves : uint32 (t,)
        The upper 32 bits of the tokens.
    sets : int32 (t,)
        Rows.
    """

    halves: np.ndarray
    sets: np.ndarray


def build_postings(tokens: np.ndarray, offsets: np.ndarray) -> Postings:
    """Order the tokens of all sets.

    O(t log t) time; 16 bytes a token beside the result.

    Parameters
    ----------
    tokens : uint64 (t,)
    offsets : int64 (s + 1,)
        Row i is ``tokens[offsets[i]:offsets[i + 1]]``.

    Examples
    --------
    >>> build_postings(np.array([1 << 32, 2 << 32, 1 << 32], np.uint64), np.array([0, 2, 3])).sets
    array([0, 1, 0], dtype=int32)
    """
    keys = tokens >> _HALF
    keys <<= _HALF
    keys |= np.repeat(np.arange(len(offsets) - 1, dtype=np.uint64), np.diff(offsets))
    keys.sort()
    return Postings((keys >> _HALF).astype(np.uint32), (keys & _LOW).astype(np.int32))


def sharing(postings: Postings, n_sets: int, query: np.ndarray, first: int, needed: int) -> np.ndarray:
    """Find the sets with enough tokens of a query, and perhaps a few others that share halves of tokens with it.

    O(q log t) time, and a step for each entry of the query's tokens.

    Parameters
    ----------
    postings : Postings
    n_sets : int
        How many rows there are.
    query : uint64 (q,)
        Distinct.
    first : int
        The first row that counts.
    needed : int
        At least 1.

    Returns
    -------
    int64 (c,)
        Rows, ascending.

    Raises
    ------
    IndexCorruptError
        An entry names a set that there is not.
    """
    counts = np.zeros(n_sets - first, np.int32)
    touched = np.empty(n_sets - first, np.int32)
    lows = np.zeros(len(query), np.int64)
    n = _count_entries(
        postings.halves, postings.sets, (query >> _HALF).astype(np.uint32), lows, n_sets, first, counts, touched
    )
    if n < 0:
        raise IndexCorruptError(
            "A posting list of an index for containment search names a set that there is not: build it again."
        )
    places = touched[:n]
    return np.sort(places[counts[places] >= needed]).astype(np.int64) + first


@loop
def _count_entries(halves, sets, query, lows, n_sets, first, counts, touched):
    # All tokens take a step of the binary search in turn: steps do not wait for each other's memory.
    left = len(halves)
    while left > 1:
        half = left >> 1
        for j in range(len(query)):
            if halves[lows[j] + half - 1] < query[j]:
                lows[j] += half
        left -= half
    n = 0
    for j in range(len(query)):
        at = lows[j]
        if at < len(halves) and halves[at] < query[j]:
            at += 1
        while at < len(halves) and halves[at] == query[j]:
            row = sets[at]
            if row < 0 or row >= n_sets:
                return -1
            if row < first:
                at = next_of(halves, sets, at, query[j], first)
                continue
            if counts[row - first] == 0:
                touched[n] = row - first
                n += 1
            counts[row - first] += 1
            at += 1
    return n
