"""What is no page: tables are given, files downloaded, the newest state of the index asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from pexeso.errors import InputError
from pexeso.faces.app.pages.graph import graph_file, match_of_two
from pexeso.faces.app.pages.joining import joined_file
from pexeso.faces.app.pages.query_columns import lake_table_to_search

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from pexeso.faces.app.page import Pages
    from pexeso.faces.app.tables import QueryTable

PIECE = 1 << 20
MEDIA_TYPES = {".csv": "text/csv; charset=utf-8", ".parquet": "application/vnd.apache.parquet"}
ANY = "application/octet-stream"


def routes(pages: Pages) -> list[Route]:
    """Return the routes."""

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

    async def reload(request: Request) -> Response:
        await run_in_threadpool(pages.served.reload)
        return RedirectResponse("/", status_code=303)

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
        return RedirectResponse(match_of_two(pages, request), status_code=303)

    return [
        Route("/graph/match", show_match, methods=["GET"]),
        Route("/graph.{kind}", download_graph, methods=["GET"]),
        Route("/tables/{table}/joined.{kind}", download, methods=["GET"]),
        Route("/tables", give_table, methods=["POST"]),
        Route("/reload", reload, methods=["POST"]),
    ]


def _add_file(pages: Pages, file: UploadFile) -> QueryTable:
    read: Callable[[], bytes] = lambda: file.file.read(PIECE)  # noqa: E731
    return pages.tables.add(str(file.filename), iter(read, b""))


def _add_text(pages: Pages, text: str) -> QueryTable:
    # What a spreadsheet puts on the clipboard has tabs between cells.
    first = text.strip("\r\n").partition("\n")[0]
    name = "pasted.tsv" if "\t" in first else "pasted.csv"
    return pages.tables.add(name, [text.encode("utf-8", "replace")])
