"""A column in memory, of whichever library, as Arrow values and as texts."""

from __future__ import annotations

from collections.abc import Iterable, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import QueryError
from pexeso.lake.readers.table import join_chunks, strings
from pexeso.lake.typed.text import as_text, mended_texts
from pexeso.lake.typed.value_texts import float_text, in_utc, is_bytes, plain, without_view

NOT_UTF8 = (
    "A query column holds bytes that are no UTF-8 text. Decode them first, such as by "
    "bytes.decode with the right encoding."
)

_REFUSED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError)

# Most distinct values of a column of Spark that are collected.
MAX_SPARK_VALUES = 1_000_000
_NESTED = ("array", "map", "struct", "variant")


def is_polars(values: Any, name: str) -> bool:
    """Return whether something is of a class of polars, such as ``"Series"``; polars stays out."""
    return _is_of(values, "polars", name)


def _is_of(values: Any, package: str, name: str) -> bool:
    kinds = ((base.__module__.partition(".")[0], base.__name__) for base in type(values).__mro__)
    return (package, name) in kinds


def arrow_column(values: Any) -> pa.Array | pa.ChunkedArray:
    """Return a column as Arrow values, null where a cell is missing.

    It may be of Arrow, pandas, polars or NumPy, an iterable, or whatever has the Arrow PyCapsule
    interface. NaN, NaT and None of pandas, NumPy and Python are missing.

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

    values: as `arrow_column` takes it, and iterators, and columns of mixed types. The values of a
    set, which has no order, are sorted by their texts.
    """
    if isinstance(values, set | frozenset):
        texts = _texts(list(values))
        return texts.take(pc.sort_indices(texts))
    # An iterator and a view of a dict are read once; who reads it says what has no items at all.
    is_read_once = isinstance(values, Set) or not hasattr(values, "__getitem__")
    return _texts(list(values) if isinstance(values, Iterable) and is_read_once else values)


def texts_of_cells(values: Any) -> pa.StringArray:
    """Return the cells of a column that nothing is searched with as texts, as `column_texts` does.

    Bytes that are no UTF-8 text are no error here: such cells have no text, as those of files.
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
    """Return cells as Python has them, or as texts where a date is none that Python has."""
    try:
        return column.to_pylist()
    except (OverflowError, ValueError):
        return texts_of_cells(column).to_pylist()


def _texts(values: Any) -> pa.StringArray:
    array = None
    try:
        array = arrow_column(values)
        if not is_extension(array.type):
            chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
            return _sound(join_chunks([as_text(plain(chunk)) for chunk in chunks]))
    except _REFUSED:
        if array is not None and is_bytes(array.type):
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


def _without_views(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
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
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _plain_type(kind.value_type), kind.ordered)
    return without_view(kind)


def _sound(texts: pa.StringArray) -> pa.StringArray:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise QueryError(NOT_UTF8) from None
    return texts


def is_extension(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return isinstance(kind, pa.BaseExtensionType)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return float_text(value)
    try:
        return str(value)
    except ValueError as error:  # Python writes out no whole number of more than 4,300 digits
        raise QueryError(
            f"A query column holds a value that has no text: {error}. Give it as a text."
        ) from None


def is_spark_frame(table: Any) -> bool:
    """Return whether something is a Spark DataFrame, of a session here or of Spark Connect."""
    return hasattr(type(table), "sparkSession")


def is_spark_column(values: Any) -> bool:
    """Return whether something is a column of Spark: an expression without any rows."""
    return _is_of(values, "pyspark", "Column")


@dataclass(frozen=True)
class CountedValues:
    values: pa.StringArray
    counts: np.ndarray


def distinct_values(frame: Any, position: int) -> CountedValues:
    """Collect the distinct values of a column, and no other column.

    Memory: at most `MAX_SPARK_VALUES` values and counts.
    """
    name, kind = frame.columns[position], frame.schema[position].dataType.typeName()
    if kind in _NESTED:
        raise QueryError(
            f"A query column must be one column of values. The Spark column {name!r} holds a value "
            f"of the type {kind} in each row: take a field of it, or explode it."
        )
    # Named by position, so that no name needs quotes and none stands for two.
    column = frame.toDF(*(f"c{at}" for at in range(len(frame.columns)))).select(f"c{position}")
    counted = column.groupBy(f"c{position}").count().limit(MAX_SPARK_VALUES + 1).toArrow()
    if counted.num_rows > MAX_SPARK_VALUES:
        raise QueryError(
            f"The Spark column {name!r} has more than {MAX_SPARK_VALUES:,} distinct values, and no "
            "more are collected for a query. Search with a sample of it, such as "
            "frame.sample(0.01), or write it to a file."
        )
    texts = column_texts(in_utc(counted.column(0)))
    order = pc.sort_indices(texts)
    counts = counted.column(1).take(order).to_numpy().astype(np.int64)
    return CountedValues(texts.take(order), counts)
