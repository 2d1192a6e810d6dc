"""Posting lists against Python's own sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_sets import ragged

from pexeso.containment.postings import Postings, build_postings, sharing
from pexeso.errors import IndexCorruptError

HALF = 1 << 32
TOKENS = st.sets(st.integers(0, 40).map(lambda number: number * HALF) | st.just(2**64 - 1), max_size=20)


@given(st.lists(TOKENS, min_size=1, max_size=10), TOKENS, st.integers(1, 5), st.integers(0, 10))
def test_sets_with_enough_tokens_are_found(sets, query, needed, first):
    first = min(first, len(sets))
    postings = build_postings(*ragged([np.array(sorted(one), np.uint64) for one in sets]))
    found = sharing(postings, len(sets), np.array(sorted(query), np.uint64), first, needed)
    assert found.tolist() == [row for row in range(first, len(sets)) if len(sets[row] & query) >= needed]


def test_tokens_that_share_a_half_are_left_to_verification():
    postings = build_postings(*ragged([np.array([HALF + 1], np.uint64)]))
    assert sharing(postings, 1, np.array([HALF + 2], np.uint64), 0, 1).tolist() == [0]


@pytest.mark.parametrize("row", [-1, 2])
def test_an_entry_that_leads_out_of_the_index_is_refused(row):
    damaged = Postings(np.array([1], np.uint32), np.array([row], np.int32))
    with pytest.raises(IndexCorruptError, match="names a set that there is not"):
        sharing(damaged, 2, np.array([HALF], np.uint64), 0, 1)
