"""Joined tables of Arrow: types of which Arrow takes no rows, long texts, indexes of pandas."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from test_joined_tables import NORMALISER, joined, mapping_of

from pexeso.faces.app.actions import first_rows
from pexeso.joins.matched_rows import find_rows
from pexeso.joins.options import JoinOptions
from pexeso.joins.tables import join_table
from pexeso.lake.frames.tables import take_column_cells
from pexeso.store import arrays as texts_module
from pexeso.store.arrays import take_wide

KEYS = ["a", "b", None]
ODD = {
    "string_view": pa.array(["x", None, "long enough for a view"], pa.string_view()),
    "binary_view": pa.array([b"\xff", None, b"y"], pa.binary_view()),
    "large_string": pa.array(["x", None, "y"], pa.large_string()),
    "large_binary": pa.array([b"\xff", None, b"y"], pa.large_binary()),
    "list of views": pa.array([["x"], None, []], pa.list_(pa.string_view())),
    "struct of views": pa.array(
        [{"v": "x"}, None, {"v": None}], pa.struct({"v": pa.string_view()})
    ),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), ["x", "y"]),
}
THEIRS = {"name": pa.array(["a", "b", "c"]), "odd": pa.array(["1", "2", "3"])}


def found_rows(typed=None):
    options = JoinOptions(provenance=())
    rows = pa.table(THEIRS)
    mapping = mapping_of(["a", "b"], {("a", "a"): 0.0, ("b", "b"): 0.0}, "nearest")
    return find_rows("t.csv", "name", rows, mapping, NORMALISER, options, typed)


def join(mine, *, typed=None, to=None):
    return join_table(mine, "key", found_rows(typed), pa.array(["a", "b"]), to=to).table


@pytest.mark.parametrize("cells", ODD.values(), ids=ODD)
def test_a_column_of_an_odd_type_is_kept(cells):
    mine = pa.table({"key": pa.array(KEYS, pa.string_view()), "mine": cells})
    made = join(mine)
    assert [made[name].to_pylist() for name in ("key", "mine")] == [KEYS, cells.to_pylist()]
    assert made["odd"].to_pylist() == ["1", "2", None]
    assert join(mine, to="pandas")["odd"].tolist()[:2] == ["1", "2"]


@pytest.mark.parametrize("cells", ODD.values(), ids=ODD)
def test_a_found_column_of_an_odd_type_is_added(cells):
    typed = [pa.chunked_array([THEIRS["name"]]), pa.chunked_array([cells])]
    made = join(pa.table({"key": ["b", "a", "-"]}), typed=typed)
    first, second, _ = cells.to_pylist()
    assert made["odd"].to_pylist() == [second, first, None]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
@pytest.mark.parametrize(("max_bytes", "is_large"), [(29, True), (30, False)])
def test_texts_that_are_too_many_get_longer_offsets(monkeypatch, kind, max_bytes, is_large):
    monkeypatch.setattr(texts_module, "MAX_BYTES", max_bytes)
    column = pa.chunked_array([["x" * 10], ["y" * 5, None]], kind)
    made = take_column_cells(column, pa.array([0, 0, None, 2, 0]))
    assert made.to_pylist() == [column[at].as_py() for at in (0, 0, 2, 2, 0)]
    assert made.type == (
        {pa.string(): pa.large_string()}.get(kind, pa.large_binary()) if is_large else kind
    )
    # Few rows of many texts, which Arrow puts together first.
    monkeypatch.setattr(texts_module, "MAX_BYTES", 14 if is_large else 15)
    assert take_column_cells(column, pa.array([1])).type != kind or not is_large


def test_a_joined_table_has_longer_offsets_where_they_are_needed(monkeypatch):
    monkeypatch.setattr(texts_module, "MAX_BYTES", 2)
    made = join(pa.table({"key": ["a", "b", "a"], "mine": ["x", "y", "z"]}))
    assert made.schema.types == [pa.large_string()] * 4
    assert made["odd"].to_pylist() == ["1", "2", "1"]


@pytest.mark.parametrize("values", ["nearest", "one-to-one", "all"])
@pytest.mark.parametrize("aggregate", [None, "first", "distinct", "mean"])
def test_joins_and_reports_are_the_same_with_longer_offsets(monkeypatch, values, aggregate):
    links = {("a", "x"): 0.25, ("a", "y"): 0.25, ("b", "x"): 0.25, ("b", "b"): 0.0}
    plain = joined(values=values, aggregate=aggregate, links=links)
    rows, conflicts = plain.table.to_pylist(), plain.report.conflicts.to_pylist()
    assert conflicts
    monkeypatch.setattr(texts_module, "MAX_BYTES", 2)
    wide = joined(values=values, aggregate=aggregate, links=links)
    assert wide.table.to_pylist() == rows
    assert wide.report.conflicts.to_pylist() == conflicts
    assert {pa.types.is_string(kind) for kind in wide.report.conflicts.schema.types} == {False}


def test_cells_of_joined_rows_have_longer_offsets_where_they_are_needed(monkeypatch):
    monkeypatch.setattr(texts_module, "MAX_BYTES", 2)
    rows = found_rows()
    assert rows.cells_of(1, np.array([0, 1, 0])).type == pa.large_string()
    assert take_wide(rows.matched_cells, pa.array([0, 0, 0])).type == pa.large_string()


def test_dates_that_python_does_not_have_are_shown_as_missing():
    far = pa.array([(1 << 63) - 1, 0], pa.timestamp("us"))  # "infinity" of DuckDB, and 1970
    mine = pa.table({"key": ["a", "b"], "until": far})
    joined = join_table(mine, "key", found_rows(), pa.array(["a", "b"]))
    assert "<td>1970-01-01 00:00:00</td>" in joined._repr_html_()
    assert [row["until"] for row in first_rows(joined.table)] == [None, "1970-01-01 00:00:00"]
    assert joined.table["until"].combine_chunks().equals(far)


@pytest.mark.parametrize("name", ["id", None])
def test_no_column_of_an_arrow_table_is_lost_as_an_index_of_pandas(name):
    mine = pd.DataFrame({"key": ["a", "b"], "n": [1, 2]}, index=pd.Index([8, 9], name=name))
    mine = pa.Table.from_pandas(mine)
    made = join(mine, to="pandas")
    assert made.columns.tolist() == join(mine).column_names
    assert made[mine.column_names[2]].tolist() == [8, 9]
    assert made.index.tolist() == [0, 1]
