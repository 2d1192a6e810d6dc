"""Searches by equal values under readings, against plain sets of what each column is read as."""

import csv

import pyarrow as pa
import pytest
from equal_text_lakes import shard_of
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

import pexeso
from pexeso.faces.cli.report import hint_lines
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.rules import READINGS
from pexeso.lake.readings import LOSSY
from pexeso.lake.tokens import DEFAULT_READINGS, distinct_tokens_of
from pexeso.options import ColumnRules
from pexeso.sets.shard_searches import (
    overlap_with,
    search_containment,
    search_overlap,
    search_overlap_batch,
    token_query,
)

CELLS = [
    *("7", "007", "7.0", "8", "08", "1.5", "1.50", "ab", "AB", "1,234", "1234", "true", "TRUE"),
    *("yes", "1", "0", "3/5/2020", "13/5/2020", "5/13/2020", "2020-05-03", "20200305"),
    *("Mar 5, 2020", "2020-05-13", "+442079460018", "02079460018", "Jan-24", "2024-01"),
]
columns_of_cells = st.lists(st.sampled_from(CELLS), min_size=1, max_size=6)


def tokens_as(cells, readings):
    return set(distinct_tokens_of([pa.array(cells)], readings)[0].to_pylist())


@settings(max_examples=examples(40))
@given(
    st.lists(columns_of_cells, min_size=1, max_size=5),
    columns_of_cells,
    st.sets(st.sampled_from(sorted(LOSSY))),
)
def test_what_is_found_is_what_sets_of_read_cells_share(tmp_path_factory, lake, query, on):
    readings = tuple(name for name in READINGS if name in {*DEFAULT_READINGS, *on})
    normaliser = Normaliser().switched(on=on)
    columns = {(f"t{at}.csv", "k"): tokens_as(cells, readings) for at, cells in enumerate(lake)}
    columns = {name: tokens for name, tokens in columns.items() if tokens}
    if not columns:
        return
    shard = shard_of(tmp_path_factory.mktemp("shard"), columns, parts=("overlap", "containment"))
    query_tokens = token_query(query, normaliser)
    ways = [set(one.tokens.to_pylist()) for one in (query_tokens, *query_tokens.others)]
    # As the column is read, and as its cells stand; where it leaves the order of dates open, both.
    assert tokens_as(query, readings) in ways
    shares = {
        name: max(len(way & tokens) / len(way) for way in ways) for name, tokens in columns.items()
    }
    expected = sorted((-share, *name) for name, share in shares.items() if share)
    result = search_overlap([shard], query_tokens, 10)
    assert [(-match.containment, match.table, match.column) for match in result] == expected
    [batched] = search_overlap_batch(
        [shard], [query_tokens], 10, device="cpu", exclude_tables=[None]
    )
    assert list(batched) == list(result)
    contained = search_containment([shard], query_tokens, 0.5)
    assert [match.table for match in contained] == [
        table for share, table, _ in expected if -share >= 0.5
    ]
    counted = overlap_with([shard], query_tokens, list(columns))
    assert [match.containment if match else 0 for match in counted] == list(shares.values())


def write(path, cells):
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([["k", "note"], *([cell, "a b"] for cell in cells)])


def index_of(tmp_path, cells, **options):
    (tmp_path / "lake").mkdir()
    write(tmp_path / "lake" / "t.csv", cells)
    rules = ColumnRules(min_rows=1, min_distinct=1)
    return pexeso.build_index(
        tmp_path / "lake",
        tmp_path / "ix",
        parts=("overlap", "containment"),
        rules=rules,
        **options,
    )


def best(result, column="k"):
    return max((match.overlap for match in result if match.column == column), default=0)


@pytest.mark.parametrize(
    ("rule", "mine", "lake"),
    [
        ("leading-zeros", ["1001", "1003", "36061"], ["01001", "01003", "36061", "04013"]),
        ("letter-case", ["ab12", "cd34"], ["AB12", "CD34", "EF56"]),
        ("decimal-zeros", ["1.5", "2.25"], ["1.50", "2.250", "3.50"]),
        ("truth-numbers", ["true", "false"], ["1", "0"]),
        ("calling-codes", ["+44 20 7946 0018"], ["020 7946 0018", "0161 496 0123"]),
    ],
)
def test_what_would_match_is_said_and_found_by_the_rule(tmp_path, rule, mine, lake):
    index = index_of(tmp_path, lake)
    hints = index.search(mine, method="overlap").hints()
    [line] = [one for one in hints.readings if one.rule == rule]
    assert (line.table, line.column) == ("t.csv", "k")
    assert (line.matched, line.total) == (len(mine), len(mine))
    assert f"--rule {rule}, which" in hint_lines(hints)[0], "not cut"
    (tmp_path / "with").mkdir()
    read = index_of(tmp_path / "with", lake, normaliser=Normaliser().switched(on=[rule]))
    result = read.search(mine, method="overlap")
    assert best(result) == len(mine)
    assert not result.hints().readings, "nothing is said where most values are there"


def test_nothing_is_said_of_a_reading_that_the_column_keeps_apart(tmp_path):
    index = index_of(tmp_path, ["01001", "1001", "01003", "04013"])
    result = index.search(["1003", "4013", "9"], method="overlap")
    assert not result.hints().readings
    switched = Normaliser().switched(on=["leading-zeros"])
    (tmp_path / "with").mkdir()
    read = index_of(tmp_path / "with", ["01001", "1001", "01003"], normaliser=switched)
    assert best(read.search(["1001", "1003"], method="overlap")) == 1, "007 is not 7 there"


def test_identical_cells_are_found_whatever_a_column_is_read_as(tmp_path):
    index = index_of(tmp_path, ["3/5/2020", "13/5/2020", "4/6/2020"])
    for mine in (["3/5/2020", "4/6/2020"], ["2020-05-03", "2020-06-04"]):
        assert best(index.search(mine, method="overlap")) == 2
    assert best(index.search(["2020-03-05", "2020-04-06"], method="overlap")) == 0


def test_readings_are_said_only_where_more_than_the_nearest_column_has_would_match(tmp_path):
    index = index_of(tmp_path, [*(f"A{number}" for number in range(29)), "ab1", "Cd2"])
    mine = [*(f"A{number}" for number in range(29)), *(f"X{number}" for number in range(71))]
    result = index.contain(mine, min_containment=0.7)
    hints = result.hints()
    assert (hints.nearest[0].matched, hints.readings) == (29, ())
    assert index.overlap(mine).hints().readings == ()
    hints = index.contain([*mine[:29], "AB1", "X"], min_containment=0.97).hints()
    assert [(line.rule, line.matched) for line in hints.readings] == [("letter-case", 30)]
