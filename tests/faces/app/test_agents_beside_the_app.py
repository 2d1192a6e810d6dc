"""Agents ask at the port of the app, with the key that the server printed."""

import pytest
from starlette.testclient import TestClient

from pexeso.faces.app.app import agents_of, create_app
from pexeso.faces.app.guard import AGENTS_PATH, Access
from pexeso.faces.app.page import Pages
from pexeso.faces.app.tables import QueryTables
from pexeso.faces.service.verbs import ServedIndex

HEADERS = {"Accept": "application/json, text/event-stream"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def client(small_index):
    with QueryTables(1 << 20) as tables:
        served, access = ServedIndex(str(small_index)), Access(lambda token: None)
        app = create_app(
            Pages(served, tables),
            access=access,
            hosts=("localhost:8000",),
            agents=agents_of(served),
        )
        with TestClient(app, base_url="http://localhost:8000") as client:
            client.access = access
            yield client


def test_tools_are_listed_to_who_has_the_key(client):
    authorization = {"Authorization": f"Bearer {client.access.key}"}
    answer = client.post(AGENTS_PATH, json=LIST, headers={**HEADERS, **authorization})
    assert answer.status_code == 200, answer.text
    assert '"find_joins"' in answer.text


@pytest.mark.parametrize("given", [None, "", "Bearer ", "Bearer guessed", "Basic YTpi"])
def test_without_the_key_nothing_is_said(client, given):
    headers = HEADERS if given is None else {**HEADERS, "Authorization": given}
    answer = client.post(AGENTS_PATH, json=LIST, headers=headers)
    assert answer.status_code == 401
    assert "find_joins" not in answer.text


def test_the_key_opens_no_page_and_a_session_no_tools(client):
    authorization = {"Authorization": f"Bearer {client.access.key}"}
    assert client.get("/lake", headers=authorization).status_code == 403
    assert client.get(f"/?token={client.access.token}").status_code == 200
    assert client.post(AGENTS_PATH, json=LIST, headers=HEADERS).status_code == 401


def test_a_page_of_another_site_is_refused_with_the_key_too(client):
    headers = {"Authorization": f"Bearer {client.access.key}", "Origin": "http://evil.example"}
    assert client.post(AGENTS_PATH, json=LIST, headers={**HEADERS, **headers}).status_code == 403
