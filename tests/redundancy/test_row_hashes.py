"""Typed values hashed, rows of them counted, and the oracle that compares rows."""

import datetime as dt
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from pexeso.redundancy.row_hashes import (
    MIN_ROWS_PER_VALUE,
    NULL,
    HashedColumn,
    contained_rows,
    counted_rows,
    hashed_column,
    row_hashes,
    value_hashes,
)
from tests.redundancy.messy_lakes import messy_lake
from tests.redundancy.row_contents import read_contents
from tests.redundancy.row_oracle import containment

NAN = float("nan")
NUMBERS = ["0xf19be586c9f173f0", "0x770b920fdf0811a1"]
TEXT = ["0x93235a525975950f", "0x3e7d44b37f0a3127"]


def cells_of(hashes, token):
    return row_hashes(len(hashes), [HashedColumn(hashes)], [token])


EQUAL = [
    (pa.array([1, None], pa.int8()), pa.array([1, None], pa.uint64())),
    (pa.array([Decimal("1.50"), Decimal("2.00")]), pa.array([Decimal("1.5"), Decimal(2)])),
    (pa.array([Decimal("2.00")]), pa.array([2])),
    (pa.array([2**63], pa.uint64()), pa.array([Decimal(2**63)], pa.decimal256(60, 3))),
    (pa.array([Decimal("0E-9")], pa.decimal128(20, 9)), pa.array([0])),
    (
        pa.array([Decimal("1E-9")], pa.decimal128(20, 9)),
        pa.array([Decimal("1E-9")], pa.decimal128(20, 12)),
    ),
    (pa.array([Decimal(1200)], pa.decimal128(5, -2)), pa.array([1200])),
    (pa.array([0.5, -0.0, NAN], pa.float32()), pa.array([0.5, 0.0, -NAN], pa.float64())),
    (pa.array([7], pa.timestamp("s")), pa.array([7_000_000_000], pa.timestamp("ns"))),
    (pa.array([7], pa.timestamp("s", "UTC")), pa.array([7000], pa.timestamp("ms", "Asia/Tokyo"))),
    (pa.array([dt.date(2020, 1, 1)], pa.date32()), pa.array([dt.date(2020, 1, 1)], pa.date64())),
    (pa.array([7], pa.time32("s")), pa.array([7_000_000], pa.time64("us"))),
    (pa.array(["é", ""]).dictionary_encode(), pa.array(["é", ""], pa.large_string())),
    (pa.array([b"ab"], pa.binary(2)), pa.array([b"ab"], pa.large_binary())),
    (pa.array([[1, None]], pa.list_(pa.int8())), pa.array([[1, None]], pa.list_(pa.int64(), 2))),
    (
        pa.array([[("a", 1), ("b", 2)]], pa.map_(pa.string(), pa.int8())),
        pa.array([[("b", 2), ("a", 1)]], pa.map_(pa.string(), pa.int64())),
    ),
    (pa.array([[1], None], pa.list_view(pa.int8())), pa.array([[1], None])),
    (
        pa.array([[{"a": "x"}], None], pa.large_list_view(pa.struct([("a", pa.string_view())]))),
        pa.array([[{"a": "x"}], None]),
    ),
    (pa.array(["é" * 20, None], pa.string_view()), pa.array(["é" * 20, None])),
    (pa.array([b"ab" * 20, None], pa.binary_view()), pa.array([b"ab" * 20, None])),
    (
        pa.array([[("a", 1)], None], pa.map_(pa.string_view(), pa.int8())),
        pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int8())),
    ),
    (
        pa.array([Decimal("1.5"), Decimal(-2)], pa.decimal32(6, 2)),
        pa.array([Decimal("1.5"), Decimal(-2)], pa.decimal64(12, 3)),
    ),
    (pa.array([Decimal("1.5"), None], pa.decimal32(6, 2)), pa.array([Decimal("1.5"), None])),
    (
        pa.array([{"x": 1, "y": 2}], pa.struct([("x", pa.int64()), ("y", pa.int64())])),
        pa.array([{"x": 1, "y": 2}], pa.struct([("y", pa.int64()), ("x", pa.int64())])),
    ),
    (pa.array([{"x": 1}]), pa.array([{"x": Decimal("1.0")}])),
    (pa.array([None, None]), pa.array([None, None], pa.string())),
]

DIFFERENT = [
    pa.array([1]),
    pa.array([2]),
    pa.array([-1]),
    pa.array([1.0]),
    pa.array(["1"]),
    pa.array([b"1"]),
    pa.array([True]),
    pa.array([Decimal("1.5")]),
    pa.array([1.5]),
    pa.array([0.1], pa.float32()),
    pa.array([0.1]),
    pa.array([1], pa.date32()),
    pa.array([1], pa.timestamp("s")),
    pa.array([1], pa.timestamp("ns")),
    pa.array([1], pa.timestamp("s", "UTC")),
    pa.array([1], pa.time32("s")),
    pa.array([1], pa.duration("s")),
    pa.array([1], pa.duration("ms")),
    pa.array([2**62], pa.duration("ns")),
    pa.array([2**62], pa.duration("s")),
    pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    pa.array([None]),
    pa.array([""]),
    pa.array([[1]]),
    pa.array([[1, 1]]),
    pa.array([[1, 2]]),
    pa.array([[2, 1]]),
    pa.array([[None]], pa.list_(pa.int64())),
    pa.array([[]], pa.list_(pa.int64())),
    pa.array([[[]]], pa.list_(pa.list_(pa.int64()))),
    pa.array([[("a", 1), ("b", 2)]], pa.map_(pa.string(), pa.int64())),
    pa.array([[("a", 2), ("b", 1)]], pa.map_(pa.string(), pa.int64())),
    pa.array([[]], pa.map_(pa.string(), pa.int64())),
    pa.array([{"a": 1, "b": None}], pa.struct([("a", pa.int64()), ("b", pa.int64())])),
    pa.array([{"a": None, "b": 1}], pa.struct([("a", pa.int64()), ("b", pa.int64())])),
]


@pytest.mark.parametrize(("ours", "theirs"), EQUAL)
def test_equal_values_have_one_hash(ours, theirs):
    np.testing.assert_array_equal(value_hashes(ours), value_hashes(theirs))


def test_all_other_values_differ_in_both_halves():
    hashes = np.concatenate([value_hashes(values) for values in DIFFERENT])
    json = value_hashes(pa.array(["1", '"1"']), is_json=True)
    hashes = np.concatenate([hashes, json])
    for half in hashes.T:
        assert len(np.unique(half)) == len(hashes)


@pytest.mark.parametrize("values", [values for pair in EQUAL for values in pair] + DIFFERENT)
def test_a_slice_has_the_hashes_of_its_values(values):
    doubled = pa.concat_arrays([values, values, pa.nulls(1, values.type)])
    hashes = value_hashes(doubled)
    np.testing.assert_array_equal(hashes[len(values) : -1], value_hashes(values))
    np.testing.assert_array_equal(value_hashes(doubled.slice(1)), hashes[1:])
    np.testing.assert_array_equal(hashes[-1], NULL)


def test_the_hashes_are_the_same_on_every_machine():
    values = pa.array([None, 0, 1, 10**12])
    assert [
        hex(half) for half in value_hashes(values).sum(axis=0, dtype=np.uint64).tolist()
    ] == NUMBERS
    assert [hex(half) for half in value_hashes(pa.array(["pexeso"]))[0].tolist()] == TEXT


def test_a_value_is_another_cell_in_another_column():
    hashes = value_hashes(pa.array([1, None]))
    assert (cells_of(hashes, "a") != cells_of(hashes, "b")).all()


KINDS = (pa.int64(), pa.string(), pa.float64())
VALUES = ([0, 1, 2], [None, "a", "b"], [0.0, float("inf"), None])
N_LAKES = 500


def table(rng, n):
    return [[values[place] for place in rng.integers(0, len(values), n)] for values in VALUES]


def counted(columns, chosen):
    hashed = [hashed_column(pa.array(columns[place], KINDS[place])) for place in chosen]
    return counted_rows(row_hashes(len(columns[0]), hashed, [f"column {c}" for c in chosen]))


def test_counts_are_those_of_plain_tuples():
    rng = np.random.default_rng(16)
    for _ in range(N_LAKES):
        parent, child = table(rng, int(rng.integers(0, 30))), table(rng, int(rng.integers(0, 12)))
        chosen = rng.permutation(3)[: rng.integers(1, 4)].tolist()
        there, here = (
            Counter(zip(*(columns[c] for c in chosen), strict=True)) for columns in (parent, child)
        )
        ours, theirs = counted(child, chosen[::-1]), counted(parent, chosen)
        as_set = sum(n for row, n in here.items() if row in there)
        as_bag = sum(min(n, there[row]) for row, n in here.items())
        n = sum(here.values())
        assert contained_rows(ours, theirs) == as_set
        assert contained_rows(ours, theirs, "bag") == as_bag
        for max_missing in range(n + 1):
            expected = as_bag if n - as_bag <= max_missing else -1
            assert contained_rows(ours, theirs, "bag", max_missing=max_missing) == expected


@pytest.mark.parametrize("n_distinct", [1, 200, 300, 70_000])
def test_columns_with_few_values_are_coded_and_mean_the_same(n_distinct):
    values = pa.array(np.arange(MIN_ROWS_PER_VALUE * (n_distinct + 1)) % n_distinct)
    values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    column = hashed_column(values)
    widths = {1: 1, 200: 1, 300: 2, 70_000: 4}
    assert column.codes.dtype.itemsize == widths[n_distinct]
    assert len(column.hashes) == n_distinct + 1
    plain = hashed_column(pa.array(np.arange(n_distinct)))
    assert plain.codes is None or n_distinct == 1
    rows = row_hashes(len(values), [column], ["a"])
    again = row_hashes(n_distinct, [plain], ["a"])
    np.testing.assert_array_equal(rows[:n_distinct], again)
    np.testing.assert_array_equal(rows[-1:], row_hashes(1, [None], ["a"]))


def test_the_messy_lake_has_the_edges_that_it_declares(tmp_path):
    declared = messy_lake(tmp_path)
    lake = read_contents(tmp_path)
    assert set(containment(lake, row_count_gate=False)) == declared
    assert lake.left_out == {
        "no-columns.parquet": "no columns",
        "repeated.csv": "repeated names",
        "repeated.parquet": "repeated names",
    }
    gated = set(containment(lake))
    assert declared - gated == {
        (f"{parent}.parquet", "copy-repeated.parquet")
        for parent in ("copy-1", "copy-2", "copy-rows", "copy-columns")
    }
    # As bags, no table of four rows has the repeated ones as often.
    assert set(containment(lake, semantics="bag", row_count_gate=False)) == gated
