"""Conversions: what they make, what they refuse, and that rules of them are found."""

from __future__ import annotations

import datetime
import random

import pytest

import pexeso
from pexeso.errors import InputError
from pexeso.transform.programs.conversions import conversion, lists


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pad 5", "77", "00077"),
        ("pad 2", "777", "777"),
        ("strip zeros", "0070", "70"),
        ("strip zeros", "000", "0"),
        ("initials", "Ada King Lovelace", "AKL"),
        ("unaccented", "Zoë Łukasz Ñandú ß", "Zoe Lukasz Nandu ß"),
        ("group ,", "1234567", "1,234,567"),
        ("group '", "123", "123"),
        ("group ,", "-1234", None),
        ("with EAN digit", "400638133393", "4006381333931"),
        ("with Luhn digit", "7992739871", "79927398713"),
        ("to ISBN-13", "0-306-40615-2", "9780306406157"),
        ("to ISBN-10", "978-3-16-148410-0", "316148410X"),
        ("to ISBN-10", "9791034304998", None),
        ("IBAN DE", "370400440532013000", "DE89370400440532013000"),
        ("IBAN BE", "539007547034", "BE68539007547034"),
        ("times 1000", "1.5", "1500"),
        ("times 0.001", "1500", "1.5"),
        ("times 2.54 to 1", "1", "2.5"),
        ("times 1000", "1,5", None),
        ("over 60", "120", "2"),
        ("over 60", "121", None),
        ("English months to numbers", "MAR", "3"),
        ("German months to two-digit numbers", "März", "03"),
        ("numbers to French months", "08", "août"),
        ("countries to codes", "germany", "DE"),
        ("countries to three-letter codes", "Germany", "DEU"),
        ("codes to states", "TX", "Texas"),
        ("codes to currencies", "SEK", "Swedish Krona"),
        ("codes to currencies", "GBP", "British Pound"),
        ("currencies to codes", "British pound", "GBP"),
        ("currencies to codes", "Pound Sterling", "GBP"),
    ],
)
def test_a_text_is_converted(name, text, expected):
    assert conversion(name).of(text) == expected


@pytest.mark.parametrize(
    "name", ["", "pad 0", "pad 100", "group a", "times 1e9", "over 0", "IBAN D1", "countries to x"]
)
def test_what_is_no_conversion_is_refused(name):
    with pytest.raises(InputError, match="there is no conversion"):
        conversion(name)


def test_lists_go_back_and_forth():
    for (kind, form), entries in lists().items():
        back = lists().get((form, kind))
        if back is not None and kind in ("codes", "three-letter codes"):
            assert {text: back[new.lower()].lower() for text, new in entries.items()} == {
                text: text for text in entries
            }
        if form == "numbers":
            assert sorted(set(entries.values()), key=int) == [str(n) for n in range(1, 13)]


def numbers(seed):
    drawn = random.Random(seed)
    return [str(drawn.randrange(10 ** drawn.choice((3, 4, 6)))) for _ in range(40)]


DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(7 * week) for week in range(40)]
ENGLISH = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # noqa: SIM905  shorter
LEARNED = {
    "zeros": [(number, number.rjust(8, "0")) for number in numbers(1)],
    "zeros behind a letter": [(number, f"N{number.rjust(8, '0')}") for number in numbers(2)],
    "thousands": [(number, f"{int(number):,}") for number in numbers(3)],
    "metres": [(number, f"{number}000") for number in numbers(4) if number != "0"],
    "minutes": [(str(60 * int(number)), number) for number in numbers(5)],
    "percent": [(f"{n / 8:g}", f"{12.5 * n:g} %") for n in range(1, 40)],
    "names of months": [(f"{ENGLISH[d.month - 1]} {d.day}, {d.year}", d.isoformat()) for d in DAYS],
    "months": [(f"{ENGLISH[m]}-24", f"2024-{m + 1:02}") for m in range(12)],
    "countries": [("Germany", "DEU"), ("France", "FRA"), ("Spain", "ESP"), ("Chile", "CHL"),
                  ("Kenya", "KEN"), ("Japan", "JPN")],
    "countries and numbers": [
        (f"{name} {number}", f"{code}-{number}")
        for number in range(1000, 1020)
        for name, code in (("Norway", "NO"), ("Austria", "AT"))
    ],
    "ISBN": [("0-306-40615-2", "9780306406157"), ("3-16-148410-0", "9783161484100"),
             ("0-19-852663-6", "9780198526636"), ("1-86197-876-6", "9781861978769"),
             ("0-14-032872-8", "9780140328721")],
}  # fmt: skip


@pytest.mark.parametrize("kind", LEARNED)
@pytest.mark.parametrize("back", [False, True], ids=["forth", "back"])
def test_a_rule_is_found(kind, back):
    pairs = [pair[::-1] for pair in LEARNED[kind]] if back else LEARNED[kind]
    wanted = dict(pairs)
    keys = random.Random(6).sample([*wanted.values()], len(wanted))
    joined = pexeso.learn_transformation({"a": [*wanted]}, {"b": keys}, fuzzy=False)
    assert {left: right for left, right, _ in joined.pairs} == wanted
