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
from pexeso.frames.columns import arrow_column, column_texts
from pexeso.frames.spark import counted_column, is_spark_frame
from pexeso.lake.columns import find_column

KINDS = ("pandas", "arrow", "polars")
"""The kinds of table that joins and results are given as."""

ACCEPTED = (
    "a DataFrame of pandas or polars, a pyarrow Table, a dictionary of columns, or whatever has the "
    "Arrow PyCapsule interface"
)


@dataclass(frozen=True)
class Frame:
    """A table in memory, read a column at a time.

    Attributes
    ----------
    table : Any
        As it was given.
    kind : {"pandas", "arrow", "polars", "lazy", "spark"}
        ``lazy`` is polars' LazyFrame; all that is of no library named here is ``arrow``.
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

        Of a Spark DataFrame it is its distinct values: `counted` has these with their counts.
        """
        return self._read(position)

    def counted(self, position: int) -> tuple[Any, np.ndarray | None]:
        """Return a column and how often each of its entries counts: once each where that is None.

        Raises
        ------
        QueryError
            A column of Spark has too many distinct values; see `pexeso.frames.spark`.
        """
        if self.kind == "spark":
            return counted_column(self.table, position)
        return self.column(position), None

    def columns(self) -> list[Any]:
        """Return all columns as their library has them.

        Raises
        ------
        QueryError
            It is a Spark DataFrame, which may be of any size.
        """
        return list(self._read_all())

    def arrow_columns(self) -> list[pa.Array | pa.ChunkedArray]:
        """Return all columns as Arrow values; those of mixed types as texts."""
        return [_arrow_or_texts(column) for column in self.columns()]

    def to(self, kind: str) -> Any:
        """Return the table as one of `KINDS`; as it is where it is one already."""
        if kind == self.kind:
            return self.table
        if kind == "arrow" and isinstance(self.table, pa.RecordBatch):
            return pa.Table.from_batches([self.table])
        if self.kind == "pandas":
            table = pa.Table.from_pandas(self.table, preserve_index=False)
        elif self.kind in ("polars", "lazy"):
            table = (self.table if self.kind == "polars" else self.table.collect()).to_arrow()
        elif self.kind == "spark":
            table = self.table.toArrow()
        elif isinstance(self.table, pa.Table):
            table = self.table
        else:
            table = pa.Table.from_arrays(self.arrow_columns(), names=list(self.names))
        return as_kind(table, kind)


def frame_of(table: Any) -> Frame | None:
    """Return a table as a `Frame`, or None for what is no table.

    Parameters
    ----------
    table : Any
        A DataFrame of pandas, polars or Spark, polars' LazyFrame, a pyarrow Table, RecordBatch or
        StructArray, a NumPy array with named fields, a mapping from names to columns, or an object
        with ``__arrow_c_stream__`` or ``__arrow_c_array__`` that exports a table.

    Examples
    --------
    >>> frame = frame_of({"city": ["Oslo", "Rome"], "people": [7, 28]})
    >>> frame.names, frame.column(0)
    (('city', 'people'), ['Oslo', 'Rome'])
    >>> frame_of(["Oslo", "Rome"]) is None
    True
    """
    if is_spark_frame(table):  # first: whatever is asked of a column of Spark is there
        names = tuple(table.columns)
        return Frame(table, "spark", names, lambda at: counted_column(table, at)[0], _not_whole)
    if isinstance(table, pa.Table | pa.RecordBatch):
        names = tuple(table.schema.names)
        return Frame(table, "arrow", names, table.column, lambda: table.columns)
    if isinstance(table, pa.StructArray):
        names = tuple(each.name for each in table.type)
        return Frame(table, "arrow", names, lambda at: table.flatten()[at], table.flatten)
    if isinstance(table, Mapping):
        return _of_columns(table, "arrow", tuple(table), lambda at: table[tuple(table)[at]])
    if isinstance(table, np.ndarray):
        fields = table.dtype.names
        if fields is None or table.ndim != 1:
            return None
        return _of_columns(table, "arrow", fields, lambda at: table[fields[at]])
    if hasattr(table, "iloc"):
        if not hasattr(table, "columns"):
            return None  # a series
        names = tuple(table.columns)
        return _of_columns(table, "pandas", names, lambda at: table.iloc[:, at])
    if _is_polars(table, "LazyFrame"):
        names = tuple(table.collect_schema().names())
        return Frame(
            table,
            "lazy",
            names,
            lambda at: table.select(names[at]).collect().to_series(),
            lambda: table.collect().get_columns(),
        )
    if _is_polars(table, "DataFrame"):
        return Frame(table, "polars", tuple(table.columns), table.to_series, table.get_columns)
    return _of_capsule(table)


def _of_columns(
    table: Any, kind: str, names: Sequence[Any], read: Callable[[int], Any]
) -> Frame:
    return Frame(
        table, kind, tuple(map(str, names)), read, lambda: [read(at) for at in range(len(names))]
    )


def _is_polars(table: Any, name: str) -> bool:
    return any(
        each.__name__ == name and each.__module__.partition(".")[0] == "polars"
        for each in type(table).__mro__
    )


def _of_capsule(table: Any) -> Frame | None:
    """Return what exports a table by the Arrow PyCapsule interface, of which columns are read."""
    if hasattr(table, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(table)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # a stream of something else than rows
            return None

        def read(at: int) -> pa.ChunkedArray:
            kind = reader.schema.field(at).type
            return pa.chunked_array([batch.column(at) for batch in reader], type=kind)

        names = tuple(reader.schema.names)
        return Frame(table, "arrow", names, read, lambda: reader.read_all().columns)
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
    except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError):
        return column_texts(values)  # of mixed types


def require_kind(kind: str | None, allowed: Sequence[str] = KINDS) -> None:
    """Raise InputError unless a kind of table is one of those allowed, or None.

    Examples
    --------
    >>> require_kind("csv")
    Traceback (most recent call last):
        ...
    pexeso.errors.InputError: to must be one of pandas, arrow, polars. Got 'csv' instead.
    """
    if kind is not None and kind not in allowed:
        raise InputError(f"to must be one of {', '.join(allowed)}. Got {kind!r} instead.")


def as_kind(table: pa.Table, kind: str) -> Any:
    """Return an Arrow table as one of `KINDS`.

    Raises
    ------
    MissingPackageError
        It is to be one of polars, which is not installed.
    """
    if kind == "pandas":
        return table.to_pandas()
    return to_polars(table) if kind == "polars" else table


def to_polars(table: pa.Table) -> Any:
    """Return an Arrow table as a DataFrame of polars.

    Raises
    ------
    MissingPackageError
        Polars is not installed.
    """
    try:
        import polars
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            "A table of polars needs the package polars, which is not installed. Install it with "
            "'pip install polars', or take the table of pandas or Arrow."
        ) from error
    return polars.from_arrow(table)
