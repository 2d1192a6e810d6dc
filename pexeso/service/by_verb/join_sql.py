"""A join with a column of the lake as SQL, for DuckDB and other databases."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.join.options import HOW
from pexeso.lake.columns import find_column
from pexeso.lake.rows import read_rows
from pexeso.runtime.formatting import is_hidden
from pexeso.service.bases import DistanceRequest, QueryRequest, RequestError
from pexeso.service.by_verb.lake import lake_file
from pexeso.service.requests import JoinRequest, split_lake_column

if TYPE_CHECKING:
    from pexeso.service.responses import Answer
    from pexeso.service.verbs import Service

YOURS, LAKES = "your_table", "lake_table"

_OF_TEXT = "read_csv({}, header = true, all_varchar = true)"


@dataclass(frozen=True, kw_only=True)
class JoinSqlRequest(QueryRequest, DistanceRequest, verb="join_sql"):
    """Write the join that `JoinRequest` makes as a statement of SQL.

    Attributes
    ----------
    lake_column : str
        ``TABLE:COLUMN``, as results name it.
    values : {"nearest", "one-to-one", "all"}
        As in `pexeso.join.options.JoinOptions`.
    how : {"left", "inner"}
        Keep rows without a match, or drop them.
    """

    lake_column: str
    values: Literal["nearest", "one-to-one", "all"] = "nearest"
    how: Literal[HOW] = "left"  # type: ignore[valid-type]

    def __post_init__(self) -> None:
        super().__post_init__()
        split_lake_column(self.lake_column)
        if self.may_be_key:
            raise RequestError("{query} is one column, where SQL is asked for. Got %r.", self.query)


@dataclass(frozen=True)
class JoinSql:
    """A join as SQL.

    Attributes
    ----------
    sql : str
        One statement over the tables ``your_table`` and ``lake_table``, whose cells are texts.
    tables : dict
        For each of the two the statement of DuckDB that reads it, or None where it is read by
        other means.
    query_column, lake_column : str
        The columns that are joined.
    pairs : list of (str, str or None)
        Values that are joined though their texts differ, and those that are not joined (None)
        though the lake has the same value; all others are joined where they are equal.
    """

    sql: str
    tables: dict[str, str | None]
    query_column: str
    lake_column: str
    pairs: list[tuple[str, str | None]] = field(repr=False)

    def to_dict(self) -> Answer:
        """Return the plain JSON form."""
        return {**vars(self), "pairs": [list(pair) for pair in self.pairs]}


def join_sql(service: Service, request: JoinSqlRequest) -> JoinSql:
    """Answer a request for a join as SQL."""
    asked = {name: value for name, value in vars(request).items() if name != "how"}
    # The values that are joined, as they stand in both tables, whatever makes them alike.
    found = service.run(JoinRequest(**asked, how="inner", provenance=()))
    column, joined = request.read_column(), found.joined.table
    table, label = split_lake_column(request.lake_column)
    index = service.open(request.index)
    rows = index.catalog.columns(["label", "position"], among=pa.array([table], pa.string()))
    labels = rows.sort_by("position")["label"].to_pylist()
    first = joined.num_columns - len(labels)  # of the lake's table
    name = found.query["column"] or joined.column_names[0]
    ours = joined.column(joined.column_names[:first].index(name))
    position = find_column(labels, label)
    most = index.store.manifest.options["max_table_bytes"]
    cells = read_rows(index.lake, table, [f"#{position}"], max_bytes=most)[0]
    pairs = _pairs(ours, joined.column(first + position), column.values, set(_texts(cells)))
    files = {YOURS: column.file, LAKES: _lake_file(service, request, table)}
    return JoinSql(
        _statement(pairs, name, labels[position], request.how),
        {name: _view(name, file) for name, file in files.items()},
        name,
        labels[position],
        pairs,
    )


def _pairs(
    ours: Any, theirs: Any, searched: pa.Array, there: Container[str | None]
) -> list[tuple[str, str | None]]:
    """Return what equal texts alone would not join, or would join though it is not joined."""
    partners: dict[str, dict[str, None]] = {}
    for mine, their in zip(_texts(ours), _texts(theirs), strict=True):
        if mine is not None and their is not None:
            partners.setdefault(mine, {})[their] = None
    told: list[tuple[str, str | None]] = []
    for mine in dict.fromkeys(_texts(searched)):
        if mine is None:
            continue
        found = list(partners.get(mine, ()))
        if found:
            told += [] if found == [mine] else [(mine, their) for their in found]
        elif mine in there:
            told.append((mine, None))
    return told


def _texts(cells: Any) -> list[str | None]:
    return pc.cast(cells, pa.string()).to_pylist()


def _lake_file(service: Service, request: JoinSqlRequest, table: str) -> str | None:
    try:
        return lake_file(service, request.index, table)
    except RequestError:
        return None


def _view(name: str, file: str | None) -> str | None:
    """Return the statement of DuckDB that reads a file, where its name tells that it can."""
    if file is None or not file.lower().endswith((".csv", ".tsv", ".parquet")):
        return None
    reader = "read_parquet({})" if file.lower().endswith(".parquet") else _OF_TEXT
    return f"CREATE VIEW {name} AS SELECT * FROM {reader.format(_literal(file))};"


def _statement(pairs: list[tuple[str, str | None]], ours: str, theirs: str, how: str) -> str:
    mine, their = f"CAST(y.{_quoted(ours)} AS VARCHAR)", f"CAST(l.{_quoted(theirs)} AS VARCHAR)"
    join = "JOIN" if how == "inner" else "LEFT JOIN"
    if not pairs:
        return f"SELECT y.*, l.*\nFROM {YOURS} AS y\n{join} {LAKES} AS l ON {their} = {mine};"
    rows = ",\n    ".join(f"({_literal(mine)}, {_literal(their)})" for mine, their in pairs)
    partner = f"CASE WHEN p.query_value IS NULL THEN {mine} ELSE p.lake_value END"
    return (
        f"WITH pairs(query_value, lake_value) AS (VALUES\n    {rows}\n)\n"
        f"SELECT y.*, l.*\nFROM {YOURS} AS y\n"
        f"LEFT JOIN pairs AS p ON p.query_value = {mine}\n"
        f"{join} {LAKES} AS l ON {their} = {partner};"
    )


def _quoted(name: str) -> str:
    if any(map(is_hidden, name)):
        raise RequestError(
            "The column %r has characters in its name that are not seen, which SQL cannot name "
            "plainly: rename it, or join without SQL.",
            name,
        )
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str | None) -> str:
    """Write a text for SQL; characters that are not seen by their numbers."""
    if text is None:
        return "NULL"
    parts: list[str] = []
    for hidden, letters in groupby(text, is_hidden):
        if hidden:
            parts += [f"chr({ord(letter)})" for letter in letters]
        else:
            parts.append("'" + "".join(letters).replace("'", "''") + "'")
    return " || ".join(parts) or "''"
