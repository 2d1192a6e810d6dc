"""Agents beside the app: their tools under the same port, for those who hold the key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import Receive, Scope, Send

    from pexeso.faces.service.served import ServedIndex

PATH = "/mcp"


class Agents:
    """The tools for agents as an app, made when the first agent asks: most servers never have one.

    Agents and pages ask the same open index: models are loaded once, and the turns are for all.
    """

    def __init__(self, served: ServedIndex) -> None:
        self._served = served
        self._requested, self._ready = anyio.Event(), anyio.Event()
        self._app: Starlette | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        self._requested.set()
        await self._ready.wait()
        if self._app is not None:
            await self._app(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer within the block."""
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
        from pexeso.faces.mcp.asking import Desk
        from pexeso.faces.mcp.serving import http_app

        return http_app(Desk(self._served), path=PATH)


def agents_of(served: ServedIndex) -> Agents | None:
    """Return the tools for agents; None where the extra ``mcp`` is not installed."""
    return None if find_spec("mcp") is None else Agents(served)
