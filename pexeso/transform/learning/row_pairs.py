"""Rows of two columns that probably join: they share a piece of text that hardly any others hold.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, section 4.2 (``FindJoinableRowPairs``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pexeso.runtime.ranges import ranges
from pexeso.transform.learning.suffixes import SharedPrefixes

MIN_LENGTHS = (3, 2, 1)
"""Characters of a shared piece (the q of the source), the next where nothing is found with one."""

MAX_HOLDERS = 100
"""Pairs of values that share a piece, above which the piece says nothing (a score below .01)."""

MAX_ENTRIES = 200_000
"""Pairs that are made of the rarest and longest pieces first; more are left out, ties kept."""


@dataclass(frozen=True, slots=True)
class RowPairs:
    """Pairs of a source value and a target value, the most telling first.

    Attributes
    ----------
    sources, targets : int32 (p,)
        Numbers of the texts.
    holders : int32 (p,)
        Pairs of values that share the piece of the pair: n times m of the source, whose score is
        1 / (n m).
    lengths : int32 (p,)
        Characters of the piece.
    """

    sources: np.ndarray
    targets: np.ndarray
    holders: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.sources)


def find_row_pairs(
    prefixes: SharedPrefixes, sides: np.ndarray, *, min_length: int = MIN_LENGTHS[0]
) -> RowPairs:
    """Pair values by the rarest pieces of text that they share.

    Of each source value the pieces count that the fewest pairs of values share. All pairs of the
    holders of such a piece are found. They are sorted by the number of holders, then by the length
    of the piece, the longest first, then by the numbers of the texts. Where several values hold
    the rarest pieces, pairs that share more of them come before those with longer ones.

    Parameters
    ----------
    sides : int8 (v,)
        As they were given to `shared_prefixes`.
    """
    holders = prefixes.n_sources.astype(np.int64) * prefixes.n_targets
    selected = np.flatnonzero((prefixes.lengths >= min_length) & (holders <= MAX_HOLDERS))
    fewest = np.full(len(sides), MAX_HOLDERS + 1, np.int64)
    np.minimum.at(fewest, prefixes.sources[selected], holders[selected])
    selected = selected[holders[selected] == fewest[prefixes.sources[selected]]]
    selected = _once_a_piece(prefixes, selected)
    selected = _most_telling(selected, holders, prefixes.lengths)

    first, last = prefixes.first[selected], prefixes.last[selected]
    inside = prefixes.members[ranges(first, last + 1 - first)]
    piece = np.repeat(np.arange(len(selected)), last + 1 - first)
    is_source = sides[inside] == 1
    sources, source_at = _distinct_by_piece(inside[is_source], piece[is_source], len(selected))
    targets, target_at = _distinct_by_piece(inside[~is_source], piece[~is_source], len(selected))
    n_sources, n_targets = np.diff(source_at), np.diff(target_at)
    count = n_sources * n_targets
    piece = np.repeat(np.arange(len(selected)), count)
    position = np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count)
    left = sources[source_at[piece] + position // n_targets[piece]]
    right = targets[target_at[piece] + position % n_targets[piece]]
    return _sorted_once(left, right, holders[selected][piece], prefixes.lengths[selected][piece])


def _once_a_piece(prefixes: SharedPrefixes, selected: np.ndarray) -> np.ndarray:
    """Keep one suffix for each piece: several begin with it, of one value or of many."""
    pieces = np.stack([prefixes.first[selected], prefixes.lengths[selected]], axis=1)
    return selected[np.unique(pieces, axis=0, return_index=True)[1]]


def _most_telling(selected: np.ndarray, holders: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    rank = holders[selected] * (int(lengths.max(initial=0)) + 1) - lengths[selected]
    order = np.argsort(rank, kind="stable")
    entries = np.cumsum(holders[selected][order])
    if not len(order) or entries[-1] <= MAX_ENTRIES:
        return selected
    worst = rank[order[np.searchsorted(entries, MAX_ENTRIES)]]
    return selected[rank <= worst]


def _distinct_by_piece(
    texts: np.ndarray, pieces: np.ndarray, n_pieces: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct texts of each piece, and where each piece's begin."""
    both = np.unique(np.stack([pieces, texts], axis=1), axis=0)
    return both[:, 1], np.searchsorted(both[:, 0], np.arange(n_pieces + 1))


def _sorted_once(
    sources: np.ndarray, targets: np.ndarray, holders: np.ndarray, lengths: np.ndarray
) -> RowPairs:
    order = np.lexsort((-lengths.astype(np.int64), holders, targets, sources))
    sources, targets, holders = sources[order], targets[order], holders[order]
    new = np.ones(len(order), bool)
    new[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    first = np.flatnonzero(new)
    pieces = np.diff(np.append(first, len(order)))
    sources, targets, holders = sources[first], targets[first], holders[first]
    lengths = lengths[order][first].astype(np.int64)
    # A piece that is unique tells more the longer it is, however many there are.
    more = np.where(holders > 1, pieces, 0)
    order = np.lexsort((targets, sources, -lengths, -more, holders))
    return RowPairs(
        sources[order].astype(np.int32),
        targets[order].astype(np.int32),
        holders[order].astype(np.int32),
        lengths[order].astype(np.int32),
    )
