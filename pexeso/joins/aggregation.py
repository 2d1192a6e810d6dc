"""Aggregation of the cells of several rows into one cell.

The ways are first, list, distinct and count, and the mean, sum, minimum and maximum of numbers.
One rule says which numbers cells of text hold:

- White space around a cell does not count; a sign, also a typographic minus, may come before the
  number; brackets mean a negative one: ``(1,200)`` is -1200.
- One currency sign before or behind it, or a percent sign behind it, is left out: ``$5`` is 5 and
  ``12 %`` is 12. Different units are not distinguished.
- Blanks, apostrophes and underscores between groups of three digits are thousands separators, and
  so are commas (``1,234`` is 1234) but behind a 0, and points where there are several, or a comma
  after them (``1.234.567``, ``1.234,50``). Otherwise a comma or point is the decimal mark: ``3,5``
  is 3.5, ``0,750`` is .75, ``1.234`` is 1.234. Where cells of the column show that the comma is
  the decimal mark and none shows that the point is, ``1.234`` is 1234, and ``1,234`` is 1.234.
- An exponent may follow: ``1e6``. Anything else, words and units included, is no number.
"""

from __future__ import annotations

from dataclasses import dataclass

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
# The first of them where the comma is the decimal mark, and what shows that it is, and is not.
_POINTED = (r"^[1-9][0-9]{0,2}(?:\.[0-9]{3})+$", r"\.", False)
_COMMA_IS_MARK = r",(?:[0-9]{1,2}|[0-9]{4,})?$|^0*,|\..*[.,]"
_POINT_IS_MARK = r"\.(?:[0-9]{1,2}|[0-9]{4,})?$|^0*\.|,.*[.,]"


@dataclass(frozen=True)
class Groups:
    """Rows in groups, those of one together: the first row of each, the group of each row."""

    starts: np.ndarray
    of_row: np.ndarray

    @classmethod
    def of(cls, sorted_ids: np.ndarray) -> Groups:
        if not len(sorted_ids):
            return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        is_start = np.concatenate([[True], np.diff(sorted_ids) != 0])
        return cls(np.flatnonzero(is_start), np.cumsum(is_start) - 1)

    def __len__(self) -> int:
        return len(self.starts)


def type_of(way: str) -> pa.DataType:
    return {
        "first": pa.string(),
        "list": pa.list_(pa.string()),
        "distinct": pa.list_(pa.string()),
        "count": pa.int64(),
    }.get(way, pa.float64())


def aggregated(cells: pa.StringArray, groups: Groups, way: str) -> pa.Array:
    """Aggregate the cells of each group, one a row and null where empty, as `type_of(way)`.

    ``first`` takes the cell of the first row, also an empty one, so that all columns aggregated so
    come from the same row. ``list``, ``distinct`` and ``count`` are of the cells that are not
    empty; ``mean``, ``sum``, ``min`` and ``max`` of those that hold numbers, null where there are
    none: they may be given as numbers, read from the whole column.
    """
    if way == "first":
        return cells.take(pa.array(groups.starts))
    if way in ("list", "distinct", "count"):
        return _listed(cells, groups, way)
    return _computed(cells, groups, way)


def differing(cells: pa.StringArray, groups: Groups) -> tuple[np.ndarray, pa.StringArray]:
    """Return the different cells of the groups with several; empty cells do not count."""
    row = _first_rows(cells, groups)
    counts = np.bincount(groups.of_row[row], minlength=len(groups))
    row = row[counts[groups.of_row[row]] > 1]
    return groups.of_row[row], cells.take(pa.array(row))


def _first_rows(cells: pa.StringArray, groups: Groups) -> np.ndarray:
    row = _present(cells)
    encoded = cells.take(pa.array(row)).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first = np.unique(
        groups.of_row[row] * max(1, len(encoded.dictionary)) + codes, return_index=True
    )
    return row[np.sort(first)]


def _present(cells: pa.StringArray) -> np.ndarray:
    return np.flatnonzero(cells.is_valid().to_numpy(zero_copy_only=False))


def _listed(cells: pa.StringArray, groups: Groups, way: str) -> pa.Array:
    row = _first_rows(cells, groups) if way == "distinct" else _present(cells)
    counts = np.bincount(groups.of_row[row], minlength=len(groups))
    if way == "count":
        return pa.array(counts, pa.int64())
    ends = np.cumsum(counts)
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), cells.take(pa.array(row)))


def _computed(cells: pa.StringArray, groups: Groups, way: str) -> pa.DoubleArray:
    numbers = cells if pa.types.is_floating(cells.type) else read_numbers(cells)
    row = _present(numbers)
    values, group = numbers.to_numpy(zero_copy_only=False)[row], groups.of_row[row]
    counts = np.bincount(group, minlength=len(groups))
    if way in ("mean", "sum"):
        # Without any number numpy counts in whole ones.
        results = np.bincount(group, weights=values, minlength=len(groups)).astype(np.float64)
        if way == "mean":
            results = results / np.maximum(counts, 1)
    else:
        results = np.zeros(len(groups))
        of_some = Groups.of(group)
        if len(of_some):
            reduce = np.minimum.reduceat if way == "min" else np.maximum.reduceat
            results[group[of_some.starts]] = reduce(values, of_some.starts)
    return pa.array(results, mask=counts == 0)


def not_numbers(cells: pa.StringArray) -> tuple[pa.StringArray, np.ndarray]:
    """Return the cells that are neither empty nor numbers, with the count of each text.

    Each text is listed once.
    """
    left = cells.filter(pc.and_(cells.is_valid(), read_numbers(cells).is_null()))
    counts = left.value_counts()
    return counts.field("values"), counts.field("counts").to_numpy(zero_copy_only=False)


def read_numbers(cells: pa.StringArray) -> pa.DoubleArray:
    """Read the numbers in cells, as the rule of this module says."""
    encoded = cells.dictionary_encode()
    return _read(encoded.dictionary.cast(pa.string())).take(encoded.indices)


# Signs of currencies and of shares, of which two different ones tell amounts apart.
_NO_SIGN = r"[^\p{Sc}%‰‱]+"


def are_unlike(ours: pa.StringArray, theirs: pa.StringArray) -> pa.BooleanArray:
    """Return for pairs of numbers which differ in their sign, or have other currencies."""
    one, other = read_numbers(ours), read_numbers(theirs)
    negated = pc.and_(pc.equal(one, pc.negate(other)), pc.not_equal(one, 0))
    one, other = (pc.replace_substring_regex(side, _NO_SIGN, "") for side in (ours, theirs))
    known = pc.and_(pc.not_equal(one, ""), pc.not_equal(other, ""))
    converted = pc.and_(known, pc.not_equal(one, other))
    return pc.or_(pc.fill_null(negated, False), converted)


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
    plain, shapes = pa.nulls(len(digits), pa.string()), _SHAPES
    with_comma, with_point = (
        pc.any(pc.match_substring_regex(digits, sign)).as_py()
        for sign in (_COMMA_IS_MARK, _POINT_IS_MARK)
    )
    if with_comma and not with_point:
        shapes = (_POINTED, *_SHAPES[1:])
    for shape, separators, comma_is_mark in shapes:
        written = pc.replace_substring_regex(digits, separators, "") if separators else digits
        if comma_is_mark:
            written = pc.replace_substring(written, ",", ".")
        is_new = pc.and_(plain.is_null(), pc.match_substring_regex(digits, shape))
        plain = pc.if_else(is_new, written, plain)
    return plain
