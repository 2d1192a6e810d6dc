"""The numbers that cells of text hold: one stated rule for all aggregations of numbers.

- White space around a cell does not count; a sign, also a typographic minus, may stand before the
  number; brackets mean a negative one: ``(1,200)`` is -1200.
- One currency sign before or behind it, or a percent sign behind it, is left out: ``$5`` is 5 and
  ``12 %`` is 12. What is in different units is not told apart.
- Blanks, apostrophes and underscores between groups of three digits are thousands separators, and
  so are commas (``1,234`` is 1234) but behind a 0, and points where there are several, or a comma
  after them (``1.234.567``, ``1.234,50``). Otherwise a comma or point is the decimal mark: ``3,5``
  is 3.5, ``0,750`` is .75, ``1.234`` is 1.234.
- An exponent may follow: ``1e6``. Anything else, words and units included, is no number.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_BLANKS = r" \x{a0}\x{2009}\x{202f}"
_MINUS = r"\-\x{2212}\x{2013}"
_CELL = (
    rf"^(?P<open>\(?)[{_BLANKS}]?(?P<sign>[+{_MINUS}]?)[{_BLANKS}]?\p{{Sc}}?[{_BLANKS}]?(?P<inner>[+{_MINUS}]?)"
    rf"(?P<digits>[0-9.,][0-9.,'\x{{2019}}_{_BLANKS}]*?)(?P<exponent>(?:e[+\-]?[0-9]+)?)[{_BLANKS}]?(?:%|\p{{Sc}})?(?P<close>\)?)$"
)
_GROUP_SIGNS = rf"['\x{{2019}}_{_BLANKS}]"
# Tried in this order; with each, what is taken away, and whether a comma is the decimal mark.
_SHAPES = (
    (r"^[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?$", ",", False),  # 0,750 has no thousands
    (r"^[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]*$", r"\.", True),
    (r"^[0-9]{1,3}(?:\.[0-9]{3}){2,}$", r"\.", False),
    (rf"^[0-9]{{1,3}}(?:{_GROUP_SIGNS}[0-9]{{3}})+(?:[.,][0-9]*)?$", _GROUP_SIGNS, True),
    (r"^(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)$", "", True),
)


def read_numbers(cells: pa.StringArray) -> pa.DoubleArray:
    """Read the numbers in cells, as the rule of this module says.

    Returns
    -------
    pyarrow.DoubleArray
        Length n; null where a cell is empty, no number, or beyond what float64 holds.
    """
    encoded = cells.dictionary_encode()
    return _read(encoded.dictionary).take(encoded.indices)


def _read(cells: pa.StringArray) -> pa.DoubleArray:
    parts = pc.extract_regex(pc.utf8_lower(pc.utf8_trim_whitespace(cells)), _CELL)
    where = parts.is_valid().to_numpy(zero_copy_only=False)
    numbers = np.full(len(cells), np.nan)
    if where.any():
        numbers[where] = _values(parts.filter(pa.array(where)))
    return pa.array(numbers, mask=~np.isfinite(numbers))


def _values(parts: pa.StructArray) -> np.ndarray:
    """Return cells with the parts of a number as float64, NaN for those that are no number."""
    opened, sign, inner, digits, exponent, closed = (parts.field(position) for position in range(6))
    plain = _plain(digits)
    numbers = pc.cast(pc.binary_join_element_wise(plain, exponent, ""), pa.float64())
    numbers = pc.fill_null(numbers, np.nan).to_numpy(zero_copy_only=False)
    signs = [
        pc.not_equal(part, "").to_numpy(zero_copy_only=False)
        for part in (sign, inner, opened, closed)
    ]
    is_minus = pc.match_substring_regex(
        pc.binary_join_element_wise(sign, inner, ""), rf"[{_MINUS}]"
    )
    has_sign, has_inner, is_opened, is_closed = signs
    sound = (
        (is_opened == is_closed) & ~(has_sign & has_inner) & ~(is_opened & (has_sign | has_inner))
    )
    negative = is_minus.to_numpy(zero_copy_only=False) | is_opened
    return np.where(sound, np.where(negative, -numbers, numbers), np.nan)


def _plain(digits: pa.StringArray) -> pa.StringArray:
    """Write numbers with a decimal point and no separators; null if no shape matches."""
    plain = pa.nulls(len(digits), pa.string())
    for shape, separators, comma_is_mark in _SHAPES:
        written = pc.replace_substring_regex(digits, separators, "") if separators else digits
        if comma_is_mark:
            written = pc.replace_substring(written, ",", ".")
        is_new = pc.and_(plain.is_null(), pc.match_substring_regex(digits, shape))
        plain = pc.if_else(is_new, written, plain)
    return plain
