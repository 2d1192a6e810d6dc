"""The catalog: all tables and columns of a lake, as Parquet files.

Tables and columns that are left out are listed with the reason.

A catalog is a list of folders: one of the first build, and one of each update since. A folder holds
the rows that its update added, in files ``tables-00000.parquet`` and ``columns-00000.parquet`` and
so on, and ``removed.parquet``, the names of the tables whose rows in earlier folders no longer
hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from itertools import islice
from operator import or_
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.errors import IndexCorruptError, InputError
from pexeso.lake.columns import did_you_mean
from pexeso.lake.containers.formats import format_of
from pexeso.runtime.formatting import first_line, listed_names

# Most records in one batch.
MAX_RECORDS = 1 << 16

# Schema of the records. Fields that are not of a record's sort are null.
SCHEMA = pa.schema(
    [
        # table, column, value, or what a part of an index calls its own
        pa.field("record", pa.string(), nullable=False),
        pa.field("table", pa.string(), nullable=False),
        # of a table
        pa.field("format", pa.string()),
        pa.field("n_bytes", pa.int64()),  # on disk
        pa.field("modified", pa.int64()),  # last change in nanoseconds since 1970, if known
        pa.field("version", pa.string()),  # what its storage calls this state of the file
        # of a table inside a file: bytes, number of tables and name of that; see `KnownContainers`
        pa.field("container", pa.string()),
        pa.field("encoding", pa.string()),
        pa.field("delimiter", pa.string()),
        pa.field("n_columns", pa.int32()),
        pa.field("fingerprint", pa.string()),  # of the bytes on disk that could be read
        pa.field("notes", pa.list_(pa.string())),  # what was repaired
        # of a table and of a column
        pa.field("n_rows", pa.int64()),
        pa.field("reason", pa.string()),  # why it is left out; null where it is kept
        # of all but a table
        pa.field("position", pa.int32()),  # 0-based
        # of a column and of a set
        pa.field("label", pa.string()),
        pa.field("n_distinct", pa.int64()),  # of kept columns: normalised values; of sets: tokens
        # of a column
        pa.field("name", pa.string()),
        pa.field("kind", pa.string()),  # text, code, date, number or empty
        pa.field("n_missing", pa.int64()),
        pa.field("median_tokens", pa.float64()),
        # of a value and of a token
        pa.field("value", pa.string()),  # normalised; of a token its text
        # of a value
        pa.field("text", pa.string()),  # as first written, without white space around it
        pa.field("count", pa.int64()),  # cells
        # of rows; n_columns too, and n_rows, which are those of the record
        pa.field("first_row", pa.int64()),  # what rows are ordered by, those of one record together
        pa.field("labels", pa.list_(pa.string())),  # of all columns
        pa.field("texts", pa.list_(pa.string())),  # distinct, not empty
        pa.field("cells", pa.list_(pa.int32())),  # row after row: places in texts, -1 if missing
        # of hashed cells, with n_rows and first_row; see pexeso.redundancy.pieces
        pa.field("facts", pa.string()),  # JSON of the columns
        pa.field("hashes", pa.binary()),
        pa.field("codes", pa.binary()),
    ]
)

TABLES, COLUMNS, REMOVED, ALIASES = "tables", "columns", "removed", "aliases"
# From a kind of file, such as `TABLES`, to the files of that kind in each folder of a catalog, in
# order.
FilesOf = Callable[[str], Sequence[Sequence[Path]]]


def batch_of(records: list[dict[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(records, schema=SCHEMA)


def batch_of_columns(given: dict[str, pa.Array]) -> pa.RecordBatch:
    """Create a batch of records from whole columns of equal length.

    Fields that are not given are null.
    """
    length = len(next(iter(given.values())))
    arrays = [
        given[field.name] if field.name in given else pa.nulls(length, field.type)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def record_batches(records: Iterable[dict[str, object]]) -> Iterator[pa.RecordBatch]:
    left = iter(records)
    while some := list(islice(left, MAX_RECORDS)):
        yield batch_of(some)


def column_batches(
    kind: str, columns: Iterable[tuple[str, int, Mapping[str, pa.Array]]]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of columns in batches of at most `MAX_RECORDS`, small columns together.

    columns: of each its table and position, and arrays of equal length with the other fields.
    """
    pending: list[tuple[str, int, list[pa.Array], int]] = []
    names: list[str] = []
    n_pending = 0
    for table, position, fields in columns:
        names, arrays = list(fields), list(fields.values())
        start, end = 0, len(arrays[0])
        while start < end:
            length = min(end - start, MAX_RECORDS - n_pending)
            some = [array.slice(start, length) for array in arrays] if length < end else arrays
            pending.append((table, position, some, length))
            start, n_pending = start + length, n_pending + length
            if n_pending == MAX_RECORDS:
                yield _column_batch(kind, names, pending)
                pending, n_pending = [], 0
    if pending:
        yield _column_batch(kind, names, pending)


def _column_batch(
    kind: str, names: list[str], columns: list[tuple[str, int, list[pa.Array], int]]
) -> pa.RecordBatch:
    tables, positions, arrays, lengths = zip(*columns, strict=True)
    row = pa.array(np.repeat(np.arange(len(lengths)), lengths))
    fields = {
        "record": pa.repeat(kind, len(row)),
        "table": pa.array(tables, pa.string()).take(row),
        "position": pa.array(positions, pa.int32()).take(row),
    }
    fields |= {
        name: pa.concat_arrays(pieces).cast(SCHEMA.field(name).type)
        for name, pieces in zip(names, zip(*arrays, strict=True), strict=True)
    }
    return batch_of_columns(fields)


def _schema(*names: str) -> pa.Schema:
    return pa.schema([SCHEMA.field(name) for name in names])


# One row a table, ordered by `table` in each folder.
#
# See `SCHEMA`; `reason` says why a file could not be read.
TABLES_SCHEMA = _schema(
    *("table", "format", "n_bytes", "modified", "version", "encoding", "delimiter"),
    *("n_rows", "n_columns", "fingerprint", "reason", "notes", "container"),
)

# One row a column, ordered by table, name, position in each folder; `column_id` numbers the kept
# ones and is null for the others.
COLUMNS_SCHEMA = pa.schema(
    [
        *_schema(*("table", "position", "name", "label", "kind", "n_rows", "n_missing")),
        *_schema("n_distinct", "median_tokens", "reason"),
        pa.field("column_id", pa.int64()),
    ]
)

REMOVED_SCHEMA = _schema("table")

_SCHEMAS = {TABLES: TABLES_SCHEMA, COLUMNS: COLUMNS_SCHEMA, REMOVED: REMOVED_SCHEMA}


class Catalog:
    """The tables and columns that hold, read from the files of a catalog."""

    def __init__(self, files: FilesOf) -> None:
        self._files = files
        none = _nullable(REMOVED).empty_table()
        self._removed = [
            pa.concat_tables([none, *(_rows(path, REMOVED, none.column_names) for path in paths)])
            for paths in files(REMOVED)
        ]

    def tables(
        self, columns: Sequence[str] | None = None, *, among: pa.Array | None = None
    ) -> pa.Table:
        """Read the tables, of `TABLES_SCHEMA`: by folder, and within a folder by table.

        among: only these tables; memory then grows with what is read, and not with the catalog.
        """
        return self._read(TABLES, columns, among)

    def columns(
        self, columns: Sequence[str] | None = None, *, among: pa.Array | None = None
    ) -> pa.Table:
        return self._read(COLUMNS, columns, among)

    def columns_of(self, table: str, columns: Sequence[str]) -> pa.Table:
        """Return what is known of the columns of a table, in their order."""
        names = list(dict.fromkeys((*columns, "position")))
        return self.columns(names, among=pa.array([table], pa.string())).sort_by("position")

    def pieces(
        self, kind: str, columns: Sequence[str], where: pc.Expression | None = None
    ) -> Iterator[Callable[[], pa.Table]]:
        """Yield for each file of `TABLES` or `COLUMNS` a function that reads its rows.

        where: which rows are read, by any field.
        """
        for number, paths in enumerate(self._files(kind)):
            later = self._removed[number + 1 :]
            removed = pa.concat_tables(later)["table"] if later else None
            for path in paths:
                yield partial(_rows, path, kind, columns, removed, where)

    def _read(self, kind: str, columns: Sequence[str] | None, among: pa.Array | None) -> pa.Table:
        names = _SCHEMAS[kind].names if columns is None else columns
        where = None if among is None else pc.field("table").isin(among)
        rows = [read() for read in self.pieces(kind, names, where)]
        return pa.concat_tables([_nullable(kind).empty_table().select(names), *rows])

    def named(self, name: str) -> str:
        """Return the table that a name means.

        The name of a file that may hold several tables stands for its table where it holds one that
        could be read. Any other name is that of a table, whether there is one or not.
        """
        inside = self._inside(name)
        return inside[0] if len(inside) == 1 else name

    def _inside(self, name: str) -> list[str]:
        file_format = format_of(name)
        if file_format is None or not file_format.holds_several:
            return []
        table = pc.field("table")
        begins = (pc.starts_with(table, f"{name}{sign}") for sign in "#/")
        where = reduce(or_, begins, table == name)
        read = [rows() for rows in self.pieces(TABLES, ["table", "reason"], where)]
        reasons = {row["table"]: row["reason"] for rows in read for row in rows.to_pylist()}
        is_table = reasons.get(name, "") is None
        return [] if is_table else [inner for inner, reason in reasons.items() if reason is None]

    def has(self, table: str) -> bool:
        return self.columns(["label"], among=pa.array([table], pa.string())).num_rows > 0

    def known(self, name: str, lake: object) -> str:
        """Return the table that a name means; raise InputError where that has no columns."""
        table = self.named(name)
        if not self.has(table):
            raise InputError(self.why_not(table, lake))
        return table

    def split(self, spec: str) -> tuple[str, str | None]:
        """Split ``TABLE:COLUMN`` behind the name of a table, as names of columns hold colons too.

        Without a table that is here, it is split at the last colon. The second part is a column or
        ``COLUMN,COLUMN``; None for a table alone.
        """
        ends = [at for at, letter in enumerate(spec) if letter == ":"]
        for end in reversed(ends):
            table = self.named(spec[:end])
            if self.has(table):
                return table, spec[end + 1 :]
        if not ends or self.has(spec):
            return spec, None
        return spec[: ends[-1]], spec[ends[-1] + 1 :]

    def why_not(self, table: str, lake: object) -> str:
        """Return in a sentence why a table has no columns here; `lake` is named in it."""
        reasons = self.tables(["reason"], among=pa.array([table]))["reason"].to_pylist()
        if reasons and reasons[0] is not None:
            return f"The table '{table}' is not in the index: {reasons[0].rstrip('.')}."
        if inside := self._inside(table):
            names = listed_names(inside)
            return f"'{table}' holds {len(inside):,} tables; name one of them: {names}."
        return (
            f"The lake has no table '{table}'. Tables are named by their path relative to "
            f"'{lake}', as search prints them."
        )

    def why_unknown(self, table: str, lake: object) -> str:
        """Return what `why_not` says, and the table whose name is most like this one."""
        meant = did_you_mean(self.tables(["table"])["table"].to_pylist(), table)
        return f"{self.why_not(table, lake)} {meant[:1].upper()}{meant[1:]}".rstrip()


def files_in(folders: Iterable[Path]) -> FilesOf:
    folders = [Path(folder) for folder in folders]
    return lambda kind: [
        sorted(path for path in folder.iterdir() if is_part(kind, path.name))
        for folder in folders
        if folder.is_dir()
    ]


def part_name(kind: str, number: int) -> str:
    return f"{kind}-{number:05d}.parquet"


def write_rows(folder: Path, kind: str, rows: pa.Table) -> Path:
    path = Path(folder) / part_name(kind, 0)
    pq.write_table(rows, path)
    return path


def is_part(kind: str, name: str) -> bool:
    return re.fullmatch(rf"{kind}-[0-9]{{5,9}}\.parquet", name, re.ASCII) is not None


def _nullable(kind: str) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in _SCHEMAS[kind]])


def _rows(
    path: Path,
    kind: str,
    columns: Sequence[str],
    removed: pa.ChunkedArray | None = None,
    where: pc.Expression | None = None,
) -> pa.Table:
    """Read rows of a file; what it lacks, since an older pexeso wrote it, is null."""
    names = list(dict.fromkeys((*columns, "table")))
    with damage_made_plain(path):
        rows = pq.read_table(path, columns=names, filters=where, schema=_nullable(kind))
        rows.validate(full=True)  # that texts are UTF-8, Parquet's reader leaves to others
    if removed is not None and len(removed):
        rows = rows.filter(pc.invert(pc.is_in(rows["table"], value_set=removed)))
    return rows.select(columns)


@contextmanager
def damage_made_plain(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        raise IndexCorruptError(
            f"'{path}' is not a catalog that pexeso wrote, or it was changed: {first_line(error)}. "
            "'pexeso check' lists all such files."
        ) from error
