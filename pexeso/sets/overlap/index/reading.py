"""Posting lists, the sets that are not to be found, and what a search has read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pexeso.errors import InputError

if TYPE_CHECKING:
    from pexeso.sets.overlap.index.sets import OverlapIndex


class PostingList(NamedTuple):
    """The sets that hold a token.

    Attributes
    ----------
    sets : integers (f,)
        Numbers of sets, each once.
    positions : integers (f,)
        The token's place in the set, from 0.
    sizes : integers (f,)
        The set's number of tokens.
    """

    sets: np.ndarray
    positions: np.ndarray
    sizes: np.ndarray


def excluded_numbers(index: OverlapIndex, ids: Collection[int]) -> np.ndarray:
    """Return the numbers of sets to exclude; ids that are not in the index are dropped."""
    ids = ids if isinstance(ids, np.ndarray) else list(ids)
    set_ids = np.asarray(ids) if len(ids) else np.empty(0, np.int64)
    if set_ids.dtype.kind not in "iu" or set_ids.ndim != 1:
        raise InputError(f"exclude must hold ids of sets, which are integers. Got {ids!r}.")
    return index.numbers_of(set_ids.astype(np.int64))


@dataclass
class Reads:
    """What a search has read.

    Attributes
    ----------
    lists, sets : int
        Posting lists and suffixes of sets, each a read of its own.
    entries, tokens : int
        Entries of these lists, tokens of these suffixes.
    n_bytes : int
        Bytes of both as they are stored.
    cost : float
        What the cost model says of them (J3).
    """

    lists: int = 0
    sets: int = 0
    entries: int = 0
    tokens: int = 0
    n_bytes: int = 0
    cost: float = 0.0

    def add_lists(self, lists: int, entries: int, n_bytes: int, cost: float) -> None:
        """Count posting lists."""
        self.lists += lists
        self.entries += entries
        self.n_bytes += n_bytes
        self.cost += cost

    def add_sets(self, sets: int, tokens: int, n_bytes: int, cost: float) -> None:
        """Count suffixes of sets."""
        self.sets += sets
        self.tokens += tokens
        self.n_bytes += n_bytes
        self.cost += cost
