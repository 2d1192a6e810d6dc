"""Every kernel finds what plain loops find, and its steps keep their word."""

import importlib.util

import numpy as np
import pytest
import torch
from engine_lakes import (
    KERNELS,
    MAPS_AND_METRICS,
    Case,
    as_dict,
    build,
    cases,
    draw_case,
    kernel_named,
    listed,
    real_query,
    smallest_count,
    sphere,
    threads_of_torch,
    threshold_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from pexeso.engine.blocks import STEPS, pad_axes
from pexeso.engine.grid_options import GridOptions
from pexeso.engine.kernels import choose_kernel
from pexeso.engine.kernels.adaptive import AdaptiveKernel
from pexeso.engine.kernels.interface import Kernel, Pairs, Query, Threshold, pairs_by_query
from pexeso.engine.lemmas import ALL_LEMMAS, Lemma
from pexeso.engine.maps import MAPS, PivotMap
from pexeso.engine.search import BatchQuery, Goal, exact_partition, search_batch_partition, search_partition
from pexeso.engine.stats import SearchStats
from pexeso.errors import InputError, MissingPackageError

MANY = 1 << 24
LEMMA_SETS = st.sets(st.sampled_from(list(Lemma))).map(frozenset)
JOINABILITIES = st.sampled_from(("0.000000001", "0.2", "0.6", "1"))


@pytest.fixture(params=KERNELS, scope="module")
def kernel(request) -> Kernel:
    return kernel_named(request.param)


def lakes_of(chosen: str, metric: str, **more):
    return cases(maps=(chosen,), metrics=(metric,), **more)


def search(case: Case, kernel: Kernel, max_pairs: int, left_out=None, **goal) -> dict[int, int]:
    goal, stats = Goal(case.tau, **goal), SearchStats()
    return as_dict(search_partition(*case.arguments(), goal, stats, left_out, kernel=kernel, max_pairs=max_pairs))


@pytest.mark.parametrize(("chosen", "metric"), MAPS_AND_METRICS)
@settings(max_examples=12)
@given(st.data(), JOINABILITIES, st.sampled_from((5, MANY)), st.integers(1, 4))
def test_searches_find_what_plain_loops_find(kernel, chosen, metric, data, min_joinability, max_pairs, k):
    case = data.draw(lakes_of(chosen, metric))
    needed, lemmas = smallest_count(min_joinability, case.total), data.draw(st.just(ALL_LEMMAS) | LEMMA_SETS)
    expected = case.joinable(needed)
    assert search(case, kernel, max_pairs, min_count=needed, lemmas=lemmas) == expected
    assert search(case, kernel, max_pairs, k=k, min_count=needed, lemmas=lemmas) == case.best(k, needed)
    decided = search(case, kernel, max_pairs, min_count=needed, decide=True, lemmas=lemmas)
    assert decided.keys() == expected.keys()
    assert all(needed <= decided[column] <= expected[column] for column in decided)
    out = data.draw(st.sets(st.integers(0, len(case.columns) - 1)))
    left_out = torch.tensor([column in out for column in range(len(case.columns))])
    assert search(case, kernel, max_pairs, left_out, min_count=needed) == case.joinable(needed, out)
    assert search(case, kernel, max_pairs, left_out, k=k) == case.best(k, 1, out)


def draw_batch(rng: np.random.Generator, n_values: int) -> list[BatchQuery]:
    """Draw query columns that share values, name some twice, weigh some with 0; two are empty."""
    batch = [(np.zeros(0, np.int64), 1)]
    for _ in range(int(rng.integers(1, 6))):
        batch.append((rng.integers(n_values, size=rng.integers(1, 8)), int(rng.integers(1, 4))))
    batch.append((np.zeros(0, np.int64), 2))
    return [
        BatchQuery(torch.from_numpy(members), torch.from_numpy(rng.integers(0, 3, size=len(members))), needed)
        for members, needed in batch
    ]


def loops_of(case: Case, query: BatchQuery) -> dict[int, int]:
    """Count by the definition."""
    found = {}
    for number, column in enumerate(case.columns):
        hits = [
            int(weight)
            for member, weight in zip(query.members.tolist(), query.weights.tolist(), strict=True)
            if any(case.matches[member, value] for value in column)
        ]
        if sum(hits) >= query.min_count:
            found[number] = sum(hits)
    return found


@pytest.mark.parametrize(("chosen", "metric"), MAPS_AND_METRICS)
@settings(max_examples=12)
@given(st.data(), st.sampled_from((1, 5, MANY)), st.integers(0, 2**32))
def test_a_batch_finds_what_single_searches_and_plain_loops_find(kernel, chosen, metric, data, max_pairs, seed):
    case = data.draw(lakes_of(chosen, metric))
    vectors, batch = torch.from_numpy(case.query), draw_batch(np.random.default_rng(seed), len(case.query))
    lemmas, stats = data.draw(st.just(ALL_LEMMAS) | LEMMA_SETS), SearchStats()
    found = search_batch_partition(
        case.partition, vectors, batch, case.tau, stats, lemmas=lemmas, kernel=kernel, max_pairs=max_pairs
    )
    assert len(found) == len(batch)
    for query, answer in zip(batch, found, strict=True):
        expected = loops_of(case, query)
        assert as_dict(answer) == expected
        arguments, goal = (case.partition, vectors[query.members], query.weights), Goal(case.tau, query.min_count)
        total = int(query.weights.sum())
        single = search_partition(*arguments, total, goal, SearchStats(), kernel=kernel, max_pairs=max_pairs)
        assert as_dict(single) == expected
        assert as_dict(exact_partition(*arguments, goal)) == expected


@pytest.mark.parametrize("chosen", MAPS)
def test_a_batch_over_a_partition_that_holds_nothing(kernel, chosen):
    partition, _ = build(np.zeros((2, 4), np.float32), [[0, 1], []], GridOptions(map=chosen, n_axes=3))
    one = torch.ones(2, dtype=torch.int64)
    batch = [BatchQuery(torch.tensor([0, 3]), one, 1), BatchQuery(one[:0], one[:0], 1)]
    found = search_batch_partition(partition, torch.eye(4), batch, 0.5, SearchStats(), kernel=kernel)
    assert [as_dict(answer) for answer in found] == [{}, {}]
    assert search_batch_partition(partition, torch.eye(4), [], 0.5, SearchStats(), kernel=kernel) == []


def test_a_batch_of_zero_vectors_or_of_nothing(kernel):
    partition, _ = build(np.eye(4, dtype=np.float32), [[0, 1], [2]], GridOptions())
    one = torch.ones(2, dtype=torch.int64)
    batch = [BatchQuery(torch.tensor([0, 1]), one, 1), BatchQuery(torch.tensor([1, 2]), one, 1)]
    vectors = torch.stack([torch.zeros(4), torch.zeros(4), torch.eye(4)[2]])
    found = search_batch_partition(partition, vectors, batch, 0.0, SearchStats(), kernel=kernel)
    assert [as_dict(answer) for answer in found] == [{}, {1: 1}]
    assert search_batch_partition(partition, vectors[:0], [], 0.0, SearchStats(), kernel=kernel) == []
    with pytest.raises(InputError, match="at row 1 "):
        search_batch_partition(
            partition, 2 * torch.eye(4)[[0, 0]] - torch.eye(4)[[0, 1]], batch[:0], 0.0, SearchStats()
        )


def test_a_batch_compares_each_distinct_value_once(kernel):
    """Twenty query columns of the same values cost as many distances as one."""
    case = draw_case(np.random.default_rng(2), GridOptions(block_size=4), 8, 60, 12, 9, "clustered", "middle")
    vectors, members = torch.from_numpy(case.query), torch.arange(len(case.query))
    work = []
    for n_queries in (1, 20):
        stats = SearchStats()
        batch = [BatchQuery(members, torch.ones_like(members), 1)] * n_queries
        found = search_batch_partition(case.partition, vectors, batch, case.tau, stats, kernel=kernel)
        assert all(as_dict(answer) == loops_of(case, batch[0]) for answer in found)
        work.append((stats.distances, stats.vectors_touched, stats.bytes_read))
    assert work[0] == work[1]
    assert work[0][0] > 0


def candidates(
    case: Case, kernel: Kernel, lemmas: frozenset[Lemma] = ALL_LEMMAS, max_pairs: int = MANY
) -> tuple[Pairs | None, SearchStats]:
    query, _ = real_query(case)
    stats = SearchStats()
    return kernel.candidates(case.partition, query, threshold_of(case, query, lemmas), max_pairs, stats), stats


def can_walk(case: Case) -> bool:
    return bool(case.query.any()) and case.partition.n_values > 0


@settings(max_examples=80)
@given(cases(min_values=1, cells=("blocks",)), LEMMA_SETS)
def test_candidates_lose_no_true_pair_and_accept_no_false_one(kernel, case, lemmas):
    if not can_walk(case):
        return
    query, truth = real_query(case)
    pairs, stats = candidates(case, kernel, lemmas)
    assert (pairs.offsets.dtype, pairs.rows.dtype) == (torch.int64, torch.int32)
    assert (len(pairs.offsets), int(pairs.offsets[0]), int(pairs.offsets[-1])) == (len(query) + 1, 0, len(pairs))
    found = listed(pairs)
    plain = [(row, value if value >= 0 else ~value) for row, value in found]
    assert len(set(plain)) == len(plain)
    assert {tuple(pair) for pair in np.argwhere(truth).tolist()} <= set(plain)
    assert all(0 <= value < case.partition.n_values for _, value in plain)
    accepted = [(row, ~value) for row, value in found if value < 0]
    assert all(truth[pair] for pair in accepted)
    if not lemmas & {Lemma.PIVOT_MATCHING, Lemma.VECTOR_CELL_MATCHING, Lemma.CELL_CELL_MATCHING}:
        assert accepted == []
    assert stats.candidates == len(pairs)
    assert stats.matched_by_map == len(accepted)


@settings(max_examples=50)
@given(cases(min_values=1, cells=("blocks",)), st.sampled_from((0, 1, 5, 40)))
def test_candidates_are_all_or_none(kernel, case, max_pairs):
    if not can_walk(case):
        return
    whole, _ = candidates(case, kernel)
    some, _ = candidates(case, kernel, max_pairs=max_pairs)
    if some is None:
        assert len(whole) > max_pairs
    else:
        assert sorted(listed(some)) == sorted(listed(whole))
        assert len(some) <= max_pairs + case.partition.blocks.size or len(case.query) == 1


@settings(max_examples=60)
@given(cases(min_values=1, cells=("blocks",)))
def test_matches_are_the_true_pairs_in_the_order_of_the_candidates(kernel, case):
    if not can_walk(case):
        return
    query, truth = real_query(case)
    pairs, stats = candidates(case, kernel)
    found = kernel.matches(case.partition, query, pairs, threshold_of(case, query), stats)
    expected = [(row, max(value, ~value)) for row, value in listed(pairs) if truth[row, max(value, ~value)]]
    assert listed(found) == expected
    assert len(expected) == int(truth.sum())
    assert stats.distances == stats.candidates - stats.matched_by_map
    assert stats.defining_distances <= stats.distances


def code_intervals(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Where each stored row's mapped coordinates lie by its code, float64 (N, A) each."""
    blocks = case.partition.blocks
    lower, upper = (corner.double() for corner in blocks.corners())
    owner = torch.arange(blocks.n_rows) // blocks.size
    codes = blocks.codes.permute(0, 2, 1).flatten(0, 1)[: blocks.n_rows].double()
    step = ((upper - lower) / STEPS)[owner]
    begin = lower[owner] + codes * step
    return begin, begin + step


def bounds(case: Case, points: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> tuple:
    """Bound the distances of mapped query values to boxes from below and above, float64 (n, N) each."""
    points = pad_axes(points).double()[:, None]
    gaps = torch.maximum(lower - points, points - upper).clamp(min=0)
    n_axes = case.partition.map.map(torch.from_numpy(case.query[:1])).shape[1]
    if isinstance(case.partition.map, PivotMap):
        return gaps.amax(2), (points + upper)[:, :, :n_axes].amin(2)
    far = torch.maximum(upper - points, points - lower)
    far[:, :, n_axes - 1] = (points + upper)[:, :, n_axes - 1]
    return gaps.square().sum(2).sqrt(), far.square().sum(2).sqrt()


@settings(max_examples=80)
@given(cases(min_values=1, cells=("blocks",)))
def test_both_our_kernels_prune_and_accept_wherever_the_codes_suffice_and_nowhere_else(case):
    """A filter may be careful within the tolerance of coordinates; there alone two kernels may differ."""
    if not can_walk(case):
        return
    query, _ = real_query(case)
    limit, blocks = threshold_of(case, query), case.partition.blocks
    least, _ = bounds(case, query.mapped, *code_intervals(case))
    _, most = bounds(case, query.mapped, *(corner.double() for corner in blocks.corners()))
    most = most[:, torch.arange(blocks.n_rows) // blocks.size]
    room = limit.slack / 2
    must = least <= case.tau + limit.slack - room
    may = least <= case.tau + limit.slack + room
    found = {}
    for name in ("compiled", "torch"):
        pairs, _ = candidates(case, kernel_named(name))
        taken, accepted = torch.zeros(2, *must.shape, dtype=torch.bool)
        for row, value in listed(pairs):
            taken[row, max(value, ~value)] = True
            accepted[row, max(value, ~value)] = value < 0
        assert bool((taken | ~must).all())
        allowed = may if name == "torch" else may | (least <= widened(case, query.mapped, limit))
        assert bool((allowed | accepted | ~taken).all())
        assert bool((accepted | (most > case.tau - limit.slack - room)).all())
        assert bool((~accepted | (most <= case.tau - limit.slack + room)).all())
        found[name] = taken
    only_torch = found["torch"] & ~found["compiled"]
    assert bool(((least - case.tau - limit.slack).abs()[only_torch] <= room).all())


def widened(case: Case, points: torch.Tensor, limit: Threshold) -> torch.Tensor:
    """The reach of the compiled kernel under the projection, float64 (n, N): it sees rows in the middle of their steps, through products."""
    if isinstance(case.partition.map, PivotMap):
        return torch.full((len(points), case.partition.n_values), -1.0, dtype=torch.float64)
    lower, upper = (corner.double() for corner in case.partition.blocks.corners())
    owner = torch.arange(case.partition.n_values) // case.partition.blocks.size
    half, middle = (upper - lower)[owner] / 2, (upper + lower)[owner] / 2
    moved = (pad_axes(points).double()[:, None] - middle).square().sum(2)
    half_step, half_squares = half.square().sum(1).sqrt() / 256, half.square().sum(1)
    error = 2.0 * (half.shape[1] + 6) * 2.0**-22 * (moved + half_squares)
    # From the middle of a step to its nearer end is half a step once more.
    return ((case.tau + 1.5 * limit.slack + half_step).square() * (1 + 2.0**-14) + error).sqrt() + half_step


@settings(max_examples=40)
@given(cases(min_values=1, cells=("blocks",)), st.sampled_from((2, 3)))
def test_more_threads_find_the_same_pairs(kernel, case, threads):
    if not can_walk(case):
        return
    query, _ = real_query(case)
    one, work = candidates(case, kernel)
    matches = kernel.matches(case.partition, query, one, threshold_of(case, query), SearchStats())
    with pytest.MonkeyPatch.context() as patch, threads_of_torch(threads):
        if kernel.name == "compiled":
            patch.setattr("pexeso.engine.kernels.compiled._TESTS_A_TASK", 1)
            patch.setattr("pexeso.engine.kernels.compiled._PAIRS_A_TASK", 1)
        more, shared_work = candidates(case, kernel)
        again = kernel.matches(case.partition, query, more, threshold_of(case, query), SearchStats())
    assert sorted(listed(more)) == sorted(listed(one))
    assert sorted(listed(again)) == sorted(listed(matches))
    assert shared_work.candidates == work.candidates


WALKS = (frozenset(), ALL_LEMMAS, ALL_LEMMAS - {Lemma.CELL_CELL_FILTERING}, ALL_LEMMAS - {Lemma.VECTOR_CELL_FILTERING})


@pytest.mark.parametrize("n", [5, 40, 290])
@pytest.mark.parametrize("lemmas", WALKS)
def test_the_compiled_walk_stays_within_its_arrays(n, lemmas):
    """Compiled code checks no bounds; the same function interpreted does."""
    compiled = pytest.importorskip("pexeso.engine.kernels.compiled")
    case = draw_case(np.random.default_rng(n), GridOptions(block_size=1), 4, n, 3, 3, "uniform", "paper")
    query, _ = real_query(case)
    threshold = threshold_of(case, query, lemmas)
    arguments = compiled._walk_arguments(case.partition, query, threshold)
    n_groups = int(case.partition.blocks.starts[1])
    room = len(query) * case.partition.n_values + 1
    queries, rows, work = np.empty(room, np.int32), np.empty(room, np.int32), np.zeros(5, np.int64)
    n_found = compiled.walk.py_func(*arguments, 0, 0, n_groups, queries, rows, work)
    found = pairs_by_query(torch.from_numpy(queries[:n_found]), torch.from_numpy(rows[:n_found]), len(query))
    assert sorted(listed(found)) == sorted(listed(candidates(case, kernel_named("compiled"), lemmas)[0]))
    # Without room for a single pair it says so.
    assert compiled.walk.py_func(*arguments, 0, 0, n_groups, queries[:0], rows[:0], work) == -1 or n_found == 0


def test_counting_adds_up_over_calls(kernel):
    """Two calls with parts of the values leave the same counts as one with all of them."""
    case = draw_case(np.random.default_rng(4), GridOptions(block_size=3), 5, 60, 12, 9, "clustered", "middle")
    query, truth = real_query(case)
    pairs, _ = candidates(case, kernel)
    every = torch.arange(len(query))
    whole = kernel.count(case.partition, pairs, every, query.weights, None)
    expected = torch.zeros(case.partition.n_columns, dtype=torch.int64)
    possible = {(row, max(value, ~value)) for row, value in listed(pairs)}
    stored = {value: place for place, value in enumerate(case.order.tolist())}
    for number, column in enumerate(case.columns):
        for row in range(len(query)):
            if any((row, stored.get(value)) in possible for value in column):
                expected[number] += int(query.weights[row])
    assert torch.equal(whole.possible, expected)
    assert sorted(whole.touched.tolist()) == torch.nonzero(expected)[:, 0].tolist()
    assert not bool(whole.matched.any())
    parts = None
    for some in torch.split(every, 4):
        sub = candidates_of(case, kernel, query.take(some), threshold_of(case, query))
        parts = kernel.count(case.partition, sub, torch.arange(len(some)), query.weights[some], parts)
    assert torch.equal(parts.possible, expected)
    assert sorted(parts.touched.tolist()) == sorted(whole.touched.tolist())
    assert truth.any()


def candidates_of(case: Case, kernel: Kernel, query: Query, threshold: Threshold) -> Pairs:
    return kernel.candidates(case.partition, query, threshold, MANY, SearchStats())


def test_a_kernel_that_is_not_there_or_does_not_run_on_the_device_is_refused(monkeypatch):
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    names = "auto, compiled, torch, triton, faiss"
    with pytest.raises(InputError, match=rf"^The kernel must be one of {names}\. Got 'numpy' instead\.$"):
        choose_kernel("numpy", cpu)
    with pytest.raises(
        InputError, match=r"^The kernel compiled runs on cpu\. Got the device cuda instead; use the kernel auto\.$"
    ):
        choose_kernel("compiled", cuda)
    assert choose_kernel("torch", cuda) is choose_kernel("torch", cpu)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        MissingPackageError, match=r"^The kernel compiled needs the package numba, which is not installed\.$"
    ):
        choose_kernel("compiled", cpu)
    # What is chosen by itself needs no package.
    assert choose_kernel("auto", cpu).for_work(1 << 60).name == "torch"
    assert choose_kernel("auto", cuda).name == "torch"


def test_the_default_changes_over_once_the_work_pays_for_loading(monkeypatch):
    monkeypatch.setattr("pexeso.engine.kernels.adaptive.WORTH_LOADING", 100)
    loaded = []

    def fast() -> str:
        loaded.append("fast")
        return "fast"

    chosen = AdaptiveKernel(lambda: "light", fast)
    assert [chosen.for_work(40), chosen.for_work(40)] == ["light", "light"]
    assert loaded == []
    assert [chosen.for_work(20), chosen.for_work(0)] == ["fast", "fast"]
    assert AdaptiveKernel(lambda: "light", fast).for_work(100) == "fast"


def test_a_search_on_its_own_kernel_choice_gives_the_same(monkeypatch):
    case = draw_case(np.random.default_rng(6), GridOptions(), 8, 60, 12, 9, "clustered", "middle")
    for worth in (0, 1 << 60):
        monkeypatch.setattr("pexeso.engine.kernels.adaptive.WORTH_LOADING", worth)
        assert search(case, choose_kernel("auto", torch.device("cpu")), MANY) == case.joinable(1)
        assert search(case, None, MANY) == case.joinable(1)


def test_columns_without_a_candidate_cost_no_distance(kernel):
    rng = np.random.default_rng(3)
    vectors = sphere(rng, 400, 16)
    partition, _ = build(vectors, [[value] for value in range(400)], GridOptions(map="projection", block_size=8))
    stats, query = SearchStats(), torch.from_numpy(vectors[:3])
    ones = torch.ones(3, dtype=torch.int64)
    found = search_partition(partition, query, ones, 3, Goal(0.05), stats, kernel=kernel)
    assert as_dict(found) == {0: 1, 1: 1, 2: 1}
    assert stats.distances <= 6
    assert stats.vectors_touched < 3 * 400
