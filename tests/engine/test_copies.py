"""Columns of the same values folded: held against plain loops over sets."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.engine import copies
from pexeso.engine.copies import MIN_JACCARD, ColumnSets, fold, lines_of
from pexeso.results.query import Hit
from pexeso.semantic.partition_loader import sets_of_hits


def sets_of(columns):
    """CSR sets of the columns, members in the order in which they are given."""
    offsets = np.cumsum([0, *map(len, columns)])
    members = np.array([value for column in columns for value in column], np.int64)
    return ColumnSets(offsets, members)


def folded_by_loops(columns):
    """The first column that is not folded takes in all later ones that are like it."""
    first_of = list(range(len(columns)))
    leaders = []
    for number, column in enumerate(map(set, columns)):
        for leader in leaders:
            other = set(columns[leader])
            either = len(column | other)
            if either and Fraction(len(column & other), either) >= Fraction(*MIN_JACCARD):
                first_of[number] = leader
                break
        else:
            leaders.append(number)
    return first_of


values = st.lists(st.integers(0, 40), unique=True, max_size=30)


@st.composite
def lakes(draw):
    """Columns of which many are copies of others, whole or but for a few values."""
    columns = draw(st.lists(values, min_size=1, max_size=8))
    for _ in range(draw(st.integers(0, 8))):
        column = list(draw(st.sampled_from(columns)))
        for _ in range(draw(st.integers(0, 3))):
            if column and draw(st.booleans()):
                column.pop(draw(st.integers(0, len(column) - 1)))
            else:
                column = list({*column, draw(st.integers(0, 60))})
        columns.append(draw(st.permutations(column)))
    return draw(st.permutations(columns))


@settings(max_examples=examples(150))
@given(columns=lakes(), size=st.sampled_from([1, 7, 1 << 20]))
def test_folding_is_that_of_plain_loops(columns, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "CHUNK_SIZE", size)
        assert fold(sets_of(columns)).tolist() == folded_by_loops(columns)


@settings(max_examples=examples(50))
@given(columns=lakes(), data=st.data())
def test_neither_numbers_of_values_nor_their_order_matter(columns, data):
    renamed = data.draw(st.permutations(range(101)))
    others = [
        data.draw(st.permutations([renamed[value] for value in column])) for column in columns
    ]
    assert fold(sets_of(others)).tolist() == fold(sets_of(columns)).tolist()


def test_the_bound_is_inclusive_and_counts_both_ways():
    nine, ten, eleven = list(range(9)), list(range(10)), list(range(11))
    assert fold(sets_of([ten, nine])).tolist() == [0, 0]
    assert fold(sets_of([ten, eleven])).tolist() == [0, 0]
    assert fold(sets_of([nine, eleven])).tolist() == [0, 1]
    # A chain of near copies is folded as far as each is like the first.
    assert fold(sets_of([nine, ten, eleven])).tolist() == [0, 0, 2]


def test_many_columns_are_folded_in_pieces():
    base = np.arange(1000)
    columns = [np.setdiff1d(base, [number]).tolist() for number in range(300)]
    columns += [(base + 5000).tolist()] * 300 + [(base + 500).tolist()]
    assert fold(sets_of(columns)).tolist() == [0] * 300 + [300] * 300 + [600]


def test_lines_behind_the_limit_take_in_what_is_equal_alone(monkeypatch):
    ten, nine, other = list(range(10)), list(range(9)), list(range(20, 30))
    columns = [ten, other, other[:9], other[::-1], nine]
    assert fold(sets_of(columns)).tolist() == [0, 1, 1, 1, 0]
    monkeypatch.setattr(copies, "MOST_LINES", 1)
    assert fold(sets_of(columns), 1).tolist() == [0, 1, 2, 1, 0]


def test_columns_beyond_the_bound_stand_alone(monkeypatch):
    monkeypatch.setattr(copies, "MAX_VALUES", 6)
    assert fold(sets_of([[1, 2], [1, 2], [2, 1], [1, 2], [1, 2]])).tolist() == [0, 0, 0, 3, 4]


@pytest.mark.parametrize("sizes", [[7], [5], [7, 7], [8, 7, 5]])
def test_columns_that_are_not_compared_leave_room_for_those_behind(monkeypatch, sizes):
    monkeypatch.setattr(copies, "MAX_VALUES", 6)
    large = [list(range(100, 100 + size)) for size in sizes]
    alone = list(range(len(large)))
    one = len(large)
    assert fold(sets_of([*large, [1, 2], [2, 1]])).tolist() == [*alone, one, one]


def test_columns_found_behind_a_large_one_are_read(monkeypatch):
    monkeypatch.setattr(copies, "MAX_VALUES", 6)
    lists = sets_of([list(range(20)), [1, 2], [2, 1]])
    scan = SimpleNamespace(mapped=lambda number: SimpleNamespace(column_lists=lists))
    hits = [Hit(number, 1, 0, number) for number in range(3)]
    assert sets_of_hits(scan, hits).sizes.tolist() == [0, 2, 2]


def test_lines_have_the_first_column_and_its_copies():
    assert lines_of(np.array([0, 1, 0, 3, 1]), "abcde") == [["a", "c"], ["b", "e"], ["d"]]
    assert lines_of(np.empty(0, np.int64), []) == []
    assert fold(sets_of([])).tolist() == []
