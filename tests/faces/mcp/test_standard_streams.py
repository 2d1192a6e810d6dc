"""Whatever line comes in, the server answers it, goes on, and leaves no trace.

PEXESO_FUZZED_LINES=5000 for more random ones.
"""

import json
import logging
import os
import random
import subprocess
import sys

import anyio
from answered_lines import BEGIN, answered, request

from pexeso.faces.mcp.tool_call import Desk
from pexeso.faces.service.verbs import ServedIndex

N_LINES = int(os.environ.get("PEXESO_FUZZED_LINES", "600"))
SERVE = """
from pexeso.faces.mcp.tool_call import Desk
from pexeso.faces.mcp.server import serve_stdio
from pexeso.faces.service.verbs import ServedIndex
serve_stdio(Desk(ServedIndex("lake.pexeso")))
"""

MALFORMED = {
    "not json": -32700,
    "": -32700,
    "{": -32700,
    "[" * 100_000: -32700,
    '{"jsonrpc":"2.0","id":1,"method":"ping"} x': -32700,
    "[]": -32600,
    "null": -32600,
    "1": -32600,
    '"ping"': -32600,
    "{}": -32600,
    '[{"jsonrpc":"2.0","id":1,"method":"ping"}]': -32600,
    '{"jsonrpc":"2.0","id":1}': -32600,
    '{"jsonrpc":"1.0","id":1,"method":"ping"}': -32600,
    '{"id":1,"method":"ping"}': -32600,
    '{"jsonrpc":"2.0","id":null,"method":"ping"}': -32600,
    '{"jsonrpc":"2.0","id":{},"method":"ping"}': -32600,
    '{"jsonrpc":"2.0","id":true,"method":"ping"}': -32600,
    '{"jsonrpc":"2.0","id":1.5,"method":"ping"}': -32600,
    '{"jsonrpc":"2.0","id":1,"method":5}': -32600,
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}': -32600,
}


def answers_of(lines, tmp_path):
    """Return what a process answers, which must leave no trace."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    try:
        for line in lines:
            process.stdin.write(line.encode("utf-8", "surrogatepass") + b"\n")
        process.stdin.flush()
        answers = []
        while not answers or answers[-1].get("id") != "end":
            answers.append(json.loads(process.stdout.readline()))
        _, log = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait(30)
    assert log == b""
    return answers


def test_malformed_lines_are_answered_with_errors(tmp_path):
    first, *rest = map(json.dumps, BEGIN)
    requests = [
        request("prompt", "prompts/get", name="no\u202esuch"),
        request("resource", "resources/read", uri="file:///etc/passwd"),
        request("method", "no/such"),
        request("end", "ping"),
    ]
    answers = answers_of([*MALFORMED, "\ud800", first, *rest, *requests], tmp_path)
    faults = [answer for answer in answers if answer["id"] is None]
    assert [answer["error"]["code"] for answer in faults] == [*MALFORMED.values(), -32700]
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id["prompt"]["error"]["code"] == -32602
    assert by_id["prompt"]["error"]["message"].startswith("There is no prompt")
    assert by_id["resource"]["error"]["code"] == -32602
    assert by_id["method"]["error"]["code"] == -32601
    assert by_id["end"]["result"] == {}


def test_random_lines_are_answered_or_are_notifications(caplog):
    draw = random.Random(20_261_128)
    seeds = [*(text for text in MALFORMED if len(text) < 200), *map(json.dumps, BEGIN)]
    seeds += [
        request(number, method, **params)
        for number, (method, params) in enumerate(
            [
                ("ping", {}),
                ("tools/list", {}),
                ("prompts/get", {"name": "a", "arguments": {"b": "c"}}),
                ("prompts/list", {}),
                ("resources/read", {"uri": "file:///etc/passwd"}),
                ("resources/templates/list", {}),
                ("completion/complete", {"ref": {}}),
                ("tools/call", {"name": "no_such", "arguments": {}}),
                ("tools/call", {"name": "write_join", "arguments": {"output": "/etc/x.csv"}}),
            ]
        )
    ]
    texts = [mutated(draw, seeds) for _ in range(N_LINES)]
    with caplog.at_level(logging.WARNING):
        desk = Desk(ServedIndex("lake.pexeso"))
        lines = [*map(json.dumps, BEGIN), *texts, request("end", "ping")]
        answers = anyio.run(answered, desk, lines)
    assert answers[-1] == {"jsonrpc": "2.0", "id": "end", "result": {}}
    n_no_json = sum(not is_json(text) for text in texts)
    faults = [answer["error"]["code"] for answer in answers if answer["id"] is None]
    assert set(faults) <= {-32700, -32600}
    assert faults.count(-32700) == n_no_json > N_LINES / 10
    assert not any(word in json.dumps(answers) for word in ("Traceback", "root:", "File \\"))
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


def mutated(draw, seeds):
    """Return a line with some characters changed, or some values of its JSON."""
    text = draw.choice(seeds)
    for _ in range(draw.randrange(4)):
        begin = draw.randrange(len(text) + 1)
        end = begin + draw.randint(0, 3)
        piece = draw.choice(
            ["", '"', "{", "}", "[", ",", ":", "null", "1e999", "\\u0000", "é", "0"]
        )
        text = text[:begin] + piece + text[end:]
    return text.replace("\n", " ")


def is_json(text):
    """Return whether a text is JSON as its standard has it."""

    def refuse(name):
        raise ValueError(name)

    try:
        json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return False
    return True
