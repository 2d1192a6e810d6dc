"""What cells look like: numbers, dates, codes or words; and what all cells of a column look like.

Names of columns are told from data by this: a name does not look like the cells below it.
"""

import re
from collections import Counter
from collections.abc import Sequence

from pexeso.lake.cells.missing import is_missing_word, names_no_column

NUMBER, DATE = "number", "date"

_MAX_ROWS = 40
_MAX_COLUMNS = 64
_MAX_CHARACTERS = 64
_MIN_ALIKE = 0.9
_MIN_DIGITS_OF_A_CODE = 2

_NUMBER = re.compile(
    r"\(?[+\-\u2212\u2013<>~]?=?\s?[$€£¥]?\s?[+\-\u2212\u2013]?"
    r"(?:[0-9]{1,3}(?:[,.'\u2019_\xa0\u2009\u202f ][0-9]{3})+(?:[.,][0-9]+)?"
    r"|[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eE][+\-]?[0-9]+)?\s?[%‰$€£¥]?\)?"
)
_TIME = (
    r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?\s?(?:[AaPp]\.?[Mm]\.?|Z|[+\-][0-9:]{2,5})?"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DATE = re.compile(
    rf"(?:[0-9]{{1,4}}[-/.][0-9]{{1,2}}[-/.][0-9]{{1,4}}(?:[T ]\s?{_TIME})?|{_TIME}"
    rf"|[0-9]{{1,2}}[-/. ]{_MONTH}[-/. ][0-9]{{2,4}}|{_MONTH}\s[0-9]{{1,2}},?\s[0-9]{{4}})",
    re.IGNORECASE,
)
_SAYS_SOMETHING = re.compile(r"\w|[%‰$€£¥#]")
_DIGIT = re.compile(r"[0-9]")
_DIGITS, _LETTERS = re.compile(r"[0-9]+"), re.compile(r"[^\W0-9_]+")


def kind_of(cell: str) -> str | None:
    """Return what a cell looks like; None for words, and for cells without a value.

    Cells with two digits or more that are neither numbers nor dates are codes: their kind is what
    is left of them when each run of digits, and each run of letters, is one character.

    Examples
    --------
    >>> kind_of("$1,200"), kind_of("2019-01-31"), kind_of("MG-8769"), kind_of("Oslo")
    ('number', 'date', 'a-9', None)
    """
    text = cell.strip()
    if not text or len(text) > _MAX_CHARACTERS or not _DIGIT.search(text):
        return None
    if _NUMBER.fullmatch(text):
        return NUMBER
    if _DATE.fullmatch(text):
        return DATE
    if len(_DIGIT.findall(text)) < _MIN_DIGITS_OF_A_CODE:
        return None
    return _LETTERS.sub("a", _DIGITS.sub("9", text))


def has_value(cell: str) -> bool:
    """Return whether a cell says something: it is not empty, ``n/a``, ``-``, ``**`` or the like."""
    text = cell.strip()
    return bool(_SAYS_SOMETHING.search(text)) and not is_missing_word(text) and text not in "xX"


def is_year(cell: str) -> bool:
    """Return whether a cell is a whole number from 1700 to 2100."""
    text = cell.strip()
    return len(text) == 4 and text.isascii() and text.isdigit() and 1700 <= int(text) <= 2100


def column_kinds(rows: Sequence[Sequence[str]], width: int) -> list[str | None]:
    """Return for each column the kind that nine tenths of its values are of, None where none is.

    Parameters
    ----------
    rows
        Data rows; at most 40 are looked at.
    """
    kinds: list[str | None] = [None] * width
    looked_at = rows[:_MAX_ROWS]
    for position in range(min(width, _MAX_COLUMNS)):
        kinds[position] = _kind_of_column(
            [row[position] for row in looked_at if position < len(row)]
        )
    return kinds


def _kind_of_column(cells: Sequence[str]) -> str | None:
    n_words_allowed = (1 - _MIN_ALIKE) * len(cells)
    counts: Counter[str | None] = Counter()
    for cell in cells:
        if has_value(cell):
            counts[kind_of(cell)] += 1
            if counts[None] > n_words_allowed:
                return None
    if not counts:
        return None
    kind, n = counts.most_common(1)[0]
    return kind if n >= max(2, _MIN_ALIKE * counts.total()) else None


def compare(row: Sequence[str], kinds: Sequence[str | None]) -> tuple[int, int]:
    """Return in how many columns of a kind a row's value is of that kind, and is not."""
    n_alike = n_other = 0
    for cell, kind in zip(row, kinds, strict=False):
        if kind is not None and has_value(cell):
            if kind_of(cell) == kind:
                n_alike += 1
            else:
                n_other += 1
    return n_alike, n_other


def has_gaps_of_data(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Return whether a cell of the first row stands for a missing value as data has them.

    The same text stands below it, or another cell of the row is like the values of its column and
    none is unlike them.
    """
    gaps = [i for i in range(min(width, len(rows[0]))) if names_no_column(rows[0][i])]
    if not gaps or len(rows) < 2:
        return False
    if any(row[i] == rows[0][i] for i in gaps for row in rows[1:] if i < len(row)):
        return True
    n_alike, n_other = compare(rows[0], column_kinds(rows[1:], width))
    return n_alike > 0 and not n_other
