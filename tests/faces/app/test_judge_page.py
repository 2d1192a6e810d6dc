"""Judgements in the app: given by forms alone, kept at once, and never led elsewhere."""

import html
import re

import pytest
from app_clients import CITIES, entered, said

import pexeso
from pexeso.lake.judgements import read_judgements

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge")
    lake = folder / "lake"
    lake.mkdir()
    (lake / "towns.csv").write_text(f"town,size\nOslo,1\nRome,2\nMadridd,3\n{HOSTILE},4\nNauru,5\n")
    (lake / "places.csv").write_text(f"place\nOslo\nRome\nLima\nQuito\n{HOSTILE}\n")
    return pexeso.build_index(lake, folder / "lake.pexeso", parts=["overlap"]).path


@pytest.fixture
def index(built):
    yield built
    (built / "judgements.csv").unlink(missing_ok=True)


@pytest.fixture
def client(index):
    with entered(index) as visitor:
        yield visitor


def forms(page: str, undo: bool = False) -> list[dict[str, str]]:
    """Return the hidden fields of the forms for judgements of a page, without that of an undo."""
    found_forms = re.findall(r'<form method="post" action="/judgements".*?</form>', page, re.DOTALL)
    fields = [
        {
            name: html.unescape(value)
            for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
        }
        for form in found_forms
    ]
    return [form for form in fields if ("undone" in form) == undo]


def test_a_doubtful_pair_is_judged_and_listed(client, index):
    page = client.get("/judge")
    assert HOSTILE not in page.text
    first = forms(page.text)[0]
    answer = client.post("/judgements", data={**first, "verdict": "no"})
    assert (answer.status_code, answer.url.path) == (200, "/judge")
    (row,) = read_judgements(index).rows
    assert row.verdict == "no"
    assert 'aria-pressed="true">No<' in answer.text
    assert first not in forms(answer.text)[:-1]
    withdrawn = forms(answer.text)[-1]
    client.post("/judgements", data={**withdrawn, "verdict": "unsure"})
    assert read_judgements(index).verdict(row) == "unsure"
    assert client.get("/judge.json").json()["judgements"][0]["verdict"] == "unsure"


def test_a_match_is_rejected_where_it_is_explained(client, index):
    table = client.give()
    results = client.get(f"{table}/search", params={"column": "#0"})
    assert "towns.csv" in results.text
    match = {"column": "#0", "lake_column": "towns.csv:town"}
    page = client.get(f"{table}/match", params=match)
    columns, *values = forms(page.text)
    assert columns["query_table"] == "my cities.csv"
    assert {value["lake_value"] for value in values} >= {"Madridd"}
    wrong = next(value for value in values if value["lake_value"] == "Madridd")
    client.post("/judgements", data={**wrong, "verdict": "no"})
    (row,) = read_judgements(index).rows
    assert (row.your_value, row.lake_value) == ("Madrid", "Madridd")
    again = client.get(f"{table}/match", params=match)
    assert "2 of" in again.text
    assert wrong in forms(again.text), "it can be taken back"
    answer = client.post("/judgements", data={**columns, "verdict": "no"})
    assert answer.url.path == f"{table}/match"
    assert "towns.csv" not in client.get(f"{table}/search", params={"column": "#0"}).text
    joined = client.get(f"{table}/join", params=match)
    assert forms(joined.text)[0]["lake_table"] == "towns.csv"


def test_a_column_is_rejected_in_the_list_of_what_is_found(client, index):
    table = client.give()
    page = client.get(f"{table}/search", params={"column": "#0", "k": "all"})
    (form,) = [form for form in forms(page.text) if form["lake_table"] == "towns.csv"]
    answer = client.post("/judgements", data={**form, "verdict": "no"})
    assert (answer.url.path, answer.url.params["k"]) == (f"{table}/search", "all")
    assert {form["lake_table"] for form in forms(answer.text)} == {"places.csv"}
    assert read_judgements(index).rejected(("my cities.csv", "#0")) == {("towns.csv", "town")}


def test_a_rejection_is_undone(client, index):
    table = client.give()
    address = f"{table}/search?column=%230&k=all"
    assert "Undo" not in client.get(f"{table}?judged=1").text, "there is nothing to undo"
    before = forms(client.get(address).text)
    (form,) = [form for form in before if form["lake_table"] == "towns.csv"]
    answer = client.post("/judgements", data={**form, "verdict": "no"})
    assert "Rejected: <bdi>my cities.csv #0 and towns.csv town</bdi>" in answer.text
    (undo,) = forms(answer.text, undo=True)
    assert '<button name="verdict" value="unsure">Undo</button>' in answer.text
    back = client.post("/judgements", data={**undo, "verdict": "unsure"})
    assert "judged" not in back.url.params
    assert forms(back.text, undo=True) == []
    assert {form["lake_table"] for form in forms(back.text)} == {
        form["lake_table"] for form in before
    }


def test_an_undo_brings_the_verdict_before_back(client, index):
    first = forms(client.get("/judge").text)[0]
    client.post("/judgements", data={**first, "verdict": "yes"})
    answer = client.post("/judgements", data={**first, "verdict": "no"})
    assert '<button name="verdict" value="yes">Undo</button>' in answer.text
    (undo,) = forms(answer.text, undo=True)
    assert undo["back"] == "/judge"
    client.post("/judgements", data={**undo, "verdict": "yes"})
    assert read_judgements(index).columns[-1].verdict == "yes"


def test_a_form_leads_to_pages_of_the_app_alone(client):
    first = forms(client.get("/judge").text)[0]
    for back in ("https://elsewhere.org/", "//elsewhere.org", "/\\elsewhere.org", "judge", ""):
        data = {**first, "verdict": "yes", "back": back}
        answer = client.post("/judgements", data=data, follow_redirects=False)
        assert answer.headers["location"] == "/judge?judged=1", back


def test_what_is_no_judgement_is_refused(client, index):
    assert client.post("/judgements", data={"verdict": "no"}).status_code == 400
    first = forms(client.get("/judge").text)[0]
    wrong = client.post("/judgements", data={**first, "lake_column": "none", "verdict": "no"})
    assert "no column 'none'" in said(wrong)
    answer = client.post("/judgements", data={**first, "verdict": "maybe"})
    assert answer.status_code == 400
    assert read_judgements(index).rows == ()


def test_another_site_cannot_judge(client, index):
    first = forms(client.get("/judge").text)[0]
    answer = client.post(
        "/judgements", data={**first, "verdict": "no"}, headers={"origin": "https://elsewhere.org"}
    )
    assert answer.status_code == 403
    assert read_judgements(index).rows == ()
    assert CITIES  # the table that `give` hands over
