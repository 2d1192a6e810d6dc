"""The smallest combinations of columns that tell rows apart, held against all combinations."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.composite import unique_columns
from pexeso.composite.unique_columns import (
    UniqueSearch,
    count_tuples,
    first_of_equal_rows,
    width_of,
)


@st.composite
def tables(draw):
    """Draw the codes of a table, some columns of which have gaps."""
    draw_codes = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_columns, n_rows = draw(st.integers(1, 6)), draw(st.integers(1, 14))
    codes = [
        draw_codes.integers(0, draw(st.sampled_from([2, 3, 5, 9])), n_rows)
        for _ in range(n_columns)
    ]
    gaps = draw_codes.random((n_columns, n_rows)) < draw(st.sampled_from([0, 0, 0.1]))
    return np.where(gaps, -1, codes).tolist()


CODES = tables()
SMALL_LIMITS = {"_MAX_PAIRS_OF_ROWS": 1, "_FIRST_ROWS": 4, "_BLOCK": 2, "_LARGEST": 8}


def tuples_of(codes, columns):
    """Return the tuples of the rows that are complete in some columns."""
    rows = zip(*(codes[column] for column in columns), strict=True)
    return [row for row in rows if -1 not in row]


def smallest(codes, needed, max_size, begin=0):
    """Return what `UniqueSearch` is to find, by looking at every combination."""
    column_sets = []
    for size in range(1, max_size + 1):
        in_order = sorted(combinations(range(len(codes)), size), key=lambda columns: columns[::-1])
        column_sets += [
            columns
            for columns in in_order
            if columns[-1] >= begin
            and len(set(tuples_of(codes, columns))) >= needed
            and not any(set(smaller) < set(columns) for smaller in column_sets)
        ]
    return column_sets


def searched(codes, needed, max_size, begin=0):
    search = UniqueSearch(np.array(codes, np.int32), needed)
    return [columns for size in range(1, max_size + 1) for columns in search.of_size(size, begin)]


@settings(max_examples=examples(300))
@pytest.mark.parametrize("limits", [{}, SMALL_LIMITS], ids=["usual", "small"])
@given(CODES, st.integers(0, 3), st.integers(1, 5))
def test_every_smallest_combination_is_found_in_order(limits, codes, lost, max_size):
    needed = max(1, len(codes[0]) - lost)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(unique_columns, name, value)
        assert searched(codes, needed, max_size) == smallest(codes, needed, max_size)


def test_tuples_of_more_than_64_bits_are_told_apart():
    codes = np.array([[0, 4, 1], [0, 0, 2**31 - 1], [0, 0, 2**31 - 1]], np.int32)
    assert count_tuples(codes, (0, 1, 2)).distinct == 3
    assert list(UniqueSearch(codes, 3).of_size(3)) == [(0, 1, 2)]


@given(CODES)
def test_rows_that_repeat_an_earlier_one(codes):
    rows = list(zip(*codes, strict=True))
    first = [number for number, row in enumerate(rows) if row not in rows[:number]]
    assert first_of_equal_rows(np.array(codes, np.int32)).tolist() == first


def test_the_one_combination_of_166_million_is_found():
    draw = np.random.default_rng(7)
    codes = draw.integers(0, 2, (1000, 1000), dtype=np.int32)
    digits = np.arange(1000)[draw.permutation(1000)]
    for column, place in ((12, 1), (345, 10), (999, 100)):
        codes[column] = digits // place % 10
    search = UniqueSearch(codes, 1000)
    assert [columns for size in (1, 2, 3) for columns in search.of_size(size)] == [(12, 345, 999)]
    assert search.is_whole


def test_wide_tables_are_cut_where_there_are_too_many_combinations(monkeypatch):
    monkeypatch.setattr(unique_columns, "MAX_COMBINATIONS", 10)
    assert [width_of(size) for size in (2, 3, 5)] == [5, 5, 6]
    codes = np.zeros((6, 4), np.int32)
    codes[0], codes[5] = [0, 0, 1, 1], [0, 1, 0, 1]
    assert list(UniqueSearch(codes, 4).of_size(2)) == []
    monkeypatch.setattr(unique_columns, "MAX_COMBINATIONS", 15)
    assert list(UniqueSearch(codes, 4).of_size(2)) == [(0, 5)]
