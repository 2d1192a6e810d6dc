"""Entropies, correlations, sums and joins as counts, against their definitions row by row."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from pexeso.acquisition.quality import Dependency
from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.joins import measures
from pexeso.joins.measures import (
    CorrelationOfCounts,
    bins_of,
    conditional_cumulative_entropy,
    correlation,
    cumulative_entropy,
    entropy,
    exact_sum,
    information,
    join_counts,
    log2,
    merged_rows,
    mutual_information,
)
from tests.acquisition import oracle
from tests.acquisition.motivating_tables import TABLES, joined
from tests.acquisition.oracle import quality


def counted(table, counts=None):
    rows = [tuple(row.values()) for row in table.to_pylist()]
    totals = Counter()
    for row, n in zip(rows, [1] * len(rows) if counts is None else counts.tolist(), strict=True):
        totals[row] += n
    return +totals


def drawn_keys(rng, n, names):
    values = ["u", "v", "w", None]
    return pa.table({name: pa.array(rng.choice(values, n), pa.string()) for name in names})


def plain_join(left, right, on):
    for name in on:
        left = left.filter(left[name].is_valid())
    return joined(left, right, on)


def test_it_is_the_join_row_by_row():
    rng = np.random.default_rng(0)
    for _ in range(100):
        left, right = drawn_keys(rng, 9, "abk"), drawn_keys(rng, 9, "cdk")
        rows, counts = join_counts(left, right, ["k"], left_names=["a"], right_names=["c", "d"])
        whole = plain_join(left, right, ["k"]).select(["k", "a", "c", "d"])
        assert counted(rows, counts) == counted(whole)
        assert len(counted(rows)) == rows.num_rows


def test_measures_of_a_chain_of_joins_are_those_of_its_rows():
    rng = np.random.default_rng(1)
    chosen = [Dependency(("a",), "d"), Dependency(("d",), "c")]
    checked = 0
    for _ in range(40):
        one, two, three = (
            drawn_keys(rng, 7, "ak"),
            drawn_keys(rng, 7, "klc"),
            drawn_keys(rng, 7, "ld"),
        )
        rows, counts = join_counts(one, two, ["k"], left_names=["a"], right_names=["l", "c"])
        options = {"left_names": ["a", "c"], "right_names": ["d"], "left_counts": counts}
        rows, counts = join_counts(rows, three, ["l"], **options)
        whole = plain_join(plain_join(one, two, ["k"]), three, ["l"])
        assert counts.sum() == whole.num_rows
        assert quality(rows, chosen, counts) == quality(whole, chosen)
        value = correlation(rows, ["a", "c"], ["d"], counts=counts)
        assert value == pytest.approx(correlation(whole, ["a", "c"], ["d"]), abs=1e-12)
        checked += whole.num_rows > rows.num_rows
    assert checked > 20


def test_merged_rows_with_counts():
    table = pa.table({"a": ["x", None, "x", None], "b": [1, 1, 2, 1]})
    rows, counts = merged_rows(table, ["a"], np.array([3, 1, 4, 0]))
    assert (rows.to_pydict(), counts.tolist()) == ({"a": ["x", None]}, [7, 1])
    rows, counts = merged_rows(table.slice(4), ["a", "b"])
    assert (rows.num_rows, counts.tolist()) == (0, [])


def test_a_join_without_a_match():
    left, right = pa.table({"k": ["a", None]}), pa.table({"k": ["b", None], "c": [1, 2]})
    rows, counts = join_counts(left, right, ["k"], right_names=["c"])
    assert (rows.column_names, rows.num_rows, counts.tolist()) == (["k", "c"], 0, [])
    assert quality(rows, [Dependency(("k",), "c")], counts) == 0


def test_refused_joins():
    table = pa.table({"k": ["a"], "c": [1]})
    with pytest.raises(InputError, match="Rename"):
        join_counts(table, table, ["k"], left_names=["c"], right_names=["c"])
    with pytest.raises(InputError, match="at least one column"):
        join_counts(table, table, [])
    with pytest.raises(ColumnNotFoundError, match="'d'"):
        join_counts(table, table, ["k"], right_names=["d"])
    with pytest.raises(InputError, match="Join a sample"):
        join_counts(table, pa.concat_tables([table] * 3), ["k"], left_counts=np.array([2**52]))


def drawn_pairs(rng):
    n = rng.integers(1, 12)
    x, y = rng.integers(0, 4, n), rng.integers(0, 3, n)
    counts = rng.integers(0, 4, n)
    rows = list(zip(np.repeat(x, counts).tolist(), np.repeat(y, counts).tolist(), strict=True))
    return x, y, counts, rows


def test_they_are_the_definitions_on_rows():
    rng = np.random.default_rng(0)
    for _ in range(300):
        x, y, counts, rows = drawn_pairs(rng)
        of_x = np.bincount(x, counts)
        near = pytest.approx
        assert entropy(of_x) == near(oracle.entropy(a for a, _ in rows), abs=1e-12)
        expected = oracle.mutual_information(rows)
        assert mutual_information(x, y, counts) == near(expected, abs=1e-12)


def test_the_order_of_rows_and_of_sides_does_not_change_a_bit():
    rng = np.random.default_rng(1)
    for _ in range(50):
        x, y, counts = rng.integers(0, 5, (3, 60))
        order = rng.permutation(60)
        value = mutual_information(x, y, counts)
        assert mutual_information(y, x, counts) == value
        assert mutual_information(x[order], y[order], counts[order]) == value


def test_what_is_determined_has_no_entropy_left_to_the_last_bit():
    y = np.random.default_rng(2).integers(0, 7, 100)
    assert mutual_information(y, np.zeros(100, int)) == 0
    assert mutual_information(*np.indices((7, 9)).reshape(2, -1)) == 0


def test_no_row_has_no_entropy():
    assert entropy([]) == entropy([0]) == 0
    assert mutual_information([], []) == mutual_information([1], [1], [0]) == 0


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([0, 1], 0.5), ([0, 1, 2, 3], 1.311278), ([0, 0, 3], 1.169925), ([0, 3, 3], 1.584963)],
)
def test_w8_and_p7_cumulative_entropy(numbers, expected):
    assert cumulative_entropy(numbers) == pytest.approx(expected, abs=1e-6)


def test_w8_uniform_numbers():
    numbers = (np.arange(100_000) + 0.5) / 100_000
    assert cumulative_entropy(numbers) == pytest.approx(1 / (4 * math.log(2)), abs=1e-5)


def test_it_is_the_integral_and_the_mean_over_y():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = rng.integers(1, 12)
        numbers, y, counts = (
            rng.integers(-5, 6, n) / 2,
            rng.integers(0, 3, n),
            rng.integers(0, 4, n),
        )
        rows, groups = np.repeat(numbers, counts), np.repeat(y, counts)
        expected = oracle.cumulative_entropy(rows.tolist())
        assert cumulative_entropy(numbers, counts) == pytest.approx(expected, abs=1e-12)
        parts = [rows[groups == code].tolist() for code in range(3)]
        expected = sum(len(part) * oracle.cumulative_entropy(part) for part in parts)
        entropy = conditional_cumulative_entropy(numbers, y, counts)
        assert entropy * len(rows) == pytest.approx(expected, abs=1e-11)


def test_fewer_than_two_numbers():
    assert cumulative_entropy([]) == cumulative_entropy([5.0]) == 0


def drawn_numbers(rng, n):
    return rng.standard_normal(n) * 2.0 ** rng.integers(-60, 60, n)


def test_sums_are_exact_in_any_order():
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 50, 3000):
        values = drawn_numbers(rng, n)
        expected = float(sum(map(Fraction, values.tolist()), Fraction(0)))
        assert exact_sum(values) == expected
        assert exact_sum(rng.permutation(values)) == expected


def test_numbers_of_all_sizes_have_an_exact_sum():
    rng = np.random.default_rng(2)
    values = rng.standard_normal(3000) * 10.0 ** rng.integers(-300, 290, 3000)
    assert exact_sum(values) == math.fsum(values.tolist())


def test_sums_of_what_is_not_finite_are_those_of_the_standard_library():
    assert exact_sum(np.array([1.0, np.inf])) == np.inf
    assert np.isnan(exact_sum(np.array([np.nan, 1.0])))
    with pytest.raises(OverflowError, match="intermediate overflow"):
        exact_sum(np.array([1e308, 1e308]))


def test_what_cancels_leaves_the_rest():
    values = drawn_numbers(np.random.default_rng(1), 1000)
    assert exact_sum(np.concatenate([values, [2.0**-80], -values])) == 2.0**-80
    assert exact_sum(np.array([5e-324, 1e308, -1e308])) == 5e-324


def test_information_is_that_of_each_count():
    counts = np.random.default_rng(2).zipf(1.5, 2000).clip(1, 10**6)
    n = int(counts.sum())
    expected = math.fsum(c * math.log2(n / c) for c in counts.tolist())
    assert information(counts) == pytest.approx(expected, rel=1e-14)
    assert information(counts[:0]) == 0


def test_powers_of_two_are_exact():
    powers = np.arange(-60, 61)
    assert log2(2.0**powers).tolist() == powers.tolist()


def test_random_numbers_are_within_a_few_units_of_the_last_place():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.random(20_000) + 1e-9, rng.random(20_000) * 1e14 + 1])
    expected = np.array([math.log2(value) for value in values.tolist()])
    np.testing.assert_allclose(log2(values), expected, rtol=1e-15, atol=0)


def test_whole_numbers_and_their_ratios():
    n = np.arange(1, 5000)
    for values in (n, 5000 / n, n / (n + 1)):
        expected = [math.log2(value) for value in np.asarray(values, float).tolist()]
        np.testing.assert_allclose(log2(values), expected, rtol=2e-15, atol=0)


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


def test_refused_columns():
    table = pa.table({"x": ["a"], "y": [math.inf]})
    for call, message in (
        (lambda: correlation(table, ["x"], ["y"], numeric=["x"]), "must hold numbers"),
        (lambda: correlation(table, ["x"], ["y"], numeric=["y"]), "finite"),
    ):
        with pytest.raises(InputError, match=message):
            call()
