"""The rows of a join as SQL are those of the join, whatever the tables hold."""

import datetime as dt
import sys

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pexeso
from pexeso.errors import InputError, MissingPackageError
from pexeso.joins.sql import reader_of

TOWNS = ["Oslo", "rome", " MADRID ", "X'y", 'a"b', "a\x00b", None, "Oslo", "Zürich", "nowhere"]
MINE = pd.DataFrame({"to'wn": TOWNS, "n": range(len(TOWNS))})
TRAINS = ["Flying Scotsman", "Rheingold", "Chopin Express", "Settebello", "Mistral"]
NUMBERS = ["1", "2", "2.5", "3", "77"]
LAKE = {
    "it's;a.csv": "city,note,city\nOslo,x,1\nRome,y,2\nMadrid,,3\nOslo,z,4\nX'y,q,5\nBonn,,6\n",
    "semi.csv": 'Ort;was\nOslo;"a;b"\nROME;c\nMadrid;d\n"a""b";e\nnowhere!;f\nOSLO;g\n',
    "deep/er/tab.tsv": "place\tn\nRome\t1\nrome\t2\nOslo\t\nMadrid\t4\nX'y\t5\n",
    "latin.csv": "city,n\nOslo,1\nRome,2\nZürich,3\nMünchen,4\nMálaga,5\n",
    "star[1].csv": "city,n\nOslo,1\nRome,2\nMadrid,3\nLima,4\nBern,5\n",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    lake = tmp_path_factory.mktemp("sql") / "lake"
    for name, text in LAKE.items():
        file = lake / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="cp1252" if name == "latin.csv" else "utf-8")
    typed = {
        'the "city"': ["Oslo", "Rome", "a\x00b", "Madrid", "Oslo", None],
        "when": [dt.datetime(2020, 1, day) for day in range(1, 7)],
        "how": [1.5, None, 2.0, 3.25, 1e300, 7.0],
        "many": [[1], [], None, [2, 3], [4], [5]],
    }
    pq.write_table(pa.table(typed), lake / "typed.parquet")
    numbers = {"x": [1.0, 2.0, 2.5, 3.0, 4.0], "y": [1, 2, 3, 4, 5]}
    pq.write_table(pa.table(numbers), lake / "numbers.parquet")
    spans = pa.array(range(5), pa.duration("s"))
    pq.write_table(pa.table({"train": TRAINS, "took": spans}), lake / "spans.parquet")
    rules = pexeso.ColumnRules(kinds=("text", "date", "number"), min_rows=3)
    path = lake.parent / "lake.pexeso"
    return pexeso.build_index(lake, path, model="hashing", dimensions=64, rules=rules)


@pytest.fixture(scope="module")
def matches(index):
    return index.search(
        MINE["to'wn"], k="all", max_distance=0.3, min_joinability=0.1, fold_copies=False
    )


@pytest.fixture
def connection(index, matches):
    with duckdb.connect() as database:
        index.duckdb(database, matches)
        database.register("mi ne", MINE)
        yield database


def rows_of(table):
    columns = [column.to_pylist() for column in table.columns]
    return sorted(map(repr, zip(*columns, strict=True)))


def same_rows(connection, match, mine, name, on, **options):
    made = connection.sql(match.sql(name, on=on, **options)).to_arrow_table()
    joined = match.join(mine, on, to="arrow", provenance=(), **options)
    assert rows_of(made) == rows_of(joined)
    return made.num_rows


@pytest.mark.parametrize("how", ["left", "inner"])
@pytest.mark.parametrize("values", ["nearest", "one-to-one", "all"])
def test_duckdb_makes_the_rows_of_the_join(connection, matches, values, how):
    tables = {match.table for match in matches}
    assert tables == {*LAKE, "typed.parquet"}
    for match in matches:
        assert same_rows(connection, match, MINE, "mi ne", "to'wn", values=values, how=how) > 1


@pytest.mark.parametrize("column", ["x", "y"])
def test_columns_of_numbers_are_joined_as_the_join_does(index, column):
    mine = pd.DataFrame({"k": NUMBERS})
    match = index.explain(NUMBERS, "numbers.parquet", column).match
    with duckdb.connect() as database:
        database.register("mine", mine)
        assert same_rows(database, match, mine, "mine", "k") == len(mine)
        assert match.matched >= 3


def test_spans_of_time_which_parquet_keeps_as_numbers_stay_spans(index):
    mine = pd.DataFrame({"k": TRAINS})
    match = index.explain(TRAINS, "spans.parquet", "train", max_distance=0).match
    with duckdb.connect() as database:
        index.duckdb(database, match)
        database.register("mine", mine)
        made = database.sql(match.sql("mine", on="k")).order("took").fetchall()
    assert [row[2] for row in made] == [dt.timedelta(seconds=seconds) for seconds in range(5)]


def test_integers_and_dates_of_yours_are_compared_as_their_texts(index):
    mine = pd.DataFrame({"k": [1, 2, 3, 9]})
    match = index.explain(mine["k"], "numbers.parquet", "y").match
    with duckdb.connect() as database:
        database.register("mine", mine)
        assert same_rows(database, match, mine, "mine", "k", how="inner") == 3


def test_files_are_read_by_duckdb_where_the_rows_are_the_same(matches):
    read = {match.table: "read_" in match.sql(on="x") for match in matches}
    assert read == {
        "it's;a.csv": True,
        "semi.csv": True,
        "latin.csv": False,  # of another encoding
        "deep/er/tab.tsv": True,
        "star[1].csv": False,  # a pattern, to DuckDB
        "typed.parquet": True,
    }
    (latin,) = (match for match in matches if match.table == "latin.csv")
    assert 'temp.main."latin.csv"' in latin.sql(on="x")


def test_what_is_found_is_registered(index, matches, connection):
    names = index.duckdb(connection, matches)
    assert names == (
        *dict.fromkeys(match.table for match in matches),
        "pexeso_found",
        "pexeso_pairs",
    )
    rows = connection.sql('SELECT "table", matched FROM pexeso_found').fetchall()
    assert rows == [(match.table, match.matched) for match in matches]
    pairs = connection.sql("SELECT query, value, distance FROM pexeso_pairs").fetchall()
    wanted = [pair for match in matches for pair in match.pairs()]
    assert pairs == [(pair.query, pair.value, pair.distance) for pair in wanted]
    assert index.duckdb(connection, matches[0])[0] == matches[0].table
    assert connection.sql("SELECT count(*) FROM pexeso_found").fetchall() == [(1,)]
    with pytest.raises(InputError, match=r"columns found by similar values.*Got list instead"):
        index.duckdb(connection, ["Oslo"])
    with pytest.raises(InputError, match=r"columns found by similar values.*Got int instead"):
        index.duckdb(connection, 3)
    with pytest.raises(
        InputError, match=r"one of DuckDB, such as duckdb.connect\(\).*Got 'own.db'"
    ):
        index.duckdb("own.db", matches)


def test_a_database_that_is_read_alone_can_be_used(index, matches, tmp_path):
    file = str(tmp_path / "own.db")
    duckdb.connect(file).close()
    with duckdb.connect(file, read_only=True) as database:
        names = index.duckdb(database, matches)
        assert database.sql('FROM "semi.csv" LIMIT 1').fetchall() == [("Oslo", "a;b")]
        assert names[-2:] == ("pexeso_found", "pexeso_pairs")


def test_names_must_be_told_and_seen(index, matches):
    with pytest.raises(InputError, match="characters that are not seen"):
        matches[0].sql(on="a\u200bb")
    with pytest.raises(InputError, match=r"names a table .* by a text, .*Got +to'wn .*: to join a"):
        matches[0].sql(MINE)
    nameless = index.search(["Oslo", "Rome"], k=1)[0]
    with pytest.raises(InputError, match="Name the query column of your table: on=NAME"):
        nameless.sql()
    with pytest.raises(InputError, match="values must be one of"):
        matches[0].sql(on="x", values="best")


def test_without_duckdb_it_is_said_how_to_get_it(index, matches, monkeypatch):
    monkeypatch.setattr("pexeso.joins.sql.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for call in (lambda: matches[0].sql(on="x"), lambda: index.duckdb(None, matches)):
        with pytest.raises(MissingPackageError, match=r"pip install .pexeso\[duckdb\]"):
            call()
    join = matches[0].sql_with_pairs("mine", "x", lake_table="theirs")
    assert 'JOIN "theirs" AS l' in join.sql


def test_patterns_are_no_files():
    assert reader_of("a*.csv") is None
    assert reader_of("it's.TSV") == "read_csv('it''s.TSV', header = true, all_varchar = true)"


def test_nothing_loads_duckdb_before_it_is_needed():
    assert "duckdb" not in vars(sys.modules["pexeso.joins.sql"])
