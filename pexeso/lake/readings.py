"""Readings: what two cells may differ in and yet be equal, for searches and joins by equal values.

One list, that of `pexeso.lake.normalise.rules` with ``is_reading``, for overlap, containment,
composite keys and what is built on them. A reading is of one of two kinds:

1. Of a cell alone (`read_cells`): equal cells stay equal, so nothing that was joined is lost.
2. Of a column (`read_columns`, and `read_cells` for the decimal mark and for midnight in a time
   zone): its other values decide, as for the order of day and month. One that could make two
   values one, such as 007 and 7, is off by default, and does nothing in a column that keeps two
   such values apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import distinct_numbers
from pexeso.lake.iso_dates import (
    DIGIT_BYTES,
    LETTER,
    OPEN,
    edges,
    iso_dates,
    iso_dates_of_columns,
    matching_rows,
    replaced,
    write_open,
)
from pexeso.lake.normalise.characters import (
    INVISIBLE,
    as_mask,
    byte_table,
    change_characters,
    classes_of,
    only_where,
    where_matching,
    with_ascii_digits,
)
from pexeso.lake.numbers import numbers_in

_STARTS = byte_table(b"0123456789'\"={(+-IiUu\xe2")
_MARKS = byte_table(b"'=\xe2")
_ENDS_OF_TIMES = byte_table(b"tTcCzZmM.")  # GMT, UTC, p.m.
_ISBN_ENDS = byte_table(b"xX")
_TRUTH = byte_table(b"tTfF")
_MIN_NUMBER_BYTES = 9  # of an ISBN or a telephone number, without its last digit
# Letters of a UUID, with braces or without, with hyphens or without, and behind ``urn:uuid:``.
_UUID_BYTES = (32, 36, 38, 45)
_DAY_BYTES, _DAY = 10, "^[12][0-9]{3}-[0-9]{2}-[0-9]{2}$"

_HYPHENS = r"[\x{2010}-\x{2013}\x{2212}\x{ff0d}]"
_SPACES = r"[\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
_MARKED = r"^['\x{2019}]([+-]?[0-9][0-9A-Za-z.,/: -]*)$"
_DECADE = r"^['\x{2019}][0-9]{2}s$"
_FORMULA = r'^="([^"]+)"$'
_NUMBER = r"^[^A-Za-z_]*(?:[0-9][eE][+-]?[0-9]+[^A-Za-z_]*)?$"
_FINAL = r"^-?(?:0|[1-9][0-9]*)\.(?:[0-9]{1,2}|[0-9]{4,})$"
_WHOLE = r"^(-?(?:0|[1-9][0-9]*))\.0+$"
_UUID = (
    r"^(?:urn:uuid:)?\{?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?"
    r"([0-9a-f]{12})\}?$"
)
_ISBN = r"(?i)^(?:isbn(?:-1[03])?[: ]*)?((?:97[89][ -]?)?[0-9](?:[ -]?[0-9]){8}[ -]?[0-9x])$"
_BARE = r"^(?:97[89])?[0-9]{9}[0-9Xx]$"
# Separators of an ISBN of ten digits; fewer are those of other numbers.
_ISBN_SEPARATORS = 3
_AMERICAN = r"\(?[2-9][0-9]{2}\)?[ .-]{0,2}[0-9]{3}[ .-][0-9]{4}"
_ABROAD = rf"^(?:\(?(?:\+ ?|00)[1-9](?:[ ()./-]*[0-9]){{7,14}}|1[ .-]{_AMERICAN})$"
_AT_HOME = rf"^(?:\(?0[1-9](?:[ ()./-]*[0-9]){{7,13}}|{_AMERICAN})$"
_TRUTHS = {
    **dict.fromkeys(("1", "yes", "y", "t", "true"), "true"),
    **dict.fromkeys(("0", "no", "n", "f", "false"), "false"),
}
# Calling codes of two digits and of one; all others have three.
_CODES = ("20|27|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]", "1|7")
_PHONE = r"^\+?[0-9]{7,15}$"
_MIN_PHONES = 0.9  # share of a column's values


def read_cells(
    texts: pa.LargeStringArray,
    readings: Collection[str],
    columns: np.ndarray | None = None,
    *,
    comma: bool = False,
) -> pa.LargeStringArray:
    """Return cells, trimmed texts, in the form in which they are compared; nulls stay.

    The decimal mark of numbers is that which their column shows, by default each is of its own;
    `comma` says that it is the comma in columns that show none.
    """
    if not readings or not len(texts):
        return texts
    if "invisible-letters" in readings:
        is_odd = pc.fill_null(pc.invert(pc.string_is_ascii(texts)), False)
        texts = only_where(texts, is_odd, _visible)
    first, last, lengths = edges(texts)
    if "truth-words" in readings:
        may = pa.array(_TRUTH[first] & ((lengths == len("true")) | (lengths == len("false"))))
        texts = only_where(texts, may, _truth_words)
    may = DIGIT_BYTES[last] | _STARTS[first] | np.isin(lengths, _UUID_BYTES)
    rows = np.flatnonzero(_ENDS_OF_TIMES[last] & ~may)
    may[rows] = as_mask(pc.match_substring(texts.take(pa.array(rows)), ":"))
    is_plain = as_mask(pc.ascii_is_decimal(texts))
    may &= ~is_plain
    # What is written in the end is not read again.
    may &= (lengths != _DAY_BYTES) | ~as_mask(pc.match_substring_regex(texts, _DAY))
    columns = np.arange(len(texts)) if columns is None else columns
    return only_where(texts, pa.array(may), lambda some: _read(some, readings, columns[may], comma))


def _read(texts: pa.Array, readings: Collection[str], columns: np.ndarray, comma: bool) -> pa.Array:
    first, last, lengths = edges(texts)
    if "spreadsheet-marks" in readings and (marked := _MARKS[first]).any():
        texts = only_where(texts, pa.array(marked), _without_marks)
        first, last, lengths = edges(texts)
    if "identifiers" in readings:
        texts = only_where(texts, pa.array(np.isin(lengths, _UUID_BYTES)), _uuids)
        may = (DIGIT_BYTES[last] | _ISBN_ENDS[last]) & (lengths > _MIN_NUMBER_BYTES)
        letters = pc.match_substring_regex(texts, rf"^[^{LETTER[1:]}*$|^(?i:isbn)|^[0-9 -]+[Xx]$")
        may &= as_mask(letters)
        texts = only_where(texts, pa.array(may), lambda some: _phones(_isbns(some)))
    if "iso-dates" in readings:
        texts = iso_dates(texts, columns)
    if "thousands" in readings:
        rows = matching_rows(texts, np.ones(len(texts), bool), _NUMBER)
        # Of those that are as they will be one says what the decimal mark of their column is.
        final = matching_rows(texts.take(pa.array(rows)), np.ones(len(rows), bool), _FINAL)
        first = np.unique(columns[rows[final]], return_index=True)[1]
        rows = np.delete(rows, np.delete(final, first))
        numbers, *_ = numbers_in(texts.take(pa.array(rows)), columns[rows], comma=comma)
        texts = replaced(texts, rows, numbers)
    if "whole-numbers" in readings:
        texts = whole_numbers(texts)
    return texts


def whole_numbers(texts: pa.Array) -> pa.Array:
    """Return texts, whole numbers with a point and zeros among them without these."""
    whole = pc.replace_substring_regex(texts, _WHOLE, r"\1")
    return pc.if_else(pc.equal(whole, "-0"), pa.scalar("0", whole.type), whole)


def _without_marks(texts: pa.Array) -> pa.Array:
    is_decade = pc.match_substring_regex(texts, _DECADE)
    plain = pc.replace_substring_regex(texts, _MARKED, r"\1")
    return pc.if_else(is_decade, texts, pc.replace_substring_regex(plain, _FORMULA, r"\1"))


def _visible(texts: pa.Array) -> pa.Array:
    def change(points: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        is_kept = (classes_of(points) != INVISIBLE) & (points != ord("\n"))
        return with_ascii_digits(points[is_kept]), rows[is_kept]

    # A line feed ends each text there.
    spaced = pc.replace_substring_regex(texts, rf"{_SPACES}|[\r\n]", " ")
    spaced = pc.replace_substring_regex(spaced, _HYPHENS, "-")
    seen = change_characters(spaced.cast(pa.string()), change).cast(texts.type)
    seen = pc.utf8_trim_whitespace(seen)
    return pc.if_else(pc.equal(seen, ""), texts, seen)


def _truth_words(texts: pa.Array) -> pa.Array:
    lower = pc.ascii_lower(texts)
    return pc.if_else(pc.is_in(lower, pa.array(["true", "false"], lower.type)), lower, texts)


def _uuids(texts: pa.Array) -> pa.Array:
    lower = pc.ascii_lower(texts)
    is_uuid = pc.and_(
        pc.match_substring_regex(lower, _UUID), pc.match_substring_regex(lower, "[a-f-]")
    )
    return only_where(
        texts,
        is_uuid,
        lambda some: pc.replace_substring_regex(pc.ascii_lower(some), _UUID, r"\1-\2-\3-\4-\5"),
    )


def _isbns(texts: pa.Array) -> pa.Array:
    def change(some: pa.Array) -> pa.Array:
        bare = pc.replace_substring_regex(some, _ISBN, r"\1")
        separators = pc.count_substring_regex(bare, "[ -]")
        digits = pc.ascii_upper(pc.replace_substring_regex(bare, "[ -]", ""))
        is_named = pc.match_substring(some, "isbn", ignore_case=True)
        is_long = pc.and_(pc.greater(separators, 0), pc.equal(pc.binary_length(digits), 13))
        is_marked = pc.or_(pc.or_(is_named, is_long), pc.equal(separators, _ISBN_SEPARATORS))
        return pc.if_else(pc.and_(is_marked, pa.array(_are_isbns(digits))), digits, some)

    may = pc.or_(pc.match_substring(texts, "-"), pc.match_substring(texts, " "))
    may = pc.or_(may, pc.match_substring(texts, "isbn", ignore_case=True))
    return where_matching(texts, may, _ISBN, change)


def _are_isbns(texts: pa.Array) -> np.ndarray:
    """Return which texts are the digits of an ISBN with the right check digit."""
    result = np.zeros(len(texts), bool)
    shaped = as_mask(pc.match_substring_regex(texts, _BARE))
    lengths = pc.fill_null(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)
    for size in (10, 13):
        rows = np.flatnonzero(shaped & (lengths == size))
        if not len(rows):
            continue
        joined = "".join(texts.take(pa.array(rows)).to_pylist()).upper().encode()
        digits = np.frombuffer(joined, np.uint8).reshape(-1, size).astype(int) - ord("0")
        is_ten = digits == ord("X") - ord("0")
        if size == 10:
            sums = np.where(is_ten, 10, digits) @ np.arange(10, 0, -1)
            result[rows] = sums % 11 == 0
        else:
            sums = digits @ np.array([1, 3] * 6 + [1])
            result[rows] = (sums % 10 == 0) & ~is_ten.any(axis=1)
    return result


def _phones(texts: pa.Array) -> pa.Array:
    def change(some: pa.Array) -> pa.Array:
        abroad = pc.match_substring_regex(some, _ABROAD)
        national = pc.replace_substring_regex(some, r"\(0\)", "")
        digits = pc.replace_substring_regex(pc.if_else(abroad, national, some), "[^0-9]", "")
        outside = pc.replace_substring_regex(digits, "^(?:00)?", "+")
        return pc.if_else(abroad, outside, digits)

    may = pc.match_substring_regex(
        texts, r"^\(?\+[0-9 ()./-]+$|^[(0-9][0-9)]*[ ()./-][0-9 ()./-]*$"
    )
    return where_matching(texts, may, f"{_ABROAD}|{_AT_HOME}", change)


def read_columns(
    texts: pa.LargeStringArray,
    readings: Collection[str],
    columns: np.ndarray | None = None,
    *,
    day_first: bool | None = None,
    as_open: bool = False,
) -> pa.LargeStringArray:
    """Apply the readings that a column decides to cells that `read_cells` has read.

    `columns` has the column of each cell; by default all are of one. `day_first` is how 3/5/1953
    is read in columns that do not say it; by default it stays there, as 03/05/1953. With `as_open`
    dates of all columns are written so where another column may leave their order open.

    >>> cells = pa.array(["007", "8", "9"], pa.large_string())
    >>> read_columns(cells, ["leading-zeros"]).to_pylist()
    ['7', '8', '9']
    >>> cells = pa.array(["007", "7", "09"], pa.large_string())
    >>> read_columns(cells, ["leading-zeros"]).to_pylist()
    ['007', '7', '09']
    """
    if not len(texts):
        return texts
    columns = np.zeros(len(texts), np.int64) if columns is None else columns
    if "iso-dates" in readings:
        texts = iso_dates_of_columns(texts, columns, day_first)
        if as_open:
            texts = write_open(texts, day_first=bool(day_first))
    if "identifiers" in readings:
        texts = _with_long_isbns(texts, columns)
    for name, change in LOSSY.items():
        if name in readings:
            changed = change(texts, columns)
            texts = _unless_merged(texts, changed, columns)
    return texts


# What dates and numbers have that may be read in another way, and the options of these ways: with
# dates that leave their order open in either, or as a column of the lake that does has them; and
# with the comma as the decimal mark where nothing shows what is.
_WAYS: tuple[tuple[str, tuple[dict[str, bool], ...]], ...] = (
    (
        rf"{OPEN}|^[0-9]{{2}}/[0-9]{{2}}/[0-9]{{4}}",
        tuple(
            {"day_first": day_first, **as_open}
            for as_open in ({}, {"as_open": True})
            for day_first in (False, True)
        ),
    ),
    (r"[0-9]\.?[0-9]{3}(?:[^0-9]|$)", ({"comma": True},)),
)


def forms_of(
    read: Callable[..., Sequence[pa.Array]],
) -> list[tuple[bool | None, Sequence[pa.Array]]]:
    """Return the different forms of columns of which one of the lake may fit one best.

    `read` takes the options of `pexeso.lake.tokens.key_texts`. The first form is that without any,
    the last that of the cells as they stand. With each is whether the day comes first in dates that
    do not say it, None where none matters.
    """
    first, own = read(), read(as_column=False)
    texts = pa.chunked_array([*first, *own], pa.large_string())
    forms: list[tuple[bool | None, Sequence[pa.Array]]] = [(None, first)]
    for pattern, ways in _WAYS:
        if pc.any(pc.match_substring_regex(texts, pattern)).as_py():
            forms += [(options.get("day_first"), read(**options)) for options in ways]
    different: list[tuple[bool | None, Sequence[pa.Array]]] = []
    for order, columns in (*forms, (None, own)):
        for at, (known, others) in enumerate(different):
            if all(map(pa.Array.equals, columns, others)):
                different[at] = (known if known == order else None, others)
                break
        else:
            different.append((order, columns))
    return different


def _with_long_isbns(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    """Write ISBNs of ten digits with thirteen, in columns of nothing but ISBNs."""
    lengths = edges(texts)[2]
    if not ((lengths == 10) | (lengths == 13)).any():
        return texts
    are_isbns = _are_isbns(texts)
    n = int(columns.max()) + 1
    known = texts.is_valid().to_numpy(zero_copy_only=False)
    n_others, n_isbns = (
        np.bincount(columns[flags], minlength=n) for flags in (known & ~are_isbns, are_isbns)
    )
    of_isbns = (n_others == 0) & (n_isbns >= _MIN_ISBNS)
    rows = np.flatnonzero(are_isbns & of_isbns[columns] & (lengths == 10))
    if not len(rows):
        return texts
    heads = ["978" + text[:9] for text in texts.take(pa.array(rows)).to_pylist()]
    digits = np.array([[int(digit) for digit in head] for head in heads])
    checks = -(digits @ np.array([1, 3] * 6)) % 10
    written = [f"{head}{check}" for head, check in zip(heads, checks.tolist(), strict=True)]
    return replaced(texts, rows, pa.array(written, texts.type))


_MIN_ISBNS = 2


def _truth_numbers(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    at = pc.index_in(pc.utf8_lower(texts), pa.array(list(_TRUTHS), texts.type))
    is_other = pc.and_(at.is_null(), texts.is_valid()).to_numpy(zero_copy_only=False)
    n = int(columns.max()) + 1
    all_are = np.bincount(columns[is_other], minlength=n) == 0
    truths = pa.array(list(_TRUTHS.values()), texts.type).take(at)
    return pc.if_else(pa.array(all_are[columns]), truths, texts)


def _calling_codes(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    is_phone = as_mask(pc.match_substring_regex(texts, _PHONE))
    n = int(columns.max()) + 1
    known = texts.is_valid().to_numpy(zero_copy_only=False)
    n_phones, n_known = (np.bincount(columns[flags], minlength=n) for flags in (is_phone, known))
    of_phones = n_phones >= np.maximum(1, _MIN_PHONES * n_known)
    two, one = _CODES
    # Codes are no starts of each other.
    local = pc.replace_substring_regex(
        texts, rf"^(?:(?:\+|00)(?:{one}|{two}|[2-9][0-9]{{2}})|0)([1-9][0-9]{{5,13}})$", r"\1"
    )
    return pc.if_else(pa.array(is_phone & of_phones[columns]), local, texts)


def _decimal_zeros(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    short = pc.replace_substring_regex(texts, r"^(-?[0-9]+\.[0-9]*?)0+$", r"\1")
    return pc.replace_substring_regex(short, r"^(-?[0-9]+)\.$", r"\1")


def _separators(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    may = pc.match_substring_regex(texts, r"[0-9].*[ ./_-]|[ ./_-].*[0-9]")
    is_code = pc.and_not(may, pc.match_substring_regex(texts, r"^[+-]?[0-9]*\.?[0-9]*$"))
    shortened = pc.replace_substring_regex(texts, "[ ./_-]", "")
    return pc.if_else(is_code, shortened, texts)


# Readings that could make two values of a column one, which are off there, in this order.
LOSSY: dict[str, Callable[[pa.Array, np.ndarray], pa.Array]] = {
    "truth-numbers": _truth_numbers,
    "calling-codes": _calling_codes,
    "decimal-zeros": _decimal_zeros,
    "separators": _separators,
    "leading-zeros": lambda texts, _: pc.replace_substring_regex(texts, "^0+([0-9]+)$", r"\1"),
    "letter-case": lambda texts, _: pc.utf8_lower(texts),
}


def _unless_merged(texts: pa.Array, changed: pa.Array, columns: np.ndarray) -> pa.Array:
    """Return what was changed, but what it was in columns where two values have become one."""
    if texts.equals(changed):
        return texts
    n = int(columns.max()) + 1
    before, after = (_n_distinct(side, columns, n) for side in (texts, changed))
    return pc.if_else(pa.array((before == after)[columns]), changed, texts)


def _n_distinct(texts: pa.Array, columns: np.ndarray, n: int) -> np.ndarray:
    encoded = texts.dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    pairs = distinct_numbers(columns * (len(encoded.dictionary) + 1) + codes + 1)
    return np.bincount(pairs // (len(encoded.dictionary) + 1), minlength=n)
