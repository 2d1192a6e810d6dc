"""Rules that are learned from few rows join no later row with the key of another."""

from __future__ import annotations

import pytest

from benchmarks.transform.life import KINDS, lived

N_LATER = 300


@pytest.mark.parametrize(("size", "max_alone"), [(3, 1.0), (5, 0.3), (30, 0.05)])
def test_later_rows_are_joined_with_their_own_key_or_left_alone(size, max_alone):
    rules = [lived(number, size, n_later=N_LATER, seed=2) for number in range(len(KINDS))]
    n_later = N_LATER * len(rules)
    assert [rule["sample"] for rule in rules if rule["wrong"]] == []
    assert sum(rule["alone"] for rule in rules) <= max_alone * n_later


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("size", "max_alone"), [(5, 0.3), (10, 0.3), (30, 0.05), (300, 0.05)])
def test_sixty_rules_hold_for_later_rows(size, max_alone):
    rules = [lived(number, size, n_later=2000) for number in range(60)]
    assert sum(rule["wrong"] for rule in rules) <= 0.01 * 60 * 2000
    assert sum(rule["alone"] for rule in rules) <= max_alone * 60 * 2000
