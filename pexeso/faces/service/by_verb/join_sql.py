"""A join with a column of the lake as SQL, for DuckDB and other databases."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import pyarrow as pa

from pexeso.faces.service.bases import QueryRequest
from pexeso.faces.service.requests import require_lake_column, split_lake_column
from pexeso.joins.options import HOW
from pexeso.joins.sql.lake_tables import reader_of_yours
from pexeso.joins.sql.texts import LAKES, YOURS
from pexeso.lake.columns import label_columns
from pexeso.lake.containers.reader import read_table

if TYPE_CHECKING:
    from pexeso.composite.lake.query import KeyTable
    from pexeso.faces.service.verbs import Service
    from pexeso.joins.sql.joins import JoinSql

VALUE = "value"
"""What the query column is called where values were given."""


class JoinSqlRequest(QueryRequest, frozen=True, kw_only=True):
    """Write the join that `JoinRequest` makes as a statement of SQL.

    Attributes
    ----------
    lake_column : str
        ``TABLE:COLUMN``, as results name it; of a composite key ``TABLE:COLUMN,COLUMN``.
    values : {"nearest", "one-to-one", "all"}
        As in `pexeso.joins.options.JoinOptions`.
    how : {"left", "inner"}
        Keep rows without a match, or drop them.
    """

    verb: ClassVar[str] = "join_sql"

    lake_column: str
    values: Literal["nearest", "one-to-one", "all"] = "nearest"
    how: Literal[HOW] = "left"  # type: ignore[valid-type]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.may_be_key:
            require_lake_column(self.lake_column)


def join_sql(service: Service, request: JoinSqlRequest) -> JoinSql:
    """Answer a request for a join as SQL, of tables whose cells are texts."""
    if request.may_be_key and (key := request.read_key()) is not None:
        return _by_key(service, request, key)
    column, index = request.read_column(), service.open_for(request)
    table, label = split_lake_column(index.catalog, request.lake_column)
    explanation = index.explain(column, table, label, **request.options())
    options = {"values": request.values, "how": request.how}
    name = column.column or VALUE
    join = explanation.match.sql_with_pairs(YOURS, name, lake_table=LAKES, **options)
    reader = None
    if column.file is not None:
        read = read_table(column.file, options=column.reading)
        labels = label_columns(read.names)
        texts = pa.Table.from_arrays(read.columns, names=labels)
        at = labels.index(name)
        reader = reader_of_yours(column.file, texts, [at], [name], reading=column.reading)
    return _with_views(join, reader)


def _by_key(service: Service, request: JoinSqlRequest, key: KeyTable) -> JoinSql:
    """Answer for a composite key, whose rows are joined where all its parts are equal."""
    request.require_use(("index", "query", "lake_column", "how"), "A join by a composite key")
    searches = service.searches(request.index).composite
    table, columns = searches.opened.catalog.split(request.lake_column)
    pair = searches.pair(key, None, table)
    join = pair.sql(pair.theirs(columns), how=request.how, names=(YOURS, LAKES))
    positions = [column.position for column in key.key]
    names = [key.names[at] for at in positions]
    texts = pa.Table.from_arrays(list(key.cells), names=label_columns(key.names))
    reader = None
    if key.file is not None:
        reader = reader_of_yours(key.file, texts, positions, names, reading=key.reading)
    return _with_views(join, reader)


def _with_views(join: JoinSql, reader: str | None) -> JoinSql:
    readers = {YOURS: reader, LAKES: join.tables[LAKES]}
    return replace(join, tables={name: _view(name, reader) for name, reader in readers.items()})


def _view(name: str, reader: str | None) -> str | None:
    return None if reader is None else f"CREATE VIEW {name} AS SELECT * FROM {reader};"
