"""Two sampled tables: exact at rate 1, and covered by intervals in most of many samples."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.dance_published.samples import SampledPair, correlated_sample, key_summary
from pexeso.acquisition.key_hashes import KeyTest
from pexeso.acquisition.quality import Dependency, quality
from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.joins.measures.correlation import correlation
from tests.acquisition import coverage_cases
from tests.acquisition.motivating_tables import TABLES, joined
from tests.acquisition.oracle import table_informativeness


def test_w4_at_the_rate_one():
    pair = SampledPair(TABLES["DS"], TABLES["D1"], ["Zipcode"], 1.0)
    estimate = pair.informativeness()
    assert estimate.value == estimate.low == estimate.high == pytest.approx(0.127783, abs=1e-6)
    pair = SampledPair(TABLES["D5"], TABLES["DS"], ["Age"], 1.0)
    assert pair.correlation(["Age"], ["Disease"]).value == pytest.approx(0.591673, abs=1e-6)


def test_it_measures_the_join_with_keys_as_tokens():
    rng = np.random.default_rng(0)
    left = pa.table({"k": rng.integers(0, 40, 200), "x": rng.integers(0, 3, 200).astype(str)})
    right = pa.table({"k": rng.integers(0, 60, 300), "y": rng.integers(0, 4, 300).astype(str)})
    texts = right.set_column(0, "k", right["k"].cast(pa.float64()))
    pair = SampledPair(left, texts, ["k"], 1.0)
    whole = joined(left, right, ["k"])
    assert pair.informativeness().value == table_informativeness(left, right, ["k"]).value
    assert pair.correlation(["x"], ["y"]).value == pytest.approx(
        correlation(whole, ["x"], ["y"]), rel=1e-12
    )
    dependencies = [Dependency(("k",), "y"), Dependency(("y",), "x")]
    assert pair.quality(dependencies).value == quality(whole, dependencies)
    rows, counts = pair.joined(["y"])
    assert (rows.column_names, int(counts.sum())) == (["k", "y"], whole.num_rows)


def test_rows_without_a_key_do_not_count():
    left = pa.table({"k": ["a", "b", "?", None], "x": ["1", "2", "3", "4"]})
    right = pa.table({"k": ["a", "c", "?", None], "y": ["1", "2", "3", "4"]})
    pair = SampledPair(left, right, ["k"], 1.0)
    expected = table_informativeness(left.slice(0, 2), right.slice(0, 2), ["k"]).value
    assert pair.informativeness().value == expected
    assert pair.joined(["x", "y"])[0].to_pylist() == [{"k": "a", "x": "1", "y": "1"}]


def test_a_missing_giant_is_known_from_the_summaries():
    """One key has nine tenths of the join; the samples that lack it look like all others."""
    keys = np.concatenate([np.arange(2000), np.zeros(1000, int)])
    left = pa.table({"k": keys, "x": (keys == 0).astype(str)})
    right = pa.table({"k": keys[:2050], "y": (keys[:2050] % 3).astype(str)})
    n_missing = 0
    for seed in range(12):
        tests = [KeyTest(("k",), 0.2)]
        tables = [correlated_sample(table, tests, seed=seed).rows for table in (left, right)]
        if "0" in tables[0]["k"].cast(pa.string()).to_pylist():
            continue
        one, two = (key_summary(table, ["k"], seed=seed) for table in (left, right))
        blind = SampledPair(*tables, ["k"], 0.2, seed=seed)
        warned = SampledPair(*tables, ["k"], 0.2, seed=seed, summaries=(one, two))
        for measure in (
            lambda pair: pair.informativeness(),
            lambda pair: pair.correlation(["x"], ["y"]),
            lambda pair: pair.quality([Dependency(("y",), "x")]),
        ):
            assert measure(blind).reliable
            assert not measure(warned).reliable
            assert "heavy" in measure(warned).reason
        n_missing += 1
    assert n_missing > 5


def test_intervals_cover_the_exact_values_in_most_of_100_samples():
    """A short form of the measurement with 1000 samples, for one seed: of 95 %, 3 deviations."""
    pair = replace(coverage_cases.random_pairs(0, n_keys=300)[2], numbers=())
    rows = coverage_cases.measure(100, 0, cases=[pair], rates=[0.4])
    assert {row["measure"] for row in rows} == {"JI", "CORR", "Q"}
    for row in rows:
        assert row["coverage"] >= 0.9, row
        assert row["reliable"] > 0.2, row
        assert row["mean_width"] < 1, row


@pytest.mark.lakes
def test_intervals_cover_in_samples_of_shared_tables(shared_lakes):
    pair = next(pair for pair in coverage_cases.lake_pairs() if pair.name == "people, awards")
    for row in coverage_cases.measure(10, 0, cases=[pair], rates=[0.5]):
        assert row["coverage"] >= 0.8, row


def test_refused_input():
    left, right = pa.table({"k": ["a"], "x": ["b"]}), pa.table({"k": ["a"], "x": ["c"]})
    pair = SampledPair(left, right, ["k"], 1.0)
    with pytest.raises(InputError, match="in both"):
        pair.correlation(["x"], ["k"])
    with pytest.raises(ColumnNotFoundError, match="'z'"):
        pair.correlation(["k"], ["z"])
    with pytest.raises(InputError, match="rate"):
        SampledPair(left, right, ["k"], 0.0)
