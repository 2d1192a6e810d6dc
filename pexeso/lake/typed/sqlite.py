"""SQLite files: each table and view, in a process of its own; nothing is written beside the file.

A view or a generated column may compute without end, and make any number of long texts.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.columns import no_such_table
from pexeso.lake.readers.budget import ReadingBudget
from pexeso.lake.readers.content import check_size
from pexeso.lake.readers.file_source import FileSource
from pexeso.lake.readers.table import check_width, strings
from pexeso.lake.typed.apart import batches, bounds, budget_of, check_table, read_apart
from pexeso.lake.typed.cells import cell_text
from pexeso.lake.typed.table import InnerTable, TypedTable
from pexeso.lake.typed.value_texts import EXACT
from pexeso.runtime.formatting import first_line

MAGIC = b"SQLite format 3\0"
"""How a database file begins."""

_MAX_ROWS_A_BATCH = 1 << 14
_BATCH_BYTES = 32 << 20
_STEPS_A_LOOK = 1 << 12
_FIRST_ROW_SECONDS = 2.0
"""What the first row of a table or view may take; a view of which none comes is no table."""
_MAX_TEXT_BYTES = 64 << 20
_EXACT = int(EXACT) - 1
_LARGE = 2
"""What is said of a column with whole numbers beyond `_EXACT`, which a float may not hold."""
_COLUMNS_A_STATEMENT = 300
_WAITS_SECONDS = 1.0
_WAL = b"\2"
"""What stands at byte 18 of a database that keeps a log."""
_BESIDE = ("-wal", "-journal")
_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
_ALLOWED = frozenset(
    (
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    )
)
_DENIED_FUNCTIONS = frozenset(
    ("load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "random", "randomblob")
)
"""What is dangerous, and what gives other values each time."""
_SETTINGS = ("trusted_schema = 0", "cell_size_check = 1", "mmap_size = 0", "temp_store = 2")
_SHADOWS = (
    *("content", "data", "docsize", "config", "idx", "segments", "segdir", "stat"),
    *("node", "parent", "rowid"),
)
"""Ends of the names of tables that full text and R-tree tables keep for themselves."""
_ERRORS = (sqlite3.Error, UnicodeError, MemoryError)
"""The second where a message quotes a damaged name, the third also for a damaged length."""
_BUSY = "{shown} is being written by another program; index it again when that is done."


def tables_in(source: FileSource) -> list[InnerTable]:
    """List the tables and views of a database, in the order of its schema.

    Virtual tables, and the tables that SQLite and its extensions keep for themselves, are not
    among them.

    Parameters
    ----------
    source : FileSource
        The file.

    Returns
    -------
    list of InnerTable
        Those that cannot be read have a reason.

    Raises
    ------
    TableReadError
        It is damaged, being written, or no SQLite database.
    PlaceError
        Its storage breaks off.
    """
    listing, _ = _answer(source, {})
    return [InnerTable(name, reason) for name, reason in listing["tables"]]


def read(source: FileSource, name: str) -> TypedTable:
    """Read one table or view.

    A column has the type of its values, whatever was declared: whole numbers, floats (also among
    whole numbers) or texts; mixed ones are texts. So are floats among whole numbers from 2**53 on,
    of which a float would change digits. Bytes are left out, and wrong bytes in texts become the
    replacement character, with a note.

    Memory: the table, at most `max_bytes` of the source, here and in the process that reads. The
    table is gone through twice, first for its types.
    """
    answered, table = _answer(source, {"table": name})
    if table is None:
        raise TableReadError(f"{source.shown} has no such table: {name!r}.")
    return TypedTable(table.column_names, table.schema.types, batches(table), answered["notes"])


def _answer(
    source: FileSource, request: dict[str, object]
) -> tuple[dict[str, Any], pa.Table | None]:
    with source.local_path() as path:
        budget = source.budget()
        request = {"path": os.path.realpath(path), "bounds": bounds(budget), **request}
        return read_apart(budget, __name__, request, n_bytes=budget.n_bytes)


def answer(request: dict[str, Any]) -> tuple[dict[str, Any], pa.Table | None]:
    """List the tables of a file, or read one; called in a process of its own."""
    with _opened(Path(request["path"]), budget_of(request)) as database:
        names = database.names()
        if "table" not in request:
            return {"tables": [[name, database.reason(name)] for name in names]}, None
        if request["table"] not in names:
            raise no_such_table("{shown}", "table", request["table"], names)
        return _read(database, request["table"])


def _read(database: _Database, name: str) -> tuple[dict[str, Any], pa.Table]:
    columns = database.table(name)
    pieces, n_bytes, n_rows = [], 0, 0
    schema = pa.schema(list(zip(columns.columns, columns.types, strict=True)))
    for rows in database.rows(name, columns):
        values = zip(zip(*rows, strict=True), columns.types, strict=True)
        pieces.append(pa.RecordBatch.from_arrays([_array(*pair) for pair in values], schema=schema))
        n_bytes, n_rows = n_bytes + pieces[-1].nbytes, n_rows + len(rows)
        check_table(database.budget, n_bytes, n_rows, len(schema))
    notes = [
        f"column {column!r} (#{number}) is not text everywhere: its bytes were left out"
        for number, column in enumerate(columns.columns)
        if number in columns.with_bytes
    ]
    if database.texts.n_mended:
        notes.append(
            "not all valid UTF-8: cells in which wrong bytes became the replacement character: "
            f"{database.texts.n_mended:,}"
        )
    return {"notes": notes}, pa.Table.from_batches(pieces, schema)


def _array(values: tuple[object, ...], kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        return strings([None if value is None else cell_text(value) for value in values])
    if pa.types.is_floating(kind):
        return pa.array([None if value is None else float(value) for value in values], kind)
    return pa.array(values, kind)


class _Columns:
    """The columns of a table, their types, and how many rows a batch may have."""

    def __init__(self, columns: list[str], statistics: list[tuple[object, ...]]) -> None:
        self.columns = columns
        self.types = [_kind(dict(zip("ift", flags, strict=True))) for *flags, _, _, _ in statistics]
        self.with_bytes = {number for number, values in enumerate(statistics) if values[3]}
        self.n_characters = sum(values[5] or 0 for values in statistics)
        longest = sum(values[4] or 8 for values in statistics)
        self.n_rows = max(1, min(_MAX_ROWS_A_BATCH, _BATCH_BYTES // max(1, int(longest))))


def _kind(present: dict[str, object]) -> pa.DataType:
    if present["t"] or (present["f"] and present["i"] == _LARGE):
        return pa.string()
    if present["f"]:
        return pa.float64()
    return pa.int64() if present["i"] else pa.null()


class _Texts:
    """Makes texts of bytes, and counts those with wrong ones."""

    def __init__(self) -> None:
        self.n_mended = 0

    def __call__(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.n_mended += 1
            return data.decode("utf-8", "replace")


class _Database:
    """An open database: everything that is asked of it raises `TableReadError`."""

    def __init__(self, connection: sqlite3.Connection, budget: ReadingBudget) -> None:
        self.budget, self.texts = budget, _Texts()
        connection.text_factory = self.texts
        self._connection = connection
        self._is_late: Callable[[], bool] = budget.is_over
        connection.set_progress_handler(lambda: self._is_late(), _STEPS_A_LOOK)

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except _ERRORS as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> TableReadError:
        if _is_busy(error):
            return TableReadError(_BUSY)
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            return self.budget.out_of_time()
        if isinstance(error, MemoryError):
            return TableReadError(
                "{shown} cannot be read as a database: a row takes too much memory, or is damaged."
            )
        return TableReadError(f"{{shown}} cannot be read as a database: {first_line(error)}.")

    def names(self) -> list[str]:
        """Return the names of the tables and views that hold what somebody put there."""
        with self._plain_errors():
            rows = self._connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view')"
            ).fetchall()
        entries = [(str(name), str(sql or "")) for name, sql in rows]
        virtual = [name for name, sql in entries if sql.lstrip()[:14].upper() == "CREATE VIRTUAL"]
        shadows = {f"{name}_{end}" for name in virtual for end in _SHADOWS}
        hidden = shadows.union(virtual)
        return list(
            dict.fromkeys(
                name
                for name, _ in entries
                if name not in hidden and not name.lower().startswith("sqlite_")
            )
        )

    def reason(self, name: str) -> str | None:
        """Return why a table cannot be read, None where its first row can be."""
        end = time.thread_time() + _FIRST_ROW_SECONDS
        self._is_late = lambda: time.thread_time() > end or self.budget.is_over()
        try:
            self._connection.execute(f"SELECT * FROM {_quoted(name)} LIMIT 1").fetchone()
        except _ERRORS as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                return (
                    f"cannot be read: after {_FIRST_ROW_SECONDS:g} seconds there was no first row"
                )
            return str(self._error(error)).removeprefix("{shown} ").rstrip(".")
        finally:
            self._is_late = self.budget.is_over
        return None

    def table(self, name: str) -> _Columns:
        """Go through a table for the types and lengths of what is in its columns."""
        with self._plain_errors():
            cursor = self._connection.execute(f"SELECT * FROM {_quoted(name)} LIMIT 0")
            columns = [entry[0] for entry in cursor.description]
            check_width("{shown}", len(columns))
            statistics: list[tuple[object, ...]] = []
            for start in range(0, len(columns), _COLUMNS_A_STATEMENT):
                part = columns[start : start + _COLUMNS_A_STATEMENT]
                terms = ", ".join(map(_statistics_terms, part))
                row = self._connection.execute(f"SELECT {terms} FROM {_quoted(name)}").fetchone()
                statistics += zip(*[iter(row)] * 6, strict=True)
        table = _Columns(columns, statistics)
        check_size(f"{name!r} of {{shown}}", int(table.n_characters), self.budget.max_bytes)
        return table

    def rows(self, name: str, table: _Columns) -> Iterator[list[tuple[object, ...]]]:
        """Yield the rows of a table in lists."""
        terms = ", ".join(
            f"CASE WHEN typeof({_quoted(c)}) <> 'blob' THEN {_quoted(c)} END"
            if number in table.with_bytes
            else _quoted(c)
            for number, c in enumerate(table.columns)
        )
        with self._plain_errors():
            cursor = self._connection.execute(f"SELECT {terms} FROM {_quoted(name)}")
            while rows := cursor.fetchmany(table.n_rows):
                yield rows


def _statistics_terms(column: str) -> str:
    name = _quoted(column)
    size = f"CASE WHEN {name} BETWEEN -{_EXACT} AND {_EXACT} THEN 1 ELSE {_LARGE} END"
    whole = f"max(CASE typeof({name}) WHEN 'integer' THEN {size} ELSE 0 END)"
    flags = [whole, *(f"max(typeof({name}) = '{kind}')" for kind in ("real", "text", "blob"))]
    length = f"CASE typeof({name}) WHEN 'text' THEN length({name}) END"
    return f"{', '.join(flags)}, max({length}), total({length})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_busy(error: Exception) -> bool:
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


@contextmanager
def _opened(path: Path, budget: ReadingBudget) -> Iterator[_Database]:
    """Open a database to be read alone.

    As long as SQLite need not write to do so, the file itself is opened. What another program has
    not finished, in a journal or a log beside it, is applied to a copy.
    """
    with ExitStack() as stack:
        before = _state(path)
        with open(path, "rb") as stream:
            has_log = stream.read(19)[18:] == _WAL
        how = "mode=ro"
        if _has_unfinished(path, has_log):
            path, how = _copy(path, budget, stack), "mode=rw"
        elif has_log:
            how = "mode=ro&immutable=1"  # without this, files of the log are made beside it
        yield _Database(_connect(path, how, stack), budget)
        if how != "mode=rw" and _state(path) != before:
            raise TableReadError(_BUSY)


def _connect(path: Path, how: str, stack: ExitStack) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            f"file:{quote(os.fspath(path))}?{how}",
            uri=True,
            timeout=_WAITS_SECONDS,
            isolation_level=None,
        )
        stack.callback(connection.close)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_TEXT_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # applies a journal
        connection.set_authorizer(_authorise)
    except _ERRORS as error:
        if _is_busy(error):
            raise TableReadError(_BUSY) from error
        raise TableReadError(
            f"{{shown}} cannot be read as a database: {first_line(error)}."
        ) from error
    return connection


def _authorise(action: int, _first: object, second: object, *_: object) -> int:
    """Allow reading, and of functions those that only compute."""
    is_denied = action not in _ALLOWED or (
        action == sqlite3.SQLITE_FUNCTION and str(second).lower() in _DENIED_FUNCTIONS
    )
    return sqlite3.SQLITE_DENY if is_denied else sqlite3.SQLITE_OK


def _state(path: Path) -> tuple[object, ...]:
    """Return sizes and times of a database and what lies beside it."""
    stamps: list[object] = []
    for end in ("", *_BESIDE):
        try:
            status = os.stat(f"{path}{end}")
        except FileNotFoundError:
            stamps.append(None)
        except OSError as error:
            raise TableReadError(f"{{shown}} cannot be read: {error.strerror or error}.") from error
        else:
            stamps.append((status.st_size, status.st_mtime_ns))
    return tuple(stamps)


def _has_unfinished(path: Path, has_log: bool) -> bool:
    """Return whether a log with something in it, or a journal of a change, lies beside a file."""
    end = "-wal" if has_log else "-journal"
    try:
        with open(f"{path}{end}", "rb") as stream:
            start = stream.read(len(_JOURNAL_MAGIC))
    except OSError:
        return False
    return bool(start) if has_log else start == _JOURNAL_MAGIC


def _copy(path: Path, budget: ReadingBudget, stack: ExitStack) -> Path:
    """Copy a database with what lies beside it; all must be of one moment."""
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pexeso-"))
    copy = Path(folder) / "file"
    before = _state(path)
    check_size("{shown}", sum(entry[0] for entry in before if entry), budget.max_bytes)
    try:
        for end, entry in zip(("", *_BESIDE), before, strict=True):
            if entry is not None:
                shutil.copyfile(f"{path}{end}", f"{copy}{end}")
    except OSError as error:
        raise TableReadError(_BUSY) from error
    if _state(path) != before:
        raise TableReadError(_BUSY)
    return copy
