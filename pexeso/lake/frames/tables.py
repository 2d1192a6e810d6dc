"""A table in memory, of whichever library: its columns by name, and the same table in another.

None of the libraries but Arrow is imported here unless a table of it is asked for: tables are known
by what they can do, and most of them by the Arrow PyCapsule interface alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError, MissingPackageError, QueryError
from pexeso.lake.columns import find_column
from pexeso.lake.frames.columns import arrow_column, cells_to_show, column_texts, is_polars
from pexeso.lake.frames.in_pandas import in_pandas
from pexeso.lake.frames.spark import distinct_values, is_spark_column, is_spark_frame
from pexeso.runtime.formatting import shown

KINDS = ("pandas", "arrow", "polars")
"""The kinds of table that joins and results are given as."""

ACCEPTED = (
    "a DataFrame of pandas or polars, a pyarrow Table, a dictionary of columns, or what has the "
    "Arrow PyCapsule interface"
)

NOT_OF_ARROW = (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError)
"""What Arrow raises for columns that it has no type for, such as of mixed types."""


@dataclass(frozen=True)
class Frame:
    """A table in memory, read a column at a time.

    Attributes
    ----------
    table : Any
        As it was given.
    kind : {"pandas", "arrow", "polars", "lazy", "spark", "other"}
        ``arrow`` is a pyarrow Table, ``lazy`` a LazyFrame of polars.
    names : tuple of str
        Of the columns, in order.
    """

    table: Any
    kind: str
    names: tuple[str, ...]
    _read: Callable[[int], Any]
    _read_all: Callable[[], Sequence[Any]]

    def position(self, on: str | int) -> int:
        """Return the position of a column named by its name, or by its position from 0.

        Raises
        ------
        ColumnNotFoundError
            There is no such column; the message lists those there are.
        """
        return find_column(self.names, f"#{on}" if isinstance(on, int) else on)

    def column(self, position: int) -> Any:
        """Return a column as its library has it; no other column is read.

        Of a Spark DataFrame it is what `pexeso.lake.frames.spark.distinct_values` collects.
        """
        return self._read(position)

    def columns(self) -> list[Any]:
        """Return all columns as their library has them.

        Raises
        ------
        QueryError
            It is a Spark DataFrame, which may be of any size.
        """
        return list(self._read_all())

    def arrow_columns(self) -> list[pa.Array | pa.ChunkedArray]:
        """Return all columns as Arrow values; those of mixed types as texts.

        Raises
        ------
        QueryError
            They are not equally long, or it is a Spark DataFrame.
        """
        columns = [_arrow_or_texts(column) for column in self.columns()]
        lengths = sorted({len(column) for column in columns})
        if len(lengths) > 1:
            raise QueryError(
                f"The columns of a table are equally long. Got {', '.join(map(str, lengths))}."
            )
        return columns

    def head(self, n_rows: int, n_columns: int) -> list[list[Any]]:
        """Return the first cells of the first columns of a table of one of `KINDS`."""
        first = [self.column(at)[:n_rows] for at in range(min(n_columns, len(self.names)))]
        return [
            cells_to_show(column) if self.kind == "arrow" else column.to_list() for column in first
        ]

    def whole(self) -> Frame:
        """Return the table as one of `KINDS`: a LazyFrame collected, all else by Arrow.

        Raises
        ------
        QueryError
            As `arrow_columns`.
        """
        if self.kind in KINDS:
            return self
        if self.kind == "lazy":
            return _of_polars(self.table.collect())
        return _of_arrow(self._columns_in_arrow())

    def to(self, kind: str) -> Any:
        """Return the table as one of `KINDS`; as it is where it is one of that kind.

        Columns of mixed types become texts where they are not of pandas any more.

        Raises
        ------
        InputError
            It is to be one of polars, and has names or types that polars cannot hold.
        MissingPackageError
            It is to be one of polars, which is not installed.
        """
        if self.kind == kind:
            return self.table
        if self.kind == "arrow":
            return as_kind(self.table, kind)
        if self.kind == "pandas":
            return as_kind(self._pandas_in_arrow(), kind)
        if self.kind == "spark":
            return as_kind(self.table.toArrow(), kind)
        return as_kind(self._columns_in_arrow(), kind)

    def _pandas_in_arrow(self) -> pa.Table:
        try:  # with what pandas notes down, so that the way back gives the same types
            return pa.Table.from_pandas(self.table, preserve_index=False)
        except (*NOT_OF_ARROW, ValueError):  # mixed types, or two columns of one name
            return self._columns_in_arrow()

    def _columns_in_arrow(self) -> pa.Table:
        return pa.Table.from_arrays(self.arrow_columns(), names=list(self.names))


def frame_of(table: Any) -> Frame | None:
    """Return a table as a `Frame`, or None for what is no table.

    Parameters
    ----------
    table : Any
        A DataFrame of pandas, polars or Spark, a LazyFrame of polars, a pyarrow Table, RecordBatch
        or StructArray, a NumPy array with named fields, a mapping from names to columns, or an
        object with ``__arrow_c_stream__`` or ``__arrow_c_array__`` that exports a table.

    Examples
    --------
    >>> frame = frame_of({"city": ["Oslo", "Rome"], "people": [7, 28]})
    >>> frame.names, frame.column(0)
    (('city', 'people'), ['Oslo', 'Rome'])
    >>> frame_of(["Oslo", "Rome"]) is None
    True
    """
    if is_spark_column(table):  # first: whatever it is asked for is there
        return None
    if is_spark_frame(table):
        names = tuple(table.columns)
        return Frame(table, "spark", names, lambda at: distinct_values(table, at), _not_whole)
    if isinstance(table, pa.Table):
        return _of_arrow(table)
    if isinstance(table, pa.RecordBatch):
        return _of_arrow(pa.Table.from_batches([table]))
    if isinstance(table, pa.StructArray):
        return _of_columns(table, "other", [field.name for field in table.type], table.field)
    if isinstance(table, Mapping):
        columns = list(table.values())
        return _of_columns(table, "other", list(table), lambda at: columns[at])
    if isinstance(table, np.ndarray):
        fields = table.dtype.names
        if fields is None or table.ndim != 1:
            return None
        return _of_columns(table, "other", fields, lambda at: table[fields[at]])
    if hasattr(table, "iloc"):
        if not hasattr(table, "columns"):
            return None  # a series
        return _of_columns(table, "pandas", list(table.columns), lambda at: table.iloc[:, at])
    if is_polars(table, "LazyFrame"):
        names = tuple(table.collect_schema().names())
        return Frame(
            table,
            "lazy",
            names,
            lambda at: table.select(names[at]).collect().to_series(),
            lambda: table.collect().get_columns(),
        )
    if is_polars(table, "DataFrame"):
        return _of_polars(table)
    return _of_capsule(table)


def table_in_memory(table: Any, purpose: str) -> Frame:
    """Return a table that is used whole, as a `Frame` of one of `KINDS`.

    Examples
    --------
    >>> table_in_memory(["Oslo"], "to join")
    Traceback (most recent call last):
        ...
    pexeso.errors.InputError: The table to join must be a DataFrame of pandas or polars, a pyarrow Table, a dictionary of columns, or what has the Arrow PyCapsule interface. Got list instead.
    """  # noqa: E501  what is printed is one line
    frame = frame_of(table)
    if frame is None:
        raise InputError(
            f"The table {purpose} must be {ACCEPTED}. Got {type(table).__name__} instead."
        )
    return frame.whole()


def _of_columns(table: Any, kind: str, names: Sequence[Any], read: Callable[[int], Any]) -> Frame:
    return Frame(
        table, kind, tuple(map(str, names)), read, lambda: [read(at) for at in range(len(names))]
    )


def _of_arrow(table: pa.Table) -> Frame:
    names = tuple(table.column_names)
    return Frame(table, "arrow", names, table.column, lambda: table.columns)


def _of_polars(table: Any) -> Frame:
    return Frame(table, "polars", tuple(table.columns), table.to_series, table.get_columns)


def _of_capsule(table: Any) -> Frame | None:
    """Return what exports a table by the Arrow PyCapsule interface."""
    if hasattr(table, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(table)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # a stream of something else than rows
            return None

        def read(at: int) -> pa.ChunkedArray:
            kind = reader.schema.field(at).type
            return pa.chunked_array([batch.column(at) for batch in reader], type=kind)

        names = tuple(reader.schema.names)
        return Frame(table, "other", names, read, lambda: reader.read_all().columns)
    if hasattr(table, "__arrow_c_array__") and not isinstance(table, pa.Array):
        array = pa.array(table)
        return frame_of(array) if isinstance(array, pa.StructArray) else None
    return None


def _not_whole() -> Sequence[Any]:
    raise QueryError(
        "A Spark DataFrame is not read whole here, since it may be of any size. Collect what you "
        "need, such as frame.select('country', 'year').toArrow()."
    )


def _arrow_or_texts(values: Any) -> pa.Array | pa.ChunkedArray:
    try:
        return arrow_column(values)
    except NOT_OF_ARROW:
        return column_texts(values)  # of mixed types


def require_kind(kind: str | None) -> None:
    """Raise InputError unless a kind of table is one of `KINDS`, or None.

    Examples
    --------
    >>> require_kind("csv")
    Traceback (most recent call last):
        ...
    pexeso.errors.InputError: to must be one of pandas, arrow, polars. Got 'csv' instead.
    """
    if kind is not None and not (isinstance(kind, str) and kind in KINDS):
        raise InputError(f"to must be one of {', '.join(KINDS)}. Got {shown(kind)} instead.")


def as_kind(table: pa.Table, kind: str) -> Any:
    """Return an Arrow table as one of `KINDS`."""
    if kind == "pandas":
        return in_pandas(table)
    return to_polars(table) if kind == "polars" else table


def to_polars(table: pa.Table) -> Any:
    """Return an Arrow table as a DataFrame of polars."""
    try:
        import polars
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            "A table of polars needs the package polars, which is not installed. Install it with "
            "'pip install polars', or take the table of pandas or Arrow."
        ) from error
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"A table of polars has each name once. Got several columns called {twice!r}: rename "
            "them, or take the table of pandas or Arrow."
        )
    refused = (
        polars.exceptions.PolarsError,
        polars.exceptions.PanicException,  # of lists of intervals; no Exception, to Python
        pa.ArrowException,
        TypeError,
        ValueError,
    )
    try:
        return polars.from_arrow(table)
    except refused as error:
        raise InputError(
            "Polars cannot hold this table. Take the table of pandas or Arrow. Polars says: "
            f"{error}"
        ) from error
