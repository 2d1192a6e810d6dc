"""The page of plans of purchases: what they cost and tell, their joins drawn, and their SQL.

It is one file that runs and loads nothing; names and statements are texts that the templates
escape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pexeso
from pexeso.results.pages.page import MAX_NAME, environment
from pexeso.results.pages.plan_drawing import (
    BOX_WIDTH,
    CHART_HEIGHT,
    CHART_WIDTH,
    PathDrawing,
    path_drawing,
    price_chart,
)
from pexeso.runtime.formatting import plain

MAX_PLANS = 50
"""Plans shown in full; how many more there are is told."""

MAX_STATEMENT = 20_000
"""Longest statement shown, in characters."""

BEST_SEEN = {
    "price": "The least price of a plan that keeps all other bounds",
    "informativeness": "The least sum of weights of a plan that keeps all other bounds",
    "quality": "The highest quality of a plan that keeps all other bounds",
    "tables": "The fewest tables of a plan that keeps all other bounds",
    "fan_out": "The least rows of one key of a plan that keeps all other bounds",
}


def acquisition_page(report: Mapping[str, Any]) -> str:
    """Return the page of plans of purchases.

    Returns
    -------
    str
        One HTML file; at most 50 plans are shown.
    """
    return (
        environment()
        .get_template("acquisition.html")
        .render(acquisition_shown(report), version=pexeso.__version__)
    )


def acquisition_shown(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the template ``acquisition_body.html`` shows of a report, and a title."""
    plans, options = report["plans"][:MAX_PLANS], report["options"]
    priced = options.get("prices") != "free"
    return {
        "title": _title(report["query"]),
        "query": report["query"],
        "options": options,
        "unit": report["unit"],
        "stats": report["stats"],
        "reason": report.get("reason"),
        "best_seen": [
            (BEST_SEEN[name], f"{value:,.6g}")
            for name, value in report.get("best_seen", {}).items()
            if name in BEST_SEEN
        ],
        "cards": [
            {**plan, "number": number, "drawing": path_drawing(plan, priced=priced)}
            for number, plan in enumerate(plans, 1)
        ],
        "n_more": report["n_more"] + len(report["plans"]) - len(plans),
        "chart": price_chart(plans, options.get("budget"), report["unit"]) if priced else None,
        "chart_width": CHART_WIDTH,
        "chart_height": CHART_HEIGHT,
        "box_width": BOX_WIDTH,
        "priced": priced,
        "amount": _amount,
        "statement": lambda text: plain(text, MAX_STATEMENT),
        "described": described,
    }


def acquisition_table(report: Mapping[str, Any]) -> str:
    """Return a small table of plans, for notebooks."""
    template = environment().get_template("acquisition_notebook.html")
    return template.render(report=report, most=20, amount=_amount)


def described(drawing: PathDrawing) -> str:
    """Return what a drawing shows in a sentence, for those who cannot see it."""
    if not drawing.lines:
        return f"One table, {plain(drawing.boxes[0].name, MAX_NAME)}."
    joined = "; ".join(
        f"{plain(box.name, MAX_NAME)} by {plain(line.name, MAX_NAME)}"
        for box, line in zip(drawing.boxes[1:], drawing.lines, strict=True)
    )
    return f"From {plain(drawing.boxes[0].name, MAX_NAME)} are joined: {joined}."


def _title(query: Mapping[str, Any]) -> str:
    have = ", ".join(query["have"])
    if not have:
        return plain(f"Ways to get {', '.join(query['want'])}", MAX_NAME)
    return plain(f"What tells most of {have}", MAX_NAME)


def _amount(number: float) -> str:
    return f"{number:,.6g}"
