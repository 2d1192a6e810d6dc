"""From a table to a ranked list: choose a column, see what is found, move the thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.answers.by_method import METHODS
from pexeso.html.cards import Limits, section_of_result
from pexeso.lake.columns import find_column, label_columns
from pexeso.lake.containers.reader import read_table
from pexeso.lake.sniff import profile_columns
from pexeso.parts.token_sets.open import parts_of
from pexeso.results import SearchResult
from pexeso.search.query import TEXT_KINDS
from pexeso.server.links import command_line, fields_of_query, python_lines, url
from pexeso.server.page import Page, Pages
from pexeso.service.requests import SearchRequest

if TYPE_CHECKING:
    from starlette.requests import Request

    from pexeso.lake.readers.table import Table
    from pexeso.lake.sniff import ColumnProfile
    from pexeso.server.tables import QueryTable

SHOWN_COLUMNS = 200
"""Columns of a table that can be chosen by a click; others are named in the URL."""

SHOWN_VALUES = 6
"""Values of a column that are shown to choose by."""

LIMITS = Limits(columns_found=20, listed=200)

OPTIONS = (
    "method",
    "max_distance",
    "min_joinability",
    "k",
    "exclude_self",
    "auto",
    "min_precision",
    "joinability_of",
)
"""The fields of a search that its page has controls for, or that links to it may have."""

METHOD_NAMES = {
    "semantic": "similar values",
    "overlap": "most equal values",
    "containment": "holds my values",
    "transform": "a learned rule",
    "all": "all evidence",
}


@dataclass(frozen=True)
class Choice:
    """A column that can be searched with."""

    position: int
    label: str
    profile: ColumnProfile
    values: list[str]
    link: str


def columns(pages: Pages, request: Request) -> Page:
    """Return the page of one table's columns."""
    table = pages.tables[request.path_params["table"]]
    read = read_table(table.spec)
    labels = label_columns(read.names)
    profiles = profile_columns(list(read.columns[:SHOWN_COLUMNS]))
    choices = [
        Choice(
            position,
            labels[position],
            profile,
            _first_values(read, position),
            _search_link(table, position),
        )
        for position, profile in enumerate(profiles)
    ]
    texts = [each for each in choices if each.profile.kind in TEXT_KINDS]
    best = max(texts, key=lambda each: (each.profile.n_distinct, -each.position), default=None)
    shown = {
        "table": table,
        "choices": choices,
        "best": best,
        "n_columns": len(labels),
        "n_rows": len(read.columns[0]) if read.columns else 0,
        "notes": read.notes,
    }
    return Page("columns.html", shown, lambda: _columns_document(table, read, choices))


def found(pages: Pages, request: Request) -> Page:
    """Return the page of what is found for one column."""
    table = pages.tables[request.path_params["table"]]
    asked, column, label = read_search(pages, table, dict(request.query_params))
    response = pages.served.run(asked)
    result = response.results[0]

    def shown() -> dict[str, Any]:
        section = (
            section_of_result(result, 1, LIMITS.columns_found, LIMITS)
            if isinstance(result, SearchResult)
            else None
        )
        options = pages.served.index.search_options(
            asked.options() if asked.method in ("semantic", "all") else {}
        )
        return {
            "table": table,
            "column": label,
            "position": column,
            "asked": asked,
            "options": getattr(result, "options", options) if section else options,
            "result": result,
            "section": section,
            "rows": list(zip(result, result.rows(), strict=True)) if section is None else [],
            "hints": result.hints() if not len(result) else None,
            "methods": METHOD_NAMES,
            "missing": {"overlap", "containment"} - {*parts_of(pages.served.index.store)},
            "link": partial(match_link, pages, table, column, asked),
            "command": command_line(asked, table, label, pages.served.path, options=OPTIONS),
            "python": python_lines(
                asked, table, label, pages.served.path, "search", options=OPTIONS
            ),
        }

    return Page("search.html", shown, response.to_dict, fragment="found.html")


def read_search(
    pages: Pages, table: QueryTable, given: dict[str, str]
) -> tuple[SearchRequest, int, str]:
    """Return the request of an URL, the position of its column, and the column's label."""
    names = read_table(table.spec).names
    column = find_column(names, given.get("column", "#0"))
    chosen = {name: text for name, text in given.items() if name in (*OPTIONS, "explain")}
    method = chosen.get("method", "semantic")
    if method in METHODS and method not in ("semantic", "all"):
        # The sliders of one way to search have no meaning in another.
        kept = ("method", "k", "exclude_self", "explain")
        kept += ("min_joinability",) if method != "overlap" else ()
        chosen = {name: text for name, text in chosen.items() if name in kept}
    defaults: dict[str, Any] = {"exclude_self": table.is_of_lake}
    values = defaults | fields_of_query(SearchRequest, chosen)
    asked = SearchRequest(index=pages.served.path, query=f"{table.spec}:#{column}", **values)
    return asked, column, label_columns(names)[column]


def match_link(pages: Pages, table: QueryTable, column: int, asked: Any, match: Any) -> str:
    """Return the path of the page of one column found."""
    kept = {
        name: getattr(asked, name)
        for name in ("max_distance", "joinability_of")
        if getattr(asked, name, None) is not None
    }
    name = match.column
    if ":" in name:  # after the last one stands the column
        among = pa.array([match.table], pa.string())
        columns = pages.served.index.catalog.columns(["label", "position"], among=among)
        labels = columns.sort_by("position")["label"].to_pylist()
        name = f"#{labels.index(name)}"
    target = {"column": f"#{column}", "lake_column": f"{match.table}:{name}"}
    return url(f"/tables/{table.id}/match", {**target, **kept})


def _search_link(table: QueryTable, position: int) -> str:
    return url(f"/tables/{table.id}/search", {"column": f"#{position}"})


def _first_values(read: Table, position: int) -> list[str]:
    values = pc.drop_null(read.columns[position].slice(0, 1000)).unique()
    return values.slice(0, SHOWN_VALUES).to_pylist()


def _columns_document(table: QueryTable, read: Table, choices: list[Choice]) -> dict[str, Any]:
    return {
        "table": table.name,
        "rows": len(read.columns[0]) if read.columns else 0,
        "notes": list(read.notes),
        "columns": [
            {
                "position": each.position,
                "column": each.label,
                "kind": each.profile.kind,
                "distinct": each.profile.n_distinct,
                "missing": each.profile.n_missing,
                "values": each.values,
            }
            for each in choices
        ],
        "n_columns": len(read.names),
    }
