"""Advice on joining with one column: partners are told from strangers."""

import numpy as np
import pytest
import torch
from planted import directions, moved, scan_of_columns, unit

from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.semantic.thresholds import pair as advising
from pexeso.semantic.thresholds.pair import advise_pair
from pexeso.semantic.thresholds.sample import learn, nearest_distances

THINGS = directions(200, 0)
SPACE = DenseSpace(PartitionLayoutOptions())


def advise(query: np.ndarray, others: np.ndarray, learnt=None, min_precision=None, usual=0.0):
    return advise_pair(
        SPACE, torch.from_numpy(query), torch.from_numpy(others), learnt, usual, min_precision
    )


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_partners_are_let_in_and_strangers_kept_out(share):
    n = int(200 * share)
    query = np.concatenate([moved(THINGS[:n], 0.2, 1), directions(200 - n, 2)])
    advice = advise(query, THINGS)
    nearest = nearest_distances(SPACE, torch.from_numpy(query), torch.from_numpy(THINGS))
    assert (nearest[:n] <= advice.max_distance).all()
    assert (nearest[n:] <= advice.max_distance).sum() <= 0.05 * len(query)
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
    n = advising.ENOUGH_VALUES
    few = learn(scan_of_columns([directions(30, seed) for seed in range(3)]))
    for learnt in (None, few):
        assert advise(THINGS[: n - 1], THINGS, learnt) is None
        assert advise(THINGS, THINGS[: n - 1], learnt) is None
        assert advise(THINGS[:n], THINGS, learnt) is not None


def test_short_columns_learn_from_the_index():
    columns = [directions(30, seed) for seed in range(12)]
    learnt = learn(scan_of_columns(columns))
    query = moved(THINGS[:4], 0.3, 5)
    assert 0.3 <= advise(query, THINGS[:4], learnt).max_distance <= learnt.median + 1e-6


def test_of_long_columns_some_values_ask(monkeypatch):
    monkeypatch.setattr(advising, "MAX_PAIRS", 1)
    monkeypatch.setattr(advising, "MIN_ROWS", 60)
    advice = advise(moved(THINGS, 0.2, 1), THINGS)
    assert advice.evidence["asked_values"] == 60
    assert 0.2 <= advice.max_distance < 0.4


def crowded(n: int, seed: int) -> np.ndarray:
    """Unit vectors of four dimensions: of a thousand, most have another nearer than 0.1."""
    vectors = np.zeros((n, 32))
    vectors[:, :4] = np.random.default_rng(seed).normal(size=(n, 4))
    return unit(vectors)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 1.0])
def test_the_precision_is_not_overrated_where_few_values_have_a_partner(share):
    # The lake column has five times the values of the query column, and so as many times the
    # unrelated neighbours.
    lake, n = crowded(1000, 0), round(200 * share)
    query = np.concatenate([moved(lake[:n], 0.05, 20), crowded(200 - n, 2)])
    advice = advise(query, lake)
    nearest = nearest_distances(SPACE, torch.from_numpy(query), torch.from_numpy(lake))
    joined = nearest <= advice.max_distance
    assert joined[:n].all(), "partners are found"
    assert advice.evidence["estimated_precision"] <= n / joined.sum() + 0.15


def test_the_precision_stated_has_a_standard_error_more_of_false_matches():
    matched, unrelated = np.array([0.0, 0.5, 0.6]), np.array([0.0, 0.1, 0.2])
    few, many = (
        advising._chosen(
            advising._estimated(np.arange(3) / 10, matched, unrelated, n, 2), 0, None
        ).evidence
        for n in (16, 10**8)
    )
    alone = 0.4 / 0.8
    assert few["without_partner"] == many["without_partner"] == alone
    assert many["estimated_precision"] == pytest.approx(1 - alone * 0.2 / 0.6, abs=1e-4)
    error = np.sqrt(0.1 * 0.9 / 16)
    assert few["estimated_precision"] == pytest.approx(1 - (0.1 + error) / 0.6, abs=1e-4)


@pytest.mark.parametrize("usual", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("n_partners", [0, 1, 3])
def test_an_empty_or_nearly_empty_join_has_no_estimate_and_does_not_win(usual, n_partners):
    query = np.concatenate([THINGS[:n_partners], directions(200 - n_partners, 2)])
    advice = advise(query, THINGS, usual=usual)
    assert advice.max_distance >= usual
    if advice.evidence["between_columns"] * 200 < advising.MIN_JOINED:
        assert advice.evidence["estimated_precision"] is None
        assert "too few values are joined" in advice.why


def test_a_few_equal_values_do_not_outweigh_the_usual_distance():
    """Every value has a partner at 0.3, which is usual, and some have an equal one."""
    n = 60
    for n_equal in (1, 5, 10):
        query = np.concatenate([THINGS[:n_equal], moved(THINGS[n_equal:n], 0.3, 7)])
        for precision in (None, 0.9):
            advice = advise(query, THINGS[:n], usual=0.35, min_precision=precision)
            joined = nearest_distances(SPACE, torch.from_numpy(query), torch.from_numpy(THINGS[:n]))
            assert (joined <= advice.max_distance).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_estimate_of_f1_is_at_most_one_and_never_highest_for_nothing(seed):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        matched = np.sort(rng.random(9) * rng.choice([0.02, 0.3, 1.0]))
        unrelated = np.sort(rng.random(9) * rng.choice([0.02, 0.5]))
        estimate = advising._estimated(np.arange(9) / 10, matched, unrelated, 50, 8)
        assert (estimate.f1 <= 1).all()
        assert (estimate.f1 >= 0).all()
        usual_at = int(rng.integers(9))
        advice = advising._chosen(estimate, usual_at, None)
        at = round(advice.max_distance * 10)
        assert at == usual_at or matched[at] * 50 >= advising.MIN_JOINED - 1e-9
        assert at == usual_at or estimate.f1[at] > estimate.f1[usual_at]
