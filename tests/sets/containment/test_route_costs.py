"""What is expected of the two ways to search."""

import pytest

from pexeso.sets.containment.ensemble import bands_seconds, lists_seconds


def test_more_costs_more():
    assert lists_seconds(10, 100) < lists_seconds(20, 100) < lists_seconds(20, 1000)
    usual = {
        "n_tokens": 100,
        "permutations": 256,
        "n_sets": 10**5,
        "n_entries": 10**5,
        "usual_size": 50.0,
    }
    for name, more in {
        "permutations": 512,
        "n_sets": 10**6,
        "n_entries": 10**6,
        "usual_size": 10.0,
    }.items():
        assert bands_seconds(**usual) < bands_seconds(**{**usual, name: more})


def test_few_entries_are_read_and_many_are_not():
    assert lists_seconds(20, 0) < bands_seconds(20, 256, 10, 0, 1.0)
    assert lists_seconds(1000, 10**8) > bands_seconds(1000, 256, 10**6, 10**8, 100.0)


def test_an_empty_lake_and_an_empty_query_cost_nothing_unheard_of():
    some = bands_seconds(0, 256, 2, 0, 1.0)
    assert bands_seconds(0, 256, 0, 0, 1.0) == pytest.approx(some, rel=1e-4)
    assert lists_seconds(0, 0) > 0
