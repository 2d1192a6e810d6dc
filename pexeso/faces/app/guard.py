"""Access control: the session of the browser, and the checks that every request passes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from threading import Lock
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pexeso.errors import InputError

TOKEN_FIELD = "token"
AGENTS_PATH = "/mcp"
RECONCILE_PATH = "/reconcile"
_BYTES = 24


class Access:
    """The session of one server, and the link that opens it."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._session = secrets.token_urlsafe(_BYTES)
        self._used: str | None = None
        self._lock = Lock()
        self.token = secrets.token_urlsafe(_BYTES)
        self.key = secrets.token_urlsafe(_BYTES)
        # Who knows it may reconcile, from any program and page: clients send no header.
        self.reconcile_path = f"{RECONCILE_PATH}/{secrets.token_urlsafe(_BYTES)}"

    def exchange(self, token: str) -> str | None:
        """Return the session for a token; None for one that is wrong or was used."""
        with self._lock:
            if secrets.compare_digest(token.encode(), self.token.encode()):
                self._used, self.token = self.token, secrets.token_urlsafe(_BYTES)
                return self._session
            was_right = self._used is not None and secrets.compare_digest(
                token.encode(), self._used.encode()
            )
            if was_right:
                self._used = None  # one new link for each that was used
                self._report(self.token)
        return None

    def knows(self, session: str | None) -> bool:
        return session is not None and secrets.compare_digest(
            session.encode(), self._session.encode()
        )

    def knows_key(self, authorization: str | None) -> bool:
        expected_header = f"Bearer {self.key}".encode()
        return secrets.compare_digest((authorization or "").encode(), expected_header)

    def knows_path(self, path: str) -> bool:
        """Return whether a path is one to reconcile at, with the key in it."""
        begin = "/".join(path.split("/")[:3])
        return secrets.compare_digest(begin.encode(), self.reconcile_path.encode())


_SAFE_METHODS = ("GET", "HEAD")
_METHODS = (*_SAFE_METHODS, "POST")
_MOST_DIGITS = 18

# The browser runs scripts and takes styles from the app's files alone, and none from within a page.
POLICY = "; ".join(
    (
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:",
        "connect-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
    )
)  # fmt: skip

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class TooLargeError(InputError):
    """A request has a larger body than is taken."""


def _too_large(max_body: int) -> TooLargeError:
    return TooLargeError(
        f"A table of at most {max_body:,} bytes is taken here, and this one is larger. Search "
        "with 'pexeso search'."
    )


class Guard:
    """Middleware before all pages; `max_body` is the largest body of a request, in bytes."""

    def __init__(
        self, app: ASGIApp, *, access: Access, hosts: Collection[str], cookie: str, max_body: int
    ) -> None:
        self._app = app
        self._access = access
        self._hosts = frozenset(hosts)
        self._cookie = cookie
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":  # there is none
                await send({"type": "websocket.close", "code": 1008})
                return
            await self._app(scope, receive, send)
            return
        send = _with_headers(send)
        refused = self._refused(scope, Headers(scope=scope))
        if refused is not None:
            await refused(scope, receive, send)
            return
        await self._app(scope, _counted(receive, self._max_body), send)

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the answer to a request that no page is to see; None for all others."""
        host = headers.get("host", "")
        if host not in self._hosts:
            return _refusal(400, f"This server answers only as {', '.join(sorted(self._hosts))}.")
        if not scope["query_string"].isascii():
            return _refusal(400, "An address has other signs than ASCII only as %XX.")
        if scope["method"] not in _METHODS:
            return _refusal(405, f"Only {', '.join(_METHODS)} are answered.")
        is_to_reconcile = self._access.knows_path(scope["path"])
        if not is_to_reconcile and _is_foreign(scope["method"], host, headers):
            return _refusal(
                403, "This request comes from a page of another site, and gets no answer."
            )
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal()):
            return _refusal(400, "Content-Length is no whole number.")
        # Compared by its digits first: a number of many thousand cannot be converted.
        if len(length) > _MOST_DIGITS or int(length) > self._max_body:
            return _refusal(413, str(_too_large(self._max_body)))
        if is_to_reconcile:
            return None
        if scope["path"] == AGENTS_PATH:
            return None if self._access.knows_key(headers.get("authorization")) else _NO_KEY
        return self._without_session(scope, headers)

    def _without_session(self, scope: Scope, headers: Headers) -> Response | None:
        fields = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in fields if name == TOKEN_FIELD]
        known = self._access.knows(_cookie(headers, self._cookie))
        if tokens and scope["method"] == "GET":
            session = None if known else self._access.exchange(tokens[-1])
            if known or session is not None:
                rest = urlencode([field for field in fields if field[0] != TOKEN_FIELD])
                path = "/" + scope["path"].lstrip("/")  # two slashes would name another host
                answer = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
                if session is not None:
                    answer.set_cookie(
                        self._cookie, session, httponly=True, samesite="strict", path="/"
                    )
                return answer
        if known:
            return None
        return _refusal(
            403,
            "This page is for the browser that was opened by the link which 'pexeso serve' "
            "printed. A link works once: if it was used, the terminal shows another one now; "
            "if not, copy it whole.",
        )


_NO_KEY = PlainTextResponse(
    "Agents send the key that 'pexeso serve' printed, as the header 'Authorization: Bearer KEY'.\n",
    status_code=401,
    headers={"WWW-Authenticate": "Bearer"},
)


def _is_foreign(method: str, host: str, headers: Headers) -> bool:
    """Return whether a page that is not ours asks: for a change, or for a part of itself.

    A link to a page of the app may be anywhere.
    """
    is_elsewhere = headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
    if method in _SAFE_METHODS:
        is_link = (
            headers.get("sec-fetch-mode") == "navigate"
            and headers.get("sec-fetch-dest", "document") == "document"
        )
        return is_elsewhere and not is_link
    return is_elsewhere or headers.get("origin") not in (None, f"http://{host}")


def _cookie(headers: Headers, name: str) -> str | None:
    # Those of other programs on this machine come along, whatever is in them.
    return cookie_parser(headers.get("cookie", "")).get(name)


def _counted(receive: Receive, max_body: int) -> Receive:
    """Return what receives a body and raises once it has more bytes than allowed."""
    seen = 0

    async def receive_counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > max_body:
            raise _too_large(max_body)
        return message

    return receive_counted


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in {**HEADERS, "Cache-Control": "no-store"}.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


def _refusal(status: int, sentence: str) -> Response:
    return PlainTextResponse(f"{sentence}\n", status_code=status)
