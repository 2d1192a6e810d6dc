"""Query columns from a file, from values or from lines of a batch; columns found, by number."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import PexesoError, QueryError
from pexeso.lake.choose import MAY_BE_CODE, profile_column
from pexeso.lake.columns import find_column, label_columns, names_shown, spelling_hint
from pexeso.lake.containers.reader import read_table
from pexeso.lake.frames.columns import CountedValues, column_texts, is_spark_column
from pexeso.lake.frames.tables import Frame, frame_of
from pexeso.lake.readers.json_text import read_json
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.runtime.formatting import listed_names
from pexeso.runtime.threads import release_unused
from pexeso.store.arrays import Texts, require_sound

# Kinds of columns that a semantic search is for.
TEXT_KINDS = ("text", "date")

_TEXTS = {str, type(None)}

_FEW, _MARKS_OF_CODES = 64, re.compile(MAY_BE_CODE.replace(r"\pN", "0-9"), re.IGNORECASE)

# Kinds of columns whose near values are other values: 14 July is written nearly as 15 July.
EXACT_KINDS = ("date", "number", "code")


@dataclass(frozen=True)
class QueryColumn:
    """A column to search with: its cells, null where empty, and where it came from.

    `counts` is how many rows have each entry, where that is not one: a column of Spark is collected
    as its distinct values.
    """

    values: pa.StringArray
    file: str | None = None
    column: str | None = None
    reading: ReadingOptions = AS_FOUND
    counts: np.ndarray | None = field(default=None, compare=False)

    @property
    def n_rows(self) -> int:
        return len(self.values) if self.counts is None else int(self.counts.sum())

    @property
    def n_empty(self) -> int:
        """Rows without a value."""
        is_empty = pc.is_null(self.values).to_numpy(zero_copy_only=False)
        return int((is_empty if self.counts is None else self.counts[is_empty]).sum())

    @cached_property
    def exact_kind(self) -> str | None:
        """The kind of the column if its near values are others; None for all other columns."""
        # To prepare a pattern, above all with Unicode's digits, takes longer than to search a few.
        if len(self.values) <= _FEW:
            few = "\n".join(filter(None, self.values.to_pylist()))
            if few.isascii() and _MARKS_OF_CODES.search(few) is None:
                return None
        # Of these kinds more than half of the values have digits or marks of addresses; to look for
        # them alone takes a tenth of the time.
        pattern = MAY_BE_CODE
        if pc.all(pc.string_is_ascii(self.values)).as_py():
            pattern = pattern.replace(r"\pN", "0-9")
        n_maybe = pc.match_substring_regex(self.values, f"(?i){pattern}").true_count
        if not n_maybe:
            return None
        n_values = pc.not_equal(pc.utf8_trim_whitespace(self.values), "").true_count
        if 2 * n_maybe <= n_values:
            return None
        kind = profile_column(self.values).value_kind
        return kind if kind in EXACT_KINDS else None

    def describe(self) -> dict[str, Any]:
        return {"file": self.file, "column": self.column, "rows": self.n_rows}


def query_from_values(
    values: Any, name: str | None = None, *, on: str | int | Sequence[str] | None = None
) -> QueryColumn:
    """Make a query column from values in memory, or from a column of a table in memory.

    Parameters
    ----------
    values : column, table or QueryColumn
        A list, tuple, iterator or set; a NumPy array; a Series, Index or Categorical of pandas, a
        Series of polars, an Arrow array: one entry a row. Or a table of which `on` names the
        column: see `pexeso.lake.frames.tables.frame_of`. Numbers and dates are taken as their text;
        None, NaN and NaT are empty cells. The values of a set, which has no order, are sorted by
        their texts.
    on : str or int, optional
        The column of a table, by its name or by its position from 0. No other column is read: of a
        LazyFrame of polars or a Spark DataFrame it alone is collected, of the latter as at most
        `pexeso.lake.frames.columns.MAX_SPARK_VALUES` distinct values with their counts.

    Examples
    --------
    >>> query_from_values({"city": ["Oslo", None], "people": [7, 1]}, on="city").values.to_pylist()
    ['Oslo', None]
    """
    if isinstance(values, list | tuple) and on is None and set(map(type, values)) <= _TEXTS:
        # What nearly every query is: nothing needs to be found out about it.
        with suppress(UnicodeEncodeError):
            texts = pa.array(values, pa.string())
            if isinstance(texts, pa.StringArray):
                return QueryColumn(texts, column=name)
    if isinstance(values, QueryColumn | str | bytes):
        if on is not None:
            raise _no_table(values, on)
        if isinstance(values, QueryColumn):
            return values
        raise QueryError(
            "A query column must be a list of values, not one text. Put it into a list, or read "
            "a file with read_query."
        )
    if is_spark_column(values):
        raise QueryError(
            "A query column must be one column of values. Got a Column of Spark, which has no "
            "rows: give the DataFrame and name the column, such as on='city'."
        )
    frame = frame_of(values)
    if frame is None:
        if on is not None:
            raise _no_table(values, on)
        _require_one_column(values)
        if name is None and (own_name := getattr(values, "name", None)) is not None:
            name = str(own_name)
        return QueryColumn(column_texts(values), column=name)
    position = _position(frame, on, values)
    cells = frame.column(position)
    column = name if name is not None else label_columns(frame.names)[position]
    if isinstance(cells, CountedValues):
        return QueryColumn(cells.values, column=column, counts=cells.counts)
    return QueryColumn(column_texts(cells), column=column)


def exact_kind(values: pa.StringArray) -> str | None:
    """Return the kind of a column whose near values are others; None for all other columns.

    Examples
    --------
    >>> exact_kind(pa.array(["2021-07-14", "15.07.2021"])), exact_kind(pa.array(["Oslo", "Rome 2"]))
    ('date', None)
    >>> exact_kind(pa.array(["AB0017X", "AB0071X"]))
    'code'
    """
    return QueryColumn(values).exact_kind


def order_note(dates: str, *, day_first: bool | None) -> str:
    """Return how dates are read whose column does not say whether the day comes first.

    None is for each order with some columns of the lake.
    """
    way = "as more of them match with a column"
    if day_first is not None:
        way = f"with the {'day' if day_first else 'month'} first"
    return f"{dates} may have the day or the month first, and are read {way}."


def zone_note(mine: pa.Array, theirs: pa.Array, column: str) -> str | None:
    """Return which times are read as those of UTC, where those of the other side have a zone."""
    from pexeso.lake.normalise.dates import MOMENT, ZONED

    def has(side: pa.Array, pattern: str) -> bool:
        return bool(pc.any(pc.match_substring_regex(side, pattern)).as_py())

    is_mine_zoned = has(mine, ZONED)
    without, name = (theirs, f"Times of {column}") if is_mine_zoned else (mine, "Your times")
    if is_mine_zoned == has(theirs, ZONED) or not has(without, MOMENT):
        return None
    return f"{name} have no time zone, and are read as those of UTC."


def order_of_dates(orders: Iterable[bool | None]) -> dict[str, bool | None]:
    """Return for the description of a query how its dates were read to match some columns.

    Nothing where a column says the order, or cells match as they stand.
    """
    read = set(orders) - {None}
    return {"day_first": read.pop() if len(read) == 1 else None} if read else {}


def require_columns(queries: Any) -> Any:
    """Return query columns as they are; refuse a table in place of several columns."""
    if isinstance(queries, list | tuple):
        return queries
    frame = frame_of(queries)
    if frame is not None:
        raise QueryError(
            f"Several query columns are given as a list. Got {type(queries).__name__}"
            f"{_size(queries)} instead: list the columns, such as [table['city'], table['name']]. "
            f"{names_shown(frame.names)}"
        )
    if not isinstance(queries, Iterable):
        raise QueryError(f"Several query columns are given as a list. Got {queries!r}.")
    return queries


def _no_table(values: Any, on: Any) -> QueryError:
    return QueryError(
        f"on={on!r} names a column of a table. Got {type(values).__name__}, which is none: leave "
        "on out, or give the table."
    )


def _position(frame: Frame, on: Any, values: Any) -> int:
    listed = names_shown(frame.names) if frame.names else "It has no columns."
    if isinstance(on, list | tuple) and len(on) == 1:
        on = on[0]
    if isinstance(on, str) or (isinstance(on, int) and not isinstance(on, bool)):
        return frame.position(on)
    if on is None:
        first = label_columns(frame.names)[0] if frame.names else "city"
        hint = f", or take it: table[{first!r}]" if _gives(frame, values, first) else ""
        raise QueryError(
            "A query column must be one column of values. Got "
            f"{type(values).__name__}{_size(values)} instead. "
            f"Name the column to search with, such as on={first!r}{hint}. {listed}"
        )
    if isinstance(on, list | tuple):
        raise QueryError(
            f"A query column must be one column of values. Got on={list(on)!r}: a key of several "
            "columns is searched with index.search_composite(table, columns), and explained with "
            f"index.explain_composite. {listed}"
        )
    raise QueryError(
        f"on names one column, by its name or its position from 0. Got {on!r} instead. {listed}"
    )


def _gives(frame: Frame, values: Any, name: str) -> bool:
    if frame.kind in ("lazy", "spark"):
        return False
    by_library = frame.kind == "pandas" or isinstance(values, Mapping)
    return name in (list(values)[:1] if by_library else frame.names)


def _size(values: Any) -> str:
    shape = getattr(values, "shape", None)
    return f" of shape {shape}" if isinstance(shape, tuple) else ""


def _require_one_column(values: Any) -> None:
    """Raise QueryError if the values are a table of some other kind, or have no rows at all."""
    shape = getattr(values, "shape", None)
    has_columns = hasattr(values, "columns") or hasattr(values, "column_names")
    has_levels = getattr(values, "nlevels", 1) != 1
    if has_columns or has_levels or (isinstance(shape, tuple) and len(shape) != 1):
        raise QueryError(
            f"A query column must be one column of values. Got {type(values).__name__}"
            f"{_size(values)} instead. Take one column of a table, such as table['city']."
        )
    if isinstance(values, list | tuple):
        first = next((value for value in values if value is not None), None)
        if isinstance(first, Mapping):
            raise QueryError(
                "A query column must be one column of values. Got a list of records instead. Take "
                "one field of them, such as [row['city'] for row in rows]."
            )


def split_spec(spec: str) -> tuple[str, str | None]:
    """Split ``FILE:COLUMN`` behind the name of a file, as names of columns hold colons too.

    Without such a file, as for a table inside a file, it is split at the last colon. The column is
    None where the whole of it is a file.
    """
    ends = [at for at, letter in enumerate(spec) if letter == ":"]
    if not ends or (not os.path.exists(spec[: ends[-1]]) and os.path.exists(spec)):
        return spec, None
    end = next((end for end in reversed(ends) if os.path.isfile(spec[:end])), ends[-1])
    return spec[:end], spec[end + 1 :]


def read_query(
    spec: str | os.PathLike[str], column: str | None = None, *, reading: ReadingOptions = AS_FOUND
) -> QueryColumn:
    """Read a query column from a table file.

    Parameters
    ----------
    spec : str or path
        ``FILE:COLUMN``, ``FILE:#3`` (by position from 0), or ``FILE`` alone.
    column : str, optional
        The column, when `spec` is the file alone. Without one the text column with most distinct
        values is taken.
    reading : ReadingOptions, optional
        How to read delimited text; what is not set is found.

    Raises
    ------
    TableReadError
        The file cannot be read.
    ColumnNotFoundError
        There is no such column; the message lists those there are.
    QueryError
        No column was named and none holds text.
    """
    file = os.fspath(spec)
    if column is None:
        file, column = split_spec(file)
    table = read_table(file, options=reading)
    position = (
        find_column(table.names, column) if column is not None else _widest_column(file, table)
    )
    query = _column(file, table, position, reading)
    del table
    release_unused(query.values.nbytes)
    return query


def read_every_query(
    file: str | os.PathLike[str],
    *,
    kinds: Sequence[str] = TEXT_KINDS,
    reading: ReadingOptions = AS_FOUND,
) -> list[QueryColumn]:
    name = os.fspath(file)
    table = read_table(name, options=reading)
    return [_column(name, table, position, reading) for position in _columns_of(table, kinds)]


def _column(file: str, table: Any, position: int, reading: ReadingOptions) -> QueryColumn:
    label = label_columns(table.names)[position]
    return QueryColumn(table.columns[position], file, label, reading)


def _columns_of(table: Any, kinds: Sequence[str]) -> list[int]:
    column_kinds = [profile_column(column).kind for column in table.columns]
    return [position for position, kind in enumerate(column_kinds) if kind in kinds]


def _widest_column(file: str, table: Any) -> int:
    positions = _columns_of(table, TEXT_KINDS)
    if not positions:
        raise QueryError(
            f"'{file}' has no column of text or dates to search with. Name a column: "
            f"{file}:COLUMN, one of {', '.join(label_columns(table.names))}."
        )
    return max(
        positions,
        key=lambda position: (pc.count_distinct(table.columns[position]).as_py(), -position),
    )


@dataclass(frozen=True)
class BatchLine:
    """One line of a batch file: a query, or the reason why it is none."""

    number: int
    id: Any
    query: QueryColumn | None
    error: str | None = None


def batch_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a batch file that are not blank, with their numbers from 1."""
    shown = f"The batch file '{path}'"
    try:
        stream = open(path, "rb")  # noqa: SIM115  errors of the block are not those of opening
    except OSError as error:
        raise QueryError(_no_batch(shown, error.strerror)) from error
    with stream:
        yield from lines_of(stream, shown)


def lines_of(stream: Iterable[bytes], shown: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a stream as `batch_lines` does; `shown` is what errors call it."""
    try:
        for number, line in enumerate(stream, 1):
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            if text.strip():
                yield number, text
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise QueryError(_no_batch(shown, reason)) from error


def _no_batch(shown: str, reason: str | None) -> str:
    return f"{shown} cannot be read: {reason}. It must hold one JSON object a line."


def batch_id(number: int, text: str) -> Any:
    """Return the ``id`` of a line of a batch file, or its number if that has no usable one."""
    try:
        document = read_json(text)
        return _id_of(document, number) if isinstance(document, dict) else number
    except (QueryError, ValueError, RecursionError):
        return number


def _id_of(document: dict[str, Any], number: int) -> Any:
    query_id = document.get("id", number)
    try:
        json.dumps(query_id, allow_nan=False)
    except ValueError:
        raise QueryError(
            "its 'id' must be plain JSON, without NaN and infinite numbers. Name it by a text or a "
            "finite number."
        ) from None
    return query_id


# Limits how a file is read, of the name given, to what may be seen of it.
ReadingLimit = Callable[[str, ReadingOptions], ReadingOptions]


def read_batch_line(
    number: int,
    text: str,
    reading: ReadingOptions = AS_FOUND,
    limit: ReadingLimit | None = None,
) -> BatchLine:
    """Read the query of one line of a batch file, or the reason why it is none.

    Its file is read as `reading` says, and as the line itself says, within the limit.
    """
    try:
        document = read_json(text)
        if not isinstance(document, dict):
            raise QueryError("it is no JSON object.")
        query = _batch_query(document, reading, limit)
        return BatchLine(number, _id_of(document, number), query)
    except PexesoError as error:
        return BatchLine(number, batch_id(number, text), None, f"line {number}: {error}")
    except (ValueError, RecursionError) as error:  # also a number of more digits than Python reads
        return BatchLine(number, number, None, f"line {number}: it is no JSON: {error}.")


def _batch_query(
    document: dict[str, Any], reading: ReadingOptions, limit: ReadingLimit | None
) -> QueryColumn:
    reading_names = [name for name in vars(reading) if name != "columns"]
    known = ["id", "values", "file", "column", *reading_names]
    for name in sorted(document.keys() - set(known)):
        hint = spelling_hint(known, name)
        raise QueryError(f"it has a field {name!r}{hint}, which is none of {', '.join(known)}.")
    if "values" in document:
        of_file = [name for name in known[2:] if document.get(name) is not None]
        if of_file:
            raise QueryError(
                f"it has 'values' and {listed_names(of_file)}, which is for a line with 'file': "
                "leave the one or the other out."
            )
        if not isinstance(document["values"], list):
            raise QueryError("'values' must be a list.")
        return query_from_values(document["values"])
    if "file" not in document:
        raise QueryError("it has neither 'values' nor 'file'.")
    column = document.get("column")
    if not isinstance(document["file"], str) or not (column is None or isinstance(column, str)):
        raise QueryError("'file' and 'column' must be texts.")
    options = {name: document[name] for name in reading_names if name in document}
    reading = replace(reading, **options)
    if limit is not None:
        reading = limit(document["file"], reading)
    return read_query(document["file"], column, reading=reading)


@dataclass(frozen=True)
class Hit:
    """A found column: its location, and the number of query values, or rows, that match it."""

    column_id: int
    matched: int
    partition: int
    position: int
    table: str = ""
    label: str = ""


@dataclass(frozen=True)
class ColumnNames:
    """Ids and names of the columns of a partition; mapped files, read where they are looked up."""

    ids: np.ndarray
    tables: Texts
    labels: Texts

    @cached_property
    def sound_tables(self) -> Texts:
        """The tables, all of them looked at once, so that they can be compared as a whole."""
        require_sound(self.tables)
        return self.tables
