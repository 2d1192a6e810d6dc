"""Tables as arrays, their filters against published hashes and plain Python, and keys."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from composite_lakes import TABLES, arrow_table, rows_of
from composite_oracle import as_integers, bloom, keys_of, murmur3, xash
from hypothesis import given
from hypothesis import strategies as st

from pexeso.composite.row_keys import (
    Bloom,
    SuperKeys,
    Xash,
    build_row_keys,
    faults_within,
    hashes_for,
    row_keys_of,
)
from pexeso.composite.search import key_query
from pexeso.errors import IndexCorruptError, InputError, QueryError
from pexeso.registry import FILTER_BITS as BITS

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


FOX = "the quick brown fox jumps over the lazy dog"
GOLDEN = """
muhammad    00800000000020040000000010000000 00800000004020040008000010000000
lee         00040000000000200004000000000000 same
us          00020000000000000000000004200000 same
uk          00020000000000000004000000200000 same
germany     00400000002008200000000000000000 00400000002008200004400000000000
a           00010000000080000000000000000000 same
0           00012000000000000000000000000000 same
aaaa        00080000000800000000000000000000 same
new_york    00800000000010000100000000000200 00800000000010000102100000000200
2021_01_05  02000080000000000000000000000820 02000080000000000000000000000928
mississippi 04000000000000040080100000000000 04000000000000040080101000000000
17x         00008000000000000000000008000000 same
120x        00010000000000000000000000080000 same
fox         01000000000000000000000000000640 01000800000000000000000000000642
"""
NAMED = {"17x": "x" * 17, "120x": "x" * 120, "fox": FOX}
ROWS = [
    (NAMED.get(value, value.replace("_", " ")), four, four if six == "same" else six)
    for value, four, six in (line.split() for line in GOLDEN.strip().splitlines())
]
TEXTS = st.lists(
    st.text(max_size=40)
    | st.text("abcz019 ", max_size=150)
    | st.text("aéßя東\U0001d518𐍈٣²-.\u0301\U0001f600\U0003ffff", max_size=12),
    max_size=20,
)
HASHES = st.builds(
    Xash,
    st.sampled_from(BITS),
    st.integers(2, 9),
)


def hexadecimal(texts, **parameters):
    hashes = Xash(**parameters).hashes(pa.array(texts))
    return ["".join(f"{word:016x}" for word in words) for words in hashes.tolist()]


def places(text, **parameters):
    """Return the places of the bits of a hash, from 1 on the left."""
    digits = hexadecimal([text], **parameters)[0]
    bits = f"{int(digits, 16):0{len(digits) * 4}b}"
    return [place for place, bit in enumerate(bits, 1) if bit == "1"]


@pytest.mark.parametrize(("column", "parameters"), [(1, {"ones": 4}), (2, {})])
def test_golden_vectors(column, parameters):
    assert len(ROWS) == 14
    assert hexadecimal([row[0] for row in ROWS], **parameters) == [row[column] for row in ROWS]


def test_golden_vectors_of_other_sizes():
    assert hexadecimal(["muhammad"], bits=64) == ["0000200488404000"]
    assert hexadecimal(["muhammad"], bits=256) == [
        "0000004000000000000000200004000020000000800000000001000000000000"
    ]
    assert places("muhammad", bits=256) == [26, 91, 110, 131, 161, 208]
    assert places("muhammad", bits=512) == [23, 162, 205, 249, 316, 417]


def test_characters_outside_the_alphabet():
    texts = ["münchen", "москва", "東京"]
    assert hexadecimal(texts) == [
        "00400000000102010008000008000000",
        "00200000010820000000000000000041",
        "00020000000004000000000200000000",
    ]
    assert places("3.14") == [13, 19, 23, 28]
    assert places("-5") == [15, 33]


def test_areas_of_eight_places():
    """With three areas, places 1 to 8 of a text lie in areas 1, 1, 2, 2, 2, 3, 3, 3."""
    segment = 17 + 10 * 3  # that of "a", behind the length and the digits
    areas = []
    for place in range(8):
        (bit,) = places("." * place + "a" + "." * (7 - place))[1:]
        areas.append(bit + 8 - segment)
    assert areas == [1, 1, 2, 2, 2, 3, 3, 3]


@given(TEXTS, HASHES)
def test_hashes_are_those_of_plain_python(texts, hashing):
    hashes = hashing.hashes(pa.array(texts, pa.string()))
    assert hashes.dtype == np.uint64
    assert hashes.shape == (len(texts), hashing.bits // 64)
    expected = [xash(text, hashing.bits, hashing.ones) for text in texts]
    assert as_integers(hashes) == expected
    large = pa.array(["before", *texts], pa.large_string())[1:]
    assert as_integers(hashing.hashes(large)) == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bits": 100}, "bits of XASH must be one of 64, 128, 256, 512. Got 100"),
        ({"ones": 1}, "must be an integer from 2 on. Got 1"),
        ({"ones": True}, "must be an integer from 2 on. Got True"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        Xash(**parameters)


@pytest.mark.parametrize(
    ("text", "seed", "expected"),
    [
        ("", 1, 0x514E28B7),
        ("hello", 0, 0x248BFA47),
        ("hello, world", 0, 0x149BBB7F),
        ("The quick brown fox jumps over the lazy dog", 0, 0x2E4FF723),
        ("The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
    ],
)
def test_published_values_of_the_hash(text, seed, expected):
    assert murmur3(text.encode(), seed) == expected


@given(
    st.lists(st.text(max_size=20), max_size=20),
    st.sampled_from([64, 128, 256, 512]),
    st.integers(1, 40),
)
def test_bits_are_those_of_plain_python(texts, bits, n_hashes):
    hashes = Bloom(bits, n_hashes).hashes(pa.array(texts, pa.string()))
    assert as_integers(hashes) == [bloom(text, bits, n_hashes) for text in texts]


@pytest.mark.parametrize(
    ("bits", "web", "open_data"), [(128, 17.74, 3.41), (256, 35.49, 6.8), (512, 70.98, 13.7)]
)
def test_the_number_of_hashes_of_the_paper(bits, web, open_data):
    assert hashes_for(bits, 5) == round(web)
    assert hashes_for(bits, 26) == round(open_data)


def test_the_number_of_hashes_is_at_least_one():
    assert hashes_for(128, 1000) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bits": 96}, "must be one of 64, 128, 256, 512. Got 96"),
        ({"n_hashes": 0}, "must be an integer from 1 on. Got 0"),
        ({"n_hashes": 1.5}, "must be an integer from 1 on. Got 1.5"),
    ],
)
def test_wrong_parameters_of_bloom_filters_are_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        Bloom(**parameters)


@given(st.integers(1, 3).flatmap(lambda m: rows_of(m).filter(len)))
def test_keys_are_distinct_counted_and_hashed_together(query_rows):
    columns = [pa.array(column) for column in zip(*query_rows, strict=True)]
    query = key_query(columns)
    texts = query.values.to_pylist()
    keys = [tuple(texts[value] for value in key) for key in query.keys.tolist()]
    assert dict(zip(keys, query.row_counts.tolist(), strict=True)) == keys_of(query_rows)
    assert len(set(keys)) == query.n_keys
    expected = []
    for key in keys:
        bits = 0
        for value in key:
            bits |= xash(value)
        expected.append(bits)
    assert as_integers(query.super_keys(Xash())) == expected


def test_keys_as_numbers_of_the_lake():
    rows = build_row_keys([pa.table({"c": ["b", "d"]})])
    query = key_query([pa.array(["d", "a"]), pa.array(["b", "b"])])
    assert query.keys.tolist() == [[0, 1], [2, 1]]
    assert query.numbers_in(rows).tolist() == [[-1, 0], [1, 0]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "all of the same length. Got no column"),
        ([["a"], ["a", "b"]], "all of the same length. Got 1 rows, 2 rows"),
        ([["a"], [1]], "Column 1 of the query's key must hold normalised texts. Got int64"),
    ],
)
def test_what_is_no_key_is_refused(columns, message):
    with pytest.raises(QueryError, match=message):
        key_query([pa.array(column) for column in columns])
