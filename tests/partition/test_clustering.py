import itertools
import subprocess
import sys

import numpy as np
import pytest

from partition.clustering import (
    Partials,
    hash64,
    iterate,
    iterate_in_memory,
    nearest,
    normalise,
    partial_sums,
    seed_centres,
)


def _clustered(ids, features, n_clusters, *, seed=0, max_iterations=20, seeding_columns=10_000):
    """Cluster columns that are held in memory: clusters and centres."""
    ties = hash64(ids, seed)
    sample = np.sort(np.argsort(ties, kind="stable")[:seeding_columns])
    first = seed_centres(features[sample], n_clusters, seed=seed)
    centres = iterate_in_memory(features, ties, first, max_iterations=max_iterations)
    return nearest(features, centres)[0], centres


def _planted(n_groups=4, per_group=30, n_regions=24, seed=0):
    """Columns of 40 values each, drawn from one of a few distributions that hardly overlap."""
    generator = np.random.default_rng(seed)
    truth = np.repeat(np.arange(n_groups), per_group)
    width = n_regions // n_groups
    weights = np.full((n_groups, n_regions), 0.1 / n_regions)
    for group in range(n_groups):
        weights[group, group * width : (group + 1) * width] += 0.9 / width
    counts = np.array(
        [generator.multinomial(40, weights[group] / weights[group].sum()) for group in truth]
    )
    order = generator.permutation(len(truth))
    return truth[order], normalise(counts[order])


def _same_grouping(first, second):
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    return len(pairs) == len(set(first.tolist())) == len(set(second.tolist()))


def test_planted_groups_are_recovered():
    truth, features = _planted()
    clusters, centres = _clustered(np.arange(len(truth)), features, 4, seed=1)
    assert _same_grouping(truth, clusters)
    np.testing.assert_array_equal(
        iterate_in_memory(features, np.arange(len(truth)), centres), centres
    )


def test_every_pass_lowers_the_cost():
    features = normalise(np.random.default_rng(8).poisson(0.8, (300, 20)) + np.eye(300, 20))
    costs = []
    for iterations in (1, 2, 4, 30):
        centres = _clustered(np.arange(300), features, 6, max_iterations=iterations)[1]
        costs.append(nearest(features, centres)[1].sum())
    # The mean is, up to little, the best centre.
    assert all(later <= earlier * 1.01 for earlier, later in itertools.pairwise(costs)), costs
    assert costs[-1] < costs[0]


@pytest.mark.parametrize("seed", range(6))
def test_no_cluster_stays_empty_where_columns_differ(seed):
    features = normalise(
        np.random.default_rng(seed).poisson(0.3, (40, 12)) * 5 + np.eye(40, 12) + 0.001
    )
    distinct = len(np.unique(features.round(9), axis=0))
    clusters, _ = _clustered(np.arange(40), features, 15, seed=seed, max_iterations=50)
    assert distinct >= 15
    assert len(np.unique(clusters)) == 15


def test_an_empty_cluster_moves_to_the_farthest_column():
    features = np.array(
        [[1.0, 0, 0, 0], [0.9, 0.1, 0, 0], [0, 1.0, 0, 0], [0.1, 0.9, 0, 0], [0, 0, 1.0, 0]]
    )

    def farthest(centres, n):
        return features[np.argsort(-nearest(features, centres)[1])[:n]]

    # The third centre attracts nothing; the last column is farthest from the other two.
    start = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 0, 1.0]])
    centres = iterate(lambda c: partial_sums(features, c), farthest, start, max_iterations=20)
    np.testing.assert_allclose(
        centres, [[0.95, 0.05, 0, 0], [0.05, 0.95, 0, 0], [0, 0, 1, 0]], atol=1e-8
    )


def test_copies_of_one_column_give_one_centre():
    features = normalise(np.ones((9, 3)))
    clusters, centres = _clustered(np.arange(9), features, 4)
    assert centres.shape == (1, 3)
    assert clusters.tolist() == [0] * 9
    assert len(seed_centres(features, 4, seed=0)) == 1


def test_the_same_seed_gives_the_same_clusters():
    features = normalise(np.random.default_rng(2).poisson(0.5, (200, 16)) + np.eye(200, 16))
    ids = np.arange(200) * 7
    one, two, other = (
        _clustered(ids, features, 9, seed=seed, seeding_columns=50) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    assert not np.array_equal(one[0], other[0])


def test_sums_do_not_depend_on_how_the_columns_are_divided():
    features = normalise(np.random.default_rng(4).random((97, 11)))
    centres = features[[3, 50, 80]]
    whole, parts = partial_sums(features, centres), Partials.zeros(3, 11)
    for piece in np.array_split(np.random.default_rng(0).permutation(97), 13):
        parts.add(partial_sums(features[piece], centres))
    for name in ("sums", "counts", "costs"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name), err_msg=name)
    clusters = nearest(features, centres)[0]
    expected = np.array([features[clusters == cluster].sum(axis=0) for cluster in range(3)])
    np.testing.assert_allclose(whole.sums / 2**30, expected, atol=1e-7)


def test_hashes_are_spread_and_depend_on_the_seed():
    values = hash64(np.arange(1000), 0)
    assert len(np.unique(values)) == 1000
    assert values.min() >= 0
    assert not (values == hash64(np.arange(1000), 1)).any()
    assert hash64(np.array([-5, 2**62]), 2**63 - 1).dtype == np.int64


def test_importing_the_package_imports_nothing_heavy():
    modules = (
        "partition, partition.balance, partition.clustering, partition.codebook, partition.plan"
    )
    heavy = "{'pyspark', 'sklearn', 'torch', 'pandas', 'scipy'}"
    code = f"import sys, {modules}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
