"""The distinct keys of a query, and the column by which they are looked up first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.composite.row_keys import RowFilter, RowKeys, numbered, texts_of
from pexeso.errors import QueryError

FIRST_COLUMNS = ("postings", "cardinality", "order", "longest")
"""How the column to look up first is chosen, if not by its number."""


@dataclass(frozen=True, eq=False)
class KeyQuery:
    """The distinct keys of a query. `key_query` makes them.

    Attributes
    ----------
    values : Arrow texts (u,)
        Distinct values of the key columns, in order.
    keys : int32 (n, m)
        Of each key the number of its value in each column.
    row_counts : int64 (n,)
        How many rows of the query have each key.
    first_rows : int64 (n,)
        The first row of the query that has each key.
    n_rows : int
        Rows of the query, those without a value in some key column included.
    """

    values: pa.Array
    keys: np.ndarray
    row_counts: np.ndarray
    first_rows: np.ndarray
    n_rows: int

    @property
    def n_keys(self) -> int:
        """Number of distinct keys."""
        return len(self.keys)

    @property
    def n_columns(self) -> int:
        """Number of columns of a key."""
        return self.keys.shape[1]

    def numbers_in(self, rows: RowKeys) -> np.ndarray:
        """Return the keys as numbers of the lake's values, -1 where it lacks one: int32 (n, m).

        Parameters
        ----------
        rows : RowKeys
            Of tables normalised as the query is.
        """
        return rows.find(self.values)[self.keys]

    def super_keys(self, hashing: RowFilter) -> np.ndarray:
        """Return the bits that each key needs: uint64 (n, words).

        Parameters
        ----------
        hashing : RowFilter
            That of the rows.
        """
        return np.bitwise_or.reduce(hashing.hashes(self.values)[self.keys], axis=1)


def key_query(columns: Sequence[pa.Array | pa.ChunkedArray]) -> KeyQuery:
    """Take the key columns of a query table.

    Parameters
    ----------
    columns : sequence of Arrow texts, equally long
        Normalised as the lake is. A row with null or the empty text in one of them has no key.

    Returns
    -------
    KeyQuery
        Of no keys where no row has one.

    Raises
    ------
    QueryError
        There is no column, one of another length, or one that does not hold texts.

    Examples
    --------
    >>> query = key_query([pa.array(["a", "a", None]), pa.array(["x", "x", "y"])])
    >>> query.keys.tolist(), query.row_counts.tolist()
    ([[0, 1]], [2])
    """
    lengths = [len(column) for column in columns]
    if len(set(lengths)) != 1:
        raise QueryError(
            "A composite key is one column or more, all of the same length. Got "
            f"{', '.join(f'{n:,} rows' for n in lengths) or 'no column'}."
        )
    chunks: list[pa.Array] = []
    for number, column in enumerate(columns):
        chunks += texts_of(column, f"Column {number} of the query's key", QueryError)
    values, flat = numbered(pa.chunked_array(chunks, pa.large_string()))
    every_row = flat.reshape(len(columns), lengths[0]).T
    whole = np.flatnonzero((every_row >= 0).all(axis=1))
    keys, first, row_counts = np.unique(
        every_row[whole], axis=0, return_index=True, return_counts=True
    )
    keys = np.ascontiguousarray(keys, np.int32)
    return KeyQuery(values, keys, row_counts, whole[first], lengths[0])


def first_column(query: KeyQuery, rule: str | int, lengths: np.ndarray, known: np.ndarray) -> int:
    """Return the column of the key whose posting lists are read.

    The answer to a search is the same for each; the rows that it reads are not.

    Parameters
    ----------
    lengths : int64 (u,)
        Of the posting list of each value.
    known : int64
        Keys whose values are all in the lake: of the others no list is read.
    """
    m = query.n_columns
    if isinstance(rule, int | np.integer) and not isinstance(rule, bool) and 0 <= rule < m:
        return int(rule)
    if rule == "order":
        return 0
    if rule == "postings":
        keys = query.keys[known]
        return int(np.argmin([lengths[_marked(keys[:, c], lengths)].sum() for c in range(m)]))
    if rule == "cardinality":
        return int(np.argmin([_marked(query.keys[:, c], lengths).sum() for c in range(m)]))
    if rule == "longest":
        letters = pc.utf8_length(query.values).to_numpy()
        return int(np.argmax(letters[query.keys].max(axis=0)))
    raise QueryError(
        f"The column to look up first must be one of {', '.join(FIRST_COLUMNS)}, or its number "
        f"from 0 to {m - 1}. Got {rule!r}."
    )


def _marked(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return which values are among some: bool (u,)."""
    marked = np.zeros(len(like), np.bool_)
    marked[values] = True
    return marked
