"""Positions of keys against the standard library's MD5, and against Spark's."""

import datetime
import hashlib
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.acquisition.key_hashes import hash_positions, md5_52, with_key_tokens
from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.lake.tokens import tokens_of


def position(seed, names, tokens):
    text = "\x1f".join([str(seed), *names, *tokens])
    return int(hashlib.md5(text.encode()).hexdigest()[:13], 16) / 16**13


def drawn(rng, n):
    letters = list("abz019 -_.\u00e9\u00df\u4e2d\U0001f600\x00")
    texts = ["x" + "".join(rng.choice(letters, rng.integers(0, 40))) + "x" for _ in range(n)]
    zeros = [f"{number:07d}" for number in rng.integers(0, 10**6, n)]
    return pa.table({"t\u00e9xt": texts, "zeros": zeros, "n": rng.integers(-(10**9), 10**9, n)})


def test_ac20_ten_thousand_keys():
    table = drawn(np.random.default_rng(0), 10_000)
    names = ["n", "t\u00e9xt", "zeros"]
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    expected = [position(-5, names, [str(number), *texts]) for number, *texts in rows]
    assert hash_positions(table, names[::-1], seed=-5).tolist() == expected
    for name in names:
        expected = [position(7, [name], [str(value)]) for value in table[name].to_pylist()]
        assert hash_positions(table, [name], seed=7).tolist() == expected


@given(st.lists(st.text(max_size=70), max_size=4))
def test_digests_of_texts(texts):
    expected = [int(hashlib.md5(text.encode()).hexdigest()[:13], 16) for text in texts]
    assert md5_52(pa.array(texts, pa.large_string())).tolist() == expected
    behind = pa.array(["before", *texts], pa.large_string())[1:]
    assert md5_52(behind).tolist() == expected


def test_digests_of_each_length_around_a_block():
    texts = ["a" * n for n in range(260)]
    expected = [int(hashlib.md5(text.encode()).hexdigest()[:13], 16) for text in texts]
    assert md5_52(pa.array(texts, pa.large_string())).tolist() == expected


def test_p5_equal_keys_in_several_forms_have_one_position():
    forms = [
        pa.array([1, 2, None]),
        pa.array([1.0, 2.0, math.nan]),
        pa.array(["1", " 2.0 ", "N/A"]),
        pa.array(["1", "2", ""]).dictionary_encode(),
        pa.chunked_array([["1.00"], ["2", None]]),
    ]
    for form in forms:
        positions = hash_positions(pa.table({"k": form}), ["k"])
        assert positions[:2].tolist() == [position(0, ["k"], [value]) for value in "12"]
        assert np.isnan(positions[2])
    positions = hash_positions(pa.table({"k": ["01", "1", "1e0"]}), ["k"])
    assert len(set(positions.tolist())) == 3


def test_keys_of_all_types_are_hashed_by_their_tokens():
    moments = [datetime.date(2020, 3, 5), None]
    columns = [
        pa.array([0.1, -0.0], pa.float32()),
        pa.array([0.1, 0.0], pa.float16()),
        pa.array([Decimal("1.00"), Decimal("0.10")]),
        pa.array([True, False]),
        pa.array(moments),
        pa.array(moments).cast(pa.timestamp("us")),
        pa.array([2**64 - 1, 0], pa.uint64()),
        pa.array([b"ab", None], pa.binary()),
    ]
    for column in columns:
        tokens = tokens_of(column).to_pylist()
        positions = hash_positions(pa.table({"k": column}), ["k"])
        for token, one in zip(tokens, positions.tolist(), strict=True):
            assert math.isnan(one) if token is None else one == position(0, ["k"], [token])


def test_a_missing_cell_of_several_leaves_no_position():
    table = pa.table({"a": ["x", None, "y"], "b": [1, 1, None]})
    assert np.isnan(hash_positions(table, ["a", "b"])).tolist() == [False, True, True]
    assert hash_positions(table.slice(3), ["a", "b"]).shape == (0,)
    assert np.isnan(hash_positions(pa.table({"a": [None, None]}), ["a"])).all()


def test_a_part_of_a_table_has_the_positions_of_the_whole():
    table = drawn(np.random.default_rng(1), 50)
    whole = hash_positions(table, ["n", "zeros"], seed=3)
    for batch, start in zip(table.to_batches(max_chunksize=20), (0, 20, 40), strict=True):
        positions = hash_positions(batch, ["zeros", "n"], seed=3)
        assert positions.tolist() == whole[start : start + 20].tolist()


def test_positions_are_uniform_and_independent_between_seeds_and_names():
    table = pa.table({"a": range(20_000), "b": range(20_000)})
    one, two, other = (
        hash_positions(table, [name], seed=seed) for name, seed in (("a", 0), ("a", 1), ("b", 0))
    )
    for positions in (one, two, other):
        share = np.bincount((positions * 10).astype(int)) / 20_000
        assert np.abs(share - 0.1).max() < 4 * math.sqrt(0.09 / 20_000)
    for positions in (two, other):
        assert abs(np.corrcoef(one, positions)[0, 1]) < 4 / math.sqrt(20_000)


def test_tokens_of_keys():
    table = pa.table({"b": [1.5, None], "a": ["x ", "?"]})
    assert with_key_tokens(table, ["a", "b"]).to_pydict() == {"b": ["1.5", None], "a": ["x", None]}


def test_ac20_spark_has_the_same_positions(spark):
    table = drawn(np.random.default_rng(2), 300)
    names = ["n", "t\u00e9xt", "zeros"]
    tokens = with_key_tokens(table, names).select(names)
    frame = spark.createDataFrame(tokens.to_pandas())
    columns = ", ".join([*(f"'{name}'" for name in names), *(f"`{name}`" for name in names)])
    text = f"concat_ws(char(31), '7', {columns})"
    position = f"conv(substr(md5({text}), 1, 13), 16, 10) / pow(16, 13) as h"

    def with_positions(batches):
        for batch in batches:
            positions = hash_positions(batch, names, seed=7)
            yield pa.RecordBatch.from_pydict({"h": batch["h"], "found": positions})

    frame = frame.selectExpr("*", position).mapInArrow(with_positions, "h double, found double")
    rows = frame.collect()
    assert [row.h for row in rows] == hash_positions(table, names, seed=7).tolist()
    assert [row.found for row in rows] == [row.h for row in rows]


def test_refused_input():
    table = pa.table({"a": ["x"], "l": [[1]]})
    with pytest.raises(ColumnNotFoundError, match="'b'"):
        hash_positions(table, ["b"])
    with pytest.raises(InputError, match="Flatten"):
        hash_positions(table, ["l"])
