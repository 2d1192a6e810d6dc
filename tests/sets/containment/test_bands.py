"""Hashes, bands and posting lists: worked examples, definitions, and what damaged ones say."""

from itertools import combinations, pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from synthetic_sets import NumberLists, ragged, some_of, vocabularies

from pexeso.errors import IndexCorruptError
from pexeso.runtime.threads import borrow_counters, give_back
from pexeso.sets.containment import ensemble as lists_module
from pexeso.sets.containment.bands import (
    BandTables,
    Tuner,
    band_hits,
    best_setting,
    build_tables,
    candidate_probability,
    containment_of,
    jaccard_of,
    optimal_partitions,
)
from pexeso.sets.containment.ensemble import CsrLists
from pexeso.sets.containment.hashing import (
    EMPTY,
    distinct_sorted,
    hash_tokens,
    seeds_of,
    signatures,
    similarities,
)

W1_QUERY = {"Ontario", "Toronto"}
W1_FIRST = {"Alberta", "Ontario", "Manitoba"}
W1_SECOND = {
    *("Illinois", "Chicago", "New York City", "New York", "Nova Scotia", "Halifax", "California"),
    *("San Francisco", "Seattle", "Washington", "Ontario", "Toronto"),
}


@pytest.mark.parametrize(
    ("candidate", "jaccard", "containment"), [(W1_FIRST, 0.25, 0.5), (W1_SECOND, 1 / 6, 1.0)]
)
def test_w1_jaccard_against_containment(candidate, jaccard, containment):
    ratio = len(candidate) / len(W1_QUERY)
    assert jaccard_of(containment, ratio) == pytest.approx(jaccard, abs=1e-15)
    assert containment_of(jaccard, ratio) == pytest.approx(containment, abs=1e-15)
    assert len(W1_QUERY & candidate) / len(W1_QUERY | candidate) == jaccard


@pytest.mark.parametrize(
    ("ratio", "t", "s"), [(1.1, 0.6, 0.4), (2.6, 0.6, 0.2), (2, 0.5, 0.2), (5, 0.6, 1 / 9)]
)
def test_w3_conversion(ratio, t, s):
    assert jaccard_of(t, ratio) == pytest.approx(s, abs=1e-12)


def test_acceptance_2_conversions_are_inverse_and_give_the_effective_threshold():
    ratio, share = np.meshgrid(np.geomspace(0.1, 1000, 41), np.linspace(0.01, 1, 50))
    t = share * np.minimum(1, ratio)
    assert np.abs(containment_of(jaccard_of(t, ratio), ratio) - t).max() < 1e-12
    q, x = 100.0, 100.0 * ratio
    u = 3 * x + 7
    assert np.abs(containment_of(jaccard_of(t, u / q), x / q) - (x + q) * t / (u + q)).max() < 1e-12


def areas(bands, rows):
    positives = quad(lambda s: float(candidate_probability(s, bands, rows)), 0, 0.5, epsabs=1e-12)[
        0
    ]
    return positives, quad(
        lambda s: 1 - float(candidate_probability(s, bands, rows)), 0.5, 1, epsabs=1e-12
    )[0]


def test_w5_s_curve():
    positives, negatives = areas(42, 6)
    assert (round(positives, 5), round(negatives, 5), round(positives + negatives, 5)) == (
        0.03982,
        0.03627,
        0.07609,
    )
    positives, negatives = areas(16, 16)
    assert (f"{positives:.1e}", round(negatives, 5)) == ("7.2e-06", 0.31197)
    # E2, the step of the curve: there the probability is about 1 - 1/e.
    assert (round((1 / 42) ** (1 / 6), 4), round((1 / 16) ** (1 / 16), 4)) == (0.5364, 0.8409)
    assert float(candidate_probability((1 / 42) ** (1 / 6), 42, 6)) == pytest.approx(
        1 - np.exp(-1), abs=0.01
    )


def test_w6_containment_domain():
    chances = candidate_probability(jaccard_of(np.array([0.1, 0.25, 0.5, 0.6, 0.75]), 2.0), 256, 4)
    assert np.abs(chances - [0.000362, 0.01733, 0.33630, 0.63284, 0.95842]).max() < 5e-6


@pytest.mark.parametrize(
    ("largest", "with_128", "with_256"),
    [
        (1e3, 1.0, 1.0),
        (1e4, 0.7237, 0.9237),
        (1e5, 0.1202, 0.2260),
        (1e6, 0.01272, 0.02528),
        (22_075_531, 0.00058, 0.00116),
    ],
)
def test_w7_asymmetric(largest, with_128, with_256):
    similarity = jaccard_of(1.0, largest / 100)
    assert similarity == pytest.approx(100 / largest)
    probabilities = candidate_probability(similarity, np.array([128, 256]), 1)
    assert np.abs(probabilities - [with_128, with_256]).max() < 6e-5


def test_equal_sets_are_always_candidates():
    assert candidate_probability(1.0, 1, 8) == 1.0
    assert candidate_probability(0.0, 256, 1) == 0.0


W4_SIZES = np.array([3] * 4 + [4] * 4 + [99] * 3 + [100] * 3)
SIZES = st.lists(st.integers(1, 40) | st.sampled_from([1000, 10**6, 10**9]), max_size=30)


def cost_of(sizes: np.ndarray, uppers: tuple[int, ...]) -> float:
    largest = np.array(uppers)[np.searchsorted(uppers, sizes)]
    return float((1 - sizes / largest).sum())


def least_cost(sizes: np.ndarray, n: int) -> float:
    distinct = np.unique(sizes).tolist()
    n = min(n, len(distinct))
    return min(
        (cost_of(sizes, (*inner, distinct[-1])) for inner in combinations(distinct[:-1], n - 1)),
        default=0.0,
    )


@pytest.mark.parametrize(
    ("n", "cost", "ranges"),
    [
        (1, 7.75, [(3, 100)]),
        (2, 1.03, [(3, 4), (99, 100)]),
        (3, 0.03, [(3, 3), (4, 4), (99, 100)]),
        (4, 0.0, [(3, 3), (4, 4), (99, 99), (100, 100)]),
        (9, 0.0, [(3, 3), (4, 4), (99, 99), (100, 100)]),
    ],
)
def test_w4_partition_cost(n, cost, ranges):
    upper = optimal_partitions(W4_SIZES, n)
    assert cost_of(W4_SIZES, upper) == pytest.approx(cost, abs=1e-12)
    assert upper.tolist() == [last for _, last in ranges]


@given(SIZES, st.integers(1, 6))
def test_the_optimum_is_that_of_exhaustive_search(sizes, n):
    sizes = np.array(sorted(set(sizes[:9])) + sizes[:9], np.int64)
    if len(sizes):
        upper = optimal_partitions(sizes, n)
        assert cost_of(sizes, upper) == pytest.approx(least_cost(sizes, n), abs=1e-9)


@given(SIZES, st.integers(1, 12))
def test_partitions_are_apart_and_cover_all_sets(sizes, n):
    sizes = np.array(sizes, np.int64)
    upper = optimal_partitions(sizes, n)
    assert len(upper) == min(n, len(np.unique(sizes)))
    assert (np.diff(upper) > 0).all()
    assert np.isin(upper, sizes).all()
    assert (sizes <= upper.max(initial=0)).all()


W8_FLOOR = {
    0.5: [(80, 3), (74, 2), (32, 1), (122, 1), (256, 1)],
    1.0: [(1, 8), (47, 4), (74, 2), (59, 1), (256, 1)],
}
AT_95 = Tuner(recall=0.95)
W8_REACHED = {0.5: 0.721, 1.0: 0.924}


@pytest.mark.parametrize("threshold", W8_FLOOR)
def test_w8_the_choice_that_keeps_the_recall(threshold):
    settings = [best_setting(AT_95, ratio, threshold) for ratio in (1, 2, 5, 20, 100)]
    assert [one[:2] for one in settings] == W8_FLOOR[threshold]
    assert all(recall >= 0.95 for _, _, recall in settings[:4])
    assert settings[4][2] == pytest.approx(W8_REACHED[threshold], abs=5e-4)


@given(
    st.floats(0.01, 1000),
    st.floats(0.01, 1),
    st.floats(0.5, 0.99),
    st.sampled_from([1, 16, 128, 256]),
)
def test_acceptance_8_the_recall_is_kept_or_all_is_asked_for(
    ratio, threshold, recall, permutations
):
    ratio = max(ratio, threshold)
    bands, rows, reached = best_setting(Tuner(permutations, 8, recall), ratio, threshold)
    chance = float(candidate_probability(jaccard_of(threshold, ratio), bands, rows))
    assert reached == pytest.approx(chance)
    assert bands * rows <= permutations
    assert chance >= recall - 1e-12 or (bands, rows) == (permutations, 1)


@given(st.floats(0.01, 1000), st.floats(0.001, 1), st.floats(0.1, 1))
def test_the_grid_keeps_the_recall_of_what_it_stands_for(ratio, threshold, smaller):
    ratio = max(ratio, threshold)
    [bands], [rows], [recall] = Tuner().choose_all(np.array([ratio]), threshold)
    x = max(ratio * smaller, threshold)  # a set of the partition, smaller than its largest
    chance = float(candidate_probability(jaccard_of(threshold, x), bands, rows))
    assert chance >= min(Tuner().recall, recall) - 1e-9


def test_more_contained_is_found_more_often():
    bands, rows, _ = best_setting(AT_95, 5.0, 0.6)
    chances = candidate_probability(jaccard_of(np.linspace(0.6, 1, 30), 5.0), bands, rows)
    assert (np.diff(chances) >= 0).all()


def by_definition(signatures, query, ranges, settings):
    hits = []
    for (_, end, first), (bands, rows) in zip(ranges.tolist(), settings.tolist(), strict=True):
        for row in range(first, end):
            agree = [
                all(signatures[row][j * rows + i] == query[j * rows + i] for i in range(rows))
                for j in range(bands)
            ]
            if any(agree):
                hits.append(row)
    return hits


@st.composite
def band_queries(draw):
    n, m, max_rows = draw(st.integers(1, 40)), draw(st.integers(1, 24)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    signatures = rng.choice(
        np.array([0, 1, 2**31, 2**32 - 1], np.uint32)[: draw(st.integers(2, 4))], (n, m)
    )
    cut = draw(st.integers(0, n))
    ranges = np.array([[0, cut, draw(st.integers(0, cut))], [cut, n, draw(st.integers(cut, n))]])
    settings = []
    for _ in range(2):
        rows = draw(st.integers(1, min(max_rows, m)))
        settings.append((draw(st.integers(1, m // rows)), rows))
    return signatures, ranges, np.array(settings), signatures[draw(st.integers(0, n - 1))]


@given(band_queries())
def test_acceptance_7_tables_and_definition_give_the_same_candidates(case):
    signatures, ranges, settings, query = case
    tables = build_tables(signatures)
    rows = band_hits(tables, signatures, query, ranges, settings)
    assert rows.tolist() == by_definition(signatures, query, ranges, settings)


@given(band_queries())
def test_tables_are_in_the_order_of_values_then_rows(case):
    signatures = case[0]
    tables = build_tables(signatures)
    for place, (values, sets) in enumerate(zip(tables.values, tables.sets, strict=True)):
        assert sets.tolist() == sorted(
            range(len(signatures)), key=lambda row, k=place: (signatures[row, k], row)
        )
        assert (values == signatures[sets, place]).all()


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("by", [4, -4])
def test_a_table_that_leads_out_of_the_index_is_refused(rows, by):
    signatures = np.ones((4, 2), np.uint32)
    tables = build_tables(signatures)
    damaged = BandTables(tables.values, tables.sets + np.int32(by))
    with pytest.raises(IndexCorruptError, match="names a set that there is not"):
        band_hits(damaged, signatures, signatures[0], np.array([[2, 4, 2]]), np.array([[1, rows]]))


# By the reference implementation of XXH64, with seed 42.
REFERENCE = {
    "": 0x98B1582B0977E704,
    "a": 0x88E4FE59ADF7B0CC,
    "abc": 0x13C1D910702770E6,
    "Zürich": 0xE1784902DE661C96,
    "12345678": 0x5F3E6A93C99D6E02,
    "Nova Scotia": 0x8B4B29509ADD5E7B,
    "Kruger Inc., Québec": 0xEEECED2C3153E3AA,
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": 0xE82DE6C821DF41DE,
    "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy": 0x483153DE51881DA4,
    "Newfoundland and Labrador, Canada: Newfoundland and Labrador, Canada: Newfoundland and "
    "Labrador, Canada: ": 0x5FD0C6CBE0D81089,
}


def test_hashes_are_those_of_the_reference_implementation():
    hashes = hash_tokens(pa.array(list(REFERENCE)))
    assert hashes.tolist() == list(REFERENCE.values())


@given(st.lists(st.text(max_size=80), max_size=20), st.integers(0, 5))
def test_hashes_do_not_depend_on_slices_or_the_width_of_offsets(texts, skip):
    whole = hash_tokens(pa.array(texts, pa.large_string())).tolist()
    assert hash_tokens(pa.array(texts, pa.string())[skip:]).tolist() == whole[skip:]


@given(st.lists(st.lists(st.integers(0, 6) | st.just(2**64 - 1), max_size=8), max_size=8))
def test_sets_are_sorted_and_made_distinct(sets):
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    hashes = np.array([token for one in sets for token in one], np.uint64)
    kept, ends = distinct_sorted(hashes, offsets)
    sorted_sets = [kept[a:b].tolist() for a, b in pairwise(ends)]
    assert sorted_sets == [sorted(set(one)) for one in sets]
    assert hashes.tolist() == [
        token for one in sets for token in one
    ]  # what was given is as it was


def test_hashes_are_those_of_spark(spark):
    from pyspark.sql import functions

    texts = [letter * length for letter in ("a", "é", "語", "🙂") for length in range(65)]
    texts += [f"Nova Scotia {n} \t\n\0 {n * 'x'}" for n in range(40)]
    frame = spark.createDataFrame(
        [(number, text) for number, text in enumerate(texts)], "number int, text string"
    )
    rows = frame.select("number", functions.xxhash64("text").alias("hash")).collect()
    there = np.array([row.hash for row in sorted(rows, key=lambda row: row.number)], np.int64)
    assert hash_tokens(pa.array(texts)).tolist() == there.view(np.uint64).tolist()


SEEDS = seeds_of(16, seed=1)
HASHED = st.lists(st.integers(0, 2**64 - 1), max_size=12)


def mixed(number: int) -> int:
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) % 2**64
    return number ^ (number >> 31)


def signed(*sets: list[int]) -> np.ndarray:
    return signatures(*ragged([np.array(one, np.uint64) for one in sets]), SEEDS)


@given(st.lists(HASHED, max_size=6))
def test_a_signature_is_the_minimum_of_each_function(sets):
    made = signed(*sets)
    for row, tokens in zip(made, sets, strict=True):
        expected = [
            min((mixed(token ^ int(seed)) >> 32 for token in tokens), default=int(EMPTY))
            for seed in SEEDS
        ]
        assert row.tolist() == expected


def test_fewer_functions_are_a_beginning_of_more():
    assert (seeds_of(64, 3)[:16] == seeds_of(16, 3)).all()
    assert not (seeds_of(16, 4) == seeds_of(16, 3)).any()


def test_acceptance_1_the_mean_error_of_200_pairs_is_that_of_the_binomial_distribution():
    rng = np.random.default_rng(8)
    m, sets, exact = 256, [], []
    for _ in range(200):
        pool = rng.integers(0, 2**63, 300, dtype=np.uint64)
        begin, length = rng.integers(0, 150), rng.integers(50, 150)
        sets += [pool[:150], pool[begin : begin + length]]
        shared = max(0, 150 - begin) if begin + length > 150 else length
        exact.append(shared / (150 + length - shared))
    made = signatures(*ragged(sets), seeds_of(m, 1))
    estimates = np.array(
        [similarities(made, made[2 * i + 1], np.array([2 * i]))[0] for i in range(200)]
    )
    exact = np.array(exact)
    assert np.abs(estimates - exact).mean() <= 1.2 * np.sqrt(exact * (1 - exact) / m).mean()
    assert abs((estimates - exact).mean()) < 0.005


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
