"""The server: the tools under the protocol, on standard input and output or on HTTP."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import sys
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout
from io import TextIOWrapper
from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    ErrorData,
    GetPromptResult,
    InputRequiredResult,
    JSONRPCError,
    ToolAnnotations,
)
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pexeso import __version__
from pexeso.errors import InputError
from pexeso.faces.mcp.answers import UNTRUSTED
from pexeso.faces.mcp.tool_call import MAX_ERROR, Desk, failed, sentence
from pexeso.faces.mcp.tools import TOOLS, WRITING
from pexeso.runtime.formatting import visible
from pexeso.runtime.system import reuse_port

# A line that the library refuses as no request.
_NO_REQUEST = "0\n"


@asynccontextmanager
async def answered_streams() -> AsyncIterator[
    tuple[ObjectReceiveStream[SessionMessage | Exception], ObjectSendStream[SessionMessage]]
]:
    """Serve the messages of standard input, of which the malformed ones are answered here.

    While this lasts, standard input is empty for all others, children among them.
    """
    wire = os.dup(sys.stdin.fileno())  # never closed: a thread may still wait for a line of it
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    lines = TextIOWrapper(os.fdopen(wire, "rb", closefd=False), encoding="utf-8", errors="replace")
    given, requests = anyio.create_memory_object_stream[SessionMessage | Exception]()
    source: Any = known_requests(anyio.wrap_file(lines))
    try:
        async with (
            stdio_server(stdin=source) as (received, answers),
            requests,
            anyio.create_task_group() as group,
        ):
            group.start_soon(answer_malformed, received, given, answers)
            yield requests, answers
            group.cancel_scope.cancel()
    finally:
        os.dup2(wire, sys.stdin.fileno())


async def known_requests(lines: AsyncIterable[str]) -> AsyncIterator[str]:
    """Yield lines without requests of odd ids, which the library would take for notifications."""
    async for line in lines:
        yield _NO_REQUEST if _has_wrong_id(line) else line


def _has_wrong_id(line: str) -> bool:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return False  # which the library finds as well
    if not isinstance(message, dict) or "method" not in message or "id" not in message:
        return False
    return type(message["id"]) not in (int, str)


async def answer_malformed(
    received: ObjectReceiveStream[SessionMessage | Exception],
    given: ObjectSendStream[SessionMessage | Exception],
    answers: ObjectSendStream[SessionMessage],
) -> None:
    """Pass messages on until they end, and answer what is none with an error of JSON-RPC."""
    async with received, given:
        async for item in received:
            if isinstance(item, Exception):
                await answers.send(SessionMessage(_error(item)))
            else:
                await given.send(item)


def _error(flaw: Exception) -> JSONRPCError:
    wrong = flaw.errors(include_url=False) if isinstance(flaw, ValidationError) else []
    is_json = not any(one["type"] == "json_invalid" for one in wrong)
    code, message = (
        (INVALID_REQUEST, "The line is JSON, and no request of JSON-RPC 2.0.")
        if is_json
        else (PARSE_ERROR, "The line is not readable as JSON.")
    )
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=message))


_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::([0-9]{1,5}))?", re.ASCII)
_SCHEME = "http://"
_DEFAULT_PORT = "80"


class LocalRequests:
    """Middleware that compares host and origin whole: scheme, name and port."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            port = _port(headers.getlist("host"))
            origins = headers.getlist("origin")
            own = [origin.removeprefix(_SCHEME) for origin in origins]
            refused = None
            if port is None:
                refused = PlainTextResponse(
                    "The header Host must name this machine: localhost.\n", status_code=421
                )
            elif origins and (not origins[0].startswith(_SCHEME) or port != _port(own)):
                refused = PlainTextResponse(
                    "This request comes from a page of another site, and gets no answer.\n",
                    status_code=403,
                )
            if refused is not None:
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _port(hosts: list[str]) -> str | None:
    """Return the port of the one host that is this machine; None for another, and for several."""
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    return None if match is None else match[1] or _DEFAULT_PORT


NAME, HOST, PATH, DEFAULT_PORT = "pexeso", "127.0.0.1", "/mcp", 8765

INSTRUCTIONS = f"""\
pexeso finds the columns of a data lake that a column can be joined with, by similar values.
The usual way is three calls: find_joins with a query; explain_match with the first candidate's
lake_column and the same query; then preview_join or join_sql with the same arguments.
A query is exactly one of column (TABLE:COLUMN of the lake), values (a list) and file (FILE:COLUMN).
Lists are pages: where truncated is true, call again with offset=next_offset. total counts all.
{UNTRUSTED} Characters that are not seen are written by their numbers, long texts are cut, with
their length behind them."""

_READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_WRITES = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)


class Server(MCPServer[Any]):
    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        try:
            self._require_arguments(name, arguments)
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            return failed(_said(error))

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        raise MCPError(INVALID_PARAMS, f"There is no prompt {visible(name, MAX_ERROR)!r}.")

    async def run_stdio_async(self) -> None:
        """Answer on standard input and output until the input ends, malformed lines too."""
        async with answered_streams() as (received, answers):
            server = self._lowlevel_server
            await server.run(received, answers, server.create_initialization_options())

    def _require_arguments(self, name: str, arguments: dict[str, Any]) -> None:
        """Refuse a tool or an argument that there is not; the library passes over the latter."""
        tools = {tool.name: tool for tool in self._tool_manager.list_tools()}
        if name not in tools:
            raise ToolError(f"There is no tool {name!r}. The tools are {', '.join(tools)}.")
        allowed = tools[name].parameters["properties"]
        unknown = [argument for argument in arguments if argument not in allowed]
        if unknown:
            raise ToolError(
                f"{name} has no argument {unknown[0]!r}. It takes {', '.join(allowed)}."
            )
        for argument, value in arguments.items():
            schema = allowed[argument]
            kinds = {kind.get("type") for kind in (schema, *schema.get("anyOf", ()))}
            # The library would take true for 1.
            if isinstance(value, bool) and kinds & {"number", "integer"} and "boolean" not in kinds:
                raise ToolError(f"{argument} must be a number. Got {str(value).lower()} instead.")


def _said(error: ToolError) -> str:
    """Return the sentence of an error, without what the library puts before it."""
    cause = error.__cause__
    if isinstance(cause, ValidationError):
        wrong = [
            f"{'.'.join(map(str, flaw['loc'][:1]))}: {flaw['msg']}" for flaw in cause.errors()[:5]
        ]
        return f"Arguments are not as the schema says: {'; '.join(dict.fromkeys(wrong))}."
    if isinstance(cause, ToolError):
        return str(cause)
    if isinstance(error, UnexpectedToolError) and isinstance(cause, Exception):
        return sentence(cause)
    return str(error)


def make_server(desk: Desk) -> Server:
    """Return a server of the tools; those that write are offered where a folder is allowed."""
    handlers = list(logging.getLogger().handlers)
    level = logging.getLogger().level
    server = Server(
        NAME,
        title="pexeso: joins in a data lake",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
    )
    # The library sets up the log of the whole process.
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)
    for name, tool in TOOLS.items():
        writes = name in WRITING
        if not writes or desk.allow_write is not None:
            server.add_tool(tool.at(desk), annotations=_WRITES if writes else _READS)
    return server


def http_app(desk: Desk, *, path: str = PATH) -> Starlette:
    """Return the server as a web app, to run alone or inside another one."""
    app = make_server(desk).streamable_http_app(
        streamable_http_path=path,
        stateless_http=True,
        # The library would compare how a host and an origin begin.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.add_middleware(LocalRequests)
    return app


def serve_stdio(desk: Desk) -> None:
    # The protocol writes bytes; what shows texts on a terminal may have replaced the stream.
    with redirect_stdout(sys.__stdout__):
        make_server(desk).run("stdio")


def serve_http(desk: Desk, port: int = DEFAULT_PORT) -> None:
    """Answer on HTTP, to this machine alone, until the process is stopped."""
    import uvicorn

    listening = socket.socket()
    reuse_port(listening)
    with listening:
        try:
            listening.bind((HOST, port))
        except OSError as error:
            raise InputError(
                f"Port {port} cannot be used ({error.strerror}): choose another one by --port; 0 "
                "takes any that is free."
            ) from error
        listening.listen()
        sys.stderr.write(f"Serving http://{HOST}:{listening.getsockname()[1]}{PATH}\n")
        sys.stderr.flush()
        config = uvicorn.Config(http_app(desk), log_level="warning", lifespan="on")
        uvicorn.Server(config).run(sockets=[listening])
