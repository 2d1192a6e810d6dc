"""Agents beside the app: their tools under the same port, for those who hold the key."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from pexeso.service.served import ServedIndex

PATH = "/mcp"


def agents_app(served: ServedIndex) -> Starlette | None:
    """Return the tools for agents as an app; None where the extra ``mcp`` is not installed.

    Agents and pages ask the same open index: models are loaded once, and the turns are for all.
    """
    if find_spec("mcp") is None:
        return None
    from pexeso.mcp.asking import Desk
    from pexeso.mcp.serving import http_app

    return http_app(Desk(served), path=PATH)


def running(agents: Starlette | None) -> AbstractAsyncContextManager[Any]:
    """Return the context within which the tools answer."""
    return nullcontext() if agents is None else agents.router.lifespan_context(agents)
