"""Actions: the join and its files, uploads, downloads, and the newest state of the index."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import PurePath
from typing import Any
from urllib.parse import quote, urlencode

import pyarrow as pa
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from pexeso.errors import InputError, PexesoError
from pexeso.faces.app.graph import graph_file, match_path
from pexeso.faces.app.judge import verdicts
from pexeso.faces.app.page import (
    OF_DISTANCE,
    ON,
    Control,
    Form,
    Page,
    Pages,
    QueryColumns,
    command_line,
    controls,
    lake_table_to_search,
    only,
    python_join_lines,
    query_columns,
    query_fields,
    url,
)
from pexeso.faces.app.start import MAX_FILES
from pexeso.faces.app.tables import QueryTable, UnknownTableError, names_of, safe_name
from pexeso.faces.service.bases import CsvOptions, JoinResponse
from pexeso.faces.service.requests import JoinRequest
from pexeso.joins.options import AGGREGATIONS
from pexeso.lake.frames.columns import cells_to_show
from pexeso.lake.frames.writing import WRITERS
from pexeso.lake.judgements import FIELDS
from pexeso.results.matches import Match

SQL = ".sql"
OF_JOIN = ("how", "suffix", "many_to_many")
OF_RULE = "many_to_one"
COMMAND = (
    *(*OF_DISTANCE, "values", "how", "aggregate", "suffix", "provenance", "many_to_many"),
    *("transform", OF_RULE),
)
ESCAPE_FORMULAS = "escape_formulas"
# A form sends no box that is not ticked: `CHOSEN` tells a choice of nothing from none.
ADD, CHOSEN = "add", "chosen"
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
                **_shown(columns, join_request, parameters),
                "response": None,
                "problem": str(error),
            },
            lambda: {},
            fragment="joined.html",
            status=400,
        )
    joined, match = response.joined, response.match
    added = joined.table.column_names[len(names_of(columns.table)) :]
    table = _with_chosen_columns(joined.table, columns, request)
    shown = {
        **_shown(columns, join_request, parameters),
        "problem": None,
        "response": response,
        "added": added,
        "chosen": set(table.column_names),
        "rows": first_rows(table),
        "names": table.column_names,
        "n_rows": joined.table.num_rows,
        "report": joined.report,
        "found": match,
        "back": url(f"{columns.path}/join", parameters),
    }
    if not (join_request.transform or columns.is_key):
        shown["python"] = python_join_lines(
            join_request, columns.table, columns.spec, (match.table, match.column)
        )
    if isinstance(match, Match):
        shown |= verdicts(pages, join_request, match.table, match.column, [])
    if CHOSEN in parameters:
        choice = urlencode(
            [(CHOSEN, ON), *((ADD, name) for name in added if name in shown["chosen"])]
        )
        shown["downloads"] = {kind: f"{link}&{choice}" for kind, link in shown["downloads"].items()}
    return Page("join.html", shown, response.to_dict, fragment="joined.html")


def _with_chosen_columns(joined: pa.Table, columns: QueryColumns, request: Request) -> pa.Table:
    """Leave out the columns of the lake whose boxes are not ticked; of no choice none."""
    if CHOSEN not in request.query_params:
        return joined
    n_own, ticked = len(names_of(columns.table)), set(request.query_params.getlist(ADD))
    places = enumerate(joined.column_names)
    return joined.select([place for place, name in places if place < n_own or name in ticked])


def first_rows(table: pa.Table) -> list[dict[str, Any]]:
    first = table.slice(0, PREVIEW_ROWS)
    columns = [cells_to_show(column) for column in first.columns]
    return [
        dict(zip(first.column_names, cells, strict=True)) for cells in zip(*columns, strict=True)
    ]


def joined_file(pages: Pages, request: Request, ending: str) -> tuple[str, bytes]:
    columns, parameters = query_columns(pages, request), dict(request.query_params)
    escapes = _escapes_formulas(parameters)
    join_request = read_join(pages, columns, parameters)
    response: JoinResponse = pages.served.run(join_request)
    stream, stem = BytesIO(), safe_name(PurePath(columns.table.name).stem)
    if ending == SQL:
        if not _has_sql(columns, join_request) or not isinstance(response.match, Match):
            raise InputError("This join is not written as SQL. Download its rows instead.")
        ways = {"values": join_request.values, "how": join_request.how}
        stream.write(response.match.sql(stem, **ways).encode())
    else:
        joined = _with_chosen_columns(response.joined.table, columns, request)
        WRITERS[ending](joined, stream, escapes)
    return f"{stem}-joined{ending}", stream.getvalue()


def _has_sql(columns: QueryColumns, join_request: JoinRequest) -> bool:
    """Whether a statement gives the rows of a join; DuckDB checks how it reads them."""
    from pexeso.joins.sql import has_duckdb

    is_plain = not (join_request.transform or join_request.aggregate or columns.is_key)
    return is_plain and names_of(columns.table).count(columns.labels[0]) == 1 and has_duckdb()


def read_join(pages: Pages, columns: QueryColumns, given: dict[str, str]) -> JoinRequest:
    """Return the join that an URL asks for; what it says of another way is left aside."""
    is_rule = given.get("method") == "transform"
    names = ("lake_column", *OF_JOIN)
    if is_rule:
        names += (OF_RULE,)
    elif not columns.is_key:
        names += (*OF_DISTANCE, "values")
    fields = {"lake_column": "", **query_fields(JoinRequest, only(given, names))}
    if way := given.get("aggregate"):
        fields["aggregate"] = {"*": way}
    return JoinRequest.of(index=pages.served.path, transform=is_rule, **columns.query, **fields)


def _escapes_formulas(parameters: dict[str, str]) -> bool:
    return query_fields(CsvOptions, parameters).get(ESCAPE_FORMULAS, False)


def _shown(
    columns: QueryColumns, join_request: JoinRequest, url_parameters: dict[str, str]
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
    of_kinds = {"csv": {ESCAPE_FORMULAS: escapes or None}, "xlsx": {}, "parquet": {}}
    of_kinds |= {"sql": {}} if _has_sql(columns, join_request) else {}
    fields = [*_controls(columns, join_request), *controls(CsvOptions, {ESCAPE_FORMULAS: escapes})]
    hidden = {
        "column": columns.parameter,
        "lake_column": join_request.lake_column,
        "method": method,
        "max_distance": join_request.max_distance,
    }
    return {
        "table": columns.table,
        "columns": columns,
        "python": None,
        "judged": None,
        "join_request": join_request,
        "form": Form(f"{columns.path}/join", "Preview", fields, hidden, live="joined"),
        "match": url(f"{columns.path}/match", of_match),
        "downloads": {
            kind: url(f"{columns.path}/joined.{kind}", {**parameters, **of_kind})
            for kind, of_kind in of_kinds.items()
        },
        "command": _command(columns, join_request, escapes=escapes),
    }


def _controls(columns: QueryColumns, join_request: JoinRequest) -> list[Control]:
    values = join_request.chosen(("values", "how", "aggregate", "many_to_many", OF_RULE))
    values["aggregate"] = (join_request.aggregate or {}).get("*")
    if join_request.transform or columns.is_key:
        del values["values"]
    if not join_request.transform:
        del values[OF_RULE]
    ways = (("", "repeat my row"), *AGGREGATIONS)
    return controls(JoinRequest, values, aggregate=ways)


def _command(columns: QueryColumns, join_request: JoinRequest, *, escapes: bool) -> str:
    named = str(join_request.lake_column)
    words = command_line(join_request, columns.table, columns.spec, named, options=COMMAND)
    return f"{words} -o joined.csv{' --escape-formulas' if escapes else ''}"


PIECE = 1 << 20
MEDIA_TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    SQL: "application/sql",
}
ANY = "application/octet-stream"


def routes(pages: Pages) -> list[Route]:

    async def give_table(request: Request) -> Response:
        limit = pages.tables.max_bytes
        async with request.form(max_files=1, max_fields=4, max_part_size=limit) as form:
            file, text, of_lake = form.get("file"), form.get("text"), form.get("lake_table")
            if isinstance(file, UploadFile) and file.filename:
                table = await run_in_threadpool(_add_file, pages, file)
            elif isinstance(of_lake, str) and of_lake:
                table = await run_in_threadpool(lake_table_to_search, pages, of_lake)
            elif isinstance(text, str) and text.strip():
                table = await run_in_threadpool(_add_text, pages, text)
            else:
                raise InputError("Choose a file or paste a table: there is nothing to search with.")
        return RedirectResponse(f"/tables/{table.id}", status_code=303)

    async def give_files(request: Request) -> Response:
        start, limit = pages.start, pages.tables.max_bytes
        if start is None:
            raise HTTPException(404)
        async with request.form(max_files=MAX_FILES, max_fields=2, max_part_size=limit) as form:
            files = [
                (str(file.filename), iter(partial(file.file.read, PIECE), b""))
                for file in form.getlist("file")
                if isinstance(file, UploadFile) and file.filename
            ]
            lake = form.get("lake")
            lake = lake.strip() if isinstance(lake, str) else ""
            await run_in_threadpool(start.build, pages.jobs, files, lake or None)
        return RedirectResponse("/", status_code=303)

    async def reload(request: Request) -> Response:
        await run_in_threadpool(pages.served.reload)
        pages.jobs.forget()
        return RedirectResponse("/", status_code=303)

    async def record_verdict(request: Request) -> Response:
        from pexeso.faces.app.judge import record

        async with request.form(max_files=0, max_fields=len(FIELDS) + 2) as form:
            fields = {name: value for name, value in form.items() if isinstance(value, str)}
        answer = await run_in_threadpool(record, pages, fields)
        pages.jobs.forget()
        return answer

    def download(request: Request) -> Response:
        ending = f".{request.path_params['kind']}"
        if ending not in MEDIA_TYPES:
            raise InputError(f"A joined table is written as {' or '.join(MEDIA_TYPES)}.")
        name, data = joined_file(pages, request, ending)
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}
        return Response(data, media_type=MEDIA_TYPES[ending], headers=headers)

    def download_graph(request: Request) -> Response:
        kind = request.path_params["kind"]
        headers = {"Content-Disposition": f'attachment; filename="joins.{quote(kind)}"'}
        pieces = graph_file(pages, request, kind)
        return StreamingResponse(
            pieces, media_type=MEDIA_TYPES.get(f".{kind}", ANY), headers=headers
        )

    def show_match(request: Request) -> Response:
        return RedirectResponse(match_path(pages, request), status_code=303)

    return [
        Route("/graph/match", show_match, methods=["GET"]),
        Route("/graph.{kind}", download_graph, methods=["GET"]),
        Route("/tables/{table}/joined.{kind}", download, methods=["GET"]),
        Route("/tables", give_table, methods=["POST"]),
        Route("/files", give_files, methods=["POST"]),
        Route("/reload", reload, methods=["POST"]),
        Route("/judgements", record_verdict, methods=["POST"]),
    ]


def _add_file(pages: Pages, file: UploadFile) -> QueryTable:
    read: Callable[[], bytes] = lambda: file.file.read(PIECE)  # noqa: E731
    return pages.tables.add(str(file.filename), iter(read, b""))


def _add_text(pages: Pages, text: str) -> QueryTable:
    # What a spreadsheet puts on the clipboard has tabs between cells.
    first = text.strip("\r\n").partition("\n")[0]
    name = "pasted.tsv" if "\t" in first else "pasted.csv"
    return pages.tables.add(name, [text.encode("utf-8", "replace")])
