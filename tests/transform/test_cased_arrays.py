"""Columns are cased as their single texts are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from long_runs import EVERYTHING

from pexeso.transform.programs.applying import cased_array
from pexeso.transform.programs.program import cased
from tests.transform.random_programs import CASINGS, texts

EVERY_CHARACTER = [
    chr(point)
    for point in range(0x110000)
    if not 0xD800 <= point < 0xE000 and (EVERYTHING or point < 0x20000 or point % 64 == 0)
]
"""All characters. Of those from U+20000 on, which have no case, a short run takes some."""


@given(st.lists(st.none() | texts), st.sampled_from(CASINGS))
def test_a_column_is_cased_as_its_texts_are(column, casing):
    expected = [None if text is None else cased(text, casing) for text in column]
    assert cased_array(pa.array(column, pa.string()), casing).to_pylist() == expected


@pytest.mark.parametrize("casing", CASINGS)
def test_every_character_there_is_and_its_neighbours(casing):
    column = [f"{character}a{character}" for character in EVERY_CHARACTER]
    made = cased_array(pa.array(column), casing)
    made.validate(full=True)
    assert made.to_pylist() == [cased(text, casing) for text in column]


def slices_of(word):
    """Return slices that begin behind the first text, the last by its offsets alone."""
    yield pa.array(["before", word, "", word, "behind"])[1:4]
    yield pa.array(["before", word, None, "", word, "behind"])[1:5]
    yield pa.array(["before", word, "behind"], pa.large_string())[1:].cast(pa.string())


@pytest.mark.parametrize("casing", CASINGS)
@pytest.mark.parametrize("word", ["O'NEIL mc", "straße ǅ"])
def test_a_slice_keeps_its_rows(casing, word):
    for column in slices_of(word):
        expected = [None if text is None else cased(text, casing) for text in column.to_pylist()]
        assert cased_array(column, casing).to_pylist() == expected
    assert column.offset == 0


def test_what_lies_under_a_null_is_not_read():
    # Bytes that are no UTF-8, hidden by the bitmap.
    hidden = pa.StringArray.from_buffers(
        2,
        pa.py_buffer(b"\0\0\0\0\2\0\0\0\3\0\0\0"),
        pa.py_buffer(b"\xff\xfeA"),
        pa.py_buffer(b"\2"),
    )
    assert cased_array(hidden, "title").to_pylist() == [None, "A"]
