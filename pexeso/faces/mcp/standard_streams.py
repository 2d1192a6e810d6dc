"""Standard input and output of the server: whatever line comes in, it is answered."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import TextIOWrapper
from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

_NO_REQUEST = "0\n"
"""A line that the library refuses as no request."""


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
    source: Any = Requests(anyio.wrap_file(lines))
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


class Requests:
    """Lines, in which what looks like a request and has an id of another kind is none.

    The library would take it for a notification, which has no answer.
    """

    def __init__(self, lines: Any) -> None:
        self._lines = lines

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
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
