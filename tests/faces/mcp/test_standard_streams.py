"""Whatever line comes in, the server answers it, goes on, and leaves no trace."""

import json
import os
import subprocess
import sys

from answered_lines import BEGIN, request

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
