"""The page of a join by learned programs: what joined which rows, step by step.

It is one file that runs and loads nothing; names and cells are texts that the templates escape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pexeso.results.pages.page import MAX_NAME, rendered
from pexeso.runtime.formatting import plain

MAX_CODE = 50_000
"""Characters of SQL or Python above which it is left out."""

NOTEBOOK_PAIRS = 20

_KINDS = (
    ("equal", "exact", "equal"),
    ("program", "alias", "by a program"),
    ("fuzzy", "spelling", "nearly equal"),
    ("none", "none", "not joined"),
)
"""Kinds of a join, the colours that they have on all pages, and what they are called."""

CARDINALITIES = {
    "none": "no key is joined",
    "1:1": "each key has one row in either table",
    "N:1": "keys have several rows in the first table",
    "1:N": "keys have several rows in the second table",
    "N:M": "keys have several rows in the first table and in the second; where one has in both, "
    "rows multiply",
}


def transform_page(report: Mapping[str, Any]) -> str:
    return rendered("transform.html", transform_shown(report))


def transform_shown(report: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "title": f"{_columns(report['source'])} joined with {_columns(report['target'])}",
        "segments": _segments(report["rows"]),
        "n_rows": sum(report["rows"].values()),
        "cardinality_said": CARDINALITIES[report["cardinality"]],
        "code": _code,
        **report,
    }


def transform_table(report: Mapping[str, Any]) -> str:
    shown = {"report": report, "segments": _segments(report["rows"]), "most": NOTEBOOK_PAIRS}
    return rendered("transform_notebook.html", {**shown, "one": _one})


def _segments(rows: Mapping[str, int]) -> list[dict[str, Any]]:
    total = max(1, sum(rows.values()))
    return [
        {"kind": colour, "said": name, "matched": rows[kind], "share": rows[kind] / total}
        for kind, colour, name in _KINDS
    ]


def _columns(side: Mapping[str, Any]) -> str:
    names = ", ".join(side["columns"])
    return plain(f"{names} of {side['file']}" if side["file"] else names, MAX_NAME)


def _code(text: str) -> str | None:
    """Return lines of code with what cannot be seen escaped; None where they are too many."""
    if len(text) > MAX_CODE:
        return None
    return "\n".join(plain(line, MAX_CODE) for line in text.split("\n"))


def _one(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)
