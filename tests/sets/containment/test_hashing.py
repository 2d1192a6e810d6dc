"""Tokens as 64-bit numbers, and signatures: estimates and unions."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from synthetic_sets import ragged

from pexeso.sets.containment.hashing import (
    EMPTY,
    distinct_sorted,
    hash_tokens,
    seeds_of,
    signatures,
    similarities,
)

# By the reference implementation of XXH64, with seed 42.
REFERENCE = {
    "": 0x98B1582B0977E704,
    "a": 0x88E4FE59ADF7B0CC,
    "abc": 0x13C1D910702770E6,
    "Zürich": 0xE1784902DE661C96,
    "12345678": 0x5F3E6A93C99D6E02,
    "Nova Scotia": 0x8B4B29509ADD5E7B,
    "Kruger Inc., Québec": 0xEEECED2C3153E3AA,
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": 0xE82DE6C821DF41DE,
    "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy": 0x483153DE51881DA4,
    "Newfoundland and Labrador, Canada: Newfoundland and Labrador, Canada: Newfoundland and "
    "Labrador, Canada: ": 0x5FD0C6CBE0D81089,
}


def test_hashes_are_those_of_the_reference_implementation():
    hashes = hash_tokens(pa.array(list(REFERENCE)))
    assert hashes.tolist() == list(REFERENCE.values())


@given(st.lists(st.text(max_size=80), max_size=20), st.integers(0, 5))
def test_hashes_do_not_depend_on_slices_or_the_width_of_offsets(texts, skip):
    whole = hash_tokens(pa.array(texts, pa.large_string())).tolist()
    assert hash_tokens(pa.array(texts, pa.string())[skip:]).tolist() == whole[skip:]


@given(st.lists(st.lists(st.integers(0, 6) | st.just(2**64 - 1), max_size=8), max_size=8))
def test_sets_are_sorted_and_made_distinct(sets):
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    hashes = np.array([token for one in sets for token in one], np.uint64)
    kept, ends = distinct_sorted(hashes, offsets)
    sorted_sets = [kept[a:b].tolist() for a, b in pairwise(ends)]
    assert sorted_sets == [sorted(set(one)) for one in sets]
    assert hashes.tolist() == [
        token for one in sets for token in one
    ]  # what was given is as it was


def test_hashes_are_those_of_spark(spark):
    from pyspark.sql import functions

    texts = [letter * length for letter in ("a", "é", "語", "🙂") for length in range(65)]
    texts += [f"Nova Scotia {n} \t\n\0 {n * 'x'}" for n in range(40)]
    frame = spark.createDataFrame(
        [(number, text) for number, text in enumerate(texts)], "number int, text string"
    )
    rows = frame.select("number", functions.xxhash64("text").alias("hash")).collect()
    there = np.array([row.hash for row in sorted(rows, key=lambda row: row.number)], np.int64)
    assert hash_tokens(pa.array(texts)).tolist() == there.view(np.uint64).tolist()


SEEDS = seeds_of(16, seed=1)
TOKENS = st.lists(st.integers(0, 2**64 - 1), max_size=12)


def mixed(number: int) -> int:
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) % 2**64
    return number ^ (number >> 31)


def signed(*sets: list[int]) -> np.ndarray:
    return signatures(*ragged([np.array(one, np.uint64) for one in sets]), SEEDS)


@given(st.lists(TOKENS, max_size=6))
def test_a_signature_is_the_minimum_of_each_function(sets):
    made = signed(*sets)
    for row, tokens in zip(made, sets, strict=True):
        expected = [
            min((mixed(token ^ int(seed)) >> 32 for token in tokens), default=int(EMPTY))
            for seed in SEEDS
        ]
        assert row.tolist() == expected


def test_fewer_functions_are_a_beginning_of_more():
    assert (seeds_of(64, 3)[:16] == seeds_of(16, 3)).all()
    assert not (seeds_of(16, 4) == seeds_of(16, 3)).any()


def test_acceptance_1_the_mean_error_of_200_pairs_is_that_of_the_binomial_distribution():
    rng = np.random.default_rng(8)
    m, sets, exact = 256, [], []
    for _ in range(200):
        pool = rng.integers(0, 2**63, 300, dtype=np.uint64)
        begin, length = rng.integers(0, 150), rng.integers(50, 150)
        sets += [pool[:150], pool[begin : begin + length]]
        shared = max(0, 150 - begin) if begin + length > 150 else length
        exact.append(shared / (150 + length - shared))
    made = signatures(*ragged(sets), seeds_of(m, 1))
    estimates = np.array(
        [similarities(made, made[2 * i + 1], np.array([2 * i]))[0] for i in range(200)]
    )
    exact = np.array(exact)
    assert np.abs(estimates - exact).mean() <= 1.2 * np.sqrt(exact * (1 - exact) / m).mean()
    assert abs((estimates - exact).mean()) < 0.005
