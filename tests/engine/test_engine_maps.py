"""Mapped coordinates stay within their tolerance, and pivots are distinct outliers."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from engine_lakes import METRIC_NAMES, sphere, unit
from hypothesis import given, settings
from hypothesis import strategies as st

from pexeso.engine.maps import PivotMap, choose_pivots, slack
from pexeso.engine.metrics import Metric
from pexeso.errors import InputError


def true_distance(metric: str, left: np.ndarray, right: np.ndarray) -> float:
    """The distance of two float32 vectors in rational arithmetic, rounded once (twice with a square root)."""
    terms = [abs(Fraction(float(a)) - Fraction(float(b))) for a, b in zip(left, right, strict=True)]
    if metric == "chebyshev":
        return float(max(terms))
    if metric == "manhattan":
        return float(sum(terms))
    return math.sqrt(sum(term * term for term in terms))


def near_duplicates(rng: np.random.Generator, row: np.ndarray) -> np.ndarray:
    """Vectors that differ from a row by less and less, down to one float32 step in one entry, and its opposite."""
    steps = 10.0 ** -np.arange(1, 9)
    near = unit(row[None] + steps[:, None] * rng.normal(size=(len(steps), len(row))))
    one_step = row.copy()
    one_step[0] = np.nextafter(one_step[0], np.float32(2))
    return np.concatenate([near, one_step[None], row[None], -row[None]])


@pytest.mark.parametrize("metric", METRIC_NAMES)
@pytest.mark.parametrize("dims", [1, 3, 40, 1024])
def test_coordinates_are_within_half_the_slack_where_products_cancel(metric, dims):
    rng = np.random.default_rng(dims)
    pivots = np.concatenate([sphere(rng, 2, dims), unit(np.ones((1, dims)))])
    rows = np.concatenate([near_duplicates(rng, pivot) for pivot in pivots])
    mapped = PivotMap(torch.from_numpy(pivots), Metric(metric)).map(torch.from_numpy(rows))
    assert mapped.dtype == torch.float32
    tolerance = slack(mapped) / 2
    worst = max(
        abs(float(mapped[i, j]) - true_distance(metric, row, pivot))
        for i, row in enumerate(rows)
        for j, pivot in enumerate(pivots)
    )
    assert worst <= tolerance
    assert slack(mapped) < 1e-4 * max(1.0, float(mapped.max()))


@settings(max_examples=40)
@given(
    st.sampled_from(METRIC_NAMES), st.integers(1, 60), st.integers(0, 10**6), st.sampled_from(("clustered", "coarse"))
)
def test_coordinates_are_within_half_the_slack(metric, dims, seed, shape):
    rows = sphere(np.random.default_rng(seed), 12, dims, shape)
    mapped = PivotMap(torch.from_numpy(rows[:3]), Metric(metric)).map(torch.from_numpy(rows))
    for i, row in enumerate(rows):
        for j, pivot in enumerate(rows[:3]):
            assert abs(float(mapped[i, j]) - true_distance(metric, row, pivot)) <= slack(mapped) / 2


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_no_coordinate_of_two_vectors_differs_by_more_than_their_distance_and_the_slack(metric):
    rng = np.random.default_rng(2)
    rows = np.concatenate([sphere(rng, 40, 6, "clustered"), sphere(rng, 40, 6, "coarse")])
    vectors = torch.from_numpy(rows)
    mapped = PivotMap(vectors[::10], Metric(metric)).map(vectors)
    difference = (mapped[:, None] - mapped[None]).abs().amax(-1).double()
    distance = Metric(metric).distances(vectors[:, None], vectors[None])
    assert bool((difference <= distance + slack(mapped)).all())
    # The map keeps something, too: on its own pivots it is the distance.
    torch.testing.assert_close(mapped.double(), distance[:, ::10], rtol=0, atol=slack(mapped))


def test_mapping_in_pieces_gives_the_same_coordinates(monkeypatch):
    vectors = torch.from_numpy(sphere(np.random.default_rng(4), 50, 9))
    whole = PivotMap(vectors[:3], Metric()).map(vectors)
    monkeypatch.setattr("pexeso.engine.maps._ROWS_AT_ONCE", 7)
    torch.testing.assert_close(PivotMap(vectors[:3], Metric()).map(vectors), whole, rtol=0, atol=slack(whole) / 4)


def test_slack_grows_with_the_largest_coordinate_of_any_of_its_arguments():
    small, large, empty = torch.tensor([[0.5]]), torch.tensor([[3.0, 8.0]]), torch.zeros(0, 2)
    assert slack(small) == slack() == slack(empty) == 2.0**-17
    assert slack(small, large) == slack(large, small) == slack(large, empty) == 2.0**-14


@settings(max_examples=60)
@given(
    st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 6), st.integers(1, 12), st.sampled_from(("pca", "random"))
)
def test_pivots_are_distinct_vectors_of_the_data_and_as_many_as_there_are(seed, n, dims, wanted, choice):
    rng = np.random.default_rng(seed)
    rows = sphere(rng, n, dims, "coarse")[rng.integers(n, size=2 * n)]
    pivots = choose_pivots(torch.from_numpy(rows), wanted, choice=choice)
    distinct = {tuple(row) for row in rows.tolist()}
    chosen = [tuple(row) for row in pivots.tolist()]
    assert set(chosen) <= distinct
    assert len(set(chosen)) == len(chosen) == min(wanted, len(distinct))
    assert torch.equal(pivots, choose_pivots(torch.from_numpy(rows), wanted, choice=choice))


def test_pca_pivots_are_the_far_ends_of_the_leading_axes():
    rng = np.random.default_rng(6)
    rows = 0.05 * rng.normal(size=(300, 5))
    rows[:, 4] += 1.0
    rows[17, 0] = 3.0
    rows[230, 1] = -2.0
    rows[99, 0] = -1.0
    vectors = torch.from_numpy(unit(rows))
    pivots = choose_pivots(vectors, 2)
    assert torch.equal(pivots, vectors[[17, 230]])
    assert bool((choose_pivots(vectors, 8) == vectors[99]).all(1).any())


def test_random_pivots_follow_the_seed():
    vectors = torch.from_numpy(sphere(np.random.default_rng(7), 100, 5))
    first, again, other = (choose_pivots(vectors, 4, choice="random", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_pivots_of_a_sample(monkeypatch):
    monkeypatch.setattr("pexeso.engine.maps._SAMPLE", 10)
    vectors = torch.from_numpy(sphere(np.random.default_rng(7), 100, 5))
    pivots = choose_pivots(vectors, 30)
    assert len(pivots) == 10
    assert all(bool((vectors == pivot).all(1).any()) for pivot in pivots)


def test_an_unknown_choice_is_refused():
    with pytest.raises(InputError, match=r"^The pivot choice must be one of pca, random\. Got 'best' instead\.$"):
        choose_pivots(torch.eye(3), 2, choice="best")
