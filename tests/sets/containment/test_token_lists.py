"""Posting lists against Python's own sets, and what damaged ones say."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_sets import NumberLists, ragged, some_of, vocabularies

from pexeso.errors import IndexCorruptError
from pexeso.runtime.threads import borrow_counters, give_back
from pexeso.sets.containment import ensemble as lists_module
from pexeso.sets.containment.ensemble import CsrLists

HALF = 1 << 32
TOKENS = st.sets(
    st.integers(0, 40).map(lambda number: number * HALF) | st.just(2**64 - 1), max_size=20
)


def lists_of(sets):
    return NumberLists(*ragged([np.array(sorted(one), np.uint64) for one in sets]))


def found_by(query, needed):
    sets, counts = query.at_least(needed)
    return dict(zip(sets.tolist(), counts.tolist(), strict=True))


@pytest.mark.parametrize("entries_a_probe", [0, 1, 10**9])
@given(st.lists(TOKENS, max_size=12), TOKENS, st.integers(1, 8))
def test_sets_with_enough_tokens_are_found_whether_lists_are_read_on_or_sets_looked_into(
    entries_a_probe, sets, query, needed
):
    lists = lists_of(sets)
    looked = lists.look_up(np.array(sorted(query), np.uint64))
    exact = {row: len(one & query) for row, one in enumerate(sets)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists_module, "ENTRIES_A_PROBE", entries_a_probe)
        assert found_by(looked, needed) == {
            row: count for row, count in exact.items() if count >= needed
        }
    counts = looked.overlaps(np.arange(len(sets)), needed)
    assert counts.tolist() == [count if count >= needed else -1 for count in exact.values()]
    assert looked.size == len(query)
    assert lists.sizes_of(np.arange(len(sets))).tolist() == [len(one) for one in sets]


def test_entries_are_those_of_the_shortest_lists():
    lists = lists_of([{1, 2, 3}, {1, 2}, {1, 5}])
    query = lists.look_up(np.array([1, 2, 3, 4], np.uint64))
    assert [query.n_entries(needed) for needed in (1, 2, 3, 4)] == [6, 3, 1, 0]


def test_large_lists_against_numpy():
    rng = np.random.default_rng(2)
    words = vocabularies(4, rng, max_size=800)
    sets = [np.unique(some_of(words[i % 4], rng)) for i in range(300)]
    lists = NumberLists(*ragged(sets))
    for query in sets[:20]:
        exact = [len(np.intersect1d(query, one)) for one in sets]
        for needed in (1, len(query) // 2 + 1, len(query)):
            expected = {row: count for row, count in enumerate(exact) if count >= needed}
            assert found_by(lists.look_up(query), needed) == expected


@pytest.mark.parametrize(
    "changed",
    [
        {"list_sets": [-1, 1, 1]},
        {"list_sets": [0, 1, 2]},
        {"token_offsets": [0, 1, 9]},
        {"token_offsets": [0, -1, 3]},
        {"set_offsets": [0, 9, 9]},
        {"set_offsets": [5, 1, 0]},
    ],
)
def test_arrays_that_lead_out_of_themselves_are_refused(monkeypatch, changed):
    arrays = {
        "token_offsets": [0, 1, 3],
        "list_sets": [0, 0, 1],
        "set_offsets": [0, 2, 3],
        "set_tokens": [0, 1, 1],
    }
    narrow = ("list_sets", "set_tokens")
    made = {
        name: np.array(array, np.int32 if name in narrow else np.int64)
        for name, array in (arrays | changed).items()
    }
    monkeypatch.setattr(lists_module, "ENTRIES_A_PROBE", 0)
    query = CsrLists(SimpleNamespace(**made, n_sets=2)).query(np.array([0, 1]), 2)

    def everything():
        for needed in (1, 2):
            query.at_least(needed)
            query.overlaps(np.array([0, 1]), needed)

    with pytest.raises(IndexCorruptError, match="leads out of it"):
        everything()
    assert not borrow_counters(2).any()  # what a failed search counted is not handed to the next


@pytest.mark.parametrize("token", [-1, 2])
def test_tokens_that_there_are_not_are_refused(token):
    offsets, zeros = {"token_offsets": np.array([0, 1, 1])}, np.zeros(1, np.int32)
    sets = {"set_offsets": np.array([0, 1]), "set_tokens": zeros}
    lists = CsrLists(SimpleNamespace(**offsets, **sets, list_sets=zeros, n_sets=1))
    with pytest.raises(IndexCorruptError):
        lists.query(np.array([token]), 1)
    with pytest.raises(IndexCorruptError):
        lists.query(np.array([0]), 1).overlaps(np.array([1]), 1)


def test_counters_are_lent_once_and_grow():
    small = borrow_counters(3)
    assert len(borrow_counters(2)) == 2
    give_back(small)
    large = borrow_counters(10)
    assert len(large) == 10
    give_back(large)
    part = borrow_counters(4)
    assert len(part) == 4
    assert part.base is large
    give_back(part)
    assert borrow_counters(10) is large
