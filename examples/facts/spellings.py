"""Other spellings of the same thing: word order, accents, abbreviations, dates, slips of the pen.

Every function takes one cell and returns one cell; an empty cell stays empty. Nothing here is
random: a misspelling depends on the text alone.
"""

import unicodedata
import zlib
from collections.abc import Callable
from datetime import date

_PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "æ": "ae", "Æ": "AE", "đ": "d", "ß": "ss"}
)
_ABBREVIATIONS = {
    "Mount ": "Mt. ",
    "Saint ": "St. ",
    "Avenue": "Ave.",
    "Street": "St.",
    "Road": "Rd.",
    "Boulevard": "Blvd.",
    "Drive": "Dr.",
    "University": "Univ.",
    "International": "Intl.",
}


def given_first(name: str) -> str:
    """Turn "Curie, Marie" into "Marie Curie".

    >>> given_first("Curie, Marie")
    'Marie Curie'
    """
    family, comma, given_name = name.partition(", ")
    return f"{given_name} {family}" if comma else name


def family_capitals(name: str) -> str:
    """Turn "Curie, Marie" into "CURIE, Marie", as library catalogues write it."""
    family, comma, given_name = name.partition(", ")
    return f"{family.upper()}{comma}{given_name}"


def unaccented(text: str) -> str:
    """Take the accents off.

    >>> unaccented("São Paulo")
    'Sao Paulo'
    """
    decomposed = unicodedata.normalize("NFD", text.translate(_PLAIN_LETTERS))
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def abbreviated(text: str) -> str:
    """Shorten the words that people shorten in names and addresses.

    >>> abbreviated("Mount Everest")
    'Mt. Everest'
    """
    for word, abbreviation in _ABBREVIATIONS.items():
        text = text.replace(word, abbreviation)
    return text


def misspelt(text: str) -> str:
    """Drop, double or swap one letter inside the longest word; the text itself decides which.

    >>> misspelt("Einstein") != "Einstein"
    True
    """
    word = max(text.replace(",", " ").split(), key=len, default="")
    if len(word) < 4:
        return text
    choice = zlib.crc32(text.encode("utf-8"))
    position = 1 + choice % (len(word) - 2)
    before, letter, after = word[:position], word[position], word[position + 1 :]
    slips = [before + after, before + letter + word[position:]]
    if letter != after[0]:
        slips.append(before + after[0] + letter + after[1:])
    return text.replace(word, slips[choice // 97 % len(slips)], 1)


def day_month_year(iso_date: str) -> str:
    """Turn 1953-03-05 into "5 March 1953"."""
    return _written(iso_date, "{0.day} {0:%B} {0.year}")


def month_day_year(iso_date: str) -> str:
    """Turn 1953-03-05 into "March 5, 1953"."""
    return _written(iso_date, "{0:%B} {0.day}, {0.year}")


def short_month_day_year(iso_date: str) -> str:
    """Turn 1953-03-05 into "Mar 5 1953"."""
    return _written(iso_date, "{0:%b} {0.day} {0.year}")


def dotted(iso_date: str) -> str:
    """Turn 1953-03-05 into 05.03.1953, day first."""
    return _written(iso_date, "{0.day:02d}.{0.month:02d}.{0.year}")


def slashed(iso_date: str) -> str:
    """Turn 1953-03-05 into 03/05/1953, month first."""
    return _written(iso_date, "{0.month:02d}/{0.day:02d}/{0.year}")


def _written(iso_date: str, pattern: str) -> str:
    return pattern.format(date.fromisoformat(iso_date)) if iso_date else ""


def with_unit(unit: str) -> Callable[[str], str]:
    """Return a function that puts a unit behind a number."""
    return lambda number: f"{number} {unit}"


def with_note(mark: str) -> Callable[[str], str]:
    """Return a function that puts a footnote mark behind a text."""
    return lambda text: f"{text}{mark}"
