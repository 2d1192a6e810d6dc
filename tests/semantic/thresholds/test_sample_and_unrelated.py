"""The sample of columns that advice is learnt from, and the distances of strangers within it."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from planted import directions, scan_of_columns

from pexeso.engine import metrics
from pexeso.engine.dense.space import DenseSpace, in_steps
from pexeso.engine.options import METRICS, Metric, PartitionLayoutOptions
from pexeso.semantic.thresholds import sample as sampling
from pexeso.semantic.thresholds.sample import (
    EQUAL,
    distance_reaching,
    nearest_distances,
    sample_columns,
    shares_within,
    tried_distances,
    unrelated_distances,
    unrelated_distances_of,
    value_order,
)

LAKE = [directions(n, seed) for seed, n in enumerate((5, 9, 3, 7, 20, 6))]


def columns_of(sample):
    return {int(number): sample.column(place) for place, number in enumerate(sample.ids)}


def test_the_sample_holds_whole_columns_of_all_partitions_without_short_and_deleted_ones():
    scan = scan_of_columns(LAKE, [0, 1, 0, 1, 0, 1], deleted=(3,))
    columns = columns_of(sample_columns(scan))
    assert sorted(columns) == [0, 1, 4, 5]  # 2 has three values, 3 is deleted
    for number, vectors in columns.items():
        np.testing.assert_array_equal(
            np.unique(vectors.numpy(), axis=0), np.unique(LAKE[number], axis=0)
        )


def test_the_sample_is_bounded_and_says_what_it_is_a_share_of(monkeypatch):
    monkeypatch.setattr(sampling, "MAX_VALUES", 16)
    monkeypatch.setattr(sampling, "MAX_COLUMN_VALUES", 8)
    scan = scan_of_columns([directions(n, n) for n in (6, 7, 20, 30, 5, 9)])
    drawn = sample_columns(scan)
    assert len(drawn.vectors) <= 16
    assert (drawn.sizes <= 8).all()
    assert 0 < drawn.share < 1
    again = sample_columns(scan)
    np.testing.assert_array_equal(drawn.ids, again.ids)
    assert torch.equal(drawn.vectors, again.vectors)
    assert {tuple(sample_columns(scan, seed).ids.tolist()) for seed in range(5)} != {
        tuple(drawn.ids.tolist())
    }
    cut = [sample_columns(scan, seed).n_cut for seed in range(5)]
    assert max(cut) > 0


def test_values_without_a_vector_are_no_part_of_it():
    column = np.concatenate([directions(6, 0), np.zeros((1, 32), np.float32)])
    assert len(sample_columns(scan_of_columns([column, directions(5, 1)])).vectors) == 11


@pytest.mark.parametrize("name", METRICS)
def test_distances_are_those_of_the_metric(name):
    left, right = (torch.from_numpy(directions(n, n)) for n in (4, 6))
    metric = Metric(name)
    exact = metric.fraction(metrics.distances(left[:, None], right[None])).numpy()
    space = DenseSpace(PartitionLayoutOptions(metric=name))
    np.testing.assert_allclose(space.distances(left, right), exact, atol=1e-6)
    np.testing.assert_allclose(nearest_distances(space, left, right), exact.min(1), atol=1e-6)


@pytest.mark.parametrize("name", METRICS)
def test_distances_do_not_depend_on_the_order_of_a_sum(name):
    left, right = (in_steps(torch.from_numpy(directions(n, n))) for n in (40, 60))
    space = DenseSpace(PartitionLayoutOptions(metric=name))
    distances = space.distances(left, right)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(left.shape[1])
        np.testing.assert_array_equal(space.distances(left[:, order], right[:, order]), distances)
    one_by_one = [
        [space.distances(one[None], other[None])[0, 0] for other in right] for one in left
    ]
    np.testing.assert_array_equal(distances, one_by_one)


def test_the_first_values_are_the_same_however_rows_are_stored():
    texts = pa.array([f"value {number}" for number in range(500)] + [""])
    first = texts.take(pa.array(value_order(texts)))
    assert first[:50].to_pylist() != texts[:50].to_pylist()
    for seed in range(5):
        shuffled = texts.take(pa.array(np.random.default_rng(seed).permutation(len(texts))))
        assert shuffled.take(pa.array(value_order(shuffled))) == first


def test_values_of_one_hash_are_ordered_by_their_texts(monkeypatch):
    monkeypatch.setattr(sampling, "hash_strings", lambda texts: np.zeros(len(texts), np.uint64))
    assert pa.array(["b", "c", "a"]).take(
        pa.array(value_order(pa.array(["b", "c", "a"])))
    ).to_pylist() == ["a", "b", "c"]


def test_strangers_are_the_nearest_other_things(monkeypatch):
    column = np.concatenate([directions(20, 3), directions(20, 3)[:4]])  # four texts in two forms
    vectors, metric = torch.from_numpy(column), Metric()
    exact = metric.fraction(metrics.distances(vectors[:, None], vectors[None])).numpy()
    exact[exact <= EQUAL] = np.inf
    monkeypatch.setattr("pexeso.semantic.thresholds.sample.CHUNK_SIZE", 5)
    space = DenseSpace(PartitionLayoutOptions())
    np.testing.assert_allclose(unrelated_distances(space, vectors), exact.min(1), atol=1e-6)
    np.testing.assert_allclose(unrelated_distances(space, vectors, 7), exact[:7].min(1), atol=1e-6)
    assert np.isinf(unrelated_distances(space, vectors[[0, 20]])).all()  # nothing but one thing


def test_long_columns_ask_with_some_of_their_values(monkeypatch):
    monkeypatch.setattr("pexeso.semantic.thresholds.sample.CHUNK_SIZE", 8)
    drawn = sample_columns(scan_of_columns(LAKE))
    by_column = unrelated_distances_of(drawn)
    assert [len(distances) for distances in by_column] == np.minimum(drawn.sizes, 8).tolist()
    assert all((np.diff(distances) >= 0).all() for distances in by_column)


@given(
    st.lists(st.lists(st.integers(1, 99), min_size=1, max_size=6), min_size=1, max_size=5),
    st.integers(0, 100),
)
def test_the_distance_reaching_a_share_is_the_largest_that_does_not_pass_it(columns, share):
    unrelated = [np.sort(np.array(column, np.float32) / 100) for column in columns]
    reached = distance_reaching(unrelated, share / 100)
    within = shares_within(unrelated, np.array([reached, reached + 2e-6])).mean(0)
    assert within[0] <= share / 100 + 1e-6
    assert reached == 1.0 or within[1] > share / 100 - 1e-6


def test_tried_distances_rise_to_the_largest():
    tried = tried_distances(0.4567)
    assert (tried[0], tried[-1]) == (0.0, 0.456)
    assert (np.diff(tried) > 0).all()
