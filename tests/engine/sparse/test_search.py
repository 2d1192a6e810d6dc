"""Searches by posting lists find what brute force finds, at every distance."""

from dataclasses import replace

import numpy as np
import pytest
from bags import LONG, SPACE, distances_of, vectors_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from long_runs import examples, long_but

from pexeso.engine.sparse import comparison, search
from pexeso.engine.sparse.partition import SparsePartition, build_partition
from pexeso.engine.sparse.sparse_space import SparseSpace
from pexeso.engine.sparse.vectors import NO_COMMON_PAIR, LetterSpace
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import BatchColumn, Goal
from pexeso.runtime.compiled import compiled
from pexeso.runtime.progress import begin_steps, reported_steps

loops = compiled("pexeso.engine.sparse.loops")

SYLLABLES = ["ra", "ko", "mi", "sen", "tal", "bo", "éa", "東京", "x", "7", "19"]


def lake_of(seed: int, n_values: int, n_columns: int = 12, space: LetterSpace = SPACE):
    """Return values of a small language, and a partition of columns of them."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(SYLLABLES, rng.integers(1, 5))) for _ in range(40)]
    popular = rng.zipf(1.5, 4000) % len(words)
    values = sorted(
        {
            " ".join(words[number] for number in rng.choice(popular, rng.integers(1, 9)))
            for _ in range(n_values)
        }
    )
    columns = [rng.choice(len(values), rng.integers(0, 30)) for _ in range(n_columns)]
    offsets = np.cumsum([0, *map(len, columns)])
    arrays, order = build_partition(
        vectors_of(values, space), offsets, np.concatenate(columns).astype(np.int64)
    )
    partition = SparsePartition.from_arrays(arrays, space)
    return [values[row] for row in order], partition


def misspelt(values: list[str], rng: np.random.Generator) -> list[str]:
    """Take a letter out of every other value, and add words that the lake has not."""
    texts = []
    for number, value in enumerate(values):
        at = int(rng.integers(0, max(1, len(value) - 1)))
        texts.append(value if number % 2 else value[:at] + value[at + 1 :])
    return [*texts, "zzz qqq", "", "ko"]


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("seed", long_but([0], range(3)))
def test_rows_are_those_within_the_distance(seed, share, n_threads):
    space = LetterSpace(share)
    values, partition = lake_of(seed, 90, space=space)
    rng = np.random.default_rng(seed)
    queries = misspelt([values[row] for row in rng.choice(len(values), 70)], rng)
    exact = distances_of(queries, values, space)
    vectors = vectors_of(queries, space)
    near = np.unique(exact[np.isfinite(exact)])
    # Also at distances that some pair has, where one bit decides.
    for limit in (
        0.0,
        0.06,
        0.2,
        0.35,
        0.42,
        0.6,
        0.7,
        NO_COMMON_PAIR,
        1.0,
        *near[:: 1 + len(near) // 40],
    ):
        hits = search.find_rows(partition, vectors, float(limit), n_threads, SearchStats())
        rows = np.repeat(np.arange(len(queries)), np.diff(hits.offsets))
        expected = np.argwhere(exact <= limit)
        np.testing.assert_array_equal(np.stack([rows, hits.members], 1), expected)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 50])
@pytest.mark.parametrize("at_once", [1, 200, 1 << 22])
def test_pairs_do_not_depend_on_threads_and_pieces(n_threads, at_once, monkeypatch):
    values, partition = lake_of(5, 90)
    queries = misspelt(values[:40], np.random.default_rng(5))
    exact = distances_of(queries, values, SPACE)
    monkeypatch.setattr(comparison, "available_threads", lambda: n_threads)
    monkeypatch.setattr(comparison, "PAIRS_AT_ONCE", at_once)
    monkeypatch.setattr(comparison, "PAIRS_A_THREAD", 64)
    rows = np.arange(0, len(values), 2)
    pairs = comparison.compare_rows(partition, vectors_of(queries), rows, 0.4)
    expected = np.argwhere(exact[:, rows] <= 0.4)
    assert len(expected) > 40
    np.testing.assert_array_equal(np.stack(pairs[:2], 1), expected)
    np.testing.assert_array_equal(pairs[2], exact[:, rows][tuple(expected.T)])


@given(
    st.lists(st.text(st.sampled_from("abc17 "), max_size=10), min_size=1, max_size=12, unique=True),
    st.lists(st.text(st.sampled_from("abc17 "), max_size=10), min_size=1, max_size=5),
    st.floats(0, 0.75),
)
@example(["a"], ["a"], 0.0)
@example(["aa aa", "aa"], ["aa", "aaa"], 0.3)
@settings(max_examples=examples(150), deadline=None)
def test_any_values_are_found(stored, queries, limit):
    check_found(stored, queries, limit)


def check_found(stored, queries, *limits):
    """Hold the rows that are found against all distances; without limits against many of them."""
    arrays, order = build_partition(
        vectors_of(stored), np.array([0, len(stored)]), np.arange(len(stored))
    )
    partition = SparsePartition.from_arrays(arrays, SPACE)
    exact = distances_of(queries, [stored[row] for row in order])
    if not limits:
        some = np.unique(exact[exact < 0.7])[:: 1 + exact.size // 12]
        limits = [0.0, 0.1, 0.3, 0.42, 0.65, *map(float, some)]
    for limit in limits:
        hits = search.find_rows(partition, vectors_of(queries), limit, 1, SearchStats())
        rows = np.repeat(np.arange(len(queries)), np.diff(hits.offsets))
        np.testing.assert_array_equal(
            np.stack([rows, hits.members], 1), np.argwhere(exact <= limit)
        )


@pytest.mark.parametrize("limit", [0.0, 0.1, 0.4, 0.6])
def test_values_of_ten_thousand_letters_are_found(limit):
    check_found(LONG, [*LONG, "a" * 5_000, "abcd abcd", "zz", "😀"], limit)


@pytest.mark.parametrize("length", long_but([20_000], [20_000, 100_000]))
def test_a_word_that_repeats_its_pairs_is_found_at_every_distance(length):
    """Its nearness is a sum of as many float32 numbers as it has pairs, each of them rounded."""
    values = [
        "a" * length,
        "ab" * (length // 2),
        "b" + "a" * (length - 1),
        "a" * (length * 9 // 100),
    ]
    arrays, order = build_partition(vectors_of(values), np.array([0, 4]), np.arange(4))
    partition = SparsePartition.from_arrays(arrays, SPACE)
    exact = vectors_of(values).distances(vectors_of([values[row] for row in order]))
    torch = pytest.importorskip("torch")
    for variant in (partition, replace(partition, device=torch.device("cpu"))):
        for limit in (0.0, 1e-6, 0.01, float(exact[0, 3]), 0.06, 0.4):
            hits = search.find_rows(variant, vectors_of(values), limit, 1, SearchStats())
            rows = np.repeat(np.arange(4), np.diff(hits.offsets))
            expected = np.argwhere(exact <= limit)
            np.testing.assert_array_equal(np.stack([rows, hits.members], 1), expected)


def test_lists_are_left_out_and_nothing_is_missed(monkeypatch):
    _, partition = lake_of(5, 400)
    find, counts = loops.find_matches, []

    def counted(*arguments):
        counts.append(arguments[-1])
        return find(*arguments)

    monkeypatch.setattr(loops, "find_matches", counted)
    hits = search.find_rows(partition, partition.vectors, 0.06, 1, SearchStats())
    assert sum(of_run[3] for of_run in counts) > 0  # lists left out
    exact = partition.vectors.distances(partition.vectors)
    assert len(hits.members) == (exact <= 0.06).sum()


@pytest.mark.parametrize("seed", range(2))
def test_rows_looked_up_and_rows_gone_through_are_the_same(seed, monkeypatch):
    """No value goes through all rows, or each that reads lists does, in full lanes."""
    values, partition = lake_of(seed, 300)
    queries = vectors_of(misspelt(values[::5], np.random.default_rng(seed)))
    exact = queries.distances(partition.vectors)
    for limit in (0.06, 0.3, 0.45, 0.6, float(exact[np.isfinite(exact)].max())):
        which, rows = np.nonzero(exact <= min(limit, 0.7))
        looked_at = []
        for visits in (1e9, 0.0):
            monkeypatch.setattr(search, "VISITS_A_SCAN", visits)
            work = SearchStats()
            hits = search.matching_rows(partition, queries, min(limit, 0.7), 1, work)
            np.testing.assert_array_equal(hits.members, rows)
            np.testing.assert_array_equal(
                hits.offsets[1:], np.bincount(which, minlength=len(queries)).cumsum()
            )
            looked_at.append(work.candidates)
        if limit >= 0.6:
            assert looked_at[0] < looked_at[1]


@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_torch_finds_the_same_rows(seed, share, monkeypatch):
    torch = pytest.importorskip("torch")
    from pexeso.engine.sparse import torch_rows

    space = LetterSpace(share)
    values, partition = lake_of(seed, 200, space=space)
    queries = [
        *misspelt(values[::3], np.random.default_rng(seed)),
        "",
        "q",
        values[0] + " " + values[0],
    ]
    vectors = vectors_of(queries, space)
    exact = vectors.distances(partition.vectors)
    near = np.unique(exact[np.isfinite(exact)])
    there = replace(partition, device=torch.device("cpu"))
    for at_once in (1, 1 << 28):
        monkeypatch.setattr(torch_rows, "NUMBERS_AT_ONCE", at_once)
        for limit in (0.0, 0.06, 0.3, 0.45, 0.6, 1.0, *near[:: len(near) // 5]):
            hits = search.find_rows(there, vectors, float(limit), 1, SearchStats())
            which, rows = np.nonzero(exact <= limit)
            np.testing.assert_array_equal(hits.members, rows)
            np.testing.assert_array_equal(
                np.diff(hits.offsets), np.bincount(which, minlength=len(queries))
            )


@pytest.mark.parametrize("n_words", long_but([3, 1_500], [3, 1_500, 5_000]))
def test_lanes_hold_values_of_very_many_words(n_words):
    rng = np.random.default_rng(n_words)
    words = ["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(n_words)]
    values = sorted({*words[:40], " ".join(words), " ".join(words[1:])})
    offsets, rows = np.array([0, len(values)]), np.arange(len(values))
    arrays, _ = build_partition(vectors_of(values), offsets, rows)
    partition = SparsePartition.from_arrays(arrays, SPACE)
    exact = partition.vectors.distances(partition.vectors)
    for limit in (0.1, 0.5, 0.69):
        hits = search.find_rows(partition, partition.vectors, limit, 1, SearchStats())
        np.testing.assert_array_equal(hits.members, np.nonzero(exact <= limit)[1])


def brute_force(partition, vectors, weights, needed, limit):
    distances = vectors.distances(partition.vectors) <= limit
    counts = np.zeros(partition.n_columns, np.int64)
    for column in range(partition.n_columns):
        begin, end = partition.column_lists.offsets[column : column + 2]
        rows = partition.column_lists.members[begin:end]
        counts[column] = weights[distances[:, rows].any(1)].sum()
    columns = np.flatnonzero(counts >= needed)
    return columns, counts[columns]


@pytest.mark.parametrize("few", [0, 1 << 9])
@pytest.mark.parametrize("seed", range(4))
def test_columns_and_counts_are_those_of_brute_force(seed, few, monkeypatch):
    monkeypatch.setattr(search, "PAIRS_WORTH_COMPARING", few)
    _, partition = lake_of(seed, 200, 40)
    space, rng = SparseSpace(SPACE), np.random.default_rng(seed)
    for column in range(0, 40, 7):
        begin, end = partition.column_lists.offsets[column : column + 2]
        vectors = partition.vectors.take(partition.column_lists.members[begin:end])
        weights = rng.integers(0, 4, len(vectors))
        for limit in (0.0, 0.2, 0.42, 0.6, 1.0):
            for share in (0.05, 0.5, 0.9):
                needed = max(1, int(weights.sum() * share))
                goal = Goal(limit, needed)
                expected = brute_force(partition, vectors, weights, needed, limit)
                for way in (space.search, space.search_exhaustively):
                    more = {"total": 1, "max_pairs": 1} if way == space.search else {}
                    parts = way(partition, vectors, weights, goal=goal, stats=SearchStats(), **more)
                    for part, right in zip(parts, expected, strict=True):
                        np.testing.assert_array_equal(part, right)


def test_a_batch_finds_what_single_searches_find():
    _, partition = lake_of(9, 200, 40)
    space, vectors = SparseSpace(SPACE), lake_of(9, 200, 40)[1].vectors
    queries = [
        BatchColumn(np.arange(begin, begin + 20), np.ones(20, np.int64), needed)
        for begin, needed in ((0, 1), (10, 9), (60, 18))
    ]
    batch = space.search_batch(partition, vectors, queries, Goal(0.42), SearchStats(), max_pairs=1)
    for query, (columns, counts) in zip(queries, batch, strict=True):
        alone = space.search(
            partition, vectors[query.members], query.weights, 20,
            Goal(0.42, query.min_count), SearchStats(), max_pairs=1,
        )  # fmt: skip
        assert columns.tolist() == alone[0].tolist()
        assert counts.tolist() == alone[1].tolist()


def test_the_best_columns_come_with_those_that_tie_with_the_last():
    _, partition = lake_of(11, 200, 40)
    vectors = partition.vectors[:60]
    space, weights = SparseSpace(SPACE), np.ones(60, np.int64)
    arguments = (partition, vectors, weights, 60)
    _, counts = space.search(*arguments, Goal(0.3), SearchStats(), max_pairs=1)
    for k in (1, 3, len(counts), len(counts) + 5):
        left_out = np.zeros(40, bool)
        columns, best = space.search(
            *arguments, Goal(0.3, k=k), SearchStats(), left_out, max_pairs=1
        )
        floor = sorted(counts.tolist())[-min(k, len(counts))]
        assert sorted(best.tolist()) == sorted(hits for hits in counts.tolist() if hits >= floor)
        left_out[columns[0]] = True
        again, _ = space.search(*arguments, Goal(0.3, k=k), SearchStats(), left_out, max_pairs=1)
        assert int(columns[0]) not in again.tolist()


def test_pairs_of_columns_are_those_within_the_distance_in_order():
    _, partition = lake_of(12, 150, 20)
    vectors = partition.vectors[:25]
    columns = np.array([3, 0, 7])
    column, query, posting, distance, cost = SparseSpace(SPACE).column_pairs(
        partition, vectors, columns, 0.4, SearchStats()
    )
    np.testing.assert_array_equal(cost, distance)
    exact = vectors.distances(partition.vectors)
    expected = []
    for position, number in enumerate(columns.tolist()):
        begin, end = partition.column_lists.offsets[number : number + 2]
        for at in range(begin, end):
            row = partition.column_lists.members[at]
            expected += [
                (position, value, exact[value, row], at)
                for value in range(25)
                if exact[value, row] <= 0.4
            ]
    assert list(zip(column, query, distance, posting, strict=True)) == sorted(expected)
    nearest = SparseSpace(SPACE).nearest_in_columns(partition, vectors, columns, 0.4, SearchStats())
    for position, number in enumerate(columns.tolist()):
        rows = partition.column_lists[number]
        np.testing.assert_array_equal(nearest[position], exact[:, rows].min(1, initial=0.4))


def test_the_nearest_rows_are_the_first_of_the_nearest(monkeypatch):
    monkeypatch.setattr("pexeso.engine.sparse.sparse_space._ROWS_AT_ONCE", 7)
    _, partition = lake_of(13, 60)
    rows = np.array([5, 2, 2, 9, 30, 1, 0, 11, 12, 13])
    vectors = partition.vectors[20:30]
    position, distance = SparseSpace(SPACE).nearest(partition, vectors, rows)
    exact = vectors.distances(partition.vectors.take(rows))
    np.testing.assert_array_equal(position, exact.argmin(1))
    np.testing.assert_array_equal(distance, exact.min(1))


@given(st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=examples(300), deadline=None)
def test_what_is_read_of_a_match_is_never_below_its_bound(rest, cosine):
    bound = loops.bound_of(rest, cosine)
    rng = np.random.default_rng(0)
    kept = np.sqrt(1 - rest)
    query = np.array([kept, np.sqrt(rest), 0, 0])
    for _ in range(20):
        aside = rng.normal(size=4)
        aside -= (aside @ query) * query
        aside /= np.linalg.norm(aside)
        match = cosine * query + np.sqrt(1 - cosine**2) * aside
        assert match @ np.array([kept, 0, 0, 0]) >= bound - 1e-9


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_search_of_many_values_can_be_interrupted(n_threads, monkeypatch):
    generator = np.random.default_rng(0)
    values = sorted({"".join(generator.choice(["a", "b"], 12)) for _ in range(300)})
    vectors = vectors_of(values)
    _, partition = lake_of(0, 60)
    whole = search.matching_rows(partition, vectors, 0.4, 1, SearchStats())
    calls = []
    find = search._find

    def counted(*arguments):
        calls.append(arguments[-1][1] - arguments[-1][0])
        return find(*arguments)

    monkeypatch.setattr(search, "_find", counted)
    monkeypatch.setattr(search, "VALUES_A_CALL", 10)
    in_pieces = search.matching_rows(partition, vectors, 0.4, n_threads, SearchStats())
    assert max(calls) <= 10
    assert sum(calls) == len(values)
    assert np.array_equal(in_pieces.offsets, whole.offsets)
    assert np.array_equal(in_pieces.members, whole.members)

    def interrupted(*arguments):
        calls.append(0)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return find(*arguments)

    calls.clear()
    monkeypatch.setattr(search, "_find", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.matching_rows(partition, vectors, 0.4, n_threads, SearchStats())
    assert n_threads > 1 or len(calls) == 3


def hostile_lakes() -> dict[str, tuple[list[str], list[str]]]:
    """Return values that share all their pieces, and query values of the same kind."""
    rng = np.random.default_rng(4)
    two = ["".join(rng.choice(["a", "b"], 24)) for _ in range(90)]
    lengths = [*range(1, 60), 300, 1_000]
    words = ["abab", "abba", "baab", "aabb", "bbaa", "abaab"]
    same = [" ".join([*words, "".join(rng.choice(["a", "b"], 5))]) for _ in range(60)]
    enormous = [*two[:30], "ab" * 20_000, "ab" * 19_999 + "a", "ba" * 300]
    return {
        "two letters": (two, [*two[:20], *(value[:-1] for value in two[:20])]),
        "one letter": (["a" * n for n in lengths], ["a" * n for n in (1, 7, 30, 59, 990)]),
        "same words": (same, [*same[:15], "abab abba", "abab"]),
        "one enormous word": (enormous, ["ab", "abab", *two[:5], "ab" * 250, "ab" * 20_000]),
    }


@pytest.mark.parametrize("compares_all", [False, True])
@pytest.mark.parametrize("kind", hostile_lakes())
def test_values_that_share_their_pieces_are_found(kind, compares_all, monkeypatch):
    """Rows looked up in lists and rows compared are the same, also where one bit decides."""
    stored, queries = (sorted(set(values)) for values in hostile_lakes()[kind])
    if compares_all:
        monkeypatch.setattr(loops, "find_matches", _find_none)
        monkeypatch.setattr(comparison, "PAIRS_AT_ONCE", 500)
    check_found(stored, queries)


def _find_none(*arguments):
    """Leave all query values to the comparison."""
    arguments[-2][:] = loops.DEAR
    return np.zeros(0, np.int32)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_lists_are_not_read_where_a_comparison_takes_less_time(n_threads, monkeypatch):
    """Words over two letters stand in most lists, more than once."""
    rng = np.random.default_rng(8)
    stored = sorted({"".join(rng.choice(["a", "b"], 24)) for _ in range(3_000)})
    offsets = np.array([0, 1_000, 2_000, len(stored)])
    arrays, _ = build_partition(vectors_of(stored), offsets, rng.permutation(len(stored)))
    partition = SparsePartition.from_arrays(arrays, SPACE)
    ordinary = ["abcdefg hijk", "zz"]
    vectors = vectors_of(["".join(rng.choice(["a", "b"], 24)) for _ in range(40)] + ordinary)
    distances = vectors.distances(partition.vectors)
    queries = [BatchColumn(np.arange(5, 42), np.ones(37, np.int64), needed) for needed in (1, 30)]
    for at_once in (1, 1 << 26):
        monkeypatch.setattr(search, "MATCHES_AT_ONCE", at_once)
        monkeypatch.setattr(search, "VALUES_A_CALL", 7)
        for limit in (0.1, 0.3, float(np.median(distances))):
            work = SearchStats()
            answers = search.search(partition, vectors, queries, limit, n_threads, work)
            assert 40 * len(stored) <= work.defining_distances <= 42 * len(stored)
            for query, (columns, counts) in zip(queries, answers, strict=True):
                weights = np.zeros(len(vectors), np.int64)
                weights[query.members] = query.weights
                expected = brute_force(partition, vectors, weights, query.min_count, limit)
                np.testing.assert_array_equal(columns, expected[0])
                np.testing.assert_array_equal(counts, expected[1])
                alone = search.search_in_prefixes(
                    partition, vectors, query, limit, n_threads, SearchStats()
                )
                np.testing.assert_array_equal(alone, expected)


def test_a_search_tells_how_far_it_is(monkeypatch):
    """Each query value is a step, looked up or compared, and so is each pair of a re-ranking."""
    _, partition = lake_of(3, 120)
    vectors, reports = partition.vectors[:90], []
    monkeypatch.setattr(search, "VALUES_A_CALL", 10)
    monkeypatch.setattr(comparison, "PAIRS_AT_ONCE", 400)
    with reported_steps(lambda n_done, total: reports.append((n_done, total))):
        begin_steps(90)
        search.find_rows(partition, vectors, 0.4, 1, SearchStats())
        assert reports == [(10 * number, 90) for number in range(1, 10)]
        monkeypatch.setattr(loops, "find_matches", _find_none)
        begin_steps(90)
        search.find_rows(partition, vectors, 0.4, 1, SearchStats())
        assert reports[-1] == (90, 90)
        assert len(reports) > 11
        columns = np.arange(partition.n_columns)
        rows = np.unique(partition.column_lists.members)
        begin_steps(90 * len(rows))
        SparseSpace(SPACE).nearest_in_columns(partition, vectors, columns, 0.5, SearchStats())
        assert reports[-1] == (90 * len(rows), 90 * len(rows))
    before = len(reports)
    search.find_rows(partition, vectors, 0.4, 1, SearchStats())
    assert len(reports) == before
