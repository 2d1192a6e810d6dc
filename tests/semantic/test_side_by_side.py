"""The two tables side by side: rows, columns, and what is said where a table cannot be read."""

import numpy as np
import pyarrow as pa
import pytest

from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.results.match_kinds import KINDS
from pexeso.results.query import QueryColumn, query_from_values, read_query
from pexeso.semantic.pairs import PairTable
from pexeso.semantic.row_preview import TwoTables

PAIRS = PairTable(
    pa.array(["Oslo", "rome", "Paris"]),
    np.array([0, 1, 1]),
    pa.array(["OSLO", "Roma", "Rome (old)"]),
    pa.array(["oslo", "roma", "rome old"]),
    np.array([0.0, 0.01, 0.05]),
    np.array([0.0, 0.01, 0.05]),
    np.array([KINDS.index(kind) for kind in ("exact", "spelling", "spelling")], np.int8),
)
MINE = "id,place,x\n1,Oslo,a\n2,rome,\n3,Paris,c\n4,,d\n5,Oslo,e\n"
THEIRS = "n,City,since\n7,OSLO,1048\n8,Roma,-753\n9,oslo,2000\n"


class Catalog:
    def __init__(self, kind: str = "csv") -> None:
        self.kind = kind

    def tables(self, columns, among):
        return pa.table({"format": [self.kind]})


@pytest.fixture
def mine(tmp_path) -> QueryColumn:
    (tmp_path / "mine.csv").write_text(MINE)
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "theirs.csv").write_text(THEIRS)
    return read_query(tmp_path / "mine.csv", "place")


def show(query, lake, pairs=PAIRS, *, n_rows=9, n_columns=9, kind="csv"):
    tables = TwoTables(query, lake, Normaliser(), Catalog(kind))
    return tables.show("theirs.csv", "City", pairs, n_rows=n_rows, n_columns=n_columns)


def test_rows_that_match_stand_beside_the_first_row_of_the_nearest_value(mine, tmp_path):
    preview = show(mine, tmp_path / "lake")
    assert (preview.ours.columns, preview.theirs.columns) == (
        ("place", "id", "x"),
        ("City", "n", "since"),
    )
    assert (preview.ours.note, preview.theirs.note) == (None, None)
    assert [(row.ours, row.theirs, row.pair.kind) for row in preview.rows] == [
        (("Oslo", "1", "a"), ("OSLO", "7", "1048"), "exact"),
        (("rome", "2", None), ("Roma", "8", "-753"), "spelling"),
        (("Oslo", "5", "e"), ("OSLO", "7", "1048"), "exact"),
    ]
    assert preview.n_rows == 3


def test_only_so_many_rows_and_columns_and_how_many_there_are(mine, tmp_path):
    preview = show(mine, tmp_path / "lake", n_rows=1, n_columns=2)
    assert [(row.ours, row.theirs) for row in preview.rows] == [(("Oslo", "1"), ("OSLO", "7"))]
    assert (preview.n_rows, preview.ours.n_columns, preview.theirs.n_columns) == (3, 3, 3)


def test_values_in_memory_are_a_table_of_one_column(tmp_path, mine):
    preview = show(query_from_values(["Oslo", "rome"]), tmp_path / "lake")
    assert (preview.ours.columns, preview.ours.note) == (("values",), None)
    assert [row.ours for row in preview.rows] == [("Oslo",), ("rome",)]


def test_no_pairs_no_rows(mine, tmp_path):
    preview = show(mine, tmp_path / "lake", PAIRS.take(np.array([], np.int64)))
    assert (preview.rows, preview.n_rows) == ((), 0)


def test_a_table_of_spark_has_no_file_and_the_page_says_so(mine, tmp_path):
    preview = show(mine, "sales.orders", kind="spark")
    assert preview.theirs.note == (
        "'theirs.csv' is a table of Spark: it has no file whose other columns could be shown here."
    )
    assert [row.theirs for row in preview.rows] == [("OSLO",), ("Roma",), ("OSLO",)]


def test_a_lake_that_is_gone_leaves_the_values(mine, tmp_path):
    preview = show(mine, tmp_path / "moved")
    assert "moved" in preview.theirs.note
    assert [row.theirs for row in preview.rows] == [("OSLO",), ("Roma",), ("OSLO",)]


def test_a_column_that_is_gone_is_told(mine, tmp_path):
    (tmp_path / "lake" / "theirs.csv").write_text("town,n\nOslo,1\nRome,2\n")
    assert "There is no column 'City'" in show(mine, tmp_path / "lake").theirs.note


def test_a_value_that_is_gone_is_shown_as_the_index_has_it(mine, tmp_path):
    (tmp_path / "lake" / "theirs.csv").write_text("n,City\n1,Bern\n2,Roma\n")
    preview = show(mine, tmp_path / "lake")
    assert (
        preview.theirs.note
        == "The table has changed since it was indexed: not all of these values are in it."
    )
    assert [row.theirs for row in preview.rows] == [("OSLO", None), ("Roma", "2"), ("OSLO", None)]


def test_a_table_of_the_user_that_changed_meanwhile_is_not_mixed_up(mine, tmp_path):
    (tmp_path / "mine.csv").write_text("id,place\n1,Oslo\n")
    preview = show(mine, tmp_path / "lake")
    assert preview.ours.columns == ("place",)
    assert "has changed since the query was read" in preview.ours.note
    assert [row.ours for row in preview.rows] == [("Oslo",), ("rome",), ("Oslo",)]
    (tmp_path / "mine.csv").unlink()
    assert "mine.csv" in show(mine, tmp_path / "lake").ours.note
