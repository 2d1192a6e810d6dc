"""What is read on a skewed lake, the batched merge of lists, and which way the planner goes."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import torch
from long_runs import EVERYTHING
from overlap_lakes import index_of, random_lake, random_query, skewed_lake

from pexeso.errors import DeviceError, IndexCorruptError, InputError
from pexeso.sets.overlap.batched import BatchedMergeList
from pexeso.sets.overlap.costs import ReadCosts
from pexeso.sets.overlap.index.saving import open_index, save_index
from pexeso.sets.overlap.index.sets import build_index
from pexeso.sets.overlap.josie import JosieRun, josie
from pexeso.sets.overlap.merge import merge_list
from pexeso.sets.overlap.planner import Planner
from pexeso.sets.overlap.query import OverlapQuery, prepare_query, query_of_tokens
from pexeso.store.paging import FaultWatch

CHEAP_LISTS = ReadCosts(1, 0.00125, 1, 0.0017)
DEAR_LISTS = ReadCosts(1, 0.001, 3, 0.02)


@pytest.fixture(scope="module")
def skewed(tmp_path_factory):
    """Return an index in files, and 40 queries of 50 to 3,000 tokens that are sets of it."""
    folder = tmp_path_factory.mktemp("skewed")
    sets = skewed_lake(np.random.default_rng(0))
    ids = np.repeat(np.arange(len(sets)), [len(tokens) for tokens in sets])
    save_index(build_index(ids, pa.array(np.concatenate(sets)).cast(pa.large_string())), folder)
    index = open_index(folder)
    large = np.flatnonzero([50 <= len(tokens) <= 3000 for tokens in sets])
    rows = np.random.default_rng(1).choice(large, 40, replace=False).tolist()
    return index, [(row, query_of_tokens(index, index.suffix(row, 0))) for row in rows]


def reads(skewed, k, costs):
    """Return cost and lists of JOSIE and MergeList for each query: (queries, 2, 2)."""
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
def test_the_batched_merge_gives_the_same_answers(max_counts):
    rng = np.random.default_rng(8)
    for _ in range(15 if EVERYTHING else 5):
        sets = random_lake(rng)
        index = index_of(sets)
        queries = [random_query(rng, sets) for _ in range(7)] + [[]]
        exclude = [
            rng.choice(list(sets), 2).tolist() if rng.random() < 0.5 else [] for _ in queries
        ]
        for k in (1, 5, 20, 500):
            merged = BatchedMergeList(index, max_counts=max_counts)
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
            assert [one.reads.lists for one in answers] == [
                prepare_query(index, query).n_blocks for query in queries
            ]
            assert [one.n_asked for one in answers] == [one.n_asked for one in alone]


@pytest.mark.gpu
def test_the_batched_merge_is_the_same_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    rng = np.random.default_rng(9)
    sets = random_lake(rng)
    index, queries = index_of(sets), [random_query(rng, sets) for _ in range(20)]
    there, here = (
        BatchedMergeList(index, device).search(queries, 10) for device in ("cuda", "cpu")
    )
    assert [one.pairs() for one in there] == [one.pairs() for one in here]


def test_a_batch_of_nothing_and_an_empty_index():
    merged = BatchedMergeList(index_of({}))
    assert merged.search([], 3) == []
    assert merged.search([["a"]], 3)[0].pairs() == []


def test_the_batched_merge_refuses_what_it_cannot_do():
    index = index_of({1: "ab", 2: "b"})
    with pytest.raises(InputError, match="max_counts"):
        BatchedMergeList(index, max_counts=0)
    with pytest.raises(DeviceError, match="cannot be held on the device 'toaster'"):
        BatchedMergeList(index, "toaster")
    with pytest.raises(InputError, match="one collection for each of 1 queries"):
        BatchedMergeList(index).search([["a"]], 1, exclude=[])
    with pytest.raises(InputError, match="k, the number"):
        BatchedMergeList(index).search([["a"]], 0)
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
        OverlapQuery(100, tokens, tokens + 1, tokens + 1, np.full(100, f)) for f in (5, 200_000)
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
    assert planner.expected(index, queries[0][1], 5)["merge_list"] > 1e4
    monkeypatch.setattr(FaultWatch, "missing", lambda self: False)
    assert Planner.measured(index) == Planner.measured(index_of({})) == Planner()


def test_the_planner_needs_a_k():
    with pytest.raises(InputError, match="k, the number"):
        Planner().search(index_of({1: "a"}), ["a"], 0)
