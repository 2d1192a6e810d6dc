"""Pages of plans: tables to buy or fetch, and tables that can go."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pexeso.errors import InputError
from pexeso.faces.app.forms import ON, Form, controls, query_fields
from pexeso.faces.app.page import Page, Pages
from pexeso.faces.app.query_columns import has_part, lake_table, only
from pexeso.faces.service.acquisition import AcquireRequest
from pexeso.faces.service.lake import split_lake_spec
from pexeso.faces.service.redundancy import RedundancyRequest
from pexeso.lake.rows import table_to_read
from pexeso.results.pages.acquisition import acquisition_shown
from pexeso.results.pages.redundancy import redundancy_shown

if TYPE_CHECKING:
    from starlette.requests import Request


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
    """Return the fields of what is to be explained: of a table given, or of the lake, and no path.

    They say how its file is read, too.
    """
    if parameters.get("table"):
        table = pages.tables[parameters["table"]]
        return {
            "have": f"{table.spec}:{parameters.get('have') or '#0'}",
            **table.reading.to_dict(),
        }
    have = parameters.get("have", "").strip()
    if not have:
        return {}
    name, columns = split_lake_spec(pages.served.index.catalog, have)
    if not columns:
        raise InputError("Name the columns that are to be explained, as TABLE:COLUMN of the lake.")
    # The file of that name where the server was started is none of the lake.
    file, reading = table_to_read(pages.served.index.lake, lake_table(pages, name)["table"])
    return {"have": f"{file}{columns}", **reading.to_dict()}


def redundancy(pages: Pages, request: Request) -> Page:
    """Return the page, with an answer where its button was pressed: all tables are compared."""
    parameters = dict(request.query_params)
    fields = query_fields(RedundancyRequest, only(parameters, ("min_containment", "semantics")))
    redundancy_request = RedundancyRequest.of(lake=pages.served.path, **fields)
    report = None
    if parameters.get("run") == ON or request.url.path.endswith(".json"):
        report = pages.served.run(redundancy_request).to_dict()

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
