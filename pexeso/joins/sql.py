"""Joins with a table or a column of the lake as SQL, for DuckDB and other databases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError
from pexeso.joins.composite_join import KeyedTable, find_key_rows
from pexeso.joins.matched_rows import FoundRows
from pexeso.joins.options import free_name, join_options
from pexeso.joins.tables import rows_of_match
from pexeso.lake.columns import find_column, spec_of
from pexeso.lake.containers.formats import split_member
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.lake.rights import LakeView
from pexeso.lake.rows import table_path
from pexeso.results.matches import PAIR_FIELDS, Match
from pexeso.runtime.extras import require
from pexeso.runtime.formatting import Shown, facts_table, is_hidden, many, shown
from pexeso.store.io.location import Location, locate

if TYPE_CHECKING:
    from pexeso.results.matches import Match
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.open_index import OpenIndex


# What the two tables of a join are called where no names are given.
YOURS, LAKES = "your_table", "lake_table"

_OF_TEXT = "read_csv({}, header = true, all_varchar = true)"


def quoted(name: str) -> str:
    if not isinstance(name, str):
        raise InputError(
            f"SQL names a table or column by a text, such as 'your_table'. Got {shown(name)}: to "
            "join a table in memory, give it to join()."
        )
    if any(map(is_hidden, name)):
        raise InputError(
            f"{shown(name)} has characters that are not seen, which SQL cannot name plainly: "
            "rename it, or join without SQL."
        )
    return '"' + name.replace('"', '""') + '"'


def literal(text: str | None) -> str:
    if text is None:
        return "NULL"
    parts: list[str] = []
    for hidden, letters in groupby(text, is_hidden):
        if hidden:
            parts += [f"chr({ord(letter)})" for letter in letters]
        else:
            parts.append("'" + "".join(letters).replace("'", "''") + "'")
    return " || ".join(parts) or "''"


def reader_of(file: str | None) -> str | None:
    """Return what reads a file in DuckDB, or None where its name does not show that it can."""
    if file is None or any(letter in file for letter in "*?["):  # patterns, to DuckDB
        return None
    if file.lower().endswith(".parquet"):
        return f"read_parquet({literal(file)})"
    return _OF_TEXT.format(literal(file)) if file.lower().endswith((".csv", ".tsv")) else None


def has_duckdb() -> bool:
    return find_spec("duckdb") is not None


def require_duckdb() -> None:
    require("duckdb", "A join as SQL", instead="join by Match.join")


@dataclass(frozen=True)
class LakeTable:
    """A table of the lake as DuckDB has it.

    `reader` reads its file there; None where its rows or columns would be others. `keys` are the
    names there of the columns that are joined, `texts` their cells as DuckDB writes them, row by
    row.
    """

    name: str
    reader: str | None
    keys: tuple[str, ...]
    texts: list[tuple[str | None, ...]]
    _rows: Rows

    @classmethod
    def of(cls, opened: OpenIndex, match_rows: FoundRows) -> LakeTable:
        position = find_column(match_rows.rows.column_names, match_rows.column)
        rows = Rows(match_rows.rows, match_rows.typed)
        return cls.of_rows(opened.lake, match_rows.table, rows, [position], opened.view)

    @classmethod
    def of_rows(
        cls,
        lake: Path | Location,
        table: str,
        rows: Rows,
        positions: Sequence[int],
        view: LakeView,
    ) -> LakeTable:
        """Return a table whose rows were read, to be joined by some of its columns.

        Where duckdb is not installed, `reader` follows from the file's name alone.
        """
        file, member = table_path(lake, table)
        is_readable = isinstance(file, Path) and member is None and view.sees_whole(table)
        reader = reader_of(str(file)) if is_readable else None
        if not has_duckdb():
            names = tuple(rows.texts.column_names[at] for at in positions)
            keys = [rows.texts.column(at).to_pylist() for at in positions]
            return cls(table, reader, names, list(zip(*keys, strict=True)), rows)
        read = None if reader is None else _read(reader, positions, rows)
        if read is not None:
            return cls(table, reader, *read, rows)
        held = rows.in_memory
        duckdb_names = names_in_duckdb(held.column_names)
        names = tuple(duckdb_names[at] for at in positions)
        return cls(table, None, names, duckdb_texts(held.select(list(positions))), rows)

    @cached_property
    def in_memory(self) -> pa.Table:
        """The table as `pexeso.Match.join` takes it: with the types of its file."""
        return self._rows.in_memory


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table: all cells text, and with the types of their file where it has any."""

    texts: pa.Table
    typed: Sequence[pa.ChunkedArray] | None

    @property
    def in_memory(self) -> pa.Table:
        columns = self.texts.columns if self.typed is None else self.typed
        return pa.Table.from_arrays(list(columns), names=self.texts.column_names)


def reader_of_yours(
    file: str,
    texts: pa.Table,
    positions: Sequence[int],
    names: Sequence[str],
    *,
    reading: ReadingOptions = AS_FOUND,
) -> str | None:
    """Return what reads a file of the user's in DuckDB; None where its rows would be others.

    Where duckdb is not installed it follows from the names of the file and its columns alone.
    """
    path, member = split_member(locate(file))
    reader = reader_of(file) if isinstance(path, Path) and member is None else None
    if reader is None or reading != AS_FOUND:
        return None
    if not has_duckdb():
        return reader if [texts.column_names[at] for at in positions] == list(names) else None
    is_typed = file.lower().endswith(".parquet")
    read = _read(reader, positions, Rows(texts, texts.columns if is_typed else None))
    cells = [texts.column(at).to_pylist() for at in positions]
    return reader if read == (tuple(names), list(zip(*cells, strict=True))) else None


def duckdb_texts(table: pa.Table) -> list[tuple[str | None, ...]]:
    import duckdb

    named = table.rename_columns([f"key{at}" for at in range(table.num_columns)])
    with duckdb.connect() as connection:
        connection.register(LAKES, named)
        return connection.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {LAKES}").fetchall()


def names_in_duckdb(names: Sequence[str]) -> list[str]:
    """Return the names of the columns of a table in DuckDB, to which `Town` and `town` are one.

    Without duckdb they are unchanged.
    """
    if not has_duckdb():
        return list(names)
    import duckdb

    with duckdb.connect() as connection:
        connection.register(LAKES, pa.table([pa.nulls(0)] * len(names), names=list(names)))
        return connection.table(LAKES).columns


def _read(
    reader: str, positions: Sequence[int], rows: Rows
) -> tuple[tuple[str, ...], list[tuple[str | None, ...]]] | None:
    """Return the keys' names and texts by a reader of DuckDB; None where its rows are others."""
    import duckdb

    expected = rows.texts
    if any("duration[" in str(column.type) for column in rows.typed or ()):
        return None  # Parquet keeps spans of time as numbers, and what they are where Arrow looks
    try:
        with duckdb.connect() as connection:
            names = [field[0] for field in connection.execute(f"FROM {reader} LIMIT 0").description]
            if len(names) != expected.num_columns:
                return None
            cast = connection.sql(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {reader}")
            texts: Any = cast.to_arrow_table()
    except duckdb.Error:
        return None
    if texts.num_rows != expected.num_rows:
        return None
    checked = range(expected.num_columns) if rows.typed is None else ()
    if any(texts.column(at).to_pylist() != expected.column(at).to_pylist() for at in checked):
        return None
    keys = [texts.column(at).to_pylist() for at in positions]
    return tuple(names[at] for at in positions), list(zip(*keys, strict=True))


COLUMNS, PAIRS = "pexeso_found", "pexeso_pairs"

_NAMES = {"table": pa.string(), "column": pa.string()}
_OF_PAIRS = {name: pa.float64() if name == "distance" else pa.string() for name in PAIR_FIELDS}
_PAIRS = pa.schema({**_NAMES, **_OF_PAIRS})
_COLUMN_SCHEMA = pa.schema(
    {**_NAMES, "joinability": pa.float64(), "matched": pa.int64(), "total": pa.int64()}
)


def register_found(connection: Any, result: Match | Iterable[Match]) -> tuple[str, ...]:
    """Register what a search found in a connection of DuckDB, for statements of `Match.sql`.

    Nothing is written to its database: all are temporary, and replace what is
    temporary and has the same names.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    result : SearchResult, Match or iterable of Match

    Returns
    -------
    tuple of str
        The names registered: the tables of the lake, named by their paths, as views of their
        files where DuckDB's own readers give the rows that joins take, else from memory, and
        with a number behind a path that differs from another's in case alone; then
        ``pexeso_found``, a row a column found, and ``pexeso_pairs``, a row a pair of values.

    Raises
    ------
    MissingPackageError
        Duckdb is not installed.
    InputError
        `connection` is none, something else than columns found by similar values is given, the
        index was built from Spark's tables, or the names of two tables in memory differ in case
        alone.
    TableReadError, PlaceError
        A table cannot be read.

    Examples
    --------
    >>> connection = duckdb.connect()  # doctest: +SKIP
    >>> index.duckdb(connection, found)  # doctest: +SKIP
    ('cities.csv', 'pexeso_found', 'pexeso_pairs')
    """
    require_duckdb()
    if not all(hasattr(connection, name) for name in ("execute", "register")):
        raise InputError(
            "connection must be one of DuckDB, such as duckdb.connect() gives. Got "
            f"{shown(connection)} instead."
        )
    several = list(result) if isinstance(result, Iterable) else [result]
    matches = [result] if isinstance(result, Match) else several
    if not all(isinstance(match, Match) for match in matches):
        raise InputError(
            "What is registered are columns found by similar values: a SearchResult, a Match, or "
            f"a list of them. Got {type(result).__name__} instead."
        )
    tables: dict[str, LakeTable] = {}
    for match in matches:
        if match.table not in tables:
            tables[match.table] = match._details.lake_table(match)
    names = _names_of(tables)
    for table, name in zip(tables.values(), names, strict=True):
        if table.reader is None:
            connection.register(name, table.in_memory)
        else:
            view = '"' + name.replace('"', '""') + '"'
            connection.execute(
                f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT * FROM {table.reader}"
            )
    rows = [{name: getattr(match, name) for name in _COLUMN_SCHEMA.names} for match in matches]
    connection.register(COLUMNS, pa.Table.from_pylist(rows, _COLUMN_SCHEMA))
    pairs = [_pairs_of(match) for match in matches]
    connection.register(PAIRS, pa.concat_tables([_PAIRS.empty_table(), *pairs]))
    return (*names, COLUMNS, PAIRS)


def _names_of(tables: dict[str, LakeTable]) -> list[str]:
    """Return what each table is registered as: another name for one that DuckDB would replace."""
    used_names: dict[bytes, str] = {}
    for name in (name for name, table in tables.items() if table.reader is None):
        if (other := used_names.setdefault(_key(name), name)) != name:
            raise InputError(
                f"'{other}' and '{name}' are one name to DuckDB, which does not tell A from a: "
                "register what was found in them in two connections."
            )
    names = []
    for name, table in tables.items():
        free = name
        if table.reader is not None:  # statements read its file, whatever the view is called
            free = free_name(name, lambda new: _key(new) in used_names, " ({})")
            used_names[_key(free)] = name
        names.append(free)
    return names


def _key(name: str) -> bytes:
    return name.encode().lower()


def _pairs_of(match: Match) -> pa.Table:
    pairs = match.to_arrow()
    names = [pa.array([name] * len(pairs), pa.string()) for name in (match.table, match.column)]
    return pa.Table.from_arrays([*names, *pairs.columns], schema=_PAIRS)


@dataclass(frozen=True, repr=False)
class JoinSql(Shown):
    """A join as SQL.

    Attributes
    ----------
    sql : str
        One statement over the two tables of `tables`.
    tables : dict
        For each of the two what reads it in DuckDB, or None where it is read by other means.
    query_column, lake_column : str
        The columns that are joined; of a key of several columns as a command names them.
    pairs : list of (str, str or None)
        Values that are joined though their texts differ, and those that are not joined (None)
        though the lake has an equal text; all others are joined by equal values. Of keys each is a
        tuple of texts.
    """

    sql: str
    tables: dict[str, str | None]
    query_column: str
    lake_column: str
    pairs: list[tuple[Any, Any]] = field(repr=False)

    def _summary(self) -> str:
        return f"{many(len(self.pairs), 'pair')} of texts that differ"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        names = {"your column": self.query_column, "column of the lake": self.lake_column}
        return facts_table({**names, "SQL": self.sql})

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "pairs": [list(pair) for pair in self.pairs]}


def sql_of_match(
    opened: OpenIndex,
    query: EncodedQuery,
    match: Match,
    on: str,
    options: Mapping[str, Any],
    names: tuple[str, str | None],
) -> JoinSql:
    requested = join_options({**options, "provenance": ()})
    yours, named = names
    if named is None:
        require_duckdb()
    match_rows = rows_of_match(opened, query, match, requested)
    lake_table = LakeTable.of(opened, match_rows)
    source = source_of(lake_table, named)
    searched = query.column.values.drop_null().to_pylist()
    keys = _pairs((((text,), text) for text in searched), match_rows, lake_table)
    pairs = [(text, their) for (text,), (their,) in keys]
    [key] = lake_table.keys
    sql = statement(keys, (quoted(yours), [on]), (source, [key]), requested.how)
    return JoinSql(sql, {YOURS: None, LAKES: lake_table.reader}, on, key, pairs)


def source_of(table: LakeTable, named: str | None) -> str:
    if named is not None:
        return quoted(named)
    # Of a catalog named, since DuckDB would look for a file of that name in the working folder.
    return table.reader or f"temp.main.{quoted(table.name)}"


# The texts of a key, one for each column.
Key = tuple[str, ...]


def statement(
    pairs: Sequence[tuple[Key, tuple[str | None, ...]]],
    ours: tuple[str, Sequence[str]],
    theirs: tuple[str, Sequence[str]],
    how: str,
) -> str:
    """Write a join of two tables whose texts are equal, but for those that pairs list.

    Parameters
    ----------
    pairs : sequence of pairs of tuples
        The texts of your key, and those that it is joined with; None where with none.

    Examples
    --------
    >>> print(statement([], ("mine", ["city", "year"]), ("lakes", ["town", "held"]), "inner"))
    SELECT y.*, l.*
    FROM mine AS y
    JOIN lakes AS l ON CAST(l."town" AS VARCHAR) = CAST(y."city" AS VARCHAR) AND CAST(l."held" AS VARCHAR) = CAST(y."year" AS VARCHAR);
    """  # noqa: E501  what is printed is one line
    (yours, on), (lakes, keys) = ours, theirs
    own = [f"CAST(y.{quoted(name)} AS VARCHAR)" for name in on]
    their = [f"CAST(l.{quoted(name)} AS VARCHAR)" for name in keys]
    join = "JOIN" if how == "inner" else "LEFT JOIN"
    if not pairs:
        return f"SELECT y.*, l.*\nFROM {yours} AS y\n{join} {lakes} AS l ON {_equal(their, own)};"
    ends = [""] if len(on) == 1 else [f"_{at}" for at in range(1, len(on) + 1)]
    value_names, partners = (
        [f"{name}{end}" for end in ends] for name in ("query_value", "lake_value")
    )
    rows = ",\n    ".join(f"({', '.join(map(literal, [*one, *other]))})" for one, other in pairs)
    joined = [
        f"CASE WHEN p.{value_names[0]} IS NULL THEN {text} ELSE p.{partner} END"
        for text, partner in zip(own, partners, strict=True)
    ]
    pairs_name = "pairs"
    while pairs_name in f"{yours} {lakes}".lower():  # it would hide a table of that name
        pairs_name += "_"
    return (
        f"WITH {pairs_name}({', '.join([*value_names, *partners])}) AS (VALUES\n    {rows}\n)\n"
        f"SELECT y.*, l.*\nFROM {yours} AS y\n"
        f"LEFT JOIN {pairs_name} AS p ON {_equal([f'p.{name}' for name in value_names], own)}\n"
        f"{join} {lakes} AS l ON {_equal(their, joined)};"
    )


def _equal(ones: Sequence[str], others: Sequence[str]) -> str:
    return " AND ".join(f"{one} = {other}" for one, other in zip(ones, others, strict=True))


def sql_of_key(
    yours: tuple[KeyedTable, pa.Table],
    theirs: tuple[KeyedTable, str, Rows],
    lake: Path | Location,
    view: LakeView,
    *,
    how: str = "left",
    names: tuple[str, str | None] = (YOURS, None),
) -> JoinSql:
    """Write the join of your table with one of the lake, by a key, as a statement.

    Rows meet whose keys are equal in the form that `pexeso.lake.tokens` has. Keys whose texts
    differ are listed in the statement.
    """
    (own_key, cells), (their, table, rows) = yours, theirs
    requested = join_options({"how": how, "provenance": ()})
    own_name, named = names
    if named is None:
        require_duckdb()
    lake_table = LakeTable.of_rows(lake, table, rows, their.positions, view)
    texts: Iterable[tuple[str | None, ...]]
    if has_duckdb():
        texts = duckdb_texts(cells)
    else:
        texts = zip(*(column.to_pylist() for column in own_key.cells), strict=True)
    found_rows = find_key_rows(own_key, rows.texts, table, their, requested)
    pairs = _pairs(zip(texts, own_key.texts.to_pylist(), strict=True), found_rows, lake_table)
    on, keys = cells.column_names, lake_table.keys
    sql = statement(
        pairs, (quoted(own_name), on), (source_of(lake_table, named), keys), requested.how
    )
    readers = {YOURS: None, LAKES: lake_table.reader}
    return JoinSql(sql, readers, spec_of(on), spec_of(keys), pairs)


def _pairs(
    rows: Iterable[tuple[tuple[str | None, ...], str | None]],
    found_rows: FoundRows,
    table: LakeTable,
) -> list[tuple[Key, tuple[str | None, ...]]]:
    """Return what equal texts alone would not join, or would join though it is not joined.

    `rows` are the texts of keys in your table as DuckDB has them, and those of the mapping.
    """
    lake_texts = set(table.texts)
    position_of = {text: at for at, text in enumerate(found_rows.mapping.texts.to_pylist())}
    starts = np.searchsorted(found_rows.text, np.arange(len(position_of) + 1))
    pairs: list[tuple[Key, tuple[str | None, ...]]] = []
    for texts, key in dict(rows).items():
        joined: list[int] = []
        if key in position_of:
            first, last = starts[position_of[key] : position_of[key] + 2]
            joined = found_rows.row[first:last].tolist()
        partners = list(dict.fromkeys(_whole(table.texts[row], table.name) for row in joined))
        if partners and partners != [texts]:
            pairs += [(_whole(texts, "your table"), partner) for partner in partners]
        elif not partners and None not in texts and texts in lake_texts:
            pairs.append((_whole(texts, "your table"), (None,) * len(texts)))
    return pairs


def _whole(texts: tuple[str | None, ...], where: str) -> Key:
    if None in texts:
        raise InputError(
            f"DuckDB reads a cell of a key in {where!r} as NULL, where pexeso has a value, so that "
            "SQL would not make the same rows: join by 'pexeso join' or CompositeMatch.join."
        )
    return texts  # type: ignore[return-value]
