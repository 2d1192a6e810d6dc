"""Several clients at once get equal answers without waiting for each other, and hear progress."""

import threading
from contextlib import contextmanager

import anyio
import pytest
from mcp.client.client import Client

from pexeso.faces.mcp import presentation
from pexeso.faces.mcp.server import make_server
from pexeso.redundancy import search as redundancy

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


async def texts(server, calls):
    """Return the answers of a client that makes some calls in turn, as they came."""
    async with Client(server) as client:
        return [(await client.call_tool(*call)).content[0].text for call in calls]


def test_clients_at_once_get_the_answers_of_one(desk):
    server = make_server(desk)
    alone = dict(zip(map(str, CALLS), anyio.run(texts, server, CALLS), strict=True))
    wrong = []

    async def one(turn):
        calls = CALLS[turn:] + CALLS[:turn]
        for call, text in zip(calls, await texts(server, calls), strict=True):
            if text != alone[str(call)]:
                wrong.append((call, text))

    async def all_at_once():
        async with anyio.create_task_group() as group:
            for turn in range(0, 12, 4):
                group.start_soon(one, turn)

    anyio.run(all_at_once)
    assert not wrong


def test_a_slow_call_does_not_hold_up_a_quick_one(desk, monkeypatch):
    begun, goes_on, present = threading.Event(), threading.Event(), presentation.lake_frame

    def slowly(*given):
        begun.set()
        assert goes_on.wait(60)
        return present(*given)

    monkeypatch.setattr(presentation, "lake_frame", slowly)
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


@pytest.mark.parametrize(
    ("tool", "arguments", "steps"),
    [
        (
            "find_redundancy",
            {},
            [
                (0, "Comparing all tables."),
                (1 / 6, "Comparing all tables: schema."),
                (2 / 6, "Comparing all tables: types."),
                (3 / 6, "Comparing all tables: exact."),
                (4 / 6, "Comparing all tables: plan."),
                (1, "Done."),
            ],
        ),
        (
            "find_composite_joins",
            {"table": "games.csv", "key": ["year", "city"]},
            [(0, "Looking for keys."), (1 / 2, "Searching by the key."), (1, "Done.")],
        ),
    ],
)
def test_stages_are_told_as_they_begin(desk, tool, arguments, steps):
    heard = []

    async def hear(progress, total, message):
        assert total == 1
        heard.append((progress, message))

    async def ask():
        async with Client(make_server(desk)) as client:
            return await client.call_tool(tool, arguments, progress_callback=hear)

    assert not anyio.run(ask).is_error
    assert heard == steps


def test_a_client_that_has_gone_fails_no_work(desk, monkeypatch):
    begun, goes_on, finished = (threading.Event() for _ in range(3))
    compare, tell = redundancy.containments_of, presentation.redundancy

    def slowly(*given, **options):
        begun.set()
        assert goes_on.wait(60)
        return compare(*given, **options)

    def noted(*given):
        finished.set()
        return tell(*given)

    monkeypatch.setattr(redundancy, "containments_of", slowly)
    monkeypatch.setattr(presentation, "redundancy", noted)

    async def hear(*_):
        pass

    async def leave_while_it_works():
        async with Client(make_server(desk)) as client, anyio.create_task_group() as group:
            call = client.call_tool
            group.start_soon(lambda: call("find_redundancy", {}, progress_callback=hear))
            assert await anyio.to_thread.run_sync(begun.wait, 60)
            group.cancel_scope.cancel()
        # The server has ended the call by now, as it ends with its client.
        goes_on.set()
        assert await anyio.to_thread.run_sync(finished.wait, 60)

    anyio.run(leave_while_it_works)


def test_a_call_whose_client_left_while_it_waited_is_not_begun(desk, monkeypatch):
    waits, free, left, calls = threading.Event(), threading.Event(), threading.Event(), []
    turn = type(desk.served).turn

    @contextmanager
    def late(served):
        waits.set()
        try:
            assert free.wait(60)
            with turn(served) as service:
                yield service
        finally:
            left.set()

    monkeypatch.setattr(type(desk.served), "turn", late)
    monkeypatch.setattr(presentation, "lake_frame", lambda *given: calls.append(given))

    async def leave_while_it_waits():
        async with Client(make_server(desk)) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "describe_lake", {})
            assert await anyio.to_thread.run_sync(waits.wait, 60)
            group.cancel_scope.cancel()
        # The server has ended the call by now, as it ends with its client.
        free.set()
        assert await anyio.to_thread.run_sync(left.wait, 60)

    anyio.run(leave_while_it_waits)
    assert not calls
