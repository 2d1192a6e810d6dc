"""Posting lists, which give an exact search for the sets that contain enough of a query.

A set with at least `needed` of a query's n tokens holds one of any n - needed + 1 of them. So the
lists of that many, the shortest ones, name all sets that can be found: the prefix filter (S.
Chaudhuri, V. Ganti and R. Kaushik, "A primitive operator for similarity joins in data cleaning",
ICDE 2006). Then lists are read on while that is sooner done than to look the other tokens up in
every set that is still open; a set is left as soon as it misses too many.

They are CSR arrays with tokens as numbers: those of an overlap index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import IndexCorruptError
from pexeso.runtime.compiled import compiled
from pexeso.runtime.threads import borrow_counters, give_back
from pexeso.sets.overlap.dictionary import Dictionary, find_texts
from pexeso.sets.overlap.index import OverlapIndex

loops = compiled("pexeso.sets.loops")

# Entries of a list that are read in the time that one look-up in a set takes, most of which is
# waiting for memory.
ENTRIES_A_PROBE = 50


@dataclass(frozen=True, eq=False)
class CsrLists:
    """Posting lists and sets as arrays, which may be memory-mapped."""

    # int32 or int64 (u + 1,): the list of token t is ``list_sets[token_offsets[t]:token_offsets[t +
    # 1]]``. Offsets of sets are of the same type.
    token_offsets: np.ndarray
    list_sets: np.ndarray  # int32 (e,): sets, each once in a list
    # int32 or int64 (n + 1,): set s holds ``set_tokens[set_offsets[s]:set_offsets[s + 1]]``
    set_offsets: np.ndarray
    set_tokens: np.ndarray  # int32 or int64 (e,): ascending within a set
    dictionary: Dictionary | None = None

    @classmethod
    def of(cls, index: OverlapIndex) -> CsrLists:
        """Return the posting lists of an overlap index, which are not copied."""
        arrays = index.token_offsets, index.list_sets, index.set_offsets, index.set_tokens
        return cls(*map(np.asarray, arrays), index.dictionary)

    @property
    def n_sets(self) -> int:
        return len(self.set_offsets) - 1

    def sizes_of(self, sets: np.ndarray) -> np.ndarray:
        """Return the sizes of sets, int64 (c,)."""
        sizes = self.set_offsets[sets + 1] - self.set_offsets[sets]
        return sizes.astype(np.int64, copy=False)

    def query(self, tokens: np.ndarray, size: int) -> CsrQuery:
        """Return the lists of a query of `size` distinct tokens.

        Those that there are have the distinct numbers `tokens`, int64 (n,).

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
        ordered = loops.shortest_first(self.token_offsets, tokens)
        if ordered is None:
            raise _corrupt()
        return CsrQuery(self, *ordered, size)

    def look_up(self, texts: pa.Array) -> CsrQuery:
        """Look the texts of a query up in the dictionary; repeated ones count once."""
        texts = pc.unique(texts)
        positions = find_texts(self.dictionary.texts, texts)
        numbers = self.dictionary.numbers[positions[positions >= 0]].astype(np.int64)
        return self.query(numbers, len(texts))


@dataclass(frozen=True, eq=False)
class CsrQuery:
    """A query over `CsrLists`."""

    lists: CsrLists
    tokens: np.ndarray  # int64 (n,): those with the shortest lists first
    entries: np.ndarray  # int64 (n,): entries of the lists up to each
    size: int  # Distinct tokens of the query

    def n_entries(self, needed: int) -> int:
        """Return the entries of the lists that name all sets with so many tokens.

        They are the n - needed + 1 shortest ones, none where too few of the tokens are known.
        """
        prefix = len(self.tokens) - needed + 1
        return int(self.entries[prefix - 1]) if prefix > 0 else 0

    def at_least(self, needed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the sets with so many tokens of the query, and these: int64 (c,), in no order.

        Time: a step for each of `n_entries`, and for each set met a step a list or a look-up, until
        it misses too many. Memory: 8 bytes for each set met, and 4 for each set of the lake, which
        stay with the thread.
        """
        entries, lists = self.n_entries(needed), self.lists
        if entries <= 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        counts = borrow_counters(lists.n_sets)
        sets = np.empty(min(entries, lists.n_sets) + 1, np.int32)
        arrays = lists.token_offsets, lists.list_sets, lists.set_offsets, lists.set_tokens
        n = loops.sets_with_enough(*arrays, self.tokens, needed, ENTRIES_A_PROBE, counts, sets)
        if n < 0:
            raise _corrupt()
        sets = sets[:n].astype(np.int64)
        overlaps = counts[sets].astype(np.int64)
        counts[sets] = 0
        give_back(counts)
        return sets, overlaps

    def overlaps(self, sets: np.ndarray, needed: int) -> np.ndarray:
        """Count the tokens that sets have in common with the query, -1 for less than `needed`.

        At most O(n log x) time for a set of x tokens, and a few steps for one that is not like the
        query: counting a set stops as soon as it cannot have enough.
        """
        counts, lists = np.empty(len(sets), np.int64), self.lists
        arrays = lists.set_offsets, lists.set_tokens
        if not loops.count_overlaps(*arrays, sets, np.sort(self.tokens), needed, counts):
            raise _corrupt()
        return counts


def _corrupt() -> IndexCorruptError:
    return IndexCorruptError(
        "A posting list or a set of an index for containment search leads out of it: it was "
        "changed or cut short. "
        "Restore it from a copy, or build it again."
    )
