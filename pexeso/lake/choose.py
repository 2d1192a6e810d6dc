"""Which columns can be join keys: named rules, each with a reason that carries the numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from math import inf
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.words import RUN_BYTES
from pexeso.errors import InputError
from pexeso.lake.cells import CountedCells
from pexeso.lake.normalise.dates import canonical_dates
from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.formatting import many
from pexeso.runtime.ranges import runs_of_lists
from pexeso.runtime.threads import release_unused

ColumnKind = Literal["text", "date", "number", "empty"]
ValueKind = Literal[ColumnKind, "code"]

# A column is one of dates where more than this fraction of its values are.
MIN_DATE_FRACTION = 0.5

# Numbers with signs, thousands separators, currency signs, percents, exponents, accountants'
# brackets; lower case.
_NUMBER = (
    r"^\(?[+\-\x{2212}\x{2013}]?\s?(?:\p{Sc}|us\$|usd|eur|gbp)?\s?[+\-\x{2212}\x{2013}]?"
    r"(?:[0-9]{1,3}(?:,[0-9]{2})*(?:[,.'\x{2019}_\x{a0}\x{2009}\x{202f} "
    r"][0-9]{3})+(?:[.,][0-9]+)?|[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)"
    r"(?:e[+\-]?[0-9]+)?\s?(?:%|‰|\p{Sc}|usd|eur|gbp)?\)?$"
)

# What every code has in it, lower case.
MAY_BE_CODE = r"[\pN@]|://|www\."

# One word with a digit, or the address of a page or of mail; lower case.
_WORD_OR_ADDRESS = r"^(?:\S*\pN\S*|(?:[a-z][a-z0-9+.\-]*://|www\.)\S+|\S+@\S+\.\S+)$"

# Bytes that letters begin with, and digits; lower case. Beyond ASCII all counts as a letter but
# for the marks and signs up to U+00BF and from U+2000 to U+2FFF.
_LETTERS, _DIGITS = np.zeros(256, bool), np.zeros(256, bool)
_LETTERS[ord("a") : ord("z") + 1] = _LETTERS[0xC3:0xE2] = _LETTERS[0xE3:0xF5] = True
_DIGITS[ord("0") : ord("9") + 1] = True

# Values of several words are codes where they have at least so many digits for each letter, as
# telephone numbers and ``W 82-74`` have, and as ``NGC 4414`` and ``2001-02 Serie A``, which are
# names, have not.
DIGITS_A_LETTER = 2

# Bytes of the columns that are profiled in one pass; a larger column has a pass of its own.
PASS_BYTES = 8 << 20

# The kinds of columns that rules may keep.
KINDS = ("text", "date", "number")


@dataclass(frozen=True)
class ColumnProfile:
    """Facts about one column."""

    kind: ColumnKind
    n_rows: int
    n_missing: int
    n_distinct: int
    # Cells that are numbers or dates; dates are not counted (0) in columns of numbers.
    n_numbers: int
    n_dates: int
    median_tokens: float
    # Cells that are codes: one word with a digit, an address of a page or of mail, or digits with
    # few letters. They are counted in columns of text alone, and are 0 in others.
    n_codes: int = 0

    @property
    def n_values(self) -> int:
        return self.n_rows - self.n_missing

    @property
    def value_kind(self) -> ValueKind:
        """`kind`, but ``code`` for a column of text more than half of whose values are codes."""
        return "code" if 2 * self.n_codes > self.n_values else self.kind


def profile_column(values: pa.StringArray, *, max_number_fraction: float = 0.5) -> ColumnProfile:
    return profile_columns([values], max_number_fraction=max_number_fraction)[0]


def profile_columns(
    columns: Sequence[pa.StringArray], *, max_number_fraction: float = 0.5
) -> list[ColumnProfile]:
    """Profile the columns of one table.

    The profiles are those of `profile_column`.

    Patterns cost more to prepare than to apply to a short column, so columns share passes of at
    most `PASS_BYTES`, which is many times faster for small tables. Memory: about six times the
    bytes of a pass.
    """
    profiles: list[ColumnProfile] = []
    for run in passes_over(columns):
        some = columns[run]
        profiles += profile_cells(
            CountedCells.of(some).trimmed(),
            list(map(len, some)),
            max_number_fraction=max_number_fraction,
        )
    return profiles


def passes_over(columns: Sequence[pa.StringArray]) -> Iterator[slice]:
    """Yield runs of columns of about `PASS_BYTES`, or of one larger column."""
    sizes = np.cumsum([column.nbytes for column in columns])
    for _, run in groupby(range(len(columns)), lambda at: sizes[at] // PASS_BYTES):
        first, *others = run
        release_unused(int(sizes[-1]))  # of the pass before
        yield slice(first, first + 1 + len(others))


def profile_cells(
    cells: CountedCells, n_rows: Sequence[int], *, max_number_fraction: float = 0.5
) -> list[ColumnProfile]:
    """Profile columns of which the distinct values are known.

    n_rows: for each column its cells, empty ones included.
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
        canonical_dates(_at_positions(lower, checked), column[checked])
        .is_valid()
        .to_numpy(zero_copy_only=False)
    )
    n_dates = cells.sums(counts, checked[is_date])
    is_of_dates = ~is_of_numbers & (n_dates > MIN_DATE_FRACTION * n_values)
    of_text = np.flatnonzero(~(is_of_numbers | is_of_dates)[column])
    n_codes = cells.sums(counts, of_text[_are_codes(_at_positions(lower, of_text))])
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


def _at_positions(texts: pa.StringArray, positions: np.ndarray) -> pa.StringArray:
    return texts if len(positions) == len(texts) else texts.take(pa.array(positions))


def _kind(n_values: int, is_of_numbers: bool, is_of_dates: bool) -> ColumnKind:
    if not n_values:
        return "empty"
    if is_of_numbers:
        return "number"
    return "date" if is_of_dates else "text"


def _are_codes(lower: pa.StringArray) -> np.ndarray:
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
    text, offsets = string_buffers(values)
    counts = np.zeros(len(values), np.int64)
    for run in runs_of_lists(offsets, RUN_BYTES):
        start, end = offsets[run.start], offsets[run.stop]
        flags = byte_mask[text[start:end]]
        counts[run] = np.add.reduceat(flags, offsets[run] - start, dtype=np.int64)
    return counts


def _matches(values: pa.StringArray, pattern: str) -> np.ndarray:
    return pc.match_substring_regex(values, pattern).to_numpy(zero_copy_only=False).copy()


def _medians(cells: CountedCells, numbers: np.ndarray) -> np.ndarray:
    """Return for each column the median of one number a cell, each repeated as its cell is.

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


@dataclass(frozen=True)
class ColumnRules:
    """When a column is left out of the index. Every bound is itself allowed.

    Attributes
    ----------
    kinds
        Kinds of columns that are kept, out of ``text``, ``date``, ``number``. Semantic joins have
        nothing to say about numbers.
    min_rows
        Tables with fewer rows are left out, 1 or more.
    min_distinct
        Columns with fewer different values are left out, 1 or more: a constant is no key.
    max_number_fraction
        In [0, 1]. A column is one of numbers where a larger fraction of its values are numbers.
    max_median_tokens
        Columns whose median value has more words are free text, not keys; 1 or more.
    max_missing_fraction
        In [0, 1]. Columns with a larger fraction of empty cells are left out; 1 switches the rule
        off.

    Raises
    ------
    InputError
        A value is out of its range.

    Examples
    --------
    >>> ColumnRules(min_rows=10).min_rows
    10
    """

    kinds: tuple[str, ...] = ("text", "date")
    min_rows: int = 5
    min_distinct: int = 2
    max_number_fraction: float = 0.5
    max_median_tokens: float = 12
    max_missing_fraction: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.kinds, str) or not self.kinds or not set(self.kinds) <= set(KINDS):
            raise InputError(
                f"kinds must be one or more of {', '.join(KINDS)}. Got {self.kinds!r}."
            )
        object.__setattr__(self, "kinds", tuple(kind for kind in KINDS if kind in self.kinds))
        for name in ("min_rows", "min_distinct"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} must be a whole number, 1 or more. Got {value!r}.")
        for name in ("max_number_fraction", "max_missing_fraction"):
            self._check_number(name, 0, 1)
        self._check_number("max_median_tokens", 1, inf)

    def _check_number(self, name: str, low: float, high: float) -> None:
        value = getattr(self, name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        # Written so that NaN, which compares false with everything, is refused.
        if not is_number or not low <= value <= high or value == inf:
            bounds = f"of {low} or more" if high == inf else f"from {low} to {high}"
            raise InputError(f"{name} must be a number {bounds}. Got {value!r}.")

    def to_dict(self) -> dict[str, object]:
        """Return the rules as plain values that JSON can hold."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "kinds": list(self.kinds)}

    @classmethod
    def from_dict(cls, values: dict[str, object]) -> "ColumnRules":
        """Return the rules that `to_dict` wrote; InputError for unknown ones.

        Raises
        ------
        InputError
            A rule is unknown or a value out of its range.
        """
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise InputError(f"Unknown column rules: {', '.join(sorted(map(str, unknown)))}.")
        kinds = values.get("kinds", cls.kinds)
        return cls(**{**values, "kinds": tuple(kinds) if isinstance(kinds, list) else kinds})  # type: ignore[arg-type]


def reason_left_out(profile: ColumnProfile, rules: ColumnRules) -> str | None:
    """Return why a column is left out, None where it is kept; by the first rule that fails."""
    if profile.n_rows < rules.min_rows:
        return f"{many(profile.n_rows, 'row')}, at least {rules.min_rows:,} needed (min_rows)"
    if profile.kind == "empty":
        return "no values: every cell is missing"
    if profile.kind not in rules.kinds:
        return _wrong_kind(profile, rules)
    if profile.n_distinct < rules.min_distinct:
        return reason_too_few(profile.n_distinct, rules)
    if profile.median_tokens > rules.max_median_tokens:
        return (
            f"free text: a median of {profile.median_tokens:g} words a value, "
            f"at most {rules.max_median_tokens:g} allowed (max_median_tokens)"
        )
    if profile.n_missing > rules.max_missing_fraction * profile.n_rows:
        return (
            f"{_percent(profile.n_missing, profile.n_rows)} of the cells are empty, "
            f"at most {rules.max_missing_fraction:.4g} of them allowed (max_missing_fraction)"
        )
    return None


def reason_too_few(n_distinct: int, rules: ColumnRules) -> str:
    return (
        f"{many(n_distinct, 'distinct value')}, at least {rules.min_distinct:,} needed "
        "(min_distinct)"
    )


def _wrong_kind(profile: ColumnProfile, rules: ColumnRules) -> str:
    kinds = " and ".join(rules.kinds)
    if profile.kind == "number":
        return (
            f"numbers: {_percent(profile.n_numbers, profile.n_values)} of the values, over the "
            "fraction of "
            f"{rules.max_number_fraction:g} (max_number_fraction), and only {kinds} columns are "
            "kept (kinds)"
        )
    return f"a {profile.kind} column, and only {kinds} columns are kept (kinds)"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.4g} %"
