"""A join as SQL makes the rows that the join makes."""

import duckdb
import pytest

from pexeso.service.by_verb.join_sql import JoinSqlRequest
from pexeso.service.requests import JoinRequest
from pexeso.service.verbs import run

pytestmark = pytest.mark.spark


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "my 'own.csv"
    path.write_text("place,n\nOslo,3\nrome,1\n MADRID ,2\nX'y\u202ez,1\n,4\nOslo,9\n")
    return path


@pytest.mark.parametrize("how", ["left", "inner"])
@pytest.mark.parametrize("lake_column", ["cities.csv:city", "nested/capitals.tsv:Capital"])
def test_duckdb_makes_the_same_rows(small_index, mine, how, lake_column):
    asked = {"index": str(small_index), "query": f"{mine}:place", "lake_column": lake_column}
    told = run(JoinSqlRequest(**asked, how=how))
    joined = run(JoinRequest(**asked, how=how, provenance=())).joined.table
    database = duckdb.connect()
    for statement in told.tables.values():
        database.execute(statement)
    rows = database.sql(told.sql).fetchall()
    expected = list(zip(*(column.to_pylist() for column in joined.columns), strict=True))
    assert sorted(map(str, rows)) == sorted(map(str, expected))
    assert len(rows) >= 4


def test_pairs_are_those_whose_texts_differ(small_index, mine):
    told = run(
        JoinSqlRequest(index=str(small_index), query=f"{mine}:place", lake_column="cities.csv:city")
    )
    assert told.pairs == [("rome", "Rome"), (" MADRID ", "Madrid")]
    assert told.to_dict()["query_column"] == "place"


def test_values_have_no_file(small_index):
    told = run(
        JoinSqlRequest(
            index=str(small_index), query=("Oslo", "ROME"), lake_column="cities.csv:city"
        )
    )
    assert told.tables["your_table"] is None
    assert "chr(" not in told.sql


def test_characters_that_are_not_seen_are_written_by_number(small_index):
    asked = {"index": str(small_index), "lake_column": "cities.csv:city"}
    told = run(JoinSqlRequest(query=("Oslo\u200b",), **asked, max_distance=0.9))
    if told.pairs:
        assert "'Oslo' || chr(8203)" in told.sql
