"""Recognition of dates in the forms that tables use.

Dates are written in one canonical form with a named month.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import distinct_numbers
from pexeso.lake.normalise import package_data
from pexeso.lake.normalise.characters import DIGITS, Bytes, as_mask, replaced_at

# The month names of the canonical form.
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)

# Words between the parts of a date.
FILLERS = (
    *("of", "the", "de", "del", "d", "den", "di", "la", "le", "el", "\u0433", "года", "\u0440"),
    *("року", ","),
)

# Values of more words hold no date alone: a weekday, three parts, and a few words such as "of" and
# commas between them.
MAX_WORDS = 9

# Two-digit years from here on are 19xx, smaller ones 20xx: the rule of the common spreadsheets.
FIRST_YEAR_OF_1900 = 30

# A date by which the day comes first in a column of which no other says what does.
DAY_FIRST = "13/1/2020"

_MIN_LETTERS = 5
_NUMBERS = [
    *map(str, range(1, 32)),
    *(f"0{day}" for day in range(1, 10)),
    *(
        f"{day}{'th' if 10 < day < 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"
        for day in range(1, 32)
    ),
    "1er",
    "1o",
]
_DAYS = np.array([*range(1, 32), *range(1, 10), *range(1, 32), 1, 1])
_FIRST_ORDINAL = 40

_MAX_DATE_BYTES = 64
_NAME = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    + ("nov(?:ember)?|dec(?:ember)?")
)
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+)?"
# The shortest start of a value whose rest is a time of day or nothing.
DATE_AND_TIME = (
    r"^(?P<date>.+?)"
    r"(?:(?:t|,?\s+)(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?P<fraction>\.\d+)?)?"
    r"\s*(?P<half>[ap]\.?m\.?)?\s*(?P<zone>z|utc|gmt|[+-]\d\d(?::?\d\d)?)?)?$"
)
# What dates with a time of day hold, and what no time without a time zone ends with.
MOMENT = r"[0-9](?:[tT]|,?\s+)[0-9]{1,2}:[0-9]{2}"
ZONED = (
    r"(?i):[0-9]{2}(?:[.,][0-9]+)?(?: ?[ap]\.?m\.?)? ?"
    r"(?:z|utc|gmt|(?:utc|gmt)?[+-][0-9]{1,2}(?::?[0-9]{2})?)$"
)
_SHAPES = {
    "year_first": r"(?P<year>[12]\d{3})"
    r"(?:-(?P<month>\d\d?)-|/(?P<month2>\d\d?)/|\.\s?(?P<month3>\d\d?)\.\s?)(?P<day>\d\d?)\.?",
    "compact": r"(?P<year>(?:19|20)\d{2})(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])",
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
_NUMBERS_HINT = r"[0-9][./-]\s?[0-9][0-9]?[./-]|[0-9][年년]|^(?:19|20)[0-9]{6}(?:$|[t ])"
_NAMES_HINT = (
    r"\d[\sa-z.,/-]*(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[\s./-]*\d"
)


month_data = partial(package_data, "months.json")


@cache
def month_words() -> tuple[pa.StringArray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the words for months.

    Of each word the month, 1 to 12, whether it is English, and whether it can be no other word.
    """
    data = month_data()
    rows = [
        (word, number, language == "english")
        for language in ("english", "others")
        for number, words in enumerate(data[language], 1)
        for word in words.split()
    ]
    words, months, english = zip(*rows, strict=True)
    plain = [
        is_english or len(word) >= _MIN_LETTERS or not word.isascii()
        for word, _, is_english in rows
    ]
    return pa.array(words), np.array(months), np.array(english), np.array(plain)


@cache
def _weekdays() -> pa.StringArray:
    return pa.array([*str(month_data()["weekdays"]).split(), *FILLERS])


def read_named_dates(lists: pa.ListArray) -> pa.StringArray:
    """Write the dates among values as day, month name and year; null for other values.

    A date has one name of a month with a day and a year, a year alone, or a day alone. Where the
    name could be another word ("mars 2020" is a mission), the day comes first and the year last. A
    year has four digits, or, behind a day and an English name, two.
    """
    is_date, day, month, year = _read(lists)
    texts = pa.nulls(len(lists), pa.string())
    if not is_date.any():
        return texts
    return pc.replace_with_mask(
        texts, pa.array(is_date), written_dates(day[is_date], month[is_date], year[is_date])
    )


def written_dates(day: np.ndarray, month: np.ndarray, year: np.ndarray) -> pa.StringArray:
    parts = [_texts(day), pa.array(MONTHS).take(pa.array(month - 1)), _texts(year)]
    return pc.utf8_trim(pc.binary_join_element_wise(*parts, " "), " ")


def is_calendar_date(day: np.ndarray, month: np.ndarray, year: np.ndarray) -> np.ndarray:
    """Return which days are in the calendar; months are 1 to 12, days 1 or more."""
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    return calendar_days(year, month, day).astype("datetime64[M]") == months


def calendar_days(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    return months.astype("datetime64[D]") + (day - 1)


def _texts(numbers: np.ndarray) -> pa.StringArray:
    return pc.if_else(pa.array(numbers > 0), pa.array(numbers).cast(pa.string()), "")


def _years(tokens: pa.StringArray) -> np.ndarray:
    """Return years of four digits from 1000 to 2999, and numbers of two digits; 0 for all else."""
    is_year = pc.match_substring_regex(tokens, "^(?:[12][0-9]{3}|[0-9]{2})$")
    return pc.if_else(is_year, tokens, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)


def whole_years(years: np.ndarray) -> np.ndarray:
    return np.where(years < 100, years + np.where(years < FIRST_YEAR_OF_1900, 2000, 1900), years)


def _read(lists: pa.ListArray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return which values are dates (bool), and day, month and year of each (int64)."""
    row, n_rows = pc.list_parent_indices(lists).to_numpy(), len(lists)
    if not len(row):
        nothing = np.zeros(n_rows, dtype=np.int64)
        return nothing > 0, nothing, nothing, nothing
    tokens = lists.flatten()
    words, months, english, plain = month_words()
    is_month, month_entry = _entries(tokens, words)
    is_day, day_entry = _entries(tokens, pa.array(_NUMBERS))
    days, years = np.where(is_day, _DAYS[day_entry], 0), _years(tokens)
    is_number = is_day | (years > 0)
    is_known = is_month | is_number | _entries(tokens, _weekdays())[0]

    def count(flags: np.ndarray) -> np.ndarray:
        return np.bincount(row[flags], minlength=n_rows)

    def last_of(flags: np.ndarray, step: int = 1) -> np.ndarray:
        """Return each value's last flagged word, or its first if step is -1; 0 without one."""
        positions, ends = np.flatnonzero(flags)[::step], np.zeros(n_rows, dtype=np.int64)
        ends[row[positions]] = positions
        return ends

    at, first, last = last_of(is_month), last_of(is_number, -1), last_of(is_number)
    month, is_plain, is_english = (facts[month_entry[at]] for facts in (months, plain, english))
    day_first, day_last, year_first, year_last = days[first], days[last], years[first], years[last]
    is_one, is_between = first == last, (first < at) & (at < last)
    starts_with_year = ~is_one & (year_first >= 1000) & (day_last > 0) & is_plain
    is_day_year = ~is_one & (day_first > 0) & (year_last >= 1000) & (is_plain | is_between)
    is_short = ~is_one & (day_first > 0) & (year_last > 0) & (year_last < 100) & is_english
    is_short &= is_between | (is_day & (day_entry >= _FIRST_ORDINAL))[first]
    is_year = is_one & (year_first >= 1000) & is_plain
    is_day_alone = is_one & (day_first > 0) & is_plain
    has_day = is_day_year | is_short | is_day_alone
    day = np.where(starts_with_year, day_last, np.where(has_day, day_first, 0))
    has_first_year = starts_with_year | is_year
    year = np.where(is_day_alone, 0, whole_years(year_last))
    year = np.where(has_first_year, year_first, year)
    n_numbers = count(is_number)
    good = (count(~is_known) == 0) & (count(is_month) == 1) & (n_numbers >= 1) & (n_numbers <= 2)
    good &= has_day | has_first_year
    good &= is_calendar_date(np.maximum(day, 1), month, np.where(year > 0, year, 2000))
    return good, day, month, year


def _entries(tokens: pa.StringArray, words: pa.StringArray) -> tuple[np.ndarray, np.ndarray]:
    entry = pc.index_in(tokens, words)
    return entry.is_valid().to_numpy(zero_copy_only=False), pc.fill_null(entry, 0).to_numpy()


def canonical_dates(
    values: pa.StringArray,
    groups: np.ndarray | None = None,
    *,
    names_have_times: bool = False,
    either_order: bool = True,
) -> pa.StringArray:
    """Write every date as day, month name and year; null where a value is no date.

    Recognised are ISO dates and others with the year first, dates with a month's English name or
    its abbreviation, with or without a weekday, day first with dots, and numbers with slashes or
    hyphens in either order, and 20200305. The month is named because word order carries no
    meaning later: 2020-03-05 and 2020-05-03 must not have the same words.

    Which number of ``3/5/1953`` is the month is decided over all values of a group: the day comes
    first where some first number is over 12 and no second one is; else the month comes first. A
    value that is no date in the order so found is read in the other one. Two-digit years need
    slashes, a named month, or two digits throughout with dots; ``3-1-0`` is a score and no date.

    A time other than midnight follows the date as words, both in UTC where there is a time zone:
    see `times_of`.

    Without `groups` all values are of one column. `either_order` False leaves out what has two
    orders.

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
    if not len(at):
        return pa.nulls(len(values), pa.string())
    split = pc.extract_regex(values.take(pa.array(at)), DATE_AND_TIME)
    times, dates = times_of(split, groups[at]), split.field("date")
    for kind, shape in _SHAPES.items():
        if not len(at):
            break
        if not len(names if kind in _NAMED else numbers):
            continue
        if kind == "two_orders" and not either_order:
            continue
        rows, text = _dates_of_shape(dates, shape, groups[at], times)
        texts.append(text)
        found_at.append(at[rows])
        rest = np.delete(np.arange(len(at)), rows)
        at, dates, times = at[rest], dates.take(pa.array(rest)), times.take(rest)
    return _scatter(len(values), found_at, texts)


def months_of_years(values: pa.StringArray, groups: np.ndarray) -> pa.StringArray:
    """Write months of years as the month's name and the year; null where a value is none.

    ``2024M01``, ``01/2024``, ``JAN2024``, ``enero de 2024`` and ``2024年1月`` are months anywhere.
    The column decides of others: ``2024-01`` is a month where every such value of the column has a
    number from 1 to 12 and a quarter of them could end no span of years, as 2009-10 could; and in
    ``Jan-24`` the number is a year where it is over 31, or where at least three such values share
    each number. ``mars 2024`` is a month where the column names three.

    `groups`, int64, is the column of each value.

    >>> months = pa.array(["2024-01", "2024-02", "jan-24"])
    >>> months_of_years(months, np.zeros(3, np.int64)).to_pylist()
    ['january 2024', 'february 2024', None]
    """
    n_groups = int(groups.max(initial=-1)) + 1
    result = pa.nulls(len(values), pa.string())
    # Nearly all other values of a lake fail this cheap test.
    text_bytes = Bytes(values)
    last, lengths = text_bytes.at(-1), text_bytes.lengths
    is_end = ((last >= ord("0")) & (last <= ord("9"))) | np.isin(last, _LAST_OF_SIGNS)
    likely = np.flatnonzero(is_end & (lengths <= _MAX_MONTH_BYTES))
    some = values.take(pa.array(likely))
    for pattern, decides in _MONTH_SHAPES if len(likely) else ():
        is_of_shape = as_mask(pc.match_substring_regex(some, pattern))
        at = likely[is_of_shape]
        if not len(at):
            continue
        fields = pc.extract_regex(values.take(pa.array(at)), pattern)
        year, month = numbers_of(fields.field("year")), _month(fields.field("month"))
        is_month = decides(year, month, groups[at], n_groups) & (month >= 1) & (month <= 12)
        at, year, month = at[is_month], whole_years(year[is_month]), month[is_month]
        names = pa.array(MONTHS).take(pa.array(month - 1))
        texts = pc.binary_join_element_wise(names, _texts(year), " ")
        result = replaced_at(result, at, texts)
    return result


def _always(year: np.ndarray, month: np.ndarray, group: np.ndarray, n: int) -> np.ndarray:
    return np.ones(len(year), dtype=bool)


def _unless_spans(year: np.ndarray, month: np.ndarray, group: np.ndarray, n: int) -> np.ndarray:
    is_no_span = (month <= year % 100) & (month > 0)
    n_values, n_months, n_no_spans = (
        np.bincount(group[flags], minlength=n)
        for flags in (slice(None), (month >= 1) & (month <= 12), is_no_span)
    )
    return ((n_months == n_values) & (4 * n_no_spans >= n_values))[group]


def _if_months(year: np.ndarray, month: np.ndarray, group: np.ndarray, n: int) -> np.ndarray:
    pairs = distinct_numbers((group * 13 + month)[month > 0])
    return (np.bincount(pairs // 13, minlength=n) >= _MIN_MONTHS)[group]


def _if_years(year: np.ndarray, month: np.ndarray, group: np.ndarray, n: int) -> np.ndarray:
    pairs = distinct_numbers(group * 100 + year)
    n_years = np.bincount(pairs // 100, minlength=n)
    shares = np.bincount(group, minlength=n) >= 3 * n_years
    over = np.bincount(group[(year > 31) | (year == 0)], minlength=n) > 0
    return (shares | over)[group]


_MIN_MONTHS = 3
_MAX_MONTH_BYTES = len("septiembre de 2024")
_LAST_OF_SIGNS = ["月".encode()[-1], "월".encode()[-1]]  # for a month, in bytes
_MONTH_SHAPES = (
    (r"^(?P<year>[12]\d{3})[- ]?m(?P<month>0?[1-9]|1[0-2])$", _always),
    (r"^(?P<month>0?[1-9]|1[0-2])[/.-](?P<year>[12]\d{3})$", _always),
    (r"^(?P<year>[12]\d{3})[年년] ?(?P<month>0?[1-9]|1[0-2])[月월]$", _always),
    (rf"^(?P<month>{_NAME})(?P<year>(?:19|20)\d\d)$", _always),
    (r"^(?P<month>[^\s\d]{3,}) del? (?P<year>[12]\d{3})$", _always),
    (r"^(?P<year>[12]\d{3})[-/](?P<month>\d\d)$", _unless_spans),
    (rf"^(?P<month>{_NAME})\.?(?:[-/]| ?')(?P<year>\d\d)$", _if_years),
    (r"^(?P<month>[^\s\d]{3,})\.? (?P<year>[12]\d{3})$", _if_months),
)


def _likely(values: pa.StringArray, names_have_times: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of values that may be dates in numbers and with names.

    Nearly all other values of a lake fail these cheap tests.
    """
    has_digits = not Bytes(values).occurring.isdisjoint(DIGITS)
    has_numbers = (
        _short(values, pc.match_substring_regex(values, _NUMBERS_HINT))
        if has_digits
        else np.zeros(0, dtype=np.int64)
    )
    may_name = (
        np.flatnonzero(as_mask(pc.match_substring(values, ":")))
        if names_have_times
        else np.arange(len(values))
    )
    if not len(may_name):
        return has_numbers, may_name
    some = values.take(pa.array(may_name))
    return has_numbers, may_name[_short(some, pc.match_substring_regex(some, _NAMES_HINT))]


def _short(values: pa.StringArray, flags: pa.BooleanArray) -> np.ndarray:
    at = np.flatnonzero(as_mask(flags))
    return at[as_mask(pc.less_equal(pc.binary_length(values.take(pa.array(at))), _MAX_DATE_BYTES))]


def _scatter(
    n_values: int, positions: list[np.ndarray], texts: list[pa.StringArray]
) -> pa.StringArray:
    if not positions:
        return pa.nulls(n_values, pa.string())
    source = np.full(n_values, -1, dtype=np.int64)
    joined = np.concatenate(positions)
    source[joined] = np.arange(len(joined))
    return pa.concat_arrays(texts).take(pa.array(source, mask=source < 0))


def _dates_of_shape(
    dates: pa.StringArray, shape: str, groups: np.ndarray, times: Times
) -> tuple[np.ndarray, pa.StringArray]:
    """Return which rows are dates of a shape, and their texts."""
    matches = pc.extract_regex(dates, f"^(?:{shape})$")
    positions = np.flatnonzero(matches.is_valid().to_numpy(zero_copy_only=False))
    if not len(positions):
        return positions, pa.array([], pa.string())
    fields = _fields(matches.take(pa.array(positions)))
    year = whole_years(numbers_of(_first(fields, "year", "year2")))
    if "first" in fields:
        first = numbers_of(_first(fields, "first", "first2"))
        second = numbers_of(_first(fields, "second_part", "second_part2"))
        month, day = _in_order(first, second, groups[positions])
    else:
        month = _month(_first(fields, "month", "month2", "month3"))
        day = numbers_of(_first(fields, "day", "day2"))
    in_range = (month >= 1) & (month <= 12) & (day >= 1)
    rows = np.flatnonzero(in_range & is_calendar_date(day, np.where(in_range, month, 1), year))
    year, month, day, positions = (part[rows] for part in (year, month, day, positions))
    times = times.take(positions)
    moved = np.flatnonzero(times.days)
    if len(moved):
        others = calendar_days(year, month, day)[moved] + times.days[moved]
        months, years = others.astype("datetime64[M]"), others.astype("datetime64[Y]")
        year[moved] = years.astype(np.int64) + 1970
        month[moved] = (months - years).astype(np.int64) + 1
        day[moved] = (others - months).astype(np.int64) + 1
    text = written_dates(day, month, year)
    return positions, pc.binary_join_element_wise(text, times.words(), "")


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


def numbers_of(texts: pa.StringArray) -> np.ndarray:
    """Return what groups of digits that took part in a match come to, 0 for all others."""
    filled = pc.if_else(pc.equal(texts, ""), "0", texts)
    return filled.cast(pa.int64()).to_numpy(zero_copy_only=False)


def _month(texts: pa.StringArray) -> np.ndarray:
    """Return months from names in any language or numbers, 0 for all else."""
    words, months, _, _ = month_words()
    is_named, entry = _entries(texts, words)
    is_number = pc.match_substring_regex(texts, "^[0-9]+$")
    return np.where(is_named, months[entry], numbers_of(pc.if_else(is_number, texts, "0")))


def _in_order(
    first: np.ndarray, second: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    says_day_first = np.bincount(groups[first > 12], minlength=groups.max(initial=0) + 1) > 0
    says_month_first = np.bincount(groups[second > 12], minlength=groups.max(initial=0) + 1) > 0
    is_day_first = (says_day_first & ~says_month_first)[groups]
    month, day = np.where(is_day_first, second, first), np.where(is_day_first, first, second)
    swap = (month > 12) & (day <= 12)
    return np.where(swap, day, month), np.where(swap, month, day)


@dataclass(frozen=True)
class Times:
    """Times of day beside dates.

    ``seconds``, int64, and the digits of ``fraction`` are those of UTC where there is a time zone,
    which may be so many ``days`` from the date, int64.
    """

    days: np.ndarray
    seconds: np.ndarray
    fraction: pa.StringArray

    def take(self, rows: np.ndarray) -> Times:
        return Times(self.days[rows], self.seconds[rows], self.fraction.take(pa.array(rows)))

    def are_midnight(self) -> np.ndarray:
        return (self.seconds == 0) & as_mask(pc.equal(self.fraction, ""))

    def words(self) -> pa.StringArray:
        """Return `` 14 30`` or `` 14 30 05 25``, or an empty text for midnight."""
        is_midnight = self.are_midnight()
        if is_midnight.all():
            return pc.utf8_slice_codeunits(self.fraction, 0, 0)
        hours, minutes, seconds = (
            _two_digits(part)
            for part in (self.seconds // 3600, self.seconds // 60 % 60, self.seconds % 60)
        )
        seconds = pc.if_else(pa.array(self.seconds % 60 > 0), _spaced(seconds), "")
        words = pc.binary_join_element_wise(
            _spaced(hours), _spaced(minutes), seconds, _spaced(self.fraction), ""
        )
        return pc.if_else(pa.array(is_midnight), "", words)


def times_of(split: pa.StructArray, groups: np.ndarray) -> Times:
    """Return the times of day of texts, of which `split` holds the fields of `DATE_AND_TIME`.

    Midnight is the day in whatever time zone, since programs write days so, unless a group has
    another time with a zone: it holds points of time.
    """
    fields = _fields(split)
    if not pc.any(pc.not_equal(fields["hour"], "")).as_py():
        nothing = np.zeros(len(split), np.int64)
        return Times(nothing, nothing, fields["hour"])
    hour, minute, second = (numbers_of(fields[name]) for name in ("hour", "minute", "second"))
    seconds = 3600 * hours_of_day(hour, fields["half"]) + 60 * minute + second
    fraction = pc.utf8_ltrim(pc.utf8_rtrim(fields["fraction"], "0"), ".")
    times = Times(seconds // 86400, seconds % 86400, fraction)
    has_zone = as_mask(pc.not_equal(fields["zone"], ""))
    if not has_zone.any():
        return times
    holds_moments = np.isin(groups, groups[has_zone & ~times.are_midnight()])
    seconds = seconds - np.where(holds_moments, _offsets(fields["zone"]), 0)
    return Times(seconds // 86400, seconds % 86400, fraction)


def _offsets(zones: pa.StringArray) -> np.ndarray:
    """Return the seconds by which time zones such as +01, +0100 and +01:00 are ahead of UTC."""
    zones = pc.utf8_rpad(pc.replace_substring(zones, ":", ""), 5, "0")
    fields = pc.extract_regex(zones, r"^(?P<sign>[+-])(?P<hours>\d\d)(?P<minutes>\d\d)$")
    hours, minutes = (
        numbers_of(pc.fill_null(fields.field(name), "0")) for name in ("hours", "minutes")
    )
    is_behind = as_mask(pc.equal(fields.field("sign"), "-"))
    return np.where(is_behind, -1, 1) * (3600 * hours + 60 * minutes)


def hours_of_day(hours: np.ndarray, halves: pa.StringArray) -> np.ndarray:
    """Return hours from 0 to 23; halves of the day are ``am``, ``p.m.`` and the like, or empty."""
    is_evening, is_morning = (as_mask(pc.starts_with(halves, letter)) for letter in "pa")
    hours = np.where(is_evening & (hours < 12), hours + 12, hours)
    return np.where(is_morning & (hours == 12), 0, hours)


def _two_digits(numbers: np.ndarray) -> pa.StringArray:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 2, "0")


def _spaced(texts: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.equal(texts, ""), "", pc.binary_join_element_wise("", texts, " "))
