"""Columns that contain a share of another one, for all columns of a lake in one pass.

A column that has k of the n tokens of another has one of any n - k + 1 of them, so the rarest are
looked up (prefix filter), and candidates are counted exactly. What a limit leaves out of each
column is dropped before the next is looked at.

Memory: about 100 bytes for each of `TOKENS_AT_ONCE` tokens; 24 bytes for each pair of their columns
that is kept, in each shard and of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pexeso.acquisition_search.pairs.lake_columns import DAMAGED_LISTS, LakeColumns
from pexeso.acquisition_search.pairs.lake_tokens import LakeTokens
from pexeso.acquisition_search.pairs.pair_loops import DAMAGED, find_containers
from pexeso.engine.vector_space import count_needed
from pexeso.errors import IndexCorruptError

ANY = np.iinfo(np.int64).max
"""No limit on the columns that have a telling token."""

TOKENS_AT_ONCE = 1 << 21
"""Tokens of columns that are taken at a time; a larger column is taken by itself."""


ScoredPairs = tuple[np.ndarray, np.ndarray, np.ndarray, int]
"""Columns, their partners, the tokens that they share, and how many are left out."""


@dataclass(frozen=True, eq=False)
class ContainmentRule:
    """Which columns contain another one well enough.

    Attributes
    ----------
    needed : int64 (n,)
        For each column how many of its tokens one that contains it shares.
    min_telling : int
        How many of these are telling.
    max_frequency : int
        A token is telling if at most so many columns have it, and it is no short number; `ANY`
        makes all tokens telling.
    keys : bool (n,)
        One of two columns is one of these.
    ties : int64 (n,)
        Of columns that share equally many tokens those of the least come first.
    """

    needed: np.ndarray
    min_telling: int
    max_frequency: int
    keys: np.ndarray
    ties: np.ndarray

    @classmethod
    def of_share(cls, columns: LakeColumns, min_share: float) -> ContainmentRule:
        """Return the rule that a share of the tokens of a column suffices, whatever they are."""
        n = len(columns)
        needed = count_needed(min_share, columns.sizes)
        return cls(needed, 0, ANY, np.ones(n, bool), np.zeros(n, np.int64))


def containers(
    columns: LakeColumns,
    tokens: LakeTokens,
    rule: ContainmentRule,
    limit: int,
    *,
    begin: int = 0,
    end: int | None = None,
) -> Iterator[ScoredPairs]:
    """Yield columns, those that contain them, the tokens shared, and how many are left out.

    Parameters
    ----------
    columns : LakeColumns
    tokens : LakeTokens
        Those of these columns.
    rule : ContainmentRule
    limit : int
        The most for each column: those that share most tokens.
    begin, end : int, optional
        Only of columns from one number to another, by default of all; each is compared with all.

    Yields
    ------
    (int64 (p,), int64 (p,), int64 (p,), int)
        Of some `TOKENS_AT_ONCE` tokens, in the order of the columns; what contains one of them best
        comes first.
    """
    end = len(columns) if end is None else end
    for part in chunks(columns.sizes[begin:end]):
        chosen = np.arange(begin + part.start, begin + part.stop)
        offsets, numbers = tokens.of_columns(chosen)
        sizes = columns.sizes[chosen]
        owner = np.repeat(np.arange(len(chosen)), sizes)
        frequencies = tokens.frequencies[numbers]
        telling = frequencies <= rule.max_frequency
        if rule.max_frequency != ANY:
            telling &= ~tokens.are_short_numbers[numbers]
        order = np.lexsort([numbers, frequencies, ~telling, owner])
        numbers, telling = numbers[order], telling[order]
        needed = rule.needed[chosen]
        n_telling = np.bincount(owner, telling, len(chosen)).astype(np.int64)
        prefixes = np.minimum(sizes - needed + 1, n_telling - rule.min_telling + 1)
        triples, dropped = [], 0
        for at, index in enumerate(columns.indexes):
            lists = (index.token_offsets, index.list_sets, index.set_offsets, index.set_tokens)
            state, *rest, n = find_containers(
                chosen,
                offsets,
                tokens.in_shard(at, numbers),
                telling,
                np.maximum(prefixes, 0),
                needed,
                rule.min_telling,
                tuple(np.asarray(array) for array in lists),
                (columns.of_set[at], columns.table_numbers, rule.keys, columns.sizes),
                rule.ties,
                limit,
            )
            if state == DAMAGED:
                raise IndexCorruptError(DAMAGED_LISTS)
            triples.append(rest)
            dropped += n
        *best, n = keep_best(triples, limit, rule.ties)
        yield *best, dropped + n


def keep_best(triples: list[tuple[np.ndarray, ...]], limit: int, ties: np.ndarray) -> ScoredPairs:
    """Keep the partners of each left column that share most tokens."""
    left, right, shared = joined(triples)
    order = np.lexsort([right, ties[right], -shared, left])
    rank = np.arange(len(order)) - np.searchsorted(left[order], left[order])
    best = order[rank < limit]
    return left[best], right[best], shared[best], len(order) - len(best)


def joined(triples: list[tuple[np.ndarray, ...]]) -> Iterator[np.ndarray]:
    """Put triples of arrays one after the other."""
    none = (np.empty(0, np.int64),) * 3
    return map(np.concatenate, zip(none, *triples, strict=True))


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
