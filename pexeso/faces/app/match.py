"""One column found: why it matches, by the method that found it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from pexeso.errors import InputError
from pexeso.faces.app.forms import query_fields
from pexeso.faces.app.links import command_line, reading_words, url
from pexeso.faces.app.page import Page, Pages
from pexeso.faces.app.query_columns import QueryColumns, only, query_columns
from pexeso.faces.service.requests import ExplainRequest, JoinRequest, split_lake_column
from pexeso.faces.service.transform import learn_with_lake
from pexeso.lake.columns import find_column, spec_of
from pexeso.options import METHODS
from pexeso.results.pages.page import OF_EXPLANATION, section_of_explanation
from pexeso.results.pages.transform import transform_shown
from pexeso.runtime.checks import require_choice
from pexeso.sets.shard_searches import overlap_with, token_query

if TYPE_CHECKING:
    from starlette.requests import Request


AnyRequest = TypeVar("AnyRequest", ExplainRequest, JoinRequest)

OPTIONS = ("max_distance", "joinability_of")

# Equal values that are listed; all are in the document.
SHOWN_VALUES = 200

# Largest distance of a join by equal values, as vectors may be rounded where they are stored.
EQUAL_DISTANCE = 0.001

# What explains a column, by the method in the page's URL; other methods are one of these.
WAYS = {"semantic": "similar values", "overlap": "equal values", "transform": "a learned rule"}


@dataclass(frozen=True)
class RequestedMatch:
    query_columns: QueryColumns
    lake_table: str
    lake_columns: str | None
    given: dict[str, str]

    @property
    def lake_column(self) -> str:
        columns = self.lake_columns
        return self.lake_table if columns is None else f"{self.lake_table}:{columns}"

    def request(self, kind: type[AnyRequest], pages: Pages, **fields: Any) -> AnyRequest:
        query = self.query_columns.query
        return kind.of(index=pages.served.path, lake_column=self.lake_column, **query, **fields)

    def link(self, page: str, **parameters: Any) -> str:
        named = {"column": self.query_columns.parameter, "lake_column": self.lake_column}
        return url(f"{self.query_columns.path}/{page}", {**named, **parameters})

    def shown(self, method: str | None) -> dict[str, Any]:
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
    fields = query_fields(ExplainRequest, only(pair.given, OPTIONS))
    request = pair.request(ExplainRequest, pages, **fields)
    explained = pages.served.run(request)

    def shown() -> dict[str, Any]:
        section = section_of_explanation(explained, OF_EXPLANATION)
        # Its path is of a temporary folder, which says nothing to whoever gave it.
        query = {**section["query"], "file": pair.query_columns.table.name}
        return {
            **pair.shown(None),
            "section": {**section, "query": query},
            "card": next(section["cards"]),
            "ways": ways,
            "join": pair.link("join", **{name: getattr(request, name) for name in OPTIONS}),
            "command": _command(pages, request, pair),
        }

    return Page("match.html", shown, explained.to_dict)


def _by_equal_values(pages: Pages, pair: RequestedMatch, ways: list[Any], *, indexed: bool) -> Page:
    index = pages.served.index
    column = pair.request(ExplainRequest, pages).read_column()
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
    from pexeso.transform.joins.details import page_report

    request = pair.request(JoinRequest, pages, transform=True)
    with pages.served.turn() as service:
        learned = learn_with_lake(service, request)
    table = pair.query_columns.table
    own = table.spec if table.is_of_lake else table.name
    source = f"{own}:{pair.query_columns.spec}"
    target = f"{pages.served.path}:{pair.lake_column}"

    def shown() -> dict[str, Any]:
        report = page_report(learned)
        for side, name in (("source", table.name), ("target", pair.lake_table)):
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
    request = pair.request(ExplainRequest, pages)
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


def _is_searched(pages: Pages, pair: RequestedMatch) -> bool:
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
