"""The sample of columns that advice is learnt from, and the distances of strangers within it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from planted import directions, scan_of_columns

from pexeso.advising import sample as sampling
from pexeso.advising.sample import distances, nearest_distances, sample_columns
from pexeso.advising.strangers import (
    EQUAL,
    distance_reaching,
    shares_within,
    stranger_distances,
    strangers_of,
    tried_distances,
)
from pexeso.engine.metrics import METRIC_NAMES, Metric

LAKE = [directions(n, seed) for seed, n in enumerate((5, 9, 3, 7, 20, 6))]


def columns_of(sample):
    return {int(number): sample.column(place) for place, number in enumerate(sample.ids)}


def test_the_sample_holds_whole_columns_of_all_partitions_without_short_and_deleted_ones():
    scan = scan_of_columns(LAKE, [0, 1, 0, 1, 0, 1], deleted=(3,))
    found = columns_of(sample_columns(scan))
    assert sorted(found) == [0, 1, 4, 5]  # 2 has three values, 3 is deleted
    for number, vectors in found.items():
        np.testing.assert_array_equal(np.unique(vectors.numpy(), axis=0), np.unique(LAKE[number], axis=0))


def test_the_sample_is_bounded_and_says_what_it_is_a_share_of(monkeypatch):
    monkeypatch.setattr(sampling, "MOST_VALUES", 16)
    monkeypatch.setattr(sampling, "MOST_OF_A_COLUMN", 8)
    scan = scan_of_columns([directions(n, n) for n in (6, 7, 20, 30, 5, 9)])
    drawn = sample_columns(scan)
    assert len(drawn.vectors) <= 16
    assert (drawn.sizes <= 8).all()
    assert 0 < drawn.share < 1
    again = sample_columns(scan)
    np.testing.assert_array_equal(drawn.ids, again.ids)
    assert torch.equal(drawn.vectors, again.vectors)
    assert {tuple(sample_columns(scan, seed).ids.tolist()) for seed in range(5)} != {tuple(drawn.ids.tolist())}
    cut = [sample_columns(scan, seed).n_cut for seed in range(5)]
    assert max(cut) > 0


def test_values_without_a_vector_are_no_part_of_it():
    column = np.concatenate([directions(6, 0), np.zeros((1, 32), np.float32)])
    assert len(sample_columns(scan_of_columns([column, directions(5, 1)])).vectors) == 11


@pytest.mark.parametrize("name", METRIC_NAMES)
def test_distances_are_those_of_the_metric(name):
    left, right = (torch.from_numpy(directions(n, n)) for n in (4, 6))
    metric = Metric(name)
    exact = metric.fraction(metric.distances(left[:, None], right[None]), 32).numpy()
    np.testing.assert_allclose(distances(metric, left, right), exact, atol=5e-4)
    np.testing.assert_allclose(nearest_distances(metric, left, right), exact.min(1), atol=5e-4)


def test_strangers_are_the_nearest_other_things(monkeypatch):
    column = np.concatenate([directions(20, 3), directions(20, 3)[:4]])  # four texts in two forms
    vectors, metric = torch.from_numpy(column), Metric()
    exact = metric.fraction(metric.distances(vectors[:, None], vectors[None]), 32).numpy()
    exact[exact <= EQUAL] = np.inf
    monkeypatch.setattr("pexeso.advising.strangers.ROWS_AT_ONCE", 5)
    np.testing.assert_allclose(stranger_distances(metric, vectors), exact.min(1), atol=5e-4)
    rows = np.array([2, 21])
    np.testing.assert_allclose(stranger_distances(metric, vectors, rows), exact[rows].min(1), atol=5e-4)
    assert np.isinf(stranger_distances(metric, vectors[[0, 20]])).all()  # nothing but one thing


def test_long_columns_ask_with_some_of_their_values(monkeypatch):
    monkeypatch.setattr("pexeso.advising.strangers.ROWS_AT_ONCE", 8)
    drawn = sample_columns(scan_of_columns(LAKE))
    found = strangers_of(drawn, np.random.default_rng(0))
    assert [len(each) for each in found] == np.minimum(drawn.sizes, 8).tolist()
    assert all((np.diff(each) >= 0).all() for each in found)


@given(st.lists(st.lists(st.integers(1, 99), min_size=1, max_size=6), min_size=1, max_size=5), st.integers(0, 100))
def test_the_distance_reaching_a_share_is_the_largest_that_does_not_pass_it(columns, share):
    strangers = [np.sort(np.array(column, np.float32) / 100) for column in columns]
    reached = distance_reaching(strangers, share / 100)
    within = shares_within(strangers, np.array([reached, reached + 2e-6])).mean(0)
    assert within[0] <= share / 100 + 1e-6
    assert reached == 1.0 or within[1] > share / 100 - 1e-6


def test_tried_distances_rise_to_the_largest():
    tried = tried_distances(0.4567)
    assert (tried[0], tried[-1]) == (0.0, 0.456)
    assert (np.diff(tried) > 0).all()
