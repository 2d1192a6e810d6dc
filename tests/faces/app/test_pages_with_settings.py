"""Pages read a table of the lake as the index did: the settings of the lake say how."""

import pytest
from app_clients import entered

OTHER = "cities.csv:name"


@pytest.fixture
def page(told_index):
    """Return the path of the page of the table as one to search with, and a client."""
    with entered(told_index) as client:
        answer = client.post("/tables", data={"lake_table": "sub/told.csv"}, follow_redirects=False)
        yield client, answer.headers["location"]


def test_pages_read_it_alike(page):
    client, path = page
    document = client.get(f"{path}.json").json()
    assert [column["column"] for column in document["columns"]] == ["city", "year"]
    of_match = {"column": "city", "lake_column": OTHER}
    answer = client.get(f"{path}/search.json", params={"column": "city"}).json()
    assert [match["table"] for match in answer["results"]] == ["cities.csv"]
    assert client.get(f"{path}/match.json", params=of_match).json()["matched"] == 5
    assert len(client.get(f"{path}/join.json", params=of_match).json()["rows"]) == 5
    for other in ({"method": "transform"}, {"method": "containment"}):
        assert client.get(f"{path}/match", params=of_match | other).status_code == 200


def test_the_lines_to_copy_say_how_it_is_read(page):
    client, path = page
    shown = client.get(f"{path}/search", params={"column": "city"}).text
    for word in ("encoding=cp850", "--read skip_rows=1", "--read header=1", "skiprows=1"):
        assert word in shown


def test_why_two_columns_of_the_picture_join_is_told(page):
    client, _ = page
    left = {"left_table": "sub/told.csv", "left_column": "city"}
    right = {"right_table": "cities.csv", "right_column": "name"}
    answer = client.get("/graph/match", params={**left, **right})
    assert answer.status_code == 200, answer.text


def test_plans_are_made_for_it(page):
    client, _ = page
    for have in ("sub/told.csv:city", "sub/told.csv:#0"):
        answer = client.get("/acquire.json", params={"have": have})
        assert answer.status_code == 200, answer.text
        assert answer.json()["query"]["have"] == ["city"]
