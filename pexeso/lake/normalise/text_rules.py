"""Rules on folded texts, before dates and words: marks, times of day, periods, states.

Marks are what a page puts around a value: footnotes, ranks, opponents, list numbers, and text in
parentheses. Quarters, spans of years and decades have one form each.

A rule takes texts without nulls and white space around them, of any case, and gives as many; a text
of which nothing would be left stays as it is. A cheap test, mostly for one character, comes before
each pattern: nearly all values of a lake hold no mark.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.normalise import package_data
from pexeso.lake.normalise.abbreviations import packaged
from pexeso.lake.normalise.characters import (
    DIGITS,
    Bytes,
    as_mask,
    byte_table,
    only_where,
    where_matching,
)
from pexeso.lake.normalise.territories import plain_names

# Any letter, and all else beyond ASCII: Unicode's classes would take milliseconds to prepare, for
# every table.
_LETTER = r"[A-Za-z\x{80}-\x{10FFFF}]"
_FOOTNOTE = r"(?i)\s*\[(?:\d{1,3}|[a-z]{1,2}|(?:note|nb|fn|n)\s?\d{1,3}|citation needed)\]"
_OPPONENT = rf"(?i)^(?:(?:@\s*|(?:at|vs\.?|versus)\s+))+((?:[#(]|{_LETTER}{_LETTER}).*)$"
# Words behind which "at" is no mark of a schedule but part of a phrase or title.
_PHRASE = (
    r"(?i)^at\s+(?:and|the|an?|my|his|her|our|your|their|this|that|all|any|no|one|last|first|least|most|best|worst|large|home|work|school|sea|war|"
    r"rest|risk|once|will|issue|bat|play|night|noon|dawn|dusk|midnight|sunset|sunrise)\b"
)
# Initials that would be one of those words without their dots are kept apart.
_INITIALS = tuple(
    rf"(?i)^({one})\.\s?({other})\.\s*([^\s.]{{2}}.*)$" for one, other in ("at", "vs")
)
_RANK = rf"^(?:#\s?\d{{1,3}}|\(#?\d{{1,3}}\))\s+({_LETTER}[^#]*)$"
_NUMBERING = rf"(?i)^(?:\d{{1,4}}[.)]|no\.\s?\d{{1,4}})\s+({_LETTER}.*)$"
_COUNT = r"^(.*\S)\s*\(\d{1,3}\)$"
_QUALIFIER = r"^(.*\S)\s*\([^()]*\)$"
_NAME = r"(?:[^\s,\d]+\s+){0,2}[^\s,\d]+"
_INVERTED = rf"^({_NAME}),\s*({_NAME})$"
_SUFFIX = r"(?i),\s*(?:jr|sr|i{1,3}|iv|esq|phd|md|inc|ltd|llc|corp|co)\.?$"

# What a period is in bytes: the shortest "FY19", the longest "financial year 2019 \u2013 20"; what
# it is named by at the start, with a digit at the end; or how a year begins, with what comes behind
# its four digits.
_MIN_BYTES, _MAX_BYTES = 4, 30
_DASH, _APOSTROPHE = r"[-/\x{2013}]", r"['\x{2019}]"
_SIGNS = r"'\x{2019}-"
_YEAR = "(?:1[89]|20)[0-9]{2}"
_FISCAL = rf"(?:f\.?y\.?|(?:fiscal|financial) year)[ {_SIGNS}]?"
_ORDINALS = (("first", "1st"), ("second", "2nd"), ("third", "3rd"), ("fourth", "4th"))
_PARTS_OF_YEARS = tuple(
    (rf"(?:{'|'.join(ordinals)})[ -]{part}|{part}[ -]?{number}", f"{letter}{number}")
    for letter, part, count in (("q", r"(?:quarter|qtr\.?)", 4), ("h", "half", 2))
    for number, ordinals in enumerate(_ORDINALS[:count], start=1)
)
_PART_OF_YEAR = "|".join(part for part, _ in _PARTS_OF_YEARS)
_PERIOD_NAMES = (
    rf"(?:q[1-4]|h[12])[ ,/{_SIGNS}]{{0,2}}{_YEAR}|q[1-4][ {_SIGNS}][0-9]{{2}}|"
    rf"{_YEAR}[ ,/:-]{{0,2}}(?:q[1-4]|h[12])|[1-4]q[ ']?(?:{_YEAR}|[0-9]{{2}})|[12]h[ ']?{_YEAR}|"
    rf"{_FISCAL}{_YEAR}(?: ?{_DASH} ?(?:{_YEAR}|[0-9]{{2}}))?|"
    rf"{_FISCAL}[0-9]{{2}}(?: ?{_DASH} ?[0-9]{{2}})?|"
    rf"{_YEAR}[ -]?w[0-5]?[0-9]|(?:w|week) ?[0-5]?[0-9][ ,/-]{{1,2}}{_YEAR}|"
    rf"(?:{_PART_OF_YEAR}),?(?: of)? {_YEAR}|{_YEAR},? (?:{_PART_OF_YEAR})"
)
NAMED_PERIOD = rf"(?i)^(?:{_PERIOD_NAMES})$"
_PERIOD = (
    rf"(?i)^(?:[12][0-9]{{3}} ?{_DASH} ?[0-9][0-9]|[12][0-9][0-9]0{_APOSTROPHE}s|{_PERIOD_NAMES})$"
)
_SPAN = (
    rf"^(?P<kind>(?:fiscal year )?)(?P<start>[12][0-9]{{3}}) ?{_DASH} ?"
    r"(?:[12][0-9])?(?P<end>[0-9][0-9])$"
)
_FORMS = (
    *(
        (rf"(?i)^(?:([0-9]{{4}}),? )?(?:{part})(?:,?(?: of)? ([0-9]{{4}}))?$", rf"{short} \1\2")
        for part, short in _PARTS_OF_YEARS
    ),
    *(
        form
        for letter, numbers in (("q", "[1-4]"), ("h", "[12]"))
        for form in (
            (rf"(?i)^{letter}({numbers})[ ,/{_SIGNS}]*((?:[0-9]{{2}})+)$", rf"{letter}\1 \2"),
            (rf"(?i)^([0-9]{{4}})[ ,/:-]*{letter}({numbers})$", rf"{letter}\2 \1"),
            (rf"(?i)^({numbers}){letter}[ ']?((?:[0-9]{{2}})+)$", rf"{letter}\1 \2"),
        )
    ),
    (rf"(?i)^([0-9]{{4}}){_APOSTROPHE}(s)$", r"\1\2"),
    (rf"(?i)^{_FISCAL} *([0-9].*)$", r"fiscal year \1"),
    (r"(?i)^([0-9]{4})[ -]?w0?([0-9]+)$", r"week \2 \1"),
    (r"(?i)^(?:w|week) ?0?([0-9]+)[ ,/-]+([0-9]{4})$", r"week \1 \2"),
    (r"^([qh][1-4]|fiscal year) ([0-4][0-9])([^0-9].*)?$", r"\1 20\2\3"),
    (r"^([qh][1-4]|fiscal year) ([5-9][0-9])([^0-9].*)?$", r"\1 19\2\3"),
)
_SEPARATOR = "\x1e"
_ENTITY = r"(?i)&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,31}[0-9]{0,2});"
_WEB_ADDRESS = r"(?i)^(?:(?:https?|ftp)://(?:www\.)?|www\.)([^\s/.]+\.\S*?)/?$"
_STREET = r"(\pL{3})str\."  # German
_HAN = r"[\x{4E00}-\x{9FFF}]"
_DIVISION = rf"^({_HAN}{{2,}}?)(市|省|县|県|府|都|区|自治区|自治州|自治县|特别行政区)$"
# Behind a name: "(1)", "(a)", "1)", and what was a raised number.
_MARKED = r"^(.*?[^0-9\s])(?:\s*\((?:[0-9]{1,2}|[A-Za-z])\)|\s*[0-9]{1,2}\)|[0-9]{1,2})$"
_LENGTHS = ("km", "cm", "mm", "mi", "ft", "in", "yd", "m")
_MEASURE = r"(?i)[0-9][ -]?(?:sq|cu|[a-z]{1,2}\^?[23]\b|mi|k|m/|deg|\x{b0})"
_SPEEDS = (
    (r"(?i)([0-9]) ?(?:miles? per hour|mi/h|mph)\b", r"\1 mph"),
    (r"(?i)([0-9]) ?(?:kilomet(?:re|er)s? per hour|km/h|kph|kmph)\b", r"\1 kmh"),
    (r"(?i)([0-9]) ?(?:degrees?|deg\.?|\x{b0}) ?(c|f)(?:elsius|ahrenheit)?\b", r"\1 \2"),
)
_PERCENT = r"(?i)([0-9]) ?(?:percent|per cent|pct)\b\.?"
_TIME = r"(?i)^(?P<hour>0?[1-9]|1[0-2])(?P<minute>:[0-5][0-9])? ?(?P<half>[ap])\.? ?m\.?$"
_STATE = (
    r"(?i)^(?P<before>.*?(?P<word>[^\s,]*)),\s?(?P<code>[a-z][a-z])(?P<behind>(?: "
    r"[0-9]{5}(?:-[0-9]{4})?)?\)?)$"
)
_SHORT_STATE = (
    r"(?i)^(?P<before>.*,)\s?(?P<code>(?:[a-z]{2,6}|[nrsw]\. ?[a-z]{1,4})\.)"
    r"(?P<behind>(?: [0-9]{5}(?:-[0-9]{4})?)?\)?)$"
)
# Two letters by which states were known before they had codes; others are degrees and directions.
_TWO_LETTERS = (
    *("GA", "KY", "LA", "MD", "MO", "PA", "VA", "VT"),
    *("NH", "NJ", "NM", "NY", "NC", "ND", "RI", "SC", "SD"),
)


_MAX_TIME = len("12:30 a. m.")

# Bounds by words, and as they are written with signs.
_AMOUNT = r"[$\x{20ac}\xa3]? ?[0-9]"
_RANGE = rf"(?i)^({_AMOUNT}[0-9.,]*) to ({_AMOUNT}[0-9.,]*)( years?| yrs)?$"
_BOUND = (
    r"(?i)^(?:(?:less|fewer|more|greater) than|under|below|over|above)[ -][^a-z]|"
    rf"[0-9](?: years?| yrs)?,? (?:and|or) [a-z]+$|{_RANGE}"
)
_ENDS_OF_BOUNDS = [ord(one) << 8 | ord(other) for one, other in ("er", "ve", "re", "ow", "ss")]
_BOUNDS = (
    (_RANGE, r"\1-\2\3"),
    (rf"(?i)^(?:(?:less|fewer) than|under|below)[ -]({_AMOUNT})", r"<\1"),
    (rf"(?i)^(?:(?:more|greater) than|over|above)[ -]({_AMOUNT})", r">\1"),
    (r"(?i)([0-9])((?: years?| yrs)?),? (?:and|or) (?:over|older|above|more)$", r"\1+\2"),
    (
        r"(?i)^([$\x{20ac}\xa3]?[0-9][0-9.,]*(?: years?| yrs)?) (?:and|or) "
        r"(?:under|younger|below|less|fewer)$",
        "\u2264\\1",
    ),
)


def _table(members: bytes) -> np.ndarray:
    """Return a table of the bytes that are members, with the lower-case bit set."""
    return byte_table(bytes(member | 0x20 for member in members))


_STARTS_RANK, _STARTS_NUMBERING = _table(b"#("), _table(b"n" + DIGITS)
_STARTS_BOUND = _table(b"lfmguboa")


def _begins(texts: pa.StringArray, table: np.ndarray) -> pa.BooleanArray:
    return pa.array(table[Bytes(texts).at(0) | 0x20])


def _rewritten(
    texts: pa.StringArray,
    may: pa.BooleanArray,
    pattern: str,
    replacement: str,
    *,
    unless: str | None = None,
) -> pa.StringArray:
    """Replace the pattern in the texts that `may` selects.

    A text stays unchanged if `unless` matches it or if nothing would be left of it.
    """

    def rewrite(some: pa.StringArray) -> pa.StringArray:
        changed = pc.utf8_trim_whitespace(pc.replace_substring_regex(some, pattern, replacement))
        is_unchanged = pc.equal(changed, "")
        if unless is not None:
            is_unchanged = pc.or_(is_unchanged, pc.match_substring_regex(some, unless))
        return pc.if_else(is_unchanged, some, changed)

    return only_where(texts, may, rewrite)


def without_opponents(texts: pa.StringArray) -> pa.StringArray:
    """Remove "at", "@" and "vs" at the start."""
    text_bytes = Bytes(texts)
    first = text_bytes.at(0) | 0x20
    may_be_initials = pa.array(
        ((first == ord("a")) | (first == ord("v"))) & (text_bytes.at(1) == ord("."))
    )
    for pattern in _INITIALS:
        texts = _rewritten(texts, may_be_initials, pattern, r"\1 \2 \3")
    return _rewritten(texts, may_name_opponents(texts), _OPPONENT, r"\1", unless=_PHRASE)


def may_name_opponents(texts: pa.StringArray) -> pa.BooleanArray:
    """Return which texts begin with "@" or the word of an opponent, whatever follows."""
    text_bytes = Bytes(texts)
    first = text_bytes.at(0)
    may = first == ord("@")
    lower = first | 0x20
    positions = np.flatnonzero((lower == ord("a")) | (lower == ord("v")))
    if len(positions):
        for word in (b"at ", b"vs ", b"vs.", b"versus "):
            may[positions[text_bytes.start_with(positions, word)]] = True
    return pa.array(may)


_NAMES, _IS_BEHIND, _IS_LAST, _IS_YEAR, _IS_FIFTH = (
    _table(text) for text in (b"qfhstw", b"qhsnrt", b"0123456789", b"12", b"-/ ',:qhw\xe2")
)


def with_periods(texts: pa.StringArray, pattern: str = _PERIOD) -> pa.StringArray:
    """Write quarters, halves, weeks, fiscal years, decades and spans of years in one form.

    The pattern may be that of `NAMED_PERIOD` alone, without decades and spans.

    >>> texts = pa.array(["1990-95", "1999/00", "2020Q1", "1st half 2020", "1990's", "2020-03"])
    >>> with_periods(texts).to_pylist()
    ['1990 1995', '1999 2000', 'q1 2020', 'h1 2020', '1990s', '2020-03']
    """
    text_bytes = Bytes(texts)
    first, fifth, last = text_bytes.at(0) | 0x20, text_bytes.at(4) | 0x20, text_bytes.at(-1) | 0x20
    second = text_bytes.at(1) | 0x20
    may = (_NAMES[first] | _IS_BEHIND[second]) & _IS_LAST[last]
    may |= _IS_YEAR[first] & _IS_FIFTH[fifth]
    may &= (text_bytes.lengths >= _MIN_BYTES) & (text_bytes.lengths <= _MAX_BYTES)
    return where_matching(texts, pa.array(may), pattern, _one_form)


def end_of_span(start: np.ndarray, short: np.ndarray) -> np.ndarray:
    """Return the years in which spans end that have the last two digits of it.

    They run on into the next century only where they do so at once: "1999-00", not "1988-05".
    """
    turns = (start % 100 == 99) & (short == 0)
    return start - start % 100 + short + 100 * turns


def _one_form(texts: pa.StringArray) -> pa.StringArray:
    for pattern, replacement in _FORMS:
        texts = pc.replace_substring_regex(texts, pattern, replacement)
    spans = pc.extract_regex(texts, _SPAN)
    if spans.null_count == len(spans):
        return texts
    start, end = (
        pc.fill_null(pc.struct_field(spans, [position]), "0").cast(pa.int64()).to_numpy()
        for position in (1, 2)
    )
    whole = end_of_span(start, end)
    is_span = spans.is_valid().to_numpy(zero_copy_only=False) & (whole > start)
    years = (pa.array(side).cast(texts.type) for side in (start, whole))
    joined = pc.binary_join_element_wise(*years, pa.scalar(" ", texts.type))
    kind, nothing = pc.struct_field(spans, [0]), pa.scalar("", texts.type)
    joined = pc.binary_join_element_wise(kind, joined, nothing)
    return pc.if_else(pa.array(is_span), joined, texts)


def with_times(texts: pa.StringArray) -> pa.StringArray:
    """Write a time of day with a.m. or p.m. by the 24-hour clock."""

    def rewrite(some: pa.StringArray) -> pa.StringArray:
        matches = pc.extract_regex(some, _TIME)
        hour, minute, half = (matches.field(number) for number in range(3))
        hours = hour.cast(pa.int64()).to_numpy() % 12
        is_evening = as_mask(pc.match_substring(half, "p", ignore_case=True))
        clock = pc.utf8_lpad(pa.array(hours + 12 * is_evening).cast(some.type), 2, "0")
        minute = pc.if_else(pc.equal(minute, ""), pa.scalar(":00", some.type), minute)
        return pc.binary_join_element_wise(clock, minute, pa.scalar("", some.type))

    text_bytes = Bytes(texts)
    first, last = text_bytes.at(0), text_bytes.at(-1)
    may = ((last == ord(".")) | ((last | 0x20) == ord("m"))) & _IS_LAST[first]
    return where_matching(texts, pa.array(may & (text_bytes.lengths <= _MAX_TIME)), _TIME, rewrite)


def with_states(texts: pa.StringArray) -> pa.StringArray:
    """Write out the state code or abbreviation behind the last comma.

    It may be followed by a zip code, by a closing parenthesis or by nothing.

    Dots tell a degree from a state ("Kessler, M.D."), and a street before the comma a direction
    ("701 Maryland Avenue, NE").
    """
    texts = only_where(texts, pc.match_substring(texts, "."), _with_short_states)
    return only_where(texts, pa.array(_may_end_with_code(Bytes(texts))), _with_state_names)


@cache
def _short_states() -> dict[str, str]:
    """Return states by what they are abbreviated to, without dots and spaces."""
    states = package_data("territories.json")["states"].items()
    return {
        short.replace(" ", "").lower(): name.lower()
        for short, name in states
        if len(short) > 2 or short in _TWO_LETTERS
    }


def _with_short_states(texts: pa.StringArray) -> pa.StringArray:
    matches = pc.extract_regex(texts, _SHORT_STATE)
    before, code, behind = (pc.struct_field(matches, [position]) for position in range(3))
    plain = pc.ascii_lower(pc.replace_substring_regex(code, "[. ]", ""))
    states = _short_states()
    entry = pc.index_in(plain, pa.array(list(states)))
    name = pa.array(list(states.values())).take(entry)
    named = pc.binary_join_element_wise(before, pc.binary_join_element_wise(name, behind, ""), " ")
    return pc.if_else(entry.is_valid(), named, texts)


def _may_end_with_code(text_bytes: Bytes) -> np.ndarray:
    """Return which texts may end with a state code.

    These end with a comma and two bytes, optionally with a closing parenthesis, or with something
    like a zip code.
    """
    from_end = [text_bytes.at(-position) for position in range(1, 7)]
    comma, space = ord(","), ord(" ")
    at_end = (from_end[2] == comma) | ((from_end[2] == space) & (from_end[3] == comma))
    within = (from_end[0] == ord(")")) & (
        (from_end[3] == comma) | ((from_end[3] == space) & (from_end[4] == comma))
    )
    is_code = (from_end[0] >= ord("0")) & (from_end[0] <= ord("9"))
    return at_end | within | (is_code & ((from_end[5] == space) | (from_end[4] == ord("-"))))


def _with_state_names(texts: pa.StringArray) -> pa.StringArray:
    matches = pc.extract_regex(texts, _STATE)
    if matches.null_count == len(matches):
        return texts
    before, word, code, behind = (pc.struct_field(matches, [position]) for position in range(4))
    states = packaged()["states"]
    entry = pc.index_in(pc.ascii_lower(code), pa.array(list(states)))
    behind_street = pc.is_in(
        pc.utf8_rtrim(pc.ascii_lower(word), "."), pa.array(packaged()["street_words"])
    )
    is_state = pc.and_(entry.is_valid(), pc.invert(pc.fill_null(behind_street, False)))
    named = pc.binary_join_element_wise(before, pa.array(list(states.values())).take(entry), ", ")
    return pc.if_else(is_state, pc.binary_join_element_wise(named, behind, ""), texts)


def without_entities(texts: pa.StringArray) -> pa.StringArray:
    """Write the characters that entities of HTML stand for, even where they were encoded twice.

    >>> without_entities(pa.array(["AT&amp;T", "Caf&eacute;", "&#39;90", "a &b; c"])).to_pylist()
    ['AT&T', 'Café', "'90", 'a &b; c']
    """

    def write(some: pa.StringArray) -> pa.StringArray:
        return _as_one(some, lambda text: html.unescape(html.unescape(text)))

    return where_matching(texts, pc.match_substring(texts, "&"), _ENTITY, write)


def _as_one(texts: pa.StringArray, change: Callable[[str], str]) -> pa.StringArray:
    """Change texts in one call, put together by a separator that no entity stands for."""
    text = _SEPARATOR.join(pc.replace_substring(texts, _SEPARATOR, " ").to_pylist())
    return pa.array(change(text).split(_SEPARATOR), pa.string())


def with_hosts(texts: pa.StringArray) -> pa.StringArray:
    """Remove what surrounds the host and path of a web address."""
    may = pc.match_substring_regex(texts, _WEB_ADDRESS)
    return _rewritten(texts, may, _WEB_ADDRESS, r"\1")


@cache
def simplified() -> dict[int, int]:
    """Return the simplified character of each traditional one that has another.

    ``chinese.json`` holds them, as OpenCC (Apache-2.0) writes them one by one.
    """
    document = package_data("chinese.json")
    sides = ("".join(document[side]) for side in ("traditional", "simplified"))
    return {ord(one): ord(other) for one, other in zip(*sides, strict=True)}


def with_simplified_characters(texts: pa.StringArray) -> pa.StringArray:
    """Write traditional Chinese characters as simplified ones."""

    def write(some: pa.StringArray) -> pa.StringArray:
        return _as_one(some, lambda text: text.translate(simplified()))

    return where_matching(texts, pc.invert(pc.string_is_ascii(texts)), _HAN, write)


def with_divisions(texts: pa.StringArray) -> pa.StringArray:
    """Put a space before the kind of an administrative division in Chinese characters."""
    return only_where(
        texts,
        pc.invert(pc.string_is_ascii(texts)),
        lambda some: pc.replace_substring_regex(some, _DIVISION, r"\1 \2"),
    )


def without_footnotes(texts: pa.StringArray) -> pa.StringArray:
    """Remove marks in square brackets, and others behind names of countries and states."""
    texts = _rewritten(texts, pc.match_substring(texts, "["), _FOOTNOTE, "")
    last = Bytes(texts).at(-1)
    may = pa.array(_IS_LAST[last] | (last == ord(")")))

    def remove(some: pa.StringArray) -> pa.StringArray:
        name = pc.replace_substring_regex(some, _MARKED, r"\1")
        return pc.if_else(pc.is_in(pc.utf8_lower(name), plain_names()), name, some)

    return only_where(texts, may, remove)


@cache
def _measures() -> tuple[tuple[str, str], ...]:
    """Return patterns of areas, volumes, speeds and degrees behind a number, and their forms."""
    words: dict[str, list[str]] = {}
    for entry in packaged()["units"]:
        for word, symbol in entry["words"].items():
            words.setdefault(symbol, []).append(word)
    patterns = [
        (
            # A figure behind a space counts something else: "5 km 3.1 mi".
            rf"(?i)([0-9])[ -]?(?:{power}\.?[ -]?(?:{'|'.join([*words[symbol], symbol])})|"
            rf"{symbol}\^?{digit})\b",
            rf"\1 {power[:2]}{symbol}",
        )
        for power, digit in (("sq(?:uare)?", 2), ("cu(?:bic)?", 3))
        for symbol in _LENGTHS
    ]
    return (*patterns, *_SPEEDS)


def with_spaced_units(texts: pa.StringArray) -> pa.StringArray:
    """Put a space between a number and its unit, and a decimal point in the place of a comma.

    >>> texts = pa.array(["Sugar 500g", "0,5 L", "A10G", "5 percent", "5 km2", "5 square miles"])
    >>> with_spaced_units(texts).to_pylist()
    ['Sugar 500 g', '0.5 L', 'A10G', '5 %', '5 sqkm', '5 sqmi']
    """
    texts = _with_bounds(texts)
    units = "|".join(packaged()["glued_units"])
    number = r"(^|[^0-9A-Za-z.,])([0-9]+"
    may = pc.match_substring_regex(texts, _MEASURE)
    texts = only_where(texts, may, _with_measures)
    patterns = (
        (rf"(?i){number})[.,]([0-9]{{1,2}}) ?({units})\b", r"\1\2.\3 \4"),
        (rf"(?i){number}(?:[.,][0-9]+)*)({units})\b", r"\1\2 \3"),
        (_PERCENT, r"\1 %"),
    )
    for pattern, replacement in patterns:
        texts = pc.replace_substring_regex(texts, pattern, replacement)
    return texts


def _with_bounds(texts: pa.StringArray) -> pa.StringArray:
    text_bytes = Bytes(texts)
    last = text_bytes.at(-2).astype(np.uint16) << 8 | text_bytes.at(-1) | 0x2020
    may = _STARTS_BOUND[text_bytes.at(0) | 0x20] | np.isin(last, _ENDS_OF_BOUNDS)
    may |= as_mask(pc.match_substring(texts, " to "))

    def write(some: pa.StringArray) -> pa.StringArray:
        for pattern, replacement in _BOUNDS:
            some = pc.replace_substring_regex(some, pattern, replacement)
        return some

    return where_matching(texts, pa.array(may), _BOUND, write)


def _with_measures(texts: pa.StringArray) -> pa.StringArray:
    for pattern, replacement in _measures():
        texts = pc.replace_substring_regex(texts, pattern, replacement)
    return texts


def without_asian_company_forms(texts: pa.StringArray) -> pa.StringArray:
    """Remove the company forms of East Asia at the start and at the end.

    >>> without_asian_company_forms(pa.array(["株式会社日立", "주식회사 삼성"])).to_pylist()
    ['日立', '삼성']
    """

    def remove(some: pa.StringArray) -> pa.StringArray:
        for form in packaged()["asian_company_forms"]:
            plain = re.escape(form)
            may = pc.match_substring(some, form)
            some = _rewritten(some, may, rf"^{plain}\s*|\s*{plain}$", "")
        return some

    return only_where(texts, pc.invert(pc.string_is_ascii(texts)), remove)


def with_streets(texts: pa.StringArray) -> pa.StringArray:
    """Write out streets of German addresses: "Hauptstr. 5"."""
    return _rewritten(texts, pc.match_substring(texts, "str."), _STREET, r"\1strasse ")


ASIAN = bytes(range(0xE2, 0xF1))  # first bytes, in UTF-8

# The rules in the order in which they are applied, each with bytes of which a text that it changes
# holds one; None where any text may. No rule before it adds any.
TEXT_RULES: dict[str, tuple[bytes | None, Callable[[pa.StringArray], pa.StringArray]]] = {
    "chinese": (ASIAN, with_simplified_characters),
    "divisions": (ASIAN, with_divisions),
    "hosts": (b".", with_hosts),
    "footnotes": (b"[)" + DIGITS, without_footnotes),
    "opponents": (None, without_opponents),
    "ranks": (b"#(", lambda texts: _rewritten(texts, _begins(texts, _STARTS_RANK), _RANK, r"\1")),
    "numbering": (
        b".)",
        lambda texts: _rewritten(texts, _begins(texts, _STARTS_NUMBERING), _NUMBERING, r"\1"),
    ),
    "counts": (b")", lambda texts: _rewritten(texts, pc.ends_with(texts, ")"), _COUNT, r"\1")),
    "qualifiers": (
        b")",
        lambda texts: _rewritten(texts, pc.ends_with(texts, ")"), _QUALIFIER, r"\1"),
    ),
    "inverted-names": (
        b",",
        lambda texts: _rewritten(
            texts, pc.match_substring(texts, ","), _INVERTED, r"\2 \1", unless=_SUFFIX
        ),
    ),
    "times": (DIGITS, with_times),
    "periods": (DIGITS, with_periods),
    "states": (b",", with_states),
    "units": (DIGITS, with_spaced_units),
    "companies": (bytes(range(0x80, 0x100)), without_asian_company_forms),
    "addresses": (b".", with_streets),
}
