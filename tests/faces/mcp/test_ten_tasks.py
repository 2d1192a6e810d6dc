"""Ten questions with known answers, asked over both transports.

Each is a script of calls whose arguments come from the question and from earlier answers alone.
"""

import os
import sys

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.faces.mcp.conftest import CITIES
from tests.faces.mcp.test_serving import served
from tests.long_runs import long_but


class Agent:
    """A client that calls tools; an error of a tool ends its task."""

    def __init__(self, client):
        self._client = client

    async def call(self, tool, **arguments):
        result = await self._client.call_tool(tool, arguments)
        assert not result.is_error, result.content[0].text
        return result.structured_content

    async def pages(self, tool, name, **arguments):
        """Return all entries of a list, page by page."""
        entries, offset = [], 0
        while offset is not None:
            answer = await self.call(tool, offset=offset, limit=3, **arguments)
            assert len(answer[name]) <= 3
            entries += answer[name]
            offset = answer["next_offset"]
        assert len(entries) == answer["total"]
        return entries


async def joins_of_a_column(agent):
    """Which columns hold the names of the cities in another spelling?"""
    joins = await agent.pages(
        "find_joins", "candidates", column="cities.csv:city", fold_copies=False
    )
    return "visits.csv:place" in [one["lake_column"] for one in joins if one["joinability"] == 1]


async def a_cell_of_a_join(agent):
    """How many visits had Rome?"""
    query = {"values": ["Rome"]}
    joins = await agent.pages("find_joins", "candidates", fold_copies=False, **query)
    [column] = [one["lake_column"] for one in joins if one["lake_column"].startswith("visits")]
    joined = await agent.call("preview_join", lake_column=column, **query)
    return joined["rows"][0][joined["names"].index("visits")]


async def values_that_are_nowhere(agent):
    """Which of these names is no city of the lake?"""
    query = {"values": ["Oslo", "Xyzzyx"], "lake_column": "visits.csv:place"}
    return [
        entry["query"]
        for entry in await agent.pages("explain_match", "entries", what="unmatched", **query)
    ]


async def pairs_that_match(agent):
    """As what is Oslo written among the visits?"""
    query = {"values": ["Oslo", "Rome"], "lake_column": "visits.csv:place"}
    pairs = await agent.pages("explain_match", "entries", **query)
    return {pair["query"]: pair["value"] for pair in pairs}["Oslo"]


async def a_statement(agent):
    """What joins cities with visits in SQL, and how many rows come of it?"""
    import duckdb

    query = {"column": "cities.csv:city", "lake_column": "visits.csv:place"}
    answer = await agent.call("join_sql", how="inner", max_tokens=20_000, **query)
    with duckdb.connect() as connection:
        connection.execute(answer["your_table"])
        connection.execute(answer["lake_table"])
        return len(connection.sql(answer["sql"]).fetchall())


async def a_rule(agent):
    """By what rule does an address follow from a city?"""
    query = {"column": "cities.csv:city", "lake_column": "mails.csv:mail"}
    answer = await agent.call("learn_transformation", **query)
    return "there.org" in answer["program"], answer["coverage"]


async def a_key_of_two_columns(agent):
    """Which table can the games be joined with by year and city?"""
    joins = await agent.pages(
        "find_composite_joins", "candidates", table="games.csv", key=["year", "city"]
    )
    return "hosts.csv" in [one["table"] for one in joins]


async def a_table_that_could_go(agent):
    """Which table is held by another one?"""
    answer = await agent.call("find_redundancy")
    edges = await agent.pages("find_redundancy", "entries")
    return answer["delete"], [(edge["child"], edge["parent"]) for edge in edges]


async def joins_between_tables(agent):
    """Which columns share all values of the cities of part.csv?"""
    edges = await agent.pages("join_graph", "edges", table="part.csv", min_joinability=1.0)
    whole = await agent.pages("join_graph", "edges", min_joinability=1.0)
    assert [edge for edge in whole if edge["lake_column"].startswith("part.csv:")] == edges
    return [edge["joins"] for edge in edges if edge["lake_column"] == "part.csv:city"]


async def what_is_left_out(agent):
    """Why is notes.txt in no answer?"""
    entries = await agent.pages("describe_lake", "entries", what="left_out", text="notes")
    return [entry["reason"] for entry in entries if entry["table"] == "notes.txt"]


TASKS = {
    joins_of_a_column: lambda answer: answer,
    a_cell_of_a_join: lambda answer: str(answer) == "100",
    values_that_are_nowhere: lambda answer: answer == ["Xyzzyx"],
    pairs_that_match: lambda answer: answer == "OSLO",
    a_statement: lambda answer: answer == len(CITIES),
    a_rule: lambda answer: answer == (True, 1.0),
    a_key_of_two_columns: lambda answer: answer,
    a_table_that_could_go: lambda answer: answer == (["part.csv"], [("part.csv", "games.csv")]),
    joins_between_tables: lambda answer: {"games.csv:city", "hosts.csv:c"} <= {*answer},
    what_is_left_out: lambda answer: answer == ["prose, not delimited text"],
}


@pytest.mark.parametrize("transport", long_but(["stdio"], ["stdio", "http"]))
def test_ten_tasks(hostile_index, transport):
    async def run(where):
        with anyio.fail_after(240):
            async with Client(where) as client:
                return {task.__name__: await task(Agent(client)) for task in TASKS}

    if transport == "stdio":
        arguments = ["-m", "pexeso", "mcp", str(hostile_index)]
        server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        answers = anyio.run(run, stdio_client(server))
    else:
        with served(hostile_index) as port:
            answers = anyio.run(run, f"http://127.0.0.1:{port}/mcp")
    assert len(answers) == 10
    wrong = {
        task.__name__: answers[task.__name__]
        for task, is_right in TASKS.items()
        if not is_right(answers[task.__name__])
    }
    assert wrong == {}
