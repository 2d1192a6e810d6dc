"""Query columns that were encoded, for a face that asks with one again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pexeso.semantic.encoded_query import EncodedQuery

KEPT = 8
"""Columns that are kept; of more, the one not asked with for longest is dropped."""

MAX_VALUES = 100_000
"""Distinct values of a column that is kept: at 100 dimensions it takes 40 MB at most."""


class EncodedQueries:
    """Keeps encoded query columns, for files that do not change.

    Examples
    --------
    >>> kept = EncodedQueries()
    >>> len(kept)
    0
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], EncodedQuery] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: tuple[object, ...], encode: Callable[[], EncodedQuery]) -> EncodedQuery:
        """Return the column of a key, which names the index's state too; encode it if it is new."""
        with self._lock:
            cached_query = self._kept.get(key)
            if cached_query is not None:
                self._kept.move_to_end(key)
                return cached_query
        encoded = encode()
        if len(encoded.values) <= MAX_VALUES:
            with self._lock:
                self._kept[key] = encoded
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return encoded
