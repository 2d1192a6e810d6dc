"""Columns found by equal values, folded: held against brute force over all columns."""

from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest
from equal_text_lakes import overlaps, shard_of
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.engine import copies as search_copies
from pexeso.sets import searches as copies
from pexeso.sets.searches import Request
from pexeso.sets.shard_searches import search_overlap, token_query

tokens = st.sets(st.integers(0, 30).map(str), min_size=1)


class NoCatalog:
    catalog = None


@st.composite
def lakes(draw):
    sets = draw(st.lists(tokens, min_size=1, max_size=6))
    for _ in range(draw(st.integers(0, 6))):
        one = draw(st.sampled_from(sets)) ^ draw(st.sets(st.integers(0, 30).map(str), max_size=1))
        sets.append(one or {"0"})
    return {
        (f"{number:02}.csv", "id"): values
        for number, values in enumerate(draw(st.permutations(sets)))
    }


def lines_by_loops(lake, query):
    lines = []
    for table, label, _ in overlaps(lake, query, len(lake)):
        one = lake[table, label]
        for line in lines:
            other = lake[line[0]]
            if 10 * len(one & other) >= 9 * len(one | other):
                line.append((table, label))
                break
        else:
            lines.append([(table, label)])
    return lines


def named(result):
    return [[(hit.table, hit.column) for hit in (match, *match.copies)] for match in result]


@settings(max_examples=examples(60))
@given(lake=lakes(), query=tokens, data=st.data())
def test_lines_over_shards_are_those_of_brute_force(tmp_path_factory, lake, query, data):
    folder, shards = tmp_path_factory.mktemp("shards"), []
    of_shard = {name: data.draw(st.integers(0, 2)) for name in lake}
    for number in range(3):
        columns = {name: lake[name] for name in lake if of_shard[name] == number}
        if columns:
            (folder / str(number)).mkdir()
            shards.append(shard_of(folder / str(number), columns))
    expected = lines_by_loops(lake, query)
    search = partial(search_overlap, shards, token_query(sorted(query)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "CHUNK_NUMBERS", data.draw(st.sampled_from([1, 3, 1 << 20])))
        every = Request(None, True).first_best(search, len(lake), NoCatalog)
    assert named(every) == expected
    assert every.n_more == 0
    k = data.draw(st.integers(1, 4))
    with pytest.MonkeyPatch.context() as patch:
        # So that several requests are needed for k lines.
        patch.setattr(copies, "first_request", lambda k, folds: k)
        patch.setattr(copies, "next_request", lambda n: n + 1)
        some = Request(k, True).first_best(search, len(lake), NoCatalog)
    assert [line[0] for line in named(some)] == [line[0] for line in expected[:k]]
    assert some.n_more in (None, max(0, len(expected) - k))
    apart = Request(k, False).first_best(search, len(lake), NoCatalog)
    flat = [(table, label) for table, label, _ in overlaps(lake, query, len(lake))]
    assert named(apart) == [[name] for name in flat[:k]]
    assert apart.n_more in (None, max(0, len(flat) - k))


def test_it_is_known_that_there_are_no_more_where_fewer_were_found_than_asked_for(tmp_path):
    lake = {(f"{number}.csv", "id"): {"1", str(number + 2)} for number in range(3)}
    shard = shard_of(tmp_path, lake)
    search = partial(search_overlap, [shard], token_query(["1"]))
    assert Request(2, False).first_best(search, 3, NoCatalog).n_more == 1
    assert Request(3, False).first_best(search, 3, NoCatalog).n_more == 0


def test_copies_behind_a_large_column_are_folded(tmp_path, monkeypatch):
    monkeypatch.setattr(search_copies, "MAX_VALUES", 6)
    lake = {
        ("large.csv", "id"): {*map(str, range(20))},
        ("one.csv", "id"): {"1", "2", "x"},
        ("two.csv", "id"): {"1", "2", "x"},
    }
    search = partial(search_overlap, [shard_of(tmp_path, lake)], token_query(["1", "2", "3"]))
    assert named(Request(5, True).first_best(search, 3, NoCatalog)) == [
        [("large.csv", "id")],
        [("one.csv", "id"), ("two.csv", "id")],
    ]


def test_how_many_more_there_are_does_not_depend_on_how_many_are_wanted(tmp_path):
    kinds = [{f"{kind}{number}" for number in range(20)} for kind in "abc"]
    lake = {
        (f"{at}{kind}.csv", "id"): {*values, f"own {at}"}
        for at in range(3)
        for kind, values in enumerate(kinds)
    }
    search = partial(search_overlap, [shard_of(tmp_path, lake)], token_query(["a0", "b0", "c0"]))
    counts = []
    for k in (1, 2, 3, 5):
        result = Request(k, True).first_best(search, len(lake), NoCatalog)
        counts.append((len(result), result.n_more))
    assert counts == [(1, 2), (2, 1), (3, 0), (3, 0)]


def test_what_a_join_brings_is_asked_for_shown_tables_alone_and_once(tmp_path):
    lake = {(f"{number}.csv", "id"): {"1", str(number + 2)} for number in range(5)}
    requested = []

    class Catalog:
        @staticmethod
        def columns(names, among):
            requested.append(among.to_pylist())
            rows = [
                (table, label, at, 2, 0, 2)
                for table in requested[-1]
                for at, label in enumerate("ab")
            ]
            return pa.table([pa.array(cells) for cells in zip(*rows, strict=True)], list(names))

    class Opened:
        catalog = Catalog

    search = partial(search_overlap, [shard_of(tmp_path, lake)], token_query(["1"]))
    matches = Request(2, True).first_best(search, 5, Opened)
    assert requested == []
    assert [replace(match, column="a").brings for match in matches] == [("b",), ("b",)]
    assert requested == [["0.csv", "1.csv"]]


def test_the_first_request_asks_for_more_than_is_wanted():
    assert search_copies.first_request(3, folds=False) == 4
    assert search_copies.first_request(3, folds=True) > 4
    assert search_copies.first_request(2**63 - 1, folds=True) == 2**63 - 1
