"""The server of agents on lines that are given, without a process."""

import json

import anyio
from mcp.server.stdio import stdio_server

from pexeso.faces.mcp.server import answer_malformed, known_requests, make_server

BEGIN = [
    {
        "jsonrpc": "2.0",
        "id": "begin",
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]


def request(number, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


async def lines_of(texts):
    for text in texts:
        yield text + "\n"
        await anyio.lowlevel.checkpoint()


class Written:
    """The other end of standard output."""

    def __init__(self):
        self.answers, self.ended = [], anyio.Event()

    async def write(self, text):
        answer = json.loads(text)
        self.answers.append(answer)
        if answer.get("id") == "end":
            self.ended.set()

    async def flush(self):
        pass


async def answered(desk, texts):
    """Return what the server of a desk answers to lines, of which one has the id "end"."""
    written = Written()
    server = make_server(desk)._lowlevel_server

    async def endless():
        async for line in lines_of(texts):
            yield line
        await written.ended.wait()

    given, messages = anyio.create_memory_object_stream()
    with anyio.fail_after(300):
        async with (
            stdio_server(stdin=known_requests(endless()), stdout=written) as (received, answers),
            messages,
            anyio.create_task_group() as group,
        ):
            group.start_soon(answer_malformed, received, given, answers)
            await server.run(messages, answers, server.create_initialization_options())
    return written.answers
