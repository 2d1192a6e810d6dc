"""Query columns: from files, from values, from batch lines."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pexeso.errors import ColumnNotFoundError, QueryError, TableReadError
from pexeso.results.query import (
    batch_id,
    batch_lines,
    query_from_values,
    read_batch_line,
    read_every_query,
    read_query,
    split_spec,
)


@pytest.fixture
def people(write):
    return write(
        "people.csv",
        "id,company,city,city,\n1,Acme,Rome,Oslo,x\n2,Bolt,Rome,Paris,y\n3,,Rome,Lima,z\n",
    )


def test_a_column_is_named_after_the_last_colon(people):
    query = read_query(f"{people}:company")
    assert query.values.to_pylist() == ["Acme", "Bolt", None]
    assert query.describe() == {"file": str(people), "column": "company", "rows": 3}


def test_names_of_columns_hold_colons(tmp_path, write):
    path = write("trips.csv", "time: start,time,at 9:30:00\nnoon,Oslo,late\n")
    named = {"time: start": "noon", "time": "Oslo", "at 9:30:00": "late", "#2": "late"}
    for column, value in named.items():
        assert split_spec(f"{path}:{column}") == (str(path), column)
        assert read_query(f"{path}:{column}").values.to_pylist() == [value]
    absent = tmp_path / "absent.csv"
    assert split_spec(f"{absent}:a:b") == (f"{absent}:a", "b")


def test_a_column_is_named_by_its_position(people):
    assert read_query(f"{people}:#3").values.to_pylist() == ["Oslo", "Paris", "Lima"]
    assert read_query(f"{people}:#4").column == "#4"


def test_a_file_whose_name_has_a_colon(write):
    path = write("a:b.csv", "name\nOslo\n")
    assert split_spec(str(path)) == (str(path), None)
    assert read_query(f"{path}:name").values.to_pylist() == ["Oslo"]


def test_without_a_column_the_text_column_with_most_values_is_taken(people):
    assert read_query(people).column == "#3"


def test_a_column_that_is_not_there_lists_those_that_are(people):
    with pytest.raises(ColumnNotFoundError, match="company"):
        read_query(f"{people}:compny")


def test_a_repeated_name_is_refused_with_its_positions(people):
    with pytest.raises(ColumnNotFoundError, match=r"#2.*#3"):
        read_query(f"{people}:city")


def test_a_file_of_numbers_has_no_column_to_take(write):
    path = write("numbers.csv", "a,b\n1,2\n3,4\n")
    with pytest.raises(QueryError, match=r"no column of text or dates.*one of a, b"):
        read_query(path)


def test_every_text_column_becomes_a_query(people):
    assert [query.column for query in read_every_query(people)] == ["company", "#2", "#3", "#4"]


def test_columns_of_other_kinds_become_queries_where_they_are_asked_for(people):
    every = read_every_query(people, kinds=("text", "date", "number"))
    assert [query.column for query in every] == ["id", "company", "#2", "#3", "#4"]
    assert every[0].values.to_pylist() == ["1", "2", "3"]
    assert [query.column for query in read_every_query(people, kinds=("number",))] == ["id"]


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(TableReadError, match=r"nowhere\.csv"):
        read_query(f"{tmp_path}/nowhere.csv:name")


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (["a", None, "b"], ["a", None, "b"]),
        ([], []),
        ([1, 2.5, None], ["1", "2.5", None]),
        (["a", 1, None], ["a", "1", None]),
        ([float("nan"), "x"], [None, "x"]),
        (np.array(["a", "b"]), ["a", "b"]),
        (pd.Series(["a", None, "b"], name="letters"), ["a", None, "b"]),
        (pa.chunked_array([["a"], [None]]), ["a", None]),
        ([dt.date(2020, 3, 5)], ["2020-03-05"]),
        (pd.Series([pd.Timestamp("2020-03-05"), pd.NaT]), ["2020-03-05 00:00:00", None]),
        (iter(["a", "b"]), ["a", "b"]),
    ],
)
def test_values_of_any_kind_become_texts(values, texts):
    assert query_from_values(values).values.to_pylist() == texts


def test_a_series_brings_its_name():
    assert query_from_values(pd.Series(["a"], name="letters")).column == "letters"


@pytest.mark.parametrize("value", ["Oslo", b"Oslo", 7])
def test_a_single_value_is_no_column(value):
    with pytest.raises(QueryError, match="must be a list of values"):
        query_from_values(value)


def test_bad_batch_lines_have_their_reason_and_the_others_go_on(write, people):
    lines = [
        json.dumps({"id": "one", "values": ["Oslo", None]}),
        "",
        "{not json",
        json.dumps([1]),
        json.dumps({"id": "five", "file": str(people), "column": "company"}),
        json.dumps({"id": "six", "file": str(people), "column": "nope"}),
        json.dumps({"id": 7, "values": "Oslo"}),
        json.dumps({"file": 3}),
        "[" * 100_000,
    ]
    path = write("queries.jsonl", "\n".join(lines))
    read = [read_batch_line(number, text) for number, text in batch_lines(path)]
    assert [line.number for line in read] == [1, 3, 4, 5, 6, 7, 8, 9]
    assert [line.id for line in read] == ["one", 3, 4, "five", "six", 7, 8, 9]
    assert [line.query is None for line in read] == [
        False, True, True, False, True, True, True, True,
    ]  # fmt: skip
    assert [line.error for line in read][2] == "line 4: it is no JSON object."
    assert "nope" in read[4].error
    assert read[5].error == "line 7: 'values' must be a list."
    assert read[6].error == "line 8: 'file' and 'column' must be texts."


def test_a_field_that_a_batch_line_does_not_have_is_told(people):
    line = read_batch_line(3, json.dumps({"file": str(people), "colum": "company"}))
    assert line.query is None
    assert line.error == (
        "line 3: it has a field 'colum' (did you mean 'column'?), which is none of id, values, "
        "file, column, delimiter, encoding, header, skip_rows, as_of."
    )
    line = read_batch_line(4, json.dumps({"values": ["Oslo"], "k": 7}))
    assert line.error.startswith("line 4: it has a field 'k', which is none of id, ")


@pytest.mark.parametrize(
    "more", [{"file": "a.csv"}, {"column": "city"}, {"delimiter": ";"}, {"header": False}]
)
def test_a_batch_line_has_values_or_a_file(more):
    [name] = more
    line = read_batch_line(3, json.dumps({"id": "x", "values": ["Oslo"], **more}))
    assert (line.id, line.query) == ("x", None)
    assert line.error == (
        f"line 3: it has 'values' and '{name}', which is for a line with 'file': leave the one or "
        "the other out."
    )
    nothing = read_batch_line(4, json.dumps({"values": ["Oslo"], name: None}))
    assert nothing.query.values.to_pylist() == ["Oslo"]


@pytest.mark.parametrize("wrong", ["NaN", "[1, -Infinity]", '{"a": 1e999}'])
def test_the_id_of_a_batch_line_is_plain_json(wrong):
    line = read_batch_line(3, f'{{"id": {wrong}, "values": ["Oslo", NaN]}}')
    assert (line.id, line.query) == (3, None)
    assert line.error == (
        "line 3: its 'id' must be plain JSON, without NaN and infinite numbers. Name it by a text "
        "or a finite number."
    )
    assert batch_id(3, f'{{"id": {wrong}}}') == 3
    line = read_batch_line(3, '{"id": 1.5, "values": ["Oslo", NaN]}')
    assert (line.id, line.query.values.to_pylist()) == (1.5, ["Oslo", None])


def test_a_batch_file_that_is_not_there(tmp_path):
    with pytest.raises(QueryError, match="cannot be read: No such file"):
        list(batch_lines(tmp_path / "nothing.jsonl"))


def test_a_batch_line_may_have_numbers_of_any_length():
    digits = "7" * 5000
    line = read_batch_line(1, f'{{"id": "a", "values": [{digits}, "Oslo"]}}')
    assert (line.id, line.error) == ("a", None)
    assert line.query.values.to_pylist() == [digits, "Oslo"]
