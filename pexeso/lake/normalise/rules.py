"""The rules of the normaliser by name.

Each rule has a description, whether it is on by default, and examples that are tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from pexeso.errors import InputError


@dataclass(frozen=True)
class NamedRule:
    """One rule of the normaliser."""

    name: str
    is_default: bool
    does: str
    reason: str
    examples: tuple[tuple[str, str], ...]


RULES: tuple[NamedRule, ...] = (
    NamedRule(
        "accents",
        True,
        "removes the accents of Latin and Greek letters and writes ø as o, ß as ss and the like. "
        "Unicode's form NFKC is always applied.",
        "Tables differ in whether they keep accents.",
        (("São Paulo", "sao paulo"), ("Łódź", "lodz")),
    ),
    NamedRule(
        "case",
        True,
        "writes lower case throughout.",
        "Tables differ in how they capitalise.",
        (("NEW York", "new york"),),
    ),
    NamedRule(
        "footnotes",
        True,
        "removes marks of footnotes in square brackets.",
        "They belong to the page that a table was taken from, not to the value.",
        (
            ("Berlin[3]", "berlin"),
            ("Star of Lake Tai [citation needed]", "star of lake tai"),
            ("[3]", "3"),
        ),
    ),
    NamedRule(
        "opponents",
        False,
        "removes 'at', '@' and 'vs' at the start, which schedules put before an opponent.",
        "Little is lost with such a word. Before an article and in phrases such as 'at home' it "
        "stays; initials (A. T.) are kept apart from it.",
        (
            ("at Colorado", "colorado"),
            ("vs. Iowa", "iowa"),
            ("@ Detroit", "detroit"),
            ("At the Movies", "at the movies"),
            ("AT&T", "at and t"),
        ),
    ),
    NamedRule(
        "ranks",
        True,
        "removes a rank or seed at the start that is marked as one, before a word.",
        "A number so marked is about the table, not the thing; a number without a mark may be "
        "part of a name, and stays.",
        (
            ("#3 Duke", "duke"),
            ("(2) Duke", "duke"),
            ("#15 Illinois", "illinois"),
            ("1. FC Köln", "1 fc koln"),
            ("#41", "41"),
        ),
    ),
    NamedRule(
        "numbering",
        False,
        "removes a number of a list at the start: '1.', '2)', 'No. 3'.",
        "It makes '2. Liga' the same as '3. Liga'.",
        (("1. Maryland", "maryland"), ("No. 5 UConn", "uconn")),
    ),
    NamedRule(
        "counts",
        False,
        "removes a number of one to three digits in parentheses at the end.",
        "It makes 'Meridian (1)' the same as 'Meridian (2)'.",
        (("Arsenal (3)", "arsenal"), ("Halloween (2018)", "halloween 2018")),
    ),
    NamedRule(
        "qualifiers",
        False,
        "removes what stands in parentheses at the end.",
        "It makes 'Springfield (MA)' the same as 'Springfield (IL)'.",
        (("Springfield (MA)", "springfield"), ("Paris (France)", "paris")),
    ),
    NamedRule(
        "inverted-names",
        False,
        "puts what stands behind the only comma first, where both parts are words of a name: one "
        "to three, without digits.",
        "It cannot tell people from places. Models that know no word order need it not.",
        (
            ("Curie, Marie", "marie curie"),
            ("Billings, Jr.", "billings jr"),
            ("Paris, France", "france paris"),
        ),
    ),
    NamedRule(
        "dates",
        True,
        "writes dates as day, English name of the month, and year, with a time of day as words "
        "behind; also months of a year, and days of a month. "
        "Names of months are read in 34 languages.",
        "The same day is written in many ways. Nothing that holds another word is a date. "
        "Which number of 3/5/1953 is the month is decided over the whole column.",
        (
            ("2020-03-05", "5 march 2020"),
            ("Mar 5th, 1953", "5 march 1953"),
            ("05.03.53", "5 march 1953"),
            ("3-1-0", "3 1 0"),
        ),
    ),
    NamedRule(
        "times",
        True,
        "writes a time of day with a.m. or p.m. by the 24-hour clock.",
        "They say the same. Without either it may be a length of time, and stays.",
        (("2:30 p.m.", "14 30"), ("12:05 AM", "00 05"), ("2:30", "2 30")),
    ),
    NamedRule(
        "periods",
        True,
        "writes quarters, fiscal years, decades, spans of years and years with 'c.' in one way.",
        "Each is written in a few ways that mean nothing else. A number behind a year is the end "
        "of a span where it is larger, or 00.",
        (
            ("2020-Q1", "q1 2020"),
            ("FY2019", "fiscal year 2019"),
            ("1990's", "1990s"),
            ("1990\u201395", "1990 1995"),
            ("1999/00", "1999 2000"),
            ("c. 1850", "circa 1850"),
            ("2020-03", "2020 03"),
        ),
    ),
    NamedRule(
        "states",
        True,
        "writes out the codes of states of the USA behind the last comma, at the end or before a "
        "zip code.",
        "Nothing different becomes the same: where the code means something else, the value "
        "still has a form of its own.",
        (
            ("Austin, TX", "austin texas"),
            ("Austin, TX 78701", "austin texas 78701"),
            ("Kessler, M.D.", "kessler md"),
            ("701 Maryland Avenue, N.E.", "701 maryland avenue northeast"),
        ),
    ),
    NamedRule(
        "punctuation",
        True,
        "keeps words only. '&' becomes 'and'; apostrophes in words and dots in acronyms go "
        "without a trace.",
        "Punctuation differs more than what it stands in. A value of symbols alone ('+') is kept.",
        (
            ("AT&T, Inc.", "at and t inc"),
            ("O'Neil", "oneil"),
            ("N.A.S.A.", "nasa"),
            ("Paris (France)", "paris france"),
            ("C++", "c++"),
        ),
    ),
    NamedRule(
        "initials",
        True,
        "joins initials with dots, whether or not there are spaces between them. It is part of "
        "dropping punctuation.",
        "Tables differ in the spaces. Letters without dots stay apart, since they may be a list.",
        (
            ("J. K. Rowling", "jk rowling"),
            ("J.K. Rowling", "jk rowling"),
            ("Washington, D. C.", "washington dc"),
            ("J, H", "j h"),
        ),
    ),
    NamedRule(
        "date-words",
        True,
        "writes out abbreviated months and weekdays beside a number.",
        "Beside a number they are hardly anything else.",
        (("early Mar 1953", "early march 1953"), ("Mar del Plata", "mar del plata")),
    ),
    NamedRule(
        "addresses",
        True,
        "writes out abbreviations of addresses where their neighbours make clear what they stand "
        "for.",
        "'St' is a street behind a name and a saint before one.",
        (
            ("120 N Main St., Apt 4", "120 north main street apartment 4"),
            ("St. Petersburg", "saint petersburg"),
            ("Mt. Everest", "mount everest"),
            ("6 ft tall", "6 ft tall"),
        ),
    ),
    NamedRule(
        "ordinals",
        True,
        "writes the words first to twentieth with digits.",
        "Each word has one number, so nothing different becomes the same. Behind a number "
        "'second' is a time and stays.",
        (("Fifth Avenue", "5th avenue"), ("30 second clip", "30 second clip")),
    ),
    NamedRule(
        "units",
        True,
        "writes units of measurement behind a number by their symbol.",
        "A word has one symbol; symbols stay as they are, since some have several meanings.",
        (
            ("5 kilometres", "5 km"),
            ("5 kilometers", "5 km"),
            ("6 feet tall", "6 ft tall"),
            ("Miles Davis", "miles davis"),
        ),
    ),
    NamedRule(
        "companies",
        True,
        "writes forms of companies at the end in one way.",
        "They are the same words in full and in short.",
        (
            ("Oshkosh Corporation", "oshkosh corp"),
            ("Acme Limited", "acme ltd"),
            ("Limited", "limited"),
        ),
    ),
    NamedRule(
        "company-forms",
        False,
        "removes forms of companies at the end.",
        "It makes 'Monsters, Inc.' the same as 'Monsters'.",
        (("Apple Inc.", "apple"), ("Siemens AG", "siemens"), ("Acme Co., Ltd.", "acme")),
    ),
    NamedRule(
        "territories",
        True,
        "writes countries, territories and states under one English name each, where they are "
        "the whole value; codes, and names in 45 other languages, only in a column that is made "
        "of them.",
        "Tables name them by short and official names, by the World Bank's spellings, in their "
        "own language and by codes. What is left of other values is as it was.",
        (
            ("U.S.A.", "united states"),
            ("Korea, Rep.", "south korea"),
            ("Ivory Coast", "cote divoire"),
            ("Bank of Georgia", "bank of georgia"),
        ),
    ),
    NamedRule(
        "articles",
        False,
        "removes 'the' at the start.",
        "It makes 'The Who' the same as 'Who'.",
        (("The Boston Globe", "boston globe"), ("The The", "the")),
    ),
)
"""All rules, in the order in which they are applied."""

ALL_RULES: tuple[str, ...] = tuple(rule.name for rule in RULES)
"""Their names."""

DEFAULT_RULES: tuple[str, ...] = tuple(rule.name for rule in RULES if rule.is_default)
"""The names of those that are on by default."""


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of rules in the order in which the rules are applied, each once.

    Examples
    --------
    >>> in_order(["dates", "case"])
    ('case', 'dates')
    """
    if isinstance(names, str | Mapping) or not isinstance(names, Iterable):
        raise InputError(f"rules must be a list of names of rules. Got {names!r}.")
    requested = list(names)
    for name in requested:
        require_rule(name)
    return tuple(name for name in ALL_RULES if name in requested)


def require_rule(name: object) -> None:
    """Refuse what is no name of a rule."""
    if not isinstance(name, str) or name not in ALL_RULES:
        near = get_close_matches(name, ALL_RULES, 1) if isinstance(name, str) else []
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise InputError(f"There is no rule {name!r}{meant}. The rules are {', '.join(ALL_RULES)}.")
