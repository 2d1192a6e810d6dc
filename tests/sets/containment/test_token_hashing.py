"""Tokens as 64-bit numbers."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import InputError
from pexeso.sets.containment.hashing import distinct_sorted, hash_tokens

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


@given(st.lists(st.text(max_size=80), max_size=20), st.integers(0, 5), st.integers(1, 7))
def test_hashes_do_not_depend_on_batches_slices_or_the_width_of_offsets(texts, skip, step):
    whole = hash_tokens(pa.array(texts, pa.large_string())).tolist()
    assert hash_tokens(pa.array(texts, pa.string())[skip:]).tolist() == whole[skip:]
    chunks = pa.chunked_array(
        [texts[i : i + step] for i in range(0, len(texts), step)], pa.string()
    )
    assert hash_tokens(chunks).tolist() == whole


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


def test_tokens_that_are_no_texts_are_refused():
    with pytest.raises(InputError, match=r"texts .*Got int64"):
        hash_tokens(pa.array([1, 2]))


def test_null_tokens_are_refused():
    with pytest.raises(InputError, match="1 of 2 are: leave them out"):
        hash_tokens(pa.array(["a", None]))


@pytest.mark.parametrize(
    ("hashes", "offsets", "message"),
    [
        (np.zeros(2, np.int64), np.array([0, 2]), "uint64 with one axis. Got int64"),
        ([1, 2], np.array([0, 2]), "Got list"),
        (np.zeros(2, np.uint64), np.array([0, 2], np.int32), "int64, one longer"),
        (np.zeros(2, np.uint64), np.array([], np.int64), "one longer"),
        (np.zeros(2, np.uint64), [0, 2], "Got list"),
        (np.zeros(2, np.uint64), np.array([0, 3]), "end with the number of tokens, 2"),
        (np.zeros(2, np.uint64), np.array([0, 2, 1, 2]), "never sink"),
        (np.zeros(2, np.uint64), np.array([1, 2]), "begin with 0"),
    ],
)
def test_what_is_no_ragged_list_is_refused(hashes, offsets, message):
    with pytest.raises(InputError, match=message):
        distinct_sorted(hashes, offsets)


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
