"""What the algorithms ask of an index, whether its arrays lie in files or were changed since: posting lists, suffixes of sets, and what they cost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError


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


class OverlapSource(Protocol):
    """An index as searches see it: one snapshot of sets and posting lists, whose positions agree.

    Sets and tokens are numbered from 0. Numbers of tokens are the global order; `ids_of` gives the ids that answers name sets by.
    """

    @property
    def n_sets(self) -> int:
        """Numbers of sets are less than this."""

    def begin_search(self) -> None:
        """Be told that a search begins."""

    def find(self, tokens: pa.Array) -> np.ndarray:
        """Give the number of each token, -1 where no set holds it: int64 (q,)."""

    def frequencies(self, tokens: np.ndarray) -> np.ndarray:
        """Give the lengths of posting lists: int64 (q,)."""

    def groups_of(self, tokens: np.ndarray) -> np.ndarray:
        """Give the duplicate groups of tokens: int64 (q,); tokens of one group have lists with the same sets."""

    def pairs_from(self, token: int) -> int:
        """Give the number of entries of the posting lists from that of a token on; about, where values were added or deleted."""

    def posting_lists(self, tokens: np.ndarray) -> tuple[PostingList, np.ndarray]:
        """Read posting lists, one after the other as one, and give their lengths: int64 (q,)."""

    def expect_lists(self, tokens: np.ndarray) -> None:
        """Be told that these posting lists are likely read soon."""

    def posting_sets(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read the sets of posting lists, without positions and sizes, and give their lengths."""

    def suffixes(self, numbers: np.ndarray, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read the tokens of sets, ascending, each from a position on, one set after the other, and give how many there are of each: int64 (q,)."""

    def ids_of(self, numbers: np.ndarray) -> np.ndarray:
        """Give the ids of sets: int64."""

    def ranks_of(self, numbers: np.ndarray) -> np.ndarray:
        """Give numbers that order sets as their ids do: int64."""

    def ids_of_ranks(self, ranks: np.ndarray) -> np.ndarray:
        """Give the ids of sets by their ranks: int64."""

    def numbers_of(self, ids: np.ndarray) -> np.ndarray:
        """Give the numbers of those of these ids that are sets of the index: int64."""


def excluded_numbers(source: OverlapSource, ids: Collection[int]) -> np.ndarray:
    """Give the numbers of sets that are not to be found; ids that are none of the index are left out.

    Raises
    ------
    InputError
        They are no integers.
    """
    ids = ids if isinstance(ids, np.ndarray) else list(ids)
    wanted = np.asarray(ids) if len(ids) else np.empty(0, np.int64)
    if wanted.dtype.kind not in "iu" or wanted.ndim != 1:
        raise InputError(f"exclude must hold ids of sets, which are integers. Got {ids!r}.")
    return source.numbers_of(wanted.astype(np.int64))


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
