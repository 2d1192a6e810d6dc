"""Requests that say how the file of their query is read."""

import pytest

from pexeso.errors import InputError
from pexeso.faces.service.bases import Request, RequestError
from pexeso.faces.service.requests import ExplainRequest, JoinRequest, SearchRequest
from pexeso.lake.readers.options import ReadingOptions

SAID = {"delimiter": "!", "encoding": "latin-1", "header": 0, "skip_rows": 1}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "q.csv"
    path.write_bytes("a;b\nOslo!1\nMalmö!2\nBern!3\n".encode("latin-1"))
    return str(path)


def test_query_columns_are_read_as_said(file):
    column = SearchRequest.of(index="i", query=f"{file}:#0", **SAID).read_column()
    assert column.values.to_pylist() == ["Oslo", "Malmö", "Bern"]
    assert column.reading == ReadingOptions(**SAID)
    every = SearchRequest.of(index="i", query=file, all_columns=True, method="overlap", **SAID)
    assert [query.column for query in every.read_columns(numbers=True)] == ["#0", "#1"]
    key = ExplainRequest.of(index="i", query=f"{file}:#0,#1", lake_column="t", **SAID).read_key()
    assert [cells.to_pylist() for cells in key.cells] == [
        ["Oslo", "Malmö", "Bern"],
        ["1", "2", "3"],
    ]
    assert key.reading == ReadingOptions(**SAID)


def test_keys_are_found_in_the_table_as_said(tmp_path):
    file = str(tmp_path / "rows.csv")
    with open(file, "w", encoding="utf-8") as rows:
        rows.write("a;b\n" + "".join(f"Town {letter}!{letter}\n" for letter in "abcdefgh"))
    request = SearchRequest.of(index="i", query=file, keys="auto", **SAID).with_key()
    assert request.query in (f"{file}:#0", f"{file}:#1", f"{file}:#0,#1")


@pytest.mark.parametrize("method", ["semantic", "overlap", "containment", "transform"])
def test_every_kind_of_search_takes_them(file, method):
    request = SearchRequest.of(index="i", query=f"{file}:#0", method=method, **SAID)
    assert Request.from_dict(request.to_dict()) == request


def test_joins_by_programs_take_them(file):
    JoinRequest.of(index="i", query=f"{file}:#0", transform=True, **SAID)


def test_values_are_not_read():
    with pytest.raises(RequestError, match=r"delimiter, header say how a file is read"):
        SearchRequest.of(index="i", query=("a", "b"), delimiter=";", header=1)


@pytest.mark.parametrize(
    ("given", "said"),
    [({"delimiter": "ab"}, "delimiter must be"), ({"skip_rows": -1}, "skip_rows must be")],
)
def test_what_is_not_allowed_is_said(given, said):
    with pytest.raises(InputError, match=said):
        SearchRequest.of(index="i", query="f.csv", **given)
