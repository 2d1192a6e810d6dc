"""One column found: why it matches, and what a join with it makes of a table."""

from __future__ import annotations

from io import BytesIO
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pexeso.frames.writing import WRITERS
from pexeso.html.cards import OF_EXPLANATION, section_of_explanation
from pexeso.join.options import AGGREGATIONS, HOW, VALUES
from pexeso.lake.columns import find_column, label_columns
from pexeso.lake.containers.reader import read_table
from pexeso.server.links import command_line, fields_of_query, url
from pexeso.server.page import Page, Pages
from pexeso.server.tables import safe_name
from pexeso.service.requests import ExplainRequest, JoinRequest

if TYPE_CHECKING:
    from starlette.requests import Request

    from pexeso.server.tables import QueryTable

OPTIONS = ("max_distance", "joinability_of")
JOIN_OPTIONS = (*OPTIONS, "values", "how", "aggregate", "suffix", "provenance")
PREVIEW_ROWS = 50


def match(pages: Pages, request: Request) -> Page:
    """Return the page that explains one match."""
    table, given, column, label = _asked(pages, request)
    asked = ExplainRequest(
        index=pages.served.path,
        query=f"{table.spec}:#{column}",
        **{
            "lake_column": "",
            **fields_of_query(ExplainRequest, _only(given, (*OPTIONS, "lake_column"))),
        },
    )
    explained = pages.served.run(asked)
    found = explained.match

    def shown() -> dict[str, Any]:
        section = section_of_explanation(explained, OF_EXPLANATION)
        return {"section": section, "card": next(section.cards), **around}

    around = {
        "table": table,
        "column": label,
        "lake_table": found.table,
        "lake_column": found.column,
        "search": url(f"/tables/{table.id}/search", {"column": f"#{column}", **_options(asked)}),
        "join": url(
            f"/tables/{table.id}/join",
            {"column": f"#{column}", "lake_column": asked.lake_column, **_options(asked)},
        ),
        "command": command_line(
            asked, table, label, pages.served.path, asked.lake_column, options=OPTIONS
        ),
    }
    return Page("match.html", shown, explained.to_dict)


def join(pages: Pages, request: Request) -> Page:
    """Return the page that previews a join."""
    table, given, column, label = _asked(pages, request)
    asked = read_join(pages, table, column, given)
    response = pages.served.run(asked)
    joined = response.joined
    parameters = {"column": f"#{column}", **_only(given, (*JOIN_OPTIONS, "lake_column"))}
    of_match = ("column", "lake_column", *OPTIONS)
    shown = {
        "table": table,
        "column": label,
        "position": column,
        "asked": asked,
        "rows": joined.table.slice(0, PREVIEW_ROWS).to_pylist(),
        "names": joined.table.column_names,
        "n_rows": joined.table.num_rows,
        "report": joined.report,
        "values": VALUES,
        "hows": HOW,
        "aggregations": AGGREGATIONS,
        "match": url(f"/tables/{table.id}/match", _only(parameters, of_match)),
        "downloads": {
            kind: url(f"/tables/{table.id}/joined.{kind}", parameters)
            for kind in ("csv", "parquet")
        },
        "command": command_line(
            asked, table, label, pages.served.path, str(asked.lake_column), options=JOIN_OPTIONS
        )
        + " -o joined.csv",
    }
    return Page("join.html", shown, response.to_dict)


def joined_file(pages: Pages, request: Request, ending: str) -> tuple[str, bytes]:
    """Return the name and the bytes of a joined table, as a file that ends so."""
    table, given, column, _ = _asked(pages, request)
    joined = pages.served.run(read_join(pages, table, column, given)).joined
    stream = BytesIO()
    WRITERS[ending](joined.table, stream, False)
    stem = safe_name(PurePath(table.name).stem)
    return f"{stem}-joined{ending}", stream.getvalue()


def read_join(pages: Pages, table: QueryTable, column: int, given: dict[str, str]) -> JoinRequest:
    """Return the join that an URL asks for."""
    names = tuple(name for name in JOIN_OPTIONS if name not in ("aggregate", "provenance"))
    asked = fields_of_query(JoinRequest, _only(given, (*names, "lake_column")))
    values = {"lake_column": "", **asked}
    if way := given.get("aggregate"):
        values["aggregate"] = {"*": way}
    return JoinRequest(index=pages.served.path, query=f"{table.spec}:#{column}", **values)


def _asked(pages: Pages, request: Request) -> tuple[QueryTable, dict[str, str], int, str]:
    table = pages.tables[request.path_params["table"]]
    given = dict(request.query_params)
    names = read_table(table.spec).names
    column = find_column(names, given.get("column", "#0"))
    return table, given, column, label_columns(names)[column]


def _only(given: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def _options(asked: Any) -> dict[str, Any]:
    return {name: getattr(asked, name) for name in OPTIONS}
