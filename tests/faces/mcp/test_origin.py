"""Which hosts and origins of requests are answered over HTTP."""

import pytest
from starlette.testclient import TestClient

from pexeso.faces.mcp.server import http_app
from pexeso.faces.mcp.tool_call import Desk
from pexeso.faces.service.verbs import ServedIndex

PORT = 8765
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


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
