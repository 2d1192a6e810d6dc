"""Tokens of all shards of an index under common numbers, and how many columns hold each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pexeso.acquisition_search.pairs.lake_columns import (
    DAMAGED_LISTS,
    LakeColumns,
    are_short_numbers,
)
from pexeso.acquisition_search.pairs.pair_loops import DAMAGED, live_frequencies
from pexeso.errors import IndexCorruptError
from pexeso.overlap.index.sets import OverlapIndex
from pexeso.overlap.loops import find_texts
from pexeso.runtime.ranges import offsets_of, ranges
from pexeso.store.texts import require_sound

TEXTS_AT_ONCE = 1 << 20
"""Texts of a dictionary that are looked at at a time."""


@dataclass(frozen=True, eq=False)
class LakeTokens:
    """Numbers that are the same in all shards.

    Attributes
    ----------
    columns : LakeColumns
    common : tuple of integer arrays, one a shard
        The common number of each token of the shard.
    by_common : tuple of integer arrays, one a shard
        Its tokens in the order of their common numbers.
    frequencies : int32 (t,)
        The columns that hold each token; deleted ones do not count.
    are_short_numbers : bool (t,)
        See `pexeso.acquisition_search.pairs.lake_columns.are_short_numbers`.

    Notes
    -----
    Memory: 5 bytes for each distinct token, and 8 for each token of each shard, 16 beyond 2**31
    tokens. An index of one shard needs no common numbers: 5 bytes a token.
    """

    columns: LakeColumns
    common: tuple[np.ndarray, ...]
    by_common: tuple[np.ndarray, ...]
    frequencies: np.ndarray
    are_short_numbers: np.ndarray

    @classmethod
    def of(cls, columns: LakeColumns) -> LakeTokens:
        """Return common numbers for the tokens of all shards, and count the columns of each.

        Raises
        ------
        IndexCorruptError
            If offsets or lists of an index lead out of it.
        """
        indexes = columns.indexes
        common, n_tokens = _common_numbers(indexes)
        frequencies, short = np.zeros(n_tokens, np.int32), np.zeros(n_tokens, bool)
        for index, of_set, numbers in zip(
            indexes, columns.of_set, common or [slice(None)] * len(indexes), strict=True
        ):
            frequencies[numbers] += _live(index, of_set >= 0)
            short[numbers] = _short_numbers(index)
        by_common = tuple(
            np.argsort(array, kind="stable").astype(array.dtype, copy=False) for array in common
        )
        return cls(columns, tuple(common), by_common, frequencies, short)

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
    if live_frequencies(offsets, lists, live, counts) == DAMAGED:
        raise IndexCorruptError(DAMAGED_LISTS)
    return counts


def _short_numbers(index: OverlapIndex) -> np.ndarray:
    """Return which tokens of an index are short numbers, by their numbers."""
    texts, is_short = index.dictionary.texts, np.zeros(index.n_tokens, bool)
    numbers = np.asarray(index.dictionary.numbers)
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        some = texts.slice(first, TEXTS_AT_ONCE)
        require_sound(some)
        is_short[numbers[first : first + len(some)]] = are_short_numbers(some)
    return is_short


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
