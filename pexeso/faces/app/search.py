"""From a table to a ranked list: choose a column, move the thresholds, see why a column matches."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import msgspec

from pexeso.composite.key_explanation import KeyExplanation
from pexeso.errors import InputError
from pexeso.faces.app.judge import VALUES_SHOWN, rejected_pair, verdicts
from pexeso.faces.app.lake import BROUGHT
from pexeso.faces.app.page import (
    OF_DISTANCE,
    ON,
    Form,
    Page,
    Pages,
    QueryColumns,
    command_line,
    controls,
    has_part,
    only,
    python_lines,
    query_columns,
    query_fields,
    reading_words,
    url,
)
from pexeso.faces.app.tables import summary_of
from pexeso.faces.service.requests import (
    ExplainRequest,
    JoinRequest,
    SearchRequest,
    split_lake_column,
)
from pexeso.faces.service.transform import learn_with_lake
from pexeso.lake.choose import ColumnProfile
from pexeso.lake.columns import find_column, label_columns, spec_of
from pexeso.options import DEFAULT_MIN_CONTAINMENT, METHODS, ROWS
from pexeso.results.match_kinds import KINDS
from pexeso.results.matches import SearchResult
from pexeso.results.pages.page import (
    NONE,
    OF_EXPLANATION,
    Limits,
    section_of_explanation,
    section_of_result,
    transform_shown,
)
from pexeso.results.query import TEXT_KINDS
from pexeso.runtime.checks import require_choice
from pexeso.sets.searches import encode_tokens
from pexeso.sets.shard_searches import overlap_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from pexeso.faces.app.tables import QueryTable, TableSummary
    from pexeso.results.column_matches import NearColumn


# The parameter of the request, by a script, that asks for what makes columns match too.
WHY = "why"

LIMITS = Limits(columns_found=20, listed=200)

# The fields of a search that its page has controls for, or that links to it may have.
OPTIONS = (
    "method", "max_distance", "min_joinability", "k", "exclude_self", "auto", "min_precision",
    "joinability_of",
)  # fmt: skip


# Where the slider of the share begins.
LEAST_SHARE = 0.01

# The numbers of columns that a control offers.
NUMBERS = (("", "20"), "100", "all")


# What a list shows of columns found by other ways than similar values, under which heading.
HEADS = {
    "joinability": "joinability",
    "share": "best share",
    "found_by": "found by",
    "overlap": "equal values",
    "containment": "of mine it holds",
    "matched": "matched",
    "equal": "equal already",
    "matched_keys": "matched keys",
    "relation": "rows to rows",
    "joined_rows": "rows joined",
    "rows_per_query_row": "rows for one of mine",
    "program": "rule",
}

OF_ALL = ("share", "found_by", "joinability", "containment", "program")

SHARES = ("joinability", "share", "containment")

# What a bar shows of a column of which it is not known why it matches.
MATCHED = "matched"


@dataclass(frozen=True)
class Choice:
    position: int
    label: str
    profile: ColumnProfile
    values: list[str]
    link: str


def columns(pages: Pages, request: Request) -> Page:
    table = pages.tables[request.path_params["table"]]
    summary = summary_of(table)
    labels = label_columns(summary.names)
    choices = [
        Choice(
            position,
            labels[position],
            profile,
            values,
            url(f"/tables/{table.id}/search", {"column": f"#{position}"}),
        )
        for position, (profile, values) in enumerate(
            zip(summary.profiles, summary.values, strict=True)
        )
    ]
    best = max(
        (choice for choice in choices if choice.profile.kind in TEXT_KINDS),
        # Dates of unrelated tables join too, so a column of dates comes after all texts.
        key=lambda it: (it.profile.kind == "text", it.profile.n_distinct, -it.position),
        default=None,
    )
    shown = {
        "table": table,
        "choices": choices,
        "best": best,
        "n_columns": len(labels),
        "n_rows": summary.n_rows,
        "notes": summary.notes,
        "has_keys": has_part(pages, "composite"),
    }
    return Page("columns.html", shown, lambda: _columns_document(table, summary, choices))


def search(pages: Pages, request: Request) -> Page:
    """Return the page of what is found for one column, or for a key of several."""
    columns = query_columns(pages, request)
    search_request = read_search(pages, columns, dict(request.query_params))
    # An uploaded file does not change, and each move of a slider searches with it again. A document
    # has the work of its own search alone.
    is_document = request.url.path.endswith(".json")
    is_kept = not (columns.table.is_of_lake or is_document)
    response = pages.served.search(search_request, is_kept=is_kept)
    result = response.results[0]

    # While a slider moves, the list comes first; why columns match follows once it rests.
    later = request.headers.get("hx-request") == "true" and WHY not in request.query_params
    n_explained = 0 if later else LIMITS.columns_found

    def shown() -> dict[str, Any]:
        section = (
            section_of_result(result, 1, n_explained, LIMITS)
            if isinstance(result, SearchResult)
            else None
        )
        options = section["options"] if section else _usual(pages, columns, search_request)
        path = columns.path
        share = search_request.min_joinability or _usual_share(columns, search_request, options)
        values = {
            "method": search_request.method,
            "max_distance": options.max_distance,
            "min_joinability": share,
            "k": "" if search_request.k is None else search_request.k,
        }
        if columns.is_key:
            values = only(values, ("min_joinability", "k"))
        missing = {"overlap", "containment"} - {*pages.served.index.parts}
        fields = controls(SearchRequest, values, missing=missing, k=NUMBERS)
        hidden = {"column": columns.parameter}
        if columns.table.is_of_lake:
            hidden["exclude_self"] = ON
        form = Form(f"{path}/search", "Search", fields, hidden, live="found")
        link = partial(match_link, columns, _at_its_distance(search_request, section))
        return {
            "table": columns.table,
            "columns": columns,
            "column": columns.name,
            "search_request": search_request,
            "options": options,
            "result": result,
            "section": section,
            "later": url(f"{path}/search", {**_given(request, columns), WHY: True})
            if later and section and len(result)
            else None,
            "heads": [] if section else _heads(result, search_request.method),
            "names": HEADS,
            "n_brought": BROUGHT,
            "shares": SHARES,
            "n_found": len(result) + (result.n_more or 0),
            "cards": _cards(result, section, link, columns, search_request.method),
            "kinds": (*KINDS, NONE) if n_explained and section else (MATCHED, NONE),
            "hints": None if len(result) else result.hints(),
            "nearer": partial(_nearer_link, columns, search_request),
            "form": form,
            "missing": missing,
            "has_distance": not columns.is_key and search_request.method in ("semantic", "all"),
            "more": url(f"{path}/search", {**_given(request, columns), "k": "all"}),
            "reject": None if columns.is_key else rejected_pair(pages, result),
            "back": url(f"{path}/search", _given(request, columns)),
            "link": link,
            "command": command_line(search_request, columns.table, columns.spec, options=OPTIONS),
            "python": None
            if columns.is_key
            else python_lines(search_request, columns.table, columns.spec, options=OPTIONS),
        }

    return Page("search.html", shown, response.to_dict, fragment="found.html")


def read_search(pages: Pages, columns: QueryColumns, given: dict[str, str]) -> SearchRequest:
    """Return the request of an URL; what it says of another way to search is left aside."""
    chosen = only(given, (*OPTIONS, "explain"))
    method = chosen.get("method", "semantic")
    if columns.is_key:
        chosen = only(chosen, ("k", "min_joinability", "exclude_self"))
    elif method in METHODS and method not in ("semantic", "all"):
        option_names = ("method", "k", "exclude_self", "explain")
        option_names += ("min_joinability",) if method != "overlap" else ()
        chosen = only(chosen, option_names)
    defaults: dict[str, Any] = {"exclude_self": columns.table.is_of_lake}
    values = defaults | query_fields(SearchRequest, chosen)
    return SearchRequest.of(index=pages.served.path, **columns.query, **values)


def _at_its_distance(search_request: SearchRequest, section: Any) -> SearchRequest:
    """Return a request with the distance that was chosen for it."""
    if section is None or section["options"].advice is None:
        return search_request
    chosen = {"auto": False, "min_precision": None, "max_distance": section["options"].max_distance}
    return msgspec.structs.replace(search_request, **chosen)


def match_link(
    columns: QueryColumns, search_request: SearchRequest, match: Any, page: str = "match"
) -> str:
    named = spec_of(match.columns) if columns.is_key else match.column
    target = {"column": columns.parameter, "lake_column": f"{match.table}:{named}"}
    method = _way(search_request.method, match)
    options = only(search_request.fields(), OF_DISTANCE) if method is None else {"method": method}
    return url(f"{columns.path}/{page}", {**target, **options})


def _way(method: str, match: Any) -> str | None:
    """Return the method of the page that explains a column found; None where it is the usual."""
    if method == "all":  # by what evidence there is, what looks at values alike first
        if match.meaning is not None:
            return None
        return "transform" if match.transform is not None else "overlap"
    return {"overlap": "overlap", "containment": "overlap", "transform": "transform"}.get(method)


def _usual(pages: Pages, columns: QueryColumns, search_request: SearchRequest) -> Any:
    """Return options of a search by similar values, for the sliders of another one."""
    options = (
        search_request.options() if search_request.method == "all" and not columns.is_key else {}
    )
    return pages.served.index.search_options(options)


def _cards(
    result: Any, section: Any, link: Callable[..., str], columns: QueryColumns, method: str
) -> list[dict[str, Any]]:
    if section:
        listed = [(entry["match"], {}, entry["bar"]) for entry in section["listed"]]
    else:
        rows = zip(result.matches, result.rows(), strict=True)
        listed = [(match, row, ()) for match, row in islice(rows, LIMITS.listed)]
    cards = []
    for match, row, kinds in listed:
        share = match.joinability if section else _share(row)
        own = match.columns if columns.is_key else (match.column,)
        brought_with = [("name", match.table), *(("column", label) for label in own)]
        cards.append(
            {
                "match": match,
                "row": row,
                "bar": kinds or _share_bar(share),
                # Several values of yours may be nearest to one, also where no value repeats.
                "n_nearest": match._details.n_nearest(match._position)
                if kinds and match.joinability_of != ROWS
                else None,
                # By equal values, the page of the match knows which of two joins there is.
                "join": None if _way(method, match) == "overlap" else link(match, "join"),
                "brings": f"/lake/samples?{urlencode(brought_with)}",
            }
        )
    return cards


def _share(row: dict[str, Any]) -> float | None:
    return next((row[name] for name in SHARES if row.get(name) is not None), None)


def _share_bar(share: float | None) -> list[dict[str, Any]]:
    """Return the bar of a column of which no more is known than the share that matches."""
    if share is None:
        return []
    parts = ((MATCHED, share), (NONE, 1 - share))
    return [{"kind": kind, "matched": part, "share": part} for kind, part in parts]


def _heads(result: Any, method: str) -> list[str]:
    shown = OF_ALL if method == "all" else HEADS
    return [name for name in result.fields if name in shown]


def _usual_share(columns: QueryColumns, search_request: SearchRequest, options: Any) -> float:
    """Return the share that a search asks for where none is given; of none the least there is."""
    if columns.is_key or search_request.method in ("overlap", "transform"):
        return LEAST_SHARE
    if search_request.method == "containment":
        return DEFAULT_MIN_CONTAINMENT
    return options.min_joinability or LEAST_SHARE


def _nearer_link(
    columns: QueryColumns, search_request: SearchRequest, near: NearColumn
) -> str | None:
    """Return the path of a search that finds a column which came near; None where none may."""
    if near.max_distance is None and search_request.method == "overlap":
        return None
    # Sliders have two digits: the next smaller share and the next larger distance.
    share = max(LEAST_SHARE, int(100 * near.share) / 100)
    changed: dict[str, Any] = {"method": search_request.method, "min_joinability": share}
    if near.max_distance is not None:
        changed["max_distance"] = min(1.0, math.ceil(100 * near.max_distance) / 100)
    return url(f"{columns.path}/search", {"column": columns.parameter, **changed})


def _given(request: Request, columns: QueryColumns) -> dict[str, Any]:
    return {**only(dict(request.query_params), OPTIONS), "column": columns.parameter}


def _columns_document(
    table: QueryTable, summary: TableSummary, choices: list[Choice]
) -> dict[str, Any]:
    return {
        "table": table.name,
        "rows": summary.n_rows,
        "notes": list(summary.notes),
        "columns": [
            {
                "position": choice.position,
                "column": choice.label,
                "kind": choice.profile.kind,
                "distinct": choice.profile.n_distinct,
                "missing": choice.profile.n_missing,
                "values": choice.values,
            }
            for choice in choices
        ],
        "n_columns": len(summary.names),
    }


AnyRequest = TypeVar("AnyRequest", ExplainRequest, JoinRequest)


# Equal values that are listed; all are in the document.
EQUAL_VALUES_SHOWN = 200

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
                f"{self.query_columns.path}/search", {**of_search, **only(self.given, OF_DISTANCE)}
            ),
        }


def match(pages: Pages, request: Request) -> Page:
    parameters = dict(request.query_params)
    columns, catalog = query_columns(pages, request), pages.served.index.catalog
    named = parameters.get("lake_column", "")
    if columns.is_key:
        pair = RequestedMatch(columns, *catalog.split(named), parameters)
        explain_request = pair.request(ExplainRequest, pages)
        return _page_of_key(pair, explain_request, pages.served.run(explain_request))
    pair = RequestedMatch(columns, *split_lake_column(catalog, named), parameters)
    indexed = _is_searched(pages, pair)
    method = parameters.get("method") or "semantic"
    require_choice("method", method, METHODS)
    ways = [
        (name, pair.link("match", method=way, **only(parameters, OF_DISTANCE)), way == method)
        for way, name in WAYS.items()
        if _has_way(pages, way, indexed=indexed)
    ]
    if method == "transform":
        return _by_rule(pages, pair, ways)
    if method in ("overlap", "containment"):
        return _by_equal_values(pages, pair, ways, indexed=indexed)
    return _by_similar_values(pages, pair, ways)


def _by_similar_values(pages: Pages, pair: RequestedMatch, ways: list[Any]) -> Page:
    fields = query_fields(ExplainRequest, only(pair.given, OF_DISTANCE))
    request = pair.request(ExplainRequest, pages, **fields)
    explained = pages.served.run(request)
    if isinstance(explained, KeyExplanation):  # of columns that are joined by equal values alone
        return _page_of_key(pair, request, explained)

    def shown() -> dict[str, Any]:
        section = section_of_explanation(explained, OF_EXPLANATION)
        # Its path is of a temporary folder, which says nothing to whoever gave it.
        query = {**section["query"], "file": pair.query_columns.table.name}
        card = next(section["cards"])
        near = [*explained.match._details.weakest(explained.match._position, VALUES_SHOWN)]
        near += [one for one in card["unmatched"][:VALUES_SHOWN] if one.value is not None]
        values = [(one.query, one.value, one.distance) for one in near]
        return {
            **pair.shown(None),
            **verdicts(pages, request, pair.lake_table, str(explained.match.column), values),
            "back": pair.link("match", **only(pair.given, OF_DISTANCE)),
            "section": {**section, "query": query},
            "card": card,
            "ways": ways,
            "join": pair.link("join", **request.chosen(OF_DISTANCE)),
            "command": _command(request, pair),
        }

    return Page("match.html", shown, explained.to_dict)


def _by_equal_values(pages: Pages, pair: RequestedMatch, ways: list[Any], *, indexed: bool) -> Page:
    index = pages.served.index
    column = pair.request(ExplainRequest, pages).read_column()
    query = encode_tokens(index._opened, column)
    named = pair.lake_table, str(pair.lake_columns)
    [equal] = overlap_with(index.shards, query, [named])
    values = [] if equal is None else equal.shared()
    # Columns of numbers are no part of a search by similar values: rules join what is equal first.
    way = {"max_distance": EQUAL_DISTANCE} if indexed else {"method": "transform"}
    shown = {
        **pair.shown("overlap"),
        "equal": equal,
        "total": len(query),
        "values": values[:EQUAL_VALUES_SHOWN],
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


def _page_of_key(pair: RequestedMatch, request: ExplainRequest, explained: KeyExplanation) -> Page:
    exact = replace(pair, lake_table=explained.table, lake_columns=spec_of(explained.columns))
    shown = {
        **exact.shown(None),
        "found": explained,
        "join": exact.link("join"),
        "command": _command(request, pair),
    }
    return Page("match_key.html", shown, explained.to_dict)


def _command(request: ExplainRequest, pair: RequestedMatch) -> str:
    named = pair.query_columns
    return command_line(request, named.table, named.spec, pair.lake_column, options=OF_DISTANCE)


def _is_searched(pages: Pages, pair: RequestedMatch) -> bool:
    table, column = pair.lake_table, str(pair.lake_columns)
    rows = pages.served.index.catalog.columns_of(table, ["name", "reason"])
    if not rows.num_rows:
        raise InputError(pages.served.index.catalog.why_not(table, pages.served.index.lake))
    return not rows["reason"][find_column(rows["name"].to_pylist(), column)].is_valid


def _has_way(pages: Pages, way: str, *, indexed: bool) -> bool:
    if way == "semantic":
        return indexed
    return way != "overlap" or "overlap" in pages.served.index.parts
