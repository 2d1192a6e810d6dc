"""JOSIE and MergeList against brute force, what they read and cost, and the planner."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import torch
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
    skewed_lake,
)

from pexeso.errors import DeviceError, IndexCorruptError
from pexeso.sets.overlap import batched
from pexeso.sets.overlap.batched import BatchedMergeList
from pexeso.sets.overlap.index import (
    OverlapQuery,
    build_index,
    open_index,
    query_of_tokens,
    save_index,
)
from pexeso.sets.overlap.josie import JosieRun, ReadCosts, expected_matches, josie, rate_since_first
from pexeso.sets.overlap.planner import Planner, merge_list
from pexeso.store.arrays import FaultWatch

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


CHEAP_LISTS = ReadCosts(1, 0.00125, 1, 0.0017)
DEAR_LISTS = ReadCosts(1, 0.001, 3, 0.02)


@pytest.fixture(scope="module")
def skewed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("skewed")
    sets = skewed_lake(np.random.default_rng(0))
    ids = np.repeat(np.arange(len(sets)), [len(tokens) for tokens in sets])
    save_index(build_index(ids, pa.array(np.concatenate(sets)).cast(pa.large_string())), folder)
    index = open_index(folder)
    large = np.flatnonzero([50 <= len(tokens) <= 3000 for tokens in sets])
    rows = np.random.default_rng(1).choice(large, 40, replace=False).tolist()
    return index, [(row, query_of_tokens(index, index.suffix(row, 0))) for row in rows]


def reads(skewed, k, costs):
    index, queries = skewed
    rows = []
    for row, query in queries:
        answers = [
            josie(index, query, k, costs=costs, exclude=[row]),
            merge_list(index, query, k, costs=costs, exclude=[row]),
        ]
        assert answers[0].pairs() == answers[1].pairs()
        rows.append([[one.reads.cost, one.reads.lists] for one in answers])
    return np.array(rows)


@pytest.mark.parametrize("costs", [CHEAP_LISTS, DEAR_LISTS])
@pytest.mark.parametrize("k", [5, 10])
def test_acceptance_10_josie_reads_less_than_counting_all_lists(skewed, costs, k):
    work = reads(skewed, k, costs)
    assert (work[:, 0, 0] <= work[:, 1, 0]).mean() >= 0.75
    mean = work.mean(axis=0)
    assert mean[0, 0] < mean[1, 0]
    assert mean[0, 1] < mean[1, 1] * 2 / 3


def test_a_step_that_costs_puts_reads_together(skewed):
    index, queries = skewed
    steps = {}
    for step in (0, 50):
        costs = ReadCosts(1, 0.00125, 1, 0.0017, step=step)
        steps[step] = 0
        for row, query in queries:
            run = JosieRun(index, query, 10, costs, [row])
            while run.step():
                steps[step] += 1
    assert steps[50] < 0.6 * steps[0]


def test_before_a_threshold_as_many_sets_are_read_as_a_step_is_worth(skewed):
    index, queries = skewed
    first = {}
    for step in (0, 10):
        costs, read = ReadCosts(1, 0, 1, 0, step=step), []
        for row, query in queries:
            run = JosieRun(index, query, 3, costs, [row])
            run.sets = 18
            while run.step() and not run.best.full:
                pass
            read.append(run.reads.sets)
        first[step] = max(read)
    assert first == {0: 3, 10: 18}


@pytest.mark.parametrize("max_counts", [1, 500, 1 << 24])
def test_the_batched_merge_gives_the_same_answers(max_counts, monkeypatch):
    monkeypatch.setattr(batched, "MAX_COUNTS", max_counts)
    rng = np.random.default_rng(8)
    for _ in range(15 if EVERYTHING else 5):
        sets = random_lake(rng)
        index = index_of(sets)
        texts = [random_query(rng, sets) for _ in range(7)] + [[]]
        queries = [query_of(index, some) for some in texts]
        exclude = [
            rng.choice(list(sets), 2).tolist() if rng.random() < 0.5 else [] for _ in queries
        ]
        for k in (1, 5, 20, 500):
            merged = BatchedMergeList(index)
            answers = merged.search(queries, k, exclude=exclude)
            floored = merged.search(queries, k, exclude=exclude, at_least=3)
            assert [one.pairs() for one in floored] == [
                [pair for pair in one.pairs() if pair[1] >= 3] for one in answers
            ]
            alone = [
                josie(index, query, k, exclude=ids)
                for query, ids in zip(queries, exclude, strict=True)
            ]
            assert [one.pairs() for one in answers] == [one.pairs() for one in alone]
            assert [one.reads.lists for one in answers] == [query.n_blocks for query in queries]


@pytest.mark.gpu
def test_the_batched_merge_is_the_same_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    rng = np.random.default_rng(9)
    sets = random_lake(rng)
    index = index_of(sets)
    queries = [query_of(index, random_query(rng, sets)) for _ in range(20)]
    there, here = (
        BatchedMergeList(index, device).search(queries, 10, [()] * 20) for device in ("cuda", "cpu")
    )
    assert [one.pairs() for one in there] == [one.pairs() for one in here]


def test_a_batch_of_nothing_and_an_empty_index():
    merged = BatchedMergeList(index := index_of({}))
    assert merged.search([], 3, []) == []
    assert merged.search([query_of(index, ["a"])], 3, [()])[0].pairs() == []


def test_the_batched_merge_refuses_what_it_cannot_do():
    index = index_of({1: "ab", 2: "b"})
    with pytest.raises(DeviceError, match="cannot be held on the device 'toaster'"):
        BatchedMergeList(index, "toaster")
    index.list_sets[0] = 9
    with pytest.raises(IndexCorruptError, match="names a set"):
        BatchedMergeList(index)
    index.list_sets[0] = 0
    index.token_offsets[1] = 99
    with pytest.raises(IndexCorruptError, match="lead out of it"):
        BatchedMergeList(index)


def test_the_planner_gives_one_answer_whichever_way_it_goes(skewed):
    index, queries = skewed
    ways = set()
    for wait in (0, 1e5):
        planner = Planner(wait=wait)
        for row, query in queries[:15]:
            answer = planner.search(index, query, 10, exclude=[row], at_least=3)
            assert answer.pairs() == merge_list(index, query, 10, exclude=[row], at_least=3).pairs()
            ways.add(planner.choose(index, query, 10))
    assert ways == {"josie", "merge_list"}


def test_the_planner_counts_short_lists_and_searches_long_ones():
    tokens = np.arange(100)
    short, long = (
        OverlapQuery(tokens, tokens + 1, tokens + 1, np.full(100, f)) for f in (5, 200_000)
    )
    for n_sets, query, way in (
        (100, short, "merge_list"),
        (10**6, long, "josie"),
        (10**6, short, "merge_list"),
    ):
        assert Planner().choose(SimpleNamespace(n_sets=n_sets), query, 10) == way
    assert Planner().choose(SimpleNamespace(n_sets=10**6), long, 10**6) == "merge_list"


def test_what_a_disk_adds_is_measured_in_a_few_reads(skewed, monkeypatch):
    index, queries = skewed
    monkeypatch.setattr(FaultWatch, "missing", lambda self: True)
    ticks = iter([0.0, 0.016, 10.0, 10.2])
    planner = Planner.measured(index, clock=lambda: next(ticks))
    assert planner.wait == pytest.approx(100)
    assert planner.per_byte == pytest.approx(0.2e6 / (4 << 16))
    assert (
        planner.search(index, queries[0][1], 5).pairs()
        == merge_list(index, queries[0][1], 5).pairs()
    )
    assert planner.choose(index, queries[0][1], 5) == "josie"
    monkeypatch.setattr(FaultWatch, "missing", lambda self: False)
    assert Planner.measured(index) == Planner.measured(index_of({})) == Planner()


@given(st.integers(0, 10**6))
def test_what_is_held_by_chance_is_near_its_definition(seed):
    rng = np.random.default_rng(seed)
    n_lists, largest = int(rng.integers(1, 200)), int(10 ** rng.uniform(0, 5))
    rest, n_pairs = rng.integers(0, largest + 1, 20), int(rng.integers(100, 10**7))
    frequencies, weights = np.sort(rng.integers(1, n_pairs, n_lists)), rng.integers(1, 4, n_lists)
    estimates = expected_matches(rest, frequencies, weights, n_pairs)
    exact = np.array(
        [((1 - np.exp(-z * frequencies / n_pairs)) * weights).sum() for z in rest.tolist()]
    )
    assert estimates == pytest.approx(exact, rel=0.25, abs=2)
    assert (estimates[rest == 0] == 0).all()
    assert (estimates <= weights.sum() + 1e-9).all()


def test_matches_since_the_first_do_not_count_the_first():
    w = SimpleNamespace(count=np.array([1, 1, 5]), first=np.array([4, 1, 1]))
    assert rate_since_first(w, 4).tolist() == [0, 0, 0.8]


def test_no_read_costs_less_than_the_least_but_reading_nothing_does():
    disk = ReadCosts(-9.42, 0.00125, 1.01, 0.00166, min_cost=1.0)
    assert disk.of_sets(np.array([0, 1, 100_000])).tolist() == pytest.approx([0, 1, 115.58])
    assert ReadCosts(-5, 1, -5, 1, min_cost=2).of_lists(np.array([1, 10])).tolist() == [2, 5]
