"""The defining distance: right, and the same bits however it is asked for."""

import math

import numpy as np
import pytest
import torch
from engine_lakes import METRICS, sphere
from hypothesis import given
from hypothesis import strategies as st

from pexeso.engine import metrics
from pexeso.engine.metrics import tree_sum
from pexeso.engine.options import Metric
from pexeso.errors import InputError


def plain(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.linalg.norm(left.astype(np.float64) - right.astype(np.float64), axis=-1)


@given(
    st.integers(0, 10**6), st.integers(1, 130), st.sampled_from(("uniform", "clustered", "coarse"))
)
def test_distances_are_those_of_numpy(seed, dims, shape):
    rows = sphere(np.random.default_rng(seed), 12, dims, shape)
    left, right = rows[:6], rows[6:]
    distances = metrics.distances(torch.from_numpy(left), torch.from_numpy(right))
    assert distances.dtype == torch.float64
    np.testing.assert_allclose(distances.numpy(), plain(left, right), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dims", [1, 2, 7, 64, 100, 301])
def test_distances_are_the_same_bits_in_any_shape_order_and_number_of_threads(dims):
    rng = np.random.default_rng(dims)
    # Entries of very different size: sums of like ones are exact in float64, and then in any order.
    scale = 10.0 ** rng.uniform(-15, 0, size=(2, 150, dims))
    left, right = torch.from_numpy((rng.normal(size=scale.shape) * scale).astype(np.float32))
    measure = metrics.distances
    paired = measure(left, right)
    single = torch.stack([measure(a, b) for a, b in zip(left, right, strict=True)])
    table = measure(left[:, None], right[None])
    shuffled = torch.from_numpy(rng.permutation(150))
    assert torch.equal(single, paired)
    assert torch.equal(table.diagonal(), paired)
    assert torch.equal(measure(left[shuffled], right[shuffled]), paired[shuffled])
    assert torch.equal(measure(left[3:64], right[3:64]), paired[3:64])
    assert torch.equal(measure(right, left), paired)
    assert torch.equal(measure(left.T.contiguous().T, right.T.contiguous().T), paired)
    assert torch.equal(measure(left, right[:, None].expand(-1, 2, -1)[:, 1]), paired)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        big_left, big_right = left.repeat(40, 1), right.repeat(40, 1)
        assert torch.equal(measure(big_left, big_right), paired.repeat(40))
    finally:
        torch.set_num_threads(before)


def test_the_square_root_of_a_distance_is_rounded_once():
    """Check that the square root of a distance is rounded once.

    Libraries of fast functions are one step off for some numbers, but the distance must be the same
    bits everywhere.
    """
    rng = np.random.default_rng(9)
    left, right = torch.from_numpy(rng.normal(size=(2, 20_000, 2)).astype(np.float32))
    squares = tree_sum((left.double() - right.double()) ** 2).tolist()
    assert metrics.distances(left, right).tolist() == [math.sqrt(square) for square in squares]
    single = metrics.distances(left[0], right[0])
    assert (single.shape, single.item()) == ((), math.sqrt(squares[0]))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=70))
def test_tree_sum_is_the_sum_and_leaves_its_input_alone(terms):
    row = torch.tensor([terms, terms], dtype=torch.float64)
    before = row.clone()
    expected = math.fsum(terms)
    for total in tree_sum(row).tolist():
        assert total == pytest.approx(expected, rel=1e-12, abs=1e-12 * sum(map(abs, terms)))
    assert torch.equal(row, before)


def test_quick_distances_are_close():
    rng = np.random.default_rng(1)
    left, right = sphere(rng, 30, 40), sphere(rng, 20, 40)
    distances = metrics.quick_distances(
        torch.from_numpy(left).double(), torch.from_numpy(right).double()
    )
    np.testing.assert_allclose(distances.numpy(), plain(left[:, None], right[None]), atol=1e-7)


def test_thresholds_and_fractions_are_each_other_s_inverse():
    assert Metric("euclidean").threshold(0.06) == 0.12
    assert Metric("euclidean").threshold(1.0) == Metric("angular").threshold(1.0) == 2.0
    assert Metric("angular").threshold(0.5) == pytest.approx(math.sqrt(2), abs=1e-15)
    fractions = torch.linspace(0, 1, 21, dtype=torch.float64)
    for name in METRICS:
        metric = Metric(name)
        tau = torch.tensor(
            [metric.threshold(float(fraction)) for fraction in fractions], dtype=torch.float64
        )
        assert bool((tau.diff() > 0).all())
        assert float(tau[0]) == 0.0
        torch.testing.assert_close(metric.fraction(tau), fractions, rtol=0, atol=1e-7)


@pytest.mark.parametrize("metric", METRICS)
def test_a_distance_beyond_the_largest_by_rounding_is_no_fraction_beyond_one_for_the_angle(metric):
    fraction = float(Metric(metric).fraction(torch.tensor([2.0000001], dtype=torch.float64)))
    assert fraction == pytest.approx(1.0, abs=1e-6)


def test_an_unknown_metric_is_refused():
    with pytest.raises(InputError) as raised:
        Metric("cosine")
    assert str(raised.value) == (
        "The metric must be one of euclidean, angular. Got 'cosine' "
        "instead. For a cosine similarity use "
        "the angular or Euclidean metric: on unit vectors d = sqrt(2 - 2 cos)."
    )
