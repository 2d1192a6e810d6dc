"""The first page, and the lake: its tables, what was left out, and tables to buy or let go."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from starlette.requests import Request

from pexeso.build.diagnostics.info import list_reasons
from pexeso.errors import InputError, PexesoError
from pexeso.faces.app.jobs import report_stage
from pexeso.faces.app.page import (
    ON,
    Form,
    Page,
    Pages,
    TableFields,
    controls,
    has_part,
    lake_table,
    only,
    query_fields,
    url,
)
from pexeso.faces.app.tables import first_values
from pexeso.faces.service.acquisition import AcquireRequest
from pexeso.faces.service.lake import BrowseRequest, split_lake_spec
from pexeso.faces.service.redundancy import RedundancyRequest
from pexeso.lake.rows import read_rows, table_to_read
from pexeso.results.pages.acquisition import acquisition_shown
from pexeso.results.pages.redundancy import redundancy_shown


def home(pages: Pages, request: Request) -> Page:
    info = pages.served.index.info()
    form = Form("/tables", "Choose a column", controls(TableFields, {"file": "", "text": ""}))
    shown = {"info": info, "max_bytes": pages.tables.max_bytes, "form": form}
    return Page("home.html", shown, info.to_dict)


TABLES_A_PAGE = 100
ROWS_SHOWN = 20
NAMES_SHOWN = 50
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
        "reconcile": pages.reconcile_path and f"{request.base_url}{pages.reconcile_path[1:]}",
        "form": Form("/lake", "Show", controls(BrowseRequest, {"text": text})),
        **_neighbours("/lake", {"text": text or None}, number, listed.num_rows),
    }
    return Page("lake.html", shown, lambda: document)


def table(pages: Pages, request: Request) -> Page:
    """Return the page of one table: its columns, and its first rows where its file exists."""
    index = pages.served.index
    facts = lake_table(pages, request.query_params.get("name", ""))
    name = facts["table"]
    fields = ["position", "label", "kind", "n_rows", "n_missing", "n_distinct", "reason"]
    columns = index.catalog.columns_of(name, fields).to_pylist()
    rows, missing = _rows(pages, name)
    if rows is not None:
        rows = rows.slice(0, ROWS_SHOWN).select(range(min(rows.num_columns, COLUMNS_SHOWN)))
    shown = {"name": name, "facts": facts, "columns": columns, "rows": rows, "missing": missing}
    document = {**facts, "columns": columns}
    return Page("table.html", shown, lambda: document)


def offered_names(pages: Pages, request: Request) -> Page:
    """Return the names of tables, or of columns as TABLE:COLUMN, that have a text in them."""
    parameters = dict(request.query_params)
    kind = parameters.pop("of", "table")
    if kind not in ("table", "column"):
        raise InputError(f"of must be table or column. Got {kind[:20]!r} instead.")
    text = next(iter(parameters.values()), "").strip()
    catalog = pages.served.index.catalog
    if kind == "column":
        columns = catalog.columns(["table", "label"])
        names = pc.binary_join_element_wise(columns["table"], columns["label"], ":")
    else:
        tables = catalog.tables(["table", "reason"])
        names = tables.filter(pc.is_null(tables["reason"]))["table"]
    names = names.filter(pc.match_substring(names, text, ignore_case=True))
    listed = names.take(pc.select_k_unstable(names, NAMES_SHOWN, [("", "ascending")]))
    document = {"total": len(names), "names": listed.to_pylist()}
    return Page("names.html", document, lambda: document)


# Larger tables have no samples on cards, since their files are read whole.
SAMPLED_BYTES = 8 << 20
SAMPLES, BROUGHT = 3, 6


def samples(pages: Pages, request: Request) -> Page:
    """Return the part of a card that says what a table brings, with values of its first rows."""
    name = lake_table(pages, request.query_params.get("name", ""))["table"]
    own = request.query_params.getlist("column")
    labels = pages.served.index._opened.labels_of(name)
    brought = [label for label in labels if label not in own]
    rows, missing = _rows(pages, name, max_bytes=SAMPLED_BYTES)
    columns = [] if rows is None else {*brought[:BROUGHT]} & {*rows.column_names}
    values = {label: first_values(rows[label], SAMPLES) for label in columns}
    document = {"table": name, "columns": brought, "samples": values}
    shown = {"brought": brought, "n_brought": BROUGHT, "samples": values, "missing": missing}
    return Page("brings.html", {**shown, "load": None}, lambda: document)


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


def _rows(pages: Pages, name: str, **limits: int) -> tuple[pa.Table | None, str | None]:
    try:
        index = pages.served.index
        return read_rows(index.lake, name, view=index._opened.view, **limits), None
    except (PexesoError, OSError) as error:
        return None, str(error)


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


ACQUIRE_OPTIONS = ("budget", "min_quality", "max_fan_out", "k")
FIELDS = ("have", "want", "budget", "prices")
# Files of prices are for the command line: no path of a form is read.
PRICES = ("free", "entropy")

# A page does not wait as long as a command may.
MAX_SECONDS = 60.0


def acquire(pages: Pages, request: Request) -> Page:
    parameters = dict(request.query_params)
    report = None
    if parameters.get("have") or parameters.get("want") or parameters.get("table"):
        acquire_request = _read(pages, parameters)
        report = pages.served.run(acquire_request).to_dict()
    elif request.url.path.endswith(".json"):
        raise InputError("Give have, want, or both: there is nothing to look for.")
    own = pages.tables[parameters["table"]] if parameters.get("table") else None
    values = {name: parameters.get(name, "") for name in FIELDS}
    fields = controls(AcquireRequest, values, prices=("", *PRICES))
    if own is not None:
        fields[0] = replace(fields[0], placeholder="column")
    hidden = {} if own is None else {"table": own.id}
    shown = {
        "form": Form("/acquire", "Find plans", fields, hidden),
        "own": own,
        "report": report,
        **({} if report is None else acquisition_shown(report)),
    }
    return Page("acquire.html", shown, lambda: report)


def _read(pages: Pages, parameters: dict[str, str]) -> AcquireRequest:
    fields = query_fields(AcquireRequest, only(parameters, ACQUIRE_OPTIONS))
    want = tuple(line.strip() for line in parameters.get("want", "").splitlines() if line.strip())
    prices = parameters.get("prices") or None
    if prices not in (None, *PRICES):
        raise InputError(f"prices must be one of {', '.join(PRICES)}, or left out.")
    return AcquireRequest.of(
        index=pages.served.path,
        **_have(pages, parameters),
        want=want,
        prices=prices,
        max_seconds=MAX_SECONDS,
        **fields,
    )


def _have(pages: Pages, parameters: dict[str, str]) -> dict[str, Any]:
    """Return the fields of what is to be explained and how it is read: of a table, and no path."""
    if parameters.get("table"):
        table = pages.tables[parameters["table"]]
        return {"have": f"{table.spec}:{parameters.get('have') or '#0'}", **table.reading.to_dict()}
    have = parameters.get("have", "").strip()
    if not have:
        return {}
    name, columns = split_lake_spec(pages.served.index.catalog, have)
    if not columns:
        raise InputError("Name the columns that are to be explained, as TABLE:COLUMN of the lake.")
    # The file of that name where the server was started is none of the lake.
    index = pages.served.index
    file, reading = table_to_read(index.lake, lake_table(pages, name)["table"], index._opened.view)
    return {"have": f"{file}{columns}", **reading.to_dict()}


def redundancy(pages: Pages, request: Request) -> Page:
    """Return the page, with an answer where its button was pressed: all tables are compared."""
    parameters = dict(request.query_params)
    fields = query_fields(RedundancyRequest, only(parameters, ("min_containment", "semantics")))
    redundancy_request = RedundancyRequest.of(lake=pages.served.path, **fields)
    report = None
    if parameters.get("run") == ON or request.url.path.endswith(".json"):
        report = pages.served.run(redundancy_request, progress=report_stage).to_dict()

    values = {
        "min_containment": f"{redundancy_request.min_containment:g}",
        "semantics": redundancy_request.semantics,
    }
    fields, lake = controls(RedundancyRequest, values), str(pages.served.index.lake)

    def shown() -> dict[str, Any]:
        return {
            "form": Form("/redundancy", "Compare all tables", fields, {"run": ON}),
            "has_part": has_part(pages, "redundancy"),
            "report": report,
            **({} if report is None else redundancy_shown(report, lake=lake)),
        }

    return Page("redundancy_app.html", shown, lambda: report)
