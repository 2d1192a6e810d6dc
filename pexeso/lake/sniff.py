"""What kind of values a column holds: text, codes, dates, numbers or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.cells.counted_cells import CountedCells
from pexeso.lake.normalise.dates import canonical_dates

ColumnKind = Literal["text", "date", "number", "empty"]
ValueKind = Literal[ColumnKind, "code"]

MIN_DATE_FRACTION = 0.5
"""A column is one of dates where more than this fraction of its values are."""

_NUMBER = (
    r"^\(?[+\-\x{2212}\x{2013}]?\s?(?:\p{Sc}|us\$|usd|eur|gbp)?\s?[+\-\x{2212}\x{2013}]?"
    r"(?:[0-9]{1,3}(?:[,.'\x{2019}_\x{a0}\x{2009}\x{202f} "
    r"][0-9]{3})+(?:[.,][0-9]+)?|[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)"
    r"(?:e[+\-]?[0-9]+)?\s?(?:%|‰|\p{Sc}|usd|eur|gbp)?\)?$"
)
"""Numbers with signs, thousands separators, currency signs, percents, exponents, accountants'
brackets; lower case."""

MAY_BE_CODE = r"[\pN@]|://|www\."
"""What every code has in it, lower case."""

_WORD_OR_ADDRESS = r"^(?:\S*\pN\S*|(?:[a-z][a-z0-9+.\-]*://|www\.)\S+|\S+@\S+\.\S+)$"
"""One word with a digit, or the address of a page or of mail; lower case."""

_LETTERS, _DIGITS = np.zeros(256, bool), np.zeros(256, bool)
"""Bytes that letters begin with, and digits; lower case. Beyond ASCII all counts as a letter but
for the marks and signs up to U+00BF and from U+2000 to U+2FFF."""
_LETTERS[ord("a") : ord("z") + 1] = _LETTERS[0xC3:0xE2] = _LETTERS[0xE3:0xF5] = True
_DIGITS[ord("0") : ord("9") + 1] = True

DIGITS_A_LETTER = 2
"""Values of several words are codes where they have at least so many digits for each letter, as
telephone numbers and ``W 82-74`` have, and as ``NGC 4414`` and ``2001-02 Serie A``, which are
names, have not."""


@dataclass(frozen=True)
class ColumnProfile:
    """Facts about one column.

    Attributes
    ----------
    n_rows, n_missing
        Cells, and those of them that are missing, as `pexeso.lake.cells.missing` says.
    n_distinct
        Different values, white space around them ignored.
    n_numbers, n_dates
        Cells that are numbers or dates; dates are not counted (0) in columns of numbers.
    n_codes
        Cells that are codes: one word with a digit, an address of a page or of mail, or digits with
        few letters. They are counted in columns of text alone, and are 0 in others.
    """

    kind: ColumnKind
    n_rows: int
    n_missing: int
    n_distinct: int
    n_numbers: int
    n_dates: int
    median_tokens: float
    n_codes: int = 0

    @property
    def n_values(self) -> int:
        """Cells that hold something."""
        return self.n_rows - self.n_missing

    @property
    def value_kind(self) -> ValueKind:
        """`kind`, but ``code`` for a column of text more than half of whose values are codes."""
        return "code" if 2 * self.n_codes > self.n_values else self.kind


def profile_column(values: pa.StringArray, *, max_number_fraction: float = 0.5) -> ColumnProfile:
    """Profile one column.

    Examples
    --------
    >>> profile_column(pa.array(["Oslo", " Oslo", None, "Den Haag"])).n_distinct
    2
    >>> profile_column(pa.array(["$1,200", "7.5 %", "n/a"])).kind
    'number'
    >>> profile_column(pa.array(["AB-0017", "+41 44 123 45 67", "n/a"])).value_kind
    'code'
    """
    return profile_columns([values], max_number_fraction=max_number_fraction)[0]


def profile_columns(
    columns: Sequence[pa.StringArray], *, max_number_fraction: float = 0.5
) -> list[ColumnProfile]:
    """Profile the columns of one table in one pass over all their values.

    The profiles are those of `profile_column`.

    Patterns cost more to prepare than to apply to a short column, so this is many times faster for
    small tables.
    """
    cells = CountedCells.of(columns).trimmed()
    return profile_cells(cells, list(map(len, columns)), max_number_fraction=max_number_fraction)


def profile_cells(
    cells: CountedCells, n_rows: Sequence[int], *, max_number_fraction: float = 0.5
) -> list[ColumnProfile]:
    """Profile columns of which the distinct values are known.

    Parameters
    ----------
    n_rows
        For each column its cells, empty ones included.
    """
    if not cells.n_columns:
        return []
    values, counts, column = cells.texts, cells.counts, cells.columns
    lower = pc.utf8_lower(values)
    is_number = pc.match_substring_regex(lower, _NUMBER).to_numpy(zero_copy_only=False)
    n_values, n_numbers = cells.sums(counts), cells.sums(counts, is_number)
    is_of_numbers = n_numbers > max_number_fraction * n_values
    checked = np.flatnonzero(~is_of_numbers[column])
    is_date = (
        canonical_dates(lower.take(pa.array(checked)), column[checked])
        .is_valid()
        .to_numpy(zero_copy_only=False)
    )
    n_dates = cells.sums(counts, checked[is_date])
    is_of_dates = ~is_of_numbers & (n_dates > MIN_DATE_FRACTION * n_values)
    of_text = np.flatnonzero(~(is_of_numbers | is_of_dates)[column])
    n_codes = cells.sums(counts, of_text[_are_codes(lower.take(pa.array(of_text)))])
    medians = _medians(cells, pc.count_substring_regex(values, r"\S+").to_numpy())
    n_distinct = np.diff(cells.offsets)
    facts = (n_values, is_of_numbers, is_of_dates, n_distinct, n_numbers, n_dates, medians, n_codes)
    return [
        ColumnProfile(
            kind=_kind(values, of_numbers, of_dates),
            n_rows=rows,
            n_missing=rows - values,
            n_distinct=distinct,
            n_numbers=numbers,
            n_dates=dates,
            median_tokens=median,
            n_codes=codes,
        )
        for rows, values, of_numbers, of_dates, distinct, numbers, dates, median, codes in zip(
            n_rows, *(fact.tolist() for fact in facts), strict=True
        )
    ]


def _kind(n_values: int, is_of_numbers: bool, is_of_dates: bool) -> ColumnKind:
    if not n_values:
        return "empty"
    if is_of_numbers:
        return "number"
    return "date" if is_of_dates else "text"


def _are_codes(lower: pa.StringArray) -> np.ndarray:
    """Return which values are codes, bool; none is empty, and all are in lower case."""
    are_codes = _matches(lower, MAY_BE_CODE)
    # Most texts have none of it; what follows takes ten times as long.
    positions = np.flatnonzero(are_codes)
    are_codes[positions] = _matches(lower.take(pa.array(positions)), _WORD_OR_ADDRESS)
    positions = positions[~are_codes[positions]]
    some = lower.take(pa.array(positions))
    n_digits, n_letters = _count_bytes(some, _DIGITS), _count_bytes(some, _LETTERS)
    are_codes[positions] = (n_digits > 0) & (n_digits >= DIGITS_A_LETTER * n_letters)
    return are_codes


def _count_bytes(values: pa.StringArray, byte_mask: np.ndarray) -> np.ndarray:
    """Count in each value the bytes that `byte_mask` has, int64; no value is empty.

    A pattern of Unicode's letters would take longer than all else that is asked of a column.
    """
    lengths = pc.binary_length(values).to_numpy()
    if not len(lengths):
        return np.zeros(0, np.int64)
    starts = np.cumsum(lengths) - lengths
    *_, data = values.buffers()
    ours = np.frombuffer(data, np.uint8)[: starts[-1] + lengths[-1]]
    return np.add.reduceat(byte_mask[ours], starts, dtype=np.int64)


def _matches(values: pa.StringArray, pattern: str) -> np.ndarray:
    return pc.match_substring_regex(values, pattern).to_numpy(zero_copy_only=False).copy()


def _medians(cells: CountedCells, numbers: np.ndarray) -> np.ndarray:
    """Return for each column the median of one number a cell, each repeated as its cell is.

    Returns
    -------
    float64 (n_columns,)
        0 where a column has no cells.
    """
    order = np.lexsort((numbers, cells.columns))
    numbers, reached = numbers[order], np.cumsum(cells.counts[order])
    totals = cells.sums(cells.counts)
    before = np.cumsum(totals) - totals
    low, high = (
        np.searchsorted(reached, before + middle, side="right")
        for middle in (np.maximum(totals - 1, 0) // 2, totals // 2)
    )
    # A column without cells looks behind the last number at worst.
    numbers = np.append(numbers, 0)
    return np.where(totals > 0, (numbers[low] + numbers[high]) / 2, 0.0)
