"""Advice on joining with one column: partners are told from strangers."""

import numpy as np
import pytest
import torch
from planted import directions, moved, scan_of_columns

from pexeso.engine.dense_space import DenseSpace
from pexeso.engine.layout.options import PartitionLayoutOptions
from pexeso.thresholds import pair as advising
from pexeso.thresholds.columns import learn
from pexeso.thresholds.pair import advise_pair
from pexeso.thresholds.sample import nearest_distances

THINGS = directions(200, 0)
SPACE = DenseSpace(PartitionLayoutOptions())


def advise(asked: np.ndarray, others: np.ndarray, learnt=None, min_precision=None):
    return advise_pair(
        SPACE, torch.from_numpy(asked), torch.from_numpy(others), learnt, min_precision
    )


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_partners_are_let_in_and_strangers_kept_out(share):
    n = int(200 * share)
    asked = np.concatenate([moved(THINGS[:n], 0.2, 1), directions(200 - n, 2)])
    advice = advise(asked, THINGS)
    nearest = nearest_distances(SPACE, torch.from_numpy(asked), torch.from_numpy(THINGS))
    assert (nearest[:n] <= advice.max_distance).all()
    assert (nearest[n:] <= advice.max_distance).sum() <= 0.05 * len(asked)
    assert advice.min_joinability is None
    assert advice.evidence["without_partner"] == pytest.approx(1 - share, abs=0.1)
    assert advice.evidence["estimated_precision"] > 0.9
    assert "of your values have a neighbour in that column" in advice.why


def test_a_crowded_column_gets_a_smaller_distance_than_a_sparse_one():
    # Each thing has a stranger at 0.25, and a partner somewhere from 0.05 to 0.45.
    crowded = np.concatenate([THINGS[:100], moved(THINGS[:100], 0.25, 3)])
    partners = np.concatenate([moved(crowded[[n]], 0.05 + 0.002 * n, n) for n in range(200)])
    sparse_partners = np.concatenate([moved(THINGS[[n]], 0.05 + 0.002 * n, n) for n in range(200)])
    assert (
        advise(partners, crowded, min_precision=0.9).max_distance
        < advise(sparse_partners, THINGS, min_precision=0.9).max_distance
    )


def test_with_equal_texts_no_distance_is_needed():
    assert advise(THINGS[:50], THINGS).max_distance == 0.0


def test_columns_too_short_to_learn_from_give_none():
    assert advise(THINGS[:1], THINGS) is None
    assert advise(THINGS, THINGS[:1]) is None


def test_short_columns_learn_from_the_index():
    columns = [directions(30, seed) for seed in range(12)]
    learnt = learn(scan_of_columns(columns))
    asked = moved(THINGS[:4], 0.3, 5)
    assert 0.3 <= advise(asked, THINGS[:4], learnt).max_distance <= learnt.median + 1e-6


def test_of_long_columns_some_values_ask(monkeypatch):
    monkeypatch.setattr(advising, "MOST_PAIRS", 1)
    monkeypatch.setattr(advising, "LEAST_ROWS", 60)
    advice = advise(moved(THINGS, 0.2, 1), THINGS)
    assert advice.evidence["asked_values"] == 60
    assert 0.2 <= advice.max_distance < 0.4
