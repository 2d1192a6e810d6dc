"""Tests of the Triton kernel that run in Triton's interpreter:

`test_kernel_triton` runs this file with ``TRITON_INTERPRET=1``. The interpreter takes seconds for
what a GPU does in microseconds, so most cases are long.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from engine_lakes import (
    Case,
    as_dict,
    build,
    choose_tau,
    draw_case,
    draw_columns,
    draw_query,
    real_query,
    sphere,
    unit,
)
from long_runs import long_but, long_cases_but

from pexeso.engine import metrics
from pexeso.engine.blocks import pad_axes
from pexeso.engine.dense.prefixes import PartitionProbe, UnmappedQuery, threshold_of
from pexeso.engine.dense.search import BatchQuery, Goal, search_batch_partition, search_partition
from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.kernel import Pairs
from pexeso.engine.kernels.torch_kernel import TorchKernel
from pexeso.engine.kernels.triton import column, search
from pexeso.engine.kernels.triton import counting as counter
from pexeso.engine.kernels.triton import lists as workspace
from pexeso.engine.kernels.triton import search as walk
from pexeso.engine.kernels.triton.kernel import TritonKernel
from pexeso.engine.kernels.triton.lists import counting_grid
from pexeso.engine.kernels.triton.search import DecidedPairs
from pexeso.engine.kernels.triton.values import QueryPlaces
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.stats import SearchStats
from pexeso.errors import InputError

ROOM = 1 << 20


def pair_set(pairs: Pairs) -> set[tuple[int, int]]:
    queries = torch.repeat_interleave(torch.arange(len(pairs.offsets) - 1), pairs.sizes)
    listed = list(zip(queries.tolist(), pairs.rows.tolist(), strict=True))
    assert len(set(listed)) == len(listed)
    return set(listed)


def check_matches(case: Case, tau: float | None = None) -> SearchStats:
    """Compare the matching pairs with brute force, and so with every kernel that agrees with it."""
    query, _ = real_query(case if tau is None else replace(case, tau=tau))
    distances = metrics.distances(query.vectors[:, None], case.partition.vectors[None])
    right = {tuple(pair) for pair in torch.nonzero(distances <= query.threshold.tau).tolist()}
    kernel, stats = TritonKernel(), SearchStats()
    pairs = kernel.candidates(query, ROOM, stats)
    assert pair_set(kernel.matches(query, pairs, stats)) == right
    return stats


def check_search(case: Case) -> SearchStats:
    """Compare answers with counts from the definition."""
    stats = SearchStats()
    kernel = TritonKernel()
    for goal in (
        Goal(case.tau),
        Goal(case.tau, min_count=3),
        Goal(case.tau, k=3),
        Goal(case.tau, lemmas=frozenset()),
    ):
        given = as_dict(search_partition(*case.arguments(), goal, stats, kernel=kernel))
        right = case.best(goal.k, goal.min_count) if goal.k else case.joinable(goal.min_count)
        assert given == right
    # What counting writes to it restores, so that no search has to wait for zeros.
    last = kernel._spaces._last
    assert last is None or not last.lists._scratch.any()
    return stats


def check_batch(case: Case, rng: np.random.Generator) -> None:
    n = len(case.query)
    queries = []
    for size in (1, n // 2, 0, n):
        members = torch.from_numpy(rng.permutation(n)[:size])
        queries.append(
            BatchQuery(
                members, torch.from_numpy(rng.integers(1, 4, size=size)), int(rng.integers(1, 4))
            )
        )
    answers = [
        [
            as_dict(answer)
            for answer in search_batch_partition(
                case.partition,
                torch.from_numpy(case.query),
                queries,
                case.tau,
                SearchStats(),
                kernel=kernel,
            )
        ]
        for kernel in (TritonKernel(), TorchKernel())
    ]
    assert answers[0] == answers[1]
    assert any(answers[0])


@pytest.mark.parametrize("dims", long_but([50], [16, 50, 100]))
@pytest.mark.parametrize("size", long_but([64], [16, 64]))
def test_matches_and_answers(dims, size):
    rng = np.random.default_rng(dims + size)
    options = PartitionLayoutOptions(map="projection", n_axes=7, block_size=size)
    case = draw_case(rng, options, dims, 90, 10, 8, "clustered", "middle")
    stats = check_matches(case)
    assert 0 < stats.distances <= stats.candidates
    check_search(case)
    check_batch(case, rng)


@pytest.mark.parametrize(
    ("dims", "n_axes", "size", "grouped_from"),
    long_cases_but(
        [(3, 3, 5, 33), (3, 3, 5, 1)],
        [*itertools.product([3, 50], [3, 17], [5, 16], [1, 33]), (50, 17, 64, 1), (50, 17, 64, 33)],
    ),
)
def test_codes_are_tested_by_products(monkeypatch, dims, n_axes, size, grouped_from):
    """Blocks that many, few and no query values reach: grouped, in slabs, and in a single tile."""
    monkeypatch.setattr(search, "GROUPED_FROM", grouped_from)
    monkeypatch.setattr(walk, "DENSE_UNITS", 0)
    monkeypatch.setattr(search, "SLAB", 16 if grouped_from == 1 else 4096)
    monkeypatch.setattr(search, "MATCHING_LEMMAS", frozenset())
    rng = np.random.default_rng(dims + n_axes + size)
    options = PartitionLayoutOptions(map="projection", n_axes=min(n_axes, dims), block_size=size)
    case = draw_case(rng, options, dims, 6 * size, 10, 9, "clustered", "middle")
    stats = check_matches(case)
    assert 0 < stats.candidates <= stats.vectors_touched < len(case.query) * len(case.vectors)
    check_search(case)
    check_batch(case, rng)


def test_what_grouping_cannot_hold_is_multiplied(monkeypatch):
    """Rows that codes leave are more than may be listed, and those that match are not."""
    monkeypatch.setattr(search, "GROUPED_FROM", 1)
    rng = np.random.default_rng(11)
    options = PartitionLayoutOptions(map="projection", n_axes=1, block_size=16)
    case = draw_case(rng, options, 30, 120, 10, 24, "uniform", "paper")
    right = check_matches(case)
    max_pairs = right.candidates // 2
    answer = search_partition(
        *case.arguments(), Goal(case.tau), SearchStats(), kernel=TritonKernel(), max_pairs=max_pairs
    )
    assert as_dict(answer) == case.joinable(1)


def test_products_of_tiles_and_single_rows_decide_alike(monkeypatch):
    rng = np.random.default_rng(2)
    options = PartitionLayoutOptions(map="projection", n_axes=3, block_size=16)
    case = draw_case(rng, options, 20, 60, 8, 20, "clustered", "middle")
    for few in (0, 2, 32):
        monkeypatch.setattr(search, "FEW", few)
        stats = check_matches(case)
        assert stats.candidate_pairs > 0


@pytest.mark.parametrize("place", long_but([20], [0, 20, 40, -1]))
@pytest.mark.parametrize(
    ("few", "dims"), long_cases_but([(0, 50), (4, 150)], [(0, 50), (4, 50), (4, 150)])
)
def test_pairs_within_an_ulp_of_tau(monkeypatch, few, dims, place):
    monkeypatch.setattr(search, "FEW", few)
    rng = np.random.default_rng(few)
    tau = 0.12
    query = sphere(rng, 3, dims)
    directions = sphere(rng, 60, dims)
    own = query[rng.integers(3, size=60)].astype(np.float64)
    away = directions - (directions * own).sum(1, keepdims=True) * own
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    angles = 2 * np.arcsin(tau / 2 * (1 + 1e-8 * rng.normal(size=(60, 1))))
    vectors = unit(np.cos(angles) * own + np.sin(angles) * away)
    columns = [[value] for value in range(60)]
    partition, order = build(
        vectors, columns, PartitionLayoutOptions(map="projection", n_axes=5, block_size=16)
    )
    case = Case(vectors, columns, partition, order, query, np.ones(3, np.int64), 3, tau)
    near = np.sort(case.distances[np.abs(case.distances - tau) < 1e-6])
    assert len(near) >= 60
    distance = near[place]
    for limit in (np.nextafter(distance, 0), distance, np.nextafter(distance, 1)):
        assert check_matches(case, float(limit)).defining_distances > 0


@pytest.mark.parametrize("metric", ["euclidean", "angular"])
def test_pivots_and_blocks_that_match_whole(metric, monkeypatch):
    monkeypatch.setattr(search, "FEW", 32)
    rng = np.random.default_rng(5)
    options = PartitionLayoutOptions(metric=metric, n_pivots=3, block_size=3)
    case = draw_case(rng, options, 5, 30, 8, 6, "clustered", "largest")
    assert check_search(case).matched_by_map > 0
    check_batch(case, rng)


def test_a_single_value_is_accepted_by_the_projection():
    rng = np.random.default_rng(1)
    vectors = unit(sphere(rng, 1, 4) + 1e-3 * rng.normal(size=(40, 4)))
    columns = draw_columns(rng, 40, 6)
    partition, order = build(
        vectors, columns, PartitionLayoutOptions(map="projection", n_axes=4, block_size=8)
    )
    case = Case(vectors, columns, partition, order, vectors[:3], np.ones(3, np.int64), 3, 1.0)
    assert check_search(case).matched_by_map > 0


def test_more_pairs_than_allowed():
    rng = np.random.default_rng(3)
    options = PartitionLayoutOptions(map="projection", n_axes=4, block_size=16)
    case = draw_case(rng, options, 8, 40, 8, 5, "clustered", "largest")
    query, _ = real_query(case)
    kernel = TritonKernel()
    assert kernel.candidates(query, 50, SearchStats()) is None
    one = kernel.candidates(query.take(slice(0, 1)), case.partition.n_values, SearchStats())
    assert len(one) == case.partition.n_values
    answer = search_partition(
        *case.arguments(), Goal(case.tau), SearchStats(), kernel=kernel, max_pairs=50
    )
    assert as_dict(answer) == case.joinable(1)


def test_lists_that_are_too_short_grow(monkeypatch):
    monkeypatch.setattr(workspace, "FIRST_ROOM", dict.fromkeys(workspace.FIRST_ROOM, 1))
    rng = np.random.default_rng(4)
    for metric, shape in (("euclidean", "clustered"), ("angular", "coarse")):
        options = PartitionLayoutOptions(metric=metric, n_pivots=3, block_size=4)
        case = draw_case(rng, options, 6, 60, 8, 8, shape, "middle")
        check_matches(case)


def test_levels_slabs_and_the_order_of_query_values(monkeypatch):
    monkeypatch.setattr(walk, "DENSE_UNITS", 0)
    monkeypatch.setattr(search, "SLAB", 48)
    rng = np.random.default_rng(6)
    vectors = sphere(rng, 270, 12)
    columns = draw_columns(rng, 270, 8)
    query = draw_query(rng, vectors, 72, 12)
    for options in (
        PartitionLayoutOptions(map="projection", n_axes=7, block_size=1),
        PartitionLayoutOptions(metric="angular"),
    ):
        partition, order = build(vectors, columns, options)
        tau = choose_tau(rng, "paper", options.metric, query, vectors)
        case = Case(vectors, columns, partition, order, query, np.ones(72, np.int64), 72, tau)
        check_matches(case)
        answer = search_partition(
            *case.arguments(), Goal(case.tau), SearchStats(), kernel=TritonKernel()
        )
        assert as_dict(answer) == case.joinable(1)
        assert answer[0].numel()


@pytest.mark.parametrize("max_pairs", long_but([ROOM], [50, ROOM]))
def test_counts_in_many_slices(monkeypatch, max_pairs):
    rng = np.random.default_rng(7)
    options = PartitionLayoutOptions(map="projection", block_size=16)
    case = draw_case(rng, options, 8, 60, 16, 8, "clustered", "middle")
    for name in ("BITMAP_BYTES", "CELL_BYTES", "ENTRIES_AT_ONCE"):
        monkeypatch.setattr(counter, name, 1)
    answer = search_partition(
        *case.arguments(),
        Goal(case.tau, min_count=2),
        SearchStats(),
        kernel=TritonKernel(),
        max_pairs=max_pairs,
    )
    assert as_dict(answer) == case.joinable(2)
    check_batch(case, rng)


@pytest.mark.parametrize(
    ("map_name", "n_query", "max_pairs"),
    long_cases_but(
        [("projection", 5, 50), ("pivots", 40, ROOM)],
        itertools.product(["projection", "pivots"], [5, 40], [50, ROOM]),
    ),
)
def test_a_query_column_that_is_still_on_the_host(map_name, n_query, max_pairs):
    rng = np.random.default_rng(n_query)
    options = PartitionLayoutOptions(map=map_name, n_axes=3 if map_name == "projection" else None)
    case = draw_case(rng, options, 9, 70, 12, n_query, "clustered", "middle")
    case.query[n_query // 2] = 0
    case.weights[0] = 0
    partition, vectors, weights, total = case.arguments()
    goal, stats = Goal(case.tau, min_count=2), SearchStats()
    threshold = threshold_of(partition, goal.max_distance, goal.lemmas)
    on_host = UnmappedQuery(partition, threshold, vectors.numpy(), weights.numpy(), total)
    seen = PartitionProbe(on_host, torch.arange(n_query), None)
    kernel = TritonKernel()
    for _ in range(2):
        answer = search_partition(
            partition,
            vectors,
            weights,
            total,
            goal,
            stats,
            kernel=kernel,
            max_pairs=max_pairs,
            outlook=seen,
        )
        assert as_dict(answer) == case.joinable(2)
    assert len(answer[0])


@pytest.mark.parametrize("map_name", long_but(["pivots"], ["projection", "pivots"]))
def test_partitions_are_launched_before_the_first_is_read(map_name, monkeypatch):
    """Each has its own answer; values of length zero match nothing, others must have length 1."""
    monkeypatch.setattr(column, "MOST_RECORDINGS", 1)
    rng = np.random.default_rng(12)
    options = PartitionLayoutOptions(
        map=map_name, n_axes=3 if map_name == "projection" else None, block_size=16
    )
    cases = [draw_case(rng, options, 9, n, 12, 8, "clustered", "middle") for n in (40, 10, 20)]
    query, weights = cases[0].query.copy(), cases[0].weights.copy()
    query[1], weights[2] = 0, 0
    cases = [replace(case, query=query, weights=weights, tau=cases[0].tau) for case in cases]
    kernel, goal = TritonKernel(), Goal(cases[0].tau, min_count=2)

    def search(vectors: np.ndarray) -> list[dict[int, int]]:
        answers = DenseSpace(options).search_all(
            [case.partition for case in cases], torch.from_numpy(vectors), weights,
            int(weights.sum()), goal, SearchStats(), [None] * len(cases), kernel=kernel,
            max_pairs=ROOM,
        )  # fmt: skip
        return [as_dict(answer) for answer in answers]

    recordings = []
    for _ in range(2):
        answers = search(query)
        assert answers == [case.joinable(2) for case in cases]
        recordings.append(list(map(id, kernel._searches._kept.values())))
    assert any(answers)
    # All of them are there at the next search, however many partitions there are.
    assert len(set(recordings[0])) == len(cases)
    assert recordings[0] == recordings[1]
    assert search(query * 0) == [{}, {}, {}]
    # Lengths that the program doubts, and the full check allows.
    query[5:] *= 1.0 + 4.5e-4
    cases = [replace(case, query=query) for case in cases]
    assert search(query) == [case.joinable(2) for case in cases]
    query[4] *= 1.1
    with pytest.raises(InputError, match="unit length"):
        search(query)


def test_partitions_of_any_size_share_the_lists_that_one_made_longer():
    """A recorded search is of its lists: others would be recorded again at every search."""
    rng = np.random.default_rng(14)
    options = PartitionLayoutOptions(map="projection", n_axes=3, block_size=16)
    partitions = [
        draw_case(rng, options, 9, 40, n_columns, 8, "clustered", "middle").partition
        for n_columns in (6, 4200)
    ]
    kernel = TritonKernel()
    room, limits = kernel._spaces.room, kernel._list_limits(partitions[1], ROOM)
    assert kernel._grow({"columns": 4100}, room, limits)
    small, large = (kernel._space(partition, 3, ROOM) for partition in partitions)
    assert small.lists is large.lists is kernel._space(partitions[0], 3, ROOM).lists
    assert small.room["columns"] == 1 << 13


def test_an_interrupted_count_leaves_nothing_behind(monkeypatch):
    rng = np.random.default_rng(13)
    options = PartitionLayoutOptions(map="projection", n_axes=3, block_size=16)
    case = draw_case(rng, options, 9, 60, 12, 8, "clustered", "middle")
    kernel, goal = TritonKernel(), Goal(case.tau, min_count=2)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(
            column, "take_counts", {counting_grid(torch.device("cpu"), 1, 32): interrupted}
        )
        with pytest.raises(KeyboardInterrupt):
            search_partition(*case.arguments(), goal, SearchStats(), kernel=kernel)
    answer = search_partition(*case.arguments(), goal, SearchStats(), kernel=kernel)
    assert as_dict(answer) == case.joinable(2) != {}


@pytest.mark.parametrize("dims", [3, 20, 130])
def test_values_are_prepared_as_tensor_operations_do(dims):
    """The program maps, rounds and lays out, and places without a value are far from everything."""
    rng = np.random.default_rng(dims)
    options = PartitionLayoutOptions(map="projection", n_axes=min(dims, 7), block_size=16)
    case = draw_case(rng, options, dims, 50, 6, 11, "clustered", "middle")
    query, _ = real_query(case)
    n, n_coordinates = len(query), case.partition.blocks.codes.shape[1]
    places = QueryPlaces(16, dims, n_coordinates, torch.device("cpu"))
    places.fill(query, 4)
    places.send()
    space = workspace.Workspaces().take(
        TritonKernel._list_limits(case.partition, ROOM),
        case.partition.blocks.n_levels,
        1,
        query.vectors.device,
    )
    threshold = query.threshold
    search.CandidateSearch(case.partition, places, threshold, space).launch()
    right = pad_axes(query.mapped).t()
    assert places.header.tolist() == [n, 4]
    assert (places.points[:, :n] - right).abs().max() < 2**-20
    assert (places.points[:, n:] == -1e6).all()
    last = query.mapped.shape[1] - 1
    np.testing.assert_array_equal(places.upper_points[last, :n], -places.points[last, :n])
    np.testing.assert_array_equal(places.halves[:n], query.vectors.half())
    squares = query.vectors.half().double().square().sum(1)
    np.testing.assert_allclose(places.squares[:n], squares, rtol=1e-5)
    short = query.mapped[:, last] <= threshold.tau - threshold.slack
    np.testing.assert_array_equal(places.may_accept[:n], short.to(torch.int8))
    assert not places.may_accept[n:].any()


def test_many_dimensions_are_left_to_tensor_operations(monkeypatch):
    monkeypatch.setattr(search, "MOST_DIMENSIONS", 16)
    rng = np.random.default_rng(8)
    options = PartitionLayoutOptions(map="projection", block_size=16)
    case = draw_case(rng, options, 17, 60, 8, 8, "clustered", "middle")
    check_search(case)
    query, _ = real_query(case)
    pairs = TritonKernel().candidates(query, ROOM, SearchStats())
    assert not isinstance(pairs, DecidedPairs)


def test_nothing_to_find():
    rng = np.random.default_rng(9)
    options = PartitionLayoutOptions(map="projection", block_size=16)
    case = draw_case(rng, options, 8, 40, 6, 5, "uniform", "middle")
    far = Case(
        case.vectors,
        case.columns,
        case.partition,
        case.order,
        sphere(rng, 4, 8),
        np.ones(4, int),
        4,
        1e-9,
    )
    check_matches(far)
    check_search(far)
    empty = draw_case(rng, options, 8, 0, 3, 5, "uniform", "middle")
    check_search(empty)
    query, _ = real_query(case)
    none = TritonKernel().candidates(query.take(slice(0, 0)), ROOM, SearchStats())
    assert len(none) == 0
    assert none.offsets.tolist() == [0]


@pytest.mark.parametrize(
    ("dims", "seed", "tau"),
    long_cases_but(
        [(17, 0, "tie")],
        [
            (dims, seed, tau)
            for dims in (3, 17, 40)
            for seed, tau in enumerate(("tie", "above", "below", "middle"))
        ],
    ),
)
def test_vectors_of_16_bits(dims, seed, tau):
    options = PartitionLayoutOptions(map="projection", n_axes=3, vector_precision="half")
    rng = np.random.default_rng(seed)
    case = draw_case(rng, options, dims, 60, 12, 9, "clustered", tau)
    assert case.partition.vectors.dtype == torch.float16
    check_matches(case)
    check_search(case)
