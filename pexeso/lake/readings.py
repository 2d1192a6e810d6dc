"""Readings: what two cells may differ in and yet be equal, for searches and joins by equal values.

One list, that of `pexeso.lake.normalise.rules` with ``is_reading``, for overlap, containment,
composite keys and what is built on them. A reading is of one of two kinds:

1. Of a cell alone (`read_cells`): equal cells stay equal, so nothing that was joined is lost.
2. Of a column (`read_columns`): its other values decide, as for the order of day and month. One
   that could make two values one, such as 007 and 7, is off by default, and does nothing in a
   column that keeps two such values apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import distinct_numbers
from pexeso.lake.normalise.characters import (
    INVISIBLE,
    Bytes,
    as_mask,
    change_characters,
    classes_of,
    only_where,
    replaced_at,
    where_matching,
)
from pexeso.lake.normalise.dates import (
    DATE_AND_TIME,
    DAY_FIRST,
    MONTHS,
    canonical_dates,
    hours_of_day,
    month_words,
    months_of_years,
    numbers_of,
    read_named_dates,
)


def _table(members: bytes) -> np.ndarray:
    table = np.zeros(256, bool)
    table[list(members)] = True
    return table


_DIGITS = _table(b"0123456789")
_STARTS = _table(b"0123456789'\"={(+-IiUu\xe2")
_MARKS = _table(b"'=\xe2")
_ENDS_OF_TIMES = _table(b"tTcCzZmM.")  # GMT, UTC, p.m.
_ISBN_ENDS = _table(b"xX")
_TRUTH = _table(b"tTfF")
_MIN_NUMBER_BYTES = 9  # of an ISBN or a telephone number, without its last digit
# Letters of a UUID, with braces or without, with hyphens or without, and behind ``urn:uuid:``.
_UUID_BYTES = (32, 36, 38, 45)
_COMPACT = "^(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])$"
_MIN_COMPACT = 0.9  # share of a column's whole numbers
_DAY_BYTES, _DAY = 10, "^[12][0-9]{3}-[0-9]{2}-[0-9]{2}$"

_HYPHENS = r"[\x{2010}\x{2011}\x{2212}]"
_SPACES = r"[\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
_MARKED = r"^['\x{2019}]([+-]?[0-9][0-9A-Za-z.,/: -]*)$"
_DECADE = r"^['\x{2019}][0-9]{2}s$"
_FORMULA = r'^="([^"]+)"$'
_CURRENCY = r"[$\x{a2}-\x{a5}\x{20a0}-\x{20bf}]"
_NUMBER = rf"^[+-]?{_CURRENCY}?[0-9][0-9., '\x{{2019}}]*(?:%|{_CURRENCY})?$"
_WHOLE = r"^(-?(?:0|[1-9][0-9]*))\.0+$"
_GROUPED = tuple(
    (sign, rf"^[+-]?{_CURRENCY}?[1-9][0-9]{{0,2}}(?:{behind})(?:%|{_CURRENCY})?$")
    for sign, behind in (
        (",", r"(?:(?:,[0-9]{3})+|(?:,[0-9]{2})+,[0-9]{3})(?:\.[0-9]+)?"),
        (" ", r"(?: [0-9]{3})+(?:[.,][0-9]+)?"),
        ("'", r"(?:['\x{2019}][0-9]{3})+(?:[.,][0-9]+)?"),
        (".", r"(?:\.[0-9]{3}){2,}(?:,[0-9]+)?|\.[0-9]{3},[0-9]+"),
    )
)
_SPACED = rf"^([+-]?{_CURRENCY}?) *([0-9](?:[0-9., ']*[0-9])?) *((?:[%\x{{2030}}]|{_CURRENCY})?)$"
_UUID = (
    r"^(?:urn:uuid:)?\{?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?"
    r"([0-9a-f]{12})\}?$"
)
_ISBN = r"(?i)^(?:isbn(?:-1[03])?[: ]*)?((?:97[89][ -]?)?[0-9](?:[ -]?[0-9]){8}[ -]?[0-9x])$"
_BARE = r"^(?:97[89])?[0-9]{9}[0-9Xx]$"
# Separators of an ISBN of ten digits; fewer are those of other numbers.
_ISBN_SEPARATORS = 3
_AMERICAN = r"\(?[2-9][0-9]{2}\)?[ .-]{0,2}[0-9]{3}[ .-][0-9]{4}"
_ABROAD = rf"^(?:\(?(?:\+ ?|00)[1-9](?:[ ()./-]*[0-9]){{7,14}}|1[ .-]{_AMERICAN})$"
_AT_HOME = rf"^(?:\(?0[1-9](?:[ ()./-]*[0-9]){{7,13}}|{_AMERICAN})$"
_TRUTHS = {
    **dict.fromkeys(("1", "yes", "y", "t", "true"), "true"),
    **dict.fromkeys(("0", "no", "n", "f", "false"), "false"),
}
# Calling codes of two digits and of one; all others have three.
_CODES = (
    "20|27|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]",
    "1|7",
)
_PHONE = r"^\+?[0-9]{7,15}$"
_MIN_PHONES = 0.9  # share of a column's values

_MAX_DATE_BYTES = 40
# Unicode's classes take long to prepare and to match.
_LETTER = r"[A-Za-z\x{80}-\x{10FFFF}]"
_DATE_HINT = (
    r"[0-9][./-]\s?[0-9][0-9]?[./-]\s?[0-9]|[0-9][\x{5e74}\x{b144}]|^(?:19|20)[0-9]{6}(?:$|[tT ])"
    r"|^[12][0-9]{3}[- ]?[mM][0-9]|^[0-9]{1,2}[/-][12][0-9]{3}$|^0[0-9]\.[12][0-9]{3}$"
    r"|^[12][0-9]{3}/[0-9]{1,2}$"
    rf"|{_LETTER}{{3}}.*[12][0-9]{{3}}(?:[^0-9]|$)|^[12][0-9]{{3}}[^0-9].*{_LETTER}{{3}}"
    rf"|^(?:{_LETTER}+[., ]+)?[0-9]{{1,2}}(?:st|nd|rd|th)?[-. /]*{_LETTER}{{3,9}}[-. /,]+"
    r"[0-9]{2}(?:[^0-9]|$)"
)
_MONTH_NUMBERS = (
    r"^(?P<year>[12]\d{3})(?:[- ]?m|/)(?P<month>0?[1-9]|1[0-2])$",
    r"^(?P<month>0?[1-9]|1[0-2])(?:[/-])(?P<year>[12]\d{3})$",
    r"^(?P<month>0[1-9])\.(?P<year>[12]\d{3})$",
    r"^(?P<year>[12]\d{3})[年년] ?(?P<month>0?[1-9]|1[0-2])[月월]$",
)
_EITHER_ORDER = (
    r"^(?P<first>\d{1,2})(?:/(?P<second>\d{1,2})/(?:\d{4}|\d\d)|-(?P<third>\d{1,2})-\d{4})"
    r"(?:$|[ ,tT])"
)
_MONTH_OF_SHORT_YEAR = r"(?i)^[a-z]{3,9}\.?(?:[-/]| ?')\d\d$"
_WRITTEN = r"^(?:(?P<day>\d{1,2}) )?(?P<month>[a-z]+) (?P<year>\d{4})$"


def read_cells(texts: pa.LargeStringArray, readings: Collection[str]) -> pa.LargeStringArray:
    """Return cells, trimmed texts, in the form in which they are compared; nulls stay."""
    if not readings or not len(texts):
        return texts
    if "invisible-letters" in readings:
        is_odd = pc.fill_null(pc.invert(pc.string_is_ascii(texts)), False)
        texts = only_where(texts, is_odd, _visible)
    first, last, lengths = _edges(texts)
    if "truth-words" in readings:
        may = pa.array(_TRUTH[first] & ((lengths == len("true")) | (lengths == len("false"))))
        texts = only_where(texts, may, _truth_words)
    may = _DIGITS[last] | _STARTS[first] | np.isin(lengths, _UUID_BYTES)
    rows = np.flatnonzero(_ENDS_OF_TIMES[last] & ~may)
    may[rows] = as_mask(pc.match_substring(texts.take(pa.array(rows)), ":"))
    is_plain = as_mask(pc.ascii_is_decimal(texts))
    may &= ~is_plain
    # What is written in the end is not read again.
    may &= (lengths != _DAY_BYTES) | ~as_mask(pc.match_substring_regex(texts, _DAY))
    return only_where(texts, pa.array(may), lambda some: _read(some, readings))


def _read(texts: pa.Array, readings: Collection[str]) -> pa.Array:
    first, last, lengths = _edges(texts)
    if "spreadsheet-marks" in readings and (marked := _MARKS[first]).any():
        texts = only_where(texts, pa.array(marked), _without_marks)
        first, last, lengths = _edges(texts)
    if "identifiers" in readings:
        texts = only_where(texts, pa.array(np.isin(lengths, _UUID_BYTES)), _uuids)
        may = (_DIGITS[last] | _ISBN_ENDS[last]) & (lengths > _MIN_NUMBER_BYTES)
        letters = pc.match_substring_regex(texts, rf"^[^{_LETTER[1:]}*$|^(?i:isbn)|^[0-9 -]+[Xx]$")
        may &= as_mask(letters)
        texts = only_where(texts, pa.array(may), lambda some: _phones(_isbns(some)))
    if "iso-dates" in readings:
        short = pc.less_equal(pc.binary_length(texts), _MAX_DATE_BYTES)
        may = pc.and_(short, pc.match_substring_regex(texts, _DATE_HINT))
        texts = only_where(texts, may, lambda some: pc.coalesce(_iso(some), some))
    if "thousands" in readings:
        texts = where_matching(texts, pc.match_substring(texts, " "), _SPACED, _close_signs)
    ends = (
        ("thousands" in readings, _without_thousands),
        ("whole-numbers" in readings, whole_numbers),
    )
    changes = [change for is_on, change in ends if is_on]
    if changes:
        is_number = pc.match_substring_regex(texts, _NUMBER)
        for change in changes:
            texts = only_where(texts, is_number, change)
    return texts


def _close_signs(texts: pa.Array) -> pa.Array:
    """Return numbers without the spaces between them and a sign of percent or currency."""
    return pc.replace_substring_regex(texts, _SPACED, r"\1\2\3")


def whole_numbers(texts: pa.Array) -> pa.Array:
    """Return texts, whole numbers with a point and zeros among them without these."""
    return pc.replace_substring_regex(texts, _WHOLE, r"\1")


def _without_marks(texts: pa.Array) -> pa.Array:
    is_decade = pc.match_substring_regex(texts, _DECADE)
    plain = pc.replace_substring_regex(texts, _MARKED, r"\1")
    return pc.if_else(is_decade, texts, pc.replace_substring_regex(plain, _FORMULA, r"\1"))


def _edges(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first and the last byte of texts, 0 where there is none, and their lengths."""
    text_bytes = Bytes(pc.fill_null(texts, ""))
    return text_bytes.at(0), text_bytes.at(-1), text_bytes.lengths


def _visible(texts: pa.Array) -> pa.Array:
    def change(points: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        is_kept = (classes_of(points) != INVISIBLE) & (points != ord("\n"))
        return points[is_kept], rows[is_kept]

    # A line feed ends each text there.
    spaced = pc.replace_substring_regex(texts, rf"{_SPACES}|[\r\n]", " ")
    spaced = pc.replace_substring_regex(spaced, _HYPHENS, "-")
    seen = change_characters(spaced.cast(pa.string()), change).cast(texts.type)
    seen = pc.utf8_trim_whitespace(seen)
    return pc.if_else(pc.equal(seen, ""), texts, seen)


def _truth_words(texts: pa.Array) -> pa.Array:
    lower = pc.ascii_lower(texts)
    return pc.if_else(pc.is_in(lower, pa.array(["true", "false"], lower.type)), lower, texts)


def _uuids(texts: pa.Array) -> pa.Array:
    lower = pc.ascii_lower(texts)
    is_uuid = pc.and_(
        pc.match_substring_regex(lower, _UUID), pc.match_substring_regex(lower, "[a-f-]")
    )
    return only_where(
        texts,
        is_uuid,
        lambda some: pc.replace_substring_regex(pc.ascii_lower(some), _UUID, r"\1-\2-\3-\4-\5"),
    )


def _isbns(texts: pa.Array) -> pa.Array:
    def change(some: pa.Array) -> pa.Array:
        bare = pc.replace_substring_regex(some, _ISBN, r"\1")
        separators = pc.count_substring_regex(bare, "[ -]")
        digits = pc.ascii_upper(pc.replace_substring_regex(bare, "[ -]", ""))
        is_named = pc.match_substring(some, "isbn", ignore_case=True)
        is_long = pc.and_(pc.greater(separators, 0), pc.equal(pc.binary_length(digits), 13))
        is_marked = pc.or_(pc.or_(is_named, is_long), pc.equal(separators, _ISBN_SEPARATORS))
        return pc.if_else(pc.and_(is_marked, pa.array(_are_isbns(digits))), digits, some)

    may = pc.or_(pc.match_substring(texts, "-"), pc.match_substring(texts, " "))
    may = pc.or_(may, pc.match_substring(texts, "isbn", ignore_case=True))
    return where_matching(texts, may, _ISBN, change)


def _are_isbns(texts: pa.Array) -> np.ndarray:
    """Return which texts are the digits of an ISBN with the right check digit."""
    result = np.zeros(len(texts), bool)
    shaped = as_mask(pc.match_substring_regex(texts, _BARE))
    lengths = pc.fill_null(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)
    for size in (10, 13):
        rows = np.flatnonzero(shaped & (lengths == size))
        if not len(rows):
            continue
        joined = "".join(texts.take(pa.array(rows)).to_pylist()).upper().encode()
        digits = np.frombuffer(joined, np.uint8).reshape(-1, size).astype(int) - ord("0")
        is_ten = digits == ord("X") - ord("0")
        if size == 10:
            sums = np.where(is_ten, 10, digits) @ np.arange(10, 0, -1)
            result[rows] = sums % 11 == 0
        else:
            sums = digits @ np.array([1, 3] * 6 + [1])
            result[rows] = (sums % 10 == 0) & ~is_ten.any(axis=1)
    return result


def _phones(texts: pa.Array) -> pa.Array:
    def change(some: pa.Array) -> pa.Array:
        abroad = pc.match_substring_regex(some, _ABROAD)
        national = pc.replace_substring_regex(some, r"\(0\)", "")
        digits = pc.replace_substring_regex(pc.if_else(abroad, national, some), "[^0-9]", "")
        outside = pc.replace_substring_regex(digits, "^(?:00)?", "+")
        return pc.if_else(abroad, outside, digits)

    may = pc.match_substring_regex(
        texts, r"^\(?\+[0-9 ()./-]+$|^[(0-9][0-9)]*[ ()./-][0-9 ()./-]*$"
    )
    return where_matching(texts, may, f"{_ABROAD}|{_AT_HOME}", change)


def _without_thousands(texts: pa.Array) -> pa.Array:
    for separator, pattern in _GROUPED:
        may = pc.match_substring(texts, separator)
        if separator == "'":
            may = pc.or_(may, pc.match_substring(texts, "\u2019"))
        signs = r"['\x{2019}]" if separator == "'" else f"[{separator}]"

        def change(some: pa.Array, signs: str = signs, comma: bool = separator != ",") -> pa.Array:
            plain = pc.replace_substring_regex(some, signs, "")
            return pc.replace_substring(plain, ",", ".") if comma else plain

        texts = where_matching(texts, may, pattern, change)
    return texts


def _iso(texts: pa.Array, columns: np.ndarray | None = None) -> pa.Array:
    """Return dates as ISO 8601 has them, null where a text is none.

    Dates of either order are read where columns, int64 (n,), decide them.
    """
    lower = pc.utf8_lower(texts).cast(pa.string())
    split = pc.extract_regex(lower, DATE_AND_TIME)
    date = split.field("date")
    names = canonical_dates(date, columns, either_order=columns is not None)
    names = pc.coalesce(names, _named(date))
    has_time = pc.not_equal(split.field("hour"), "")
    months = pc.if_else(has_time, pa.scalar(None, pa.string()), _months(date, names))
    return pc.coalesce(months, *_moments(names, split)).cast(texts.type)


def _named(dates: pa.Array) -> pa.Array:
    """Return dates with the name of a month, in any language, in the form of `canonical_dates`."""
    result = pa.nulls(len(dates), pa.string())
    at = np.flatnonzero(as_mask(pc.match_substring_regex(dates, rf"{_LETTER}{{3}}")))
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


def _moments(names: pa.Array, split: pa.StructArray) -> tuple[pa.Array, pa.Array]:
    """Return points of time, in UTC where they have a zone, and days; each null for others."""
    fields = pc.extract_regex(names, _WRITTEN)
    rows = np.flatnonzero(as_mask(pc.not_equal(fields.field("day"), "")))
    named, times = fields.take(pa.array(rows)), split.take(pa.array(rows))
    month = pc.index_in(named.field("month"), pa.array(MONTHS)).to_numpy()
    year, day = (numbers_of(named.field(name)) for name in ("year", "day"))
    dates = ((year - 1970) * 12 + month).astype("datetime64[M]").astype("datetime64[D]") + (day - 1)
    hour, minute, second = (numbers_of(times.field(name)) for name in ("hour", "minute", "second"))
    half = times.field("half")
    good = ((hour < 24) | (minute == 0)) & ((hour <= 12) | as_mask(pc.equal(half, "")))
    fraction = pc.utf8_rtrim(times.field("fraction"), "0")
    seconds = 3600 * hours_of_day(hour, half) + 60 * minute + second
    is_day = (seconds == 0) & as_mask(pc.less_equal(pc.binary_length(fraction), 1))
    zone = pc.utf8_rpad(pc.replace_substring(times.field("zone"), ":", ""), 5, "0")
    moment = dates.astype("datetime64[s]") + (seconds - _offsets(zone))
    written = pa.array(np.datetime_as_string(moment)).cast(pa.string())
    written = pc.replace_substring(written, "T", " ")
    width = np.where(pc.binary_length(fraction).to_numpy(zero_copy_only=False) > 7, 10, 7)
    padded = [pc.utf8_rpad(fraction, size, "0") for size in (7, 10)]
    fraction = pc.if_else(
        pc.less_equal(pc.binary_length(fraction), 1),
        "",
        pc.if_else(pa.array(width == 7), *padded),
    )
    written = pc.binary_join_element_wise(written, fraction, "")
    days = pa.array(np.datetime_as_string(dates)).cast(pa.string())
    return (
        _placed(written, rows, good & ~is_day, len(names)),
        _placed(days, rows, good & is_day, len(names)),
    )


def _offsets(zones: pa.Array) -> np.ndarray:
    """Return the seconds by which time zones such as +0100 are ahead of UTC."""
    fields = pc.extract_regex(zones, r"^(?P<sign>[+-])(?P<hours>\d\d)(?P<minutes>\d\d)$")
    hours, minutes = (
        numbers_of(pc.fill_null(fields.field(name), "0")) for name in ("hours", "minutes")
    )
    is_behind = as_mask(pc.equal(fields.field("sign"), "-"))
    return np.where(is_behind, -1, 1) * (3600 * hours + 60 * minutes)


def _placed(texts: pa.Array, rows: np.ndarray, chosen: np.ndarray, n: int) -> pa.Array:
    return replaced_at(pa.nulls(n, pa.string()), rows[chosen], texts.filter(pa.array(chosen)))


def read_columns(
    texts: pa.LargeStringArray,
    readings: Collection[str],
    columns: np.ndarray | None = None,
    *,
    day_first: bool | None = None,
) -> pa.LargeStringArray:
    """Apply the readings that a column decides to cells that `read_cells` has read.

    `columns` has the column of each cell; by default all are of one. `day_first` is how 3/5/1953
    is read in columns that do not say it; by default it stays there.

    >>> cells = pa.array(["007", "8", "9"], pa.large_string())
    >>> read_columns(cells, ["leading-zeros"]).to_pylist()
    ['7', '8', '9']
    >>> cells = pa.array(["007", "7", "09"], pa.large_string())
    >>> read_columns(cells, ["leading-zeros"]).to_pylist()
    ['007', '7', '09']
    """
    if not len(texts):
        return texts
    columns = np.zeros(len(texts), np.int64) if columns is None else columns
    if "iso-dates" in readings:
        texts = _with_dates_of_columns(texts, columns, day_first)
    if "identifiers" in readings:
        texts = _with_long_isbns(texts, columns)
    for name, change in LOSSY.items():
        if name in readings:
            changed = change(texts, columns)
            texts = _unless_merged(texts, changed, columns)
    return texts


def _with_dates_of_columns(
    texts: pa.Array, columns: np.ndarray, day_first: bool | None
) -> pa.Array:
    texts = _with_compact_dates(texts, columns)
    first, last, lengths = _edges(texts)
    short = (lengths >= len("1/2/03")) & (lengths <= _MAX_DATE_BYTES)
    rows = _matching(texts, short & ~_DIGITS[first] & _DIGITS[last], _MONTH_OF_SHORT_YEAR)
    if len(rows):
        some = pc.utf8_lower(texts.take(pa.array(rows))).cast(pa.string())
        names = months_of_years(some, np.unique(columns[rows], return_inverse=True)[1])
        texts = _replaced(texts, rows, _months(names, names))
    rows = _matching(texts, short & _DIGITS[first], _EITHER_ORDER)
    if not len(rows):
        return texts
    fields = pc.extract_regex(texts.take(pa.array(rows)), _EITHER_ORDER)
    one, two, three = (numbers_of(fields.field(name)) for name in ("first", "second", "third"))
    groups = np.unique(columns[rows], return_inverse=True)[1]
    n = int(groups.max()) + 1
    says_day, says_month = (
        np.bincount(groups[number > 12], minlength=n) > 0 for number in (one, two + three)
    )
    is_open = ~says_day & ~says_month
    kept = ((says_day ^ says_month) | (is_open & (day_first is not None)))[groups]
    rows, groups = rows[kept], groups[kept]
    some = texts.take(pa.array(rows))
    if day_first is not None:  # one more value says it in columns that do not
        example = DAY_FIRST if day_first else "1/13/2020"
        some = pa.concat_arrays([some, pa.array([example] * is_open.sum(), some.type)])
        groups = np.append(groups, np.flatnonzero(is_open))
    return _replaced(texts, rows, _iso(some, groups)[: len(rows)]) if len(rows) else texts


def _with_compact_dates(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    """Read 20240105 in columns of which nearly all whole numbers are such dates."""
    is_whole = as_mask(pc.ascii_is_decimal(texts))
    rows = _matching(texts, is_whole, _COMPACT)
    if not len(rows):
        return texts
    n_whole, n_compact = np.bincount(columns[is_whole]), np.bincount(columns[rows])
    rows = rows[n_compact[columns[rows]] >= _MIN_COMPACT * n_whole[columns[rows]]]
    some = texts.take(pa.array(rows))
    return _replaced(texts, rows, pc.coalesce(_iso(some), some)) if len(rows) else texts


def _matching(texts: pa.Array, chosen: np.ndarray, pattern: str) -> np.ndarray:
    rows = np.flatnonzero(chosen)
    return rows[as_mask(pc.match_substring_regex(texts.take(pa.array(rows)), pattern))]


def _replaced(texts: pa.Array, rows: np.ndarray, others: pa.Array) -> pa.Array:
    """Put others in the place of texts, where they are no nulls."""
    some = pc.coalesce(others.cast(texts.type), texts.take(pa.array(rows)))
    return replaced_at(texts, rows, some)


def _with_long_isbns(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    """Write ISBNs of ten digits with thirteen, in columns of nothing but ISBNs."""
    lengths = _edges(texts)[2]
    if not ((lengths == 10) | (lengths == 13)).any():
        return texts
    are_isbns = _are_isbns(texts)
    n = int(columns.max()) + 1
    known = texts.is_valid().to_numpy(zero_copy_only=False)
    n_others, n_isbns = (
        np.bincount(columns[flags], minlength=n) for flags in (known & ~are_isbns, are_isbns)
    )
    of_isbns = (n_others == 0) & (n_isbns >= _MIN_ISBNS)
    rows = np.flatnonzero(are_isbns & of_isbns[columns] & (lengths == 10))
    if not len(rows):
        return texts
    heads = ["978" + text[:9] for text in texts.take(pa.array(rows)).to_pylist()]
    digits = np.array([[int(digit) for digit in head] for head in heads])
    checks = -(digits @ np.array([1, 3] * 6)) % 10
    written = [f"{head}{check}" for head, check in zip(heads, checks.tolist(), strict=True)]
    return _replaced(texts, rows, pa.array(written, texts.type))


_MIN_ISBNS = 2


def _truth_numbers(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    at = pc.index_in(pc.utf8_lower(texts), pa.array(list(_TRUTHS), texts.type))
    is_other = pc.and_(at.is_null(), texts.is_valid()).to_numpy(zero_copy_only=False)
    n = int(columns.max()) + 1
    all_are = np.bincount(columns[is_other], minlength=n) == 0
    truths = pa.array(list(_TRUTHS.values()), texts.type).take(at)
    return pc.if_else(pa.array(all_are[columns]), truths, texts)


def _calling_codes(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    is_phone = as_mask(pc.match_substring_regex(texts, _PHONE))
    n = int(columns.max()) + 1
    known = texts.is_valid().to_numpy(zero_copy_only=False)
    n_phones, n_known = (np.bincount(columns[flags], minlength=n) for flags in (is_phone, known))
    of_phones = n_phones >= np.maximum(1, _MIN_PHONES * n_known)
    two, one = _CODES
    # Codes are no starts of each other.
    local = pc.replace_substring_regex(
        texts, rf"^(?:(?:\+|00)(?:{one}|{two}|[2-9][0-9]{{2}})|0)([1-9][0-9]{{5,13}})$", r"\1"
    )
    return pc.if_else(pa.array(is_phone & of_phones[columns]), local, texts)


def _decimal_zeros(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    short = pc.replace_substring_regex(texts, r"^(-?[0-9]+\.[0-9]*?)0+$", r"\1")
    return pc.replace_substring_regex(short, r"^(-?[0-9]+)\.$", r"\1")


def _separators(texts: pa.Array, columns: np.ndarray) -> pa.Array:
    may = pc.match_substring_regex(texts, r"[0-9].*[ ./_-]|[ ./_-].*[0-9]")
    is_code = pc.and_not(may, pc.match_substring_regex(texts, r"^[+-]?[0-9]*\.?[0-9]*$"))
    shortened = pc.replace_substring_regex(texts, "[ ./_-]", "")
    return pc.if_else(is_code, shortened, texts)


# Readings that could make two values of a column one, which are off there, in this order.
LOSSY: dict[str, Callable[[pa.Array, np.ndarray], pa.Array]] = {
    "truth-numbers": _truth_numbers,
    "calling-codes": _calling_codes,
    "decimal-zeros": _decimal_zeros,
    "separators": _separators,
    "leading-zeros": lambda texts, _: pc.replace_substring_regex(texts, "^0+([0-9]+)$", r"\1"),
    "letter-case": lambda texts, _: pc.utf8_lower(texts),
}


def _unless_merged(texts: pa.Array, changed: pa.Array, columns: np.ndarray) -> pa.Array:
    """Return what was changed, but what it was in columns where two values have become one."""
    if texts.equals(changed):
        return texts
    n = int(columns.max()) + 1
    before, after = (_n_distinct(side, columns, n) for side in (texts, changed))
    return pc.if_else(pa.array((before == after)[columns]), changed, texts)


def _n_distinct(texts: pa.Array, columns: np.ndarray, n: int) -> np.ndarray:
    encoded = texts.dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    pairs = distinct_numbers(columns * (len(encoded.dictionary) + 1) + codes + 1)
    return np.bincount(pairs // (len(encoded.dictionary) + 1), minlength=n)
