"""The app: its routes, what stands before them, and how errors are told."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from pexeso.errors import PexesoError
from pexeso.faces.app import assets
from pexeso.faces.app.agents import PATH
from pexeso.faces.app.guard import Guard, TooLargeError
from pexeso.faces.app.page import Page, Pages
from pexeso.faces.app.pages import PAGES, handler_of, import_all
from pexeso.faces.app.tables import UnknownTableError

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from pexeso.faces.app.access import Access
    from pexeso.faces.app.agents import Agents

_log = logging.getLogger(__name__)

FORM_BYTES = 64 << 10
"""What a form may have beside the file or text in it."""

_STATUS = {UnknownTableError: 404, TooLargeError: 413}


def create_app(
    pages: Pages,
    *,
    access: Access,
    hosts: Collection[str],
    cookie: str = "pexeso",
    agents: Agents | None = None,
) -> ASGIApp:
    """Return the app for one index."""
    app = Starlette(
        routes=_routes(pages),
        exception_handlers=_handlers(pages),
        lifespan=lambda _: nullcontext() if agents is None else agents.running(),
    )
    app.router.redirect_slashes = False  # a page has one address
    return Guard(
        app if agents is None else _with_agents(app, agents),
        access=access,
        hosts=hosts,
        cookie=cookie,
        max_body=pages.tables.max_bytes + FORM_BYTES,
    )


def _with_agents(app: Starlette, agents: Agents) -> ASGIApp:
    async def either(scope: Scope, receive: Receive, send: Send) -> None:
        is_for_agents = scope["type"] == "http" and scope["path"] == PATH
        await (agents if is_for_agents else app)(scope, receive, send)

    return either


def _routes(pages: Pages) -> list[Route]:
    routes = [Route(f"{assets.FOLDER}/{{name}}", assets.answer)]
    for path in PAGES:
        # A part of a path may be anything, and the first route that fits is taken.
        as_json = f"{'/index' if path == '/' else path}.json"
        routes.append(Route(as_json, _answers(pages, path, as_json=True), methods=["GET"]))
        routes.append(Route(path, _answers(pages, path), methods=["GET"]))
    from pexeso.faces.app.pages import actions

    return [*routes, *actions.routes(pages)]


def _answers(pages: Pages, path: str, *, as_json: bool = False):
    def answer(request: Request) -> Response:
        page = handler_of(path)(pages, request)
        return _json(page) if as_json else _html(pages, page, request)

    return answer


def _html(pages: Pages, page: Page, request: Request) -> Response:
    return HTMLResponse(
        page.html(pages, request),
        status_code=page.status,
        headers={"Vary": "HX-Request"},
        background=BackgroundTask(_prepare, pages),
    )


def _prepare(pages: Pages) -> None:
    """Load what the next page needs while a person looks at the first."""
    import_all()
    pages.served.prepare()


def _json(page: Page) -> Response:
    document = page.json()
    kind = Response if isinstance(document, str) else StreamingResponse
    return kind(document, status_code=page.status, media_type="application/json")


def _handlers(pages: Pages):
    """Return what answers in place of a page that could not be made: a sentence, never a trace."""

    def error_page(request: Request, sentence: str, status: int) -> Response:
        page = Page("error.html", {"sentence": sentence}, lambda: {"error": sentence}, None, status)
        if request.url.path.endswith(".json"):
            return _json(page)
        return _html(pages, page, request)

    async def known(request: Request, error: Exception) -> Response:
        status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 400)
        return await run_in_threadpool(error_page, request, str(error), status)

    async def http(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 400
        sentences = {404: "There is no such page.", 405: "This page is not asked in this way."}
        detail = getattr(error, "detail", "")
        return await run_in_threadpool(
            error_page, request, sentences.get(status, str(detail)), status
        )

    async def unknown(request: Request, error: Exception) -> Response:
        _log.exception("A page could not be made: %s", request.url.path, exc_info=error)
        sentence = "This page could not be made, which is an error of pexeso: its log says more."
        return await run_in_threadpool(error_page, request, sentence, 500)

    async def gone(request: Request, error: Exception) -> Response:
        return Response(status_code=400)  # which nobody reads

    return {
        PexesoError: known,
        HTTPException: http,
        ClientDisconnect: gone,
        Exception: unknown,
    }
