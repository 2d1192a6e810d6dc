"""Tables of any library: read by columns, turned into each other, and given columns."""

import datetime
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pexeso.errors import InputError, MissingPackageError, QueryError
from pexeso.lake.frames.tables import (
    KINDS,
    frame_of,
    put_beside,
    require_kind,
    table_in_memory,
    take_rows,
    to_polars,
)

TABLE = {"city": ["Oslo", None, "Rome"], "people": [7, 1, 28]}
MADE = {
    "pandas": pd.DataFrame(TABLE),
    "arrow": pa.table(TABLE),
    "polars": pl.DataFrame(TABLE),
    "lazy": pl.LazyFrame(TABLE),
    "other": TABLE,
}


def plain(table):
    """Return any table as a dictionary of lists, missing cells as None."""
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False)
    return table.to_pydict() if isinstance(table, pa.Table) else table.to_dict(as_series=False)


@pytest.mark.parametrize("kind", MADE)
def test_a_table_is_known_by_its_library(kind):
    frame = frame_of(MADE[kind])
    assert (frame.kind, frame.names) == (kind, ("city", "people"))
    assert [column.to_pylist() for column in frame.arrow_columns()] == list(TABLE.values())


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("to", KINDS)
def test_a_table_becomes_one_of_any_kind(kind, to):
    frame = frame_of(MADE[kind])
    made = frame.to(to)
    assert frame_of(made).kind == to
    assert plain(made) == TABLE
    assert (made is frame.table) == (kind == to)


@pytest.mark.parametrize("kind", MADE)
def test_a_table_that_is_used_whole_is_of_one_of_the_kinds(kind):
    whole = table_in_memory(MADE[kind], "to join")
    assert whole.kind == {"lazy": "polars", "other": "arrow"}.get(kind, kind)
    assert plain(whole.table) == TABLE


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_taken_and_columns_put_behind(kind):
    added = pa.table({"n": pa.array([1, None]), "text": ["a", None], "list": [["x"], []]})
    rows = take_rows(MADE[kind], kind, np.array([2, 0]))
    made = put_beside(rows, kind, added)
    assert frame_of(made).kind == kind
    assert plain(made) == {
        "city": ["Rome", "Oslo"],
        "people": [28, 7],
        "n": [1, None],
        "text": ["a", None],
        "list": [["x"], []],
    }
    assert plain(put_beside(MADE[kind], kind, pa.table({}))) == TABLE
    none = take_rows(MADE[kind], kind, np.array([], np.int64))
    assert plain(none) == {"city": [], "people": []}


def test_a_pandas_table_keeps_its_index():
    mine = pd.DataFrame(TABLE, index=[5, 6, 7])
    assert put_beside(mine, "pandas", pa.table({"n": [1, 2, 3]})).index.tolist() == [5, 6, 7]


BIG = 2**60 + 1
EXACT = pa.table(
    {
        "signed": [BIG, None],
        "unsigned": pa.array([2**63 + 5, None], pa.uint64()),
        "list": [[BIG, None], None],
        "struct": [{"n": BIG}, {"n": None}],
        "text": ["a", None],
        "long": pa.array(["a", None], pa.large_string()),
        "time": pa.array([1, None], pa.time64("ns")),
        "short": pa.array([1000, None], pa.time64("ns")),
        "date": pa.array([0, None], pa.date32()),
        "late": pa.array([3_000_000, None], pa.date32()),
        "early": pa.array([-800_000 * 86_400_000, None], pa.date64()),
        "last": pa.array([datetime.date(9999, 12, 31), datetime.date(1, 1, 1)]),
    }
)


def test_pandas_gets_the_cells_of_arrow_unrounded_by_either_way():
    whole = frame_of(EXACT).to("pandas")
    assert whole["signed"].tolist() == [BIG, pd.NA]
    assert whole["unsigned"].tolist() == [2**63 + 5, pd.NA]
    assert whole["list"].tolist() == [[BIG, None], None]
    assert whole["struct"].tolist() == [{"n": BIG}, {"n": None}]
    assert [np.isnan(whole[name][1]) for name in ("text", "long")] == [True, True]
    assert whole["time"].tolist() == ["00:00:00.000000001", None]
    assert whole["short"].tolist() == [datetime.time(microsecond=1), None]
    assert whole["date"].tolist() == [datetime.date(1970, 1, 1), None]
    assert whole["last"].tolist() == [datetime.date(9999, 12, 31), datetime.date(1, 1, 1)]
    assert whole["late"].tolist() == ["10183-09-21", None]
    assert whole["early"].tolist() == ["-0221-09-04", None]
    added = put_beside(pd.DataFrame(index=[5, 6]), "pandas", EXACT)
    pd.testing.assert_frame_equal(added, whole.set_axis([5, 6]))


def test_the_type_of_whole_numbers_in_pandas_does_not_depend_on_missing_ones():
    made = [frame_of(EXACT.slice(0, n)).to("pandas").dtypes for n in (0, 1, 2)]
    assert all(types[["signed", "unsigned"]].tolist() == ["Int64", "UInt64"] for types in made)


def test_an_index_of_pandas_comes_back_from_arrow():
    mine = pd.DataFrame({"list": [[1], [2]], "text": ["a", "b"]}, index=["x", "y"])
    back = frame_of(pa.Table.from_pandas(mine)).to("pandas")
    pd.testing.assert_frame_equal(back, mine)
    # An index that a file of the lake had is a column of it like any other.
    made = put_beside(mine, "pandas", pa.Table.from_pandas(mine))
    assert made.columns.tolist() == ["list", "text", "list", "text", "__index_level_0__"]


@pytest.mark.parametrize(
    "mine",
    [
        pd.DataFrame([[1, 2], [3, 4]], columns=["x", "x"]),
        pd.DataFrame({"x": [1, "a"]}),
        pd.DataFrame({"x": [1j, 2]}),
        pd.DataFrame({"x": [2**70, 1]}),
        pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)}),
    ],
    ids=["two of a name", "mixed", "complex", "huge", "objects"],
)
def test_what_arrow_has_no_type_for_is_text_in_other_kinds(mine):
    frame = frame_of(mine)
    made = frame.to("arrow")
    assert made.column_names == list(frame.names)
    assert [column.to_pylist() for column in made.columns] == [
        column.to_pylist() for column in frame.arrow_columns()
    ]


def test_what_polars_cannot_hold_is_told_in_a_sentence():
    mine = pd.DataFrame([[1, 2]], columns=["x", "x"])
    with pytest.raises(
        InputError, match=r"each name once\. Got several columns called 'x': rename"
    ):
        frame_of(mine).to("polars")
    union = pa.UnionArray.from_dense(
        pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]
    )
    spans = pa.array([[(1, 2, 3)]], pa.list_(pa.month_day_nano_interval()))
    for cells in (union, spans):
        with pytest.raises(InputError, match=r"Polars cannot hold this table\. Take the table of"):
            to_polars(pa.table({"x": cells}))


def test_types_of_polars_are_kept():
    mine = pl.DataFrame({"c": ["x", "y"]}, schema={"c": pl.Categorical})
    rows = take_rows(mine, "polars", np.array([1, 0]))
    made = put_beside(rows, "polars", pa.table({"n": [1, 2]}))
    assert dict(made.schema) == {"c": pl.Categorical, "n": pl.Int64}


def test_columns_of_mixed_types_are_texts():
    assert frame_of({"a": [1, "x", None]}).arrow_columns()[0].to_pylist() == ["1", "x", None]


def test_what_is_no_table():
    for values in (
        ["a"], "a", 7, None, np.zeros(2), np.zeros((2, 2)), pd.Series(["a"]), pl.Series(["a"]),
        pa.array(["a"]), pa.chunked_array([["a"]]), pl.col("a"),
    ):  # fmt: skip
        assert frame_of(values) is None


def test_what_is_refused_is_told_in_a_sentence():
    with pytest.raises(QueryError, match=r"equally long\. Got 1, 2\."):
        frame_of({"a": [1], "b": [1, 2]}).arrow_columns()
    with pytest.raises(InputError, match=r"The table to enrich must be a DataFrame .* Got Series"):
        table_in_memory(pd.Series(["a"]), "to enrich")
    with pytest.raises(InputError, match=r"must be one of pandas, arrow, polars\. Got 'csv'"):
        require_kind("csv")


def test_without_polars_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'pexeso\[polars\]', or take"):
        to_polars(pa.table(TABLE))


def test_a_spark_table_is_not_read_whole_unless_it_is_asked_for(spark):
    frame = frame_of(spark.createDataFrame(pd.DataFrame({"n": [1, 2]})))
    for read in (frame.columns, frame.arrow_columns, frame.whole):
        with pytest.raises(QueryError, match=r"not read whole here.*frame\.select\('country'"):
            read()
    assert [plain(frame.to(kind)) for kind in KINDS] == [{"n": [1, 2]}] * len(KINDS)
