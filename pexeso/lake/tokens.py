"""Tokens: the one form of a cell in which two cells are equal or not, for exact-value joins.

Semantic search normalises values, so that "Main St." meets "main street". A join by equal values
must not: "A1" and "a1" may be two keys. So little is done here, and the same to texts and numbers,
since one table's 1 is another's "1" and a third's 1.0. `pexeso.lake.readings` says what more cells
may differ in; without any:

==========================================  ========================================================
cell                                        token
==========================================  ========================================================
text                                        Unicode form NFC, white space at both ends dropped;
                                            case kept
text that is an integer with a point        the integer: ``"1.0"`` and ``"1.00"`` are ``"1"``;
                                            ``"1.10"`` stays, as versions do
``"01"``, ``"+1"``, ``"1e3"``, ``"01.0"``   as they stand: zeros of an id mean something
integer                                     its digits: ``1`` is ``"1"``; a zero has no sign
float that is an integer below 2**53        as that integer: ``1.0`` is ``"1"``
other float                                 the shortest text that reads back as the same number:
                                            ``12345678901.5``, and ``1e+16`` where it is large
decimal                                     as its text would be: ``1.00`` is ``"1"``
truth value, date, time                     ``"true"``, ``"2020-03-05"``, ``"14:30:05"``: a second
                                            has a fraction only where it is not zero
null, NaN, nothing but white space          no token
text for a gap: `pexeso.lake.cells`       no token
==========================================  ========================================================
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.cells import CountedCells, present
from pexeso.lake.normalise.characters import only_where
from pexeso.lake.normalise.rules import DEFAULT_RULES, READINGS
from pexeso.lake.readings import read_cells, read_columns, whole_numbers
from pexeso.lake.typed.value_texts import value_texts
from pexeso.runtime.formatting import first_line

# The readings that are on by default.
DEFAULT_READINGS = tuple(name for name in READINGS if name in DEFAULT_RULES)

# What an index says of the form. Any change that gives some cell another one needs a new name.
NAME = "strict-v2"
# White space as Python's ``str.split`` has it.
_SPACES = (
    r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}"
    r"\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+"
)


def tokens_of(
    values: pa.Array | pa.ChunkedArray,
    columns: np.ndarray | None = None,
    readings: Collection[str] = DEFAULT_READINGS,
    *,
    as_column: bool = True,
    comma: bool = False,
    **options: bool,
) -> pa.LargeStringArray:
    """Return the token of each cell, in time linear in the letters.

    `columns` has the column of each value; by default all are of one. With `as_column` cells are
    also read by what the others of their column are, with options of `read_columns` and, where no
    cell shows the decimal mark, with the comma as it or not.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    texts = pc.utf8_normalize(texts_of_cells(values), form="NFC")
    texts = pc.utf8_trim_whitespace(texts)
    columns = np.zeros(len(texts), np.int64) if columns is None else columns
    marks = columns if as_column else None
    texts = present(whole_numbers(read_cells(texts, readings, marks, comma=comma)), columns)
    return read_columns(texts, readings, columns, **options) if as_column else texts


def distinct_tokens(
    values: pa.Array | pa.ChunkedArray,
    readings: Collection[str] = DEFAULT_READINGS,
    **options: bool,
) -> pa.LargeStringArray:
    return pc.unique(tokens_of(values, None, readings, **options)).drop_null()


def distinct_tokens_of(
    columns: Sequence[pa.StringArray], readings: Collection[str] = DEFAULT_READINGS
) -> list[pa.LargeStringArray]:
    """Return the distinct tokens of each of several columns of texts, as `distinct_tokens` does."""
    cells = CountedCells.joined(
        [
            pa.StructArray.from_arrays([column, np.ones(len(column), np.int64)], ["values", "n"])
            for column in columns
        ]
    )
    tokens = tokens_of(cells.texts, cells.columns, readings)
    tally, _ = cells.replaced(tokens, tokens.is_valid().to_numpy(zero_copy_only=False))
    return [of_column for (of_column,) in tally.slices(tally.texts)]


def texts_of_cells(values: pa.Array) -> pa.LargeStringArray:
    try:
        return value_texts(values)
    except pa.ArrowException as error:
        raise InputError(
            "Tokens are made of texts, numbers, truth values, dates and times. Got "
            f"{values.type}, which has no text "
            f"({first_line(error)}): leave the column out, or turn it into texts first."
        ) from error


def key_texts(
    values: pa.Array | pa.ChunkedArray,
    readings: Collection[str] = DEFAULT_READINGS,
    *,
    as_column: bool = True,
    comma: bool = False,
    **options: bool,
) -> pa.LargeStringArray:
    """Return the form of each cell in which it is compared with others, as part of a key.

    MATE's published program keeps ASCII letters only and drops common words; nothing is dropped
    here, so that ``-5`` and ``5`` are two values. Time is linear in the letters; repeated cells
    are best given dictionary-encoded, as distinct texts are worked on once. The options are those
    of `tokens_of`.

    >>> key_texts(pa.array([" New  York", "Straße", "N/A", "1.0", " ", None])).to_pylist()
    ['new york', 'strasse', None, '1', None, None]
    >>> key_texts(pa.array([2009.0, None])).to_pylist()
    ['2009', None]
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not pa.types.is_dictionary(values.type):
        values = texts_of_cells(values).dictionary_encode()
    texts = key_forms(present(texts_of_cells(values.dictionary)))
    columns = np.zeros(len(texts), np.int64) if as_column else None
    texts = read_cells(texts, readings, columns, comma=comma)
    if as_column:
        texts = read_columns(texts, readings, **options)
    return texts.take(values.indices)


# Between the parts of a key: white space, which `key_texts` leaves in no part.
SEPARATOR = "\x1f"


def joined_parts(parts: Sequence[pa.Array]) -> pa.LargeStringArray:
    """Return the key of each row as one text, null where it lacks a part."""
    parts = [part.cast(pa.large_string()) for part in parts]
    return pc.binary_join_element_wise(*parts, pa.scalar(SEPARATOR, pa.large_string()))


def key_forms(values: pa.Array) -> pa.LargeStringArray:
    """Return the forms of texts as `key_texts` does, whatever stands for a missing value.

    For texts of several columns together, of which one alone does not decide whether it is missing.
    """
    if not pa.types.is_dictionary(values.type):
        values = values.cast(pa.large_string()).dictionary_encode()
    texts = values.dictionary
    known = texts.filter(texts.is_valid())
    folded = only_where(pc.ascii_lower(known), pc.invert(pc.string_is_ascii(known)), _fold)
    folded = pc.ascii_trim(pc.replace_substring_regex(folded, _SPACES, " "), " ")
    folded = pc.if_else(pc.equal(folded, ""), pa.scalar(None, pa.large_string()), folded)
    if len(known) < len(texts):
        folded = pc.replace_with_mask(texts, texts.is_valid(), folded)
    return folded.take(values.indices)


def _fold(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Apply NFKC and fold the case, as ``str.casefold`` does, of all texts in one go."""
    texts = pc.replace_substring_regex(pc.utf8_normalize(texts, form="NFKC"), _SPACES, " ")
    # No text has a line feed now, so that all of them fold as one.
    return pa.array("\n".join(texts.to_pylist()).casefold().split("\n"), pa.large_string())
