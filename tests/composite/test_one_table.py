"""A query beside one table: held against loops over its rows and all choices of columns."""

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.composite import key_evidence as module
from pexeso.composite.key_evidence import KeyMapping, one_table

values = st.sampled_from(["a", "b", "c", "d", "", None])


@st.composite
def pairs_of_tables(draw):
    """Draw rows of keys and rows of a table, as wide as the key at least."""
    n_parts = draw(st.integers(1, 3))
    width = draw(st.integers(n_parts, 4))
    keys = draw(st.lists(st.tuples(*[values] * n_parts), max_size=8))
    rows = draw(st.lists(st.tuples(*[values] * width), max_size=8))
    return n_parts, keys, width, rows


def as_columns(rows, width):
    return [pa.array([row[at] for row in rows], pa.string()) for at in range(width)]


def beside(n_parts, keys, width, rows):
    table = pa.table(as_columns(rows, width), names=[f"c{at}" for at in range(width)])
    return one_table(as_columns(keys, n_parts), table)


def whole_keys(keys):
    return {key for key in keys if all(key)}


def joined_by_loops(keys, rows, columns):
    held = {tuple(row[at] for at in columns) for row in rows}
    return sum(key in held for key in whole_keys(keys))


def texts_of(table, key):
    return tuple(table.query.values[int(number)].as_py() for number in table.query.keys[key])


@settings(max_examples=examples(300), deadline=None)
@given(pairs_of_tables())
def test_mappings_are_those_that_loops_find(drawn):
    n_parts, keys, width, rows = drawn
    table = beside(*drawn)
    every = [
        KeyMapping(columns, joined_by_loops(keys, rows, columns))
        for columns in permutations(range(width), n_parts)
    ]
    every.sort(key=lambda mapping: (-mapping.matched, mapping.columns))
    for at_least in (1, 2, 4):
        assert table.mappings(at_least) == ([x for x in every if x.matched >= at_least], True)
    assert table.best() == (every[0] if every[0].matched else None)
    for mapping in every:
        assert table.matched(mapping.columns) == mapping.matched


@settings(max_examples=examples(300), deadline=None)
@given(pairs_of_tables())
def test_rows_and_parts_are_those_that_loops_find(drawn):
    n_parts, keys, width, rows = drawn
    table = beside(*drawn)
    wanted = whole_keys(keys)
    for columns in permutations(range(width), n_parts):
        held = [tuple(row[at] for at in columns) for row in rows]
        answer = [texts_of(table, key) if key >= 0 else None for key in table.key_of_row(columns)]
        assert answer == [key if key in wanted else None for key in held]
        there = table.parts_there(columns)
        assert there.shape == (len(wanted), n_parts)
        for key in range(len(wanted)):
            texts = texts_of(table, key)
            assert there[key].tolist() == [
                any(row[at] == text for row in rows)
                for at, text in zip(columns, texts, strict=True)
            ]
            parts = [sum(x == y for x, y in zip(row, texts, strict=True)) for row in held]
            row, which = table.nearest_row(key, columns)
            assert row == (parts.index(max(parts)) if parts else -1)
            if parts:
                assert which.sum() == max(parts)


@settings(max_examples=examples(200), deadline=None)
@given(pairs_of_tables())
def test_overlaps_are_those_that_loops_find(drawn):
    n_parts, keys, width, rows = drawn
    table, wanted = beside(*drawn), whole_keys(keys)
    assert table.overlaps.tolist() == [
        [
            len({key[part] for key in wanted} & {row[column] for row in rows})
            for column in range(width)
        ]
        for part in range(n_parts)
    ]


@settings(max_examples=examples(200), deadline=None)
@given(pairs_of_tables())
def test_the_first_row_of_each_key_is_that_of_loops(drawn):
    _, keys, *_ = drawn
    table = beside(*drawn)
    firsts = [keys.index(texts_of(table, key)) for key in range(table.query.n_keys)]
    assert table.query.first_rows.tolist() == firsts


def test_the_likeliest_columns_overlap_most_where_no_row_holds_a_key():
    # Every part is there, each key in two rows.
    table = one_table(
        [pa.array(["a", "b"]), pa.array(["x", "y"])],
        pa.table({"n": ["1", "2"], "second": ["y", "x"], "first": ["a", "b"]}),
    )
    assert table.best() is None
    assert table.likeliest() == KeyMapping((2, 1), 0)
    # A column is taken once, though it has most of the values of both parts.
    table = one_table([pa.array(["a", "b"])] * 2, pa.table({"n": ["c"], "of_both": ["b"]}))
    assert sorted(table.likeliest().columns) == [0, 1]


def test_a_walk_that_would_take_too_long_is_cut_short(monkeypatch):
    same = pa.array(["a", "b", "a"])
    table = one_table([same] * 3, pa.table({f"c{at}": same for at in range(6)}))
    every, all_tried = table.mappings(1)
    assert (len(every), all_tried) == (6 * 5 * 4, True)
    monkeypatch.setattr(module, "MAX_CELLS_TRIED", 100)
    some, all_tried = table.mappings(1)
    assert not all_tried
    assert 0 < len(some) < len(every)
    assert set(some) <= set(every)


@pytest.mark.parametrize("n_rows", [0, 1])
def test_nothing_is_beside_nothing(n_rows):
    nothing = pa.array([], pa.string())
    rows = pa.array(["a"] * n_rows, pa.string())
    table = one_table([nothing, nothing], pa.table({"p": rows, "q": rows}))
    assert table.best() is None
    assert table.mappings(1) == ([], True)
    assert table.likeliest() == KeyMapping((0, 1), 0)
    assert np.array_equal(table.key_of_row((0, 1)), np.full(n_rows, -1))
