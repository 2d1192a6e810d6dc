"""A join as SQL makes the rows that the join makes."""

import datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pexeso.faces.service.requests import JoinRequest, JoinSqlRequest
from pexeso.faces.service.verbs import run


@pytest.fixture
def mine(write):
    return write("my 'own.csv", "place,n\nOslo,3\nrome,1\n MADRID ,2\nX'y\u202ez,1\n,4\nOslo,9\n")


@pytest.mark.parametrize("how", ["left", "inner"])
@pytest.mark.parametrize("lake_column", ["cities.csv:city", "nested/capitals.tsv:Capital"])
def test_duckdb_makes_the_same_rows(small_index, mine, how, lake_column):
    fields = {"index": str(small_index), "query": f"{mine}:place", "lake_column": lake_column}
    response = run(JoinSqlRequest.of(**fields, how=how))
    joined = run(JoinRequest.of(**fields, how=how, provenance=())).joined.table
    database = duckdb.connect()
    for statement in response.tables.values():
        database.execute(statement)
    rows = database.sql(response.sql).fetchall()
    expected = list(zip(*(column.to_pylist() for column in joined.columns), strict=True))
    assert sorted(map(str, rows)) == sorted(map(str, expected))
    assert len(rows) >= 4


def test_pairs_are_those_whose_texts_differ(small_index, mine):
    response = run(
        JoinSqlRequest.of(
            index=str(small_index), query=f"{mine}:place", lake_column="cities.csv:city"
        )
    )
    assert response.pairs == [("rome", "Rome"), (" MADRID ", "Madrid")]
    assert response.to_dict()["query_column"] == "place"


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("id;place\n1;Oslo\n2;K\xf6ln\n".encode("latin-1"), {}),
        (b"exported; 2019\nid!place\n1!Oslo\n2!rome\n", {"delimiter": "!", "skip_rows": 1}),
        (b"id,Place,place\n1,x,Oslo\n2,y,rome\n", {}),
    ],
    ids=["latin-1", "reading options", "names that DuckDB changes"],
)
def test_a_file_that_duckdb_reads_otherwise_is_given_no_statement(
    small_index, tmp_path, content, options
):
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    fields = {"index": str(small_index), "query": f"{path}:place", "lake_column": "cities.csv:city"}
    response = run(JoinSqlRequest.of(**fields, **options))
    assert response.tables["your_table"] is None
    assert response.tables["lake_table"] is not None


def test_a_column_named_by_its_position_is_given_no_statement(small_index, write):
    path = write("mine.csv", "place,place\nOslo,1\nrome,2\n")
    fields = {"index": str(small_index), "query": f"{path}:#0", "lake_column": "cities.csv:city"}
    assert run(JoinSqlRequest.of(**fields)).tables["your_table"] is None


def test_a_parquet_file_of_yours_is_read_where_its_texts_are_the_same(small_index, tmp_path):
    texts, whens = tmp_path / "texts.parquet", tmp_path / "whens.parquet"
    pq.write_table(pa.table({"place": ["Oslo", None], "n": [0.5, None]}), texts)
    pq.write_table(pa.table({"place": [datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)]}), whens)
    for file, expected in ((texts, f"read_parquet('{texts}')"), (whens, None)):
        fields = {"query": f"{file}:place", "lake_column": "cities.csv:city"}
        table = run(JoinSqlRequest.of(index=str(small_index), **fields)).tables["your_table"]
        assert (table is None) == (expected is None)
        assert expected is None or expected in table


def test_values_have_no_file(small_index):
    response = run(
        JoinSqlRequest.of(
            index=str(small_index), query=("Oslo", "ROME"), lake_column="cities.csv:city"
        )
    )
    assert response.tables["your_table"] is None
    assert "chr(" not in response.sql


def test_characters_that_are_not_seen_are_written_by_number(small_index):
    fields = {"index": str(small_index), "lake_column": "cities.csv:city"}
    response = run(JoinSqlRequest.of(query=("Oslo\u200b",), **fields, max_distance=0.9))
    if response.pairs:
        assert "'Oslo' || chr(8203)" in response.sql
