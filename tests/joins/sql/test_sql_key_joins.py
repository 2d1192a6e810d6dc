"""The rows of a join by a key of several columns as SQL are those of the join."""

import datetime as dt
import sys

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_sql_joins import rows_of

import pexeso
from pexeso.errors import MissingPackageError, QueryError
from pexeso.faces.service.requests import JoinRequest, JoinSqlRequest
from pexeso.faces.service.verbs import run

FULL_WIDTH_ROME = "\uff32\uff2f\uff2d\uff25"
TOWNS = [
    "Oslo",
    "rome ",
    FULL_WIDTH_ROME,
    "X'y",
    None,
    "Oslo",
    " ",
    "Straße",
    "Bonn",
    "nowhere",
    "a\x00b",
]
YEARS = ["2009", "2010", "2010", "2011", "2012", "2009", "2013", "1999", None, "2009", "7"]
MINE = pd.DataFrame({"to'wn": TOWNS, "year": YEARS, "n": range(len(TOWNS))})
LAKE = {
    "games.csv": "city,held,who\nOSLO,2009,a\n"
    "Oslo,2009,b\noslo, 2009 ,c\nRome,2010,d\nrome,2010,e\n"
    "X'y,2011,\n,2012,f\n \t,2013,g\nSTRASSE,1999,h\nRome,2009,i\nBonn,,j\n",
    "plain.csv": "held,city,x\n2009,Oslo,1\n2010,rome ,2\n2011,Lima,3\n2010,Rome,4\n2009,Rome,5\n",
    "latin.csv": "city,held\nOslo,2009\nRome,2010\nStraße,1999\nMálaga,5\nBern,6\n",
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys") / "lake"
    folder.mkdir()
    for name, text in LAKE.items():
        encoding = "cp1252" if name == "latin.csv" else "utf-8"
        (folder / name).write_text(text, encoding=encoding)
    typed = {
        "held": [2009, 2009, 2010, 2011, None, 7],
        "city": ["Oslo", "oslo", "Rome", "X'y", "Rome", "a\x00b"],
        "at": [dt.datetime(2020, 1, day) for day in range(1, 7)],
        "share": [2009.0, 2.5, 2010.0, None, 1.0, 7.0],
    }
    pq.write_table(pa.table(typed), folder / "typed.parquet")
    path = folder.parent / "lake.pexeso"
    return pexeso.build_index(folder, path, model="hashing", dimensions=64, parts=["composite"])


@pytest.fixture(scope="module")
def matches(lake):
    return lake.search_composite(MINE, ["to'wn", "year"], k="all")


def in_duckdb(statement, match, mine):
    with duckdb.connect() as database:
        database.register("mi ne", mine)
        rows = match.join(mine.iloc[:0], to="arrow", provenance=())
        assert rows.num_rows == 0
        lake = match._searches.pair(mine, match._key, match.table)
        if "temp.main" in statement:
            from pexeso.joins.sql import Rows

            database.register(match.table, Rows(lake.rows, lake.typed).in_memory)
        return database.sql(statement).to_arrow_table()


@pytest.mark.parametrize("how", ["left", "inner"])
def test_duckdb_makes_the_rows_of_the_join(matches, how):
    assert {match.table for match in matches} == {*LAKE, "typed.parquet"}
    for match in matches:
        made = in_duckdb(match.sql(MINE, name="mi ne", how=how), match, MINE)
        joined = match.join(MINE, to="arrow", how=how, provenance=())
        assert rows_of(made) == rows_of(joined), match.table
        assert made.num_rows >= (len(MINE) if how == "left" else 3)


def test_keys_whose_texts_differ_are_listed_and_no_other(lake, matches):
    [games] = (match for match in matches if match.table == "games.csv")
    pair = lake._snapshot.composite.pair(MINE, ["to'wn", "year"], "games.csv")
    join = pair.sql(pair.theirs(games.columns))
    assert join.pairs[:2] == [
        (("rome ", "2010"), ("rome", "2010")),
        ((FULL_WIDTH_ROME, "2010"), ("Rome", "2010")),
    ]
    same = {("Oslo", "2009"), ("X'y", "2011")}
    assert not [pair for pair in join.pairs if same & set(pair)]
    assert (join.query_column, join.lake_column) == ("to'wn,year", "city,held")


def test_a_key_whose_name_differs_from_another_in_case_alone(lake):
    mine = pd.DataFrame({"town": ["x", "y"], "Town": ["Oslo", "Rome"], "held": ["2009", "2010"]})
    matches = lake.search_composite(mine, ["Town", "held"], k="all")
    assert matches
    for match in matches:
        made = in_duckdb(match.sql(mine, name="mi ne", how="inner"), match, mine)
        assert made.num_rows == match.join(mine, to="arrow", how="inner").num_rows > 0


def test_a_blank_part_joins_nothing_though_the_lake_has_the_same_blank(lake):
    mine = pd.DataFrame({"city": [" \t", "Oslo"], "held": ["2013", "2009"]})
    [match] = (
        candidate
        for candidate in lake.search_composite(mine, ["city", "held"], k="all")
        if candidate.table == "games.csv"
    )
    made = in_duckdb(match.sql(mine, name="mi ne", how="inner"), match, mine)
    assert rows_of(made) == rows_of(match.join(mine, to="arrow", how="inner", provenance=()))
    assert made.num_rows == 1


@pytest.mark.parametrize("years", [[2009, 2010, 7], [2009.0, 2010.0, 7.0], [2009.0, None, 7.0]])
def test_numbers_of_yours_are_compared_as_duckdb_writes_them(lake, years):
    mine = pd.DataFrame({"c": ["oslo", "Rome", "a\x00b"], "y": years})
    for match in lake.search_composite(mine, ["c", "y"], k="all"):
        made = in_duckdb(match.sql(mine, name="mi ne"), match, mine)
        assert rows_of(made) == rows_of(match.join(mine, to="arrow", provenance=())), match.table


def test_parts_that_match_similar_values_cannot_be_sql(lake):
    [match] = lake.search_composite(MINE, ["to'wn~", "year"], k=1)
    with pytest.raises(QueryError, match="leave the ~ out"):
        match.sql(MINE, ["to'wn~", "year"])
    made = in_duckdb(match.sql(MINE, name="mi ne"), match, MINE)
    assert rows_of(made) == rows_of(match.join(MINE, to="arrow", provenance=()))


def test_without_duckdb_it_is_said_how_to_get_it(lake, matches, monkeypatch):
    monkeypatch.setattr("pexeso.joins.sql.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingPackageError, match=r"pip install .pexeso\[duckdb\]"):
        matches[0].sql(MINE)
    pair = lake._snapshot.composite.pair(MINE, ["to'wn", "year"], "games.csv")
    join = pair.sql(pair.theirs("city,held"), names=("mine", "theirs"))
    assert 'JOIN "theirs" AS l' in join.sql


@pytest.mark.parametrize("how", ["left", "inner"])
def test_the_verb_answers_for_a_key(lake, tmp_path, how):
    path = tmp_path / "mine.csv"
    path.write_text("a,b,c\nOslo,2009,x\n rome,2010,y\n,2012,z\nX'y,2011,\nOslo,2009,w\n")
    fields = {"index": str(lake.path), "query": f"{path}:a,b", "lake_column": "games.csv:city,held"}
    response = run(JoinSqlRequest.of(**fields, how=how))
    joined = run(JoinRequest.of(**fields, how=how, provenance=())).joined.table
    with duckdb.connect() as database:
        for statement in response.tables.values():
            database.execute(statement)
        made = database.sql(response.sql).to_arrow_table()
    assert rows_of(made) == rows_of(joined)
    assert response.to_dict()["lake_column"] == "city,held"


def test_the_verb_says_which_fields_a_key_takes(lake, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("a,b\nOslo,2009\n")
    fields = {"index": str(lake.path), "query": f"{path}:a,b", "lake_column": "games.csv:city,held"}
    with pytest.raises(pexeso.PexesoError, match="composite key"):
        run(JoinSqlRequest.of(**fields, values="all"))
