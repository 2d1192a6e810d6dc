"""Correlations: the worked examples on joined tables, and their definition row by row."""

import math

import numpy as np
import pyarrow as pa
import pytest

from pexeso.errors import InputError
from pexeso.joins import measures
from pexeso.joins.measures import CorrelationOfCounts, bins_of, correlation
from tests.acquisition import oracle
from tests.acquisition.motivating_tables import TABLES, joined


def join_of(first, *others):
    result = TABLES[first]
    for name, on in others:
        result = joined(result, TABLES[name], on)
    return result


W4 = [
    (join_of("DS", ("D1", ["Zipcode"]), ("D2", ["State"])), 6, 0),
    (join_of("D4", ("D3", ["Gender"])), 10, 0.144484),
    (join_of("D4", ("D3", ["Race"])), 6, 0.333333),
    (join_of("D4", ("D3", ["Gender", "Race"])), 6, 0.333333),
    (join_of("D4", ("D3", ["Gender"]), ("DS", ["Age"])), 13, 0.141620),
    (join_of("D4", ("D3", ["Race"]), ("DS", ["Age"])), 9, 0.197160),
    (join_of("D4", ("D3", ["Gender", "Race"]), ("DS", ["Age"])), 9, 0.197160),
    (TABLES["D5"], 3, 0.918296),
    (join_of("DS", ("D5", ["Age"])), 7, 0.591673),
]


@pytest.mark.parametrize(("table", "n_rows", "expected"), W4)
def test_w4_options_of_the_introduction(table, n_rows, expected):
    assert table.num_rows == n_rows
    assert correlation(table, ["Age"], ["Disease"]) == pytest.approx(expected, abs=1e-6)


def test_w8_with_y():
    table = pa.table({"x": [0, 1, 2, 3], "y": ["a", "a", "b", "b"]})
    value = correlation(table, ["x"], ["y"], numeric=["x"])
    assert value == pytest.approx(0.811278, abs=1e-6)


def drawn(rng, n):
    return pa.table(
        {
            "a": pa.array(rng.choice(["u", "v", None], n), pa.string()),
            "b": rng.integers(0, 3, n),
            "c": rng.integers(0, 3, n).astype(str),
            "x": pa.array([None if v < 0 else v / 4 for v in rng.integers(-2, 9, n).tolist()]),
        }
    )


def defined(table, categorical, numbers, y):
    rows = table.to_pylist()
    pairs = [(tuple(r[a] for a in categorical), tuple(r[a] for a in y)) for r in rows]
    total = oracle.mutual_information(pairs)
    for name in numbers:
        kept = [
            (r[name], pair[1]) for r, pair in zip(rows, pairs, strict=True) if r[name] is not None
        ]
        groups = {code: [v for v, other in kept if other == code] for _, code in kept}
        left = sum(len(g) * oracle.cumulative_entropy(g) for g in groups.values())
        if kept:
            total += oracle.cumulative_entropy([v for v, _ in kept]) - left / len(kept)
    return total


def test_sets_of_both_kinds_follow_the_definition_on_join_results():
    rng = np.random.default_rng(0)
    for _ in range(60):
        left, right = drawn(rng, 6).select(["a", "b", "x"]), drawn(rng, 6).select(["b", "c"])
        table = joined(left, right, ["b"])
        for x, y in ((["a"], ["c"]), (["a", "x"], ["c"]), (["x"], ["c", "a"]), (["x", "b"], ["a"])):
            value = correlation(table, x, y, numeric=["x"])
            expected = defined(table, [n for n in x if n != "x"], [n for n in x if n == "x"], y)
            assert value == pytest.approx(expected, abs=1e-12)
            assert value >= 0


@pytest.mark.usefixtures("three_bins")
def test_rows_with_counts_are_the_same_as_rows_repeated():
    rng = np.random.default_rng(1)
    for _ in range(30):
        table, counts = drawn(rng, 10), rng.integers(0, 4, 10)
        whole = table.take(pa.array(np.repeat(np.arange(10), counts)))
        for x, y in ((["a"], ["x"]), (["a", "x"], ["b"])):
            options = {"numeric": ["x"]}
            value = correlation(table, x, y, counts=counts, **options)
            assert value == pytest.approx(correlation(whole, x, y, **options), abs=1e-12)


@pytest.mark.usefixtures("three_bins")
def test_many_counts_of_the_same_rows_give_what_each_gives():
    rng = np.random.default_rng(5)
    table = drawn(rng, 30)
    options = {"numeric": ["x"]}
    for x, y in ((["a"], ["x", "c"]), (["a", "x"], ["b"]), (["x"], ["c"])):
        of_counts = CorrelationOfCounts(table, x, y, **options)
        for _ in range(5):
            counts = rng.integers(0, 3, 30)
            kept = table.filter(pa.array(counts > 0))
            expected = correlation(kept, x, y, counts=counts[counts > 0], **options)
            assert of_counts(counts) == expected
    cells = CorrelationOfCounts(table, ["a"], ["c"]).cells(counts)
    rows = table.select(["a", "c"]).to_pylist()
    assert ((cells < 0) == (counts == 0)).all()
    for i, j in zip(*np.nonzero(counts[:, None] * counts > 0), strict=True):
        assert (cells[i] == cells[j]) == (rows[i] == rows[j])


def test_many_numbers_of_y_are_cut_into_bins_of_equally_many_rows(monkeypatch):
    table = pa.table({"x": ["a"] * 4 + ["b"] * 4, "y": [1, 2, 3, 4, 5, 5, 5, 9]})
    # Four bins of two rows: 1 2 | 3 4 | 5 5 5 | 9, equal numbers together.
    monkeypatch.setattr(measures, "Y_BINS", 4)
    assert numbers_by_bin(table) == [[1, 2], [3, 4], [5], [9]]
    monkeypatch.setattr(measures, "Y_BINS", 7)
    assert numbers_by_bin(table) == [[1], [2], [3], [4], [5], [9]]


def numbers_by_bin(table):
    """Return the distinct numbers of each bin."""
    numbers = table["y"].to_numpy().astype(float)
    bins = bins_of(numbers, np.ones(table.num_rows, np.int64)).tolist()
    groups = {}
    for value, code in zip(table["y"].to_pylist(), bins, strict=True):
        groups.setdefault(code, []).append(value)
    return [sorted(set(group)) for group in groups.values()]


def test_near_unique_numbers_of_y_do_not_determine_x():
    rng = np.random.default_rng(3)
    table = pa.table({"x": rng.integers(0, 2, 4000), "y": rng.random(4000)})
    assert correlation(table, ["x"], ["y"], numeric=["y"]) < 0.01
    assert correlation(table, ["x"], ["y"]) > 0.99


def test_a_table_without_rows_and_a_constant():
    table = pa.table({"x": pa.array([], pa.int64()), "y": pa.array([], pa.string())})
    assert correlation(table, ["x"], ["y"]) == correlation(table, ["x"], ["y"], numeric=["x"]) == 0
    table = pa.table({"x": [3, 3], "y": [1, 2]})
    value = correlation(table, ["x"], ["y"], numeric=["x", "y"])
    assert value == 0


def test_refused_input():
    table = pa.table({"x": ["a"], "y": [math.inf]})
    for call, message in (
        (lambda: correlation(table, ["x"], ["y"], numeric=["x"]), "must hold numbers"),
        (lambda: correlation(table, ["x"], ["y"], numeric=["y"]), "finite"),
    ):
        with pytest.raises(InputError, match=message):
            call()
