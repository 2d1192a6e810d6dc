"""The numbers in cells of text, and what joined cells become."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joined_by_loops import aggregate
from long_runs import examples

import pexeso
from pexeso.joins.aggregation import Groups, aggregated, differing, read_numbers, type_of
from pexeso.joins.options import AGGREGATIONS


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("7", 7), (" 7 ", 7), ("-7", -7), ("+7", 7), ("\u22127", -7), ("(1,200)", -1200),
        ("7.", 7), (".5", 0.5), (",5", 0.5),
        ("1,234", 1234), ("1,234.5", 1234.5), ("1,234,567", 1234567), ("3,5", 3.5),
        ("1,2345", 1.2345), ("1.234", 1.234), ("0,750", 0.75), ("-0,125", -0.125),
        ("1.234.567", 1234567), ("1.234,50", 1234.5), ("1 234,5", 1234.5), ("1\u202f234", 1234),
        ("1'234", 1234), ("1_000", 1000),
        ("$5", 5), ("€ 1.234,50", 1234.5), ("-$5", -5), ("$-5", -5), ("12 %", 12), ("5 €", 5),
        ("1e6", 1e6), ("2.5E-1", 0.25),
        ("٣", None), ("12,34,567", 1234567), ("1,2,345", None), ("1,234.567.890", None),
        ("5 kg", None), ("n/a", None),
        ("", None), (".", None), ("-", None),
        ("--5", None), ("(-5)", None), ("(5", None), ("5)", None), ("0x10", None),
        ("nan", None), ("inf", None), ("1 2", None),
        ("1e999", None), ("1/2", None), ("12:30", None), ("5\n6", None), (None, None),
    ],
)  # fmt: skip
def test_a_cell_is_read_as_the_rule_says(cell, number):
    assert read_numbers(pa.array([cell], pa.string())).to_pylist() == [number]


@settings(max_examples=examples(50))
@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))))
def test_numbers_written_out_are_read_again(numbers):
    texts = pa.array([None if number is None else repr(number) for number in numbers], pa.string())
    assert read_numbers(texts).to_pylist() == numbers


groups_of_cells = st.lists(
    st.lists(st.sampled_from(["1", "2.5", "-3", "x", None]), min_size=1, max_size=5), max_size=5
)


@settings(max_examples=examples(50))
@given(groups_of_cells, st.sampled_from(AGGREGATIONS))
def test_cells_are_aggregated_group_by_group(cells, way):
    ids = np.repeat(np.arange(len(cells)) * 3, [len(group) for group in cells]).astype(np.int64)
    flat = pa.array([cell for group in cells for cell in group], pa.string())
    aggregates = aggregated(flat, Groups.of(ids), way)
    assert aggregates.type == type_of(way)
    assert aggregates.to_pylist() == [aggregate(group, way) for group in cells]


def test_differing_cells_are_told_once_and_empty_ones_do_not_differ():
    groups = Groups.of(np.array([0, 0, 0, 1, 1, 2, 2]))
    group, cells = differing(pa.array(["b", "a", "b", "x", None, "y", "y"]), groups)
    assert (group.tolist(), cells.to_pylist()) == ([0, 0], ["b", "a"])


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1.234", "2,50", "1.234,50"], [1234, 2.5, 1234.5]),
        (["1.234", "1,234", "7,5"], [1234, 1.234, 7.5]),
        (["1.234", "1.234.567"], [1234, 1234567]),
        (["1.234 €", "€ 0,75"], [1234, 0.75]),
        (["1.234", "1,234", "7.5"], [1.234, 1234, 7.5]),
        (["1.234", "1,234,567"], [1.234, 1234567]),
        (["1.234", "2,5", "2.5"], [1.234, 2.5, 2.5]),  # both are decimal marks
        (["0.125", "1.234", "2,5"], [0.125, 1.234, 2.5]),
        (["1.234", "2.345", "1,234"], [1.234, 2.345, 1234]),  # nothing says it
    ],
)
def test_a_column_says_which_mark_is_the_decimal_one(cells, numbers):
    assert read_numbers(pa.array(cells)).to_pylist() == numbers


def test_all_of_the_column_says_it_not_the_joined_rows_alone():
    right = pd.DataFrame({"k": ["Oslo", "Oslo", "Rome"], "sales": ["1.234", "2.000", "2,50"]})
    for way, sales in {"sum": 3234, "mean": 1617, "min": 1234, "max": 2000}.items():
        joined = pexeso.fuzzy_join(
            pd.DataFrame({"k": ["Oslo"]}), right, on="k", aggregate={"sales": way}
        )
        assert joined["sales"].tolist() == [sales]
