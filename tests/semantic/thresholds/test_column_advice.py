"""Advice on a search: the distance at which columns found still join by more than strangers."""

import numpy as np
import pytest
from planted import directions, moved, scan_of_columns
from searching_stores import query_of

from pexeso.errors import InputError
from pexeso.options import SearchOptions
from pexeso.semantic.thresholds import advisor as advising
from pexeso.semantic.thresholds import sample as sampling
from pexeso.semantic.thresholds.advice import Advice
from pexeso.semantic.thresholds.advisor import (
    ENOUGH_COLUMNS,
    Advisor,
    advise_columns,
    effective_values,
    for_query,
    joinability_beyond_chance,
)
from pexeso.semantic.thresholds.sample import learn

PARTNER, STRANGER = 0.15, 0.3


def lake(n_pairs: int = 16):
    """Return pairs of columns with values at the `PARTNER` distance from each other.

    In each column, a third of the values have an unrelated value near them in their own column.
    """
    columns = []
    for number in range(n_pairs):
        things = directions(20, number)
        things = np.concatenate([things, moved(things[:4], STRANGER, 900 + number)])
        columns += [things, moved(things, PARTNER, 100 + number)]
    return columns


@pytest.fixture(scope="module")
def scan():
    return scan_of_columns(lake(), [number % 2 for number in range(32)])


def test_the_usual_distance_stays_where_the_precision_holds(scan):
    advice = Advisor(scan, 0.2).columns()
    assert (advice.max_distance, advice.min_joinability) == (0.2, 0.5)
    assert advice.evidence["columns_found"] == 32
    assert "at the distance that is usual for the model of the index" in advice.why


def test_a_wider_distance_is_taken_where_most_of_what_it_adds_is_right(scan):
    advice = Advisor(scan, 0.06).columns()
    assert PARTNER <= advice.max_distance <= 0.16
    assert advice.evidence["columns_found"] == 32
    # Farther than a tenth beyond the usual distance none is tried.
    assert Advisor(scan, 0.04).columns().max_distance == 0.04


def test_a_narrower_distance_is_taken_where_columns_join_by_strangers():
    """Crowded columns of one kind match each other by chance; some have a partner besides."""
    kind = directions(1, 0)
    crowd = [moved(np.repeat(kind, 20, 0), 0.2, seed) for seed in range(20)]
    crowd += [moved(column, 0.02, 70) for column in crowd]
    usual = 0.3
    advice = Advisor(scan_of_columns(crowd), usual).columns()
    assert 0.02 <= advice.max_distance < usual
    assert advice.evidence["columns_found"] <= 44
    assert advice.evidence["estimated_precision"] >= 0.9


def test_a_higher_precision_never_gives_a_larger_distance(scan):
    advisor = Advisor(scan, 0.06)
    chosen = [advisor.columns(precision).max_distance for precision in (0.6, 0.8, 0.9, 0.99, 1.0)]
    assert chosen == sorted(chosen, reverse=True)
    assert advisor.columns(0.9) is advisor.columns(0.9)  # learnt once


def test_strangers_alone_are_no_reason_to_find_a_column():
    # Columns of one kind of thing, none of which is in another column, crowded so that all lie
    # near.
    kind = directions(1, 0)
    crowd = [moved(np.repeat(kind, 20, 0), 0.2, seed) for seed in range(30)]
    advice = Advisor(scan_of_columns(crowd), 0.06).columns()
    unrelated = np.concatenate(learn(scan_of_columns(crowd)).unrelated)
    assert advice.max_distance < np.quantile(unrelated, 0.2)
    assert advice.evidence["columns_found"] == 0


def test_what_equal_texts_find_is_counted_in_the_whole_index(scan, monkeypatch):
    columns = [
        column
        for number in range(12)
        for column in (directions(20, number), directions(20, number)[:15])
    ]
    whole = scan_of_columns(columns, [number % 3 for number in range(24)])
    everything = advise_columns(whole, learn(whole), 0.06, 0.9)
    assert everything.evidence["columns_found_by_equal_text"] == 24
    monkeypatch.setattr(sampling, "MAX_VALUES", 130)
    learnt = learn(whole)
    assert learnt.sample.share < 1
    some = advise_columns(whole, learnt, 0.06, 0.9)
    assert some.evidence["columns_found_by_equal_text"] == len(
        learnt.sample
    )  # one other column each


def test_a_share_of_rows_that_is_settled_is_gone_by(scan):
    advice = Advisor(scan, 0.06).columns(0.9, 0.8)
    assert advice.min_joinability is None
    assert advice.evidence["asked_joinability"] == 0.8


@pytest.mark.parametrize("n_columns", [2, ENOUGH_COLUMNS - 1])
def test_an_index_with_too_little_gets_what_is_usual(n_columns):
    columns = [directions(9, number) for number in range(n_columns)]
    advice = Advisor(scan_of_columns(columns), 0.35).columns()
    assert (advice.max_distance, advice.min_joinability) == (0.35, 0.5)
    assert "too few columns to learn from" in advice.why
    more = Advisor(scan_of_columns([*columns, *lake()]), 0.35).columns()
    assert "estimated precision" in more.why


@pytest.mark.parametrize("wrong", [0, -0.1, 1.1, 90, "0.9", True, float("nan")])
def test_a_precision_that_is_none_is_refused(scan, wrong):
    with pytest.raises(
        InputError, match=r"^min_precision must be a number in \(0, 1\]\. Got .+: 0\.9 is usual\.$"
    ):
        Advisor(scan, 0.06).columns(wrong)


def test_few_values_must_match_more_than_chance_does():
    advice = Advice(0.3, 0.5, "", {"chance_match": 0.02, "columns": 5000, "min_precision": 0.9})
    generator = np.random.default_rng(0)
    thresholds = {n: joinability_beyond_chance(advice, n) for n in (2, 4, 5, 7, 12, 30)}
    assert min(thresholds.values()) >= 0.5
    counts = {n: generator.binomial(n, 0.02, size=200_000) for n in thresholds}
    chosen = [n for n in thresholds if thresholds[n] < 1]
    needed = [n for n in chosen if thresholds[n] > 0.5]
    assert (chosen, needed) == ([5, 7, 12, 30], [5])
    for n in chosen:
        # A tenth of a column, as far as drawing tells.
        assert 5000 * (counts[n] >= round(thresholds[n] * n)).mean() < 0.2
    for n in needed:
        assert 5000 * (counts[n] >= round(thresholds[n] * n) - 1).mean() > 0.05
    assert joinability_beyond_chance(advice, 2) == 1.0
    assert joinability_beyond_chance(advice, 30) == 0.5
    assert joinability_beyond_chance(advice, 0) == 0.5


def test_the_share_is_raised_for_short_query_columns_alone():
    advice = Advice(0.3, 0.5, "", {"chance_match": 0.02, "columns": 5000, "min_precision": 0.9})
    short, long = (query_of(np.eye(40)[:n], [1] * n) for n in (4, 40))
    assert for_query(SearchOptions(0.3, 0.5, advice=advice), short).min_joinability > 0.5
    assert for_query(SearchOptions(0.3, 0.5, advice=advice), long).min_joinability == 0.5
    assert for_query(SearchOptions(0.3, 0.5), short).min_joinability == 0.5
    assert for_query(SearchOptions(0.3, None, k=3, advice=advice), short).min_joinability is None
    # One value fills the column, whatever else stands in it.
    repeated = query_of(np.eye(11), [990, *[1] * 10])
    assert effective_values(repeated, "rows") == 1
    assert effective_values(repeated, "values") == 11


def test_options_that_ask_for_advice_get_it(scan):
    advisor = Advisor(scan, 0.06)
    given = advisor.column_options({"auto": True, "counts": "decide"})
    assert given == {
        "counts": "decide",
        "max_distance": given["advice"].max_distance,
        "min_joinability": 0.5,
        "advice": advisor.columns(),
    }
    assert advisor.column_options({"min_precision": 0.95, "k": 3}).keys() == {
        "k",
        "max_distance",
        "advice",
    }
    assert advisor.column_options({"auto": True, "min_joinability": 0.2})["min_joinability"] == 0.2
    assert advisor.column_options({"auto": False, "min_precision": None, "max_distance": 0.1}) == {
        "max_distance": 0.1
    }
    with pytest.raises(
        InputError,
        match=r"max_distance is chosen with auto=True or min_precision, and max_distance=0\.1 "
        r"was given too",
    ):
        advisor.column_options({"auto": True, "max_distance": 0.1})


def test_as_many_columns_ask_as_may(scan, monkeypatch):
    monkeypatch.setattr(advising, "QUERY_COLUMNS", 3)
    assert advise_columns(scan, learn(scan), 0.06, 0.9).evidence["asked_columns"] == 3
