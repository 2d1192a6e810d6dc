"""Planted rules against their own pairs: nothing is joined wrongly without a word."""

from __future__ import annotations

from functools import cache

import pytest

from pexeso.errors import InputError
from pexeso.transform.joins.learned import learn_transformation
from pexeso.transform.transformation import KINDS
from tests.long_runs import long_but
from tests.transform.planted_rules import KINDS as RULES
from tests.transform.planted_rules import planted

N_RULES, N_SHORT = 240, 40

# In these a rule that writes a part of the keys, such as the surname, joins as many rows.
PARTS_OF_KEYS = (59, 88, 200)


@cache
def learned(number, *, is_named):
    rule = planted(number)
    named = {"columns": rule.columns, "target_columns": "key"} if is_named else {}
    return learn_transformation(rule.source, rule.target, **named)


def joined_pairs(joined):
    """Return the rows of source and target that are joined, and how."""
    source, target = (codes.tolist() for codes in joined.key_codes)
    rows: dict[int, list[int]] = {}
    for row, key in enumerate(target):
        rows.setdefault(key, []).append(row)
    return [
        (one, other, KINDS[joined.rule.kinds[one if joined.forward else other]])
        for one, key in enumerate(source)
        if key >= 0
        for other in rows.get(key, [])
    ]


@pytest.mark.parametrize("number", long_but([*range(N_SHORT), *PARTS_OF_KEYS], range(N_RULES)))
def test_no_pair_is_wrong_without_a_word(number):
    """A pair that is nearly equal says so, and rules that make one key of several are refused."""
    rule = planted(number)
    true_pairs = {(row, at) for row, at in enumerate(rule.partner) if at is not None}
    for is_named in (True, False):
        joined = learned(number, is_named=is_named)
        pairs = {pair[:2] for pair in joined_pairs(joined) if pair[2] != "fuzzy"}
        if joined.collapse is None and not joined.multiplies:
            assert pairs <= true_pairs
            continue
        assert rule.collapses
        with pytest.raises(InputError, match=r"many_to_one|many_to_many"):
            joined.table()
        many = joined.table(how="inner", many_to_one=True, many_to_many=True)
        assert many.num_rows >= len(pairs)


def test_most_planted_rules_are_found():
    n_right = {kind: 0 for kind in RULES}
    for number in range(N_SHORT):
        rule = planted(number)
        joined = learned(number, is_named=True)
        pairs = {pair[:2] for pair in joined_pairs(joined)}
        true_pairs = {(row, at) for row, at in enumerate(rule.partner) if at is not None}
        n_right[rule.kind] += len(pairs & true_pairs) >= 0.95 * len(true_pairs)
    assert sum(n_right.values()) >= 0.9 * N_SHORT
    assert min(n_right.values()) > 0
