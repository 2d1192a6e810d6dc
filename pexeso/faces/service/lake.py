"""Requests about what a lake holds, and query columns that are taken from it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import ColumnNotFoundError, QueryError
from pexeso.faces.service.bases import Answer, IndexRequest, QueryRequest, Request, RequestError
from pexeso.faces.service.schema import option
from pexeso.lake.columns import by_positions
from pexeso.store.opening import VISIBLE

if TYPE_CHECKING:
    from pexeso.faces.service.verbs import Service
    from pexeso.lake.catalog import Catalog
    from pexeso.lake.readers.options import ReadingOptions


DEFAULT_PAGE = 50

# Largest number of an entry.
MAX_NUMBER = 10**9


class BrowseRequest(IndexRequest, frozen=True, kw_only=True):
    """List what is in a lake: its tables, its columns, or what was left out.

    The list is ordered by names, or, of what was left out, by reason; `offset` and `limit` choose a
    part of it.
    """

    verb: ClassVar[str] = "browse"

    what: Annotated[
        Literal["tables", "columns", "left_out"],
        option("List tables, columns with their counts, or what no search finds."),
    ] = "tables"
    text: Annotated[
        str,
        option(
            "Only those with this text in the name of their table or column.",
            label="Tables whose names contain",
            lake_names="table",
        ),
    ] = ""
    table: Annotated[str | None, option("Only those of this table.")] = None
    offset: Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)] = DEFAULT_PAGE


@dataclass(frozen=True)
class Listing:
    what: str
    total: int
    offset: int
    items: list[Answer] = field(default_factory=list)

    def to_dict(self) -> Answer:
        return dict(vars(self))


def browse(service: Service, request: BrowseRequest) -> Listing:
    index = service.open(request.index)
    catalog = index.catalog
    if request.what == "left_out":
        return _left_out(catalog, request)
    if request.table is not None:
        request = msgspec.structs.replace(
            request, table=index.catalog.known(request.table, index.lake)
        )
    if request.what == "columns":
        return _columns(catalog, request)
    return _tables(catalog, request)


def with_file(service: Service, request: Request) -> Request:
    """Return a request whose query is read from a file, where it names a column of the lake."""
    if not isinstance(request, QueryRequest):
        return request
    if not request.from_lake:
        return _with_rights(service, request)
    table, column = split_lake_spec(service.open(request.index).catalog, str(request.query))
    file, reading = lake_file(service, request.index, table)
    # What the request says of reading goes before what the lake's settings say, but for rights.
    reading_options = {**reading.to_dict(), **request.reading.to_dict()}
    reading_options["columns"] = reading.columns
    query = f"{file}{column}"
    return msgspec.structs.replace(request, query=query, from_lake=False, **reading_options)


def _with_rights(service: Service, request: QueryRequest) -> QueryRequest:
    """Return a request whose query is read as a table of the lake, where its file is one."""
    if not isinstance(request.query, str) or VISIBLE not in os.environ:
        return request
    opened = service.open(request.index)._opened
    reading = opened.reading_of(request.query, request.reading)
    return msgspec.structs.replace(request, columns=reading.columns)


def split_lake_spec(catalog: Catalog, query: str) -> tuple[str, str]:
    """Split ``TABLE:COLUMN``; a column of the table goes by its position, as ``:#3``."""
    table, columns = catalog.split(query)
    if columns is None:
        return table, ""
    labels = catalog.columns_of(table, ["label"])["label"].to_pylist()
    # A name may hold commas and colons, which would separate columns of a key.
    with suppress(ColumnNotFoundError, QueryError):
        columns = by_positions(labels, columns)
    return table, f":{columns}"


def lake_file(service: Service, path: str, table: str) -> tuple[str, ReadingOptions]:
    """Return the file of a table of the lake, and no other file, and how it is read."""
    from pexeso.joins.tables import SPARK_LAKE
    from pexeso.lake.rows import table_to_read

    index = service.open(path)
    table = index.catalog.known(table, index.lake)
    if str(index.lake).startswith(SPARK_LAKE):
        raise RequestError(
            "The index was built from Spark's tables, which are not read here: give the values of "
            "%r, or export the table to a file.",
            table,
        )
    return table_to_read(index.lake, table, index._opened.view)


def _page(request: BrowseRequest, total: int, rows: Iterable[Answer]) -> Listing:
    return Listing(request.what, total, request.offset, list(islice(rows, request.limit)))


def _chosen(catalog: Catalog, request: BrowseRequest, names: list[str]) -> pa.Table:
    """Return the requested columns of the catalog, by table and position."""
    among = None if request.table is None else pa.array([request.table], pa.string())
    columns = catalog.columns(names, among=among)
    if request.text:
        mask = pc.or_(*(_holds(columns[name], request.text) for name in ("table", "label")))
        columns = columns.filter(mask)
    return columns.sort_by([("table", "ascending"), ("position", "ascending")])


def _holds(names: pa.ChunkedArray, text: str) -> pa.ChunkedArray:
    return pc.fill_null(pc.match_substring(names, text, ignore_case=True), False)


def _columns(catalog: Catalog, request: BrowseRequest) -> Listing:
    names = ["table", "label", "position", "kind", "n_rows", "n_missing", "n_distinct", "reason"]
    rows = _chosen(catalog, request, [*names, "column_id"])
    return _page(request, rows.num_rows, map(_column, rows.slice(request.offset).to_pylist()))


def _column(row: dict[str, Any]) -> Answer:
    return {
        "table": row["table"],
        "column": row["label"],
        "position": row["position"],
        "kind": row["kind"],
        "rows": row["n_rows"],
        "distinct": row["n_distinct"],
        "missing": row["n_missing"],
        "searchable": row["reason"] is None,
        "reason": row["reason"],
    }


def _tables(catalog: Catalog, request: BrowseRequest) -> Listing:
    rows = _chosen(catalog, request, ["table", "label", "position", "n_rows", "reason"])
    names = rows["table"].unique()
    page_names = names.slice(request.offset, request.limit)
    # All columns of a table are listed, whichever of them has the text in its name.
    columns = catalog.columns(["table", "label", "position", "n_rows", "reason"], among=page_names)
    tables: dict[str, Answer] = {
        name: {"table": name, "rows": 0, "columns": [], "searchable": []}
        for name in page_names.to_pylist()
    }
    for row in columns.sort_by("position").to_pylist():
        table = tables[row["table"]]
        table["rows"] = max(table["rows"], row["n_rows"] or 0)
        table["columns"].append(row["label"])
        if row["reason"] is None:
            table["searchable"].append(row["label"])
    return _page(request, len(names), tables.values())


def _left_out(catalog: Catalog, request: BrowseRequest) -> Listing:
    from pexeso.build.diagnostics.info import ReasonListing

    def chosen() -> Iterator[Answer]:
        text = request.text.casefold()
        for row in ReasonListing(catalog):
            is_named = text in row.name.casefold()
            if is_named and request.table in (None, row.table):
                yield row.to_dict()

    rows = list(chosen())
    return _page(request, len(rows), rows[request.offset :])
