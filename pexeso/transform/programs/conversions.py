"""Conversions of a piece of a cell: the same thing written otherwise, by arithmetic or by a list.

A conversion has a name, such as ``pad 5`` or ``German months to numbers``, by which programs hold
it and files store it. Each writes the same text in Python, DuckDB and Spark, or nothing.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from pexeso.errors import InputError
from pexeso.lake.normalise import package_data


def lower(text: str) -> str:
    """Return a text in small letters, each made small by itself.

    >>> lower("ΟΔΟΣ İstanbul")
    'οδοσ istanbul'
    """
    if text.isascii():
        return text.lower()
    # Two letters that languages and databases make small in different ways.
    text = text.replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i")
    text = text.replace("\N{GREEK CAPITAL LETTER SIGMA}", "\N{GREEK SMALL LETTER SIGMA}")
    return text.lower()


def strip_zeros(text: str) -> str | None:
    return text.lstrip("0") or text[-1:]


def initials(text: str) -> str | None:
    return "".join(word[:1] for word in text.split(" "))


def group(text: str, sign: str) -> str | None:
    if not re.fullmatch("[0-9]+", text):
        return None
    return re.sub("(?<=[0-9])(?=([0-9]{3})+$)", sign, text)


def with_ean(text: str) -> str | None:
    if not re.fullmatch("[0-9]{7,17}", text):
        return None
    total = sum(int(digit) * (3 - 2 * (at % 2)) for at, digit in enumerate(reversed(text)))
    return text + str(-total % 10)


def with_luhn(text: str) -> str | None:
    if not re.fullmatch("[0-9]{7,30}", text):
        return None
    doubled = [int(digit) * (2 - at % 2) for at, digit in enumerate(reversed(text))]
    return text + str(-sum(number // 10 + number % 10 for number in doubled) % 10)


def isbn_13(text: str) -> str | None:
    text = text.replace("-", "").replace(" ", "")
    return with_ean("978" + text[:9]) if re.fullmatch("[0-9]{9}[0-9Xx]", text) else None


def isbn_10(text: str) -> str | None:
    text = text.replace("-", "").replace(" ", "")
    if not re.fullmatch("978[0-9]{10}", text):
        return None
    total = sum(int(digit) * at for at, digit in enumerate(text[3:12], 1))
    return text[3:12] + "0123456789X"[total % 11]


def iban(text: str, country: str) -> str | None:
    if not re.fullmatch("[0-9]{8,30}", text):
        return None
    number = "".join(str(int(letter, 36)) for letter in country)
    return f"{country}{98 - int(f'{text}{number}00') % 97:02}{text}"


def times(text: str, factor: str, decimals: int | None) -> str | None:
    if not re.fullmatch("[0-9]{1,12}([.][0-9]{1,6})?", text):
        return None
    product = Decimal(text) * Decimal(factor)
    if decimals is not None:
        return f"{product.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):f}"
    return re.sub("[.]?0+$", "", f"{product:.12f}")


def over(text: str, divisor: int) -> str | None:
    if not re.fullmatch("[0-9]{1,15}", text) or int(text) % divisor:
        return None
    return str(int(text) // divisor)


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion does, and how it is said: ``{}`` stands for the text in all of these."""

    of: Callable[[str], str | None]
    words: str
    python: str
    duckdb: str
    spark: str
    helpers: tuple[Callable[..., Any], ...] = ()
    imports: tuple[str, ...] = ()

    def fill(self, template: str, text: str) -> str:
        return template.replace("{}", "{0}").format(text)


GROUP_SIGNS = (",", ".", " ", "'", "\N{RIGHT SINGLE QUOTATION MARK}", "\N{NARROW NO-BREAK SPACE}")

# Units by which numbers are multiplied or divided, and parts of them.
FACTORS = (1000, 100, 10, 60, 3600, 24, 7, 12, 1024)
FRACTIONS = ("0.001", "0.01", "0.1")
MEASURES = ("2.54", "1.609344", "0.45359237", "0.3048", "28.349523")
UNITS = (
    *(f"times {factor}" for factor in (*FACTORS, *FRACTIONS, *MEASURES)),
    *(f"over {factor}" for factor in FACTORS),
)

MAX_WIDTH = 99  # Of a number with zeros in front


@cache
def conversion(name: str) -> Conversion:
    """Return a conversion by its name; InputError where there is none."""
    for pattern, make in _MAKERS:
        match = re.fullmatch(pattern, name)
        if match:
            return make(*match.groups())
    kind, _, form = name.partition(" to ")
    if (kind, form) in lists():
        return _of_list(kind, form, lists()[kind, form])
    raise InputError(f"there is no conversion {name[:50]!a}; learn the program again")


def _pad(width: str) -> Conversion:
    sql = f"repeat('0', greatest({width} - length({{}}), 0)) || {{}}"
    return Conversion(
        lambda text: text.rjust(int(width), "0"),
        f"{{}} with zeros in front up to {width} characters",
        f"{{}}.rjust({width}, '0')",
        f"({sql})",
        f"({sql})",
    )


def _strip() -> Conversion:
    sql = "coalesce(nullif(regexp_replace({}, '^0+', ''), ''), right({}, 1))"
    return Conversion(
        strip_zeros, "{} without zeros in front", "strip_zeros({})", sql, sql, (strip_zeros,)
    )


def _initials() -> Conversion:
    return Conversion(
        initials,
        "the initials of {}",
        "initials({})",
        "array_to_string(list_transform(string_split({}, ' '), lambda word: word[1]), '')",
        "array_join(transform(split({}, ' '), word -> left(word, 1)), '')",
        (initials,),
    )


@cache
def accented_letters() -> tuple[str, str]:
    """Return Latin letters with accents, and the letters that they are without them."""
    pairs = {}
    for point in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)):
        base, *marks = unicodedata.normalize("NFD", chr(point))
        if marks and base.isascii() and base.isalpha():
            pairs[chr(point)] = base
    pairs |= dict(zip("ØøŁłĐđĦħ", "OoLlDdHh", strict=True))
    return "".join(pairs), "".join(pairs.values())


def _unaccented() -> Conversion:
    accented, plain = accented_letters()
    table = str.maketrans(accented, plain)
    sql = f"translate({{}}, '{accented}', '{plain}')"
    return Conversion(
        lambda text: text.translate(table),
        "{} without accents",
        f"{{}}.translate(str.maketrans({accented!r}, {plain!r}))",
        sql,
        sql,
    )


def quoted(text: str) -> str:
    r"""Return a text in double quotes, with an escape for each character that cannot be seen.

    >>> print(quoted('say "no\u202f"'))
    "say \"no\u202f\""
    """
    return '"' + "".join(map(_shown, text)) + '"'


def _shown(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def _group(sign: str) -> Conversion:
    literal = "'" + sign.replace("'", "''") + "'"
    # Spark ends a text at a doubled quote.
    spark_literal = '"' + sign + '"'
    return Conversion(
        lambda text: group(text, sign),
        f"{{}} with {quoted(sign)} between thousands",
        f"group({{}}, {sign!r})",
        "CASE WHEN regexp_full_match({}, '[0-9]+') THEN regexp_replace(reverse(regexp_replace("
        rf"reverse({{}}), '([0-9]{{{{3}}}})', '\1' || {literal}, 'g')), '^[^0-9]', '') END",
        "CASE WHEN {} RLIKE '^[0-9]+\\\\z' THEN regexp_replace({}, "
        f"'(?<=[0-9])(?=([0-9]{{{{3}}}})+$)', {spark_literal}) END",
        (group,),
        ("import re",),
    )


def _when(pattern: str, duckdb: str, spark: str, text: str = "{}") -> tuple[str, str]:
    braced = pattern.replace("{", "{{").replace("}", "}}")
    return (
        f"CASE WHEN regexp_full_match({text}, '{braced}') THEN {duckdb} END",
        f"CASE WHEN {text} RLIKE '^({braced})\\\\z' THEN {spark} END",
    )


_EAN = "d * CASE WHEN i % 2 = 1 THEN 3 ELSE 1 END"
_LUHN = "CASE WHEN i % 2 = 1 THEN d * 2 - CASE WHEN d > 4 THEN 9 ELSE 0 END ELSE d END"


# What is written before a check digit, whose digits it sums up, how, and what the sum becomes.
_BARE = "replace(replace({}, '-', ''), ' ', '')"
_TENTH = "CAST((10 - {sum} % 10) % 10 AS STRING)"
_ELEVENTH = "substring('0123456789X', CAST({sum} % 11 AS INT) + 1, 1)"
_CHECK_DIGITS: dict[str, tuple[Callable[[str], str | None], str, str, str, str, str]] = {
    "with EAN digit": (with_ean, "{}", "[0-9]{7,17}", "{}", _EAN, _TENTH),
    "with Luhn digit": (with_luhn, "{}", "[0-9]{7,30}", "{}", _LUHN, _TENTH),
    "to ISBN-13": (
        isbn_13,
        _BARE,
        "[0-9]{9}[0-9Xx]",
        f"'978' || substring({_BARE}, 1, 9)",
        _EAN,
        _TENTH,
    ),
    "to ISBN-10": (
        isbn_10,
        _BARE,
        "978[0-9]{10}",
        f"substring({_BARE}, 4, 9)",
        "d * (10 - i)",
        _ELEVENTH,
    ),
}


def _check_digit(name: str) -> Conversion:
    of, text, pattern, before, weighted, digit = _CHECK_DIGITS[name]
    sums = _sum(f"reverse({before})", weighted)
    sql = [f"{before} || {digit.replace('{sum}', one)}" for one in sums]
    return Conversion(
        of,
        f"{{}} {name}",
        f"{of.__name__}({{}})",
        *_when(pattern, *sql, text=text),
        (with_ean, of) if of is isbn_13 else (of,),
        ("import re",),
    )


def _sum(text: str, weighted: str) -> tuple[str, str]:
    """Return the sum over the digits of a text, weighted by their number, in both dialects."""
    number = "TRY_CAST(c AS INT)"
    duckdb = re.sub(r"\bd\b", number, weighted)
    spark = re.sub(r"\bi\b", "(i + 1)", duckdb)
    return (
        f"list_sum(list_transform(string_split({text}, ''), lambda c, i: {duckdb}))",
        f"aggregate(transform(split({text}, ''), (c, i) -> coalesce({spark}, 0)), 0, "
        "(a, b) -> a + b)",
    )


def _iban(country: str) -> Conversion:
    number = "".join(str(int(letter, 36)) for letter in country) + "00"
    duckdb, spark = (
        f"'{country}' || lpad(CAST(98 - CAST(CAST({{}} || '{number}' AS {kind}) % 97 AS INT) "
        "AS STRING), 2, '0') || {}"
        for kind in ("HUGEINT", "DECIMAL(38, 0)")
    )
    duckdb, spark = (sql.replace("CAST({}", "TRY_CAST({}") for sql in (duckdb, spark))
    return Conversion(
        lambda text: iban(text, country),
        f"{{}} as IBAN of {country}",
        f"iban({{}}, {country!r})",
        *_when("[0-9]{8,30}", duckdb, spark),
        (iban,),
        ("import re",),
    )


def _times(factor: str, decimals: str | None) -> Conversion:
    n = None if decimals is None else int(decimals)
    product = f"TRY_CAST({{}} AS DECIMAL(20, 6)) * CAST('{factor}' AS DECIMAL(16, 8))"
    if n is None:
        sql = f"regexp_replace(CAST({product} AS STRING), '[.]?0+$', '')"
    else:
        sql = f"CAST(round({product}, {n}) AS STRING)"
    rounded = "" if n is None else f", rounded to {n} decimals"
    return Conversion(
        lambda text: times(text, factor, n),
        f"{{}} times {factor}{rounded}",
        f"times({{}}, {factor!r}, {n!r})",
        *_when("[0-9]{1,12}([.][0-9]{1,6})?", sql, sql),
        (times,),
        ("import re", "from decimal import ROUND_HALF_UP, Decimal"),
    )


def _over(divisor: str) -> Conversion:
    number = "TRY_CAST({} AS BIGINT)"
    duckdb, spark = (
        f"CASE WHEN {number} % {divisor} = 0 THEN CAST({number} {div} {divisor} AS STRING) END"
        for div in ("//", "div")
    )
    return Conversion(
        lambda text: over(text, int(divisor)),
        f"{{}} divided by {divisor}",
        f"over({{}}, {divisor})",
        *_when("[0-9]{1,15}", duckdb, spark),
        (over,),
        ("import re",),
    )


# Two letters that Spark makes small in another way: see `lower`.
_CAPITALS = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}\N{GREEK CAPITAL LETTER SIGMA}"
_SMALL = "i\N{GREEK SMALL LETTER SIGMA}"


def _of_list(kind: str, form: str, entries: Mapping[str, str]) -> Conversion:
    duckdb, spark = (
        " ".join(
            f"WHEN {_literal(text, quote)} THEN {_literal(new, quote)}"
            for text, new in entries.items()
        )
        for quote in ("''", "\\'")
    )
    return Conversion(
        lambda text: entries.get(lower(text)),
        f"{{}} from {kind} to {form}",
        f"{dict(entries)!r}".replace("{", "{{").replace("}", "}}") + ".get(lower({}))",
        f"CASE lower({{}}) {duckdb} END",
        f"CASE lower(translate({{}}, '{_CAPITALS}', '{_SMALL}')) {spark} END",
        (lower,),
    )


def _literal(text: str, quote: str) -> str:
    return "'" + text.replace("'", quote).replace("{", "{{").replace("}", "}}") + "'"


_FACTOR = r"[0-9]{1,6}(?:\.[0-9]{1,8})?"
_MAKERS: tuple[tuple[str, Callable[..., Conversion]], ...] = (
    (r"pad ([1-9][0-9]?)", _pad),
    ("strip zeros", _strip),
    ("initials", _initials),
    ("unaccented", _unaccented),
    (f"group ([{re.escape(''.join(GROUP_SIGNS))}])", _group),
    (f"({'|'.join(_CHECK_DIGITS)})", _check_digit),
    ("IBAN ([A-Z]{2})", _iban),
    (f"times ({_FACTOR})(?: to ([0-6]))?", _times),
    (r"over ([1-9][0-9]{0,6})", _over),
)


_FORMER_CODES = ("BUR", "DDR", "FXX", "TMP", "YMD", "ZAR")


@cache
def lists() -> dict[tuple[str, str], dict[str, str]]:
    """Return what is written for each small text, by the kinds of both (CLDR, ISO 4217)."""
    own = json.loads(files(__package__).joinpath("lists.json").read_text("utf-8"))
    territories = package_data("territories.json")
    numbers = [str(number) for number in range(1, 13)]
    by_number = [*zip(numbers, numbers, strict=True), *((f"{int(n):02}", n) for n in numbers)]
    made: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for form in ("months", "short_months"):
        for language, names in own[form].items():
            noun = f"{language} months"
            pairs = list(zip(names.split(), numbers, strict=True))
            made.setdefault((noun, "numbers"), []).extend(pairs)
            made.setdefault((noun, "two-digit numbers"), []).extend(
                (name, f"{int(number):02}") for name, number in pairs
            )
            named = dict(zip(numbers, names.split(), strict=True))
            label = noun if form == "months" else f"short {noun}"
            made["numbers", label] = [(text, named[number]) for text, number in by_number]
    countries = territories["english"]
    three = {
        two: code for code, two in territories["three_letters"].items() if code not in _FORMER_CODES
    }
    other_names = [(name, two) for two, names in territories["also"].items() for name in names]
    named_codes = [*((name, two) for two, name in countries.items()), *other_names]
    for nouns, names in (
        ("countries", named_codes),
        (
            "states",
            [(name, code) for code, name in territories["states"].items() if len(code) == 2],
        ),
        (
            "currencies",
            [
                (name, code)
                for form in ("currencies", "iso_4217")
                for code, name in own[form].items()
            ],
        ),
    ):
        made[nouns, "codes"] = names
        made["codes", nouns] = [(code, name) for name, code in reversed(names)]
    made["countries", "three-letter codes"] = [
        (name, three[two]) for name, two in named_codes if two in three
    ]
    made["three-letter codes", "countries"] = [
        (code, countries[two]) for two, code in three.items() if two in countries
    ]
    made["codes", "three-letter codes"] = list(three.items())
    made["three-letter codes", "codes"] = [(code, two) for two, code in three.items()]
    return {key: {lower(text): new for text, new in pairs} for key, pairs in made.items()}


@cache
def list_order() -> dict[str, int]:
    """Return the place of each conversion by a list, those of the usual languages first."""
    return {f"{kind} to {form}": place for place, (kind, form) in enumerate(lists())}


@cache
def listed_kinds() -> dict[str, frozenset[str]]:
    """Return the names of the conversions by lists that know each small text."""
    kinds: dict[str, set[str]] = {}
    for (kind, form), entries in lists().items():
        for text in entries:
            kinds.setdefault(text, set()).add(f"{kind} to {form}")
    return {text: frozenset(names) for text, names in kinds.items()}
