"""The app: its routes, the guard before them, errors, and the tools for agents."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, nullcontext
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from pexeso.errors import PexesoError
from pexeso.faces.app.guard import AGENTS_PATH, Access, Guard, TooLargeError
from pexeso.faces.app.jobs import PATIENCE, UnknownJobError
from pexeso.faces.app.page import FOLDER, TITLES, Handler, Page, Pages, asset_answer, job_page
from pexeso.faces.app.start import start_page
from pexeso.faces.app.tables import UnknownTableError
from pexeso.runtime.threads import LARGE_BYTES, release_unused

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from pexeso.faces.app.judge import Undo
    from pexeso.faces.service.verbs import ServedIndex


class Agents:
    """The tools for agents as an app, made when the first agent asks: few servers have one."""

    def __init__(self, served: ServedIndex) -> None:
        self._served = served
        self._requested, self._ready = anyio.Event(), anyio.Event()
        self._app: Starlette | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._requested.set()
        await self._ready.wait()
        if self._app is not None:
            await self._app(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(self._serve)
            yield
            group.cancel_scope.cancel()

    async def _serve(self) -> None:
        await self._requested.wait()
        app = await run_sync(self._made)
        async with app.router.lifespan_context(app):  # within one task, as its library asks
            self._app = app
            self._ready.set()
            await anyio.sleep_forever()

    def _made(self) -> Starlette:
        from pexeso.faces.mcp.server import http_app
        from pexeso.faces.mcp.tool_call import Desk

        return http_app(Desk(self._served), path=AGENTS_PATH)


def agents_of(served: ServedIndex) -> Agents | None:
    """Return the tools for agents; None where the extra ``mcp`` is not installed."""
    return None if find_spec("mcp") is None else Agents(served)


# Each is answered as a page, and with `.json` behind its path as a document.
#
# They are imported on first use: the first page needs little of the package.
PAGES = {
    "/": "lake:home",
    "/tables/{table}": "search:columns",
    "/tables/{table}/search": "search:search",
    "/tables/{table}/match": "search:match",
    "/tables/{table}/join": "actions:join",
    "/lake": "lake:tables",
    "/lake/table": "lake:table",
    "/lake/names": "lake:offered_names",
    "/lake/samples": "lake:samples",
    "/lake/left-out": "lake:left_out",
    "/graph": "graph:graph",
    "/redundancy": "lake:redundancy",
    "/judge": "judge:judge",
    "/acquire": "lake:acquire",
}


@cache
def handler_of(path: str) -> Handler:
    module, _, name = PAGES[path].partition(":")
    return getattr(import_module(f"pexeso.faces.app.{module}"), name)


@cache
def import_all() -> None:
    for path in PAGES:
        handler_of(path)


_log = logging.getLogger(__name__)

# What a form may have in addition to the file or text in it.
FORM_BYTES = 64 << 10

_STATUS = {UnknownTableError: 404, UnknownJobError: 404, TooLargeError: 413}


def create_app(
    pages: Pages,
    *,
    access: Access,
    hosts: Collection[str],
    cookie: str = "pexeso",
    agents: Agents | None = None,
) -> ASGIApp:
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
        is_for_agents = scope["type"] == "http" and scope["path"] == AGENTS_PATH
        await (agents if is_for_agents else app)(scope, receive, send)

    return either


def _routes(pages: Pages) -> list[Route]:
    routes = [Route(f"{FOLDER}/{{name}}", asset_answer)]
    for path in PAGES:
        # A part of a path may be anything, and the first route that fits is taken.
        as_json = f"{'/index' if path == '/' else path}.json"
        routes.append(Route(as_json, _answers(pages, path, as_json=True), methods=["GET"]))
        routes.append(Route(path, _answers(pages, path), methods=["GET"]))
    routes += _job_routes(pages)
    from pexeso.faces.app import actions, reconcile

    return [*routes, *actions.routes(pages), *reconcile.routes(pages)]


def _answers(pages: Pages, path: str, *, as_json: bool = False):
    def answer(request: Request) -> Response:
        handler = handler_of(path) if pages.has_index else start_page
        if as_json:
            response = _json(handler(pages, request))
            release_unused(LARGE_BYTES)
            return response

        def page() -> Response:
            from pexeso.faces.app.judge import undo_of

            undo = undo_of(pages, request) if pages.has_index else None
            response = _html(pages, handler(pages, request), request, undo)
            release_unused(LARGE_BYTES)
            return response

        if request.headers.get("hx-request") == "true" or not pages.has_index:
            return page()
        query = request.url.query
        address = f"{request.url.path}{'?' if query else ''}{query}"
        job = pages.jobs.joined(address, page, TITLES.get(path, "Searching"))
        if job.ended.wait(PATIENCE) and not job.is_cancelled:
            return job.result()
        job.is_awaited = True
        return _html(pages, job_page(pages, job), request)

    return answer


def _job_routes(pages: Pages) -> list[Route]:
    def show(request: Request) -> Response:
        """Answer a script that asks how far a job is, or lead to what it made."""
        job = pages.jobs[request.path_params["job"]]
        is_script = request.headers.get("hx-request") == "true"
        if job.is_cancelled != is_script and not (is_script and job.ended.is_set()):
            return _html(pages, job_page(pages, job), request)
        target = request.url.path if job.is_cancelled else job.address
        if is_script:
            return Response(headers={"HX-Redirect": target})
        return RedirectResponse(target, status_code=303)

    def cancel(request: Request) -> Response:
        job = pages.jobs[request.path_params["job"]]
        job.is_awaited = True
        job.cancel()
        return RedirectResponse(f"/jobs/{job.id}", status_code=303)

    return [
        Route("/jobs/{job}", show, methods=["GET"]),
        Route("/jobs/{job}/cancel", cancel, methods=["POST"]),
    ]


def _html(pages: Pages, page: Page, request: Request, undo: Undo | None = None) -> Response:
    # A script shows no part of an answer that says it failed.
    is_part = page.fragment is not None and request.headers.get("hx-request") == "true"
    return HTMLResponse(
        page.html(pages, request, undo=undo),
        status_code=200 if is_part else page.status,
        headers={"Vary": "HX-Request"},
        background=BackgroundTask(_prepare, pages),
    )


def _prepare(pages: Pages) -> None:
    import_all()
    if pages.has_index:
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
        sentences = {404: "There is no such page.", 405: "This page does not answer this method."}
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

    return {PexesoError: known, HTTPException: http, ClientDisconnect: gone, Exception: unknown}
