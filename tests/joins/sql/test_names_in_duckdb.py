"""Names that DuckDB takes for one: of columns and tables that differ in case, and of the pairs."""

import duckdb
import pandas as pd
import pytest

import pexeso
from pexeso.errors import InputError
from pexeso.joins.sql import statement

TOWNS = ["Oslo", "Rome", "Zürich", "München", "Málaga", "Bern"]
MINE = pd.DataFrame({"town": TOWNS[:4], "n": range(4)})


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    lake = tmp_path_factory.mktemp("names") / "lake"
    lake.mkdir()
    for place, name in enumerate(["in.csv", "In.csv", "latin.csv", "Latin.csv"]):
        rows = "".join(f"k{at},{town},{place}\n" for at, town in enumerate(TOWNS))
        encoding = "cp1252" if "atin" in name else "utf-8"
        (lake / name).write_text(f"Town,town,table\n{rows}", encoding=encoding)
    path = lake.parent / "lake.pexeso"
    return pexeso.build_index(lake, path, model="hashing", dimensions=64)


def found_in(index, *tables):
    return [index.explain(MINE["town"], table, "town").match for table in tables]


def test_columns_of_a_table_in_memory_that_differ_in_case(index):
    [match] = found_in(index, "latin.csv")
    with duckdb.connect() as database:
        index.duckdb(database, match)
        database.register("mine", MINE)
        rows = database.sql(match.sql("mine", on="town", how="inner")).fetchall()
    assert sorted(row[3] for row in rows) == sorted(MINE["town"])


def test_files_whose_names_differ_in_case_are_views_of_their_own(index):
    matches = found_in(index, "in.csv", "In.csv", "latin.csv")
    with duckdb.connect() as database:
        names = index.duckdb(database, matches)
        tables = [database.sql(f'FROM "{name}" LIMIT 1').fetchall()[0][2] for name in names[:3]]
    assert names[:3] == ("in.csv", "In.csv (2)", "latin.csv")
    assert [str(table) for table in tables] == ["0", "1", "2"]


def test_tables_in_memory_whose_names_differ_in_case_are_refused(index):
    matches = found_in(index, "latin.csv", "Latin.csv")
    with duckdb.connect() as database, pytest.raises(InputError, match="in two connections"):
        index.duckdb(database, matches)


@pytest.mark.parametrize("name", ["pairs", "Pairs", "pairs_"])
def test_a_table_of_yours_that_is_called_pairs_is_joined(name):
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE {name} AS SELECT 'OSLO' AS town")
        database.execute("CREATE TABLE lakes AS SELECT 'Oslo' AS city")
        query = statement(
            [(("OSLO",), ("Oslo",))], (f'"{name}"', ["town"]), ("lakes", ["city"]), "left"
        )
        assert database.sql(query).fetchall() == [("OSLO", "Oslo")]
