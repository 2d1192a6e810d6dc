"""What kind of values a column holds: text, dates, numbers or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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


def distinct_values(values: pa.StringArray) -> tuple[pa.StringArray, np.ndarray]:
    """Return the distinct values, white space around them removed, and how often each occurs.

    Parameters
    ----------
    values
        Length n, nulls allowed.

    Returns
    -------
    distinct, counts
        In order of first appearance; counts are int64. Nulls and values of white space alone are
        left out.
    """
    found = pc.utf8_trim_whitespace(values).value_counts()
    distinct, counts = found.field("values"), found.field("counts")
    kept = pc.fill_null(pc.greater(pc.binary_length(distinct), 0), False)
    return distinct.filter(kept), counts.filter(kept).to_numpy()


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
    found = [distinct_values(column) for column in columns]
    return profile_counted(found, list(map(len, columns)), max_number_fraction=max_number_fraction)


def profile_counted(
    found: Sequence[tuple[pa.StringArray, np.ndarray]],
    n_rows: Sequence[int],
    *,
    max_number_fraction: float = 0.5,
) -> list[ColumnProfile]:
    """Profile columns of which the distinct values are known.

    Parameters
    ----------
    found
        For each column what `distinct_values` returns.
    n_rows
        For each column its cells, empty ones included.
    """
    if not found:
        return []
    values = pa.concat_arrays([distinct for distinct, _ in found])
    counts = np.concatenate([counts for _, counts in found])
    column = np.repeat(np.arange(len(found)), [len(distinct) for distinct, _ in found])
    lower = pc.utf8_lower(values)
    is_number = pc.match_substring_regex(lower, _NUMBER).to_numpy(zero_copy_only=False)
    n_values, n_numbers = (
        np.bincount(column[chosen], weights=counts[chosen], minlength=len(found)).astype(np.int64)
        for chosen in (slice(None), is_number)
    )
    is_of_numbers = n_numbers > max_number_fraction * n_values
    checked = np.flatnonzero(~is_of_numbers[column])
    is_date = (
        canonical_dates(lower.take(pa.array(checked)), column[checked])
        .is_valid()
        .to_numpy(zero_copy_only=False)
    )
    dates = checked[is_date]
    n_dates = np.bincount(column[dates], weights=counts[dates], minlength=len(found)).astype(
        np.int64
    )
    n_tokens = pc.count_substring_regex(values, r"\S+").to_numpy()
    ends = np.cumsum([len(distinct) for distinct, _ in found])
    return [
        ColumnProfile(
            kind=_kind(int(n_values[i]), bool(is_of_numbers[i]), int(n_dates[i])),
            n_rows=n_rows[i],
            n_missing=n_rows[i] - int(n_values[i]),
            n_distinct=len(distinct),
            n_numbers=int(n_numbers[i]),
            n_dates=int(n_dates[i]),
            median_tokens=_median(n_tokens[ends[i] - len(distinct) : ends[i]], own_counts),
        )
        for i, (distinct, own_counts) in enumerate(found)
    ]


def _kind(n_values: int, is_of_numbers: bool, n_dates: int) -> ColumnKind:
    if not n_values:
        return "empty"
    if is_of_numbers:
        return "number"
    return "date" if n_dates > MIN_DATE_FRACTION * n_values else "text"


def _median(numbers: np.ndarray, counts: np.ndarray) -> float:
    """Return the median of `numbers`, each repeated `counts` times, without repeating them."""
    if not len(numbers):
        return 0.0
    order = np.argsort(numbers, kind="stable")
    reached = np.cumsum(counts[order])
    n_total = int(reached[-1])
    low, high = np.searchsorted(reached, [(n_total - 1) // 2, n_total // 2], side="right")
    return (float(numbers[order[low]]) + float(numbers[order[high]])) / 2
