"""Verification against Python's own sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from synthetic_sets import ragged

from pexeso.containment.exact import overlaps

TOKENS = st.sets(st.integers(0, 60) | st.sampled_from([2**63, 2**64 - 1]), max_size=40)


@given(st.lists(TOKENS, min_size=1, max_size=8), TOKENS, st.integers(1, 10))
def test_counts_are_those_of_sets(sets, query, needed):
    tokens, offsets = ragged([np.array(sorted(one), np.uint64) for one in sets])
    rows = np.arange(len(sets))[::-1].copy()
    found = overlaps(tokens, offsets, rows, np.array(sorted(query), np.uint64), needed)
    expected = [len(sets[row] & query) for row in rows]
    assert found.tolist() == [count if count >= needed else -1 for count in expected]


def test_a_small_query_in_a_large_set_and_the_other_way_round():
    rng = np.random.default_rng(4)
    large = np.unique(rng.integers(0, 2**63, 50_000, dtype=np.uint64))
    small = np.sort(np.concatenate([large[::5000], np.array([2**64 - 1], np.uint64)]))
    offsets = np.array([0, len(large)])
    assert overlaps(large, offsets, np.array([0]), small, 1).tolist() == [10]
    assert overlaps(small, np.array([0, len(small)]), np.array([0]), large, 1).tolist() == [10]
    assert overlaps(large, offsets, np.array([0]), small, 11).tolist() == [-1]
