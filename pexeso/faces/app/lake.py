"""The first page, and the lake: its tables, their columns, and what was left out and why."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.diagnostics.info import list_reasons
from pexeso.errors import InputError, PexesoError
from pexeso.faces.app.forms import Form, TableFields, controls
from pexeso.faces.app.links import url
from pexeso.faces.app.page import Page, Pages
from pexeso.faces.app.query_columns import lake_table
from pexeso.faces.service.lake import BrowseRequest
from pexeso.lake.rows import read_rows

if TYPE_CHECKING:
    from starlette.requests import Request


def home(pages: Pages, request: Request) -> Page:
    info = pages.served.index.info()
    form = Form("/tables", "Choose a column", controls(TableFields, {"file": "", "text": ""}))
    shown = {"info": info, "max_bytes": pages.tables.max_bytes, "form": form}
    return Page("home.html", shown, info.to_dict)


TABLES_A_PAGE = 100
ROWS_SHOWN = 20
# Of the first rows of a table; all columns are listed.
COLUMNS_SHOWN = 50


def tables(pages: Pages, request: Request) -> Page:
    catalog = pages.served.index.catalog
    names = ["table", "n_rows", "n_columns", "format", "n_bytes"]
    listed = catalog.tables([*names, "reason"])
    listed = listed.filter(pc.is_null(listed["reason"])).select(names).sort_by("table")
    text = request.query_params.get("text", "")
    if text:
        listed = listed.filter(pc.match_substring(listed["table"], text, ignore_case=True))
    number = _number(request)
    rows = listed.slice((number - 1) * TABLES_A_PAGE, TABLES_A_PAGE).to_pylist()
    document = {"total": listed.num_rows, "page": number, "tables": rows}
    shown = {
        **document,
        "form": Form("/lake", "Show", controls(BrowseRequest, {"text": text})),
        **_neighbours("/lake", {"text": text or None}, number, listed.num_rows),
    }
    return Page("lake.html", shown, lambda: document)


def table(pages: Pages, request: Request) -> Page:
    """Return the page of one table: its columns, and its first rows where its file exists."""
    index = pages.served.index
    facts = lake_table(pages, request.query_params.get("name", ""))
    name = facts["table"]
    among = pa.array([name], pa.string())
    fields = ["position", "label", "kind", "n_rows", "n_missing", "n_distinct", "reason"]
    columns = index.catalog.columns(fields, among=among).sort_by("position").to_pylist()
    rows, missing = _first_rows(pages, name)
    shown = {
        "name": name,
        "facts": facts,
        "columns": columns,
        "rows": rows,
        "missing": missing,
    }
    document = {**facts, "columns": columns}
    return Page("table.html", shown, lambda: document)


def left_out(pages: Pages, request: Request) -> Page:
    listing = list_reasons(pages.served.index.store)
    number = _number(request)
    start = (number - 1) * TABLES_A_PAGE
    rows = list(islice(listing, start, start + TABLES_A_PAGE))
    total = len(listing)
    shown = {
        "rows": rows,
        "total": total,
        "page": number,
        **_neighbours("/lake/left-out", {}, number, total),
    }
    return Page("left_out.html", shown, listing.to_dict)


def _first_rows(pages: Pages, name: str) -> tuple[pa.Table | None, str | None]:
    try:
        rows = read_rows(pages.served.index.lake, name)
    except (PexesoError, OSError) as error:
        return None, str(error)
    return rows.slice(0, ROWS_SHOWN).select(range(min(rows.num_columns, COLUMNS_SHOWN))), None


def _number(request: Request) -> int:
    text = request.query_params.get("page", "1")
    if not (text.isdecimal() and text.isascii() and len(text) < 10 and int(text) >= 1):
        raise InputError(f"page must be a whole number of at least 1. Got {text[:20]!r} instead.")
    return int(text)


def _neighbours(path: str, parameters: dict[str, Any], number: int, total: int) -> dict[str, Any]:
    n_pages = max(1, -(-total // TABLES_A_PAGE))
    before = url(path, {**parameters, "page": number - 1}) if number > 1 else None
    behind = url(path, {**parameters, "page": number + 1}) if number < n_pages else None
    return {"before": before, "behind": behind, "n_pages": n_pages}
