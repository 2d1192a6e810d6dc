"""Rows of tables as 128-bit hashes, on any of their columns, from one reading of the cells.

A cell is worth a hash by its column and typed value; a row on some columns is the sum of its
cells, modulo 2**64 in each half. So one pass over a table gives the hashes of its rows on the
columns of every other table: two rows that differ have one hash with probability 2**-128, if the
functions behave like random ones. Among E pairs of tables of at most n rows a wrong answer then has
probability at most E * n**2 / 2**128: 3e-17 for 10,000 pairs of tables of a billion rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pexeso.lake.readers.plain_arrays import plain
from pexeso.redundancy.cell_hashes import HALVES, NULL, cells_of_column, value_hashes
from pexeso.runtime.jit import loop

MIN_ROWS_PER_VALUE = 4
"""Columns with fewer rows for each distinct value are kept as a hash of each row."""

_WIDTHS = (np.uint8, np.uint16, np.uint32)


@dataclass(frozen=True)
class HashedColumn:
    """The cells of a column as hashes of their values.

    Attributes
    ----------
    hashes : uint64 (d, 2)
        Of each distinct value, or of each row where there are no codes.
    codes : uint8, uint16 or uint32 (n,), or None
        Of each row the number of its value.
    """

    hashes: np.ndarray
    codes: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.hashes if self.codes is None else self.codes)


def hashed_column(values: pa.Array, *, is_json: bool = False) -> HashedColumn:
    """Hash the cells of a column.

    Examples
    --------
    >>> column = hashed_column(pa.array(["a", "b", None] * 10))
    >>> column.hashes.shape, column.codes.dtype, len(column)
    ((3, 2), dtype('uint8'), 30)
    """
    values = plain(values)
    if not _is_encodable(values.type):
        return HashedColumn(value_hashes(values, is_json=is_json))
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    distinct = np.concatenate([value_hashes(values.dictionary, is_json=is_json), NULL[None]])
    indices = values.indices.fill_null(len(distinct) - 1).to_numpy()
    if not values.null_count and not values.dictionary.null_count:
        distinct = distinct[:-1]
    if len(indices) < MIN_ROWS_PER_VALUE * len(distinct):
        return HashedColumn(distinct[indices])
    width = next(width for width in _WIDTHS if len(distinct) <= np.iinfo(width).max + 1)
    return HashedColumn(distinct, indices.astype(width))


def _is_encodable(kind: pa.DataType) -> bool:
    types = pa.types
    return not (types.is_nested(kind) or types.is_null(kind) or types.is_interval(kind))


def row_hashes(
    n_rows: int, columns: Sequence[HashedColumn | None], tokens: Sequence[str]
) -> np.ndarray:
    """Return the hashes of rows on some columns.

    Parameters
    ----------
    n_rows : int
    columns : sequence of HashedColumn or None
        Each of `n_rows` cells; None is a column without any value.

    Returns
    -------
    uint64 (n, 2)

    Examples
    --------
    >>> a, b = hashed_column(pa.array([1, 2])), hashed_column(pa.array(["x", "y"]))
    >>> bool((row_hashes(2, [a, b], ["a", "b"]) == row_hashes(2, [b, a], ["b", "a"])).all())
    True
    """
    hashes = np.zeros((n_rows, HALVES), np.uint64)
    for column, token in zip(columns, tokens, strict=True):
        if column is None:
            hashes += cells_of_column(NULL[None], token)
            continue
        cells = cells_of_column(column.hashes, token)
        if column.codes is None:
            hashes += cells
        else:
            _add_coded(hashes, cells, column.codes)
    return hashes


@loop
def _add_coded(hashes, cells, codes):
    for row in range(len(codes)):
        code = codes[row]
        hashes[row, 0] += cells[code, 0]
        hashes[row, 1] += cells[code, 1]
