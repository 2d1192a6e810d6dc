"""SQLite and DuckDB files: each table and view, read in the sandbox.

A view or a generated column may compute without end, and make any number of long texts; a damaged
DuckDB file can end the process that reads it. Nothing is written next to a file.

A column of SQLite has the type of its values, whatever was declared: whole numbers, floats (also
among whole numbers) or texts; mixed ones are texts. So are floats among whole numbers from 2**53
on, of which a float would change digits. Bytes are left out, and wrong bytes in texts become the
replacement character, with a note.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.columns import no_such_table
from pexeso.lake.readers.table import ReadingBudget, check_size, check_width, strings
from pexeso.lake.typed.sandbox import Answer, SandboxedFormat, budget_of, gathered, require_package
from pexeso.lake.typed.value_texts import EXACT, cell_text
from pexeso.runtime.formatting import first_line

DATABASES = SandboxedFormat(__name__)

_SQLITE, _DUCKDB = b"SQLite format 3\0", b"DUCK"
_BUSY = "{shown} is being written by another program; index it again when that is done."
_MAX_ROWS_A_BATCH, _BATCH_BYTES = 1 << 14, 32 << 20

_STEPS_A_LOOK = 1 << 12
# What the first row of a table or view may take; a view of which none comes is no table.
_FIRST_ROW_SECONDS = 2.0
_MAX_TEXT_BYTES = 64 << 20
_EXACT = int(EXACT) - 1
# What is said of a column with whole numbers beyond `_EXACT`, which a float may not hold.
_LARGE = 2
_COLUMNS_A_STATEMENT = 300
_WAITS_SECONDS = 1.0
_WAL = b"\2"  # at byte 18 of a database that keeps a log
_BESIDE = ("-wal", "-journal")
_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
_ALLOWED = frozenset(
    (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
)
# What is dangerous, and what gives other values each time.
_DENIED_FUNCTIONS = frozenset(
    ("load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "random", "randomblob")
)
_SETTINGS = ("trusted_schema = 0", "cell_size_check = 1", "mmap_size = 0", "temp_store = 2")
# Ends of the names of tables that full text and R-tree tables keep for themselves.
_SHADOWS = (
    *("content", "data", "docsize", "config", "idx", "segments", "segdir", "stat"),
    *("node", "parent", "rowid"),
)
# The second where a message quotes a damaged name, the third also for a damaged length.
_ERRORS = (sqlite3.Error, UnicodeError, MemoryError)
# Views may read no other file and nothing of the network, and nothing is written.
_ALONE = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "temp_directory": "",
    "threads": "1",
    "memory_limit": "1GiB",
    "lock_configuration": "true",
}
# Types that Arrow lacks: it would change numbers, drop time zones or give bytes.
_READ_AS_TEXTS = frozenset(
    ("UHUGEINT", "TIME WITH TIME ZONE", "BIT", "BIGNUM", "VARINT", "INTERVAL")
)
_KIND = re.compile(r"^(?:\w+ )+Error: ")
_PATH = re.compile(r"""(?:file )?(?:"/[^"]*"|'/[^']*')""")


def answer(request: dict[str, Any]) -> Answer:
    """List the tables of a file, or read one; called in the sandbox."""
    path, budget = os.path.realpath(request["path"]), budget_of(request)
    with open(path, "rb") as stream:
        begin = stream.read(len(_SQLITE))
    if begin == _SQLITE:
        return _sqlite_answer(Path(path), request.get("table"), budget)
    if begin[8:12] == _DUCKDB:
        return _duckdb_answer(path, request.get("table"), budget)
    if not begin:
        raise TableReadError("{shown} is empty: it has no bytes.")
    raise TableReadError(
        "{shown} is no database of SQLite or DuckDB: it does not begin like one; it may be "
        "encrypted, or the database of another program, which are not read."
    )


def _quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


# SQLite


class _Column(NamedTuple):
    """Of a column which types its values have, and how long its texts are."""

    n_whole: int | None
    n_floats: int | None
    n_texts: int | None
    n_bytes: int | None
    longest: int | None
    n_characters: float

    @property
    def type(self) -> pa.DataType:
        if self.n_texts or (self.n_floats and self.n_whole == _LARGE):
            return pa.string()
        if self.n_floats:
            return pa.float64()
        return pa.int64() if self.n_whole else pa.null()


def _sqlite_answer(path: Path, name: str | None, budget: ReadingBudget) -> Answer:
    with _opened_sqlite(path, budget) as connection:
        names = _names(connection)
        if name is None:
            return {"tables": [[n, _reason(connection, n, budget)] for n in names]}, None
        if name not in names:
            raise no_such_table("{shown}", "table", name, names)
        return _read(connection, name, budget)


def _names(connection: sqlite3.Connection) -> list[str]:
    with _plain_errors():
        rows = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view')"
        ).fetchall()
    entries = {str(name): str(sql or "") for name, sql in rows}
    virtual = [n for n, sql in entries.items() if sql.lstrip()[:14].upper() == "CREATE VIRTUAL"]
    hidden = {f"{name}_{end}" for name in virtual for end in _SHADOWS}.union(virtual)
    return [n for n in entries if n not in hidden and not n.lower().startswith("sqlite_")]


def _reason(connection: sqlite3.Connection, name: str, budget: ReadingBudget) -> str | None:
    end = time.thread_time() + _FIRST_ROW_SECONDS
    connection.set_progress_handler(
        lambda: time.thread_time() > end or budget.is_over(), _STEPS_A_LOOK
    )
    try:
        connection.execute(f"SELECT * FROM {_quoted(name)} LIMIT 1").fetchone()
    except _ERRORS as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            return f"cannot be read: after {_FIRST_ROW_SECONDS:g} seconds there was no first row"
        return str(_plain_error(error)).removeprefix("{shown} ").rstrip(".")
    finally:
        connection.set_progress_handler(None, 0)
    return None


def _read(connection: sqlite3.Connection, name: str, budget: ReadingBudget) -> Answer:
    """Read a table, which is gone through twice: first for its types and lengths."""
    n_mended = 0

    def text(data: bytes) -> str:
        nonlocal n_mended
        try:
            return data.decode()
        except UnicodeDecodeError:
            n_mended += 1
            return data.decode("utf-8", "replace")

    connection.text_factory = text
    with _plain_errors():
        columns = _columns(connection, name)
    n_characters = int(sum(column.n_characters for column in columns.values()))
    check_size(f"{name!r} of {{shown}}", n_characters, budget.max_bytes)
    schema = pa.schema([(label, column.type) for label, column in columns.items()])
    table = gathered(_batches(connection, name, columns, schema), schema, budget)
    notes = [
        f"column {label!r} (#{number}) is not text everywhere: its bytes were left out"
        for number, (label, column) in enumerate(columns.items())
        if column.n_bytes
    ]
    if n_mended:
        notes.append(
            "not all valid UTF-8: cells in which wrong bytes became the replacement character: "
            f"{n_mended:,}"
        )
    return {"notes": notes}, table


def _columns(connection: sqlite3.Connection, name: str) -> dict[str, _Column]:
    cursor = connection.execute(f"SELECT * FROM {_quoted(name)} LIMIT 0")
    labels = [entry[0] for entry in cursor.description]
    check_width("{shown}", len(labels))
    statistics: list[_Column] = []
    for start in range(0, len(labels), _COLUMNS_A_STATEMENT):
        terms = ", ".join(map(_statistics, labels[start : start + _COLUMNS_A_STATEMENT]))
        row = connection.execute(f"SELECT {terms} FROM {_quoted(name)}").fetchone()
        statistics += map(_Column._make, zip(*[iter(row)] * len(_Column._fields), strict=True))
    return dict(zip(labels, statistics, strict=True))


def _statistics(label: str) -> str:
    cell = _quoted(label)
    size = f"CASE WHEN {cell} BETWEEN -{_EXACT} AND {_EXACT} THEN 1 ELSE {_LARGE} END"
    whole = f"max(CASE typeof({cell}) WHEN 'integer' THEN {size} ELSE 0 END)"
    flags = [whole, *(f"max(typeof({cell}) = '{kind}')" for kind in ("real", "text", "blob"))]
    length = f"CASE typeof({cell}) WHEN 'text' THEN length({cell}) END"
    return f"{', '.join(flags)}, max({length}), total({length})"


def _batches(
    connection: sqlite3.Connection, name: str, columns: dict[str, _Column], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    terms = ", ".join(
        f"CASE WHEN typeof({cell}) <> 'blob' THEN {cell} END" if column.n_bytes else cell
        for cell, column in zip(map(_quoted, columns), columns.values(), strict=True)
    )
    row_bytes = int(sum(column.longest or 8 for column in columns.values()))
    n_rows = max(1, min(_MAX_ROWS_A_BATCH, _BATCH_BYTES // max(1, row_bytes)))
    with _plain_errors():
        cursor = connection.execute(f"SELECT {terms} FROM {_quoted(name)}")
        while rows := cursor.fetchmany(n_rows):
            arrays = map(_array, zip(*rows, strict=True), schema.types)
            yield pa.RecordBatch.from_arrays(list(arrays), schema=schema)


def _array(values: tuple[object, ...], kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        return strings([None if value is None else cell_text(value) for value in values])
    if pa.types.is_floating(kind):
        return pa.array([None if value is None else float(value) for value in values], kind)
    return pa.array(values, kind)


@contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except _ERRORS as error:
        raise _plain_error(error) from error


def _plain_error(error: Exception) -> TableReadError:
    if (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    ):
        return TableReadError(_BUSY)
    if isinstance(error, MemoryError):
        return TableReadError(
            "{shown} cannot be read as a database: a row takes too much memory, or is damaged."
        )
    return TableReadError(f"{{shown}} cannot be read as a database: {first_line(error)}.")


@contextmanager
def _opened_sqlite(path: Path, budget: ReadingBudget) -> Iterator[sqlite3.Connection]:
    """Open a database to be read alone.

    As long as SQLite need not write to do so, the file itself is opened. What another program has
    not finished, in a journal or a log next to it, is applied to a copy.
    """
    with ExitStack() as stack:
        before = _state(path)
        with open(path, "rb") as stream:
            has_log = stream.read(19)[18:] == _WAL
        how = "mode=ro"
        if _has_unfinished(path, has_log):
            path, how = _copy(path, budget, stack), "mode=rw"
        elif has_log:
            how = "mode=ro&immutable=1"  # without this, files of the log are made next to it
        with _plain_errors():
            connection = _connect(path, how, stack)
        yield connection
        if how != "mode=rw" and _state(path) != before:
            raise TableReadError(_BUSY)


def _connect(path: Path, how: str, stack: ExitStack) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(os.fspath(path))}?{how}",
        uri=True,
        timeout=_WAITS_SECONDS,
        isolation_level=None,
    )
    stack.callback(connection.close)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_TEXT_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for setting in _SETTINGS:
        connection.execute(f"PRAGMA {setting}")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # applies a journal
    connection.set_authorizer(_authorise)
    return connection


def _authorise(action: int, _first: object, second: object, *_: object) -> int:
    """Allow reading, and of functions those that only compute."""
    is_denied = action not in _ALLOWED or (
        action == sqlite3.SQLITE_FUNCTION and str(second).lower() in _DENIED_FUNCTIONS
    )
    return sqlite3.SQLITE_DENY if is_denied else sqlite3.SQLITE_OK


def _state(path: Path) -> list[tuple[int, int] | None]:
    stamps: list[tuple[int, int] | None] = []
    for end in ("", *_BESIDE):
        try:
            status = os.stat(f"{path}{end}")
        except FileNotFoundError:
            stamps.append(None)
        except OSError as error:
            raise TableReadError(f"{{shown}} cannot be read: {error.strerror or error}.") from error
        else:
            stamps.append((status.st_size, status.st_mtime_ns))
    return stamps


def _has_unfinished(path: Path, has_log: bool) -> bool:
    """Return whether a log with something in it, or a journal of a change, lies next to a file."""
    end = "-wal" if has_log else "-journal"
    try:
        with open(f"{path}{end}", "rb") as stream:
            start = stream.read(len(_JOURNAL_MAGIC))
    except OSError:
        return False
    return bool(start) if has_log else start == _JOURNAL_MAGIC


def _copy(path: Path, budget: ReadingBudget, stack: ExitStack) -> Path:
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


# DuckDB


def _duckdb_answer(path: str, name: str | None, budget: ReadingBudget) -> Answer:
    require_package("duckdb")
    with _opened_duckdb(path) as connection:
        tables = {
            name if schema == "main" else f"{schema}.{name}": _quoted(schema, name)
            for schema, name in connection.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal UNION ALL "
                "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal"
            ).fetchall()
        }
        if name is None:
            reasons = ([n, _duckdb_reason(connection, quoted)] for n, quoted in tables.items())
            return {"tables": list(reasons)}, None
        if name not in tables:
            raise no_such_table("{shown}", "table", name, list(tables))
        relation = connection.sql(f"SELECT * FROM {tables[name]}")
        check_width("{shown}", len(relation.columns))
        if as_texts := [
            f"{_quoted(label)}::VARCHAR AS {_quoted(label)}"
            for label, kind in zip(relation.columns, relation.types, strict=True)
            if str(kind) in _READ_AS_TEXTS
        ]:
            terms = ", ".join(as_texts)
            relation = connection.sql(f"SELECT * REPLACE ({terms}) FROM {tables[name]}")
        read_batches = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        reader = read_batches(_MAX_ROWS_A_BATCH)
        return {}, gathered(reader, reader.schema, budget)


@contextmanager
def _opened_duckdb(path: str) -> Iterator[Any]:
    import duckdb

    try:
        with duckdb.connect(path, read_only=True, config=_ALONE) as connection:
            yield connection
    except duckdb.Error as error:
        if "set lock on file" in str(error):
            raise TableReadError(_BUSY) from error
        raise TableReadError(
            f"{{shown}} cannot be read as a database: {_duckdb_words(error)}."
        ) from error


def _duckdb_words(error: Exception) -> str:
    said = _PATH.sub("the file", _KIND.sub("", first_line(error)))
    return f"{said[:1].lower()}{said[1:]}".rstrip(".:")


def _duckdb_reason(connection: Any, quoted: str) -> str | None:
    import duckdb

    try:
        connection.execute(f"SELECT * FROM {quoted} LIMIT 1").fetchone()
    except duckdb.Error as error:
        return f"cannot be read: {_duckdb_words(error)}"
    return None
