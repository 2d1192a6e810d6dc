"""Normalisation of quarters, spans of years, decades and times of day.

Each kind has one form. A value is converted as a whole or not at all.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.normalise.characters import Bytes
from pexeso.lake.normalise.folding import only_where


def _table(members: bytes) -> np.ndarray:
    """Return a table of the bytes that are members, with the lower-case bit set."""
    table = np.zeros(256, dtype=bool)
    table[[member | 0x20 for member in members]] = True
    return table


# What a period is in bytes: the shortest "1990's", the longest "1990 \u2013 95"; what it is named
# by at the start, with a digit at the end; or how a year begins, with what comes behind its four
# digits.
_MIN_BYTES, _MAX_BYTES = 6, 11
_NAMES, _IS_LAST, _IS_YEAR, _IS_FIFTH = (
    _table(text) for text in (b"qf", b"0123456789", b"12", b"-/ ',q\xe2")
)
_DASH, _APOSTROPHE = r"[-/\x{2013}]", r"['\x{2019}]"
_YEAR = "(?:1[89]|20)[0-9]{2}"
_PERIOD = (
    rf"(?i)^(?:[12][0-9]{{3}} ?{_DASH} ?[0-9][0-9]|q[1-4][ ,/'-]{{0,2}}{_YEAR}|{_YEAR}[ "
    rf",/-]{{0,2}}q[1-4]|"
    rf"[12][0-9][0-9]0{_APOSTROPHE}s|fy[ ']?{_YEAR})$"
)
_SPAN = rf"^(?P<start>[12][0-9]{{3}}) ?{_DASH} ?(?P<end>[0-9][0-9])$"
_REWRITTEN = (
    (r"(?i)^(q[1-4])[ ,/'-]*([0-9]{4})$", r"\1 \2"),
    (r"(?i)^([0-9]{4})[ ,/-]*(q[1-4])$", r"\2 \1"),
    (rf"(?i)^([0-9]{{4}}){_APOSTROPHE}(s)$", r"\1\2"),
    (r"(?i)^fy[ ']?([0-9]{4})$", r"fiscal year \1"),
)
_TIME = r"(?i)^(?P<hour>0?[1-9]|1[0-2]):(?P<minute>[0-5][0-9]) ?(?P<half>[ap])\.? ?m\.?$"


def with_periods(texts: pa.StringArray) -> pa.StringArray:
    """Write quarters, fiscal years, decades and spans of years in one form.

    Examples
    --------
    >>> texts = pa.array(["1990-95", "1999/00", "2020Q1", "1990's", "2020-03", "Q1"])
    >>> with_periods(texts).to_pylist()
    ['1990 1995', '1999 2000', 'Q1 2020', '1990s', '2020-03', 'Q1']
    """
    text_bytes = Bytes(texts)
    first, fifth, last = text_bytes.at(0) | 0x20, text_bytes.at(4) | 0x20, text_bytes.at(-1) | 0x20
    may = (
        (text_bytes.lengths >= _MIN_BYTES)
        & (text_bytes.lengths <= _MAX_BYTES)
        & _NAMES[first]
        & _IS_LAST[last]
    )
    may |= (
        (text_bytes.lengths >= _MIN_BYTES)
        & (text_bytes.lengths <= _MAX_BYTES)
        & _IS_YEAR[first]
        & _IS_FIFTH[fifth]
    )
    return only_where(texts, pa.array(may), _rewritten_where_matched)


def _rewritten_where_matched(texts: pa.StringArray) -> pa.StringArray:
    return only_where(texts, pc.match_substring_regex(texts, _PERIOD), _rewritten)


def _rewritten(texts: pa.StringArray) -> pa.StringArray:
    for pattern, replacement in _REWRITTEN:
        texts = pc.replace_substring_regex(texts, pattern, replacement)
    spans = pc.extract_regex(texts, _SPAN)
    if spans.null_count == len(spans):
        return texts
    start, end = (
        pc.fill_null(pc.struct_field(spans, [position]), "0").cast(pa.int64()).to_numpy()
        for position in (0, 1)
    )
    # The span runs on into the next century only where it does so at once: "1999-00", not
    # "1988-05".
    whole = start - start % 100 + end + np.where((end == 0) & (start % 100 == 99), 100, 0)
    is_span = spans.is_valid().to_numpy(zero_copy_only=False) & (whole > start)
    joined = pc.binary_join_element_wise(
        pa.array(start).cast(pa.string()), pa.array(whole).cast(pa.string()), " "
    )
    return pc.if_else(pa.array(is_span), joined, texts)


def with_times(texts: pa.StringArray) -> pa.StringArray:
    """Write a time of day with a.m. or p.m. by the 24-hour clock.

    Examples
    --------
    >>> with_times(pa.array(["2:30 pm", "12:05 a.m.", "2:30"])).to_pylist()
    ['14:30', '00:05', '2:30']
    """

    def rewrite(some: pa.StringArray) -> pa.StringArray:
        matches = pc.extract_regex(some, _TIME)
        hour = pc.fill_null(pc.struct_field(matches, [0]), "0").cast(pa.int64()).to_numpy() % 12
        is_evening = pc.fill_null(
            pc.match_substring(pc.ascii_lower(pc.struct_field(matches, [2])), "p"), False
        ).to_numpy(zero_copy_only=False)
        clock = pc.utf8_lpad(pa.array(hour + 12 * is_evening).cast(pa.string()), 2, "0")
        return pc.if_else(
            matches.is_valid(),
            pc.binary_join_element_wise(clock, pc.struct_field(matches, [1]), ":"),
            some,
        )

    last = Bytes(texts).at(-1)
    may = pa.array((last == ord(".")) | ((last | 0x20) == ord("m")))
    return only_where(
        texts, may, lambda some: only_where(some, pc.match_substring(some, ":"), rewrite)
    )
