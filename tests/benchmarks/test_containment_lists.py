"""Posting lists of hashed tokens, which measurements rest on."""

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.containment_lists import build_hashed_lists
from pexeso.errors import InputError
from pexeso.sets.containment.hashing import hash_tokens


def ragged(sets):
    return np.concatenate(sets).astype(np.uint64), np.cumsum([0, *map(len, sets)]).astype(np.int64)


def lists_of(sets):
    return build_hashed_lists(*ragged([np.array(sorted(one), np.uint64) for one in sets]))


def found_by(query, needed):
    sets, counts = query.at_least(needed)
    return dict(zip(sets.tolist(), counts.tolist(), strict=True))


def test_numbers_follow_frequency_and_lists_ascend():
    lists = lists_of([{7, 8}, {7, 9}, {7}])
    assert lists.hashes.tolist() == [7, 8, 9]
    assert lists.numbers.tolist() == [2, 0, 1]
    assert lists.lists.list_sets.tolist() == [0, 1, 0, 1, 2]
    assert lists.lists.set_tokens.tolist() == [0, 2, 1, 2, 2]


@pytest.mark.parametrize("limit", [100, 2**12, 2**20, 2**63])
def test_lists_are_the_same_whether_upper_bits_tell_tokens_apart_or_not(limit):
    # Below 2**12 the upper bits of 3,000 places' keys tell nothing, below 2**20 little: both ways
    # to put hashes in order are taken.
    rng = np.random.default_rng(5)
    sets = [np.unique(rng.integers(0, limit, 30, dtype=np.uint64)) for _ in range(100)]
    lists = build_hashed_lists(*ragged(sets))
    assert (lists.hashes == np.unique(np.concatenate(sets))).all()
    for row in (0, 50, 99):
        exact = {i: len(np.intersect1d(sets[row], one)) for i, one in enumerate(sets)}
        assert found_by(lists.look_up(sets[row]), 1) == {
            i: count for i, count in exact.items() if count
        }


def test_texts_are_looked_up_by_their_hashes():
    texts = pa.array(["b", "a", "a", "c"])
    lists = build_hashed_lists(np.sort(hash_tokens(texts)[:2]), np.array([0, 2]))
    query = lists.look_up(texts)
    assert (query.size, found_by(query, 2)) == (3, {0: 2})
    with pytest.raises(InputError, match="null"):
        lists.look_up(pa.array(["a", None]))
