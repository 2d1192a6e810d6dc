"""The server: the tools under the protocol, on standard input and output or on HTTP."""

from __future__ import annotations

import logging
import socket
import sys
from contextlib import redirect_stdout
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    ToolAnnotations,
)
from pydantic import ValidationError
from starlette.applications import Starlette

from pexeso import __version__
from pexeso.errors import InputError
from pexeso.faces.mcp.answers import UNTRUSTED
from pexeso.faces.mcp.asking import MAX_ERROR, Desk, failed, sentence
from pexeso.faces.mcp.origin import LocalRequests
from pexeso.faces.mcp.standard_streams import answered_streams
from pexeso.faces.mcp.tools import ReadTools, WriteTools
from pexeso.runtime.formatting import visible

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
    """A server whose errors are sentences."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; whatever is wrong is a result that says so."""
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
        """Refuse a prompt: there is none."""
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
    """Return a server of the tools; the one that writes is offered where a folder is allowed."""
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
    for tool in ReadTools(desk).all():
        server.add_tool(tool, annotations=_READS, description=_described(tool))
    if desk.allow_write is not None:
        write = WriteTools(desk).write_join
        server.add_tool(write, annotations=_WRITES, description=_described(write))
    return server


def _described(tool: Any) -> str:
    return " ".join(str(tool.__doc__).split())


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
    """Answer on standard input and output until the input ends."""
    # The protocol writes bytes; what shows texts on a terminal may stand in the stream's place.
    with redirect_stdout(sys.__stdout__):
        make_server(desk).run("stdio")


def serve_http(desk: Desk, port: int = DEFAULT_PORT) -> None:
    """Answer on HTTP, to this machine alone, until the process is stopped."""
    import uvicorn

    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
