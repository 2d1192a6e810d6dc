"""Tests of the rounding band: no rounding leaves it, and it is narrow enough to be useful."""

import itertools
import math

import numpy as np
import pytest
import torch
from engine_lakes import sphere, unit
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.engine import metrics
from pexeso.engine.kernels.compiled import loops
from pexeso.engine.metrics import (
    FLOAT16_ROUNDOFF,
    FLOAT32_ROUNDOFF,
    LARGEST_NORM,
    Band,
    difference_band,
    product_band,
)

DIMENSIONS = (16, 50, 64, 100, 256, 300, 1024)
FORMATS = {
    "float32": (torch.float32, FLOAT32_ROUNDOFF),
    "float16": (torch.float16, FLOAT16_ROUNDOFF),
}


def defining(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The defining distances of row pairs."""
    return metrics.distances(torch.from_numpy(left), torch.from_numpy(right)).numpy()


def quick_sums(left: np.ndarray, right: np.ndarray) -> dict[str, np.ndarray]:
    """Squared float32 distances of row pairs in several orders, as the band allows any."""
    terms = (left - right) * (left - right)
    limit = np.float32(1e30)
    compiled = [loops.quick_distance(a, b, limit) for a, b in zip(left, right, strict=True)]
    return {
        # cumsum adds one term after the other.
        "forward": terms.cumsum(1, dtype=np.float32)[:, -1],
        "backward": terms[:, ::-1].cumsum(1, dtype=np.float32)[:, -1],
        "numpy": terms.sum(1, dtype=np.float32),
        "torch": (torch.from_numpy(left) - torch.from_numpy(right)).square_().sum(1).numpy(),
        "compiled": np.array(compiled, np.float32),
    }


def around(distance: float) -> tuple[float, ...]:
    """Thresholds at a distance, and one and two steps off it."""
    up, down = math.nextafter(distance, math.inf), math.nextafter(distance, -math.inf)
    taus = (distance, up, down, math.nextafter(up, math.inf), math.nextafter(down, -math.inf))
    return tuple(tau for tau in taus if tau >= 0)


def check_band(band: Band, tau: float, quick: np.ndarray, distance: np.ndarray) -> None:
    assert band.surely < band.possibly
    quick = quick.astype(np.float64)
    assert bool((distance[quick <= band.surely] <= tau).all())
    assert bool((distance[quick > band.possibly] > tau).all())


def pairs_near(rng: np.random.Generator, n: int, dims: int, low: float = 1e-6, high: float = 1.0):
    """Draw pairs of unit vectors at distances of all sizes."""
    left = sphere(rng, n, dims)
    steps = np.exp(rng.uniform(np.log(low), np.log(high), size=(n, 1)))
    direction = unit(rng.normal(size=(n, dims)))
    return left, unit(left + steps * direction)


@pytest.mark.parametrize("dims", DIMENSIONS)
def test_pairs_at_the_threshold_and_one_step_off_it(dims):
    """Check that quick distances of pairs planted at tau never contradict the defining one."""
    left, right = pairs_near(np.random.default_rng(dims), 60, dims)
    distance = defining(left, right)
    quick = quick_sums(left, right)
    for pair in range(len(left)):
        for tau in around(float(distance[pair])):
            band = difference_band(tau, dims)
            for sums in quick.values():
                check_band(band, tau, sums[pair : pair + 1], distance[pair : pair + 1])


@settings(max_examples=examples(40))
@given(
    st.integers(1, 1024), st.integers(0, 2**32), st.sampled_from(("uniform", "clustered", "coarse"))
)
def test_the_band_of_differences_holds_for_all_pairs_of_a_lake(dims, seed, shape):
    rng = np.random.default_rng(seed)
    rows = sphere(rng, 20, dims, shape)
    left, right = (
        rows[list(side)] for side in zip(*itertools.combinations(range(20), 2), strict=True)
    )
    distance = defining(left, right)
    quick = quick_sums(left, right)
    for tau in around(float(rng.choice(distance))):
        for sums in quick.values():
            check_band(difference_band(tau, dims), tau, sums, distance)


def one_sided_differences(dims: int, up: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors whose summed squared differences are all rounded the same way.

    The squared differences are added one after the other.

    The first square is just above a power of two, where a step is largest for its number; every
    other one is a little more (or less) than half a step, so that each addition rounds up to a
    whole step (or down to nothing).
    """
    base, half_step = np.float32(2.0**-7 * (1 + 2.0**-12)), 2.0**-31
    wanted = half_step * (1 + 2.0**-6 if up else 1 - 2.0**-6)
    differences = np.full(dims - 1, np.sqrt(wanted), np.float32)
    differences[0] = np.sqrt(base)
    half = (differences / 2).astype(np.float64)
    shared = np.sqrt(1 - (half**2).sum())
    return np.float32([[shared, *half]]), np.float32([[shared, *-half]])


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("dims", [16, 64, 300, 1024])
def test_squares_of_differences_that_are_all_rounded_the_same_way(dims, up):
    left, right = one_sided_differences(dims, up)
    distance = defining(left, right)
    quick = quick_sums(left, right)
    error = float(quick["forward"][0]) / float(distance[0]) ** 2 - 1
    # The pair is as bad as it is meant to be: nearly one unit roundoff for each term.
    assert (error if up else -error) > 0.9 * (dims - 2) * FLOAT32_ROUNDOFF
    for tau in around(float(distance[0])):
        for sums in quick.values():
            check_band(difference_band(tau, dims), tau, sums, distance)


def test_differences_whose_squares_vanish_are_left_to_the_defining_distance():
    left = np.zeros((1, 16), np.float32)
    right = np.full((1, 16), 2.0**-80, np.float32)
    distance = defining(left, right)
    assert distance[0] > 0
    for tau in (0.0, *around(float(distance[0]))):
        for sums in quick_sums(left, right).values():
            check_band(difference_band(tau, 16), tau, sums, distance)
    same = quick_sums(left, left)
    for sums in same.values():
        check_band(difference_band(0.0, 16), 0.0, sums, np.zeros(1))


def quick_products(left: np.ndarray, right: np.ndarray, kind: str) -> dict[str, np.ndarray]:
    """Return squared distances of row pairs from products of vectors rounded to a format.

    The products are summed in float32 in several orders.
    """
    rounded = [torch.from_numpy(rows).to(FORMATS[kind][0]) for rows in (left, right)]
    squares = [rows.double().square().sum(1).float().numpy() for rows in rounded]
    x, y = (rows.float().numpy() for rows in rounded)
    terms = x * y
    products = {
        "forward": terms.cumsum(1, dtype=np.float32)[:, -1],
        "backward": terms[:, ::-1].cumsum(1, dtype=np.float32)[:, -1],
        "matrix": np.array([a @ b for a, b in zip(x, y, strict=True)], np.float32),
    }
    two = np.float32(2)
    squared_distances = {}
    for name, product in products.items():
        squared_distances[name] = (squares[0] + squares[1]) - two * product
        squared_distances[name + ", turned"] = squares[0] - (two * product - squares[1])
    return squared_distances


def check_products(left: np.ndarray, right: np.ndarray, kind: str) -> None:
    distance = defining(left, right)
    quick = quick_products(left, right, kind)
    for pair in range(len(left)):
        for tau in around(float(distance[pair])):
            band = product_band(tau, left.shape[1], FORMATS[kind][1])
            for squares in quick.values():
                check_band(band, tau, squares[pair : pair + 1], distance[pair : pair + 1])


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dims", DIMENSIONS)
def test_products_of_pairs_at_the_threshold_and_one_step_off_it(kind, dims):
    rng = np.random.default_rng(dims)
    left, right = pairs_near(rng, 60, dims, high=2.0)
    check_products(left, right, kind)
    # Lengths at the border of what is taken for a unit vector.
    longest = np.float32(LARGEST_NORM * (1 - 1e-6))
    check_products(left * longest, right * longest, kind)
    check_products(left * longest, right * (2 - longest), kind)
    check_products(left, left, kind)


@settings(max_examples=examples(40))
@given(
    st.sampled_from(sorted(FORMATS)),
    st.integers(16, 1024),
    st.integers(0, 2**32),
    st.sampled_from(("uniform", "clustered", "coarse")),
)
def test_the_band_of_products_holds_for_all_pairs_of_a_lake(kind, dims, seed, shape):
    rng = np.random.default_rng(seed)
    rows = sphere(rng, 16, dims, shape)
    left, right = (
        rows[list(side)] for side in zip(*itertools.combinations(range(16), 2), strict=True)
    )
    distance = defining(left, right)
    quick = quick_products(left, right, kind)
    for tau in (0.0, *around(float(rng.choice(distance)))):
        for squares in quick.values():
            check_band(product_band(tau, dims, FORMATS[kind][1]), tau, squares, distance)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("dims", [16, 64, 300, 1024])
def test_products_that_are_all_rounded_the_same_way(kind, up, dims):
    """Check products that are all rounded the same way.

    The sum is just above 1, where a step is 2**-23, and each term is a little more or less than
    half a step.
    """
    step = 2.0**-12
    left, right = np.full((2, 1, dims), step, np.float32)
    # Entries that all three formats hold, and one product that is a little off half a step.
    right *= np.float32(1 + 2.0**-6 if up else 1 - 2.0**-6)
    left[0, 0] = right[0, 0] = 1.0
    left[0, 1], right[0, 1] = 2.0**-6, -(2.0**-6)
    # Two entries bring the sum above 1 again, within the length allowed.
    left[0, 2] = right[0, 2] = 2.0**-6 * 1.125
    assert np.linalg.norm(left[0].astype(float)) <= LARGEST_NORM
    assert np.linalg.norm(right[0].astype(float)) <= LARGEST_NORM
    exact = float(left[0].astype(float) @ right[0].astype(float))
    terms = (left * right)[0].cumsum(dtype=np.float32)
    error = float(terms[-1]) - exact
    assert (error if up else -error) > 0.9 * (dims - 4) * FLOAT32_ROUNDOFF
    check_products(left, right, kind)


@pytest.mark.parametrize(("kind", "steps"), [("float16", 0), ("float16", 50)])
@pytest.mark.parametrize("dims", [16, 64, 256, 1024])
@pytest.mark.parametrize("apart", [True, False])
def test_vectors_whose_entries_are_all_rounded_apart_or_together(kind, steps, dims, apart):
    """Check vectors with entries just above a power of two, next to a border between two steps.

    Just above a power of two a step is largest for its number.

    They are some steps apart, and rounding adds or takes away nearly a whole step in each of them.
    """
    entry, n_used = 1 / math.sqrt(dims), dims - dims // 8
    assert math.log2(entry).is_integer()
    step = 2 * FORMATS[kind][1] * entry
    nudge, border = step * 2.0**-6, entry + step / 2
    low, high = (-nudge, steps * step + nudge) if apart else (nudge, (steps + 1) * step - nudge)
    signs = np.where(np.arange(n_used) % 3, 1.0, -1.0)
    # One vector has the larger entry here, the other one there, so that both are about as long.
    larger = np.arange(n_used) % 2 == 0
    left, right = np.zeros((2, 1, dims), np.float32)
    left[0, :n_used] = signs * (border + np.where(larger, high, low))
    right[0, :n_used] = signs * (border + np.where(larger, low, high))
    assert max(np.linalg.norm(left), np.linalg.norm(right)) <= LARGEST_NORM
    moved = [torch.from_numpy(rows).to(FORMATS[kind][0]).double() for rows in (left, right)]
    change = float((moved[0] - moved[1]).norm()) - float(defining(left, right)[0])
    assert (change if apart else -change) > 0.95 * step * math.sqrt(n_used)
    check_products(left, right, kind)


def spread_pairs(
    rng: np.random.Generator, n: int, dims: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw pairs at distances spread evenly from half to twice a threshold of 0.12."""
    left = sphere(rng, n, dims)
    direction = rng.normal(size=(n, dims))
    direction -= (direction * left).sum(1, keepdims=True) * left
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    angle = 2 * np.arcsin(rng.uniform(0.06, 0.24, size=(n, 1)) / 2)
    right = (np.cos(angle) * left + np.sin(angle) * direction).astype(np.float32)
    return left, right, defining(left, right)


# The widths at 300 dimensions, as shares of the pairs that lie within half and twice the threshold.
SHARES = {"difference": 0.001, "float32": 0.01, "float16": 0.03}


@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize("dims", [50, 300])
def test_a_band_decides_nearly_all_pairs(kind, dims):
    """A band that holds everything would pass every test above."""
    left, right, distance = spread_pairs(np.random.default_rng(1), 4000, dims)
    if kind == "difference":
        band, quick = (difference_band(0.12, dims), quick_sums(left, right)["torch"])
    else:
        band = product_band(0.12, dims, FORMATS[kind][1])
        quick = quick_products(left, right, kind)["matrix"]
    check_band(band, 0.12, quick, distance)
    open_pairs = (quick > band.surely) & (quick <= band.possibly)
    assert open_pairs.mean() <= SHARES[kind]
    assert (quick <= band.surely).mean() > 0.2
    assert (quick > band.possibly).mean() > 0.5


@pytest.mark.parametrize("dims", DIMENSIONS)
def test_the_band_of_differences_is_a_few_units_of_rounding_wide(dims):
    for tau in (1e-3, 0.12, 1.0):
        band = difference_band(tau, dims)
        limit = tau**2
        assert band.surely < limit < band.possibly
        assert band.possibly - band.surely < 4 * (dims + 4) * FLOAT32_ROUNDOFF * limit


@pytest.mark.parametrize("scaled", [False, True])
def test_the_compiled_defining_distance_is_the_same_to_the_bit(scaled):
    rng = np.random.default_rng(7)
    for dims in range(1, 301):
        left, right = rng.normal(size=(2, 6, dims))
        if scaled:
            # Entries of very different size: sums of like ones are exact in float64, and then in
            # any order.
            left, right = (
                left * 10.0 ** rng.uniform(-15, 0, left.shape),
                right * 10.0 ** rng.uniform(-15, 0, left.shape),
            )
        left, right = left.astype(np.float32), right.astype(np.float32)
        right[0] = left[0]
        distances = [loops.defining_distance(a, b) for a, b in zip(left, right, strict=True)]
        assert distances == defining(left, right).tolist(), dims


@pytest.mark.parametrize("dims", [2, 63, 64, 65, 300])
def test_the_compiled_quick_distance_stops_only_beyond_the_limit(dims):
    left, right = pairs_near(np.random.default_rng(dims), 40, dims, low=1e-3, high=2.0)
    for a, b in zip(left, right, strict=True):
        whole = np.float32(loops.quick_distance(a, b, np.float32(1e30)))
        for limit in (whole, np.nextafter(whole, np.float32(9)), whole * np.float32(1.5)):
            assert loops.quick_distance(a, b, limit) == whole
        for limit in (np.nextafter(whole, np.float32(-1)), whole / np.float32(2)):
            assert loops.quick_distance(a, b, limit) > limit
