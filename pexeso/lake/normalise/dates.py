"""Recognition of dates in the forms that tables use.

Dates are written in one canonical form with a named month.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.normalise.characters import DIGITS, Bytes
from pexeso.lake.normalise.date_words import MONTHS, is_calendar_date, whole_years, written_dates

_MAX_DATE_BYTES = 64
_MONTH_SPELLINGS = [*MONTHS, *(name[:3] for name in MONTHS), "sept"]
_MONTH_NUMBERS = np.array([*range(1, 13), *range(1, 13), 9])

_NAME = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    + ("nov(?:ember)?|dec(?:ember)?")
)
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+)?"
# The shortest start of a value whose rest is a time of day or nothing.
_DATE_AND_TIME = (
    r"^(?P<date>.+?)"
    r"(?:(?:t|,?\s+)(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?P<fraction>\.\d+)?)?"
    r"\s*(?P<half>[ap]\.?m\.?)?\s*(?P<zone>z|utc|gmt|[+-]\d\d:?\d\d)?)?$"
)
_SHAPES = {
    "year_first": r"(?P<year>[12]\d{3})"
    r"(?:-(?P<month>\d\d?)-|/(?P<month2>\d\d?)/|\.(?P<month3>\d\d?)\.)(?P<day>\d\d?)",
    "day_name": rf"{_WEEKDAY}(?P<day>\d\d?)(?:st|nd|rd|th)?"
    rf"[\s.\-/]*(?:of\s+)?(?P<month>{_NAME})[\s.,\-/]*"
    r"(?P<year>[12]\d{3}|\d\d)",
    "name_day": rf"{_WEEKDAY}(?P<month>{_NAME})[\s.\-/]*(?P<day>\d\d?)(?:st|nd|rd|th)?"
    r"(?:\s*[,\-/.]\s*|\s+)(?P<year>[12]\d{3})",
    "signs": r"(?P<year>[12]\d{3})[年년]\s?(?P<month>\d\d?)[月월]\s?(?P<day>\d\d?)[日일]",
    "dots": r"(?P<day>\d\d?)\.\s?(?P<month>\d\d?)\.\s?(?P<year>[12]\d{3})|"
    r"(?P<day2>\d\d)\.(?P<month2>\d\d)\.(?P<year2>\d\d)",
    "two_orders": r"(?P<first>\d\d?)/(?P<second_part>\d\d?)/(?P<year>[12]\d{3}|\d\d)|"
    r"(?P<first2>\d\d?)-(?P<second_part2>\d\d?)-(?P<year2>[12]\d{3})",
}


_NAMED = ("day_name", "name_day")
# What every value of the shapes holds somewhere: numbers between separators, or a month's name
# beside a number.
_NUMBERS_HINT = r"[0-9][./-]\s?[0-9][0-9]?[./-]|[0-9][年년]"
_NAMES_HINT = (
    r"\d[\sa-z.,/-]*(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[\s./-]*\d"
)


@dataclass(frozen=True)
class _Parts:
    """Year, month and day of the values at `positions`, as int64 arrays of equal length.

    A number is 0 if the part is missing or invalid.
    """

    positions: np.ndarray
    year: np.ndarray
    month: np.ndarray
    day: np.ndarray
    time: pa.StringArray


def canonical_dates(
    values: pa.StringArray, groups: np.ndarray | None = None, *, names_have_times: bool = False
) -> pa.StringArray:
    """Write every date as day, month name and year; null where a value is no date.

    Recognised are ISO dates and others with the year first, dates with a month's English name or
    its abbreviation, with or without a weekday, day first with dots, and numbers with slashes or
    hyphens in either order. The month is named because word order carries no meaning later:
    2020-03-05 and 2020-05-03 must not have the same words.

    Which number of ``3/5/1953`` is the month is decided over all values of a group: the day comes
    first where some first number is over 12 and no second one is; else the month comes first. A
    value that is no date in the order so found is read in the other one. Two-digit years need
    slashes, a named month, or two digits throughout with dots; ``3-1-0`` is a score and no date.

    A time other than midnight follows the date as words; a time zone follows unless it is UTC.

    Parameters
    ----------
    groups
        int64, shape (n,), 0 or more: the column that each value comes from. All are of one column
        where it is None.

    Examples
    --------
    >>> canonical_dates(pa.array(["1953-03-05", "mar 5, 1953", "05.03.1953", "paris"])).to_pylist()
    ['5 march 1953', '5 march 1953', '5 march 1953', None]
    >>> canonical_dates(pa.array(["13/5/1953", "3/5/1953 14:30"])).to_pylist()
    ['13 may 1953', '3 may 1953 14 30']
    """
    numbers, names = _likely(values, names_have_times)
    at = np.union1d(numbers, names)
    groups = np.zeros(len(values), dtype=np.int64) if groups is None else groups
    texts: list[pa.StringArray] = []
    found_at: list[np.ndarray] = []
    split = pc.extract_regex(values.take(pa.array(at)), _DATE_AND_TIME) if len(at) else None
    for kind, shape in _SHAPES.items():
        if not len(at):
            break
        if not len(names if kind in _NAMED else numbers):
            continue
        parts = _extract(split, shape, groups[at])
        if parts is None:
            continue
        rows, text = _written(parts)
        texts.append(text)
        found_at.append(at[rows])
        rest = np.delete(np.arange(len(at)), rows)
        at, split = at[rest], split.take(pa.array(rest))
    return _scatter(len(values), found_at, texts)


def _likely(values: pa.StringArray, names_have_times: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of values that may be dates in numbers and with names.

    Nearly all other values of a lake fail these cheap tests.
    """
    has_digits = Bytes(values).occurring[list(DIGITS)].any()
    has_numbers = (
        _short(values, pc.match_substring_regex(values, _NUMBERS_HINT))
        if has_digits
        else np.zeros(0, dtype=np.int64)
    )
    may_name = (
        np.flatnonzero(_true(pc.match_substring(values, ":")))
        if names_have_times
        else np.arange(len(values))
    )
    if not len(may_name):
        return has_numbers, may_name
    some = values.take(pa.array(may_name))
    return has_numbers, may_name[_short(some, pc.match_substring_regex(some, _NAMES_HINT))]


def _short(values: pa.StringArray, flags: pa.BooleanArray) -> np.ndarray:
    """Return the positions of values that have the flag and are no longer than a date."""
    at = np.flatnonzero(_true(flags))
    return at[_true(pc.less_equal(pc.binary_length(values.take(pa.array(at))), _MAX_DATE_BYTES))]


def _true(flags: pa.BooleanArray) -> np.ndarray:
    return (pc.fill_null(flags, False) if flags.null_count else flags).to_numpy(
        zero_copy_only=False
    )


def _scatter(
    n_values: int, positions: list[np.ndarray], texts: list[pa.StringArray]
) -> pa.StringArray:
    if not positions:
        return pa.nulls(n_values, pa.string())
    source = np.full(n_values, -1, dtype=np.int64)
    joined = np.concatenate(positions)
    source[joined] = np.arange(len(joined))
    return pa.concat_arrays(texts).take(pa.array(source, mask=source < 0))


def _extract(split: pa.StructArray, shape: str, groups: np.ndarray) -> _Parts | None:
    """Extract the dates of one shape, or return None if there are none.

    `split` holds the fields of `_DATE_AND_TIME`.
    """
    matches = pc.extract_regex(split.field("date"), f"^(?:{shape})$")
    positions = np.flatnonzero(matches.is_valid().to_numpy(zero_copy_only=False))
    if not len(positions):
        return None
    matches, split = matches.take(pa.array(positions)), split.take(pa.array(positions))
    fields = _fields(matches)
    year = _whole_years(_first(fields, "year", "year2"))
    if "first" in fields:
        first, second = (
            _first(fields, "first", "first2"),
            _first(fields, "second_part", "second_part2"),
        )
        month, day = _in_order(_number(first), _number(second), groups[positions])
    else:
        month = _month(_first(fields, "month", "month2", "month3"))
        day = _number(_first(fields, "day", "day2"))
    return _Parts(positions, year, month, day, _time_words(_fields(split)))


def _fields(groups: pa.StructArray) -> dict[str, pa.StringArray]:
    return {field.name: groups.field(i) for i, field in enumerate(groups.type)}


def _first(fields: dict[str, pa.StringArray], *names: str) -> pa.StringArray:
    """Return the group that took part in the match.

    Alternatives of a shape have groups of their own.
    """
    group = fields[names[0]]
    for name in names[1:]:
        if name in fields:
            group = pc.if_else(pc.equal(group, ""), fields[name], group)
    return group


def _number(texts: pa.StringArray) -> np.ndarray:
    filled = pc.if_else(pc.equal(texts, ""), "0", texts)
    return filled.cast(pa.int64()).to_numpy(zero_copy_only=False)


def _month(texts: pa.StringArray) -> np.ndarray:
    named = pc.index_in(texts, pa.array(_MONTH_SPELLINGS))
    is_named = named.is_valid().to_numpy(zero_copy_only=False)
    from_name = _MONTH_NUMBERS[pc.fill_null(named, 0).to_numpy(zero_copy_only=False)]
    numbers = _number(pc.if_else(pa.array(is_named), "0", texts))
    return np.where(is_named, from_name, numbers)


def _whole_years(texts: pa.StringArray) -> np.ndarray:
    return whole_years(_number(texts))


def _in_order(
    first: np.ndarray, second: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (month, day) of numbers whose order is decided by evidence; see `canonical_dates`."""
    says_day_first = np.bincount(groups[first > 12], minlength=groups.max(initial=0) + 1) > 0
    says_month_first = np.bincount(groups[second > 12], minlength=groups.max(initial=0) + 1) > 0
    is_day_first = (says_day_first & ~says_month_first)[groups]
    month, day = np.where(is_day_first, second, first), np.where(is_day_first, first, second)
    swap = (month > 12) & (day <= 12)
    return np.where(swap, day, month), np.where(swap, month, day)


def _written(parts: _Parts) -> tuple[np.ndarray, pa.StringArray]:
    """Return the rows that are valid calendar dates, and their text.

    Rows are taken from `parts.positions`.
    """
    in_range = (parts.month >= 1) & (parts.month <= 12) & (parts.day >= 1)
    rows = np.flatnonzero(
        in_range & is_calendar_date(parts.day, np.where(in_range, parts.month, 1), parts.year)
    )
    text = written_dates(parts.day[rows], parts.month[rows], parts.year[rows])
    return parts.positions[rows], pc.binary_join_element_wise(
        text, parts.time.take(pa.array(rows)), ""
    )


def _time_words(fields: dict[str, pa.StringArray]) -> pa.StringArray:
    """Return `` 14 30`` or `` 14 30 05``, or an empty text for midnight.

    Fraction and zone are added if they are significant.
    """
    if not pc.any(pc.not_equal(fields["hour"], "")).as_py():
        return fields["hour"]
    hour, minute, second = (_number(fields[name]) for name in ("hour", "minute", "second"))
    half = fields["half"]
    is_evening = pc.starts_with(half, "p").to_numpy(zero_copy_only=False)
    is_morning = pc.starts_with(half, "a").to_numpy(zero_copy_only=False)
    hour = np.where(
        is_evening & (hour < 12), hour + 12, np.where(is_morning & (hour == 12), 0, hour)
    )
    fraction = pc.utf8_ltrim(pc.utf8_rtrim(fields["fraction"], "0"), ".")
    zone = pc.replace_substring_regex(fields["zone"], r"^(?:z|utc|gmt|[+-]00:?00)$", "")
    zone = pc.replace_substring(zone, ":", "")
    clock = pc.binary_join_element_wise(_two_digits(hour), _two_digits(minute), " ")
    seconds = pc.if_else(pa.array(second > 0), _spaced(_two_digits(second)), "")
    has_time = (
        (hour > 0)
        | (minute > 0)
        | (second > 0)
        | pc.not_equal(fraction, "").to_numpy(zero_copy_only=False)
    )
    words = pc.binary_join_element_wise(
        _spaced(clock), seconds, _spaced(fraction), _spaced(zone), ""
    )
    return pc.if_else(pa.array(has_time), words, "")


def _two_digits(numbers: np.ndarray) -> pa.StringArray:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 2, "0")


def _spaced(texts: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.equal(texts, ""), "", pc.binary_join_element_wise("", texts, " "))
