"""Agents ask at the port of the app, with the key that the server printed."""

import pytest
from app_clients import app_of

from pexeso.faces.app.guard import AGENTS_PATH

HEADERS = {"Accept": "application/json, text/event-stream"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def client(small_index):
    with app_of(small_index, host="localhost:8000", has_agents=True) as client, client:
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
    assert client.enter().post(AGENTS_PATH, json=LIST, headers=HEADERS).status_code == 401


def test_a_page_of_another_site_is_refused_with_the_key_too(client):
    headers = {"Authorization": f"Bearer {client.access.key}", "Origin": "http://evil.example"}
    assert client.post(AGENTS_PATH, json=LIST, headers={**HEADERS, **headers}).status_code == 403
