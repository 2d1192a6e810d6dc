"""Searches by equal values: readings, and shards against brute force."""

import csv

import numpy as np
import pyarrow as pa
import pytest
from equal_text_lakes import overlaps, shard_of
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

import pexeso
from pexeso.errors import InputError
from pexeso.faces.cli.report import hint_lines
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.rules import READINGS
from pexeso.lake.readings import LOSSY
from pexeso.lake.tokens import DEFAULT_READINGS, distinct_tokens_of
from pexeso.options import ColumnRules
from pexeso.registry import choices
from pexeso.sets.containment.ensemble import Ensemble
from pexeso.sets.part import open as module
from pexeso.sets.shard_searches import (
    overlap_with,
    search_containment,
    search_overlap,
    search_overlap_batch,
    shared_values,
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


tokens = st.sets(st.sampled_from([str(number) for number in range(12)]), min_size=1)
names = st.tuples(
    st.sampled_from(["a.csv", "b.csv", "é.csv", "z/a.csv"]), st.sampled_from(["id", "x", "#2"])
)
lakes = st.dictionaries(names, tokens, min_size=1, max_size=10)


def overlaps_of(result):
    return [(match.table, match.column, match.overlap) for match in result]


@settings(max_examples=examples(40))
@given(lake=lakes, query=tokens, data=st.data())
def test_shards_together_find_what_brute_force_finds(tmp_path_factory, lake, query, data):
    folder = tmp_path_factory.mktemp("shards")
    of_shard = {name: data.draw(st.integers(0, 2)) for name in lake}
    shards, hidden = [], set()
    for number in range(3):
        columns = {name: lake[name] for name in lake if of_shard[name] == number}
        if columns:
            (folder / str(number)).mkdir()
            in_order = sorted(columns)
            deleted = data.draw(st.sets(st.integers(0, len(in_order) - 1)))
            hidden |= {in_order[place] for place in deleted}
            shards.append(shard_of(folder / str(number), columns, deleted=deleted))
    query_tokens, k = token_query(sorted(query)), data.draw(st.sampled_from([1, 2, 5, 100]))
    assert overlaps_of(search_overlap(shards, query_tokens, k)) == overlaps(
        lake, query, k, hidden=hidden
    )
    own = next(iter(lake))[0]
    without = hidden | {name for name in lake if name[0] == own}
    result = search_overlap(shards, query_tokens, k, exclude_table=own)
    assert overlaps_of(result) == overlaps(lake, query, k, hidden=without)
    [batched, empty] = search_overlap_batch(
        shards, [query_tokens, token_query([])], k, device="cpu", exclude_tables=[own, None]
    )
    assert overlaps_of(batched) == overlaps_of(result)
    assert not len(empty)
    for match in result:
        assert match.shared() == sorted(query & lake[match.table, match.column])
        assert match.containment == match.overlap / len(query)
        assert match.size == len(lake[match.table, match.column])
    every = overlap_with(shards, query_tokens, list(lake))
    expected = [len(query & lake[name]) * (name not in hidden) for name in lake]
    assert [0 if match is None else match.overlap for match in every] == expected


@settings(max_examples=examples(40))
@given(lake=lakes, query=tokens, data=st.data())
def test_containment_over_shards_is_what_brute_force_counts(tmp_path_factory, lake, query, data):
    of_shard = {name: data.draw(st.integers(0, 1)) for name in lake}
    share = data.draw(st.sampled_from([0.01, 0.3, 0.5, 0.55, 0.9, 1.0]))
    folder, shards = tmp_path_factory.mktemp("shards"), []
    parts = data.draw(st.sampled_from([choices(), ("overlap", "containment")]))
    for number in range(2):
        columns = {name: lake[name] for name in lake if of_shard[name] == number}
        if columns:
            (folder / str(number)).mkdir()
            shards.append(shard_of(folder / str(number), columns, parts=parts))
    expected = [row for row in overlaps(lake, query, 100) if row[2] >= share * len(query) - 1e-9]
    result = search_containment(shards, token_query(sorted(query)), share)
    # With so few and small sets posting lists are always the shorter way, and nothing is missed.
    assert overlaps_of(result) == expected
    assert set(result.stats["ways"]) == {"lists"}
    assert not any(match.estimated for match in result)
    own = next(iter(lake))[0]
    without = search_containment(shards, token_query(sorted(query)), share, exclude_table=own)
    assert overlaps_of(without) == [row for row in expected if row[0] != own]


def test_an_estimate_says_that_it_is_one(tmp_path, monkeypatch):
    columns = {("a.csv", "id"): {str(number) for number in range(40)}, ("b.csv", "id"): {"x"}}
    shard = shard_of(tmp_path, columns, parts=choices())
    monkeypatch.setattr(Ensemble, "_lists_pay", lambda *_: False)
    result = search_containment(
        [shard], token_query([str(number) for number in range(40)]), 1.0, verify=False
    )
    assert [tuple(row.values())[:5] for row in result.to_dict()["results"]] == [
        ("a.csv", "id", 1.0, True, [])
    ]
    assert result[0].overlap is None


@pytest.fixture
def shard(tmp_path):
    return shard_of(tmp_path, {("a.csv", "id"): {"1", "2", "01"}, ("b.csv", "id"): {"2", "3"}})


def test_values_are_compared_as_tokens(shard):
    assert overlaps_of(
        search_overlap([shard], token_query([1, "1", 1.0, " 2 ", "01", None]), 5)
    ) == [
        ("a.csv", "id", 3),
        ("b.csv", "id", 1),
    ]


def test_results_tell_of_themselves(shard):
    result = search_overlap([shard], token_query(["2", "3", "9"]), 5)
    document = result.to_dict(explain=True)
    common = {"brings": [], "rows_per_value": None, "is_small_domain": False}
    assert document["results"] == [
        {"table": "b.csv", "column": "id", "overlap": 2, **common, "shared": ["2", "3"]},
        {"table": "a.csv", "column": "id", "overlap": 1, **common, "shared": ["2"]},
    ]
    assert document["query"] == {"file": None, "column": None, "rows": 3, "empty": 0, "values": 3}
    assert document["options"] == {"k": 5, "exclude_table": None}
    assert list(result.to_pandas().columns) == ["table", "column", "overlap", "brings"]
    assert result[0].containment == pytest.approx(2 / 3)


@pytest.mark.parametrize("values", [[], [None, ""], ["nowhere"]])
def test_a_query_without_a_value_of_the_lake_finds_nothing(shard, values):
    assert not len(search_overlap([shard], token_query(values), 3))
    assert search_overlap([], token_query(values), 3).to_dict()["results"] == []


def test_more_columns_than_there_are_gives_all_that_share_a_value(shard):
    assert len(search_overlap([shard], token_query(["2"]), 10**6)) == 2


@pytest.mark.parametrize("min_containment", [0, -0.1, 1.01, float("nan"), True, "0.5", None])
def test_a_threshold_must_lie_above_zero_and_at_most_at_one(shard, min_containment):
    with pytest.raises(InputError, match="min_containment must be a number above 0 and at most 1"):
        search_containment([shard], token_query(["2"]), min_containment)


def test_the_shared_values_are_those_of_the_query_that_a_set_has(shard):
    assert shared_values(shard, 0, pa.array(["9", "2", "01"], pa.large_string())) == ["01", "2"]
    assert shard.numbers_of([("b.csv", "id"), ("b.csv", "x"), ("c.csv", "id")]).tolist() == [
        1,
        -1,
        -1,
    ]
    assert np.array_equal(shard.hidden("b.csv"), [1])


def test_columns_are_looked_up_together(tmp_path, monkeypatch):
    columns = {(f"t{number:03}.csv", label): {"1"} for number in range(99) for label in "ab"}
    shard, reads = shard_of(tmp_path, columns), []
    read = module.take_texts
    monkeypatch.setattr(module, "take_texts", lambda *given: reads.append(1) or read(*given))
    assert shard.numbers_of([*columns][:1]).tolist() == [0]
    of_one = len(reads)
    assert shard.numbers_of([*columns]).tolist() == list(range(198))
    assert len(reads) == 2 * of_one
