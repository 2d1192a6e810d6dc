"""The server over standard streams and over HTTP, and what clients see of it."""

import json
import logging
import os
import re
import subprocess
import sys
from contextlib import contextmanager

import anyio
import httpx
import pytest
from click.testing import CliRunner
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from processes import ran
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from write_tools import FILE, tools_text

from pexeso.faces.cli.main import cli
from pexeso.faces.mcp.server import http_app, make_server
from pexeso.faces.mcp.tool_call import Desk
from pexeso.faces.service.verbs import ServedIndex

QUERY = {"column": "cities.csv:city"}
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
PORT = 8765


def test_tools_are_those_that_are_committed():
    """After a change run ``tests/faces/mcp/write_tools.py``, and look at the diff."""
    assert tools_text() == FILE.read_text(encoding="utf-8")


def test_every_tool_says_what_it_does_and_answers():
    tools = json.loads(FILE.read_text(encoding="utf-8"))["tools"]
    reads = [tool["name"] for tool in tools if tool["annotations"]["readOnlyHint"]]
    assert len(reads) == 10
    assert [tool["name"] for tool in tools if tool["name"] not in reads] == [
        "write_join",
        "judge_join",
    ]
    for tool in tools:
        assert tool["description"]
        assert "note" in tool["outputSchema"]["properties"]
        for name, schema in tool["inputSchema"]["properties"].items():
            assert schema.get("description"), f"{tool['name']}: {name}"


def test_writing_is_offered_where_a_folder_is_allowed():
    async def names(desk):
        async with Client(make_server(desk)) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    offered = anyio.run(names, Desk(ServedIndex("lake.pexeso")))
    assert {"write_join", "judge_join"}.isdisjoint(offered)


def test_standard_streams(hostile_index, call):
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "pexeso", "mcp", str(hostile_index)],
        env=dict(os.environ),
    )

    async def ask():
        with anyio.fail_after(240):
            async with Client(stdio_client(server)) as client:
                answer = await client.call_tool("find_joins", QUERY)
                wrong = await client.call_tool("find_joins", {"column": "no.csv:a"})
                return answer, wrong

    answer, wrong = anyio.run(ask)
    assert answer.structured_content == call("find_joins", **QUERY)
    assert wrong.is_error
    assert "no table 'no.csv'" in wrong.content[0].text


@contextmanager
def served(index):
    """Serve an index on a free port; yield the port, and end the process whatever happens."""
    command = [sys.executable, "-m", "pexeso", "mcp", str(index), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        yield int(re.fullmatch(r"Serving http://127\.0\.0\.1:(\d+)/mcp\n", line)[1])
    finally:
        process.kill()
        process.wait(30)
        process.stderr.close()


def test_http(hostile_index, call):
    async def ask(port):
        with anyio.fail_after(240):
            async with Client(f"http://127.0.0.1:{port}/mcp") as client:
                return await client.call_tool("find_joins", QUERY)

    with served(hostile_index) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        assert anyio.run(ask, port).structured_content == call("find_joins", **QUERY)
        result = CliRunner().invoke(cli, ["mcp", str(hostile_index), "--port", str(port)])
        assert result.exit_code == 2
        assert f"Port {port} cannot be used" in result.output
        for headers, status in (
            ({"Host": "evil.example"}, 421),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": f"http://localhost:{port}"}, 200),
        ):
            answer = httpx.post(url, json=LIST, headers={**JSON, **headers}, timeout=60)
            assert answer.status_code == status


@pytest.fixture(scope="module")
def client():
    app = http_app(Desk(ServedIndex("lake.pexeso")))
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        yield client


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        (f"http://127.0.0.1:{PORT}", 200),
        (f"http://localhost:{PORT}", 200),
        (f"http://[::1]:{PORT}", 200),
        ("http://localhost", 403),
        ("http://localhost:8766", 403),
        (f"https://localhost:{PORT}", 403),
        (f"localhost:{PORT}", 403),
        (f"http://http://localhost:{PORT}", 403),
        (f"http://localhost:{PORT}@evil.example", 403),
        (f"http://localhost:{PORT}.evil.example", 403),
        (f"http://localhost:evil@evil.example:{PORT}", 403),
        (f"http://localhost.evil.example:{PORT}", 403),
        (f"http://evil.example:{PORT}", 403),
        (f"http://evillocalhost:{PORT}", 403),
        (f"http://localhost:{PORT}/", 403),
        (f"http://localhost:{PORT} http://evil.example", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_an_origin_is_compared_whole(client, origin, status):
    headers = JSON if origin is None else {**JSON, "Origin": origin}
    assert client.post("/mcp", json=LIST, headers=headers).status_code == status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (f"localhost:{PORT}", 200),
        ("[::1]", 200),
        ("evil.example", 421),
        (f"localhost:{PORT}@evil.example", 421),
        ("localhost:evil", 421),
        ("localhost.evil.example", 421),
        ("localhost:", 421),
        ("", 421),
    ],
)
def test_a_host_is_compared_whole(client, host, status):
    answer = client.post("/mcp", json=LIST, headers={**JSON, "Host": host})
    assert answer.status_code == status


def test_several_origins_are_none(client):
    headers = [*JSON.items(), ("Origin", f"http://localhost:{PORT}"), ("Origin", "http://a.b")]
    assert client.post("/mcp", json=LIST, headers=headers).status_code == 403


def test_bodies_that_are_no_requests_are_answered(client):
    for body, code in (("not json", -32700), ("[", -32700), ("[]", -32600), ('{"id": 1}', None)):
        answer = client.post("/mcp", content=body, headers=JSON)
        assert answer.status_code == 400
        assert "Traceback" not in answer.text
        if code is not None:
            assert answer.json()["error"]["code"] in (code, -32602, -32700)


def test_mounted_in_another_app():
    app = http_app(Desk(ServedIndex("lake.pexeso")), path="/")
    outer = Starlette(
        routes=[Mount("/mcp", app)], lifespan=lambda _: app.router.lifespan_context(app)
    )
    with TestClient(outer, base_url="http://127.0.0.1:80") as client:
        answer = client.post("/mcp/", json=LIST, headers=JSON)
        assert answer.status_code == 200
        assert "find_joins" in answer.text
        other = client.post("/mcp/", json=LIST, headers={**JSON, "Host": "evil.example"})
        assert other.status_code == 421


def test_bad_arguments_end_the_command_with_a_sentence(tmp_path):
    nowhere = str(tmp_path / "nowhere.pexeso")
    for arguments, said in (
        (["mcp", nowhere], "There is no index"),
        (["mcp", nowhere, "--allow-read", str(tmp_path / "no")], "is no folder"),
        (["mcp", nowhere, "--port", "70000"], "70000 is not in the range 0<=x<=65535"),
    ):
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code != 0
        assert said in done.output
        assert "Traceback" not in done.output


def test_without_the_package_a_sentence_says_what_to_install(tmp_path):
    program = (
        "import sys; sys.modules['mcp'] = None\n"
        "from pexeso.faces.cli.main import main; main(['mcp', 'lake.pexeso'])"
    )
    done = ran([sys.executable, "-c", program])
    assert done.returncode == 1
    assert "pip install 'pexeso[mcp]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_pexeso_alone_does_not_bring_the_protocol():
    program = "import sys, pexeso, pexeso.faces.cli.main; print('mcp' in sys.modules)"
    done = ran([sys.executable, "-c", program])
    assert done.stdout == "False\n", done.stderr


def test_the_log_of_the_process_stays_as_it_is():
    before = list(logging.getLogger().handlers), logging.getLogger().level
    make_server(Desk(ServedIndex("lake.pexeso")))
    assert (list(logging.getLogger().handlers), logging.getLogger().level) == before
