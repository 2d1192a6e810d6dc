import itertools

import numpy as np
import pytest

from partition.clustering import (
    METHODS,
    Partials,
    cluster_columns,
    hash64,
    iterate,
    method_named,
    nearest,
    partial_sums,
    seed_centres,
)
from partition.divergence import normalise
from pexeso.errors import InputError

COMPARING = [name for name, method in METHODS.items() if method.between is not None]


def _planted(n_groups=4, per_group=30, n_regions=24, seed=0):
    """Columns of 40 values each, drawn from one of a few distributions that hardly overlap."""
    generator = np.random.default_rng(seed)
    truth = np.repeat(np.arange(n_groups), per_group)
    width = n_regions // n_groups
    weights = np.full((n_groups, n_regions), 0.1 / n_regions)
    for group in range(n_groups):
        weights[group, group * width : (group + 1) * width] += 0.9 / width
    counts = np.array([generator.multinomial(40, weights[group] / weights[group].sum()) for group in truth])
    order = generator.permutation(len(truth))
    return truth[order], normalise(counts[order])


def _same_grouping(first, second):
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    return len(pairs) == len(set(first.tolist())) == len(set(second.tolist()))


@pytest.mark.parametrize("method", COMPARING)
def test_planted_groups_are_recovered(method):
    truth, features = _planted()
    found = cluster_columns(np.arange(len(truth)), features, 4, method=method, seed=1)
    assert found.converged
    assert _same_grouping(truth, found.clusters)


@pytest.mark.parametrize("method", COMPARING)
def test_every_pass_lowers_the_cost(method):
    features = normalise(np.random.default_rng(8).poisson(0.8, (300, 20)) + np.eye(300, 20))
    chosen, ids = METHODS[method], np.arange(300)
    costs = []
    for iterations in (1, 2, 4, 30):
        found = cluster_columns(ids, features, 6, method=method, max_iterations=iterations)
        costs.append(nearest(features, found.centres, chosen)[1].sum())
    # The mean is the best centre for squared distances and, up to little, for the two divergences.
    assert all(later <= earlier * 1.01 for earlier, later in itertools.pairwise(costs)), costs
    assert costs[-1] < costs[0]


def test_random_looks_at_no_data_and_is_even():
    ids = np.arange(10_000)
    first = cluster_columns(ids, None, 8, method="random", seed=5)
    with_data = cluster_columns(ids, _planted(per_group=2500)[1], 8, method="random", seed=5)
    np.testing.assert_array_equal(first.clusters, with_data.clusters)
    assert not np.array_equal(first.clusters, cluster_columns(ids, None, 8, method="random", seed=6).clusters)
    counts = np.bincount(first.clusters, minlength=8)
    assert counts.min() > 1100
    assert counts.max() < 1400


@pytest.mark.parametrize("method", COMPARING)
@pytest.mark.parametrize("seed", range(6))
def test_no_cluster_stays_empty_where_columns_differ(method, seed):
    features = normalise(np.random.default_rng(seed).poisson(0.3, (40, 12)) * 5 + np.eye(40, 12) + 0.001)
    distinct = len(np.unique(features.round(9), axis=0))
    found = cluster_columns(np.arange(40), features, 15, method=method, seed=seed, max_iterations=50)
    assert distinct >= 15
    assert len(np.unique(found.clusters)) == 15


def test_an_empty_cluster_moves_to_the_farthest_column():
    features = np.array([[0.0], [0.1], [5.0], [5.1], [20.0]])
    method = METHODS["mean-vector"]

    def farthest(centres, n):
        return features[np.argsort(-nearest(features, centres, method)[1])[:n]]

    # The third centre attracts nothing; the column at 20 is farthest from the other two.
    start = np.array([[0.0], [5.0], [-90.0]])
    found = iterate(lambda c: partial_sums(features, c, method), farthest, start, method, max_iterations=20)
    assert found.converged
    np.testing.assert_allclose(np.sort(found.centres[:, 0]), [0.05, 5.05, 20.0], atol=1e-8)


def test_copies_of_one_column_give_one_centre():
    features = normalise(np.ones((9, 3)))
    found = cluster_columns(np.arange(9), features, 4)
    assert found.centres.shape == (1, 3)
    assert found.clusters.tolist() == [0] * 9
    assert len(seed_centres(features, 4, METHODS["jensen-shannon"], seed=0)) == 1


@pytest.mark.parametrize("method", list(METHODS))
def test_the_same_seed_gives_the_same_clusters(method):
    features = normalise(np.random.default_rng(2).poisson(0.5, (200, 16)) + np.eye(200, 16))
    ids = np.arange(200) * 7
    one, two, other = (
        cluster_columns(ids, features, 9, method=method, seed=seed, seeding_columns=50) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one.clusters, two.clusters)
    np.testing.assert_array_equal(one.centres, two.centres)
    assert not np.array_equal(one.clusters, other.clusters)


@pytest.mark.parametrize("method", COMPARING)
def test_sums_do_not_depend_on_how_the_columns_are_divided(method):
    features = normalise(np.random.default_rng(4).random((97, 11)))
    centres, chosen = features[[3, 50, 80]], METHODS[method]
    whole, parts = partial_sums(features, centres, chosen), Partials.zeros(3, 11)
    for piece in np.array_split(np.random.default_rng(0).permutation(97), 13):
        parts.add(partial_sums(features[piece], centres, chosen))
    for name in ("sums", "counts", "costs"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name), err_msg=name)
    clusters = nearest(features, centres, chosen)[0]
    expected = np.array([features[clusters == cluster].sum(axis=0) for cluster in range(3)])
    np.testing.assert_allclose(whole.sums / 2**30, expected, atol=1e-7)


def test_hashes_are_spread_and_depend_on_the_seed():
    values = hash64(np.arange(1000), 0)
    assert len(np.unique(values)) == 1000
    assert values.min() >= 0
    assert not (values == hash64(np.arange(1000), 1)).any()
    assert hash64(np.array([-5, 2**62]), 2**63 - 1).dtype == np.int64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: method_named("jsd"), "jensen-shannon, symmetric-kl, mean-vector, random. Got 'jsd'"),
        (lambda: cluster_columns(np.arange(0), np.empty((0, 2)), 2), "at least one column"),
        (lambda: cluster_columns(np.arange(2), None, 2), "one row of features a column"),
        (lambda: cluster_columns(np.arange(2), np.ones((2, 1)), 0), "Got 2, 0 and 20"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
