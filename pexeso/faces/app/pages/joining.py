"""What a join with one column found makes of a table: preview, and files."""

from __future__ import annotations

from io import BytesIO
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pexeso.errors import InputError, PexesoError
from pexeso.faces.app.links import OFF, command_line, fields_of_query, is_on, url
from pexeso.faces.app.page import Page, Pages
from pexeso.faces.app.pages.query_columns import QueryColumns, only, query_columns
from pexeso.faces.app.tables import UnknownTableError, safe_name
from pexeso.faces.service.requests import JoinRequest
from pexeso.joins.options import AGGREGATIONS, HOW, VALUES
from pexeso.lake.frames.columns import cells_to_show
from pexeso.lake.frames.writing import WRITERS

if TYPE_CHECKING:
    import pyarrow as pa
    from starlette.requests import Request

    from pexeso.faces.service.responses import JoinResponse

OF_DISTANCE = ("max_distance", "joinability_of")
OF_JOIN = ("how", "suffix", "many_to_many")
OF_RULE = "many_to_one"
COMMAND = (
    *(*OF_DISTANCE, "values", "how", "aggregate", "suffix", "provenance", "many_to_many"),
    *("transform", OF_RULE),
)
ESCAPE_FORMULAS = "escape_formulas"
PREVIEW_ROWS = 50


def join(pages: Pages, request: Request) -> Page:
    """Return the page that previews a join, or says why there is none and lets options change."""
    columns, parameters = query_columns(pages, request), dict(request.query_params)
    join_request = read_join(pages, columns, parameters)
    try:
        response = pages.served.run(join_request)
    except UnknownTableError:
        raise
    except PexesoError as error:
        # Other options may join: so the page stays, with the form. A document is an error alone.
        if not isinstance(error, InputError) or request.url.path.endswith(".json"):
            raise
        return Page(
            "join.html",
            {
                **_shown(pages, columns, join_request, parameters),
                "response": None,
                "problem": str(error),
            },
            lambda: {},
            status=400,
        )
    joined = response.joined
    shown = {
        **_shown(pages, columns, join_request, parameters),
        "problem": None,
        "response": response,
        "rows": first_rows(joined.table),
        "names": joined.table.column_names,
        "n_rows": joined.table.num_rows,
        "report": joined.report,
        "found": response.match,
    }
    return Page("join.html", shown, response.to_dict)


def first_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the first rows of a joined table, as its page shows them."""
    first = table.slice(0, PREVIEW_ROWS)
    columns = [cells_to_show(column) for column in first.columns]
    return [
        dict(zip(first.column_names, cells, strict=True)) for cells in zip(*columns, strict=True)
    ]


def joined_file(pages: Pages, request: Request, ending: str) -> tuple[str, bytes]:
    """Return the name and the bytes of a joined table, as a file that ends so."""
    columns, parameters = query_columns(pages, request), dict(request.query_params)
    escapes = _escapes_formulas(parameters)
    response: JoinResponse = pages.served.run(read_join(pages, columns, parameters))
    stream = BytesIO()
    WRITERS[ending](response.joined.table, stream, escapes)
    stem = safe_name(PurePath(columns.table.name).stem)
    return f"{stem}-joined{ending}", stream.getvalue()


def read_join(pages: Pages, columns: QueryColumns, given: dict[str, str]) -> JoinRequest:
    """Return the join that an URL asks for.

    By a rule, and by a key of several columns, there are no values alike: what an URL says of
    them is left aside, as it was of another way.
    """
    is_rule = given.get("method") == "transform"
    names = ("lake_column", *OF_JOIN)
    if is_rule:
        names += (OF_RULE,)
    elif not columns.is_key:
        names += (*OF_DISTANCE, "values")
    fields = {"lake_column": "", **fields_of_query(JoinRequest, only(given, names))}
    if way := given.get("aggregate"):
        fields["aggregate"] = {"*": way}
    return JoinRequest.of(index=pages.served.path, transform=is_rule, **columns.query, **fields)


def _escapes_formulas(parameters: dict[str, str]) -> bool:
    return is_on(parameters.get(ESCAPE_FORMULAS) or OFF, ESCAPE_FORMULAS)


def _shown(
    pages: Pages, columns: QueryColumns, join_request: JoinRequest, url_parameters: dict[str, str]
) -> dict[str, Any]:
    method = "transform" if join_request.transform else None
    of_match = {
        "column": columns.parameter,
        "lake_column": join_request.lake_column,
        "method": method,
        **only(url_parameters, OF_DISTANCE),
    }
    parameters = {**of_match, **only(url_parameters, ("values", "aggregate", *OF_JOIN, OF_RULE))}
    escapes = _escapes_formulas(url_parameters)
    of_kinds = {"csv": {ESCAPE_FORMULAS: escapes or None}, "parquet": {}}
    return {
        "table": columns.table,
        "columns": columns,
        "asked": join_request,
        "method": method,
        "values": VALUES if not (join_request.transform or columns.is_key) else (),
        "hows": HOW,
        "aggregations": AGGREGATIONS,
        "match": url(f"{columns.path}/match", of_match),
        "downloads": {
            kind: url(f"{columns.path}/joined.{kind}", {**parameters, **of_kind})
            for kind, of_kind in of_kinds.items()
        },
        ESCAPE_FORMULAS: escapes,
        "command": _command(pages, columns, join_request, escapes=escapes),
    }


def _command(
    pages: Pages, columns: QueryColumns, join_request: JoinRequest, *, escapes: bool
) -> str:
    named = str(join_request.lake_column)
    words = command_line(
        join_request, columns.table, columns.spec, pages.served.path, named, options=COMMAND
    )
    return f"{words} -o joined.csv{' --escape-formulas' if escapes else ''}"
