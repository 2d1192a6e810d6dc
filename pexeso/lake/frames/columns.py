"""A column in memory, of whichever library, as Arrow values and as texts."""

from __future__ import annotations

from collections.abc import Iterable, Set
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import QueryError
from pexeso.lake.readers.plain_arrays import plain
from pexeso.lake.readers.table import join_chunks, strings
from pexeso.lake.typed.bad_cells import mended_texts
from pexeso.lake.typed.text import as_text
from pexeso.lake.typed.value_texts import float_text

NOT_UTF8 = (
    "A query column holds bytes that are no UTF-8 text. Decode them first, such as by "
    "bytes.decode with the right encoding."
)

_REFUSED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError)


def is_polars(values: Any, name: str) -> bool:
    """Return whether something is of a class of polars, such as ``"Series"``; polars stays out."""
    return any(
        base.__name__ == name and base.__module__.partition(".")[0] == "polars"
        for base in type(values).__mro__
    )


def arrow_column(values: Any) -> pa.Array | pa.ChunkedArray:
    """Return a column as Arrow values, null where a cell is missing.

    Parameters
    ----------
    values : Arrow or pandas or polars column, NumPy array (n,), iterable
        Whatever else has the Arrow PyCapsule interface is taken over by it, without a copy where
        its library allows. NaN, NaT and None of pandas, NumPy and Python are missing.

    Examples
    --------
    >>> arrow_column([1, None, float("nan")]).to_pylist()
    [1, None, None]
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _without_views(values)
    # Before the interface of Arrow, which series of pandas have too: by that NaN is no missing cell
    # and a column of mixed types an error.
    if is_polars(values, "Series"):
        # By the interface of Arrow, polars exports the addresses of objects, and versions 1.x of it
        # export dates and categories as their numbers, which Arrow refuses.
        if str(values.dtype) != "Object":
            return _without_views(values.to_arrow())
        values = values.to_list()
    elif not hasattr(values, "iloc"):
        if hasattr(values, "__arrow_c_stream__"):
            return _without_views(pa.chunked_array(values))
        if hasattr(values, "__arrow_c_array__"):
            return _without_views(pa.array(values))
    return _without_views(pa.array(values, from_pandas=True))


def column_texts(values: Any) -> pa.StringArray:
    """Return the cells of a column as texts, null where a cell is missing.

    Parameters
    ----------
    values : column
        As `arrow_column` takes it, and iterators, and columns of mixed types. The values of a set,
        which has no order, are sorted by their texts.

    Examples
    --------
    >>> column_texts([1, "a", None]).to_pylist(), column_texts({"b", "a"}).to_pylist()
    (['1', 'a', None], ['a', 'b'])
    """
    if isinstance(values, set | frozenset):
        texts = _texts(list(values))
        return texts.take(pc.sort_indices(texts))
    return _texts(values if _can_be_read_again(values) else list(values))


def texts_of_cells(values: Any) -> pa.StringArray:
    r"""Return the cells of a column that nothing is searched with as texts, as `column_texts` does.

    Bytes that are no UTF-8 text are no error here: such cells have no text, as those of files.

    Examples
    --------
    >>> texts_of_cells([b"\xff", b"a"]).to_pylist()
    [None, 'a']
    """
    try:
        return column_texts(values)
    except QueryError as error:
        with suppress(*_REFUSED, OverflowError, UnicodeEncodeError):
            column = arrow_column(values)
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            return join_chunks([mended_texts(plain(chunk), error).texts for chunk in chunks])
        raise


def cells_to_show(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return cells as Python has them, or as texts where a date is none that Python has.

    Examples
    --------
    >>> cells_to_show(pa.array([1, None])), cells_to_show(pa.array([1 << 62], pa.timestamp("us")))
    ([1, None], [None])
    """
    try:
        return column.to_pylist()
    except (OverflowError, ValueError):
        return texts_of_cells(column).to_pylist()


def _can_be_read_again(values: Any) -> bool:
    """Return whether a column stays as it is when it is read: no iterator, and no view of a dict.

    What cannot be iterated over is told by whoever reads it.
    """
    return not isinstance(values, Iterable) or (
        hasattr(values, "__getitem__") and not isinstance(values, Set)
    )


def _texts(values: Any) -> pa.StringArray:
    array = None
    try:
        array = arrow_column(values)
        if not _is_extension(array.type):
            return _sound(_arrow_texts(array))
    except _REFUSED:
        if array is not None and _holds_bytes(array.type):
            raise QueryError(NOT_UTF8) from None
    except (OverflowError, UnicodeEncodeError):
        # Whole numbers of more than 64 bits; halves of letters, which JSON can write and UTF-8
        # cannot.
        pass
    if not isinstance(values, Iterable):
        raise QueryError(
            f"A query column must be a list of values. Got {type(values).__name__} instead."
        )
    # Mixed types, which Arrow has no type for, or one for which it has no texts.
    import pandas as pd

    if isinstance(values, pa.Array | pa.ChunkedArray):
        values = values.to_pylist()  # pandas does not see that a scalar of Arrow is missing
    series = pd.Series(list(values), dtype=object)
    return strings(
        [
            None if missing else _text(value)
            for value, missing in zip(series, series.isna(), strict=True)
        ]
    )


def _arrow_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return join_chunks([as_text(plain(chunk)) for chunk in chunks])


def _without_views(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Convert texts and bytes of the view types, which few functions of Arrow know."""
    kind = _plain_type(column.type)
    if kind.equals(column.type):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_without_views(chunk) for chunk in column.chunks], type=kind)
    if pa.types.is_dictionary(column.type):
        values = pc.cast(column.dictionary, kind.value_type)
        return pa.DictionaryArray.from_arrays(column.indices, values, ordered=kind.ordered)
    return pc.cast(column, kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _plain_type(kind.value_type), kind.ordered)
    return kind


def _sound(texts: pa.StringArray) -> pa.StringArray:
    """Refuse texts that are not UTF-8, which Arrow does not look at when it takes them over."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise QueryError(NOT_UTF8) from None
    return texts


def _is_extension(kind: pa.DataType) -> bool:
    """Return whether values are of a type that a library adds to those of Arrow."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return isinstance(kind, pa.BaseExtensionType)


def _holds_bytes(kind: pa.DataType) -> bool:
    return (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _text(value: Any) -> str:
    if isinstance(value, float):
        return float_text(value)
    try:
        return str(value)
    except ValueError as error:  # Python writes out no whole number of more than 4,300 digits
        raise QueryError(
            f"A query column holds a value that has no text: {error}. Give it as a text."
        ) from None
