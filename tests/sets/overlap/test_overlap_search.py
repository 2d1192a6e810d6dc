"""Tests of JOSIE and MergeList against brute force on random lakes."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import EVERYTHING, examples, long_but
from overlap_lakes import (
    brute_force,
    by_text,
    first_lake,
    index_of,
    number,
    query_of,
    random_lake,
    random_query,
)

from pexeso.sets.overlap.josie import JosieRun, ReadCosts, josie
from pexeso.sets.overlap.planner import merge_list

LAKES = 40 if EVERYTHING else 12
"""How many random lakes a test draws."""

QUERY = [number(n) for n in (1, 2, 100, 200)]
COSTS = {
    "disk": ReadCosts(1, 0.00125, 1, 0.0017),
    "nothing": ReadCosts(0, 0, 0, 0),
    "dear sets": ReadCosts(100, 1, 0, 0),
    "dear lists": ReadCosts(0, 0.01, 50, 1),
    "negative": ReadCosts(-9, 0.5, -3, 0.1),
}


@pytest.fixture(scope="module")
def w1():
    return index_of(first_lake(), order=by_text)


class SteppedRun(JosieRun):
    """A run with other step sizes."""

    def __init__(self, *arguments, batch=None, min_sample=None, sets=None):
        super().__init__(*arguments)
        self.batch, self.min_sample, self.sets = (
            batch,
            min_sample or self.min_sample,
            sets or self.sets,
        )

    def _next_block(self):
        return (
            super()._next_block()
            if self.batch is None
            else min(self.n_read + self.batch, self.query.n_blocks)
        )


def stepped(index, query, k, costs, exclude=(), at_least=1, **steps):
    run = SteppedRun(index, query_of(index, query), k, costs, exclude, at_least, **steps)
    while run.step():
        pass
    return run.answer()


def test_w3_of_sets_that_tie_the_smaller_id_is_found(w1):
    run = SteppedRun(w1, query_of(w1, QUERY), 2, COSTS["dear lists"], batch=1, min_sample=1, sets=1)
    run.step()
    run._read_sets(np.array([0]))
    run._read_lists()
    run._read_sets(np.array([w1.ids_of(run.candidates.number).tolist().index(4)]))
    assert dict(
        zip(w1.ids_of(run.candidates.number).tolist(), run.bounds().tolist(), strict=True)
    ) == {2: 2, 3: 1}
    run._read_lists()
    run._read_sets(np.array([w1.ids_of(run.candidates.number).tolist().index(2)]))
    while run.step():
        pass
    assert run.answer().pairs() == [(1, 3), (4, 2)]
    assert (run.reads.lists, run.reads.tokens) == (3, 2 + 99 + 1)


@pytest.mark.parametrize("search", [josie, merge_list])
def test_w5_full_answers(w1, search):
    assert search(w1, query_of(w1, QUERY), 4).pairs() == [(1, 3), (4, 2), (2, 1), (3, 1)]
    assert search(w1, query_of(w1, QUERY), 1).pairs() == [(1, 3)]


def check(sets, index, query, k, rng, /, **how):
    costs = COSTS[list(COSTS)[int(rng.integers(len(COSTS)))]]
    exclude = [int(rng.choice(list(sets)))] if rng.random() < 0.2 else []
    truth = brute_force(sets, query, k, exclude)
    answer = stepped(index, query, k, costs, exclude, **how)
    assert answer.pairs() == truth
    assert josie(index, query_of(index, query), k, costs=costs, exclude=exclude).pairs() == truth
    assert answer.n_asked == len(set(query))
    assert answer.reads.lists <= query_of(index, query).n_blocks


TOKENS = st.integers(0, 12).map("v{}".format)


@given(
    sets=st.dictionaries(st.integers(-5, 30), st.sets(TOKENS, min_size=1), max_size=12),
    query=st.lists(TOKENS, max_size=14),
    k=st.sampled_from([1, 2, 5, 10, 20, 100]),
    batch=st.none() | st.integers(1, 4),
    min_sample=st.none() | st.integers(1, 3),
    some_at_a_time=st.integers(1, 4),
    at_least=st.integers(1, 5),
)
@settings(max_examples=examples(300))
def test_josie_equals_brute_force_on_any_small_lake(
    sets, query, k, some_at_a_time, at_least, **how
):
    sets = {set_id: sorted(tokens) for set_id, tokens in sets.items()}
    index = index_of(sets)
    truth = [pair for pair in brute_force(sets, query, k) if pair[1] >= at_least]
    for costs in COSTS.values():
        assert (
            stepped(index, query, k, costs, (), at_least, sets=some_at_a_time, **how).pairs()
            == truth
        )


@pytest.mark.parametrize("part", long_but([0], range(4)))
def test_josie_equals_brute_force(part):
    rng = np.random.default_rng(part)
    for _ in range(50):
        sets = random_lake(rng)
        index = index_of(
            sets,
            order=None
            if rng.random() < 0.7
            else lambda offsets, _: rng.permutation(len(offsets) - 1),
        )
        query = random_query(rng, sets)
        for k in (1, 2, 5, 10, 20, 100, 200):
            check(
                sets,
                index,
                query,
                k,
                rng,
                batch=[None, 1, 3, 20][int(rng.integers(4))],
                sets=int(rng.choice([1, 3, 24])),
                min_sample=int(rng.choice([1, 5])),
            )


def test_merge_list_equals_brute_force():
    rng = np.random.default_rng(11)
    for _ in range(LAKES):
        sets = random_lake(rng)
        index = index_of(sets)
        query = random_query(rng, sets)
        for k in (1, 5, 200):
            merged = merge_list(index, query_of(index, query), k)
            assert merged.pairs() == brute_force(sets, query, k)
            assert merged.reads.lists == query_of(index, query).n_blocks <= len(set(query))
            assert merge_list(index, query_of(index, query), k, exclude=list(sets)).pairs() == []


def test_acceptance_11_the_answer_is_the_same_in_any_thread_and_however_the_lake_is_divided():
    rng = np.random.default_rng(23)
    for _ in range(LAKES):
        sets = random_lake(rng)
        query, k = random_query(rng, sets), int(rng.choice([1, 3, 10]))
        truth = brute_force(sets, query, k)
        index = index_of(sets)
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(partial(pairs_by_josie, index, query, k), range(8))) == [truth] * 8
        for search in (josie, merge_list):
            assert divided(search, rng, sets, query, k) == truth


def pairs_by_josie(index, query, k, _):
    return josie(index, query_of(index, query), k).pairs()


def divided(search, rng, sets, query, k):
    part_of = rng.integers(0, 3, len(sets))
    best = []
    for part in range(3):
        some = {
            set_id: tokens
            for at, (set_id, tokens) in zip(part_of, sets.items(), strict=True)
            if at == part
        }
        at_least = best[k - 1][1] if len(best) >= k else 1
        index = index_of(some)
        best += search(index, query_of(index, query), k, at_least=at_least).pairs()
        best = sorted(best, key=lambda pair: (-pair[1], pair[0]))[:k]
    return best


@pytest.mark.parametrize("search", [josie, merge_list])
def test_smaller_overlaps_than_wanted_are_not_found(search):
    rng = np.random.default_rng(24)
    for _ in range(LAKES):
        sets = random_lake(rng)
        index, query = index_of(sets), random_query(rng, sets)
        for at_least in (1, 2, 4, 9, 99):
            for k in (1, 4, 50):
                truth = [pair for pair in brute_force(sets, query, k) if pair[1] >= at_least]
                assert search(index, query_of(index, query), k, at_least=at_least).pairs() == truth


def test_a_floor_spares_reads():
    rng = np.random.default_rng(25)
    read = np.zeros(2)
    for _ in range(30):
        sets = random_lake(rng)
        index, query = index_of(sets), random_query(rng, sets)
        answer = josie(index, query_of(index, query), 3)
        floor = int(answer.overlaps[-1]) + 1 if len(answer.overlaps) == 3 else 1
        again = josie(index, query_of(index, query), 3, at_least=floor)
        read += answer.reads.entries + answer.reads.tokens, again.reads.entries + again.reads.tokens
    assert read[1] < 0.7 * read[0]


def test_what_no_set_has_and_what_is_empty(w1):
    for search in (josie, merge_list):
        for query in ([], ["nowhere"]):
            answer = search(w1, query_of(w1, query), 3)
            assert answer.pairs() == []
            assert answer.reads.lists == answer.reads.sets == 0
        assert search(w1, query_of(w1, [number(200)]), 100).pairs() == [(1, 1)]
        empty = index_of({})
        assert search(empty, query_of(empty, ["a"]), 1, exclude=[4]).pairs() == []


def test_containment_divides_by_all_that_was_asked(w1):
    answer = josie(w1, query_of(w1, [*QUERY, "nowhere"]), 1)
    assert answer.n_asked == 5
    assert answer.containment.tolist() == [0.6]
