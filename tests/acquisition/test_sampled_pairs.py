"""Joins of two sampled tables: they compare tokens, and intervals hold what whole tables give."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from benchmarks.datasets.tables import web_sources
from pexeso.acquisition.intervals import correlation_estimate, quality_estimate
from pexeso.acquisition.key_hashes import KeyTest, hash_positions, with_key_tokens
from pexeso.acquisition.quality import Dependency
from pexeso.joins.measures import correlation, join_counts
from tests.acquisition.motivating_tables import joined
from tests.acquisition.oracle import quality
from tests.acquisition.sampled_pairs import correlated_sample


def join_of(left, right, key, names):
    """Return the join of two tables over some columns, as distinct rows with counts."""
    left, right = (with_key_tokens(table, (key,)) for table in (left, right))
    sides = [[n for n in names if n in t.column_names and n != key] for t in (left, right)]
    return join_counts(left, right, (key,), left_names=sides[0], right_names=sides[1])


def estimates(left, right, key, x, y, rule, *, rate=1.0, seed=0, unsampled=None):
    """Return the correlation and the quality that the join of two samples tells."""
    test, drawn = [KeyTest((key,), rate)], {"seed": seed, "unsampled": [unsampled]}
    rows, counts = join_of(left, right, key, [x, y])
    of_quality = join_of(left, right, key, [*rule.left, rule.right])
    return (
        correlation_estimate(rows, counts, test, [x], [y], **drawn),
        quality_estimate(*of_quality, test, [rule], **drawn),
    )


def test_it_measures_the_join_with_keys_as_tokens():
    rng = np.random.default_rng(0)
    left = pa.table({"k": rng.integers(0, 40, 200), "x": rng.integers(0, 3, 200).astype(str)})
    right = pa.table({"k": rng.integers(0, 60, 300), "y": rng.integers(0, 4, 300).astype(str)})
    texts = right.set_column(0, "k", right["k"].cast(pa.float64()))
    whole = joined(left, right, ["k"])
    for rule in (Dependency(("k",), "y"), Dependency(("y",), "x")):
        of_correlation, of_quality = estimates(left, texts, "k", "x", "y", rule)
        assert of_correlation.value == pytest.approx(correlation(whole, ["x"], ["y"]), rel=1e-12)
        assert of_quality.value == quality(whole, [rule])
    rows, counts = join_of(left, texts, "k", ["y"])
    assert (rows.column_names, int(counts.sum())) == (["k", "y"], whole.num_rows)


def test_rows_without_a_key_do_not_count():
    left = pa.table({"k": ["a", "b", "?", None], "x": ["1", "2", "3", "4"]})
    right = pa.table({"k": ["a", "c", "?", None], "y": ["1", "2", "3", "4"]})
    rows, _ = join_of(left, right, "k", ["x", "y"])
    assert rows.to_pylist() == [{"k": "a", "x": "1", "y": "1"}]


def squares_beyond(left, right, rate, seed):
    """Return the sum of the squared rows of the join of each key that is in no sample."""
    one, other = (Counter(hash_positions(t, ["k"], seed=seed).tolist()) for t in (left, right))
    return float(sum((one[key] * other[key]) ** 2 for key in one if key > rate))


def test_a_missing_giant_is_known_from_what_whole_tables_tell():
    """One key has nine tenths of the join; the samples that lack it look like all others."""
    keys = np.concatenate([np.arange(2000), np.zeros(1000, int)])
    left = pa.table({"k": keys, "x": (keys == 0).astype(str)})
    right = pa.table({"k": keys[:2050], "y": (keys[:2050] % 3).astype(str)})
    n_missing = 0
    for seed in range(12):
        samples = [correlated_sample(t, [KeyTest(("k",), 0.2)], seed=seed) for t in (left, right)]
        if 0 in samples[0]["k"].to_pylist():
            continue
        drawn = {"rate": 0.2, "seed": seed}
        squares = squares_beyond(left, right, 0.2, seed)
        rule = Dependency(("y",), "x")
        for blind in estimates(*samples, "k", "x", "y", rule, **drawn):
            assert blind.reliable
        for warned in estimates(*samples, "k", "x", "y", rule, **drawn, unsampled=squares):
            assert not warned.reliable
            assert "heavy" in warned.reason
        n_missing += 1
    assert n_missing > 5


def require_coverage(left, right, key, x, y, rule, rate, n_trials, share):
    """Draw samples, and require that intervals hold the values of whole tables so often."""
    exact = estimates(left, right, key, x, y, rule)
    drawn = []
    for seed in range(n_trials):
        samples = [correlated_sample(t, [KeyTest((key,), rate)], seed=seed) for t in (left, right)]
        squares = squares_beyond(left.rename_columns({key: "k"}),
                                 right.rename_columns({key: "k"}), rate, seed)  # fmt: skip
        drawn.append(estimates(*samples, key, x, y, rule, rate=rate, seed=seed, unsampled=squares))
    for whole, intervals in zip(exact, zip(*drawn, strict=True), strict=True):
        held = [one.low - 1e-9 <= whole.value <= one.high + 1e-9 for one in intervals]
        widths = [one.high - one.low for one in intervals if one.reliable]
        assert np.mean(held) >= share
        assert len(widths) > 0.2 * n_trials
        assert np.mean(widths) < 1


def test_intervals_cover_the_exact_values_in_most_of_100_samples():
    """Of 95 %, 3 deviations; keys have from one row to a few, by a power law."""
    rng, n_keys, tables = np.random.default_rng(0), 300, []
    kind = rng.integers(0, 6, n_keys)
    for name in "xy":
        used_keys = np.sort(rng.permutation(n_keys)[: n_keys * 4 // 5])
        weights = np.arange(1.0, len(used_keys) + 1) ** -0.5
        counts = np.maximum(np.round(weights / weights.sum() * 2 * len(used_keys)), 1).astype(int)
        keys = np.repeat(used_keys, rng.permutation(counts))
        others = rng.integers(0, 6, len(keys))
        values = np.where(rng.random(len(keys)) < 0.7, kind[keys], others)
        tables.append(pa.table({"k": keys, name: values.astype(str)}))
    require_coverage(*tables, "k", "x", "y", Dependency(("x",), "y"), 0.4, 100, 0.9)


@pytest.mark.lakes
def test_intervals_cover_in_samples_of_shared_tables(shared_lakes):
    with web_sources(["baseball"]).open() as folders:
        people, awards = (
            csv.read_csv(next(folders["baseball"].rglob(f"{name}.csv"))).select(columns)
            for name, columns in (
                ("People", ["playerID", "throws"]),
                ("AwardsPlayers", ["playerID", "awardID", "lgID"]),
            )
        )
    rule = Dependency(("awardID",), "lgID")
    require_coverage(people, awards, "playerID", "throws", "awardID", rule, 0.5, 10, 0.8)
