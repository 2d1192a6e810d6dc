"""Summaries of keys: against counts of all keys, and as bounds of what a sample lacks."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.dance_published.samples import key_summary, unsampled_squares
from pexeso.acquisition.key_hashes import hash_positions
from pexeso.errors import InputError


def drawn(rng, n, n_keys=60):
    keys = (n_keys * rng.random(n) ** 3).astype(int)
    return pa.table({"k": pa.array([None if k == 3 else f"k{k}" for k in keys.tolist()])})


def counted(table, seed):
    """Return the rows of each position."""
    positions = hash_positions(table, ["k"], seed=seed)
    return Counter(positions[~np.isnan(positions)].tolist())


def test_the_heaviest_keys_are_listed():
    table = drawn(np.random.default_rng(0), 500)
    counts = counted(table, 5)
    summary = key_summary(table, ["k"], seed=5, n_heaviest=10)
    heaviest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    assert sorted(heaviest[:10]) == list(
        zip(summary.positions.tolist(), summary.counts.tolist(), strict=True)
    )
    assert summary.most_unlisted == heaviest[10][1]
    assert (summary.keys, summary.rows) == (len(counts), sum(counts.values()))
    assert summary.null_rows == table["k"].null_count > 0


def test_all_or_none_are_listed():
    table = drawn(np.random.default_rng(1), 100)
    assert key_summary(table, ["k"], n_heaviest=1000).most_unlisted == 0
    none = key_summary(table, ["k"], n_heaviest=0)
    assert (len(none.positions), none.most_unlisted) == (0, max(counted(table, 0).values()))
    empty = key_summary(table.slice(0, 0), ["k"])
    assert (empty.keys, empty.rows, empty.most_unlisted) == (0, 0, 0)
    with pytest.raises(InputError, match="n_heaviest"):
        key_summary(table, ["k"], n_heaviest=-1)


@pytest.mark.parametrize("outer", [False, True])
def test_squares_of_what_a_sample_lacks_are_exact_with_all_keys_and_a_bound_with_some(outer):
    rng = np.random.default_rng(2)
    for seed in range(20):
        tables = drawn(rng, 300), drawn(rng, 200, 90)
        left, right = (counted(table, seed) for table in tables)
        rows = {}
        for key in left | right:
            product = left[key] * right[key]
            rows[key] = product if product or not outer else left[key] + right[key]
        expected = sum(n * n for key, n in rows.items() if key > 0.4)
        whole = [key_summary(table, ["k"], seed=seed) for table in tables]
        assert unsampled_squares(*whole, 0.4, outer=outer) == expected
        some = [key_summary(table, ["k"], seed=seed, n_heaviest=5) for table in tables]
        listed = set(some[0].positions.tolist()) | set(some[1].positions.tolist())
        expected = sum(n * n for key, n in rows.items() if key > 0.4 and key in listed)
        assert unsampled_squares(*some, 0.4, outer=outer) >= expected
        assert unsampled_squares(*some, 1.0, outer=outer) == 0
