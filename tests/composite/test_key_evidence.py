"""Explanations of keys of several columns: held against loops over the rows of both tables."""

import json
from collections import Counter
from itertools import permutations
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.composite.key_evidence import NEARLY, explain_keys
from pexeso.composite.key_table import TablePair, key_table
from pexeso.errors import InputError, QueryError

OURS = pa.table(
    {
        "n": [1, 2, 3, 4, 5, 6, 7],
        "city": ["Oslo", "PARIS", "Paris", None, "Rome", "paris", "Lima"],
        "year": [1952, 1900, 2012, 1924, 1960, 1900, 1800],
    }
)
THEIRS = pa.table(
    {
        "when": ["1900", "1900", "2012", "1952", "1960", None],
        "where": ["paris", "Paris", "London", "Helsinki", "Roma", "Rome"],
        "host": ["Paris", None, "London", "Helsinki", "Rome", "Oslo"],
    }
)


def explained(columns="where,when", ours=OURS, theirs=THEIRS, on="city,year"):
    return explain_keys(TablePair(key_table(ours, on), "games.csv", theirs, Path("lake")), columns)


def test_what_is_joined_and_what_each_column_shares():
    explanation = explained()
    assert explanation.query == {
        "file": None, "columns": ["city", "year"], "rows": 7, "rows_without_key": 1,
    }  # fmt: skip
    assert (explanation.table, explanation.columns, explanation.are_given) == (
        "games.csv",
        ("where", "when"),
        True,
    )
    assert (explanation.matched_keys, explanation.total_keys, explanation.joinability) == (
        1,
        5,
        0.2,
    )
    parts = [
        (part.column, part.lake_column, part.matched, part.total) for part in explanation.parts
    ]
    assert parts == [("city", "where", 2, 4), ("year", "when", 4, 5)]


def test_bytes_of_yours_that_are_no_text_are_left_empty_in_the_sample():
    ours = OURS.append_column("photo", [[b"\xff", b"a"] + [b"\xff"] * 5])
    cells = {row[0][-1] for row in explained(ours=ours).sample.rows}
    assert cells == {"a", None}


def test_keys_without_a_match_are_told_by_the_parts_that_are_there():
    groups = explained().unmatched
    assert [(group.there, group.missing, group.keys) for group in groups] == [
        (("city", "year"), (), 2), (("year",), ("city",), 1), ((), ("city", "year"), 1),
    ]  # fmt: skip
    examples = [
        (example.key, example.nearest, example.parts)
        for group in groups
        for example in group.examples
    ]
    assert examples == [
        # Both parts are there, in rows of their own: the trap of columns that overlap.
        (("Paris", "2012"), ("paris", "1900"), 1),
        (("Rome", "1960"), ("Roma", "1960"), 1),
        (("Oslo", "1952"), ("Helsinki", "1952"), 1),
        (("Lima", "1800"), None, 0),
    ]


def test_how_many_rows_meet():
    fan_out = explained().fan_out
    assert (fan_out.relation, fan_out.rows, fan_out.lake_rows, fan_out.joined_rows) == (
        "N:M", 2, 2, 4,
    )  # fmt: skip
    assert (fan_out.most_rows, fan_out.most_lake_rows) == (2, 2)
    assert [(example.key, example.rows, example.lake_rows) for example in fan_out.examples] == [
        (("PARIS", "1900"), 2, 2)
    ]
    nothing = explained("host,where").fan_out
    assert (nothing.relation, nothing.joined_rows, nothing.most_rows, nothing.examples) == (
        None, 0, 0, (),
    )  # fmt: skip


def test_other_columns_that_join_as_many_keys():
    explanation = explained()
    assert [(other.columns, other.matched_keys) for other in explanation.others] == [
        (("host", "when"), 2)
    ]
    assert explanation.all_tried
    best = explained(None)
    assert (best.columns, best.matched_keys, best.are_given) == (("host", "when"), 2, False)
    assert best.others == ()  # one key is less than 0.9 of two


def test_columns_that_overlap_are_taken_where_no_row_has_a_key():
    theirs = pa.table({"n": ["7", "8"], "when": ["1900", "1960"], "where": ["Rome", "Paris"]})
    explanation = explained(None, theirs=theirs)
    assert (explanation.columns, explanation.matched_keys, explanation.are_given) == (
        ("where", "when"),
        0,
        False,
    )
    trap = next(group for group in explanation.unmatched if not group.missing)
    assert [(example.key, example.nearest) for example in trap.examples] == [
        (("PARIS", "1900"), ("Rome", "1900")), (("Rome", "1960"), ("Rome", "1900")),
    ]  # fmt: skip


def test_the_first_rows_side_by_side():
    sample = explained().sample
    assert sample.columns == ("city", "year", "n")
    assert sample.lake_columns == ("where", "when", "host")
    assert sample.rows == (
        (("PARIS", "1900", "2"), ("paris", "1900", "Paris")),
        (("paris", "1900", "6"), ("paris", "1900", "Paris")),
    )
    wide = pa.table({f"c{at}": ["a"] for at in range(12)})
    assert explained("#10,#11", ours=wide, theirs=wide, on="#8,#9").sample.columns == (
        "c8", "c9", "c0", "c1", "c2", "c3", "c4", "c5",
    )  # fmt: skip


def test_pandas_is_explained_as_arrow_is():
    frame = OURS.to_pandas().set_index(pd.Index(list("abcdefg")))
    assert explained(ours=frame) == explained()


def test_the_json_form_is_plain():
    explanation = explained()
    document = explanation.to_dict()
    assert list(document)[:6] == [
        "query", "table", "columns", "matched_keys", "total_keys", "joinability",
    ]  # fmt: skip
    assert json.loads(json.dumps(document))["fan_out"]["relation"] == "N:M"
    assert document["unmatched"][0]["examples"][0]["key"] == ("Paris", "2012")
    assert document["joinability"] == explanation.joinability


def test_where_there_is_nothing_to_tell():
    empty = pa.table({"p": pa.array([None, "a"], pa.string()), "q": pa.array(["b", " "])})
    explanation = explained("x,y", empty, pa.table({"x": ["a"], "y": ["b"]}), "p,q")
    assert (
        explanation.total_keys,
        explanation.joinability,
        explanation.unmatched,
        explanation.others,
    ) == (0, 0.0, (), ())
    assert explanation.query["rows_without_key"] == 2
    no_rows = THEIRS.slice(0, 0)
    assert explained(None, theirs=no_rows).unmatched[0].keys == 5
    every = explained(
        "p,q", pa.table({"p": ["a"], "q": ["b"]}), pa.table({"p": ["A"], "q": "b"}), "p,q"
    )
    assert (every.joinability, every.unmatched, every.fan_out.relation) == (1.0, (), "1:1")


def test_what_cannot_be_explained_is_refused_in_a_sentence():
    with pytest.raises(InputError, match=r"'games.csv' has 1: take another table"):
        explained("where,when", theirs=THEIRS.select(["when"]))
    with pytest.raises(QueryError, match=r"Got 2 of your columns .* and 3 of 'games.csv'"):
        explained("where,when,host")
    with pytest.raises(QueryError, match="leave the ~ out"):
        explained(on="city~,year")


values = st.sampled_from(["a", "b", "c", "d", None])


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.tuples(values, values), min_size=1, max_size=9),
    st.lists(st.tuples(values, values, values), min_size=1, max_size=9),
    st.booleans(),
)
def test_any_tables_are_explained_as_loops_do(ours, theirs, given_columns):
    tables = [
        pa.table([pa.array([row[at] for row in rows], pa.string()) for at in range(width)], names)
        for rows, width, names in ((ours, 2, ["p", "q"]), (theirs, 3, ["x", "y", "z"]))
    ]
    pair = TablePair(key_table(tables[0], "p,q"), "t", tables[1], Path("lake"))
    explanation = explain_keys(pair, "z,x" if given_columns else None)
    whole = Counter(row for row in ours if None not in row)
    at = ["xyz".index(name) for name in explanation.columns]
    held = Counter(tuple(row[column] for column in at) for row in theirs)
    joins = {
        columns: sum(key in {tuple(row[c] for c in columns) for row in theirs} for key in whole)
        for columns in permutations(range(3), 2)
    }
    assert (explanation.total_keys, explanation.matched_keys) == (len(whole), joins[tuple(at)])
    if not given_columns:
        assert explanation.matched_keys == max(joins.values())
    assert {tuple("xyz".index(name) for name in other.columns) for other in explanation.others} == {
        columns
        for columns, n in joins.items()
        if n and n >= NEARLY * explanation.matched_keys and columns != tuple(at)
    }
    meeting = [(whole[key], held[key]) for key in whole if held[key]]
    fan_out = explanation.fan_out
    assert fan_out.joined_rows == sum(n * m for n, m in meeting)
    assert fan_out.rows == sum(n for n, _ in meeting)
    assert fan_out.lake_rows == sum(m for _, m in meeting)
    assert fan_out.most_rows == max((n for n, _ in meeting), default=0)
    assert fan_out.most_lake_rows == max((m for _, m in meeting), default=0)
    groups = Counter(
        tuple(any(row[c] == part for row in theirs) for c, part in zip(at, key, strict=True))
        for key in whole
        if not held[key]
    )
    counts = {
        tuple(name in group.there for name in "pq"): group.keys for group in explanation.unmatched
    }
    assert counts == dict(groups)
    joined = pair.join(pair.theirs(explanation.columns), {"how": "inner"}).table
    assert joined.num_rows == fan_out.joined_rows
