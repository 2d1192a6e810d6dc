"""Program that writes pexeso/lake/normalise/months.json.

The source is the Unicode Common Locale Data Repository as Babel gives it. Usage:
``python tests/lake/month_names.py``.

The package carries the file instead of asking Babel, so that values have the same form whatever
version of Babel a machine has. Words that mean different months in different languages are left out
("listopad" is October in Croatian and November in Polish), and so are words that mean a month and a
weekday.
"""

import json
import re
import unicodedata
from collections import defaultdict
from pathlib import Path

from babel.dates import get_day_names, get_month_names

from pexeso.lake.normalise.abbreviations import packaged

PAGE = Path(__file__).resolve().parents[2] / "pexeso" / "lake" / "normalise" / "months.json"
LANGUAGES = [
    *("bg", "ca", "cs", "da", "de", "de_AT", "el", "en", "es", "et", "eu", "fi", "fr", "ga", "gl"),
    *("hr", "hu", "id", "is", "it", "lt", "lv", "ms", "nb", "nl", "pl", "pt", "ro", "ru", "sk"),
    *("sl", "sq", "sr", "sv", "tr", "uk"),
]
WIDTHS, CONTEXTS = ("wide", "abbreviated"), ("format", "stand-alone")


def spellings(name: str) -> set[str]:
    """Return the words that a name can be after normalising, with accents and without."""
    lower = unicodedata.normalize("NFKC", name).lower().replace(".", "")
    plain = "".join(
        packaged()["letters"].get(letter, letter)
        for letter in unicodedata.normalize("NFKD", lower)
        if not 0x300 <= ord(letter) <= 0x36F
    )
    plain = plain if re.fullmatch(r"[a-z]+|[\u0370-\u03ff]+", plain) else lower
    return {text for text in (lower, plain) if re.fullmatch(r"[^\W\d_]{3,}", text)}


def months() -> dict[str, object]:
    """Return what the file holds."""
    month_of, weekdays, english = defaultdict(set), set(), set()
    for language in LANGUAGES:
        for width in WIDTHS:
            for context in CONTEXTS:
                for number, name in get_month_names(width, context, language).items():
                    for text in spellings(name):
                        month_of[text].add(number)
                        english |= {text} if language == "en" else set()
                weekdays |= {
                    text
                    for name in get_day_names(width, context, language).values()
                    for text in spellings(name)
                }
    month_of["sept"].add(9)
    english.add("sept")
    clear = {
        text: min(numbers)
        for text, numbers in month_of.items()
        if len(numbers) == 1 and (text not in weekdays or text in english)
    }
    return {
        "english": _by_month({text: clear[text] for text in english}),
        "others": _by_month(
            {text: number for text, number in clear.items() if text not in english}
        ),
        "weekdays": " ".join(sorted(weekdays - clear.keys())),
    }


def _by_month(words: dict[str, int]) -> list[str]:
    return [
        " ".join(sorted(text for text, number in words.items() if number == month))
        for month in range(1, 13)
    ]


def text() -> str:
    """Return the text of the file."""
    return json.dumps(months(), ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
