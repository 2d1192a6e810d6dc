"""Posting lists of tokens by their 64-bit hashes.

They serve measurements of containment search without an index for overlap search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pexeso.runtime.jit import loop
from pexeso.sets.containment.ensemble import Ensemble
from pexeso.sets.containment.hashing import as_hashes, distinct_sorted, gathered
from pexeso.sets.containment.lists import CsrLists, CsrQuery
from pexeso.sets.containment.options import EnsembleOptions

_NUMBERS_OF_32_BITS = 2**31


@dataclass(frozen=True, eq=False)
class HashedLists:
    """A body of `TokenLists`, for queries as texts or as hashes.

    Two tokens with one hash are one token.

    Attributes
    ----------
    hashes : uint64 (u,)
        Of the distinct tokens, ascending.
    numbers : int32 or int64 (u,)
        The number of each: those in fewer sets have the lower ones.
    lists : CsrLists
    """

    hashes: np.ndarray
    numbers: np.ndarray
    lists: CsrLists

    @property
    def n_sets(self) -> int:
        """Number of sets."""
        return self.lists.n_sets

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays."""
        lists = self.lists
        arrays = (
            lists.token_offsets,
            lists.list_sets,
            lists.set_offsets,
            lists.set_tokens,
            self.hashes,
            self.numbers,
        )
        return sum(array.nbytes for array in arrays)

    def sizes_of(self, sets: np.ndarray) -> np.ndarray:
        """Return the sizes of sets, int64 (c,)."""
        return self.lists.sizes_of(sets)

    def look_up(self, query: pa.Array | pa.ChunkedArray | np.ndarray) -> CsrQuery:
        """Look the tokens of a query up: O(q log u).

        Parameters
        ----------
        query : Arrow texts or uint64 (q,)

        Examples
        --------
        >>> lists = build_hashed_lists(np.array([4, 9, 9], np.uint64), np.array([0, 2, 3]))
        >>> lists.look_up(np.array([9, 4, 5], np.uint64)).at_least(2)
        (array([0]), array([2]))
        """
        tokens, size = _look_up(self.hashes, self.numbers, as_hashes(query))
        return self.lists.query(tokens, size)


def build_hashed_lists(hashes: np.ndarray, offsets: np.ndarray) -> HashedLists:
    """Make posting lists.

    O(t log t) time; 32 bytes a token beside the result, which has 8 a token and 20 a distinct one.

    Parameters
    ----------
    hashes : uint64 (t,)
        Ascending and distinct within a set.
    offsets : int64 (s + 1,)
        Set i is ``hashes[offsets[i]:offsets[i + 1]]``.

    Examples
    --------
    >>> build_hashed_lists(np.array([4, 9, 9], np.uint64), np.array([0, 2, 3])).lists.list_sets
    array([0, 0, 1], dtype=int32)
    """
    order = _order_of(hashes)
    sorted_hashes = hashes[order]
    first = np.concatenate([[True], sorted_hashes[1:] != sorted_hashes[:-1]])[: len(hashes)]
    distinct = sorted_hashes[first]
    del sorted_hashes
    begins = np.append(np.flatnonzero(first), len(hashes)).astype(np.int64)
    by_frequency = np.argsort(np.diff(begins), kind="stable")
    wide = np.int32 if len(hashes) < _NUMBERS_OF_32_BITS else np.int64
    numbers = np.empty(len(distinct), wide)
    numbers[by_frequency] = np.arange(len(distinct), dtype=wide)
    set_tokens = np.empty(len(hashes), wide)
    set_tokens[order] = np.repeat(numbers, np.diff(begins))
    owners = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))[order]
    del order, first
    list_sets, token_offsets = gathered(owners, begins, by_frequency)
    set_offsets = np.array(offsets)
    _sort_each(set_tokens, set_offsets)
    _sort_each(list_sets, token_offsets)
    arrays = token_offsets, list_sets, set_offsets, set_tokens
    for array in (*arrays, distinct, numbers):
        array.flags.writeable = (
            False  # as those of a stored index are, so that loops are compiled once
        )
    return HashedLists(distinct, numbers, CsrLists(*arrays))


def _order_of(hashes: np.ndarray) -> np.ndarray:
    """Return the order of hashes, int64 (t,).

    Sorting the upper bits with the position in the lower bits takes a tenth of the time of
    `np.argsort`.

    Hashes whose upper bits are alike are few, and put in order one by one; where they are many, as
    those of small numbers are, `np.argsort` does all.
    """
    bits = np.uint64(max(len(hashes) - 1, 1).bit_length())
    keys = (hashes >> bits) << bits
    keys |= np.arange(len(hashes), dtype=np.uint64)
    keys.sort()
    keys &= (np.uint64(1) << bits) - np.uint64(1)
    order = keys.view(np.int64)
    return (
        order
        if _put_in_order(hashes, order, len(hashes) >> 4)
        else np.argsort(hashes, kind="stable")
    )


@loop
def _sort_each(numbers, offsets):
    for row in range(len(offsets) - 1):
        part = numbers[offsets[row] : offsets[row + 1]]
        for i in range(1, len(part)):
            if part[i] < part[i - 1]:
                part.sort()
                break


@loop
def _put_in_order(hashes, order, most_steps):
    """Sort places that are nearly in order, by insertion; False where that takes too many steps."""
    steps = 0
    for i in range(1, len(order)):
        position, at = order[i], i
        while at > 0 and hashes[order[at - 1]] > hashes[position]:
            order[at] = order[at - 1]
            at -= 1
            steps += 1
        order[at] = position
        if steps > most_steps:
            return False
    return True


@loop
def _look_up(hashes, numbers, query):
    """Return the numbers of the tokens that there are, and how many distinct ones the query has."""
    tokens = np.sort(query)
    n = 0
    for j in range(len(tokens)):
        if j == 0 or tokens[j] != tokens[j - 1]:
            tokens[n] = tokens[j]
            n += 1
    lows = np.zeros(n, np.int64)
    # All tokens take a step of the binary search in turn: steps do not wait for each other's
    # memory.
    left = len(hashes)
    while left > 1:
        half = left >> 1
        for j in range(n):
            if hashes[lows[j] + half - 1] < tokens[j]:
                lows[j] += half
        left -= half
    known = 0
    for j in range(n if len(hashes) else 0):
        at = lows[j]
        if hashes[at] < tokens[j]:
            at += 1
        if at < len(hashes) and hashes[at] == tokens[j]:
            lows[known] = numbers[at]
            known += 1
    return lows[:known], n


def hashed_ensemble(
    tokens: pa.Array | np.ndarray, offsets: np.ndarray, options: EnsembleOptions | None = None
) -> Ensemble:
    """Build an ensemble over hashed lists of its own.

    Parameters and errors are those of `Ensemble.build`.
    """
    hashes, ends = distinct_sorted(as_hashes(tokens), np.asarray(offsets))
    return Ensemble.build(hashes, ends, build_hashed_lists(hashes, ends), options)
