"""Mapped coordinates stay within their tolerance, and pivots are distinct outliers."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from engine_lakes import METRICS, sphere, unit
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples, long_but

from pexeso.engine import metrics
from pexeso.engine.maps import (
    _CHUNK_SIZES,
    PivotMap,
    ProjectionMap,
    choose_axes,
    choose_pivots,
    slack,
)


def true_distance(metric: str, left: np.ndarray, right: np.ndarray) -> float:
    """Return the distance of two float32 vectors, computed in rational arithmetic.

    It is rounded once, or twice with a square root.
    """
    terms = [abs(Fraction(float(a)) - Fraction(float(b))) for a, b in zip(left, right, strict=True)]
    return math.sqrt(sum(term * term for term in terms))


def near_duplicates(rng: np.random.Generator, row: np.ndarray) -> np.ndarray:
    """Return vectors that differ from a row by less and less, and the opposite of the row.

    The smallest difference is one float32 step in one entry.
    """
    steps = 10.0 ** -np.arange(1, 9)
    near = unit(row[None] + steps[:, None] * rng.normal(size=(len(steps), len(row))))
    one_step = row.copy()
    one_step[0] = np.nextafter(one_step[0], np.float32(2))
    return np.concatenate([near, one_step[None], row[None], -row[None]])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dims", long_but([1, 3, 40, 400], [1, 3, 40, 400, 1024]))
def test_coordinates_are_within_half_the_slack_where_products_cancel(metric, dims):
    rng = np.random.default_rng(dims)
    pivots = np.concatenate([sphere(rng, 2, dims), unit(np.ones((1, dims)))])
    rows = np.concatenate([near_duplicates(rng, pivot) for pivot in pivots])
    mapped = PivotMap(torch.from_numpy(pivots)).map(torch.from_numpy(rows))
    assert mapped.dtype == torch.float32
    tolerance = slack(mapped) / 2
    worst = max(
        abs(float(mapped[i, j]) - true_distance(metric, row, pivot))
        for i, row in enumerate(rows)
        for j, pivot in enumerate(pivots)
    )
    assert worst <= tolerance
    assert slack(mapped) < 1e-4 * max(1.0, float(mapped.max()))


@settings(max_examples=examples(40))
@given(
    st.sampled_from(METRICS),
    st.integers(1, 60),
    st.integers(0, 10**6),
    st.sampled_from(("clustered", "coarse")),
)
def test_coordinates_are_within_half_the_slack(metric, dims, seed, shape):
    rows = sphere(np.random.default_rng(seed), 12, dims, shape)
    mapped = PivotMap(torch.from_numpy(rows[:3])).map(torch.from_numpy(rows))
    for i, row in enumerate(rows):
        for j, pivot in enumerate(rows[:3]):
            assert abs(float(mapped[i, j]) - true_distance(metric, row, pivot)) <= slack(mapped) / 2


@pytest.mark.parametrize("metric", METRICS)
def test_no_coordinate_of_two_vectors_differs_by_more_than_their_distance_and_the_slack(metric):
    rng = np.random.default_rng(2)
    rows = np.concatenate([sphere(rng, 40, 6, "clustered"), sphere(rng, 40, 6, "coarse")])
    vectors = torch.from_numpy(rows)
    mapped = PivotMap(vectors[::10]).map(vectors)
    difference = (mapped[:, None] - mapped[None]).abs().amax(-1).double()
    distance = metrics.distances(vectors[:, None], vectors[None])
    assert bool((difference <= distance + slack(mapped)).all())
    # The map keeps something, too: on its own pivots it is the distance.
    torch.testing.assert_close(mapped.double(), distance[:, ::10], rtol=0, atol=slack(mapped))


def test_mapping_in_pieces_gives_the_same_coordinates(monkeypatch):
    vectors = torch.from_numpy(sphere(np.random.default_rng(4), 500, 9))
    whole = PivotMap(vectors[:3]).map(vectors)
    monkeypatch.setitem(_CHUNK_SIZES, "cpu", 1)
    torch.testing.assert_close(
        PivotMap(vectors[:3]).map(vectors), whole, rtol=0, atol=slack(whole) / 4
    )


def test_slack_grows_with_the_largest_coordinate_of_any_of_its_arguments():
    small, large, empty = torch.tensor([[0.5]]), torch.tensor([[3.0, 8.0]]), torch.zeros(0, 2)
    assert slack(small) == slack() == slack(empty) == 2.0**-15
    assert slack(small, large) == slack(large, small) == slack(large, empty) == 2.0**-12


@settings(max_examples=examples(60))
@given(
    st.integers(0, 10**6),
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(1, 12),
    st.sampled_from(("pca", "random")),
)
def test_pivots_are_distinct_vectors_of_the_data_and_as_many_as_there_are(
    seed, n, dims, wanted, choice
):
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
    first, again, other = (
        choose_pivots(vectors, 4, choice="random", seed=seed) for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_pivots_of_a_sample(monkeypatch):
    monkeypatch.setattr("pexeso.engine.maps.SAMPLE_ROWS", 10)
    vectors = torch.from_numpy(sphere(np.random.default_rng(7), 100, 5))
    pivots = choose_pivots(vectors, 30)
    assert len(pivots) == 10
    assert all(bool((vectors == pivot).all(1).any()) for pivot in pivots)


def project(
    rng: np.random.Generator, n: int, dims: int, n_axes: int
) -> tuple[torch.Tensor, ProjectionMap]:
    """Rows, some nearly equal, some in the span of the axes, and a projection fitted on them."""
    rows = np.concatenate([sphere(rng, n, dims), near_duplicates(rng, sphere(rng, 1, dims)[0])])
    vectors = torch.from_numpy(rows)
    axes = choose_axes(vectors, n_axes)
    inside = torch.nn.functional.normalize(axes[:3]).float()
    return torch.cat([vectors, inside]), ProjectionMap(axes)


@pytest.mark.parametrize(
    ("dims", "n_axes"), [(1, 1), (2, 5), (17, 16), (100, 16), (300, 127), (1024, 32)]
)
def test_projected_vectors_are_never_farther_apart_than_the_vectors(dims, n_axes):
    vectors, projection = project(np.random.default_rng(dims), 60, dims, n_axes)
    mapped = projection.map(vectors)
    assert mapped.shape[1] == min(n_axes, dims) + 1
    distance = metrics.distances(vectors[:, None], vectors[None])
    projected = torch.cdist(
        mapped.double(), mapped.double(), compute_mode="donot_use_mm_for_euclid_dist"
    )
    assert bool((projected <= distance + slack(mapped)).all())
    # What is near by the filter is at least what is near in truth, at the distance itself and
    # everywhere else.
    for row, reach in ((0, float(distance[0, 1])), (3, 0.0), (len(vectors) - 1, 0.5)):
        near = projection.near_box(mapped[row], mapped, mapped, reach + slack(mapped))
        assert bool(near[distance[row] <= reach].all())


@pytest.mark.parametrize("dims", [2, 17, 300])
def test_axes_are_orthonormal_and_the_same_again(dims):
    vectors = torch.from_numpy(sphere(np.random.default_rng(dims), 50, dims))
    axes = choose_axes(vectors, 16)
    torch.testing.assert_close(
        axes @ axes.T, torch.eye(len(axes), dtype=torch.float64), rtol=0, atol=1e-13
    )
    assert torch.equal(axes, choose_axes(vectors, 16))


def test_all_axes_leave_no_rest_and_keep_every_distance():
    vectors, projection = project(np.random.default_rng(3), 40, 8, 8)
    mapped = projection.map(vectors)
    assert float(mapped[:, -1].max()) < 1e-6
    torch.testing.assert_close(
        torch.cdist(mapped.double(), mapped.double()),
        metrics.distances(vectors[:, None], vectors[None]),
        rtol=0,
        atol=1e-5,
    )


def test_a_box_is_as_near_as_the_nearest_point_it_could_hold():
    projection = ProjectionMap(torch.eye(2, dtype=torch.float64))
    lower, upper = torch.tensor([1.0, 1.0, 0.0]), torch.tensor([2.0, 3.0, 0.0])
    corner = torch.tensor([0.4, 0.2, 0.0])  # 0.6 and 0.8 away on two axes: 1 from the corner
    assert bool(projection.near_box(corner, lower, upper, 1.001))
    assert not bool(projection.near_box(corner, lower, upper, 0.999))
    assert bool(projection.near_box(torch.tensor([1.5, 2.0, 0.0]), lower, upper, 0.0))
