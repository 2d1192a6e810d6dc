"""Databases and catalogues whose tables are a lake, by the protocol of their URL.

`pexeso.store.io.location.Location` takes each for a filesystem whose files are tables: `info` and
`ls` say which there are and in which version, `rows` reads one. Credentials are found by the
library of each, in the environment or in its own files; an URL has none, so that none is stored or
shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pexeso.errors import InputError, PlaceError, TableReadError
from pexeso.runtime.extras import require
from pexeso.runtime.formatting import coded_name, first_line
from pexeso.store.io.table_history import NoSuchState, digest_of, iceberg_snapshot

if TYPE_CHECKING:
    import pyarrow as pa


class Catalogue(ABC):
    """Tables of one database or catalogue, named by a path: that of an URL.

    Its first parts are the `root`; a further one is a table. Tables that keep their history are
    read in the state `as_of`, by default the current one.
    """

    n_parts = 1

    def __init__(self, path: str, as_of: str | None = None) -> None:
        self.root, self.as_of = "/".join(path.split("/")[: self.n_parts]), as_of

    @abstractmethod
    def tables(self, name: str = "") -> Iterator[tuple[str, int, str | None]]:
        """Yield the name, bytes and version of each table, or of one.

        The version differs where rows or columns may do; None where nobody knows it.
        """

    @abstractmethod
    def rows(self, name: str) -> AbstractContextManager[pa.RecordBatchReader]:
        """Open a table for reading; raises `TableReadError` where the fault is the table's."""

    def info(self, path: str) -> dict[str, Any]:
        name = self.table(path)
        if not name:
            return {"name": path, "type": "directory"}
        for table in self.tables(name):
            return self._info(*table)
        raise FileNotFoundError(path)

    def ls(self, path: str, detail: bool = True) -> list[dict[str, Any]]:
        if self.table(path):
            raise FileNotFoundError(path)
        return [self._info(*table) for table in self.tables()]

    def invalidate_cache(self, path: str) -> None:  # noqa: B027  what filesystems have
        """Do nothing: what is there is asked each time."""

    def table(self, path: str) -> str:
        return unquote(path.removeprefix(self.root).removeprefix("/"))

    def _info(self, name: str, n_bytes: int, version: str | None) -> dict[str, Any]:
        path = f"{self.root}/{coded_name(name)}"
        return {"name": path, "type": "table", "size": n_bytes, "ETag": version}


_SETTINGS = {
    "default_transaction_read_only": "on",
    "statement_timeout": "10min",
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
}
_SESSION = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in _SETTINGS.items())
# A table with its partitions, or those that inherit from it, has their counts of changed rows, and
# of a table that was emptied or rewritten the files are others.
_TABLES = """
WITH RECURSIVE listed AS (
    SELECT c.oid, n.nspname || '.' || c.relname AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
        AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
        AND ($1 = '' OR n.nspname || '.' || c.relname = $1)
), family (root, member) AS (
    SELECT oid, oid FROM listed
    UNION SELECT f.root, i.inhrelid FROM family f JOIN pg_inherits i ON i.inhparent = f.member
), files AS (
    SELECT f.root, sum(pg_relation_size(f.member))::bigint AS n_bytes,
        bool_and(c.relkind IN ('r', 'p', 'm')) AS counts,
        string_agg(concat_ws(' ', f.member, pg_relation_filenode(f.member),
            pg_stat_get_tuples_inserted(f.member), pg_stat_get_tuples_updated(f.member),
            pg_stat_get_tuples_deleted(f.member)), ',' ORDER BY f.member) AS state
    FROM family f JOIN pg_class c ON c.oid = f.member GROUP BY f.root
)
SELECT DISTINCT ON (l.name) l.name, coalesce(f.n_bytes, 0),
    CASE WHEN f.counts AND current_setting('track_counts')::bool THEN concat_ws(' ',
        (SELECT system_identifier FROM pg_control_system()), f.state,
        has_table_privilege(l.oid, 'SELECT'),
        (SELECT string_agg(concat_ws(' ', a.attname, a.atttypid, a.atttypmod), ',' ORDER BY attnum)
            FROM pg_attribute a WHERE a.attrelid = l.oid AND attnum > 0 AND NOT attisdropped))
    END
FROM listed l JOIN files f ON f.root = l.oid ORDER BY l.name, l.oid
"""
_COLUMNS = """
SELECT c.oid::regclass::text, quote_ident(a.attname), t.typname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_type t ON t.oid = a.atttypid
WHERE n.nspname || '.' || c.relname = $1 ORDER BY c.oid, a.attnum
"""
# Types that Arrow has; all else is read as the text that the database writes.
_TYPED = {"bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar"}
_TYPED |= {"date", "time", "timestamp", "timestamptz"}


class Postgres(Catalogue):
    """A database of Postgres, through ADBC."""

    n_parts = 2

    def tables(self, name: str = "") -> Iterator[tuple[str, int, str | None]]:
        with self._connected() as cursor:
            cursor.execute(_TABLES, (name,))
            rows = cursor.fetchall()
        for table, n_bytes, state in rows:
            yield table, n_bytes, None if state is None else digest_of(state)

    @contextmanager
    def rows(self, name: str) -> Iterator[pa.RecordBatchReader]:
        with self._connected() as cursor:
            cursor.execute(_COLUMNS, (name,))
            columns = cursor.fetchall()
            try:
                yield self._read(cursor, name, columns)
            except (PlaceError, TableReadError, MemoryError):
                raise
            except Exception as error:  # of the database, or of Arrow while rows come
                reason = first_line(error).split(" Query was:")[0].rstrip(".")
                with _still_there(cursor, reason):
                    raise TableReadError(f"{name} cannot be read: {reason}.") from error

    def _read(self, cursor: Any, name: str, columns: list[Any]) -> pa.RecordBatchReader:
        if not columns:
            raise TableReadError(f"{name} is no longer there.")
        oid_name = columns[0][0]
        terms = ", ".join(
            column if kind in _TYPED else f"{column}::text AS {column}"
            for table, column, kind in columns
            if table == oid_name and column is not None
        )
        if not terms:
            raise TableReadError(f"{name} has no column.")
        cursor.execute(f"SELECT {terms} FROM {oid_name}")
        return cursor.fetch_record_batch()

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        require("adbc_driver_postgresql", "A database of Postgres")
        driver = import_module("adbc_driver_postgresql.dbapi")
        connection = driver.connect(f"postgresql://{self.root}", autocommit=True)
        with connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {_SESSION}")
            yield cursor


@contextmanager
def _still_there(cursor: Any, reason: str) -> Iterator[None]:
    """Raise `PlaceError` where a connection has broken off."""
    try:
        cursor.execute("SELECT 1")
    except Exception as error:
        raise PlaceError(f"The connection to the database has broken off: {reason}.") from error
    yield


class IcebergCatalogue(Catalogue):
    """A catalogue of Iceberg that the configuration of pyiceberg has under a name."""

    def tables(self, name: str = "") -> Iterator[tuple[str, int, str | None]]:
        catalogue = self._opened()
        from pyiceberg.exceptions import NoSuchTableError, ValidationError

        for table in [tuple(name.split("."))] if name else _tables_of(catalogue):
            try:
                opened = catalogue.load_table(table)
            except NoSuchTableError:
                if name:
                    return
                yield ".".join(table), 0, None  # of another format
            except (FileNotFoundError, ValueError, ValidationError):
                yield ".".join(table), 0, None  # whoever reads it says why
            else:
                try:
                    snapshot = iceberg_snapshot(opened, self.as_of)
                except NoSuchState:  # whoever reads it says so
                    snapshot = None
                size = snapshot.summary["total-files-size"] if snapshot and snapshot.summary else 0
                number = snapshot.snapshot_id if snapshot else None
                schema = _scan(opened, number, self.as_of).projection().model_dump_json()
                version = digest_of(opened.metadata.table_uuid, number, schema)
                yield ".".join(table), int(size or 0), version

    @contextmanager
    def rows(self, name: str) -> Iterator[pa.RecordBatchReader]:
        catalogue = self._opened()
        from pyiceberg.exceptions import NoSuchTableError, ValidationError

        faults = (FileNotFoundError, ValueError, NotImplementedError, ValidationError, NoSuchState)
        try:
            table = catalogue.load_table(name)
            snapshot = iceberg_snapshot(table, self.as_of)
            number = snapshot.snapshot_id if snapshot else None
            yield _scan(table, number, self.as_of).to_arrow_batch_reader()
        except (*faults, NoSuchTableError) as error:
            raise TableReadError(f"{name} cannot be read: {first_line(error)}.") from error

    def _opened(self) -> Any:
        require("pyiceberg", "A catalogue of Iceberg")
        from pyiceberg.catalog import load_catalog

        return load_catalog(self.root)


def _scan(table: Any, number: int | None, as_of: str | None) -> Any:
    """Return the scan of a snapshot; of the current one with the names of now."""
    return table.scan(snapshot_id=None if as_of is None else number)


def _tables_of(catalogue: Any, namespace: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for inner in sorted(catalogue.list_namespaces(namespace)):
        if inner != namespace:
            yield from sorted(catalogue.list_tables(inner))
            yield from _tables_of(catalogue, inner)


# By protocol, which is the format of the tables too: see `pexeso.lake.containers.formats.FORMATS`.
CATALOGUES = {"iceberg": IcebergCatalogue, "postgresql": Postgres}


def require_plain(protocol: str, path: str) -> None:
    """Refuse an URL with a password or options, without showing it, and one that names nothing."""
    n_parts = CATALOGUES[protocol].n_parts
    has_secret = ":" in path.rpartition("@")[0] or "?" in path
    if has_secret or not n_parts <= len(path.split("/")) <= n_parts + 1 or not path:
        raise InputError(
            f"A lake of tables of {protocol} is named without a password and options, as "
            "postgresql://user@host/database or iceberg://catalogue: give these in the "
            "environment (PGPASSWORD, PGSSLMODE, PYICEBERG_CATALOG__...) or in the files that "
            "its library reads."
        )
