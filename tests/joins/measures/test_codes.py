"""Joins as distinct rows with counts against joins formed row by row, and measures on both."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from pexeso.acquisition.quality import Dependency
from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.joins.measures import correlation, join_counts, merged_rows
from tests.acquisition.motivating_tables import joined
from tests.acquisition.oracle import quality


def counted(table, counts=None):
    rows = [tuple(row.values()) for row in table.to_pylist()]
    totals = Counter()
    for row, n in zip(rows, [1] * len(rows) if counts is None else counts.tolist(), strict=True):
        totals[row] += n
    return +totals


def drawn(rng, n, names):
    values = ["u", "v", "w", None]
    return pa.table({name: pa.array(rng.choice(values, n), pa.string()) for name in names})


def plain_join(left, right, on):
    for name in on:
        left = left.filter(left[name].is_valid())
    return joined(left, right, on)


def test_it_is_the_join_row_by_row():
    rng = np.random.default_rng(0)
    for _ in range(100):
        left, right = drawn(rng, 9, "abk"), drawn(rng, 9, "cdk")
        rows, counts = join_counts(left, right, ["k"], left_names=["a"], right_names=["c", "d"])
        whole = plain_join(left, right, ["k"]).select(["k", "a", "c", "d"])
        assert counted(rows, counts) == counted(whole)
        assert len(counted(rows)) == rows.num_rows


def test_measures_of_a_chain_of_joins_are_those_of_its_rows():
    rng = np.random.default_rng(1)
    chosen = [Dependency(("a",), "d"), Dependency(("d",), "c")]
    checked = 0
    for _ in range(40):
        one, two, three = drawn(rng, 7, "ak"), drawn(rng, 7, "klc"), drawn(rng, 7, "ld")
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


def test_refused_input():
    table = pa.table({"k": ["a"], "c": [1]})
    with pytest.raises(InputError, match="Rename"):
        join_counts(table, table, ["k"], left_names=["c"], right_names=["c"])
    with pytest.raises(InputError, match="at least one column"):
        join_counts(table, table, [])
    with pytest.raises(ColumnNotFoundError, match="'d'"):
        join_counts(table, table, ["k"], right_names=["d"])
    with pytest.raises(InputError, match="Join a sample"):
        join_counts(table, pa.concat_tables([table] * 3), ["k"], left_counts=np.array([2**52]))
