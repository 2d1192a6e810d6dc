"""Tables as arrays: what they hold, what super keys cover, and what damaged arrays say."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from composite_lakes import TABLES, arrow_table
from composite_oracle import as_integers, bloom, xash
from hypothesis import given
from hypothesis import strategies as st

from pexeso.composite.row_keys import (
    Bloom,
    SuperKeys,
    Xash,
    build_row_keys,
    faults_within,
    row_keys_of,
)
from pexeso.errors import IndexCorruptError, InputError

FILTERS = (Xash(), Bloom(64, 2))


def tables_of(rows):
    """Return the tables as lists of rows of texts, read back cell by cell."""
    texts = [*rows.values.to_pylist(), None]
    tables = []
    for table in range(rows.n_tables):
        begin, end = rows.table_cells[table : table + 2]
        width = int(rows.widths[table])
        cells = [texts[value] for value in rows.cells[begin:end].tolist()]
        tables.append([cells[at : at + width] for at in range(0, len(cells), width or 1)])
    return tables


@given(st.lists(TABLES, max_size=6))
def test_tables_are_read_back_and_values_lead_to_their_rows(tables):
    rows = build_row_keys([arrow_table(table) for table in tables], FILTERS)
    plain = [[[cell or None for cell in row] for row in table] for table in tables]
    assert tables_of(rows) == plain
    every_row = [row for table in plain for row in table]
    values = sorted({cell for row in every_row for cell in row if cell}, key=str.encode)
    assert rows.values.to_pylist() == values
    lists = np.split(rows.posting_rows, rows.value_offsets[1:-1]) if values else []
    assert [one.tolist() for one in lists] == [
        [number for number, row in enumerate(every_row) if value in row] for value in values
    ]
    for name, plain_hash in (("xash", xash), ("bloom", lambda text: bloom(text, 64, 2))):
        expected = []
        for row in every_row:
            bits = 0
            for cell in row:
                bits |= plain_hash(cell or "")
            expected.append(bits)
        assert as_integers(rows.super_keys[name].words) == expected
    assert rows.find(pa.array([*values, "not there"])).tolist() == [*range(len(values)), -1]


def test_columns_of_large_texts_dictionaries_and_chunks_are_read_alike():
    texts = ["b", None, "a", ""]
    plain = pa.array(texts)
    chunked = pa.chunked_array([plain[:1], plain[1:]])
    table = pa.table(
        [plain, plain.cast(pa.large_string()), plain.dictionary_encode(), chunked],
        names=list("wxyz"),
    )
    assert tables_of(build_row_keys([table])) == [
        [[cell or None] * 4 for cell in texts],
    ]


def test_other_types_are_refused():
    with pytest.raises(InputError, match=r"Column 'n' of table 1 must hold .* Got int64"):
        build_row_keys([pa.table({"t": ["a"]}), pa.table({"n": [1]})])


def test_a_column_more_adds_bits_and_the_order_of_columns_none():
    table = arrow_table([["ada", "lovelace", "uk"], ["alan", "turing", "uk"]])
    words = build_row_keys([table], FILTERS).super_keys["xash"].words
    turned = build_row_keys([table.select([2, 0, 1])], FILTERS).super_keys["xash"].words
    fewer = build_row_keys([table.select([0, 1])], FILTERS).super_keys["xash"].words
    assert (words == turned).all()
    assert (fewer & ~words == 0).all()
    assert (fewer != words).any(axis=1).all()


def small():
    return build_row_keys([arrow_table([["a", "b"], ["b", ""]]), arrow_table([["c"]])], FILTERS)


def changed(array, place, number):
    array = array.copy()
    array[place] = number
    return array


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: {"cells": r.cells[1:]}, "the tables have 5 cells, not 4"),
        (lambda r: {"cells": r.cells.astype(np.int64)}, "cells must be an array int32"),
        (lambda r: {"value_offsets": changed(r.value_offsets, 0, 4)}, "value_offsets must begin"),
        (lambda r: {"value_offsets": changed(r.value_offsets, -1, 5)}, "and end with 4"),
        (lambda r: {"table_rows": changed(r.table_rows, 0, 1)}, "table_rows must begin with 0"),
        (lambda r: {"table_rows": changed(r.table_rows, -1, 2**40)}, "more than"),
        (lambda r: {"table_rows": r.table_rows[:-1]}, "must be equally long"),
        (lambda r: {"table_columns": changed(r.table_columns, 1, -1)}, "table_columns must begin"),
        (lambda r: {"values": r.values[:2]}, "one longer than values"),
        (lambda r: {"values": pa.array(["a", None, "c"])}, "texts without nulls"),
        (
            lambda r: {"super_keys": {"xash": SuperKeys(Xash(256), r.super_keys["xash"].words)}},
            r"super keys xash must be an array uint64 of shape \(3, 4\)",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    rows = small()
    with pytest.raises(IndexCorruptError, match=message):
        replace(rows, **change(rows))


def other_bits(rows):
    keys = rows.super_keys["xash"]
    return {"super_keys": {"xash": SuperKeys(keys.hashing, keys.words ^ np.uint64(1))}}


def damaged_values(rows):
    offsets = np.array([0, 2**40, 2, 3])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"abc")]
    return {"values": pa.Array.from_buffers(pa.large_string(), 3, buffers)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: {"cells": changed(r.cells, 0, 3)}, "cells must be numbers of values"),
        (lambda r: {"cells": changed(r.cells, 0, -2)}, "cells must be numbers of values"),
        (lambda r: {"posting_rows": changed(r.posting_rows, -1, 3)}, "posting_rows must be"),
        (lambda r: {"posting_rows": changed(r.posting_rows, 2, 0)}, "posting_rows must be"),
        (lambda r: {"posting_rows": changed(r.posting_rows, 0, -1)}, "posting_rows must be"),
        (lambda r: {"value_offsets": changed(r.value_offsets, 1, 4)}, "value_offsets must begin"),
        (lambda r: {"value_offsets": changed(r.value_offsets, 1, 0)}, "posting_rows must be"),
        (lambda r: {"values": pa.array(["a", "c", "b"])}, "distinct, not empty and in order"),
        (lambda r: {"values": pa.array(["a", "b", "b"])}, "distinct, not empty and in order"),
        (lambda r: {"values": pa.array(["", "b", "c"])}, "distinct, not empty and in order"),
        (damaged_values, "values are damaged"),
        (other_bits, "super keys xash must be those of the cells"),
    ],
)
def test_damaged_numbers_and_texts_are_told(change, message):
    rows = small()
    assert list(faults_within(rows)) == []
    faults = list(faults_within(replace(rows, **change(rows))))
    assert any(message in fault for fault in faults), faults


def test_wrong_cells_are_refused_before_they_are_counted():
    rows = small()
    with pytest.raises(IndexCorruptError, match="cells must be numbers of values"):
        row_keys_of(rows.values, rows.cells + 9, rows.table_rows, rows.table_columns)


def test_no_tables_at_all():
    rows = build_row_keys([], FILTERS)
    assert (rows.n_tables, rows.n_rows, len(rows.values)) == (0, 0, 0)
    assert rows.find(pa.array(["a"])).tolist() == [-1]
