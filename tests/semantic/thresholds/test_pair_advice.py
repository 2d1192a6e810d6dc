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


def advise(
    query: np.ndarray, others: np.ndarray, learnt=None, min_precision=None, usual=0.15, weights=None
):
    sides = torch.from_numpy(query), torch.from_numpy(others)
    return advise_pair(SPACE, *sides, learnt, usual, min_precision, weights)


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
        advise(partners, crowded, min_precision=0.9, usual=0.3).max_distance
        < advise(sparse_partners, THINGS, min_precision=0.9, usual=0.3).max_distance
    )


@pytest.mark.parametrize("usual", [0.0, 0.15, 0.4])
def test_where_nothing_speaks_against_the_usual_distance_it_stays(usual):
    query = np.concatenate([THINGS[:50], directions(50, 3)])
    for sides in ((THINGS[:50], THINGS), (query, THINGS)):
        advice = advise(*sides, usual=usual)
        assert advice.max_distance == usual
        assert "at the distance that is usual for the model" in advice.why


def test_strangers_between_a_narrower_distance_and_the_usual_one_speak_for_it():
    """Partners at 0.05, and within the usual distance unrelated values of as many others."""
    lake = crowded(1000, 0)
    query = np.concatenate([moved(lake[:50], 0.005, 20), crowded(150, 2)])
    advice = advise(query, lake, usual=0.1)
    assert 0.005 <= advice.max_distance <= 0.07


def test_a_distance_far_beyond_the_usual_one_is_not_taken():
    query = moved(THINGS, 0.3, 1)
    assert advise(query, THINGS, usual=0.22).max_distance > 0.3
    assert advise(query, THINGS, usual=0.15).max_distance == 0.15


def test_rows_count_as_often_as_they_occur():
    """Half of the values have a partner, and these are nearly all rows."""
    query = np.concatenate([moved(THINGS[:50], 0.1, 1), directions(50, 3)])
    weights = np.repeat([9, 1], 50)
    shares = [advise(query, THINGS, weights=counts).evidence for counts in (None, weights)]
    assert [share["between_columns"] for share in shares] == [0.5, 0.9]
    assert shares[1]["without_partner"] == pytest.approx(0.1, abs=0.08)
    # One value in many rows is one thing, and no reason for another distance.
    far = np.concatenate([THINGS[:40], moved(THINGS[40:41], 0.22, 1), directions(40, 3)])
    once, often = np.ones(81, np.int64), np.ones(81, np.int64)
    often[40] = 1000
    assert advise(far, THINGS, weights=once).max_distance == 0.15
    assert advise(far, THINGS, weights=often).max_distance == 0.15


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
    advice = advise(query, THINGS[:4], learnt, usual=0.35)
    assert advice.max_distance == 0.35
    assert advice.evidence["between_columns"] == 1.0


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
    advice = advise(query, lake, usual=0.06)
    nearest = nearest_distances(SPACE, torch.from_numpy(query), torch.from_numpy(lake))
    joined = nearest <= advice.max_distance
    assert joined[:n].all(), "partners are found"
    assert advice.evidence["estimated_precision"] <= n / joined.sum() + 0.15


def test_the_precision_stated_has_a_standard_error_more_of_false_matches():
    matched, unrelated = np.array([0.0, 0.5, 0.6]), np.array([0.0, 0.1, 0.2])
    alone, target = 0.4 / 0.8, 0.8
    for n in (16, 10**8):
        estimate = advising._Estimate(np.arange(3) / 10, matched, unrelated, n, 2)
        assert estimate.alone == alone
        error = np.sqrt(0.1 * 0.9 / n)
        assert estimate.precision[2] == pytest.approx(1 - (0.1 + error) / 0.6)
        evidence = advising._chosen(estimate, 2, n, None).evidence
        assert evidence["estimated_precision"] == round(float(estimate.precision[2]), 4)
        # One that is asked for holds so, too.
        assert (advising._chosen(estimate, 2, n, target).max_distance == 0.2) == (n > 16)


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
def test_another_distance_than_the_usual_one_joins_something_and_gains(seed):
    rng = np.random.default_rng(seed)
    n_moved = 0
    for _ in range(200):
        matched = np.sort(rng.random(9) * rng.choice([0.02, 0.3, 1.0]))
        unrelated = np.sort(rng.random(9) * rng.choice([0.02, 0.5]))
        estimate = advising._Estimate(np.arange(9) / 100, matched, unrelated, 50, 8)
        usual_at = int(rng.integers(9))
        at = round(advising._chosen(estimate, usual_at, 50, None).max_distance * 100)
        if at != usual_at:
            n_moved += 1
            assert matched[at] * 50 >= advising.MIN_JOINED - 1e-9
            between, wrong = 50 * (matched[at] - matched[usual_at]), estimate.wrong * 50
            right = between - (wrong[at] - wrong[usual_at])
            # Of what is added most is right, of what is dropped less than half.
            assert right > between / 2
    assert n_moved > 20
