"""Several clients ask at once: equal answers, and none waits for the slow call of another."""

import threading

import anyio
import pytest
from mcp.client.client import Client

from pexeso.mcp import telling
from pexeso.mcp.serving import make_server

pytestmark = pytest.mark.spark

QUERY = {"column": "cities.csv:city"}
MATCH = {**QUERY, "lake_column": "visits.csv:place"}
CALLS = (
    ("find_joins", QUERY),
    ("find_joins", {**QUERY, "method": "all"}),
    ("find_joins", {"values": ["Oslo", "ROME", None], "fold_copies": False}),
    ("find_joins", {"file": "mine.csv:town", "method": "containment"}),
    ("explain_match", MATCH),
    ("preview_join", {**MATCH, "join_values": "one-to-one"}),
    ("preview_join", {**MATCH, "by_program": True}),
    ("join_sql", MATCH),
    ("describe_lake", {"what": "columns"}),
    ("learn_transformation", {"column": "mails.csv:mail", "lake_column": "cities.csv:city"}),
    ("find_composite_joins", {"table": "games.csv", "key": ["year", "city"]}),
    ("find_redundancy", {"min_containment": 0.5}),
    ("find_joins", {"column": "no.csv:a"}),
)


async def texts(desk, calls):
    """Return the answers of a client that makes some calls in turn, as they came."""
    async with Client(make_server(desk)) as client:
        return [(await client.call_tool(*call)).content[0].text for call in calls]


def test_clients_at_once_get_the_answers_of_one(desk):
    alone = dict(zip(map(str, CALLS), anyio.run(texts, desk, CALLS), strict=True))
    wrong = []

    async def one(turn):
        calls = CALLS[turn:] + CALLS[:turn]
        for call, text in zip(calls, await texts(desk, calls), strict=True):
            if text != alone[str(call)]:
                wrong.append((call, text))

    async def all_at_once():
        async with anyio.create_task_group() as group:
            for turn in range(0, 12, 2):
                group.start_soon(one, turn)

    anyio.run(all_at_once)
    assert not wrong


def test_a_slow_call_does_not_hold_up_a_quick_one(desk, monkeypatch):
    begun, goes_on, tell = threading.Event(), threading.Event(), telling.lake_frame

    def slowly(*given):
        begun.set()
        assert goes_on.wait(60)
        return tell(*given)

    monkeypatch.setattr(telling, "lake_frame", slowly)
    done = []

    async def ask(tool, **arguments):
        async with Client(make_server(desk)) as client:
            result = await client.call_tool(tool, arguments)
            done.append((tool, result.is_error))

    async def both():
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "describe_lake")
            await anyio.to_thread.run_sync(begun.wait, 60)
            try:
                with anyio.fail_after(30):
                    await ask("find_joins", **QUERY)
            finally:
                goes_on.set()

    anyio.run(both)
    assert done == [("find_joins", False), ("describe_lake", False)]
