"""Tests of searches over shards: their merged results equal brute force over all columns."""

import numpy as np
import pyarrow as pa
import pytest
from equal_text_lakes import overlaps, shard_of
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.errors import InputError
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
