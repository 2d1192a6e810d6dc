"""Joins by keys of several columns: held against nested loops over the rows of both tables."""

import csv
import unicodedata
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joined_by_loops import one_of
from long_runs import examples

from pexeso.composite.key_table import TablePair, key_table
from pexeso.errors import ColumnNotFoundError, InputError, QueryError
from pexeso.joins.composite_join import written_keys
from pexeso.joins.options import AGGREGATIONS
from pexeso.lake.columns import names_in

OURS = pa.table(
    {
        "id": [0, 1, 2, 3, 4, 5],
        "city": ["Oslo", "PARIS ", "Paris", None, "Rome", "paris"],
        "year": [1952, 1900, 1924, 1924, 1960, 1900],
    }
)
THEIRS = pa.table(
    {
        "when": ["1900", "1900", "1924", "1952", "1960", None],
        "where": ["paris", "Paris", "Paris", "Helsinki", "Roma", "Rome"],
        "people": ["10", "4", "x", "7", None, "2"],
    }
)


def compared(cell):
    """Return the form of a cell in which it is compared, None for a missing one."""
    if cell is None:
        return None
    return " ".join(unicodedata.normalize("NFKC", str(cell)).casefold().split()) or None


def line_of(cells):
    """Write cells as a line of CSV, as Python does."""
    lines = []

    class Sink:
        write = staticmethod(lines.append)

    csv.writer(Sink, lineterminator="").writerow(["" if cell is None else cell for cell in cells])
    return lines[0]


def key_of(row, names):
    parts = [compared(row[name]) for name in names]
    return None if None in parts else tuple(parts)


def cells_of(row, names):
    return [str(row[name]).strip() for name in names]


def keys_joined_by_loops(ours, on, theirs, columns, how="left", ways=None):
    joined = []
    for row in ours:
        key = key_of(row, on)
        equal = [other for other in theirs if key is not None and key_of(other, columns) == key]
        same = [other for other in equal if cells_of(other, columns) == cells_of(row, on)]
        matches = [
            {
                "match_value": line_of(other[name] for name in columns),
                "match_distance": 0.0,
                **other,
            }
            for other in same or equal
        ]
        if ways is not None and matches:
            matches = [one_of(matches, ways)]
        if not matches and how == "left":
            matches = [dict.fromkeys(["match_value", "match_distance", *theirs[0]])]
        joined += [{**row, **other} for other in matches]
    return joined


def joined(columns="where,when", ours=OURS, theirs=THEIRS, on="city,year", to=None, **options):
    pair = TablePair(key_table(ours, on), "games.csv", theirs, Path("lake"))
    return pair.join(pair.theirs(columns), options, table=ours, to=to)


@pytest.mark.parametrize("aggregate", [None, *AGGREGATIONS])
@pytest.mark.parametrize("how", ["left", "inner"])
def test_every_option_gives_what_loops_give(how, aggregate):
    ways = None if aggregate is None else dict.fromkeys(THEIRS.column_names, aggregate)
    assert joined(how=how, aggregate=aggregate).table.to_pylist() == keys_joined_by_loops(
        OURS.to_pylist(), ["city", "year"], THEIRS.to_pylist(), ["where", "when"], how, ways
    )


cells = st.sampled_from(["a", "A ", "b", "1", "ß", "SS", "a,b", 'b"', "", "  ", "\u00a0a", None])


@st.composite
def two_tables(draw):
    n_parts = draw(st.integers(2, 3))
    rows = [
        draw(st.lists(st.fixed_dictionaries({name: cells for name in names}), min_size=1))
        for names in (["p", "q", "r"][:n_parts], ["x", "y", "z"])
    ]
    columns = draw(st.permutations(["x", "y", "z"]))[:n_parts]
    return ["p", "q", "r"][:n_parts], rows[0], columns, rows[1]


@settings(max_examples=examples(300), deadline=None)
@given(two_tables(), st.sampled_from(["left", "inner"]), st.sampled_from([None, *AGGREGATIONS]))
def test_any_tables_give_what_loops_give(drawn, how, aggregate):
    on, ours, columns, theirs = drawn
    tables = [
        pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in rows[0]]))
        for rows in (ours, theirs)
    ]
    result = joined(columns, *tables, on, how=how, aggregate=aggregate)
    ways = None if aggregate is None else dict.fromkeys(theirs[0], aggregate)
    wanted = keys_joined_by_loops(ours, on, theirs, columns, how, ways)
    assert result.table.to_pylist() == wanted
    assert result.report.matched_rows == sum(
        any(key_of(row, on) == key_of(other, columns) for other in theirs)
        for row in ours
        if key_of(row, on) is not None
    )
    assert (result.report.rows, result.report.joined_rows) == (len(ours), len(wanted))


def test_the_columns_that_join_most_keys_are_found():
    assert joined(columns=None).table.equals(joined(columns="where,when").table)
    # As many keys are joined by the first two columns: the first choice is taken.
    twice = pa.table({"a": ["x"], "b": ["y"], "c": ["y"]})
    ours = pa.table({"p": ["x"], "q": ["y"]})
    result = joined(None, ours, twice, "p,q", provenance=("column",))
    assert result.table["match_column"].to_pylist() == ["a,b"]


def test_pandas_gets_the_same():
    frame = OURS.to_pandas().set_index(pd.Index(list("abcdef")))
    frame["year"] = frame["year"].astype(float)  # as a gap in it would make of it
    ours = joined(ours=frame, how="inner", aggregate={"people": "sum"}).table
    assert ours["id"].tolist() == [1, 2, 5]
    assert ours["match_value"].tolist() == ["paris,1900", "Paris,1924", "paris,1900"]
    assert ours["people"].fillna(-1).tolist() == [14.0, -1.0, 10.0]
    assert isinstance(joined(ours=frame, to="arrow").table, pa.Table)


def test_names_are_those_of_any_join():
    theirs = THEIRS.rename_columns(["id", "where", "people"])
    result = joined("where,id", theirs=theirs, provenance=("table", "column", "value"))
    assert result.table.column_names == [
        "id", "city", "year", "match_table", "match_column", "match_value", "games.csv:id", "where",
        "people",
    ]  # fmt: skip
    row = result.table.slice(2, 1).to_pylist()[0]
    assert (row["match_table"], row["match_column"]) == ("games.csv", "where,id")
    assert joined("where,id", theirs=theirs, suffix="_there").table.column_names[5] == "id_there"


def test_columns_with_commas_are_named_in_quotes():
    ours = pa.table({"city, state": ["Salem, OR", "Salem, MA"], "year": [1, 2]})
    theirs = pa.table({'place "as is", state': ["salem, ma"], "year": ["2"]})
    columns = '"place ""as is"", state",year'
    result = joined(columns, ours, theirs, '"city, state",year', provenance=("column", "value"))
    assert result.table["match_value"].to_pylist() == [None, '"salem, ma",2']
    assert result.table["match_column"].to_pylist() == [None, columns]
    assert names_in(columns) == ['place "as is", state', "year"]


def test_repeated_names_are_told_apart_by_position():
    theirs = pa.table([["1"], ["2"], ["3"]], names=["#0", "#1", "n"])
    ours = pa.table([["2"], ["1"]], names=["k", "k"])
    result = joined("#1,#0", ours, theirs, "#0,#1")
    assert result.table["n"].to_pylist() == ["3"]


@given(st.lists(st.tuples(cells, cells)))
def test_keys_are_written_as_csv_is(rows):
    columns = [pa.array([row[at] for row in rows], pa.string()) for at in (0, 1)]
    assert written_keys(columns).to_pylist() == [line_of(row) for row in rows]


def test_a_key_of_one_column_is_its_cell():
    ours, theirs = pa.table({"k": ["1,234.5", "7"]}), pa.table({"m": ["1,234.5", "x"]})
    pair = TablePair(key_table(ours, ["k"], min_columns=1), "t.csv", theirs, Path("lake"))
    result = pair.join(pair.theirs(["m"]), {"provenance": ("value",)}, table=ours)
    assert result.table["match_value"].to_pylist() == ["1,234.5", None]
    columns = [pa.array(["a,b", None, 'a "b"'])]
    assert written_keys(columns).to_pylist() == ["a,b", None, 'a "b"']


def test_what_the_join_had_to_choose_is_told_of_keys():
    report = joined(aggregate={"people": "first", "*": "distinct"}).report
    assert report.lines() == [
        "1 key of your table is joined with several rows, such as 'PARIS ,1900': 'paris,1900'.",
        "1 key of your table has cells that differ, of which the first is taken, such as "
        "'PARIS ,1900' in people: '10', '4'.",
    ]
    assert report.to_dict()["conflicts"]["repeated"]["count"] == 1
    assert joined(aggregate="sum").report.counts["not a number"] == 2


def test_keys_that_are_missing_join_nothing():
    nothing = pa.table({"p": ["a", None], "q": [" ", "b"]})
    theirs = pa.table({"x": ["a", None], "y": [None, "b"]})
    result = joined("x,y", nothing, theirs, "p,q")
    assert (result.report.matched_rows, result.report.joined_rows, result.report.lines()) == (
        0,
        2,
        [],
    )
    assert joined("x,y", nothing, theirs, "p,q", how="inner").table.num_rows == 0


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        (
            QueryError,
            {"columns": "when,where,people"},
            r"Got 2 of your columns \(city, year\) and 3 of 'g",
        ),
        (QueryError, {"columns": "when,when"}, "names each column once. Got 'when' twice"),
        (QueryError, {"columns": "when"}, "Got 2 of your columns"),
        (QueryError, {"on": "city~,year"}, "Got city~: leave the ~ out"),
        (QueryError, {"columns": "where~,when"}, "Got where~: leave the ~ out"),
        (ColumnNotFoundError, {"columns": "where,wen"}, r"no column 'wen' \(did you mean 'when'"),
        (ColumnNotFoundError, {"on": "city,#7"}, "There is no column #7"),
        (InputError, {"columns": None, "on": "id,city"}, "No row of 'games.csv' has a whole key"),
        (
            InputError,
            {"columns": None, "theirs": THEIRS.select(["when"])},
            "'games.csv' has 1: take another table, or fewer columns",
        ),
        (InputError, {"to": "csv"}, "to must be one of pandas, arrow, polars"),
    ],
)
def test_what_cannot_be_joined_is_refused_in_a_sentence(kind, arguments, words):
    with pytest.raises(kind, match=words):
        joined(**arguments)


@pytest.mark.parametrize(("zone", "is_said"), [("+02:00", True), ("", False)])
def test_times_that_are_read_as_those_of_utc_are_said(zone, is_said):
    ours = pa.table({"at": ["2024-01-05 14:30", "2024-01-06"], "sensor": ["a", "b"]})
    hour = 16 if zone else 14
    theirs = pa.table({"when": [f"2024-01-05T{hour}:30:00{zone}"], "name": ["A"]})
    pair = TablePair(key_table(ours, "at,sensor"), "log.csv", theirs, Path())
    joined = pair.join(pair.theirs("when,name"), {})
    assert joined.table["match_distance"].to_pylist() == [0, None]
    note = "Your times have no time zone, and are read as those of UTC."
    assert joined.report.note == (note if is_said else None)
