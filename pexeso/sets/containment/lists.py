"""Posting lists: which sets hold a token, and which tokens a set holds.

They give an exact search for the sets that contain enough of a query.

A set with at least `needed` of a query's n tokens holds one of any n - needed + 1 of them. So the
lists of that many, the shortest ones, name all sets that can be found: the prefix filter (S.
Chaudhuri, V. Ganti and R. Kaushik, "A primitive operator for similarity joins in data cleaning",
ICDE 2006). Then lists are read on while that is sooner done than to look the other tokens up in
every set that is still open; a set is left as soon as it misses too many.

What answers here are CSR arrays with tokens as numbers. Whose numbers they are is a matter of the
bodies of `TokenLists`: the texts of an index for overlap search, or hashes in the benchmarks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from pexeso.errors import IndexCorruptError
from pexeso.runtime.galloping import not_before
from pexeso.runtime.jit import loop
from pexeso.runtime.scratch_buffers import borrow_counters, give_back

ENTRIES_A_PROBE = 50
"""Entries of a list that are read in the time that one look-up in a set takes, most of which is
waiting for memory."""


class QueryLists(Protocol):
    """The posting lists of one query."""

    @property
    def size(self) -> int:
        """Distinct tokens of the query, those that no set holds included."""

    def n_entries(self, needed: int) -> int:
        """Entries of the lists that name all sets with so many tokens; known before any is read."""

    def at_least(self, needed: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the sets with at least `needed` tokens of the query.

        The result is the set numbers and the numbers of tokens in common, int64 (c,) each, in no
        order.
        """

    def overlaps(self, sets: np.ndarray, needed: int) -> np.ndarray:
        """Count the tokens that each of the given sets has in common with the query, int64 (c,).

        The count is -1 where it is less than `needed`.
        """


class TokenLists(Protocol):
    """The sets of an ensemble by token, under the numbers that the ensemble has for them."""

    @property
    def n_sets(self) -> int:
        """Numbers of sets are less than this."""

    def look_up(self, query: pa.Array | pa.ChunkedArray | np.ndarray) -> QueryLists:
        """Look the tokens of a query up; repeated ones count once."""

    def sizes_of(self, sets: np.ndarray) -> np.ndarray:
        """Return the sizes of sets, int64 (c,)."""


@dataclass(frozen=True, eq=False)
class CsrLists:
    """Posting lists and sets as arrays, which may be memory-mapped.

    Attributes
    ----------
    token_offsets : int32 or int64 (u + 1,)
        The list of token t is ``list_sets[token_offsets[t]:token_offsets[t + 1]]``.
    list_sets : int32 (e,)
        Sets, each once in a list.
    set_offsets : int32 or int64 (n + 1,)
        Set s holds ``set_tokens[set_offsets[s]:set_offsets[s + 1]]``.
    set_tokens : int32 or int64 (e,)
        Ascending within a set.
    """

    token_offsets: np.ndarray
    list_sets: np.ndarray
    set_offsets: np.ndarray
    set_tokens: np.ndarray

    @property
    def n_sets(self) -> int:
        """Number of sets."""
        return len(self.set_offsets) - 1

    def sizes_of(self, sets: np.ndarray) -> np.ndarray:
        """Return the sizes of sets, int64 (c,)."""
        sizes = self.set_offsets[sets + 1] - self.set_offsets[sets]
        return sizes.astype(np.int64, copy=False)

    def query(self, tokens: np.ndarray, size: int) -> CsrQuery:
        """Take a query's tokens.

        Parameters
        ----------
        tokens : int64 (n,)
            Distinct numbers below u, of those tokens that there are.
        size : int
            Distinct tokens of the query, at least n.

        Examples
        --------
        >>> lists = CsrLists(
        ...     np.array([0, 1, 3]),
        ...     np.array([1, 0, 1], np.int32),
        ...     np.array([0, 1, 3]),
        ...     np.array([1, 0, 1], np.int32),
        ... )
        >>> query = lists.query(np.array([0, 1]), size=2)
        >>> query.n_entries(2), query.at_least(2), query.overlaps(np.array([0, 1]), 1)
        (1, (array([1]), array([2])), array([1, 2]))
        """
        ordered, entries, sound = _shortest_first(self.token_offsets, tokens)
        if not sound:
            raise _corrupt()
        return CsrQuery(self, ordered, entries, size)


@dataclass(frozen=True, eq=False)
class CsrQuery:
    """A query over `CsrLists`: a body of `QueryLists`.

    Attributes
    ----------
    tokens : int64 (n,)
        Those with the shortest lists first.
    entries : int64 (n,)
        Entries of the lists up to each.
    size : int
        Distinct tokens of the query.
    """

    lists: CsrLists
    tokens: np.ndarray
    entries: np.ndarray
    size: int

    def n_entries(self, needed: int) -> int:
        """Return the number of entries of the n - needed + 1 shortest lists.

        It is 0 where too few of the tokens are known.
        """
        prefix = len(self.tokens) - needed + 1
        return int(self.entries[prefix - 1]) if prefix > 0 else 0

    def at_least(self, needed: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the sets with so many tokens of the query.

        Time: a step for each of `n_entries`, and for each set met a step a list or a look-up, until
        it misses too many. Memory: 8 bytes for each set met, and 4 for each set of the lake, which
        stay with the thread.

        Parameters
        ----------
        needed : int
            At least 1.

        Returns
        -------
        (int64 (c,), int64 (c,))
            Sets and tokens in common, in no order.
        """
        prefix = len(self.tokens) - needed + 1
        entries = self.n_entries(needed)
        if prefix <= 0 or entries <= 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        lists = self.lists
        counts, sets = (
            borrow_counters(lists.n_sets),
            np.empty(min(entries, lists.n_sets) + 1, np.int32),
        )
        arrays = lists.token_offsets, lists.list_sets, lists.set_offsets, lists.set_tokens
        n = _at_least(*arrays, self.tokens, needed, ENTRIES_A_PROBE, counts, sets)
        if n < 0:
            raise _corrupt()
        sets = sets[:n].astype(np.int64)
        overlaps = counts[sets].astype(np.int64)
        counts[sets] = 0
        give_back(counts)
        return sets, overlaps

    def overlaps(self, sets: np.ndarray, needed: int) -> np.ndarray:
        """Count the tokens that each of the given sets has in common with the query.

        Counting a set stops as soon as it cannot have enough.

        At most O(n log x) time for a set of x tokens, and a few steps for one that is not like the
        query.

        Parameters
        ----------
        sets : int64 (c,)
        needed : int
            At least 1.

        Returns
        -------
        int64 (c,)
            -1 where less than `needed`.
        """
        counts = np.empty(len(sets), np.int64)
        if not _overlaps(
            self.lists.set_offsets,
            self.lists.set_tokens,
            sets,
            np.sort(self.tokens),
            needed,
            counts,
        ):
            raise _corrupt()
        return counts


def _corrupt() -> IndexCorruptError:
    return IndexCorruptError(
        "A posting list or a set of an index for containment search leads out of it: it was "
        "changed or cut short. "
        "Restore it from a copy, or build it again."
    )


@loop
def _shortest_first(token_offsets, tokens):
    lengths = np.empty(len(tokens), np.int64)
    for j in range(len(tokens)):
        if tokens[j] < 0 or tokens[j] >= len(token_offsets) - 1:
            return tokens, lengths, False
        lengths[j] = token_offsets[tokens[j] + 1] - token_offsets[tokens[j]]
    order = np.argsort(lengths)
    return tokens[order], np.cumsum(lengths[order]), True


@loop
def _at_least(
    token_offsets, list_sets, set_offsets, set_tokens, tokens, needed, entries_a_probe, counts, sets
):
    """Store the sets found in `sets` and return their number, or -1 for damaged arrays.

    The counts of these sets stay in `counts`; those of all others are 0 again.
    """
    n_tokens, n, j = len(tokens), 0, 0
    prefix = n_tokens - needed + 1
    while j < n_tokens:
        begin, end = token_offsets[tokens[j]], token_offsets[tokens[j] + 1]
        if begin < 0 or end < begin or end > len(list_sets):
            return -1
        if j < prefix:
            n = _count_and_meet(list_sets[begin:end], counts, sets, n)
        else:
            # A set that is named first from here on has too few; one that cannot have enough is
            # left.
            n = _drop(counts, sets, n, needed - (n_tokens - j))
            if end - begin > entries_a_probe * n:
                break
            n = n if _count(list_sets[begin:end], counts) else -1
        if n < 0:
            return -1
        j += 1
    rest = np.sort(tokens[j:])
    if len(rest):
        for i in range(n):
            begin, end = set_offsets[sets[i]], set_offsets[sets[i] + 1]
            if begin < 0 or end < begin or end > len(set_tokens):
                return -1
            known = counts[sets[i]]
            more = (
                _common(set_tokens, begin, end, rest, needed - known)
                if end - begin >= needed
                else -1
            )
            counts[sets[i]] = known + more if more >= 0 else 0
    return _drop(counts, sets, n, needed)


# No processor foresees which sets were met before, so the next three loops do the same steps for
# all, and let numbers decide.


@loop
def _count_and_meet(entries, counts, sets, n):
    """Count sets, and record those met for the first time in `sets`.

    `sets` has room for one more than there can be.
    """
    for at in range(len(entries)):
        row = entries[at]
        if row < 0 or row >= len(counts):
            return -1
        sets[n] = row
        n += counts[row] == 0
        counts[row] += 1
    return n


@loop
def _count(entries, counts):
    """Count sets that were met before."""
    for at in range(len(entries)):
        row = entries[at]
        if row < 0 or row >= len(counts):
            return False
        counts[row] += counts[row] > 0
    return True


@loop
def _drop(counts, sets, n, needed):
    """Leave the sets with at least so many tokens, which must be one or more."""
    n_kept, needed = 0, max(needed, 1)
    for i in range(n):
        row = sets[i]
        enough = counts[row] >= needed
        sets[n_kept] = row
        n_kept += enough
        counts[row] *= enough
    return n_kept


@loop
def _overlaps(set_offsets, set_tokens, sets, tokens, needed, counts):
    for i in range(len(sets)):
        row = sets[i]
        if row < 0 or row >= len(set_offsets) - 1:
            return False
        begin, end = set_offsets[row], set_offsets[row + 1]
        if begin < 0 or end < begin or end > len(set_tokens):
            return False
        counts[i] = _common(set_tokens, begin, end, tokens, needed) if end - begin >= needed else -1
    return True


@loop
def _common(set_tokens, low, end, tokens, needed):
    """Count ascending tokens in a set from `low` to `end`: -1 as soon as they cannot be enough."""
    may_miss = len(tokens) - needed
    if may_miss < 0:
        return -1
    count = 0
    for j in range(len(tokens)):
        token = tokens[j]
        low = not_before(set_tokens, low, end, token)
        if low < end and set_tokens[low] == token:
            count += 1
            low += 1
        else:
            may_miss -= 1
            if may_miss < 0:
                return -1
    return count
