"""What kind of values a column holds: text, dates, numbers or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.counted_cells import CountedCells
from pexeso.lake.normalise.dates import canonical_dates

ColumnKind = Literal["text", "date", "number", "empty"]

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


@dataclass(frozen=True)
class ColumnProfile:
    """Facts about one column.

    Attributes
    ----------
    kind
        ``number`` where more than the asked fraction of the values are numbers, ``date`` where more
        than half are dates, ``empty`` where there are no values, else ``text``.
    n_rows, n_missing
        Cells, and those of them that are null or only white space.
    n_distinct
        Different values, white space around them ignored.
    n_numbers, n_dates
        Cells that are numbers or dates; dates are not counted (0) in columns of numbers.
    median_tokens
        Median over the values, with repeats, of the number of words between white space; 0 where
        there are none.
    """

    kind: ColumnKind
    n_rows: int
    n_missing: int
    n_distinct: int
    n_numbers: int
    n_dates: int
    median_tokens: float

    @property
    def n_values(self) -> int:
        """Cells that hold something."""
        return self.n_rows - self.n_missing


def profile_column(values: pa.StringArray, *, max_number_fraction: float = 0.5) -> ColumnProfile:
    """Profile one column.

    Parameters
    ----------
    values
        The cells, null where empty.
    max_number_fraction
        In [0, 1]; a column with more numbers among its values is of kind ``number``.

    Examples
    --------
    >>> profile_column(pa.array(["Oslo", " Oslo", None, "Den Haag"])).n_distinct
    2
    >>> profile_column(pa.array(["$1,200", "7.5 %", "n/a"])).kind
    'number'
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
    cells
        Without white space around them, and none empty.
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
    medians = _medians(cells, pc.count_substring_regex(values, r"\S+").to_numpy())
    facts = (n_values, is_of_numbers, np.diff(cells.offsets), n_numbers, n_dates, medians)
    return [
        ColumnProfile(
            kind=_kind(values, of_numbers, dates),
            n_rows=rows,
            n_missing=rows - values,
            n_distinct=distinct,
            n_numbers=numbers,
            n_dates=dates,
            median_tokens=median,
        )
        for rows, values, of_numbers, distinct, numbers, dates, median in zip(
            n_rows, *(fact.tolist() for fact in facts), strict=True
        )
    ]


def _kind(n_values: int, is_of_numbers: bool, n_dates: int) -> ColumnKind:
    if not n_values:
        return "empty"
    if is_of_numbers:
        return "number"
    return "date" if n_dates > MIN_DATE_FRACTION * n_values else "text"


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
