"""The rules of the normaliser by name.

Each rule has a description, whether it is on by default, and examples that are tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from pexeso.errors import InputError
from pexeso.runtime.checks import require_choice


@dataclass(frozen=True)
class NamedRule:
    """One rule of the normaliser: a form that values get, what tells values apart, or a reading.

    The examples are values and their forms, or two values that the rule keeps apart. Readings are
    for searches by equal values alone: see `pexeso.lake.readings`.
    """

    name: str
    does: str
    reason: str
    examples: tuple[tuple[str, str], ...]
    is_default: bool = True
    tells_apart: bool = False
    is_reading: bool = False


# All rules, in the order in which they are applied.
RULES: tuple[NamedRule, ...] = (
    NamedRule(
        "entities",
        "writes the characters that entities of HTML stand for.",
        "They are left over from a page, and mean nothing else.",
        (("Caf&eacute;", "cafe"), ("Ben&nbsp;Hur", "ben hur"), ("AT&amp;T", "at and t")),
    ),
    NamedRule(
        "accents",
        "removes the accents of Latin and Greek letters and writes ø as o, ß as ss and the like. "
        "Unicode's form NFKC is always applied.",
        "Tables differ in whether they keep accents.",
        (("São Paulo", "sao paulo"), ("Łódź", "lodz")),
    ),
    NamedRule(
        "case",
        "writes lower case throughout.",
        "Tables differ in how they capitalise.",
        (("NEW York", "new york"),),
    ),
    NamedRule(
        "chinese",
        "writes traditional Chinese characters as simplified ones.",
        "Each has one simplified form, and texts are written in either.",
        (("中國銀行", "中国银行"), ("臺灣", "taiwan")),
    ),
    NamedRule(
        "divisions",
        "writes the kind of an administrative division at the end of a name in Chinese characters "
        "as a word of its own.",
        "Tables have the name with it and without it.",
        (("上海市", "上海 市"), ("東京都", "东京 都"), ("京都", "京都")),
    ),
    NamedRule(
        "hosts",
        "removes http://, www. and a slash at the end from a web address.",
        "They do not tell addresses apart.",
        (("https://www.example.com/", "example com"), ("www.example.com/a", "example com a")),
    ),
    NamedRule(
        "footnotes",
        "removes marks of footnotes in square brackets; behind names of countries and states also "
        "numbers and letters in brackets, and raised numbers.",
        "They belong to the page that a table was taken from, not to the value.",
        (
            ("Berlin[3]", "berlin"),
            ("Germany (1)", "germany"),
            ("Terminal (1)", "terminal 1"),
            ("Star of Lake Tai [citation needed]", "star of lake tai"),
            ("[3]", "3"),
        ),
    ),
    NamedRule(
        "opponents",
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
        is_default=False,
    ),
    NamedRule(
        "ranks",
        "removes a rank or seed at the start that is marked as one, before a word.",
        "A marked number describes the table, not the value. A number without a mark may be part "
        "of a name, and stays.",
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
        "removes a number of a list at the start: '1.', '2)', 'No. 3'.",
        "It makes '2. Liga' and '3. Liga' equal.",
        (("1. Maryland", "maryland"), ("No. 5 UConn", "uconn")),
        is_default=False,
    ),
    NamedRule(
        "counts",
        "removes a number of one to three digits in parentheses at the end.",
        "It makes 'Meridian (1)' and 'Meridian (2)' equal.",
        (("Arsenal (3)", "arsenal"), ("Halloween (2018)", "halloween 2018")),
        is_default=False,
    ),
    NamedRule(
        "qualifiers",
        "removes text in parentheses at the end.",
        "It makes 'Springfield (MA)' and 'Springfield (IL)' equal.",
        (("Springfield (MA)", "springfield"), ("Paris (France)", "paris")),
        is_default=False,
    ),
    NamedRule(
        "inverted-names",
        "moves the part after the only comma to the front, if both parts are one to three words "
        "without digits.",
        "It cannot distinguish people from places. Models that ignore word order do not need it.",
        (
            ("Curie, Marie", "marie curie"),
            ("Billings, Jr.", "billings jr"),
            ("Paris, France", "france paris"),
        ),
        is_default=False,
    ),
    NamedRule(
        "dates",
        "writes dates as day, English name of the month and year, followed by the time of day, in "
        "UTC; also months of a year and days of a month. Names of months are read in 34 languages.",
        "Dates have many notations. A value with any other word is not a date. The whole column "
        "decides which number of 3/5/1953 is the month.",
        (
            ("2020-03-05", "5 march 2020"),
            ("Mar 5th, 1953", "5 march 1953"),
            ("05.03.53", "5 march 1953"),
            ("2020-03", "march 2020"),
            ("2020M03", "march 2020"),
            ("2020年3月", "march 2020"),
            ("3-1-0", "3 1 0"),
        ),
    ),
    NamedRule(
        "times",
        "writes a time of day with a.m. or p.m. by the 24-hour clock.",
        "Both notations are common. A time without a.m. or p.m. may be a duration, and stays.",
        (("2:30 p.m.", "14 30"), ("12 AM", "00 00"), ("2:30", "2 30")),
    ),
    NamedRule(
        "periods",
        "writes quarters, halves, fiscal years, decades, ranges of years and years with 'c.' in "
        "one form.",
        "Each has a few unambiguous notations. A number after a year ends a range if it is "
        "larger, or 00, unless the column is one of months.",
        (
            ("2020-Q1", "q1 2020"),
            ("1Q20", "q1 2020"),
            ("First quarter of 2020", "q1 2020"),
            ("FY 2019/20", "fiscal year 2019 2020"),
            ("1990's", "1990s"),
            ("1990\u201395", "1990 1995"),
            ("1999/00", "1999 2000"),
            ("c. 1850", "circa 1850"),
        ),
    ),
    NamedRule(
        "states",
        "expands codes and abbreviations of US states after the last comma, at the end or before a "
        "zip code.",
        "Different values stay different, even if the code means something else.",
        (
            ("Austin, TX", "austin texas"),
            ("Austin, TX 78701", "austin texas 78701"),
            ("Portland, Ore.", "portland oregon"),
            ("Kessler, M.D.", "kessler md"),
            ("701 Maryland Avenue, N.E.", "701 maryland avenue northeast"),
        ),
    ),
    NamedRule(
        "punctuation",
        "keeps only words. '&' becomes 'and'; apostrophes in words and dots in acronyms are "
        "removed.",
        "Punctuation varies more than words. A value that consists of symbols ('+') is kept.",
        (
            ("AT&T, Inc.", "at and t inc"),
            ("O'Neil", "oneil"),
            ("N.A.S.A.", "nasa"),
            ("Paris (France)", "paris france"),
            ("C++", "c++"),
            ("24 (-4)", "24 -4"),
            ("(+)-limonene", "+ limonene"),
            ("Coke™", "coke"),
        ),
    ),
    NamedRule(
        "initials",
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
        "expands abbreviated months and weekdays next to a number.",
        "Next to a number they rarely mean anything else.",
        (("early Mar 1953", "early march 1953"), ("Mar del Plata", "mar del plata")),
    ),
    NamedRule(
        "addresses",
        "expands abbreviations of addresses and institutions if the neighbouring words make the "
        "meaning clear.",
        "'St' is a street after a name and a saint before one.",
        (
            ("120 N Main St., Apt 4", "120 north main street apartment 4"),
            ("St. Petersburg", "saint petersburg"),
            ("Mt. Everest", "mount everest"),
            ("Lincoln Elem. Sch.", "lincoln elementary school"),
            ("6 ft tall", "6 ft tall"),
        ),
    ),
    NamedRule(
        "ordinals",
        "writes the words first to twentieth with digits.",
        "Each word has one number, so different values stay different. After a number, 'second' "
        "is a time and stays. An ordinal that ends a name behind 'the' is a plain number.",
        (
            ("Fifth Avenue", "5th avenue"),
            ("30 second clip", "30 second clip"),
            ("Henry the Eighth", "henry the 8"),
        ),
    ),
    NamedRule(
        "numerals",
        "writes Roman numerals of two letters or more, behind a word, with digits; single letters "
        "behind words such as 'chapter' alone.",
        "Each numeral has one number. Other single letters stay: they are initials as often.",
        (
            ("Rocky II", "rocky 2"),
            ("Henry VIII", "henry 8"),
            ("Article V", "article 5"),
            ("Type I error", "type 1 error"),
            ("IV fluids", "iv fluids"),
        ),
    ),
    NamedRule(
        "units",
        "writes units of measurement after a number as their symbol, with a space before it and a "
        "decimal point, areas and volumes as sqm and cum, and percentages, bounds, ranges and "
        "currencies with a sign.",
        "A word has one symbol. Symbols stay, since some have several meanings.",
        (
            ("500g", "500 g"),
            ("0,5 L", "0.5 l"),
            ("5 kilometres", "5 km"),
            ("120 m²", "120 sqm"),
            ("60 miles per hour", "60 mph"),
            ("5 per cent", "5"),
            ("65 years and over", "65+ years"),
            ("5 to 9 years", "5 9 years"),
            ("1000 USD", "1000 $"),
            ("Miles Davis", "miles davis"),
        ),
    ),
    NamedRule(
        "companies",
        "writes company forms at the end in one form, and removes those of East Asia, which stand "
        "before or behind a name without a space.",
        "The full and the short form mean the same.",
        (
            ("株式会社日立製作所", "日立制作所"),
            ("Infosys Pvt. Ltd.", "infosys private ltd"),
            ("Oshkosh Corporation", "oshkosh corp"),
            ("Limited", "limited"),
        ),
    ),
    NamedRule(
        "company-forms",
        "removes company forms at the end.",
        "It makes 'Monsters, Inc.' and 'Monsters' equal.",
        (("Apple Inc.", "apple"), ("Siemens AG", "siemens"), ("Acme Co., Ltd.", "acme")),
        is_default=False,
    ),
    NamedRule(
        "territories",
        "writes a country, territory or state that is the whole value by one English name. Codes, "
        "and short names in 45 other languages, count only in a column that consists of them, as "
        "do names and abbreviations of months, days of the week and quarters.",
        "Tables use short and official names, the World Bank's spellings, other languages and "
        "codes. Other values stay as they are.",
        (
            ("U.S.A.", "united states"),
            ("Korea, Rep.", "south korea"),
            ("Ivory Coast", "cote divoire"),
            ("Kingdom of Norway", "norway"),
            ("Deutschland", "germany"),
            ("Calif.", "california"),
            ("Bank of Georgia", "bank of georgia"),
        ),
    ),
    NamedRule(
        "articles",
        "removes 'the' at the start.",
        "It makes 'The Who' and 'Who' equal.",
        (("The Boston Globe", "boston globe"), ("The The", "the")),
        is_default=False,
    ),
    NamedRule(
        "different-numbers",
        "keeps values apart of which each has a number, or a letter that stands alone or behind a "
        "number, that the other lacks, or has less often in few words, or one a small number at "
        "the end, values whose numbers stand in another order, and other codes and words of two "
        "to four letters.",
        "Names that differ in a number name different things, however few letters that changes.",
        (
            ("Terminal 1", "Terminal 2"),
            ("2.5", "25"),
            ("Rocky II", "Rocky III"),
            ("Windows 10", "Windows"),
            ("2-1", "1-2"),
            ("Gate B", "Gate C"),
            ("12a High Street", "12b High Street"),
            ("AAPL", "AAPB"),
        ),
        tells_apart=True,
    ),
    NamedRule(
        "different-signs",
        "keeps values apart that have other signs: <, >, a minus before a number, and + or - "
        "behind a grade or in brackets.",
        "These signs change what a value means.",
        (("<5", ">5"), ("AA-", "AA"), ("C++", "C")),
        tells_apart=True,
    ),
    NamedRule(
        "opposites",
        "keeps values apart of which each has a word of one group that the other lacks, such as "
        "directions, months, units, currencies and given names, in several languages; or of which "
        "one alone has non, un-, deputy or women, or starts or ends with a direction or the like.",
        "A thing can be one of a group only.",
        (
            ("Northern Region", "Southern Region"),
            ("Smoker", "Non-smoker"),
            ("$5", "€5"),
            ("Savoie", "Haute-Savoie"),
        ),
        tells_apart=True,
    ),
    NamedRule(
        "different-places",
        "keeps values apart that are, or end with, the names of different countries, territories "
        "or states, or of one with a word such as a direction and one without.",
        "Names of different places are often alike.",
        (
            ("North Korea", "South Korea"),
            ("Springfield, IL", "Springfield, MO"),
            ("Northern Cyprus", "Cyprus"),
        ),
        tells_apart=True,
    ),
    NamedRule(
        "repeated-words",
        "keeps a value that says a word, or all its words, twice apart from one that does not, and "
        "values apart that say nothing but one word, or one letter, and not as often.",
        "The words are the same, and the names are not.",
        (("Baden-Baden", "Baden"), ("AAA", "AA")),
        tells_apart=True,
    ),
    NamedRule(
        "unmatched-words",
        "prefers, of several values that match, one that has a word more to one of which a word "
        "is like none of the other's, and the other way round.",
        "A name that has a word more is often the same name; two names of which each has a word of "
        "its own are seldom.",
        (("Columbia Memorial Hospital", "Columbus Memorial Hospital"),),
        tells_apart=True,
    ),
    NamedRule(
        "invisible-letters",
        "removes letters without width, such as zero-width spaces and soft hyphens, and writes "
        "spaces of any kind as spaces, dashes that join and minus signs as hyphens, and digits of "
        "any script as 0 to 9.",
        "They are ways of typing.",
        (("a\u200b1", "a1"), ("a\u00a01", "a 1"), ("1\u20112", "1-2"), ("1\u20132", "1-2")),
        is_reading=True,
    ),
    NamedRule(
        "spreadsheet-marks",
        "removes what keeps a spreadsheet from changing digits: an apostrophe before them, or "
        '="...".',
        "The marks are of the spreadsheet, not of the value.",
        (("'00501", "00501"), ('="00501"', "00501"), ("'90s", "'90s")),
        is_reading=True,
    ),
    NamedRule(
        "whole-numbers",
        "writes a whole number without its point.",
        "Programs write 2020.0 where a column has gaps.",
        (("2020.0", "2020"), ("1.10", "1.10")),
        is_reading=True,
    ),
    NamedRule(
        "thousands",
        "writes numbers with a decimal point, a currency in front, a minus for brackets, and no "
        "separators of thousands: commas, spaces, apostrophes, and points where the column "
        "shows that the comma is the decimal mark.",
        "Spreadsheets show numbers so.",
        (
            ("1,234", "1234"),
            ("1.234.567,5", "1234567.5"),
            ("1.234", "1.234"),
            ("1,23", "1.23"),
            ("(5 €)", "-€5"),
        ),
        is_reading=True,
    ),
    NamedRule(
        "identifiers",
        "writes UUIDs and ISBNs in one form, and telephone numbers without signs.",
        "Each has a form by which it is known.",
        (
            ("{550E8400-E29B-41D4-A716-446655440000}", "550e8400-e29b-41d4-a716-446655440000"),
            ("978-0-306-40615-7", "9780306406157"),
            ("+44 (0)20 7946-0018", "+442079460018"),
            ("978-0-306-40615-8", "978-0-306-40615-8"),
        ),
        is_reading=True,
    ),
    NamedRule(
        "truth-words",
        "writes true and false in small letters.",
        "Programs differ in this alone.",
        (("TRUE", "true"),),
        is_reading=True,
    ),
    NamedRule(
        "iso-dates",
        "writes dates, times of day and months of a year as ISO 8601 has them, in UTC where there "
        "is a time zone, and quarters, weeks, fiscal years and spans of years in one form. The "
        "column decides which number of 3/5/1953 is the month, and whether Jan-24 and 2009-10 are "
        "months.",
        "Dates have many notations. Where all times with a zone are midnight they are days.",
        (
            ("05-JAN-24", "2024-01-05"),
            ("20240105", "2024-01-05"),
            ("2024M01", "2024-01"),
            ("février 2020", "2020-02"),
            ("2024-01-05T14:00:00+01:00", "2024-01-05 13:00:00"),
            ("2:30 PM", "14:30"),
            ("2024Q1", "q1 2024"),
            ("2023/24", "2023-2024"),
            ("2-1", "2-1"),
        ),
        is_reading=True,
    ),
    NamedRule(
        "letter-case",
        "writes small letters throughout. Composite keys are always compared so.",
        "ab and AB may be two codes.",
        (("AB12", "ab12"),),
        is_default=False,
        is_reading=True,
    ),
    NamedRule(
        "leading-zeros",
        "removes zeros in front of a whole number.",
        "007 and 7 may be two ids.",
        (("01001", "1001"), ("0", "0"), ("0.5", "0.5")),
        is_default=False,
        is_reading=True,
    ),
    NamedRule(
        "decimal-zeros",
        "removes zeros at the end of a decimal fraction.",
        "1.1 and 1.10 may be two versions.",
        (("1.50", "1.5"), ("100", "100")),
        is_default=False,
        is_reading=True,
    ),
    NamedRule(
        "truth-numbers",
        "writes 1, yes, y and t as true, and 0, no, n and f as false, in a column of nothing else.",
        "1 is mostly a number, and no is Norway.",
        (("1", "true"), ("No", "false")),
        is_default=False,
        is_reading=True,
    ),
    NamedRule(
        "separators",
        "removes spaces, hyphens, dots, slashes and underscores from codes with digits.",
        "1-12 and 11-2 may be two codes.",
        (("DE89 3704", "DE893704"), ("123-45-6789", "123456789"), ("1.5", "1.5")),
        is_default=False,
        is_reading=True,
    ),
    NamedRule(
        "calling-codes",
        "removes the calling code of a country, or the zero in its place, from telephone numbers.",
        "Numbers of two countries may differ in it alone.",
        (("+44 20 7946 0018", "2079460018"), ("020 7946 0018", "2079460018")),
        is_default=False,
        is_reading=True,
    ),
)

# Their names.
ALL_RULES: tuple[str, ...] = tuple(rule.name for rule in RULES)

# The names of those that tell values apart.
DISTINCTIONS: tuple[str, ...] = tuple(rule.name for rule in RULES if rule.tells_apart)

# The names of those by which cells are read where values are compared for equality.
READINGS: tuple[str, ...] = tuple(rule.name for rule in RULES if rule.is_reading)

# The names of those that are on by default.
DEFAULT_RULES: tuple[str, ...] = tuple(rule.name for rule in RULES if rule.is_default)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of rules in the order in which the rules are applied, each once."""
    if isinstance(names, str | Mapping) or not isinstance(names, Iterable):
        raise InputError(f"rules must be a list of names of rules. Got {names!r}.")
    requested = list(names)
    for name in requested:
        require_rule(name)
    return tuple(name for name in ALL_RULES if name in requested)


def require_rule(name: object) -> None:
    if not isinstance(name, str) or name not in ALL_RULES:
        near = get_close_matches(name, ALL_RULES, 1) if isinstance(name, str) else []
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise InputError(f"There is no rule {name!r}{meant}. The rules are {', '.join(ALL_RULES)}.")


def require_reading(what: str, rule: object) -> None:
    """Refuse what is no rule of READINGS, with the way to those that only an index applies."""
    if rule in ALL_RULES and rule not in READINGS:
        raise InputError(
            f"{what} must be one of {', '.join(READINGS)}. Got {rule!r}, which an index applies "
            f"when it is built: pexeso index LAKE INDEX --rule {rule}; then use that INDEX."
        )
    require_choice(what, rule, READINGS)
