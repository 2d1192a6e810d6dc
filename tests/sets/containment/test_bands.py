"""Bands: worked examples of conversion and settings, division by size, tables by definition."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from pexeso.errors import IndexCorruptError
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
