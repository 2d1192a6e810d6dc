"""One column found: why it matches, told by the way that it was found in."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.errors import InputError
from pexeso.faces.app.links import command_line, fields_of_query, reading_words, url
from pexeso.faces.app.page import Page, Pages
from pexeso.faces.app.pages.query_columns import QueryColumns, only, query_columns
from pexeso.faces.service.by_verb.transform import learn_with_lake
from pexeso.faces.service.requests import ExplainRequest, JoinRequest, split_lake_column
from pexeso.lake.columns import find_column
from pexeso.lake.key_columns import spec_of
from pexeso.results.pages.cards import OF_EXPLANATION, section_of_explanation
from pexeso.results.pages.transform import transform_shown
from pexeso.runtime.checks import require_choice
from pexeso.semantic.answers.by_method import METHODS
from pexeso.sets.search.overlap_search import overlap_with
from pexeso.sets.search.query import token_query

if TYPE_CHECKING:
    from starlette.requests import Request

OPTIONS = ("max_distance", "joinability_of")

SHOWN_VALUES = 200
"""Equal values that are listed; all are in the document."""

EQUAL_DISTANCE = 0.001
"""Largest distance of a join by equal values, as vectors may be rounded where they are stored."""

WAYS = {"semantic": "similar values", "overlap": "equal values", "transform": "a learned rule"}
"""What explains a column, by the method in the page's URL; other methods are one of these."""


@dataclass(frozen=True)
class RequestedMatch:
    """A match that a page is asked for."""

    query_columns: QueryColumns
    lake_table: str
    lake_columns: str | None
    given: dict[str, str]

    @property
    def lake_column(self) -> str:
        """``TABLE:COLUMN``, as requests name it."""
        columns = self.lake_columns
        return self.lake_table if columns is None else f"{self.lake_table}:{columns}"

    def link(self, page: str, **parameters: Any) -> str:
        """Return the path of a page about this match."""
        named = {"column": self.query_columns.parameter, "lake_column": self.lake_column}
        return url(f"{self.query_columns.path}/{page}", {**named, **parameters})

    def shown(self, method: str | None) -> dict[str, Any]:
        """Return what all templates about a match show."""
        of_search = {"column": self.query_columns.parameter, "method": method}
        return {
            "table": self.query_columns.table,
            "column": self.query_columns.name,
            "lake_table": self.lake_table,
            "lake_column": self.lake_columns or "",
            "method": method,
            "search": url(
                f"{self.query_columns.path}/search", {**of_search, **only(self.given, OPTIONS)}
            ),
        }


def match(pages: Pages, request: Request) -> Page:
    """Return the page that explains one match."""
    parameters = dict(request.query_params)
    columns, catalog = query_columns(pages, request), pages.served.index.catalog
    named = parameters.get("lake_column", "")
    if columns.is_key:
        return _by_key(pages, RequestedMatch(columns, *catalog.split(named), parameters))
    pair = RequestedMatch(columns, *split_lake_column(catalog, named), parameters)
    indexed = _is_searched(pages, pair)
    method = parameters.get("method") or "semantic"
    require_choice("method", method, METHODS)
    ways = [
        (name, pair.link("match", method=way, **only(parameters, OPTIONS)), way == method)
        for way, name in WAYS.items()
        if _has_way(pages, way, indexed=indexed)
    ]
    if method == "transform":
        return _by_rule(pages, pair, ways)
    if method in ("overlap", "containment"):
        return _by_equal_values(pages, pair, ways, indexed=indexed)
    return _by_similar_values(pages, pair, ways)


def _by_similar_values(pages: Pages, pair: RequestedMatch, ways: list[Any]) -> Page:
    request = ExplainRequest.of(
        index=pages.served.path,
        lake_column=pair.lake_column,
        **pair.query_columns.query,
        **fields_of_query(ExplainRequest, only(pair.given, OPTIONS)),
    )
    explained = pages.served.run(request)

    def shown() -> dict[str, Any]:
        section = section_of_explanation(explained, OF_EXPLANATION)
        # Its path is of a temporary folder, which says nothing to whoever gave it.
        query = {**section.query, "file": pair.query_columns.table.name}
        return {
            **pair.shown(None),
            "section": replace(section, query=query),
            "card": next(section.cards),
            "ways": ways,
            "join": pair.link("join", **_options(request)),
            "command": _command(pages, request, pair),
        }

    return Page("match.html", shown, explained.to_dict)


def _by_equal_values(pages: Pages, pair: RequestedMatch, ways: list[Any], *, indexed: bool) -> Page:
    index = pages.served.index
    request = ExplainRequest.of(
        index=pages.served.path, lake_column=pair.lake_column, **pair.query_columns.query
    )
    column = request.read_column()
    query = token_query(column, index.normaliser)
    named = pair.lake_table, str(pair.lake_columns)
    [equal] = overlap_with(index.shards, query, [named])
    values = [] if equal is None else equal.shared()
    # Columns of numbers are no part of a search by similar values: rules join what is equal first.
    way = {"max_distance": EQUAL_DISTANCE} if indexed else {"method": "transform"}
    shown = {
        **pair.shown("overlap"),
        "equal": equal,
        "total": len(query),
        "values": values[:SHOWN_VALUES],
        "n_values": len(values),
        "ways": ways,
        "join": pair.link("join", **way) if equal else None,
    }

    def document() -> dict[str, Any]:
        fields: dict[str, Any] = {"query": {**column.describe(), "values": len(query)}}
        if equal is None:
            return {**fields, "table": named[0], "column": named[1], "overlap": 0, "shared": []}
        return {**fields, **equal.to_dict(), **equal.explained()}

    return Page("match_equal.html", shown, document)


def _by_rule(pages: Pages, pair: RequestedMatch, ways: list[Any]) -> Page:
    from pexeso.transform.joins.page_report import page_report  # brings numba

    request = JoinRequest.of(
        index=pages.served.path,
        lake_column=pair.lake_column,
        transform=True,
        **pair.query_columns.query,
    )
    with pages.served.turn() as service:
        learned = learn_with_lake(service, request)
    source = f"{_own(pair)}:{pair.query_columns.spec}"
    target = f"{pages.served.path}:{pair.lake_column}"

    def shown() -> dict[str, Any]:
        report = page_report(learned)
        for side, name in (("source", pair.query_columns.table.name), ("target", pair.lake_table)):
            report[side]["file"] = name
        return {
            **transform_shown(report),
            **pair.shown("transform"),
            "ways": ways,
            "join": pair.link("join", method="transform"),
            "command": shlex.join(["pexeso", "transform", source, target, *reading_words(request)]),
        }

    return Page("match_rule.html", shown, learned.to_dict)


def _by_key(pages: Pages, pair: RequestedMatch) -> Page:
    request = ExplainRequest.of(
        index=pages.served.path, lake_column=pair.lake_column, **pair.query_columns.query
    )
    explained = pages.served.run(request)
    exact = replace(pair, lake_table=explained.table, lake_columns=spec_of(explained.columns))
    shown = {
        **exact.shown(None),
        "found": explained,
        "join": exact.link("join"),
        "command": _command(pages, request, pair),
    }
    return Page("match_key.html", shown, explained.to_dict)


def _command(pages: Pages, request: ExplainRequest, pair: RequestedMatch) -> str:
    named = pair.query_columns
    return command_line(
        request, named.table, named.spec, pages.served.path, pair.lake_column, options=OPTIONS
    )


def _own(pair: RequestedMatch) -> str:
    table = pair.query_columns.table
    return table.spec if table.is_of_lake else table.name


def _is_searched(pages: Pages, pair: RequestedMatch) -> bool:
    """Return whether searches by similar values can find the lake's column."""
    table, column = pair.lake_table, str(pair.lake_columns)
    among = pa.array([table], pa.string())
    rows = pages.served.index.catalog.columns(["name", "position", "reason"], among=among)
    rows = rows.sort_by("position")
    if not rows.num_rows:
        raise InputError(pages.served.index.catalog.why_not(table, pages.served.index.lake))
    return not rows["reason"][find_column(rows["name"].to_pylist(), column)].is_valid


def _has_way(pages: Pages, way: str, *, indexed: bool) -> bool:
    if way == "semantic":
        return indexed
    return way != "overlap" or "overlap" in pages.served.index.parts


def _options(request: Any) -> dict[str, Any]:
    return {name: getattr(request, name) for name in OPTIONS}
