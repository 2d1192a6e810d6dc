"""Tables found by a key of several columns, joined and explained through an index."""

import pandas as pd
import pyarrow as pa
import pytest

from pexeso.composite.key_table import key_table
from pexeso.errors import InputError, QueryError, TableReadError
from pexeso.index import build_index, open_index
from pexeso.lake.choose import ColumnRules

LAKE = {
    "games.csv": "year,city,nation\n1900,Paris,France\n1924,Paris,France\n1960,Rome,Italy\n",
    "trade/fairs.csv": "city;held;visits\nNew York City;1964;51\nParis;1900;48\nparis;1900;1\n",
    "years.csv": "year\n1900\n1924\n1960\n",
}
MINE = {"where": ["PARIS", "paris", "Rome", None], "when": [1900, 1924, 1961, 1960]}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Index a lake with the part for composite keys and an alias."""
    lake = tmp_path_factory.mktemp("pairs") / "lake"
    for name, text in LAKE.items():
        path = lake / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    aliases = lake.parent / "aliases.csv"
    aliases.write_text("alias,value\nNYC,New York City\n", encoding="utf-8")
    rules = ColumnRules(min_rows=1, min_distinct=1)
    options = {"model": "hashing", "dimensions": 64, "aliases": aliases, "rules": rules}
    return build_index(lake, lake.parent / "lake.pexeso", parts=["composite"], **options)


def test_the_found_table_is_joined(index):
    frame = pd.DataFrame(MINE)
    matches = index.search_composite(frame, ["where", "when"])
    assert [match.table for match in matches] == ["games.csv", "trade/fairs.csv"]
    joined = matches[0].join(frame, how="inner", provenance=("column",))
    assert joined.values.tolist() == [
        ["PARIS", 1900, "city,year", "1900", "Paris", "France"],
        ["paris", 1924, "city,year", "1924", "Paris", "France"],
    ]
    assert matches[0].matched_keys == matches[0].join_with_report(frame).report.matched_rows == 2
    # The fan-out that the search told is that of the join.
    fairs = matches[1].join(frame, how="inner")
    assert len(fairs) == matches[1].fan_out.joined_rows == 2


def test_another_table_with_the_same_key_is_joined(index, tmp_path):
    match = index.search_composite(MINE, "where,when")[0]
    other = pa.table({"town": ["Rome"], "in": ["1960"]})
    assert match.join(other, "town,in")["nation"].to_pylist() == ["Italy"]
    assert isinstance(match.join(MINE, to="pandas"), pd.DataFrame)
    path = tmp_path / "mine.csv"
    path.write_text("where,n,when\nRome,7,1960\n", encoding="utf-8")
    assert match.join(path, aggregate="count").to_pylist()[0]["n"] == "7"


def test_aliases_are_read_as_what_they_stand_for(index):
    mine = {"where": ["nyc", "NYC"], "when": ["1964", "1965"]}
    matches = index.search_composite(mine, ["where", "when"])
    assert [(match.table, match.matched_keys) for match in matches] == [("trade/fairs.csv", 1)]
    assert matches[0].join(mine)["visits"].to_pylist() == ["51", None]
    explanation = index.explain_composite(mine, ["where", "when"], "trade/fairs.csv")
    assert (explanation.columns, explanation.matched_keys) == (("city", "held"), 1)


def test_what_a_search_counts_is_what_an_explanation_counts(index):
    for match in index.search_composite(MINE, ["where", "when"]):
        details = index.explain_composite(MINE, ["where", "when"], match.table)
        assert details.columns == match.columns
        assert (details.matched_keys, details.total_keys) == (match.matched_keys, match.total_keys)
        assert details.joinability == match.joinability
        fan_out = details.fan_out
        assert (fan_out.rows, fan_out.lake_rows) == (match.query_rows, match.rows)
        assert (fan_out.relation, fan_out.joined_rows) == (
            match.fan_out.relation, match.fan_out.joined_rows,
        )  # fmt: skip
        pair = index._snapshot.composite.pair(MINE, "where,when", match.table)
        joined = pair.keys_joined(pair.theirs(None))
        assert (joined.columns, joined.matched) == (match.columns, match.matched_keys)
        assert (joined.total, joined.joinability) == (match.total_keys, match.joinability)


def test_a_table_of_one_column_has_no_key(index):
    with pytest.raises(InputError, match=r"'years.csv' has 1: take another table"):
        index.explain_composite(MINE, ["where", "when"], "years.csv")


def test_what_cannot_be_joined_is_refused_in_a_sentence(index):
    match = index.search_composite(MINE, ["where", "when"])[0]
    with pytest.raises(InputError, match="values chooses among values alike"):
        match.join_with_report(MINE, values="all")
    with pytest.raises(InputError, match="A Spark DataFrame is joined by one column"):
        match.join(type("Frame", (), {"sparkSession": None})())
    with pytest.raises(QueryError, match=r"A table is a file, or one in memory: .* Got int"):
        match.join(7)
    with pytest.raises(InputError, match="to must be one of pandas, arrow, polars"):
        match.join(MINE, to="csv")
    with pytest.raises(InputError, match="how must be one of left, inner"):
        match.join(MINE, how="outer")
    with pytest.raises(InputError, match=r"The lake has no table 'none.csv'\. Tables are named"):
        index.explain_composite(MINE, ["where", "when"], "none.csv")
    with pytest.raises(InputError, match=r"A table is named by a text.*Got 3"):
        index.explain_composite(MINE, ["where", "when"], 3)
    with pytest.raises(QueryError, match="Got where~: leave the ~ out"):
        index.explain_composite(MINE, ["where~", "when"], "games.csv")


def test_a_table_larger_than_what_is_indexed_is_not_read(index, monkeypatch):
    pair = index._snapshot.composite.opened.store.manifest
    monkeypatch.setitem(pair.options, "max_table_bytes", 10)
    with pytest.raises(TableReadError, match=r"games.csv"):
        index.explain_composite(MINE, ["where", "when"], "games.csv")


def test_an_index_of_sparks_tables_has_no_file_to_read(index, monkeypatch):
    spark_index = open_index(index.path)
    monkeypatch.setitem(spark_index.store.manifest.facts, "lake", "spark:sales")
    with pytest.raises(InputError, match="built from Spark's tables, which are not read here"):
        spark_index.explain_composite(key_table(MINE, "where,when"), None, "games.csv")
