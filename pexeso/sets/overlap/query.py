"""A query: its tokens in the global order, and the distinct posting lists behind them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import QueryError
from pexeso.lake.tokens import distinct_tokens
from pexeso.sets.overlap.index.sets import OverlapIndex

Values = pa.Array | pa.ChunkedArray | np.ndarray | Collection


@dataclass(frozen=True)
class OverlapQuery:
    """A query over one index.

    Attributes
    ----------
    n_asked : int
        Distinct tokens of the query (|Q|): what containment divides by.
    tokens : int64 (n,)
        Those that some set holds, ascending (x_1 to x_n).
    starts, ends : int64 (m,)
        Places of query tokens, from 1: block b is tokens ``starts[b]`` to ``ends[b]``, whose
        posting lists hold the same sets.
    frequencies : int64 (m,)
        The length of each block's list.

    Notes
    -----
    The list that is read is that of a block's last token, so that the position in it is that of the
    rightmost match.
    """

    n_asked: int
    tokens: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    frequencies: np.ndarray

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def n_blocks(self) -> int:
        """Number of distinct posting lists."""
        return len(self.ends)


def prepare_query(index: OverlapIndex, values: Values) -> OverlapQuery:
    """Look the tokens of a query up.

    Parameters
    ----------
    values
        Cells of the query column: an Arrow or NumPy array, or a collection of Python values of any
        types; `pexeso.lake.tokens` says which of them are one token.
    """
    tokens = query_tokens(values)
    numbers = index.find(tokens)
    return query_of_tokens(index, numbers[numbers >= 0], len(tokens))


def query_of_tokens(
    index: OverlapIndex, numbers: np.ndarray, n_asked: int | None = None
) -> OverlapQuery:
    """Make a query of token numbers, such as those of a set of the index.

    Parameters
    ----------
    n_asked : int or None
        Distinct tokens asked for, known or not; None: those given.
    """
    n_asked = len(numbers) if n_asked is None else n_asked
    numbers = np.sort(numbers).astype(np.int64)
    frequencies = index.frequencies(numbers)
    if len(frequencies) and not frequencies.all():
        numbers, frequencies = numbers[frequencies > 0], frequencies[frequencies > 0]
    return OverlapQuery(n_asked, numbers, *_blocks(index.groups_of(numbers), frequencies))


def as_query(index: OverlapIndex, values: Values | OverlapQuery) -> OverlapQuery:
    """Prepare a query, unless it is; see `prepare_query`."""
    return values if isinstance(values, OverlapQuery) else prepare_query(index, values)


def query_tokens(values: Values) -> pa.LargeStringArray:
    """Return the distinct tokens of a query's cells; see `prepare_query`."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return distinct_tokens(values)
    if isinstance(values, str | bytes) or not isinstance(values, np.ndarray | Collection):
        raise QueryError(
            "A query is a column of values, such as an Arrow array or a list. Got "
            f"{type(values).__name__}."
        )
    # Arrow takes no array of several types, and turns integers into floats next to one.
    by_type: dict[type, list] = {}
    for value in values.tolist() if isinstance(values, np.ndarray) else values:
        by_type.setdefault(type(value), []).append(value)
    try:
        parts = [distinct_tokens(pa.array(some)) for some in by_type.values()]
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise QueryError(
            "A query is a column of texts, numbers, truth values, dates or times; a value is "
            f"none of these: {error}"
        ) from error
    return pc.unique(pa.concat_arrays(parts)) if parts else pa.array([], pa.large_string())


def _blocks(
    groups: np.ndarray, frequencies: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    last = np.ones(len(groups), bool)
    np.not_equal(groups[1:], groups[:-1], out=last[:-1])
    ends = np.flatnonzero(last) + 1
    starts = np.ones(len(ends), np.int64)
    starts[1:] += ends[:-1]
    return starts, ends, frequencies[ends - 1]
