"""Quality of tables by dependencies, and their discovery."""

from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from pexeso.acquisition import quality as module
from pexeso.acquisition.quality import (
    Dependency,
    approximate_dependencies,
    discovered,
    sampled,
    text_ranks,
)
from pexeso.acquisition.tables import MarketTable
from pexeso.errors import ColumnNotFoundError
from pexeso.joins.measures import column_of
from tests.acquisition.motivating_tables import TABLES, joined
from tests.acquisition.oracle import correct_rows, quality


def on(left, right):
    return Dependency(tuple(left), right)


def correct(rows, dependency):
    groups = defaultdict(list)
    for i, row in enumerate(rows):
        groups[tuple(row[name] for name in dependency.left)].append(i)
    kept = set()
    for group in groups.values():
        counts = Counter(rows[i][dependency.right] for i in group)
        winner = min(counts, key=lambda value: (-counts[value], str(value)))
        kept |= {i for i in group if rows[i][dependency.right] == winner}
    return kept


def w2_tables(last):
    first = [("a1", "b1", f"c{i + 3}") for i in range(1, 997)]
    first += [("a1", "b2", "c1"), ("a1", "b2", "c2"), ("a1", "b3", "c3"), ("a1", "b3", "c3")]
    second = [("c1", "d1", "e1"), ("c1", "d1", "e1"), ("c2", "d1", "e2"), ("c3", "d1", "e2")]
    second.append((last, "d1", "e2"))
    names = ("ABC", first), ("CDE", second)
    return [pa.table(dict(zip(n, zip(*rows, strict=True), strict=True))) for n, rows in names]


def drawn(rng, n, names="abc", n_values=3):
    return pa.table({name: rng.integers(0, n_values, n).astype(str) for name in names})


def test_w1_quality_of_one_dependency():
    table = pa.table({"A": ["a1"] * 4 + ["a2"], "B": ["b1", "b1", "b2", "b3", "b2"]})
    assert correct_rows(table, on("A", "B")).tolist() == [True, True, False, False, True]
    assert quality(table, [on("A", "B")]) == 0.6


@pytest.mark.parametrize(
    ("last", "n_rows", "of_a_b", "expected"), [("c4", 6, 3, 1 / 6), ("c1000", 5, 3, 0.2)]
)
def test_w2_quality_and_join(last, n_rows, of_a_b, expected):
    first, second = w2_tables(last)
    assert quality(first, [on("A", "B")]) == 0.996
    assert quality(second, [on("D", "E")]) == 0.6
    table = joined(first, second, ["C"])
    assert table.num_rows == n_rows
    assert correct_rows(table, on("A", "B")).sum() == of_a_b
    assert correct_rows(table, on("D", "E")).sum() == n_rows - 2
    assert quality(table, [on("A", "B"), on("D", "E")]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("names", "expected"), [(["Gender"], 0.7), (["Race"], 2 / 3), (["Gender", "Race"], 1 / 3)]
)
def test_w5_quality(names, expected):
    table = joined(TABLES["D3"], TABLES["D4"], names)
    dependencies = [on([name], "Disease") for name in names]
    assert quality(table, dependencies) == pytest.approx(expected, abs=1e-12)


def test_it_is_the_definition_on_join_results():
    rng = np.random.default_rng(0)
    checked = 0
    for _ in range(200):
        table = joined(drawn(rng, 6, "abc"), drawn(rng, 6, "cde"), ["c"])
        dependencies = [on("a", "b"), on("ac", "d"), on("d", "e"), on("", "a")]
        chosen = [dependencies[i] for i in rng.permutation(4)[: rng.integers(1, 5)]]
        rows = table.to_pylist()
        for one in chosen:
            assert set(np.flatnonzero(correct_rows(table, one)).tolist()) == correct(rows, one)
        if rows:
            kept = set.intersection(*(correct(rows, one) for one in chosen))
            assert quality(table, chosen) == len(kept) / len(rows)
            checked += 1
    assert checked > 150


def test_rows_with_counts_are_the_same_as_rows_repeated():
    rng = np.random.default_rng(2)
    chosen = [on("a", "b"), on("b", "c")]
    for _ in range(60):
        table, counts = drawn(rng, 8), rng.integers(0, 4, 8)
        whole = table.take(pa.array(np.repeat(np.arange(8), counts)))
        assert quality(table, chosen, counts) == quality(whole, chosen)
        dependencies = approximate_dependencies(table, counts=counts, max_error=0.3)
        assert dependencies == approximate_dependencies(whole, max_error=0.3)


def test_the_order_of_rows_changes_nothing():
    rng = np.random.default_rng(3)
    for _ in range(50):
        table = drawn(rng, 12)
        order = rng.permutation(12)
        flags = correct_rows(table, on("a", "b"))
        assert (
            correct_rows(table.take(pa.array(order)), on("a", "b")).tolist()
            == flags[order].tolist()
        )


def test_no_rows_and_no_dependencies():
    table = pa.table({"a": ["x"], "b": ["y"]})
    assert quality(table, []) == 1
    assert quality(table.slice(1), [on("a", "b")]) == quality(table.slice(1), []) == 0


def test_dependencies_found_are_the_minimal_ones_that_hold():
    rng = np.random.default_rng(4)
    n_found = 0
    for _ in range(60):
        table = drawn(rng, 10, "abcd")
        rows = table.to_pylist()
        expected = set()
        for right in "abcd":
            others = [name for name in "abcd" if name != right]
            for left in (left for n in (1, 2) for left in combinations(others, n)):
                holds = len(correct(rows, on(left, right))) >= 8
                key = len({tuple(row[name] for name in left) for row in rows}) == 10
                parts = {
                    on(part, right) for n in range(len(left)) for part in combinations(left, n)
                }
                if holds and not key and not parts & expected:
                    expected.add(on(left, right))
        assert set(approximate_dependencies(table, max_error=0.2)) == expected
        n_found += len(expected)
    assert n_found > 60


def test_an_error_of_the_threshold_still_holds():
    table = pa.table({"a": ["x"] * 30, "b": ["y"] * 27 + ["z"] * 3})
    assert on("a", "b") in approximate_dependencies(table, max_error=0.1)
    assert on("a", "b") not in approximate_dependencies(table, max_error=0.0999)
    assert on("b", "a") in approximate_dependencies(table, max_error=0)


def test_keys_determine_everything_and_are_left_out():
    table = pa.table({"k": [1, 2, 3, 4], "b": ["x", "y", "x", "y"]})
    assert approximate_dependencies(table) == []


@pytest.mark.parametrize(
    ("values", "kind", "smallest"),
    [
        ([9, 10], pa.int32(), 10),
        ([9.0, 10.0], pa.float64(), 10.0),
        (["b", None], pa.string(), None),
        (["é", "z"], pa.string(), "z"),
        ([b"\xff", b"a"], pa.binary(), b"a"),
        ([True, False], pa.bool_(), False),
    ],
)
def test_of_equally_frequent_values_the_first_text_is_correct(values, kind, smallest):
    table = pa.table({"a": [1, 1], "b": pa.array(values, kind)})
    flags = correct_rows(table, on("a", "b")).tolist()
    assert table["b"].filter(pa.array(flags)).to_pylist() == [smallest]


def test_equal_values_in_several_forms_are_equal():
    b = pa.chunked_array([["x"], ["y", "x"]]).dictionary_encode()
    nans = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000], np.uint64)
    table = pa.table({"a": [0.0, -0.0, 0.0], "b": b, "n": nans.view(np.float64)})
    assert correct_rows(table, on(["a", "n"], "b")).tolist() == [True, False, True]
    assert text_ranks(column_of(table, "b")).tolist() == [0, 1, 0]


def test_refused_input():
    table = pa.table({"a": ["x"], "b": ["y"]})
    with pytest.raises(ColumnNotFoundError, match="'c'"):
        quality(table, [on("a", "c")])


def places(n_rows):
    zips = [f"z{at % 50}" for at in range(n_rows)]
    states = [f"s{int(zip_[1:]) % 7}" for zip_ in zips]
    streets = [f"street {at}" for at in range(n_rows)]
    return pa.table({"zip": zips, "state": states, "street": streets, "one": zips})


def test_discovered_on_a_sample():
    rules = discovered(places(400).select, places(1).column_names, ["one"])
    assert rules == (Dependency(("zip",), "state"),)
    assert discovered(places(400).select, ["zip"], []) == ()


def test_wide_tables_are_looked_at_in_part(monkeypatch):
    monkeypatch.setattr(module, "MAX_COLUMNS", 3)
    rows = places(400)
    read = []

    def select(names):
        read.extend(names)
        return rows.select(names)

    discovered(select, rows.column_names, [])
    assert read == ["zip", "state", "street"]


def test_samples_do_not_depend_on_the_order_of_rows():
    rows = places(300)
    order = np.random.default_rng(0).permutation(300)
    one, counts = sampled(rows, 100)
    other, counts_of_other = sampled(rows.take(pa.array(order)), 100)
    assert one.num_rows == 100
    assert one.to_pylist() == other.to_pylist()
    assert counts.tolist() == counts_of_other.tolist()
    both = pa.concat_tables([rows, rows.slice(0, 20)])
    whole, counts = sampled(both, 1000)
    assert (whole.num_rows, counts.sum()) == (300, 320)
    # Cells that change places are another row, and a missing cell is no empty text.
    swapped = pa.table({"a": ["x", "y", None], "b": ["y", "x", ""]})
    assert sampled(swapped, 10)[0].num_rows == 3
    assert sampled(rows.slice(0, 0), 10)[0].num_rows == 0


def test_worked_out_when_they_are_asked_for():
    made = []

    def make():
        made.append(1)
        return (Dependency(("a",), "b"),)

    table = MarketTable("t", ("a", "b"), 0, pa.table({}).select, find_dependencies=make)
    assert made == []
    assert table.dependencies == table.dependencies == (Dependency(("a",), "b"),)
    assert made == [1]
