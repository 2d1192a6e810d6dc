"""Dates whose month is named, in many languages, read from the words of a value.

A value is such a date when all of its words are part of one: the name of a month, a day, a year, a
weekday, or a word such as "of". So nothing that holds any other word is ever read as a date. Names
of months come from `months.json`, which was written from the Unicode Common Locale Data Repository
as Babel gives it. Babel is not asked when values are read, since another version of it would give
values another form; dateparser and dateutil are not, since they take values one by one (hundreds
and tens of thousands a second) and read "12.5", "sat 5" and "2020" as dates.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
"""The month names of the canonical form."""

FILLERS = (
    "of",
    "the",
    "de",
    "del",
    "d",
    "den",
    "di",
    "la",
    "le",
    "el",
    "\u0433",
    "года",
    "\u0440",
    "року",
    ",",
)
"""Words that stand between the parts of a date."""

MAX_WORDS = 9
"""Values of more words hold no date alone: a weekday, three parts, and a few words such as "of" and
commas between them."""

FIRST_YEAR_OF_1900 = 30
"""Two-digit years from here on are 19xx, smaller ones 20xx: the rule of the common spreadsheets."""

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


@cache
def month_data() -> dict[str, list[str] | str]:
    """Return what is in ``months.json``. Not to be changed by the caller."""
    return json.loads(files("pexeso.lake.normalise").joinpath("months.json").read_text("utf-8"))


@cache
def month_words() -> tuple[pa.StringArray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the words for months.

    Returns
    -------
    months : int64
        Of each, 1 to 12.
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

    Examples
    --------
    >>> english = [["march", "5th", ",", "2020"]]
    >>> lists = pa.array([["5", "marzo", "2020"], *english, ["märz", "2020"], ["mars", "2020"]])
    >>> read_named_dates(lists).to_pylist()
    ['5 march 2020', '5 march 2020', 'march 2020', None]
    """
    words = _Words(lists)
    is_date, day, month, year = words.read()
    texts = pa.nulls(len(lists), pa.string())
    if not is_date.any():
        return texts
    return pc.replace_with_mask(
        texts, pa.array(is_date), written_dates(day[is_date], month[is_date], year[is_date])
    )


def written_dates(day: np.ndarray, month: np.ndarray, year: np.ndarray) -> pa.StringArray:
    """Write dates in the canonical form; a day or year of 0 is left out."""
    parts = [_texts(day), pa.array(MONTHS).take(pa.array(month - 1)), _texts(year)]
    return pc.utf8_trim(pc.binary_join_element_wise(*parts, " "), " ")


def is_calendar_date(day: np.ndarray, month: np.ndarray, year: np.ndarray) -> np.ndarray:
    """Return which days are in the calendar; months are 1 to 12, days 1 or more."""
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    return (months.astype("datetime64[D]") + (day - 1)).astype("datetime64[M]") == months


def _texts(numbers: np.ndarray) -> pa.StringArray:
    return pc.if_else(pa.array(numbers > 0), pa.array(numbers).cast(pa.string()), "")


def _years(tokens: pa.StringArray) -> np.ndarray:
    """Return years of four digits from 1000 to 2999, and numbers of two digits; 0 for all else."""
    is_year = pc.match_substring_regex(tokens, "^(?:[12][0-9]{3}|[0-9]{2})$")
    return pc.if_else(is_year, tokens, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)


def whole_years(years: np.ndarray) -> np.ndarray:
    """Put the century before years of two digits."""
    return np.where(years < 100, years + np.where(years < FIRST_YEAR_OF_1900, 2000, 1900), years)


class _Words:
    """What each word of the values is: arrays with an entry a word."""

    def __init__(self, lists: pa.ListArray) -> None:
        words, months, english, plain = month_words()
        tokens = lists.flatten()
        self.row, self.n_rows = pc.list_parent_indices(lists).to_numpy(), len(lists)
        self.is_month, position = _entries(tokens, words)
        self.month = months[position]
        self.is_english, self.is_plain = english[position], plain[position]
        is_day, position = _entries(tokens, pa.array(_NUMBERS))
        self.day = np.where(is_day, _DAYS[position], 0)
        self.is_ordinal = is_day & (position >= _FIRST_ORDINAL)
        self.year = _years(tokens)
        self.is_number = is_day | (self.year > 0)
        self.is_known = self.is_month | self.is_number | _entries(tokens, _weekdays())[0]

    def _count(self, flags: np.ndarray) -> np.ndarray:
        return np.bincount(self.row[flags], minlength=self.n_rows)

    def _last(self, flags: np.ndarray, step: int = 1) -> np.ndarray:
        """Return each value's position of the last flagged word, or of the first if step is -1.

        The position is 0 if no word has the flag.
        """
        positions, last = np.flatnonzero(flags)[::step], np.zeros(self.n_rows, dtype=np.int64)
        last[self.row[positions]] = positions
        return last

    def read(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return a mask of the dates (bool), and day, month and year of each (int64).

        The numbers are 0 for values that are no dates.
        """
        if not len(self.row):
            nothing = np.zeros(self.n_rows, dtype=np.int64)
            return nothing > 0, nothing, nothing, nothing
        at, first, last = (
            self._last(self.is_month),
            self._last(self.is_number, -1),
            self._last(self.is_number),
        )
        is_one, is_plain, is_english = first == last, self.is_plain[at], self.is_english[at]
        is_between = (first < at) & (at < last)
        starts_with_year = ~is_one & (self.year[first] >= 1000) & (self.day[last] > 0) & is_plain
        is_day_year = (
            ~is_one & (self.day[first] > 0) & (self.year[last] >= 1000) & (is_plain | is_between)
        )
        is_short = ~is_one & (self.day[first] > 0) & (self.year[last] > 0) & (self.year[last] < 100)
        is_short &= is_english & (is_between | self.is_ordinal[first])
        is_year = is_one & (self.year[first] >= 1000) & is_plain
        is_day = is_one & (self.day[first] > 0) & is_plain
        day = np.where(
            starts_with_year,
            self.day[last],
            np.where(is_day_year | is_short | is_day, self.day[first], 0),
        )
        year = np.where(
            starts_with_year | is_year,
            self.year[first],
            np.where(is_day, 0, whole_years(self.year[last])),
        )
        n_numbers = self._count(self.is_number)
        good = (
            (self._count(~self.is_known) == 0)
            & (self._count(self.is_month) == 1)
            & (n_numbers >= 1)
            & (n_numbers <= 2)
        )
        good &= starts_with_year | is_day_year | is_short | is_year | is_day
        month = self.month[at]
        good &= is_calendar_date(np.maximum(day, 1), month, np.where(year > 0, year, 2000))
        return good, day, month, year


def _entries(tokens: pa.StringArray, words: pa.StringArray) -> tuple[np.ndarray, np.ndarray]:
    """Return which tokens are among the words (bool), and their positions there, 0 if absent."""
    entry = pc.index_in(tokens, words)
    return entry.is_valid().to_numpy(zero_copy_only=False), pc.fill_null(entry, 0).to_numpy()
