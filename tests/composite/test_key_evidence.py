"""A key of several columns in two tables: found, joined and explained, against loops over rows."""

import json
from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.composite import key_evidence as module
from pexeso.composite.key_evidence import NEARLY, KeyMapping, explain_keys, one_table
from pexeso.composite.key_table import TablePair, key_table
from pexeso.errors import InputError, QueryError, TableReadError
from pexeso.index import build_index, open_index
from pexeso.lake.choose import ColumnRules

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


drawn_values = st.sampled_from(["a", "b", "c", "d", "", None])


@st.composite
def pairs_of_tables(draw):
    """Draw rows of keys and rows of a table, as wide as the key at least."""
    n_parts = draw(st.integers(1, 3))
    width = draw(st.integers(n_parts, 4))
    keys = draw(st.lists(st.tuples(*[drawn_values] * n_parts), max_size=8))
    rows = draw(st.lists(st.tuples(*[drawn_values] * width), max_size=8))
    return n_parts, keys, width, rows


def as_columns(rows, width):
    return [pa.array([row[at] for row in rows], pa.string()) for at in range(width)]


def beside(n_parts, keys, width, rows):
    table = pa.table(as_columns(rows, width), names=[f"c{at}" for at in range(width)])
    return one_table(as_columns(keys, n_parts), table)


def whole_keys(keys):
    return {key for key in keys if all(key)}


def joined_by_loops(keys, rows, columns):
    held = {tuple(row[at] for at in columns) for row in rows}
    return sum(key in held for key in whole_keys(keys))


def texts_of(table, key):
    return tuple(table.query.values[int(number)].as_py() for number in table.query.keys[key])


@settings(max_examples=examples(300), deadline=None)
@given(pairs_of_tables())
def test_mappings_are_those_that_loops_find(drawn):
    n_parts, keys, width, rows = drawn
    table = beside(*drawn)
    every = [
        KeyMapping(columns, joined_by_loops(keys, rows, columns))
        for columns in permutations(range(width), n_parts)
    ]
    every.sort(key=lambda mapping: (-mapping.matched, mapping.columns))
    for at_least in (1, 2, 4):
        assert table.mappings(at_least) == ([x for x in every if x.matched >= at_least], True)
    assert table.best() == (every[0] if every[0].matched else None)
    for mapping in every:
        assert table.matched(mapping.columns) == mapping.matched


@settings(max_examples=examples(300), deadline=None)
@given(pairs_of_tables())
def test_rows_and_parts_are_those_that_loops_find(drawn):
    n_parts, keys, width, rows = drawn
    table = beside(*drawn)
    wanted = whole_keys(keys)
    for columns in permutations(range(width), n_parts):
        held = [tuple(row[at] for at in columns) for row in rows]
        answer = [texts_of(table, key) if key >= 0 else None for key in table.key_of_row(columns)]
        assert answer == [key if key in wanted else None for key in held]
        there = table.parts_there(columns)
        assert there.shape == (len(wanted), n_parts)
        for key in range(len(wanted)):
            texts = texts_of(table, key)
            assert there[key].tolist() == [
                any(row[at] == text for row in rows)
                for at, text in zip(columns, texts, strict=True)
            ]
            parts = [sum(x == y for x, y in zip(row, texts, strict=True)) for row in held]
            row, which = table.nearest_row(key, columns)
            assert row == (parts.index(max(parts)) if parts else -1)
            if parts:
                assert which.sum() == max(parts)


@settings(max_examples=examples(200), deadline=None)
@given(pairs_of_tables())
def test_overlaps_are_those_that_loops_find(drawn):
    n_parts, keys, width, rows = drawn
    table, wanted = beside(*drawn), whole_keys(keys)
    assert table.overlaps.tolist() == [
        [
            len({key[part] for key in wanted} & {row[column] for row in rows})
            for column in range(width)
        ]
        for part in range(n_parts)
    ]


@settings(max_examples=examples(200), deadline=None)
@given(pairs_of_tables())
def test_the_first_row_of_each_key_is_that_of_loops(drawn):
    _, keys, *_ = drawn
    table = beside(*drawn)
    firsts = [keys.index(texts_of(table, key)) for key in range(table.query.n_keys)]
    assert table.query.first_rows.tolist() == firsts


def test_the_likeliest_columns_overlap_most_where_no_row_holds_a_key():
    # Every part is there, each key in two rows.
    table = one_table(
        [pa.array(["a", "b"]), pa.array(["x", "y"])],
        pa.table({"n": ["1", "2"], "second": ["y", "x"], "first": ["a", "b"]}),
    )
    assert table.best() is None
    assert table.likeliest() == KeyMapping((2, 1), 0)
    # A column is taken once, though it has most of the values of both parts.
    table = one_table([pa.array(["a", "b"])] * 2, pa.table({"n": ["c"], "of_both": ["b"]}))
    assert sorted(table.likeliest().columns) == [0, 1]


def test_a_walk_that_would_take_too_long_is_cut_short(monkeypatch):
    same = pa.array(["a", "b", "a"])
    table = one_table([same] * 3, pa.table({f"c{at}": same for at in range(6)}))
    every, all_tried = table.mappings(1)
    assert (len(every), all_tried) == (6 * 5 * 4, True)
    monkeypatch.setattr(module, "MAX_CELLS_TRIED", 100)
    some, all_tried = table.mappings(1)
    assert not all_tried
    assert 0 < len(some) < len(every)
    assert set(some) <= set(every)


@pytest.mark.parametrize("n_rows", [0, 1])
def test_nothing_is_beside_nothing(n_rows):
    nothing = pa.array([], pa.string())
    rows = pa.array(["a"] * n_rows, pa.string())
    table = one_table([nothing, nothing], pa.table({"p": rows, "q": rows}))
    assert table.best() is None
    assert table.mappings(1) == ([], True)
    assert table.likeliest() == KeyMapping((0, 1), 0)
    assert np.array_equal(table.key_of_row((0, 1)), np.full(n_rows, -1))


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
