"""Plans of tables to buy or fetch that tell most of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pexeso.errors import InputError
from pexeso.faces.app.links import fields_of_query
from pexeso.faces.app.page import Page, Pages
from pexeso.faces.app.pages.query_columns import lake_table, only
from pexeso.faces.service.by_verb.acquisition import AcquireRequest
from pexeso.faces.service.by_verb.lake import split_lake_spec
from pexeso.lake.rows import table_to_read
from pexeso.results.pages.acquisition import acquisition_shown

if TYPE_CHECKING:
    from starlette.requests import Request

OPTIONS = ("budget", "min_quality", "max_fan_out", "k")
FIELDS = ("have", "want", "budget", "prices")
PRICES = ("free", "entropy")
"""Files of prices are for the command line: no path of a form is read."""

MAX_SECONDS = 60.0
"""A page does not wait as long as a command may."""


def acquire(pages: Pages, request: Request) -> Page:
    """Return the page: a form, and plans where it was sent."""
    parameters = dict(request.query_params)
    report = None
    if parameters.get("have") or parameters.get("want") or parameters.get("table"):
        acquire_request = _read(pages, parameters)
        report = pages.served.run(acquire_request).to_dict()
    elif request.url.path.endswith(".json"):
        raise InputError("Give have, want, or both: there is nothing to look for.")
    shown = {
        "given": {name: parameters.get(name, "") for name in FIELDS},
        "prices": PRICES,
        "own": _own(pages, parameters),
        "report": report,
        **({} if report is None else acquisition_shown(report)),
    }
    return Page("acquire.html", shown, lambda: report)


def _read(pages: Pages, parameters: dict[str, str]) -> AcquireRequest:
    fields = fields_of_query(AcquireRequest, only(parameters, OPTIONS))
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


def _own(pages: Pages, parameters: dict[str, str]) -> Any:
    return pages.tables[parameters["table"]] if parameters.get("table") else None
