"""Calls of random arguments end in an answer or a sentence, and read nothing outside the lake."""

import json
import os
import random

import anyio
import pytest
from mcp.client.client import Client
from write_tools import FILE

from pexeso.mcp.budget import MAX_TOKENS, count_tokens
from pexeso.mcp.serving import make_server

pytestmark = pytest.mark.spark

N_CALLS = int(os.environ.get("PEXESO_FUZZED_CALLS", "300"))
SECRET = "the secret of another folder"

_NEVER = ("Traceback", "not foreseen", "root:")
"""What no answer has: a stack trace, an error of the program itself, a file of the system."""

TEXTS = (
    *("", ":", "a", "#0", "~", "~0000000000000000", "../secret.csv:a", "secret.csv", "\x00"),
    *("cities.csv", "cities.csv:city", "visits.csv:place", "wide.csv:#3", "named.csv:a:b"),
    *("mine.csv:town", "/etc/passwd", "file:///etc/passwd", "s3://bucket/a.csv:b", "\u202e" * 99),
    *("漢" * 3000, "out.csv", "../out.csv", "{}", "[]", "null", "semantic", "transform", "all"),
    *("games.csv:year,city", "hosts.csv:y,c", "left_out", "columns", "unmatched", "inner"),
)
LISTS = (["Oslo", "ROME", None], [], [1, 2.5, "x" * 5000], ["year", "city"], [[]], ["a", "a"])
RIGHT = {
    "column": "cities.csv:city",
    "lake_column": "visits.csv:place",
    "table": "games.csv",
    "output": "out.csv",
    "overwrite": True,
}
"""Arguments of which some are changed, so that many calls get far."""

OTHERS = (True, False, None, 0, 1, -1, 7, 1000, 20_000, 10**30, 0.3, 1.0, {"a": 1})


def arguments_of(schema, draw):
    """Return some arguments of a tool, most of the kind that it takes."""
    right = draw.random() < 0.7
    given = {name: RIGHT[name] for name in schema["properties"] if right and name in RIGHT}
    for name, told in schema["properties"].items():
        if draw.random() < (0.08 if right else 0.35):
            kinds = json.dumps(told)
            if '"enum"' in kinds and draw.random() < 0.8:
                enum = told.get("enum") or told["anyOf"][0].get("enum")
                given[name] = draw.choice(enum)
            elif '"array"' in kinds and draw.random() < 0.8:
                given[name] = draw.choice(LISTS)
            elif '"string"' in kinds and draw.random() < 0.9:
                given[name] = draw.choice(TEXTS)
            else:
                given[name] = draw.choice((*OTHERS, *LISTS, *TEXTS))
    if draw.random() < 0.02:
        given["nothing"] = 1
    return given


def test_random_calls(desk, tmp_path_factory):
    secret = desk.allow_read[0].parent / "secret.csv"
    secret.write_text(f"a\n{SECRET}\n")
    tools = json.loads(FILE.read_text(encoding="utf-8"))["tools"]
    draw, errors, answers = random.Random(20), 0, 0
    wrong: list[str] = []
    outside = sorted(desk.allow_write.parent.iterdir())

    async def ask_all():
        nonlocal errors, answers, wrong
        async with Client(make_server(desk)) as client:
            for _ in range(N_CALLS):
                tool = draw.choice(tools)
                asked = arguments_of(tool["inputSchema"], draw)
                result = await client.call_tool(tool["name"], asked)
                text = result.content[0].text
                where = f"{tool['name']} {str(asked)[:300]}: {text[:300]}"
                hidden = [each for each in (*_NEVER, SECRET) if each in text]
                wrong += [f"{where} ({each})" for each in hidden]
                if result.is_error:
                    errors += 1
                    wrong += [where] if len(text) > 1000 or "\n" in text else []
                else:
                    answers += 1
                    too_long = count_tokens(result.structured_content) > MAX_TOKENS
                    wrong += [where] if too_long else []

    anyio.run(ask_all)
    for path in desk.allow_write.iterdir():
        path.unlink()  # of the allowed folder, which other tests look into
    assert not wrong
    assert sorted(desk.allow_write.parent.iterdir()) == outside
    assert errors > N_CALLS // 10
    assert answers > N_CALLS // 5
