"""Columns and tables of the lake whose names hold colons are named as results name them."""

import pytest

from pexeso.errors import PexesoError
from pexeso.faces.service.acquisition import AcquireRequest
from pexeso.faces.service.requests import (
    ExplainRequest,
    JoinRequest,
    JoinSqlRequest,
    SearchRequest,
    TuneRequest,
)
from pexeso.faces.service.verbs import run
from pexeso.index import build_index
from pexeso.lake.columns import spec_of

CITIES = ("Oslo", "Rome", "Madrid", "Vienna", "Lisbon", "Dublin", "Helsinki", "Athens")
TABLES = ["games.csv", "other:games.csv"]
COLUMN, KEY = "ratio:city", ("in:year", "ratio:city")


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Write a lake and a table of ours, and build the index: (index, table)."""
    folder = tmp_path_factory.mktemp("colons")
    (folder / "lake").mkdir()
    rows = "".join(f"{city},{1900 + at % 3},s{at}\n" for at, city in enumerate(CITIES))
    for name in TABLES:
        (folder / "lake" / name).write_text(f"ratio:city,in:year,is it: good\n{rows}")
    mine = folder / "mine.csv"
    mails = "".join(f"{row},{row.split(',')[0].lower()}@there.org\n" for row in rows.splitlines())
    mine.write_text(f"place,year,n,mail\n{mails}")
    path = folder / "lake.pexeso"
    build_index(
        folder / "lake", path, model="hashing", dimensions=16, parts=["overlap", "composite"]
    )
    return path, mine


@pytest.fixture(params=TABLES)
def answer_of(places, request):
    def ask(kind, query, column, **fields):
        named = f"{request.param}:{column}" if column else request.param
        index, mine = places
        return run(kind(index=str(index), query=f"{mine}:{query}", lake_column=named, **fields))

    return ask


def test_one_column(answer_of):
    assert answer_of(ExplainRequest, "place", COLUMN).match.column == COLUMN
    joined = answer_of(JoinRequest, "place", COLUMN, values="nearest").joined
    assert joined.table["is it: good"].to_pylist() == [f"s{at}" for at in range(8)]
    assert COLUMN in answer_of(JoinSqlRequest, "place", COLUMN).sql
    by_program = answer_of(JoinRequest, "place", COLUMN, transform=True)
    assert by_program.joined.report.matched_rows == 8


def test_a_key(answer_of):
    named = spec_of(KEY)
    assert answer_of(ExplainRequest, "year,place", named).columns == KEY
    assert answer_of(JoinRequest, "year,place", named).joined.report.matched_rows == 8
    assert "in:year" in answer_of(JoinSqlRequest, "year,place", named).sql


def test_the_best_table_is_joined_by_a_program(places):
    index, mine = places
    request = JoinRequest.of(index=str(index), query=f"{mine}:mail", transform=True)
    assert run(request).joined.report.matched_rows == 8


def test_a_key_of_the_lake_is_searched_with(places):
    fields = {"index": str(places[0]), "from_lake": True, "exclude_self": True}
    result = run(SearchRequest.of(query=f"games.csv:{spec_of(KEY)}", **fields)).results[0]
    assert [match.table for match in result.matches] == ["other:games.csv"]


@pytest.mark.parametrize("name", [COLUMN, "#0"])
def test_what_is_bought(places, name):
    request = {"index": str(places[0]), "max_fan_out": 9.0}
    response = run(
        AcquireRequest.of(have=f"games.csv:{name}", want=(f"other:games.csv:{name}",), **request)
    )
    assert response.query["have"] == [COLUMN]
    assert response.query["want"] == [f"other:games.csv:{COLUMN}"]
    assert run(AcquireRequest.of(want=(COLUMN,), have="games.csv:#2", **request)).query["want"] == [
        COLUMN
    ]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("games.csv:ratio:cty", "ratio:cty"),
        ("game.csv:ratio:city", "no table 'game.csv:ratio'"),
        ("other:games.csv", "TABLE:COLUMN"),
    ],
)
def test_what_is_not_there_is_told(places, spec, said):
    index, mine = places
    with pytest.raises(PexesoError, match=said):
        run(ExplainRequest.of(index=str(index), query=f"{mine}:place", lake_column=spec))


def test_labels_name_it_too(places, write):
    index, mine = places
    labels = write(
        "labels.csv",
        "query_column,lake_column,same\n"
        f"{mine}:place,games.csv:{COLUMN},yes\n{mine}:n,games.csv:{COLUMN},no\n",
    )
    assert run(TuneRequest.of(index=str(index), labels=str(labels))).max_distance >= 0
