"""Requests about what a lake holds, and query columns that are taken from it."""

import pytest

from pexeso.errors import InputError
from pexeso.faces.service.bases import RequestError
from pexeso.faces.service.lake import BrowseRequest, lake_file
from pexeso.faces.service.requests import SearchRequest
from pexeso.faces.service.verbs import Service, run


def browsed(index, **fields):
    return run(BrowseRequest.of(index=str(index), **fields)).to_dict()


def test_tables_and_their_columns(small_index):
    listing = browsed(small_index)
    assert listing["total"] == len(listing["items"]) == 5
    first = listing["items"][0]
    assert (first["table"], first["columns"]) == ("cities.csv", ["city", "country", "people"])
    assert first["searchable"] == ["city", "country"]
    assert first["rows"] == 8


@pytest.mark.parametrize("what", ["tables", "columns", "left_out"])
def test_pages_reach_all_of_a_list_once(small_index, what):
    whole = browsed(small_index, what=what, limit=1000)
    assert len(whole["items"]) == whole["total"] > 2
    pages = [browsed(small_index, what=what, offset=at, limit=2) for at in range(0, 40, 2)]
    assert [entry for page in pages for entry in page["items"]] == whole["items"]


def test_only_what_is_named_so(small_index):
    listing = browsed(small_index, what="columns", text="CIT")
    assert {column["table"] for column in listing["items"]} == {"cities.csv", "short.csv"}
    assert browsed(small_index, what="columns", table="short.csv")["total"] == 1
    assert browsed(small_index, what="left_out", text="broken")["total"] == 1
    assert browsed(small_index, text="no such name") == {
        "what": "tables",
        "total": 0,
        "offset": 0,
        "items": [],
    }


@pytest.mark.parametrize(
    "fields",
    [{"offset": -1}, {"limit": 0}, {"limit": 10**30}, {"what": "rows"}, {"table": "no.csv"}],
)
def test_what_cannot_be_listed(small_index, fields):
    with pytest.raises(InputError):
        browsed(small_index, **fields)


def test_an_unknown_table_is_told_with_the_path_of_the_lake(small_index, small_lake):
    with pytest.raises(InputError, match=r"has no table 'no\.csv'") as raised:
        browsed(small_index, table="no.csv")
    assert f"relative to '{small_lake}'" in str(raised.value)


def test_a_query_of_the_lake_is_the_same_as_its_file(small_index, small_lake):
    fields = {"index": str(small_index), "exclude_self": True, "k": 3}
    of_lake = run(SearchRequest.of(query="cities.csv:city", from_lake=True, **fields))
    of_file = run(SearchRequest.of(query=f"{small_lake / 'cities.csv'}:city", **fields))
    assert of_lake.results[0].matches == of_file.results[0].matches != ()
    assert of_lake.results[0].query == of_file.results[0].query


def test_only_tables_of_the_lake_are_read(small_index, small_lake, tmp_path):
    service = Service()
    (small_lake.parent / "outside.csv").write_text("a\nb\n")
    for table in ("../outside.csv", str(small_lake / "cities.csv"), "notes.txt", "no.csv"):
        with pytest.raises(InputError, match=r"no table|not in the index"):
            lake_file(service, str(small_index), table)
    with pytest.raises(RequestError, match="takes TABLE:COLUMN of the lake"):
        SearchRequest.of(index=str(small_index), query=("a",), from_lake=True)
