"""Tests of an index that is updated, deleted or moved while it is served."""

import pytest
from app_clients import AppClient, entered, said

import pexeso

UPDATED = "The index was updated."
GONE = "The index was deleted or moved."


@pytest.fixture
def client(copy):
    with entered(copy) as client:
        yield client


def tables_found(client: AppClient, page: str) -> list[str]:
    answer = client.get(f"{page}/search.json?column=%230&k=all&min_joinability=0.2")
    assert answer.status_code == 200, answer.text
    return [match["table"] for match in answer.json()["results"]]


def test_an_update_changes_nothing_until_the_newest_state_is_asked_for(client, copy):
    page = client.give()
    before = tables_found(client, page)
    assert "cities.csv" in before
    assert UPDATED not in client.get("/lake").text
    pexeso.open_index(copy).delete(["cities.csv"])
    html = client.get("/lake").text
    assert UPDATED in html
    assert 'action="/reload"' in html
    assert "cities.csv" in html
    assert tables_found(client, page) == before
    home = client.post("/reload")
    assert (home.status_code, home.url.path) == (200, "/")
    assert UPDATED not in home.text
    after = tables_found(client, page)
    assert after == [name for name in before if name != "cities.csv"]
    assert after


def test_a_deleted_index_is_told_and_one_that_is_put_back_answers_on(client, copy):
    page = client.give()
    before = tables_found(client, page)
    away = copy.rename(copy.with_name("away.pexeso"))
    for path in ("/", "/lake", f"{page}/search?column=%230", f"{page}?", "/none"):
        answer = client.get(path)
        assert answer.status_code in (200, 400, 404)
        assert GONE in answer.text
    answer = client.post("/reload")
    assert answer.status_code == 400
    assert "There is no index at" in said(answer)
    away.rename(copy)
    assert tables_found(client, page) == before
    assert GONE not in client.get("/").text
