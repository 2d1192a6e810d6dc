"""Without an index the app asks for files, indexes them, and is then the app of their index."""

import csv
import io
import re
import threading
import time

import pytest
from app_clients import CITIES, entered, said

from pexeso.faces.app.start import Start

FRUIT = "fruit,price\napple,1\npear,2\nplum,3\n"
TOWNS = "town,mayor\nOslo,A\nRoma,B\nMadrid,C\nWien,D\n"


@pytest.fixture
def start(tmp_path):
    return Start(tmp_path)


@pytest.fixture
def client(start):
    with entered(start.index, start=start) as client:
        yield client


def give(client, *files):
    return client.post("/files", files=[("file", file) for file in files])


def wait_for(start):
    deadline = time.monotonic() + 120
    while start.is_building and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not start.is_building


def test_files_that_are_given_are_indexed_and_joined(client, start):
    first = client.get("/lake")
    assert "Join your files" in first.text
    begun = give(client, ("cities.csv", CITIES), ("data/towns.csv", TOWNS), ("cities.csv", FRUIT))
    assert begun.url.path == "/"
    wait_for(start)
    ended = client.get(f"/jobs/{start.job.id}", headers={"hx-request": "true"})
    assert ended.headers["hx-redirect"] == "/lake"
    assert "<bdi>temporary index</bdi>" in client.get("/lake").text
    tables = client.get("/lake.json").json()["tables"]
    assert [table["table"] for table in tables] == ["2 cities.csv", "cities.csv", "towns.csv"]
    page = client.post("/tables", data={"lake_table": "cities.csv"})
    answer = client.get(f"{page.url.path}/search.json?column=%230&exclude_self=1").json()
    assert {(match["table"], match["matched"]) for match in answer["results"]} == {("towns.csv", 4)}


def test_the_page_says_how_far_the_index_is_until_it_is_there(client, start, monkeypatch):
    monkeypatch.setattr("pexeso.faces.app.start.build_index", lambda *_, progress, **__: pause())
    resumed = []

    def pause():
        while not resumed:
            time.sleep(0.01)

    give(client, ("cities.csv", CITIES))
    page = client.get("/")
    assert "<h1>Indexing 1 file</h1>" in page.text
    part = client.get(f"/jobs/{start.job.id}", headers={"hx-request": "true"})
    assert "Working. 0 s so far." in part.text
    assert client.get("/index.json").json()["is_building"]
    assert "already" in said(give(client, ("cities.csv", CITIES)))
    resumed.append(True)
    wait_for(start)


def test_an_index_is_cancelled_and_others_may_be_given(client, start, monkeypatch):
    begun = threading.Event()

    def build(*_, progress, **__):
        while True:
            progress("read")
            begun.set()
            time.sleep(0.01)

    monkeypatch.setattr("pexeso.faces.app.start.build_index", build)
    give(client, ("cities.csv", CITIES))
    assert begun.wait(60)
    assert re.search(r"<p>Step \d+ of \d+, read", client.get("/").text)
    answer = client.post(f"/jobs/{start.job.id}/cancel")
    assert "Indexing 1 file was cancelled, and nothing was changed." in answer.text
    wait_for(start)
    assert "Join your files" in client.get("/").text
    assert client.get("/index.json").json()["files"] == []
    monkeypatch.undo()
    give(client, ("cities.csv", CITIES))
    wait_for(start)
    assert client.get("/lake.json").json()["total"] == 1


@pytest.mark.parametrize(
    ("files", "reason"),
    [([("", b"")], "nothing to index"), ([("notes.txt", b"no table here")], "No column")],
)
def test_what_cannot_be_indexed_is_said_and_others_may_be_given(client, start, files, reason):
    answer = give(client, *files)
    wait_for(start)
    assert reason in said(answer if answer.status_code == 400 else client.get("/"))
    give(client, ("cities.csv", CITIES))
    wait_for(start)
    assert client.get("/lake.json").json()["total"] == 1


def test_a_lake_is_indexed_by_its_link(client, start, write):
    lake = write("my lake/cities.csv", CITIES + "Lima,4,Peru\n").parent
    client.post("/files", data={"lake": f" {lake} "}, files={"file": ("", b"")})
    wait_for(start)
    assert client.get("/lake.json").json()["total"] == 1
    assert (lake / "cities.csv").exists()


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("/no/such/lake", "/no/such/lake"),
        ("ftp://elsewhere/lake", "ftp://elsewhere/lake"),
        ("nul\0here", "nul"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
    ],
)
def test_a_lake_that_is_not_there_is_said_in_a_sentence(client, start, link, reason):
    client.post("/files", data={"lake": link}, files={"file": ("", b"")})
    wait_for(start)
    page = client.get("/")
    assert reason in said(page)
    assert "<script>alert" not in page.text
    assert client.get("/index.json").json()["lake"] == link
    give(client, ("cities.csv", CITIES))
    wait_for(start)
    assert client.get("/lake.json").json()["total"] == 1


def test_an_app_of_an_index_takes_no_files(small_index):
    with entered(small_index) as client:
        assert give(client, ("cities.csv", CITIES)).status_code == 404
        assert client.get("/jobs/none").status_code == 404


def test_columns_whose_boxes_are_not_ticked_are_left_out(client, start):
    give(client, ("cities.csv", CITIES), ("towns.csv", TOWNS))
    wait_for(start)
    page = client.post("/tables", data={"lake_table": "cities.csv"}).url.path
    query = "column=%230&lake_column=towns.csv:town"
    whole = client.get(f"{page}/joined.csv?{query}").text
    some = client.get(f"{page}/joined.csv?{query}&chosen=1&add=mayor").text
    none = client.get(f"{page}/joined.csv?{query}&chosen=1").text
    heads = [next(csv.reader(io.StringIO(text))) for text in (whole, some, none)]
    own = heads[2]
    assert heads[0] == [*own, "match_value", "match_distance", "town", "mayor"]
    assert heads[1] == [*own, "mayor"]
    shown = client.get(f"{page}/join?{query}&chosen=1&add=mayor").text
    assert shown.count(" checked") == 1
    assert "chosen=1&amp;add=mayor" in shown
    assert "These add all columns." in shown
