"""Tables that others contain, and which of them can go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pexeso.faces.app.links import ON, fields_of_query
from pexeso.faces.app.page import Page, Pages
from pexeso.faces.app.pages.query_columns import has_part, only
from pexeso.faces.service.by_verb.redundancy import RedundancyRequest
from pexeso.redundancy import SEMANTICS
from pexeso.results.pages.redundancy import redundancy_shown

if TYPE_CHECKING:
    from starlette.requests import Request

PART = "redundancy"


def redundancy(pages: Pages, request: Request) -> Page:
    """Return the page, with an answer where its button was pressed: all tables are compared."""
    parameters = dict(request.query_params)
    fields = fields_of_query(RedundancyRequest, only(parameters, ("min_containment", "semantics")))
    redundancy_request = RedundancyRequest.of(lake=pages.served.path, **fields)
    report = None
    if parameters.get("run") == ON or request.url.path.endswith(".json"):
        report = pages.served.run(redundancy_request).to_dict()

    def shown() -> dict[str, Any]:
        return {
            "asked": redundancy_request,
            "semantics": SEMANTICS,
            "has_part": has_part(pages, PART),
            "report": report,
            **({} if report is None else redundancy_shown(report, lake=_lake(pages))),
        }

    return Page("redundancy_app.html", shown, lambda: report)


def _lake(pages: Pages) -> str:
    return str(pages.served.index.lake)
