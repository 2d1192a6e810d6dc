"""Every kernel finds what plain loops find, and its steps keep their word."""

import importlib.util
import sys

import numpy as np
import pytest
import torch
from engine_lakes import (
    KERNELS,
    MAPS_AND_METRICS,
    ROW_KERNELS,
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
)
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import EVERYTHING, examples, long_cases_but

from pexeso.engine.blocks import STEPS, pad_axes
from pexeso.engine.dense.search import (
    BatchQuery,
    Goal,
    exact_partition,
    search_batch_partition,
    search_partition,
)
from pexeso.engine.kernel import Kernel, Pairs, pairs_by_query
from pexeso.engine.kernels import compiled
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.maps import PivotMap
from pexeso.engine.options import MAPS, PartitionLayoutOptions
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import ALL_LEMMAS, Lemma
from pexeso.errors import InputError, MissingPackageError

MANY = 1 << 24
LEMMA_SETS = st.sets(st.sampled_from(list(Lemma))).map(frozenset)
SHORT = (("projection", "euclidean"), ("pivots", "angular"))
JOINABILITIES = st.sampled_from(("0.000000001", "0.2", "0.6", "1"))


@pytest.fixture(params=KERNELS, scope="module")
def kernel(request) -> Kernel:
    return kernel_named(request.param)


def lakes_of(chosen: str, metric: str, **more):
    return cases(maps=(chosen,), metrics=(metric,), **more)


def search(case: Case, kernel: Kernel, max_pairs: int, left_out=None, **goal) -> dict[int, int]:
    goal, stats = Goal(case.tau, **goal), SearchStats()
    return as_dict(
        search_partition(
            *case.arguments(), goal, stats, left_out, kernel=kernel, max_pairs=max_pairs
        )
    )


@pytest.mark.parametrize(("chosen", "metric"), MAPS_AND_METRICS)
@settings(max_examples=12)
@given(st.data(), JOINABILITIES, st.sampled_from((5, MANY)), st.integers(1, 4))
def test_searches_find_what_plain_loops_find(
    kernel, chosen, metric, data, min_joinability, max_pairs, k
):
    case = data.draw(lakes_of(chosen, metric))
    needed, lemmas = (
        smallest_count(min_joinability, case.total),
        data.draw(st.just(ALL_LEMMAS) | LEMMA_SETS),
    )
    expected = case.joinable(needed)
    assert search(case, kernel, max_pairs, min_count=needed, lemmas=lemmas) == expected
    assert search(case, kernel, max_pairs, k=k, min_count=needed, lemmas=lemmas) == case.best(
        k, needed
    )
    decided = search(case, kernel, max_pairs, min_count=needed, decide=True, lemmas=lemmas)
    assert decided.keys() == expected.keys()
    assert all(needed <= decided[column] <= expected[column] for column in decided)
    out = data.draw(st.sets(st.integers(0, len(case.columns) - 1)))
    left_out = torch.tensor([column in out for column in range(len(case.columns))])
    assert search(case, kernel, max_pairs, left_out, min_count=needed) == case.joinable(needed, out)
    assert search(case, kernel, max_pairs, left_out, k=k) == case.best(k, 1, out)
    partition, vectors, weights, _ = case.arguments()
    for goal, right in (
        ({"min_count": needed}, case.joinable(needed, out)),
        ({"min_count": needed, "k": k}, case.best(k, needed, out)),
    ):
        exact = exact_partition(partition, vectors, weights, Goal(case.tau, **goal), left_out)
        assert as_dict(exact) == right


def draw_batch(rng: np.random.Generator, n_values: int) -> list[BatchQuery]:
    """Draw query columns that share values, name some twice, weigh some with 0; two are empty."""
    batch = [(np.zeros(0, np.int64), 1)]
    for _ in range(int(rng.integers(1, 6))):
        batch.append((rng.integers(n_values, size=rng.integers(1, 8)), int(rng.integers(1, 4))))
    batch.append((np.zeros(0, np.int64), 2))
    return [
        BatchQuery(
            torch.from_numpy(members),
            torch.from_numpy(rng.integers(0, 3, size=len(members))),
            needed,
        )
        for members, needed in batch
    ]


def loops_of(case: Case, query: BatchQuery) -> dict[int, int]:
    """Count by the definition."""
    counts = {}
    for number, column in enumerate(case.columns):
        hits = [
            int(weight)
            for member, weight in zip(query.members.tolist(), query.weights.tolist(), strict=True)
            if any(case.matches[member, value] for value in column)
        ]
        if sum(hits) >= query.min_count:
            counts[number] = sum(hits)
    return counts


@pytest.mark.parametrize(("chosen", "metric"), long_cases_but(SHORT, MAPS_AND_METRICS))
@settings(max_examples=12)
@given(st.data(), st.sampled_from((1, 5, MANY)), st.integers(0, 2**32))
def test_a_batch_finds_what_single_searches_and_plain_loops_find(
    kernel, chosen, metric, data, max_pairs, seed
):
    case = data.draw(lakes_of(chosen, metric))
    vectors, batch = (
        torch.from_numpy(case.query),
        draw_batch(np.random.default_rng(seed), len(case.query)),
    )
    lemmas, stats = data.draw(st.just(ALL_LEMMAS) | LEMMA_SETS), SearchStats()
    answers = search_batch_partition(
        case.partition,
        vectors,
        batch,
        case.tau,
        stats,
        lemmas=lemmas,
        kernel=kernel,
        max_pairs=max_pairs,
    )
    assert len(answers) == len(batch)
    for query, answer in zip(batch, answers, strict=True):
        expected = loops_of(case, query)
        assert as_dict(answer) == expected
        arguments, goal = (
            (case.partition, vectors[query.members], query.weights),
            Goal(case.tau, query.min_count),
        )
        total = int(query.weights.sum())
        single = search_partition(
            *arguments, total, goal, SearchStats(), kernel=kernel, max_pairs=max_pairs
        )
        assert as_dict(single) == expected
        assert as_dict(exact_partition(*arguments, goal)) == expected


@pytest.mark.parametrize("chosen", MAPS)
def test_a_batch_over_a_partition_that_holds_nothing(kernel, chosen):
    partition, _ = build(
        np.zeros((2, 4), np.float32), [[0, 1], []], PartitionLayoutOptions(map=chosen, n_axes=3)
    )
    one = torch.ones(2, dtype=torch.int64)
    batch = [BatchQuery(torch.tensor([0, 3]), one, 1), BatchQuery(one[:0], one[:0], 1)]
    answers = search_batch_partition(
        partition, torch.eye(4), batch, 0.5, SearchStats(), kernel=kernel
    )
    assert [as_dict(answer) for answer in answers] == [{}, {}]
    assert (
        search_batch_partition(partition, torch.eye(4), [], 0.5, SearchStats(), kernel=kernel) == []
    )


def test_a_batch_of_zero_vectors_or_of_nothing(kernel):
    partition, _ = build(np.eye(4, dtype=np.float32), [[0, 1], [2]], PartitionLayoutOptions())
    one = torch.ones(2, dtype=torch.int64)
    batch = [BatchQuery(torch.tensor([0, 1]), one, 1), BatchQuery(torch.tensor([1, 2]), one, 1)]
    vectors = torch.stack([torch.zeros(4), torch.zeros(4), torch.eye(4)[2]])
    answers = search_batch_partition(partition, vectors, batch, 0.0, SearchStats(), kernel=kernel)
    assert [as_dict(answer) for answer in answers] == [{}, {1: 1}]
    assert (
        search_batch_partition(partition, vectors[:0], [], 0.0, SearchStats(), kernel=kernel) == []
    )
    with pytest.raises(InputError, match="at row 1 "):
        search_batch_partition(
            partition,
            2 * torch.eye(4)[[0, 0]] - torch.eye(4)[[0, 1]],
            batch[:0],
            0.0,
            SearchStats(),
        )


def test_a_batch_compares_each_distinct_value_once(kernel):
    """Twenty query columns of the same values cost as many distances as one."""
    options = PartitionLayoutOptions(block_size=4)
    case = draw_case(np.random.default_rng(2), options, 8, 60, 12, 9, "clustered", "middle")
    vectors, members = torch.from_numpy(case.query), torch.arange(len(case.query))
    work = []
    for n_queries in (1, 20):
        stats = SearchStats()
        batch = [BatchQuery(members, torch.ones_like(members), 1)] * n_queries
        answers = search_batch_partition(
            case.partition, vectors, batch, case.tau, stats, kernel=kernel
        )
        assert all(as_dict(answer) == loops_of(case, batch[0]) for answer in answers)
        work.append((stats.distances, stats.vectors_touched, stats.bytes_read))
    assert work[0] == work[1]
    assert work[0][0] > 0


def candidates(
    case: Case, kernel: Kernel, lemmas: frozenset[Lemma] = ALL_LEMMAS, max_pairs: int = MANY
) -> tuple[Pairs | None, SearchStats]:
    query, _ = real_query(case, lemmas)
    stats = SearchStats()
    return kernel.candidates(query, max_pairs, stats), stats


def can_walk(case: Case) -> bool:
    return bool(case.query.any()) and case.partition.n_values > 0


@settings(max_examples=examples(80))
@given(cases(min_values=1, cells=("blocks",)), LEMMA_SETS)
def test_candidates_lose_no_true_pair_and_accept_no_false_one(kernel, case, lemmas):
    if not can_walk(case):
        return
    query, truth = real_query(case)
    pairs, stats = candidates(case, kernel, lemmas)
    assert (pairs.offsets.dtype, pairs.rows.dtype) == (torch.int64, torch.int32)
    assert (len(pairs.offsets), int(pairs.offsets[0]), int(pairs.offsets[-1])) == (
        len(query) + 1,
        0,
        len(pairs),
    )
    listed_pairs = listed(pairs)
    plain = [(row, value if value >= 0 else ~value) for row, value in listed_pairs]
    assert len(set(plain)) == len(plain)
    assert {tuple(pair) for pair in np.argwhere(truth).tolist()} <= set(plain)
    assert all(0 <= value < case.partition.n_values for _, value in plain)
    accepted = [(row, ~value) for row, value in listed_pairs if value < 0]
    assert all(truth[pair] for pair in accepted)
    if not lemmas & {Lemma.PIVOT_MATCHING, Lemma.VECTOR_CELL_MATCHING, Lemma.CELL_CELL_MATCHING}:
        assert accepted == []
    assert stats.candidates == len(pairs)
    assert stats.matched_by_map == len(accepted)


@settings(max_examples=examples(50))
@given(cases(min_values=1, cells=("blocks",)), st.sampled_from((0, 1, 5, 40)))
def test_candidates_are_all_or_none(kernel, case, max_pairs):
    if not can_walk(case):
        return
    whole, _ = candidates(case, kernel)
    some, _ = candidates(case, kernel, max_pairs=max_pairs)
    if some is None:
        # A walk stops as soon as a block might not fit.
        assert len(whole) > max_pairs or len(case.query) * case.partition.blocks.size > max_pairs
    else:
        assert sorted(listed(some)) == sorted(listed(whole))
        n_queries = len(real_query(case)[0])
        assert len(some) <= max_pairs + case.partition.blocks.size or n_queries == 1


@settings(max_examples=60 if EVERYTHING or "triton" not in KERNELS else 15)
@given(cases(min_values=1, cells=("blocks",)))
def test_matches_are_the_true_pairs_in_the_order_of_the_candidates(kernel, case):
    if not can_walk(case):
        return
    query, truth = real_query(case)
    pairs, stats = candidates(case, kernel)
    matches = kernel.matches(query, pairs, stats)
    expected = [
        (row, max(value, ~value)) for row, value in listed(pairs) if truth[row, max(value, ~value)]
    ]
    assert listed(matches) == expected
    assert len(expected) == int(truth.sum())
    assert stats.distances == stats.candidates - stats.matched_by_map
    assert stats.defining_distances <= stats.distances


def corners_of_blocks(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    return case.partition.blocks.corners_of(torch.arange(len(case.partition.blocks)))


def code_intervals(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Where each stored row's mapped coordinates lie by its code, float64 (N, A) each."""
    blocks = case.partition.blocks
    lower, upper = (corner.double() for corner in blocks.corners_of(torch.arange(len(blocks))))
    owner = owners(case)
    codes = blocks.codes.permute(0, 2, 1).flatten(0, 1)[: blocks.n_rows].double()
    step = ((upper - lower) / STEPS)[owner]
    begin = lower[owner] + codes * step
    return begin, begin + step


def interval_bounds(case: Case, points: torch.Tensor) -> torch.Tensor:
    """Bound distances from below by the intervals of the codes, float64 (n, N)."""
    lower, upper = code_intervals(case)
    gaps = torch.maximum(lower - points, points - upper).clamp(min=0)
    return gaps.amax(2) if isinstance(case.partition.map, PivotMap) else gaps.square().sum(2).sqrt()


def middle_bounds(
    case: Case, points: torch.Tensor, reach: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return bounds as `interval_bounds` does, computed from the middles of the intervals.

    Products give bounds in this form. The second result is what their rounding may cost at `reach`.
    """
    lower, upper = code_intervals(case)
    half_step = (upper - lower).norm(dim=1) / 2
    distance = (points - (lower + upper) / 2).norm(dim=2)
    box_lower, box_upper = (corner.double()[owners(case)] for corner in corners_of_blocks(case))
    lengths = (points - (box_lower + box_upper) / 2).square().sum(2) + (
        (box_upper - box_lower) / 2
    ).square().sum(1)
    squares = 4 * (points.shape[2] + 6) * 2.0**-22 * lengths
    return distance - half_step, (squares + (reach + half_step) ** 2).sqrt() - (reach + half_step)


def most_by_boxes(case: Case, points: torch.Tensor, n_coordinates: int) -> torch.Tensor:
    """Bound distances from above by the boxes of the blocks, float64 (n, N)."""
    lower, upper = (corner.double()[owners(case)] for corner in corners_of_blocks(case))
    if isinstance(case.partition.map, PivotMap):
        return (points + upper)[:, :, :n_coordinates].amin(2)
    far = torch.maximum(upper - points, points - lower)
    # What the axes leave out may point anywhere: two such lengths add up.
    far[:, :, n_coordinates - 1] = (points + upper)[:, :, n_coordinates - 1]
    return far.square().sum(2).sqrt()


def owners(case: Case) -> torch.Tensor:
    return torch.arange(case.partition.blocks.n_rows) // case.partition.blocks.size


@settings(max_examples=examples(80))
@given(cases(min_values=1, cells=("blocks",)))
def test_our_kernels_prune_and_accept_wherever_the_codes_suffice_and_nowhere_else(case):
    """Check that kernels differ in pruning and accepting only within coordinate tolerance."""
    if not can_walk(case):
        return
    query, _ = real_query(case)
    limit, points = query.threshold, pad_axes(query.mapped).double()[:, None]
    reach, room = case.tau + limit.slack, limit.slack / 2
    lower_bounds = interval_bounds(case, points)
    upper_bounds = most_by_boxes(case, points, query.mapped.shape[1])
    kept_by_kernel = {}
    for name in ROW_KERNELS:
        may = lower_bounds <= reach + room
        if name == "compiled" and not isinstance(case.partition.map, PivotMap):
            looser, cost = middle_bounds(case, points, reach)
            may = looser <= reach + room + cost
        pairs, _ = candidates(case, kernel_named(name))
        kept, accepted = torch.zeros(2, *lower_bounds.shape, dtype=torch.bool)
        for row, value in listed(pairs):
            kept[row, max(value, ~value)] = True
            accepted[row, max(value, ~value)] = value < 0
        assert bool((kept | (lower_bounds > reach - room)).all())
        assert bool((may | accepted | ~kept).all())
        assert bool((accepted | (upper_bounds > case.tau - limit.slack - room)).all())
        assert bool((~accepted | (upper_bounds <= case.tau - limit.slack + room)).all())
        kept_by_kernel[name] = kept
    differ = kept_by_kernel["compiled"] != kept_by_kernel["torch"]
    assert bool((lower_bounds[differ] > reach - room).all())


@settings(max_examples=examples(40))
@given(cases(min_values=1, cells=("blocks",)), st.sampled_from((2, 3)))
def test_more_threads_find_the_same_pairs(kernel, case, threads):
    if not can_walk(case):
        return
    query, _ = real_query(case)
    one, work = candidates(case, kernel)
    matches = kernel.matches(query, one, SearchStats())
    with pytest.MonkeyPatch.context() as patch, threads_of_torch(threads):
        if kernel.name == "compiled":
            patch.setattr("pexeso.engine.kernels.compiled._TESTS_A_TASK", 1)
            patch.setattr("pexeso.engine.kernels.compiled._PAIRS_A_TASK", 1)
        more, shared_work = candidates(case, kernel)
        again = kernel.matches(query, more, SearchStats())
    assert sorted(listed(more)) == sorted(listed(one))
    assert sorted(listed(again)) == sorted(listed(matches))
    assert shared_work.candidates == work.candidates


WALKS = (
    frozenset(),
    ALL_LEMMAS,
    ALL_LEMMAS - {Lemma.CELL_CELL_FILTERING},
    ALL_LEMMAS - {Lemma.VECTOR_CELL_FILTERING},
)


@pytest.mark.parametrize("n", [5, 40, 290])
@pytest.mark.parametrize("lemmas", WALKS)
@pytest.mark.parametrize("chosen", MAPS)
def test_a_walk_counts_its_work_and_says_when_pairs_do_not_fit(n, lemmas, chosen):
    options = PartitionLayoutOptions(map=chosen, block_size=1, n_axes=3)
    case = draw_case(np.random.default_rng(n), options, 4, n, 3, 3, "uniform", "paper")
    query, _ = real_query(case, lemmas)
    view = compiled._walk_view(query)
    n_groups = int(case.partition.blocks.starts[1])
    room = (len(query) + 1) * (case.partition.n_values + 1)
    rows, work = np.empty((2, room), np.int32), np.zeros(5, np.int64)
    expected, stats = candidates(case, kernel_named("compiled"), lemmas)
    walk = compiled.loops.walk
    n_found = walk(view, 0, 0, n_groups, rows, work)
    pairs = pairs_by_query(*torch.from_numpy(rows[:, :n_found]), len(query))
    assert sorted(listed(pairs)) == sorted(listed(expected))
    counters = ("box_pairs", "candidate_pairs", "vectors_touched", "bytes_read", "matched_by_map")
    assert work.tolist() == [getattr(stats, name) for name in counters]
    # Without room for a single pair it says so.
    assert walk(view, 0, 0, n_groups, rows[:, :0], work) == -1 or n_found == 0


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_codes_of_a_block_are_compared_one_by_one_until_no_row_can_be_near(share):
    generator = np.random.default_rng(7)
    codes = generator.integers(0, STEPS, (3, 16, 48), dtype=np.uint8)
    point = generator.normal(size=(2, 16)).astype(np.float32)
    lower = generator.normal(size=16).astype(np.float32)
    step = (generator.random(16) / 100).astype(np.float32)
    decoded = lower[:, None].astype(np.float64) + (codes[2] + 0.5) * step[:, None]
    exact = ((decoded - point[1][:, None]) ** 2).sum(0)
    limit = np.float32(np.quantile(exact, share)) if share else np.float32(0.1 * exact.min())
    gaps = np.empty(48, np.float32)
    compiled.loops.squared_gaps(point[1], codes[2], lower, step, limit, gaps)
    near = gaps <= limit
    if near.any():  # then all axes were looked at
        np.testing.assert_allclose(gaps, exact, rtol=2e-5)
    else:
        assert (gaps <= exact * 1.00002).all()
    assert near.sum() == pytest.approx(round(share * 48), abs=2)
    assert bool(share) == near.any()


def test_counting_adds_up_over_calls(kernel):
    """Two calls with parts of the values leave the same counts as one with all of them."""
    options = PartitionLayoutOptions(block_size=3)
    case = draw_case(np.random.default_rng(4), options, 5, 60, 12, 9, "clustered", "middle")
    query, truth = real_query(case)
    pairs, _ = candidates(case, kernel)
    whole = kernel.count(query, pairs, None)
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
    for some in map(query.take, torch.split(torch.arange(len(query)), 4)):
        parts = kernel.count(some, kernel.candidates(some, MANY, SearchStats()), parts)
    assert torch.equal(parts.possible, expected)
    assert sorted(parts.touched.tolist()) == sorted(whole.touched.tolist())
    assert truth.any()


def test_a_kernel_that_is_not_there_or_does_not_run_on_the_device_is_refused(monkeypatch):
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    names = "auto, compiled, torch, triton"
    with pytest.raises(
        InputError, match=rf"^The kernel must be one of {names}\. Got 'numpy' instead\.$"
    ):
        choose_kernel("numpy", cpu)
    with pytest.raises(
        InputError,
        match=r"^The kernel compiled runs on cpu\. Got the device cuda instead; use the kernel "
        r"auto\.$",
    ):
        choose_kernel("compiled", cuda)
    assert choose_kernel("torch", cuda) is choose_kernel("torch", cpu)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(MissingPackageError, match=r"^The kernel triton .* 'pexeso\[gpu\]'$"):
        choose_kernel("triton", cpu)
    assert choose_kernel("auto", cuda).name == "torch"
    assert choose_kernel("auto", cpu).name == "compiled"


def test_a_search_on_its_own_kernel_choice_gives_the_same():
    case = draw_case(
        np.random.default_rng(6), PartitionLayoutOptions(), 8, 60, 12, 9, "clustered", "middle"
    )
    assert search(case, choose_kernel("auto", torch.device("cpu")), MANY) == case.joinable(1)
    assert search(case, None, MANY) == case.joinable(1)


def test_columns_without_a_candidate_cost_no_distance(kernel):
    rng = np.random.default_rng(3)
    vectors = sphere(rng, 400, 16)
    options = PartitionLayoutOptions(map="projection", block_size=8)
    partition, _ = build(vectors, [[value] for value in range(400)], options)
    stats, query = SearchStats(), torch.from_numpy(vectors[:3])
    ones = torch.ones(3, dtype=torch.int64)
    answer = search_partition(partition, query, ones, 3, Goal(0.05), stats, kernel=kernel)
    assert as_dict(answer) == {0: 1, 1: 1, 2: 1}
    assert stats.distances <= 6
    assert stats.vectors_touched < 3 * 400


def test_nothing_of_one_search_is_left_for_the_next(kernel):
    """Check that reused counts are as good as new after columns were left out, pruned or found."""
    case = draw_case(
        np.random.default_rng(12), PartitionLayoutOptions(), 8, 60, 12, 9, "clustered", "middle"
    )
    expected = case.joinable(1)
    assert len(expected) > 3
    everything = torch.ones(len(case.columns), dtype=torch.bool)
    for _ in range(2):
        assert search(case, kernel, MANY, everything) == {}
        assert search(case, kernel, MANY) == expected
        # Room for the pairs of three query values at a time.
        assert search(case, kernel, 200, min_count=case.total + 1) == {}
        assert search(case, kernel, 200, k=2) == case.best(2, 1)
        assert search(case, kernel, MANY) == expected
