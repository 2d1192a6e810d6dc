"""The catalog: all tables and columns of a lake, as Parquet files.

Tables and columns that are left out are listed with the reason.

A catalog is a list of folders: one of the first build, and one of each update since. A folder holds
the rows that its update added, in files ``tables-00000.parquet`` and ``columns-00000.parquet`` and
so on, and ``removed.parquet``, the names of the tables whose rows in earlier folders no longer
hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from operator import or_
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.errors import IndexCorruptError
from pexeso.lake.columns import did_you_mean, listed_names
from pexeso.lake.containers.formats import format_of
from pexeso.lake.record_schema import SCHEMA
from pexeso.runtime.formatting import first_line

TABLES, COLUMNS, REMOVED, ALIASES = "tables", "columns", "removed", "aliases"

FilesOf = Callable[[str], Sequence[Sequence[Path]]]
"""From a kind of file, such as `TABLES`, to the files of that kind in each folder of a catalog, in
order."""


def _schema(*names: str) -> pa.Schema:
    return pa.schema([SCHEMA.field(name) for name in names])


TABLES_SCHEMA = _schema(
    *("table", "format", "n_bytes", "modified", "version", "encoding", "delimiter"),
    *("n_rows", "n_columns", "fingerprint", "reason", "notes"),
)
"""One row a table, ordered by `table` in each folder.

See `record_schema.SCHEMA`; `reason` says why a file could not be read.
"""

COLUMNS_SCHEMA = pa.schema(
    [
        *_schema(
            "table",
            "position",
            "name",
            "label",
            "kind",
            "n_rows",
            "n_missing",
            "n_distinct",
            "median_tokens",
        ),
        SCHEMA.field("reason"),
        pa.field("column_id", pa.int64()),
    ]
)
"""One row a column, ordered by table, name, position in each folder; `column_id` numbers the kept
ones and is null for the others."""

REMOVED_SCHEMA = _schema("table")


class Catalog:
    """The tables and columns that hold, read from the files of a catalog.

    Parameters
    ----------
    files : callable
        From a kind of file to the files of that kind in each folder; see `FilesOf`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = pa.Table.from_pylist([{"table": "a.csv", "n_rows": 3}], schema=TABLES_SCHEMA)
    >>> pq.write_table(rows, folder / part_name(TABLES, 0))
    >>> Catalog(files_in([folder])).tables(["table", "n_rows"]).to_pylist()
    [{'table': 'a.csv', 'n_rows': 3}]
    """

    def __init__(self, files: FilesOf) -> None:
        self._files = files
        self._removed = [_names(paths) for paths in files(REMOVED)]

    def tables(
        self, columns: Sequence[str] | None = None, *, among: pa.Array | None = None
    ) -> pa.Table:
        """Read the tables, of `TABLES_SCHEMA`.

        Parameters
        ----------
        columns : sequence of str, optional
            The fields to read; all by default.
        among : pa.Array of string, optional
            Only these tables; memory then grows with what is found, and not with the catalog.

        Returns
        -------
        pa.Table
            In the order of the folders, and within a folder by table.
        """
        return self._read(TABLES, TABLES_SCHEMA, columns, among)

    def columns(
        self, columns: Sequence[str] | None = None, *, among: pa.Array | None = None
    ) -> pa.Table:
        """Read the columns, of `COLUMNS_SCHEMA`; arguments as for `tables`."""
        return self._read(COLUMNS, COLUMNS_SCHEMA, columns, among)

    def pieces(
        self, kind: str, columns: Sequence[str], where: pc.Expression | None = None
    ) -> Iterator[Callable[[], pa.Table]]:
        """Yield for each file of the catalog a function that reads its rows.

        Parameters
        ----------
        kind : str
            `TABLES` or `COLUMNS`.
        columns : sequence of str
            The fields to read.
        where : pa.compute.Expression, optional
            Which rows are read, by any field.

        Yields
        ------
        callable
            Returns rows as `tables` and `columns` do, those of one file; in their order.
        """
        schema = {TABLES: TABLES_SCHEMA, COLUMNS: COLUMNS_SCHEMA}[kind]
        row_schema = _nullable(schema, columns)
        for number, paths in enumerate(self._files(kind)):
            removed = self.removed_after(number)
            for path in paths:
                yield partial(_rows, [path], row_schema, removed, where)

    def named(self, name: str) -> str:
        """Return the table that a name means.

        The name of a file that may hold several tables stands for its table where it holds one that
        could be read. Any other name is that of a table, whether there is one or not.
        """
        inside = self._inside(name)
        return inside[0] if len(inside) == 1 else name

    def _inside(self, name: str) -> list[str]:
        """Return the tables inside a file; none where the name is that of a table itself."""
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
        """Return whether a table has columns here."""
        return self.columns(["label"], among=pa.array([table], pa.string())).num_rows > 0

    def split(self, spec: str) -> tuple[str, str | None]:
        """Split ``TABLE:COLUMN`` behind the name of a table, as names of columns hold colons too.

        Returns
        -------
        str
            The table that the name means; without one that is here, all before the last colon.
        str or None
            What stands behind it, a column or ``COLUMN,COLUMN``; None for a table alone.
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
        """Return in a sentence why a table has no columns here.

        Parameters
        ----------
        lake : path
            Where the tables are, as the sentence names it.
        """
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

    def removed_after(self, number: int) -> pa.Array:
        """Return the tables of a folder, by its number, that a later folder removed."""
        later = self._removed[number + 1 :]
        return pa.chunked_array(later, pa.string()).unique() if later else pa.array([], pa.string())

    def _read(
        self, kind: str, schema: pa.Schema, columns: Sequence[str] | None, among: pa.Array | None
    ) -> pa.Table:
        row_schema = _nullable(schema, schema.names if columns is None else columns)
        chosen = None if among is None else pc.field("table").isin(among)
        parts = [
            _rows(paths, row_schema, self.removed_after(number), chosen)
            for number, paths in enumerate(self._files(kind))
        ]
        return pa.concat_tables([row_schema.empty_table(), *parts])


def files_in(folders: Iterable[Path]) -> FilesOf:
    """Find the files of a catalog by looking into its folders."""
    folders = [Path(folder) for folder in folders]
    return lambda kind: [
        sorted(path for path in folder.iterdir() if is_part(kind, path.name))
        for folder in folders
        if folder.is_dir()
    ]


def part_name(kind: str, number: int) -> str:
    """Name a file of a catalog.

    Examples
    --------
    >>> part_name("tables", 12)
    'tables-00012.parquet'
    """
    return f"{kind}-{number:05d}.parquet"


def write_rows(folder: Path, kind: str, rows: pa.Table) -> Path:
    """Write all rows of one kind that a folder of a catalog has, as one file; return its path."""
    path = Path(folder) / part_name(kind, 0)
    pq.write_table(rows, path)
    return path


def is_part(kind: str, name: str) -> bool:
    """Return whether a file is a part of a kind.

    ``tables.parquet``, the name in the first format, is a part too.
    """
    return re.fullmatch(rf"{kind}(-[0-9]{{5,9}})?\.parquet", name, re.ASCII) is not None


def _nullable(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name).with_nullable(True) for name in names])


def _rows(
    paths: Sequence[Path], schema: pa.Schema, removed: pa.Array, chosen: pc.Expression | None
) -> pa.Table:
    if not paths:
        return schema.empty_table()
    parts = [_part(path, schema, chosen) for path in paths]
    rows = pa.concat_tables(parts)
    if len(removed):
        rows = rows.filter(pc.invert(pc.is_in(rows["table"], value_set=removed)))
    return rows.select(schema.names)


def _part(path: Path, schema: pa.Schema, chosen: pc.Expression | None) -> pa.Table:
    """Read one file; fields that an earlier format did not have are null."""
    fields = [*schema, *(SCHEMA.field(name) for name in ("table",) if name not in schema.names)]
    with damage_made_plain(path):
        names = set(pq.read_schema(path).names)
        read = pq.read_table(
            path, columns=[field.name for field in fields if field.name in names], filters=chosen
        )
        arrays = [
            read[field.name].cast(field.type)
            if field.name in names
            else pa.nulls(read.num_rows, field.type)
            for field in fields
        ]
        table = pa.Table.from_arrays(arrays, names=[field.name for field in fields])
        table.validate(full=True)  # that texts are UTF-8, Parquet's reader leaves to others
    return table


@contextmanager
def damage_made_plain(path: Path) -> Iterator[None]:
    """Turn what Parquet's reader says of a damaged file into a sentence."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        raise IndexCorruptError(
            f"'{path}' is not a catalog that pexeso wrote, or it was changed: {first_line(error)}. "
            "'pexeso check' lists all such files."
        ) from error


def _names(paths: Sequence[Path]) -> pa.Array:
    schema = pa.schema([SCHEMA.field("table")])
    tables = [_part(path, schema, None)["table"] for path in paths]
    return pa.chunked_array(
        [chunk for table in tables for chunk in table.chunks], pa.string()
    ).combine_chunks()
