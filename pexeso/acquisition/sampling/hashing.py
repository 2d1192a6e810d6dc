r"""Positions of join keys in [0, 1), the same in all tables: the hash of correlated samples.

The paper keeps a row t of a sample if h(t[J]) <= p, with h uniform on [0, 1] and the same for all
tables, and leaves h open. Here the position of a key is

    int(md5(text)[0:13], 16) / 16**13,

52 bits, where ``text`` is UTF-8 and holds, each separated from the next by the byte 0x1f,

1. the seed in decimal digits, ``"7"``;
2. the names of the columns J, sorted by their code points;
3. the values of these columns, in the same order, as tokens (`pexeso.lake.tokens`): 1, 1.0 and "1"
   are one key in tables that spell it differently.

So the key (a="x", b=2) with the seed 7 has the text ``7\x1fa\x1fb\x1fx\x1f2``. Spark SQL gives the
same of columns that hold tokens, without a pass through Python::

    conv(substr(md5(concat_ws(char(31), '7', 'a', 'b', a, b)), 1, 13), 16, 10) / pow(16, 13)

A key with a missing cell has no position: it joins nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.acquisition.measures.codes import encoded, paired_codes
from pexeso.acquisition.sampling.md5 import md5_52
from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.lake.tokens import tokens_of

SEPARATOR = "\x1f"
"""Stands between the parts of a hashed text."""


def hash_positions(
    table: pa.Table | pa.RecordBatch, names: Sequence[str], *, seed: int = 0
) -> np.ndarray:
    """Return the position of the join key of each row.

    Each distinct key is hashed once. Memory: the tokens of the columns, 40 bytes a row, and the
    text of each distinct key. It can be used in a Spark task as it is.

    Parameters
    ----------
    table : pyarrow.Table or pyarrow.RecordBatch of n rows
        The table, or a part of it.
    names : sequence of str
        J, at least one column, each once; their order does not matter.
    seed : int
        Different seeds give independent samples.

    Returns
    -------
    numpy.ndarray of float64, shape (n,)
        From 0 to below 1, NaN where a cell of the key is missing.

    Raises
    ------
    InputError
        If no column is named, one is named twice, or values have no token.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> numbers, texts = pa.table({"k": [1, 2, None]}), pa.table({"k": ["1", "2.0", "n/a"]})
    >>> hash_positions(numbers, ["k"]).round(4).tolist()
    [0.9699, 0.7842, nan]
    >>> np.array_equal(hash_positions(numbers, ["k"]), hash_positions(texts, ["k"]), equal_nan=True)
    True
    """
    names = sorted_names(names)
    tokens, codes = zip(*_coded_tokens(table, names), strict=True)
    if len(names) == 1:
        distinct, inverse = list(tokens), codes[0]
    else:
        joint = codes[0]
        for column in codes[1:]:
            joint = paired_codes(joint, column)
        _, rows, inverse = np.unique(joint, return_index=True, return_inverse=True)
        pairs = zip(tokens, codes, strict=True)
        distinct = [column.take(pa.array(numbers[rows])) for column, numbers in pairs]
    prefix = pa.scalar(SEPARATOR.join([str(int(seed)), *names]), pa.large_string())
    separator = pa.scalar(SEPARATOR, pa.large_string())
    texts = pc.binary_join_element_wise(prefix, *distinct, separator)  # null where a cell is null
    positions = md5_52(texts.fill_null("")) / 16.0**13
    positions[texts.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return positions[inverse]


def sorted_names(names: Sequence[str]) -> list[str]:
    """Return the columns of a join in the order in which they are hashed.

    Raises
    ------
    InputError
        If no column is named, or one is named twice.
    """
    if isinstance(names, str) or not names or len(set(names)) < len(names):
        raise InputError(
            f"A join needs a list of one or more columns, each named once, got {names!r}."
        )
    return sorted(names)


def key_tokens(table: pa.Table | pa.RecordBatch, names: Sequence[str]) -> list[pa.LargeStringArray]:
    """Return the columns of a join as tokens, null where a cell is missing.

    Parameters
    ----------
    table : pyarrow.Table or pyarrow.RecordBatch
        The table, or a part of it.
    names : sequence of str
        The columns.

    Returns
    -------
    list of pyarrow.LargeStringArray

    Raises
    ------
    InputError
        If values have no token.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> key_tokens(pa.table({"k": [1.0, 2.5, None]}), ["k"])[0].to_pylist()
    ['1', '2.5', None]
    """
    pairs = _coded_tokens(table, names)
    return [tokens.take(pa.array(codes)) for tokens, codes in pairs]


def with_key_tokens(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return a table with the columns of a join as tokens, so that equal keys are equal values.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    names : sequence of str
        The columns.

    Returns
    -------
    pyarrow.Table
        The same columns in the same order.

    Raises
    ------
    InputError
        If values have no token.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> with_key_tokens(pa.table({"k": [1.0, None], "x": [1.0, 2.0]}), ["k"]).to_pydict()
    {'k': ['1', None], 'x': [1.0, 2.0]}
    """
    for name, tokens in zip(names, key_tokens(table, names), strict=True):
        table = table.set_column(table.column_names.index(name), name, tokens)
    return table


def _coded_tokens(
    table: pa.Table | pa.RecordBatch, names: Sequence[str]
) -> list[tuple[pa.LargeStringArray, np.ndarray]]:
    """Return for each column the tokens of its distinct values, and the number of each row's."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    columns = [_encoded(table, name) for name in names]
    return [
        (tokens_of(column.dictionary), column.indices.to_numpy().astype(np.int64))
        for column in columns
    ]


def _encoded(table: pa.Table, name: str) -> pa.DictionaryArray:
    """Return a column with each distinct value once, of its own type, which decides on its text."""
    if table.column_names.count(name) != 1:
        raise ColumnNotFoundError(
            f"The column {name!r} must be in the table once, it is there "
            f"{table.column_names.count(name)} times. Columns: {table.column_names}."
        )
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return encoded(column, name)
