"""Columns that contain a share of another one, for all columns of a lake in one pass.

A column that has k of the n tokens of another has one of any n - k + 1 of them, so the rarest are
looked up (prefix filter), and candidates are counted exactly. What a limit leaves out of each
column is dropped before the next is looked at.

Memory: about 100 bytes for each of `TOKENS_AT_ONCE` tokens; 24 bytes for each pair of their columns
that is kept, in each shard and of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pexeso.errors import IndexCorruptError
from pexeso.runtime.jit import loop
from pexeso.runtime.ranges import offsets_of, ranges
from pexeso.sets.lake_columns import DAMAGED_LISTS, LakeColumns
from pexeso.sets.overlap.index.sets import OverlapIndex
from pexeso.sets.overlap.loops import find_texts

_SOUND, _DAMAGED = 0, -1

TOKENS_AT_ONCE = 1 << 21
"""Tokens of columns that are taken at a time; a larger column is taken by itself."""


ScoredPairs = tuple[np.ndarray, np.ndarray, np.ndarray, int]
"""Columns, their partners, the tokens that they share, and how many are left out."""


def containers(
    columns: LakeColumns,
    tokens: LakeTokens,
    needed: np.ndarray,
    limit: int,
    *,
    begin: int,
    end: int,
) -> Iterator[ScoredPairs]:
    """Yield columns, those that contain them, the tokens shared, and how many are left out.

    `needed` says for each column, int64 (n,), how many of its tokens one that contains it has; of
    those the `limit` that share most are kept.
    """
    for part in chunks(columns.sizes[begin:end]):
        chosen = np.arange(begin + part.start, begin + part.stop)
        offsets, numbers = tokens.of_columns(chosen)
        sizes = columns.sizes[chosen]
        owner = np.repeat(np.arange(len(chosen)), sizes)
        numbers = numbers[np.lexsort([numbers, tokens.frequencies[numbers], owner])]
        triples, dropped = [], 0
        for at, index in enumerate(columns.indexes):
            lists = (index.token_offsets, index.list_sets, index.set_offsets, index.set_tokens)
            state, *rest, n = find_containers(
                chosen,
                offsets,
                tokens.in_shard(at, numbers),
                np.maximum(sizes - needed[chosen] + 1, 0),
                needed[chosen],
                tuple(np.asarray(array) for array in lists),
                (columns.of_set[at], columns.table_numbers, columns.sizes),
                limit,
            )
            if state == _DAMAGED:
                raise IndexCorruptError(DAMAGED_LISTS)
            triples.append(rest)
            dropped += n
        *best, n = keep_best(triples, limit)
        yield *best, dropped + n


def keep_best(triples: list[tuple[np.ndarray, ...]], limit: int) -> ScoredPairs:
    """Keep the partners of each left column that share most tokens."""
    none = (np.empty(0, np.int64),) * 3
    left, right, shared = map(np.concatenate, zip(none, *triples, strict=True))
    order = np.lexsort([right, -shared, left])
    rank = np.arange(len(order)) - np.searchsorted(left[order], left[order])
    best = order[rank < limit]
    return left[best], right[best], shared[best], len(order) - len(best)


def chunks(sizes: np.ndarray, max_tokens: int | None = None) -> Iterator[slice]:
    """Yield runs of columns with some `TOKENS_AT_ONCE` tokens together, or at most so many."""
    max_tokens = TOKENS_AT_ONCE if max_tokens is None else min(max_tokens, TOKENS_AT_ONCE)
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = ends[first - 1] if first else 0
        last = int(np.searchsorted(ends, before + max_tokens, "right"))
        last = max(last, first + 1)
        yield slice(first, last)
        first = last


@loop
def _grown(array):
    larger = np.empty(2 * len(array) + 16, array.dtype)
    larger[: len(array)] = array
    return larger


@loop
def _holds(tokens, low, end, token):
    """Return whether an ascending run holds a number."""
    last = end
    while low < end:
        middle = (low + end) // 2
        if tokens[middle] < token:
            low = middle + 1
        else:
            end = middle
    return low < last and tokens[low] == token


@loop
def _best(right, shared, limit):
    """Return the positions of the pairs that share most, of equal ones those of the least right."""
    order = np.argsort(right, kind="mergesort")
    return np.sort(order[np.argsort(-shared[order], kind="mergesort")[:limit]])


@loop
def find_containers(lefts, offsets, tokens, prefixes, needed, lists, columns, limit):
    """Find the sets that hold enough tokens of given ones.

    Parameters
    ----------
    lefts : int64 (m,)
        Columns whose containers are wanted.
    offsets : int64 (m + 1,)
        Where the tokens of each begin.
    tokens : int64 (offsets[-1],)
        As numbers of the searched index, -1 where it lacks one; the rarest of a column first.
    prefixes : int64 (m,)
        How many tokens of each are looked up: one of them is shared with each container.
    needed : int64 (m,)
        Least number of shared tokens.
    columns : tuple
        ``of_set``: the column of each set of the searched index, -1 for none; ``table``, ``size``:
        of each column of the lake its table and how many tokens it has.

    Returns
    -------
    (int, int64 (r,), int64 (r,), int64 (r,), int)
        `_SOUND` or `_DAMAGED`; a column, one that contains it, and the tokens that they share; how
        many were left out by the limit.
    """
    token_offsets, list_sets, set_offsets, set_tokens = lists
    of_set, table, size = columns
    stamps = np.full(len(of_set), -1, np.int64)
    left, right, shared = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    n = 0
    dropped = 0
    for row in range(len(lefts)):
        me, first, end, begin = lefts[row], offsets[row], offsets[row + 1], n
        misses = (end - first) - needed[row]
        for at in range(first, first + prefixes[row]):
            token = tokens[at]
            if token < 0:
                continue
            for entry in range(token_offsets[token], token_offsets[token + 1]):
                other = list_sets[entry]
                if other < 0 or other >= len(of_set):
                    return _DAMAGED, left[:0], right[:0], shared[:0], 0
                if stamps[other] == row:
                    continue
                stamps[other] = row
                column = of_set[other]
                if column < 0 or table[column] == table[me] or size[column] < needed[row]:
                    continue
                # Verified: the rarest tokens first, since they are missed most.
                low, high = set_offsets[other], set_offsets[other + 1]
                missed = 0
                for position in range(first, end):
                    if tokens[position] < 0 or not _holds(set_tokens, low, high, tokens[position]):
                        missed += 1
                        if missed > misses:
                            break
                if missed > misses:
                    continue
                if n == len(left):
                    left, right, shared = _grown(left), _grown(right), _grown(shared)
                left[n], right[n], shared[n] = me, column, (end - first) - missed
                n += 1
        if n - begin > limit:
            best = _best(right[begin:n], shared[begin:n], limit)
            right[begin : begin + limit] = right[begin:n][best]
            shared[begin : begin + limit] = shared[begin:n][best]
            dropped += n - begin - limit
            n = begin + limit
    return _SOUND, left[:n], right[:n], shared[:n], dropped


@dataclass(frozen=True, eq=False)
class LakeTokens:
    """Numbers that are the same in all shards.

    Attributes
    ----------
    common : tuple of integer arrays, one a shard
        The common number of each token of the shard.
    by_common : tuple of integer arrays, one a shard
        Its tokens in the order of their common numbers.
    frequencies : int32 (t,)
        The columns that hold each token; deleted ones do not count.
    """

    columns: LakeColumns
    common: tuple[np.ndarray, ...]
    by_common: tuple[np.ndarray, ...]
    frequencies: np.ndarray

    @classmethod
    def of(cls, columns: LakeColumns) -> LakeTokens:
        """Return common numbers for the tokens of all shards, and count the columns of each."""
        indexes = columns.indexes
        common, n_tokens = _common_numbers(indexes)
        frequencies = np.zeros(n_tokens, np.int32)
        for index, of_set, numbers in zip(
            indexes, columns.of_set, common or [slice(None)] * len(indexes), strict=True
        ):
            frequencies[numbers] += _live(index, of_set >= 0)
        by_common = tuple(
            np.argsort(array, kind="stable").astype(array.dtype, copy=False) for array in common
        )
        return cls(columns, tuple(common), by_common, frequencies)

    def of_columns(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens of some columns, one after the other, by common numbers.

        Returns
        -------
        (int64 (c + 1,), int64 (p,))
            Where those of each begin; the numbers.
        """
        sizes = self.columns.sizes[chosen]
        offsets, tokens = offsets_of(sizes), np.empty(int(sizes.sum()), np.int64)
        for at, index in enumerate(self.columns.indexes):
            positions = np.flatnonzero(self.columns.shard_of[chosen] == at)
            if len(positions):
                begins = np.asarray(index.set_offsets)[self.columns.set_of[chosen[positions]]]
                numbers = np.asarray(index.set_tokens)[ranges(begins, sizes[positions])]
                if len(numbers) and (numbers.min() < 0 or numbers.max() >= index.n_tokens):
                    raise IndexCorruptError(DAMAGED_LISTS)
                numbers = self.common[at][numbers] if self.common else numbers
                tokens[ranges(offsets[positions], sizes[positions])] = numbers
        return offsets, tokens

    def in_shard(self, at: int, tokens: np.ndarray) -> np.ndarray:
        """Return the shard's own numbers of tokens, -1 where it lacks one: int64."""
        if not self.common:
            return tokens
        ordered = self.common[at][self.by_common[at]]
        positions = np.minimum(np.searchsorted(ordered, tokens), max(len(ordered) - 1, 0))
        if not len(ordered):
            return np.full(len(tokens), -1, np.int64)
        numbers = self.by_common[at][positions].astype(np.int64)
        return np.where(ordered[positions] == tokens, numbers, -1)


def _live(index: OverlapIndex, live: np.ndarray) -> np.ndarray:
    if live.all():
        return np.diff(np.asarray(index.token_offsets)).astype(np.int32)
    counts = np.empty(index.n_tokens, np.int32)
    offsets, lists = np.asarray(index.token_offsets), np.asarray(index.list_sets)
    if live_frequencies(offsets, lists, live, counts) == _DAMAGED:
        raise IndexCorruptError(DAMAGED_LISTS)
    return counts


def _common_numbers(indexes: Sequence[OverlapIndex]) -> tuple[list[np.ndarray], int]:
    """Return common numbers by shard, none for a single one, and how many there are."""
    if len(indexes) < 2:
        return [], sum(index.n_tokens for index in indexes)
    kind = np.int32 if sum(index.n_tokens for index in indexes) < 2**31 else np.int64
    numbers: list[np.ndarray] = []
    n = 0
    for at, index in enumerate(indexes):
        common = np.full(index.n_tokens, -1, kind)
        own_numbers = np.asarray(index.dictionary.numbers)
        for before in range(at):
            other = indexes[before]
            positions = find_texts(other.dictionary.texts, index.dictionary.texts)
            matches = np.flatnonzero(positions >= 0)
            other_numbers = np.asarray(other.dictionary.numbers)[positions[matches]]
            common[own_numbers[matches]] = numbers[before][other_numbers]
        new = np.flatnonzero(common < 0)
        common[new] = n + np.arange(len(new))
        n += len(new)
        numbers.append(common)
    return numbers, n


@loop
def live_frequencies(token_offsets, list_sets, live, frequencies):
    """Count the live sets of each posting list; return `_DAMAGED` where one names no set."""
    for token in range(len(frequencies)):
        n = 0
        for at in range(token_offsets[token], token_offsets[token + 1]):
            row = list_sets[at]
            if row < 0 or row >= len(live):
                return _DAMAGED
            n += live[row]
        frequencies[token] = n
    return _SOUND
