"""The page of doubtful pairs, and the verdicts that people give there and beside a match."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import pyarrow as pa
from starlette.responses import RedirectResponse, Response

from pexeso.faces.app.page import ON, Page, Pages
from pexeso.faces.service.judging import JudgeRequest, judged_column, visible_judgements
from pexeso.lake.judgements import FIELDS, UNSURE, Judgement
from pexeso.results.query import QueryColumn

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from pexeso.faces.service.bases import QueryRequest

# Pairs that are shown at a time, judgements that are listed, and values of a match to be judged.
DOUBTS_SHOWN, LISTED, VALUES_SHOWN = 10, 50, 8

# The parameter of a page that follows a verdict, and the field of a form that takes one back.
JUDGED, UNDONE = "judged", "undone"

_PATH = re.compile(r"/(?![/\\])[\x21-\x7e]*")


class Judged(NamedTuple):
    """A pair, with the verdict that holds on it, and the distance of two values."""

    pair: Judgement
    verdict: str | None
    distance: float | None = None


def judge(pages: Pages, request: Request) -> Page:
    response = pages.served.run(JudgeRequest.of(index=pages.served.path, limit=DOUBTS_SHOWN))
    latest = list(response.judgements.latest.values())
    shown = {
        "doubts": response.doubts,
        "judged": [Judged(row, row.verdict) for row in latest[: -LISTED - 1 : -1]],
        "n_judged": len(latest),
        "lines": response.calibration_lines(),
        "here_again": "/judge",
    }
    return Page("judge.html", shown, response.to_dict)


def record(pages: Pages, fields: dict[str, str]) -> Response:
    """Record the verdict of a form, and go back to the page that it was given on."""
    given = {name: fields.get(name, "") for name in FIELDS}
    pages.served.run(JudgeRequest.of(index=pages.served.path, **given))
    back = fields.get("back", "")
    back = back if _PATH.fullmatch(back) else "/judge"
    if UNDONE not in fields:
        back += f"{'&' if '?' in back else '?'}{JUDGED}={ON}"
    return RedirectResponse(back, status_code=303)


class Undo(NamedTuple):
    """The latest judgement, the verdict before it, and the page to go back to."""

    pair: Judgement
    before: str
    back: str


def undo_of(pages: Pages, request: Request) -> Undo | None:
    """Return what takes the latest judgement back, on the page that follows it."""
    if JUDGED not in request.query_params:
        return None
    *earlier, last = (None, *visible_judgements(pages.served.index._opened).rows)
    if last is None:
        return None
    before = next((row.verdict for row in earlier[:0:-1] if row.pair == last.pair), UNSURE)
    kept = [(name, text) for name, text in request.query_params.multi_items() if name != JUDGED]
    back = f"{request.url.path}{'?' if kept else ''}{urlencode(kept)}"
    return None if before == last.verdict else Undo(last, before, back)


def rejected_pair(pages: Pages, result: Any) -> Callable[[Any], Judgement] | None:
    """Return what makes the pair of a query column and one that a search found."""
    query = QueryColumn(pa.array([], pa.string()), result.query["file"], result.query["column"])
    name = pages.served.index._opened.name_of(query)
    return None if name is None else lambda match: Judgement(*name, match.table, match.column)


def verdicts(
    pages: Pages,
    request: QueryRequest,
    lake_table: str,
    lake_column: str,
    values: list[tuple[str, str, float]],
) -> dict[str, Any]:
    """Return what a page of a match shows of judgements: on its columns, and on some values."""
    with pages.served.turn() as service:
        column = judged_column(service, request)
    judgements = visible_judgements(pages.served.index._opened)
    pair = Judgement(*column, lake_table, lake_column)
    distances = {(ours, theirs): distance for ours, theirs, distance in values}
    given = {
        (ours, theirs): None
        for other, ours, theirs, _ in judgements.value_pairs(column)
        if other == pair.lake
    }
    of_values = (Judgement(*column, *pair.lake, *texts) for texts in {**distances, **given})
    return {
        "judged": Judged(pair, judgements.verdict(pair)),
        "judged_values": [
            Judged(row, judgements.verdict(row), distances.get((row.your_value, row.lake_value)))
            for row in of_values
        ],
    }
