"""Numbers in cells of text, for sums and for searches by equal values.

- White space around a cell does not count; a sign, also a typographic minus, may come before the
  number; brackets mean a negative one: ``(1,200)`` is -1200.
- One currency sign may stand before or behind it, or a sign of percent behind it.
- Blanks, apostrophes and underscores between groups of three digits are thousands separators, and
  so are commas (``1,234`` is 1234, ``12,34,567`` is 1234567) but behind a 0, and points where there
  are several, or a comma after them (``1.234.567``, ``1.234,50``). Otherwise a comma or point is
  the decimal mark: ``3,5`` is 3.5, ``0,750`` is .75, ``1.234`` is 1.234. Where cells of the column
  show that the comma is the decimal mark and none shows that the point is, ``1.234`` is 1234, and
  ``1,234`` is 1.234; but one slip such as ``13,5000`` among many like ``1,234`` shows nothing.
- An exponent may follow: ``1e6``. Anything else, words and units included, is no number.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.normalise.characters import as_mask

_BLANKS = r" \x{a0}\x{2009}\x{202f}"
_MINUS = r"\-\x{2212}\x{2013}"
_CELL = (
    rf"^(?P<open>\(?)[{_BLANKS}]?(?P<sign>[+{_MINUS}]?)[{_BLANKS}]?(?P<currency>\p{{Sc}}?)"
    rf"[{_BLANKS}]?(?P<inner>[+{_MINUS}]?)(?P<digits>[0-9.,][0-9.,'\x{{2019}}_{_BLANKS}]*?)"
    rf"(?P<exponent>(?:[eE][+\-]?[0-9]+)?)[{_BLANKS}]?(?P<unit>[%\x{{2030}}\p{{Sc}}]?)"
    r"(?P<close>\)?)$"
)
_GROUP_SIGNS = rf"['\x{{2019}}_{_BLANKS}]"
_GROUPS_BY_COMMA = (
    r"(?:(?:[1-9][0-9]{0,2}|0[0-9]{1,2})(?:,[0-9]{3})+|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3})"
)
# Where the point is the decimal mark, and where the comma is: the first shape of a number, whose
# separator is taken away. Behind it come those of either, with whether a comma is the mark.
_FIRST = (
    (rf"^{_GROUPS_BY_COMMA}(?:\.[0-9]*)?$", ","),  # 0,750 has no thousands
    (r"^[1-9][0-9]{0,2}(?:\.[0-9]{3})+$", r"\."),
)
_SHAPES = (
    (r"^[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]*$", r"\."),
    (r"^[0-9]{1,3}(?:\.[0-9]{3}){2,}$", r"\."),
    (rf"^[0-9]{{1,3}}(?:{_GROUP_SIGNS}[0-9]{{3}})+(?:[.,][0-9]*)?$", _GROUP_SIGNS),
    (r"^(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)$", ""),
)
# What shows that the comma is the decimal mark, that the point is, and what may be thousands.
_MARKS = (
    r",(?:[0-9]{1,2}|[0-9]{4,})?$|^0*,|\..*[.,]",
    r"\.(?:[0-9]{1,2}|[0-9]{4,})?$|^0*\.|,.*[.,]",
    r"^[0-9]{1,3},[0-9]{3}$",
)


def numbers_in(
    cells: pa.StringArray, columns: np.ndarray | None = None, *, comma: bool = False
) -> tuple[pa.StringArray, pa.StringArray, pa.BooleanArray]:
    """Read the numbers in cells without white space around them, as this module says.

    `columns` has the column of each cell; by default all are of one. `comma` says that the comma
    is the decimal mark in columns that do not show what is.

    Returns the numbers as texts, with a decimal point and no separators, a sign and a currency in
    front and a unit behind; the same without these; and which are negative. The texts are null
    where a cell holds no number.
    """
    parts, nothing = pc.extract_regex(cells, _CELL), pa.scalar("", cells.type)
    part = {field.name: parts.field(number) for number, field in enumerate(parts.type)}
    columns = np.zeros(len(cells), np.int64) if columns is None else columns
    has = {name: as_mask(pc.not_equal(text, "")) for name, text in part.items()}
    is_share = pc.match_substring_regex(part["unit"], r"[%\x{2030}]")
    behind = pc.if_else(is_share, nothing, part["unit"])
    n_signs = has["sign"].astype(int) + has["inner"] + has["open"]
    sound = (has["open"] == has["close"]) & (n_signs < 2)
    sound &= ~(has["currency"] & as_mask(pc.not_equal(behind, "")))
    digits = _plain(part["digits"], columns, comma)
    digits = pc.if_else(pa.array(sound), digits, pa.scalar(None, digits.type))
    plain = pc.binary_join_element_wise(digits, part["exponent"], nothing)
    sign = pc.binary_join_element_wise(part["sign"], part["inner"], nothing)
    is_minus = as_mask(pc.match_substring_regex(sign, rf"[{_MINUS}]")) | has["open"]
    sign = pc.if_else(pa.array(is_minus), pa.scalar("-", sign.type), sign)
    unit = pc.if_else(is_share, part["unit"], nothing)
    texts = pc.binary_join_element_wise(sign, part["currency"], behind, plain, unit, nothing)
    return texts, plain, pa.array(is_minus)


def _plain(digits: pa.StringArray, columns: np.ndarray, comma: bool) -> pa.StringArray:
    """Write numbers with a decimal point and no separators; null if no shape matches."""
    n = int(columns.max(initial=-1)) + 1
    by_comma, by_point, may_be_thousands = (
        np.bincount(columns[as_mask(pc.match_substring_regex(digits, mark))], minlength=n)
        for mark in _MARKS
    )
    shows_comma = (by_comma > 0) & (4 * by_comma**2 >= may_be_thousands)
    is_comma = pa.array(((shows_comma | comma) & (by_point == 0))[columns])
    plain = pa.nulls(len(digits), digits.type)
    for (shape, separator), flags in zip(_FIRST, (pc.invert(is_comma), is_comma), strict=True):
        is_new = pc.and_(flags, pc.match_substring_regex(digits, shape))
        plain = pc.if_else(is_new, pc.replace_substring_regex(digits, separator, ""), plain)
    for shape, separators in _SHAPES:
        written = pc.replace_substring_regex(digits, separators, "") if separators else digits
        written = pc.replace_substring(written, ",", ".")
        is_new = pc.and_(plain.is_null(), pc.match_substring_regex(digits, shape))
        plain = pc.if_else(is_new, written, plain)
    return pc.replace_substring_regex(pc.replace_substring_regex(plain, r"^\.", "0."), r"\.$", "")
