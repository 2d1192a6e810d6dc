"""A table in memory, of whichever library: its columns by name, and the same table in another.

None of the libraries but Arrow is imported here unless a table of it is asked for: tables are known
by what they can do, and most of them by the Arrow PyCapsule interface alone. Results become such
tables too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError, QueryError
from pexeso.lake.columns import find_column
from pexeso.lake.frames.columns import (
    arrow_column,
    cells_to_show,
    column_texts,
    distinct_values,
    is_polars,
    is_spark_column,
    is_spark_frame,
)
from pexeso.lake.typed.text import as_text
from pexeso.lake.typed.value_texts import is_bytes, is_text, plain
from pexeso.runtime.checks import require_choice
from pexeso.runtime.extras import require
from pexeso.runtime.formatting import Shown, cell_text, json_line, plain_json
from pexeso.store.arrays import wide_for

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


_FIRST_DAY, _LAST_DAY = ((day - date(1970, 1, 1)).days for day in (date.min, date.max))

# The kinds of table that joins and results are given as.
KINDS = ("pandas", "arrow", "polars")
ACCEPTED = (
    "a DataFrame of pandas or polars, a pyarrow Table, a dictionary of columns, or what has the "
    "Arrow PyCapsule interface"
)
# What Arrow raises for columns that it has no type for, such as of mixed types.
NOT_OF_ARROW = (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError)


def in_pandas(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as a DataFrame of pandas.

    Whole numbers are ``Int64`` or ``UInt64`` whether or not some are missing, so that none is
    rounded and types do not depend on the cells. Missing texts are NaN, and nested cells are lists
    and dictionaries of Python. Times of day in nanoseconds, finer than those of Python, are texts,
    and so are the dates of a column with one outside the years 1 to 9999, which Python has.
    """
    pd = require("pandas", "A DataFrame of pandas")
    apart, table = _taken_apart(table, _cells)
    frame = table.to_pandas(types_mapper=whole_number_type)
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    shown = [at for at, name in enumerate(table.column_names) if name not in index]
    for position, at in enumerate(shown):
        if at in apart:
            cells = pd.Series(apart[at], index=frame.index, dtype=object)
        elif is_text(table.field(at).type) and frame.dtypes.iloc[position].kind == "O":
            # pandas would have None, and writes that otherwise than other missing cells.
            cells = frame.iloc[:, position]
            cells = cells.where(cells.notna(), np.nan)
        else:
            continue
        frame.isetitem(position, cells)
    return frame


def _taken_apart(
    table: pa.Table, convert: Callable[[pa.ChunkedArray], list[Any] | None]
) -> tuple[dict[int, list[Any]], pa.Table]:
    """Return the cells of columns that pandas would not convert so, and the table without them."""
    cells_at = {at: convert(column) for at, column in enumerate(table.columns)}
    apart = {at: cells for at, cells in cells_at.items() if cells is not None}
    for at in apart:  # what holds their places is cheap to convert
        table = table.set_column(at, table.column_names[at], pa.nulls(len(table)))
    return apart, table


def _cells(column: pa.ChunkedArray) -> list[Any] | None:
    if pa.types.is_nested(column.type):
        return column.to_pylist()  # by way of NumPy whole numbers next to missing ones are rounded
    if pa.types.is_time64(column.type) and column.type.unit == "ns":
        try:
            return pc.cast(column, pa.time64("us")).to_pylist()
        except pa.ArrowInvalid:
            return pc.cast(column, pa.string()).to_pylist()
    if pa.types.is_date(column.type):
        days = pc.min_max(column.cast(pa.date32()).cast(pa.int32())).as_py()
        if days["min"] is not None and not _FIRST_DAY <= days["min"] <= days["max"] <= _LAST_DAY:
            return pc.cast(column, pa.string()).to_pylist()
    return None


def whole_number_type(kind: pa.DataType) -> pd.api.extensions.ExtensionDtype | None:
    import pandas as pd

    if not pa.types.is_integer(kind):
        return None
    return pd.UInt64Dtype() if pa.types.is_unsigned_integer(kind) else pd.Int64Dtype()


def csv_cells(column: pa.ChunkedArray | pa.Array) -> tuple[list[Any], bool]:
    """Return cells as they are written as CSV, and whether they are numbers or truth values.

    Lists become JSON texts, dates and the like texts; None where there is nothing.
    """
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if (texts := _csv_texts(column)) is not None:
        return texts, False
    if pa.types.is_floating(column.type):
        shown = column.to_numpy().astype(str).astype(object)
        shown[column.is_null(nan_is_null=True).to_numpy()] = None
        return shown.tolist(), True
    is_number = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
    return column.to_pylist(), is_number


def _csv_texts(column: pa.ChunkedArray) -> list[str | None] | None:
    if (texts := texts_of_values(column)) is not None:
        return texts
    types = pa.types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_nested(kind) or types.is_interval(kind):
        cells = column.to_pylist()
        return [None if cell is None else json_line(plain_json(cell)) for cell in cells]
    if is_bytes(kind):
        return [None if cell is None else cell_text(cell) for cell in column.to_pylist()]
    return None


def texts_of_values(column: pa.ChunkedArray) -> list[str | None] | None:
    """Return dates, times and decimals as the texts that they are read as; None of other types."""
    types = pa.types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    is_time = types.is_temporal(kind) and not types.is_interval(kind)  # these have no text
    if not (is_time or types.is_decimal(kind)):
        return None
    return [text for chunk in column.chunks for text in as_text(chunk).to_pylist()]


@dataclass(frozen=True)
class Frame:
    """A table in memory, read a column at a time.

    kind: {"pandas", "arrow", "polars", "lazy", "spark", "other"}, ``arrow`` is a pyarrow Table,
    ``lazy`` a LazyFrame of polars; names: tuple of str, of the columns, in order.
    """

    table: Any
    kind: str
    names: tuple[str, ...]
    _read: Callable[[int], Any]
    _read_all: Callable[[], Sequence[Any]] | None = None

    def position(self, on: str | int) -> int:
        """Return the position of a column named by its name, or by its position from 0."""
        return find_column(self.names, f"#{on}" if isinstance(on, int) else on)

    def column(self, position: int) -> Any:
        """Return a column as its library has it; no other column is read.

        Of a Spark DataFrame it is what `pexeso.lake.frames.columns.distinct_values` collects.
        """
        return self._read(position)

    def columns(self) -> list[Any]:
        """Return all columns as their library has them.

        A Spark DataFrame may be of any size, and is refused.
        """
        if self._read_all is not None:
            return list(self._read_all())
        return [self._read(at) for at in range(len(self.names))]

    def arrow_columns(self) -> list[pa.Array | pa.ChunkedArray]:
        """Return all columns as Arrow values; those of mixed types as texts.

        Columns that are not equally long, and a Spark DataFrame, are refused.
        """
        columns = [_arrow_or_texts(column) for column in self.columns()]
        lengths = sorted({len(column) for column in columns})
        if len(lengths) > 1:
            raise QueryError(
                f"The columns of a table are equally long. Got {', '.join(map(str, lengths))}."
            )
        return columns

    def head(self, n_rows: int, n_columns: int) -> list[list[Any]]:
        first = [self.column(at)[:n_rows] for at in range(min(n_columns, len(self.names)))]
        return [
            cells_to_show(column) if self.kind == "arrow" else column.to_list() for column in first
        ]

    def whole(self) -> Frame:
        """Return the table as one of `KINDS`: a LazyFrame collected, all else by Arrow."""
        if self.kind in KINDS:
            return self
        if self.kind == "lazy":
            return _polars_frame(self.table.collect())
        return _arrow_frame(self._in_arrow())

    def to(self, kind: str) -> Any:
        """Return the table as one of `KINDS`; as it is where it is one of that kind.

        Columns of mixed types become texts where they are not of pandas any more. Names and types
        that polars cannot hold are refused.
        """
        if self.kind == kind:
            return self.table
        return as_kind(self.table.toArrow() if self.kind == "spark" else self._in_arrow(), kind)

    def _in_arrow(self) -> pa.Table:
        if self.kind == "arrow":
            return self.table
        if self.kind == "pandas":
            with suppress(*NOT_OF_ARROW, ValueError):  # mixed types, or two columns of one name
                # With what pandas notes down, so that the way back gives the same types.
                return pa.Table.from_pandas(self.table, preserve_index=False)
        return pa.Table.from_arrays(self.arrow_columns(), names=list(self.names))


def frame_of(table: Any) -> Frame | None:
    """Return a table as a `Frame`, or None for what is no table.

    One is a DataFrame of pandas, polars or Spark, a LazyFrame of polars, a pyarrow Table,
    RecordBatch or StructArray, a NumPy array with named fields, a mapping from names to columns, or
    an object with ``__arrow_c_stream__`` or ``__arrow_c_array__`` that exports a table.
    """
    if is_spark_column(table):  # first: whatever it is asked for is there
        return None
    if is_spark_frame(table):
        names = tuple(table.columns)
        return Frame(table, "spark", names, lambda at: distinct_values(table, at), _not_whole)
    if isinstance(table, pa.Table):
        return _arrow_frame(table)
    if isinstance(table, pa.RecordBatch):
        return _arrow_frame(pa.Table.from_batches([table]))
    if isinstance(table, pa.StructArray):
        names = tuple(field.name for field in table.type)
        return Frame(table, "other", names, table.field)
    if isinstance(table, Mapping):
        columns = list(table.values())
        return Frame(table, "other", tuple(map(str, table)), lambda at: columns[at])
    if isinstance(table, np.ndarray):
        fields = table.dtype.names
        if fields is None or table.ndim != 1:
            return None
        return Frame(table, "other", fields, lambda at: table[fields[at]])
    if hasattr(table, "iloc"):
        if not hasattr(table, "columns"):
            return None  # a series
        names = tuple(map(str, table.columns))
        return Frame(table, "pandas", names, lambda at: table.iloc[:, at])
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
        return _polars_frame(table)
    return _capsule_frame(table)


def table_in_memory(table: Any, purpose: str) -> Frame:
    """Return a table that is used whole, as a `Frame` of one of `KINDS`."""
    frame = frame_of(table)
    if frame is None:
        raise InputError(
            f"The table {purpose} must be {ACCEPTED}. Got {type(table).__name__} instead."
        )
    return frame.whole()


def _arrow_frame(table: pa.Table) -> Frame:
    return Frame(table, "arrow", tuple(table.column_names), table.column)


def _polars_frame(table: Any) -> Frame:
    return Frame(table, "polars", tuple(table.columns), table.to_series)


def _capsule_frame(table: Any) -> Frame | None:
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
    """Raise InputError unless a kind of table is one of `KINDS`, or None."""
    if kind is not None:
        require_choice("to", kind, KINDS)


def as_kind(table: pa.Table, kind: str) -> Any:
    if kind == "pandas":
        return in_pandas(table)
    return to_polars(table) if kind == "polars" else table


def to_polars(table: pa.Table) -> Any:
    polars = require("polars", "A table of polars", instead="take the table of pandas or Arrow")
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


def take_rows(table: Any, kind: str, rows: np.ndarray) -> Any:
    """Return rows of a table, in a new order; those of pandas are numbered from 0."""
    if kind == "pandas":
        return table.iloc[rows].reset_index(drop=True)
    return take_cells(table, pa.array(rows)) if kind == "arrow" else table[rows]


def take_cells(table: pa.Table, rows: pa.Int64Array) -> pa.Table:
    """Return rows of an Arrow table, in a new order.

    See `take_column_cells` for the types of its columns.
    """
    columns = [take_column_cells(column, rows) for column in table.columns]
    fields = [
        field.with_type(column.type) for field, column in zip(table.schema, columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, table.schema.metadata))


def take_column_cells(column: pa.ChunkedArray, rows: pa.Int64Array) -> pa.ChunkedArray:
    """Return cells of a column, in a new order; missing where a row is null.

    Texts and bytes get offsets of 64 bits where they are too many for 32. Views and runs, of which
    Arrow takes no rows, become arrays of ordinary types.
    """
    column = wide_for(column, rows)
    try:
        return column.take(rows)
    except pa.ArrowNotImplementedError:
        chunks = [plain(chunk) for chunk in column.chunks or [pa.nulls(0, column.type)]]
        return pa.chunked_array(chunks).take(rows)


def put_beside(table: Any, kind: str, added: pa.Table) -> Any:
    if kind == "polars":
        return table.hstack(to_polars(added).get_columns())
    if kind == "arrow":
        for field, column in zip(added.schema, added.columns, strict=True):
            table = table.append_column(field, column)
        return table
    import pandas as pd

    # Without its metadata, which may name columns of a file as an index.
    right = in_pandas(added.replace_schema_metadata(None))
    series = [right.iloc[:, at].set_axis(table.index) for at in range(right.shape[1])]
    return pd.concat([table, *series], axis=1)


# A class of results has `fields` and `rows`, and gets the rest from `Tabular`; one whose `rows`
# are something else gets it from `AsTables`.


class AsTables(Shown):
    """A result that can be had as a table.

    A class that takes this over has `fields`, the names of the columns in order, and `_table_rows`.
    """

    fields: Sequence[str]

    def _table_rows(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def _shown(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        return self.fields, ([row.get(name) for name in self.fields] for row in self._table_rows())

    def _field_types(self) -> Mapping[str, pa.DataType]:
        """Return the Arrow types of fields, so that they do not depend on the rows there are.

        The type of a field that is not among them follows from its values.
        """
        return {}

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame of pandas with the columns `fields`."""
        pd = require("pandas", "A DataFrame of pandas")
        return pd.DataFrame(self._table_rows(), columns=list(self.fields))

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with the columns `fields`."""
        rows, types = self._table_rows(), self._field_types()
        return pa.table(
            {
                name: pa.array([row.get(name) for row in rows], types.get(name))
                for name in self.fields
            }
        )

    def to_polars(self) -> pl.DataFrame:
        """Return a DataFrame of polars with the columns `fields`."""
        return to_polars(self.to_arrow())


class Tabular(AsTables):
    """Rows that can be had as tables.

    A class that takes this over has `fields`, the names of the columns in order, and `rows`.
    """

    def rows(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def _table_rows(self) -> list[dict[str, Any]]:
        return self.rows()
