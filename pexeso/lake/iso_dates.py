"""Dates, points of time and months of years in cells, as ISO 8601 has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.normalise.characters import (
    Bytes,
    as_mask,
    byte_table,
    only_where,
    replaced_at,
    where_matching,
)
from pexeso.lake.normalise.dates import (
    DATE_AND_TIME,
    DAY_FIRST,
    MONTHS,
    calendar_days,
    canonical_dates,
    month_words,
    months_of_years,
    numbers_of,
    read_named_dates,
    times_of,
)
from pexeso.lake.normalise.text_rules import NAMED_PERIOD, end_of_span, with_periods, with_times

_COMPACT = (
    "^(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
    "(?:(?:[01][0-9]|2[0-3])[0-5][0-9][0-5][0-9])?$"
)
_MIN_COMPACT = 0.9  # share of a column's whole numbers
_MAX_DATE_BYTES = 40
# Unicode's classes take long to prepare and to match.
LETTER = r"[A-Za-z\x{80}-\x{10FFFF}]"
_DATE_HINT = (
    r"[0-9][./-]\s?[0-9][0-9]?[./-]\s?[0-9]|[0-9][\x{5e74}\x{b144}]|^(?:19|20)[0-9]{6}(?:$|[tT ])"
    r"|^[12][0-9]{3}[- ]?[mM][0-9]|^[0-9]{1,2}[/-][12][0-9]{3}$|^0[0-9]\.[12][0-9]{3}$"
    r"|^[12][0-9]{3}/[0-9]{1,2}$"
    rf"|{LETTER}{{3}}.*[12][0-9]{{3}}(?:[^0-9]|$)|^[12][0-9]{{3}}[^0-9].*{LETTER}{{3}}"
    rf"|^(?:{LETTER}+[., ]+)?[0-9]{{1,2}}(?:st|nd|rd|th)?[-. /]*{LETTER}{{3,9}}[-. /,]+"
    r"[0-9]{2}(?:[^0-9]|$)"
)
_MONTH_NUMBERS = (
    r"^(?P<year>[12]\d{3})(?:[- ]?m|/)(?P<month>0?[1-9]|1[0-2])$",
    r"^(?P<month>0?[1-9]|1[0-2])(?:[/-])(?P<year>[12]\d{3})$",
    r"^(?P<month>0[1-9])\.(?P<year>[12]\d{3})$",
    r"^(?P<year>[12]\d{3})[年년] ?(?P<month>0?[1-9]|1[0-2])[月월]$",
)
_TIME = r"(?i)^(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]+)?)?(?: ?[ap]\.? ?m\.?)?$"
# Points of time as programs write them, and as they are read: basic ISO 8601, `date` and ctime, SAS
# and logs of web servers, words, fractions behind a comma, and zones behind UTC.
_SPELLINGS = (
    (r"^([0-9]{8})t?([0-9]{2})([0-9]{2})([0-9]{2})", r"\1t\2:\3:\4"),
    (
        r"^(?:[a-z]{3} )?([a-z]{3}) +([0-9]{1,2}) ([0-9:]{8}) (?:(?:utc|gmt) )?([0-9]{4})$",
        r"\1 \2 \4 \3",
    ),
    (r"^([0-9]{2}/?[a-z]{3}/?[0-9]{4}):([0-9])", r"\1 \2"),
    (r"([0-9]{4}),? at ([0-9])", r"\1 \2"),
    (r"(:[0-9]{2}),([0-9])", r"\1.\2"),
    (r" ?(?:utc|gmt) ?([+-])([0-9])(:|$)", r"\10\2\3"),
    (r" ?(?:utc|gmt) ?([+-][0-9])", r"\1"),
    (r"([ap])\. m\.?$", r"\1m"),
)
_EITHER_ORDER = (
    r"^(?P<first>\d{1,2})(?:/(?P<second>\d{1,2})/(?:\d{4}|\d\d)|-(?P<third>\d{1,2})-\d{4})"
    r"(?:$|[ ,tT])"
)
_SPAN = (
    r"^(?P<start>(?:1[6-9]|20)[0-9]{2})[-/](?:(?P<long>(?:1[6-9]|20)[0-9]{2})|(?P<short>[0-9]{2}))$"
)
OPEN = r"^([12][0-9]{3})-(0[1-9]|1[0-2])-(0[1-9]|1[0-2])($| .*)"
_MONTH_OF_SHORT_YEAR = r"(?i)^[a-z]{3,9}\.?(?:[-/]| ?')\d\d$"
_WRITTEN = r"^(?:(?P<day>\d{1,2}) )?(?P<month>[a-z]+) (?P<year>\d{4})$"


DIGIT_BYTES = byte_table(b"0123456789")


def edges(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first and the last byte of texts, 0 where there is none, and their lengths."""
    text_bytes = Bytes(pc.fill_null(texts, ""))
    return text_bytes.at(0), text_bytes.at(-1), text_bytes.lengths


def iso_dates(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    """Return texts, dates of one order, times and named periods among them in one form.

    `columns`, int64 (n,), decide whether midnight in a time zone is a day.
    """
    short = pc.less_equal(pc.binary_length(texts), _MAX_DATE_BYTES)
    may = as_mask(pc.and_(short, pc.match_substring_regex(texts, _DATE_HINT)))
    texts = only_where(
        texts, pa.array(may), lambda some: pc.coalesce(_iso(some, columns[may]), some)
    )
    texts = with_periods(with_times(texts), NAMED_PERIOD)
    return where_matching(texts, pc.match_substring(texts, ":"), _TIME, _iso_times)


def _iso(texts: pa.Array, columns: np.ndarray, orders: np.ndarray | None = None) -> pa.Array:
    """Return dates as ISO 8601 has them, null where a text is none.

    Dates of either order are read where groups of one order, int64 (n,), are given.
    """
    lower = pc.utf8_lower(texts).cast(pa.string())
    for pattern, usual in _SPELLINGS:
        lower = pc.replace_substring_regex(lower, pattern, usual)
    split = pc.extract_regex(lower, DATE_AND_TIME)
    date = split.field("date")
    names = canonical_dates(date, orders, either_order=orders is not None)
    names = pc.coalesce(names, _named(date))
    has_time = pc.not_equal(split.field("hour"), "")
    months = pc.if_else(has_time, pa.scalar(None, pa.string()), _months(date, names))
    return pc.coalesce(months, _moments(names, split, columns)).cast(texts.type)


def _iso_times(texts: pa.Array) -> pa.Array:
    """Return times of a day as ISO 8601 has them."""
    day = pa.scalar("2000-01-01", texts.type)
    dated = pc.binary_join_element_wise(day, texts, pa.scalar(" ", texts.type))
    moments = _iso(dated, np.zeros(len(texts), np.int64))
    times = pc.utf8_slice_codeunits(moments, len("2000-01-01 "))
    times = pc.if_else(pc.equal(times, ""), pa.scalar("00:00", times.type), times)
    times = pc.replace_substring_regex(times, "^(.....):00$", r"\1")  # as most are written
    return pc.coalesce(times, texts)


def _named(dates: pa.Array) -> pa.Array:
    """Return dates with the name of a month, in any language, in the form of `canonical_dates`."""
    result = pa.nulls(len(dates), pa.string())
    at = np.flatnonzero(as_mask(pc.match_substring_regex(dates, rf"{LETTER}{{3}}")))
    if not len(at):
        return result
    some = pc.utf8_trim(dates.take(pa.array(at)), " .,")
    some = pc.replace_substring_regex(some, "^([a-z]{3,9})((?:19|20)[0-9]{2})$", r"\1 \2")
    words = pc.split_pattern_regex(some, r"[ .,/-]+")
    names = read_named_dates(words)
    # With a year alone the name of a month may be another word; both columns would read it so.
    sizes = pc.list_value_length(words).to_numpy(zero_copy_only=False)
    two = np.flatnonzero(sizes == 2)
    pairs = words.take(pa.array(two)).flatten()
    known, numbers, _, _ = month_words()
    month = pc.index_in(pairs, known)
    is_month = month.is_valid().to_numpy(zero_copy_only=False).reshape(-1, 2)
    is_year = as_mask(pc.match_substring_regex(pairs, r"^[12]\d{3}$")).reshape(-1, 2)
    good = (is_month[:, 0] & is_year[:, 1]) | (is_year[:, 0] & is_month[:, 1])
    place = 2 * np.flatnonzero(good) + np.where(is_month[good, 0], 0, 1)
    months = numbers[month.take(pa.array(place)).to_numpy()]
    years = pairs.take(pa.array(place ^ 1))
    written = pc.binary_join_element_wise(pa.array(MONTHS).take(pa.array(months - 1)), years, " ")
    return replaced_at(result, at, replaced_at(names, two[good], written))


def _months(dates: pa.Array, names: pa.Array) -> pa.Array:
    """Return months of years as 2024-01, null where dates, or their names, are none."""
    fields = pc.extract_regex(names, _WRITTEN)
    is_month = pc.fill_null(pc.equal(fields.field("day"), ""), False)
    number = pc.add(pc.index_in(fields.field("month"), pa.array(MONTHS)), 1).cast(pa.string())
    parts = [(is_month, fields.field("year"), number)]
    for pattern in _MONTH_NUMBERS:
        fields = pc.extract_regex(dates, pattern)
        parts.append((fields.is_valid(), fields.field("year"), fields.field("month")))
    texts = [
        pc.if_else(
            is_month,
            pc.binary_join_element_wise(year, pc.utf8_lpad(month, 2, "0"), "-"),
            pa.scalar(None, pa.string()),
        )
        for is_month, year, month in parts
    ]
    return pc.coalesce(*texts)


def _moments(names: pa.Array, split: pa.StructArray, columns: np.ndarray) -> pa.Array:
    """Return points of time, those of midnight as days; null where names are no days."""
    fields = pc.extract_regex(names, _WRITTEN)
    rows = np.flatnonzero(as_mask(pc.not_equal(fields.field("day"), "")))
    named, given = fields.take(pa.array(rows)), split.take(pa.array(rows))
    month = pc.index_in(named.field("month"), pa.array(MONTHS)).to_numpy() + 1
    year, day = (numbers_of(named.field(name)) for name in ("year", "day"))
    times = times_of(given, columns[rows])
    dates = calendar_days(year, month, day) + times.days
    hour, minute = (numbers_of(given.field(name)) for name in ("hour", "minute"))
    good = ((hour < 24) | (minute == 0)) & (
        (hour <= 12) | as_mask(pc.equal(given.field("half"), ""))
    )
    moment = np.datetime_as_string(dates.astype("datetime64[s]") + times.seconds)
    written = pc.replace_substring(pa.array(moment).cast(pa.string()), "T", " ")
    sizes = pc.binary_length(times.fraction).to_numpy(zero_copy_only=False)
    padded = [pc.utf8_rpad(times.fraction, size, "0") for size in (6, 9)]
    fraction = pc.binary_join_element_wise("", pc.if_else(pa.array(sizes <= 6), *padded), ".")
    fraction = pc.if_else(pa.array(sizes > 0), fraction, "")
    written = pc.binary_join_element_wise(written, fraction, "")
    days = pa.array(np.datetime_as_string(dates)).cast(pa.string())
    written = pc.if_else(pa.array(times.are_midnight()), days, written)
    return replaced_at(pa.nulls(len(names), pa.string()), rows[good], written.filter(good))


def iso_dates_of_columns(texts: pa.Array, columns: np.ndarray, day_first: bool | None) -> pa.Array:
    texts = _with_spans(_with_compact_dates(texts, columns), columns)
    first, last, lengths = edges(texts)
    short = (lengths >= len("1/2/03")) & (lengths <= _MAX_DATE_BYTES)
    rows = matching_rows(
        texts, short & ~DIGIT_BYTES[first] & DIGIT_BYTES[last], _MONTH_OF_SHORT_YEAR
    )
    if len(rows):
        some = pc.utf8_lower(texts.take(pa.array(rows))).cast(pa.string())
        names = months_of_years(some, np.unique(columns[rows], return_inverse=True)[1])
        texts = replaced(texts, rows, _months(names, names))
    rows = matching_rows(texts, short & DIGIT_BYTES[first], _EITHER_ORDER)
    if not len(rows):
        return texts
    some = texts.take(pa.array(rows))
    fields = pc.extract_regex(some, _EITHER_ORDER)
    one, two, three = (numbers_of(fields.field(name)) for name in ("first", "second", "third"))
    groups = np.unique(columns[rows], return_inverse=True)[1]
    says_day, says_month = (
        np.bincount(groups[number > 12], minlength=len(rows)) > 0 for number in (one, two + three)
    )
    is_open = (says_day == says_month)[groups]
    is_first = (one > 12) | (
        (two + three <= 12) & np.where(is_open, bool(day_first), says_day[groups])
    )
    some = pa.concat_arrays([some, pa.array([DAY_FIRST], some.type)])
    orders = np.append(is_first, True).astype(np.int64)
    dates = _iso(some, np.append(groups, -1), orders)[: len(rows)]
    if day_first is None:
        dates = pc.if_else(pa.array(is_open), write_open(dates, day_first=False), dates)
    return replaced(texts, rows, dates)


def write_open(texts: pa.Array, *, day_first: bool) -> pa.Array:
    """Write dates that could be in either order as a column has them that leaves it open."""
    order = r"\3/\2" if day_first else r"\2/\3"
    return pc.replace_substring_regex(texts, OPEN, rf"{order}/\1\4")


def _with_spans(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    """Write spans of years in full; the column decides whether 2009-10 is one, or a month."""
    rows = matching_rows(texts, np.isin(edges(texts)[2], (7, 9)), _SPAN)
    if not len(rows):
        return texts
    fields = pc.extract_regex(texts.take(pa.array(rows)), _SPAN)
    start, short, long = (numbers_of(fields.field(name)) for name in ("start", "short", "long"))
    end = np.where(long, long, end_of_span(start, short))
    may_be_month = (long == 0) & (short >= 1) & (short <= 12)
    of_spans = columns[rows[(long == 0) & ~may_be_month & (end > start)]]
    is_span = (end > start) & (~may_be_month | np.isin(columns[rows], of_spans))
    years = (pa.array(side[is_span]).cast(pa.string()) for side in (start, end))
    return replaced(texts, rows[is_span], pc.binary_join_element_wise(*years, "-"))


def _with_compact_dates(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    """Read 20240105 in columns of which nearly all whole numbers are such dates."""
    is_whole = as_mask(pc.ascii_is_decimal(texts))
    rows = matching_rows(texts, is_whole, _COMPACT)
    if not len(rows):
        return texts
    n_whole, n_compact = np.bincount(columns[is_whole]), np.bincount(columns[rows])
    rows = rows[n_compact[columns[rows]] >= _MIN_COMPACT * n_whole[columns[rows]]]
    some = texts.take(pa.array(rows))
    return replaced(texts, rows, _iso(some, columns[rows])) if len(rows) else texts


def matching_rows(texts: pa.Array, chosen: np.ndarray, pattern: str) -> np.ndarray:
    rows = np.flatnonzero(chosen)
    return rows[as_mask(pc.match_substring_regex(texts.take(pa.array(rows)), pattern))]


def replaced(texts: pa.Array, rows: np.ndarray, others: pa.Array) -> pa.Array:
    """Put others in the place of texts, where they are no nulls."""
    some = pc.coalesce(others.cast(texts.type), texts.take(pa.array(rows)))
    return replaced_at(texts, rows, some)
