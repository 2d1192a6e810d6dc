"""Requests over HTTP that are answered: those to this machine, from no page of another site."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::([0-9]{1,5}))?", re.ASCII)
_SCHEME = "http://"
_DEFAULT_PORT = "80"


class LocalRequests:
    """Middleware that compares host and origin whole: scheme, name and port."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            port = _port(headers.getlist("host"))
            origins = headers.getlist("origin")
            refused = None
            if port is None:
                refused = PlainTextResponse(
                    "The header Host must name this machine: localhost.\n", status_code=421
                )
            elif origins and (not origins[0].startswith(_SCHEME) or port != _port_of(origins)):
                refused = PlainTextResponse(
                    "A page of another site asked for this, and gets no answer.\n", status_code=403
                )
            if refused is not None:
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _port_of(origins: list[str]) -> str | None:
    return _port([origin.removeprefix(_SCHEME) for origin in origins])


def _port(hosts: list[str]) -> str | None:
    """Return the port of the one host that is this machine; None for another, and for several."""
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    return None if match is None else match[1] or _DEFAULT_PORT
