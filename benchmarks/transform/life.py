"""The part ``life``: rules that are learned from few rows and applied to later ones.

Each rule is drawn, learned from a few rows, saved, and applied to other rows of the same kind. A
later row is joined with its own key, with another's, or left alone. The last is allowed; the one
before is what a saved rule must never do.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pexeso.errors import InputError
from pexeso.transform.joins.learned import learn_transformation

SIZES = (3, 5, 10, 30, 300)
"""Rows that a rule is learned from."""

SEEDS, N_RULES, N_LATER = (0, 3), 60, 10_000

_SYLLABLES = [first + last for first in "bdfgklmnprstvz" for last in "aeiou"]
_ACCENTED = "áéíóúäöüàèçñ"
_MONTHS = (
    "January February March April May June July August September October November December",
    "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
)
_CODES = (
    "Germany DE France FR Spain ES Japan JP Brazil BR Canada CA Kenya KE Norway NO Poland PL",
    "Alabama AL Alaska AK Arizona AZ California CA Colorado CO Florida FL Georgia GA Idaho ID",
)
_DAY_FORMS = ("%Y%m%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%Y-%m-%d")
_SIGNS = (",", ".", " ", "'")
_FACTORS = (1000, 100, 60)

Row = dict[str, str]
Things = Callable[[random.Random], Iterator[dict[str, Any]]]
"""Yields what rows and keys are written of: people, days, digits or quarters."""

Forms = tuple[Things, Row, str]
"""Things, and the forms (`str.format`) of the cells of a source row and of its key."""


def _word(drawn: random.Random, n_syllables: int) -> str:
    return "".join(drawn.choices(_SYLLABLES, k=n_syllables)).capitalize()


def _people(drawn: random.Random) -> Iterator[dict[str, Any]]:
    while True:
        letters = "".join(drawn.choices("ABCDEFGHJKLMNPQRSTUVWXYZ", k=3))
        first, last = _word(drawn, drawn.choice((2, 3))), _word(drawn, drawn.choice((2, 3, 4)))
        city, digits = _word(drawn, 3), str(drawn.randrange(10_000, 99_999))
        end, number = drawn.choice("XYZ"), drawn.randrange(1, 10 ** drawn.choice((3, 4, 5, 6, 7)))
        person = {"first": first, "last": last, "name": f"{first} {last}", "city": city}
        person |= {f"small_{name}": text.lower() for name, text in person.items()}
        person |= {"letters": letters, "digits": digits, "end": end}
        person |= {"number": number, "capitals": person["name"].upper()}
        person["grouped"] = [f"{number:,}".replace(",", sign) for sign in _SIGNS]
        person["times"] = [number * factor for factor in _FACTORS]
        for kind, listed in enumerate(map(str.split, _CODES)):
            at = 2 * (int(digits) % (len(listed) // 2))
            person[f"names_{kind}"] = listed[at : at + 2]
        yield person


def _days(drawn: random.Random) -> Iterator[dict[str, Any]]:
    """Yield days one after the other, or at random."""
    day = date(1990, 1, 1) + timedelta(drawn.randrange(12_000))
    in_order = drawn.random() < 0.5
    while True:
        months = [listed.split()[day.month - 1] for listed in _MONTHS]
        yield {"day": day, "d": day.day, "y": day.year, "months": months}
        if in_order:
            day += timedelta(1)
        else:
            day = date(1970, 1, 1) + timedelta(drawn.randrange(20_000))


def _quarters(drawn: random.Random) -> Iterator[dict[str, Any]]:
    while True:
        year, quarter = drawn.randrange(1990, 2030), drawn.randrange(1, 5)
        yield {"y": year, "q": quarter, "c": _word(drawn, drawn.choice((1, 2)))}


def _digits(drawn: random.Random) -> Iterator[dict[str, Any]]:
    """Yield digits with and without their check digits."""
    while True:
        digits = "".join(drawn.choices("0123456789", k=18))
        isbns = _isbn_10(digits[:9]), _ean("978" + digits[:9])
        yield {
            "ean": (digits[:12], _ean(digits[:12])),
            "isbn": isbns,
            "isbn_back": isbns[::-1],
            "luhn": (digits[:15], _luhn(digits[:15])),
            "iban": (digits, f"DE{98 - int(digits + '131400') % 97:02}{digits}"),
        }


def _weighted(digits: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weights[at % len(weights)] for at, digit in enumerate(digits))


def _ean(digits: str) -> str:
    return digits + str(-_weighted(digits, (1, 3)) % 10)


def _isbn_10(digits: str) -> str:
    return digits + "0123456789X"[_weighted(digits, range(1, 10)) % 11]


def _luhn(digits: str) -> str:
    doubled = [int(digit) * (2 - at % 2) for at, digit in enumerate(reversed(digits))]
    return digits + str(-sum(number // 10 + number % 10 for number in doubled) % 10)


def _accents(drawn: random.Random) -> Forms:
    shift, in_small = drawn.randrange(12), drawn.random() < 0.5

    def names(drawn: random.Random) -> Iterator[dict[str, Any]]:
        for person in _people(drawn):
            letters = list(person["name"])
            for at in range(1, len(letters), 3):
                if letters[at] in "aeiou":
                    letters[at] = _ACCENTED[(at + shift + ord(letters[at])) % len(_ACCENTED)]
            text = unicodedata.normalize("NFD", "".join(letters))
            text = "".join(letter for letter in text if not unicodedata.combining(letter))
            plain = text.lower().replace(" ", "-") if in_small else text
            yield {"accented": "".join(letters), "plain": plain}

    return names, {"text": "{accented}"}, "{plain}"


def _concatenation(drawn: random.Random) -> Forms:
    names = drawn.sample(["first", "last", "city", "code"], drawn.choice((2, 3)))
    row = {name: _CODE if name == "code" else f"{{{name}}}" for name in names}
    return _people, row, drawn.choice((" ", ", ", "-", "/", "_")).join(row.values())


def _split(drawn: random.Random) -> Forms:
    sign = drawn.choice((", ", "-", "/", "|"))
    order = drawn.sample(["{first}", "{last}", _CODE], 3)
    return _people, {"text": sign.join(order)}, " ".join(drawn.sample(order, 2))


def _numbered_days(drawn: random.Random) -> Forms:
    one, other = drawn.sample(_DAY_FORMS, 2)
    return _days, {"text": f"{{day:{one}}}"}, f"{{day:{other}}}"


def _forms(
    things: Things, source: str, key: str, /, *, either_way: bool = False, **choices: Sequence[str]
) -> Callable[[random.Random], Forms]:
    """Return what draws one of each of some choices, for which ``<its name>`` stands in forms."""

    def draw(drawn: random.Random) -> Forms:
        chosen = {f"<{name}>": drawn.choice(some) for name, some in choices.items()}
        forms = [source, key]
        while any("<" in form for form in forms):
            for place, choice in chosen.items():
                forms = [form.replace(place, choice) for form in forms]
        one, other = forms if not either_way or drawn.random() < 0.5 else reversed(forms)
        return things, {"text": one}, other

    return draw


_CODE = "{letters}{digits}{end}"
_HOST = "{small_last}{small_city}.com"
_PAGE = _HOST + "/{small_first}/page.html"
_MAIL = "{small_last}<host>"
_CHECKED = "ean", "isbn", "isbn_back", "luhn", "iban"
_QUARTERS = "{c} Q{q}/{y}", "{y}.{q}.{c}", "{q}/{y} {c}"
_NAMED_DAYS = {
    "month": tuple(f"{{months[{at}]}}" for at in range(len(_MONTHS))),
    "named": ("{d} <month> {y}", "{d:02}-<month>-{y}", "<month> {d}, {y}", "{d}. <month> {y}"),
}

KINDS: dict[str, Callable[[random.Random], Forms]] = {
    "concatenation": _concatenation,
    "split": _split,
    "substring": _forms(
        _people,
        _CODE,
        "<piece>",
        piece=("{letters}{digits}", "{digits}{end}", "{letters[1]}{letters[2]}{digits}{end}"),
    ),
    "case": _forms(_people, "{name}", "<cased>", cased=("{capitals}", "{small_name}")),
    "days": _numbered_days,
    "days from names": _forms(
        _days, "<named>", "{day:<form>}", form=("%Y-%m-%d", "%d/%m/%Y", "%Y%m%d"), **_NAMED_DAYS
    ),
    "days to names": _forms(_days, "{day:%Y-%m-%d}", "<named>", **_NAMED_DAYS),
    "mails": _forms(
        _people,
        "{name}",
        "<mail>",
        mail=("{small_first[0]}" + _MAIL, "{small_first[0]}." + _MAIL, "{small_first}." + _MAIL),
        host=("@school.example.org", "@a.us"),
    ),
    "codes": _forms(
        _people, _CODE, "<start>{digits}<sign>{letters}{end}", sign="-/", start=("", "K", "no ")
    ),
    "zeros": _forms(
        _people,
        "{number}",
        "<start>{number:0<width>}",
        either_way=True,
        width="89",
        start=("", "", "N-"),
    ),
    "thousands": _forms(_people, "{number}", "{grouped[<sign>]}", either_way=True, sign="0123"),
    "accents": _accents,
    "initials": _forms(
        _people,
        "{name}",
        "<key>",
        key=("{first[0]}. {last}", "{last}, {first[0]}.", "{last} {first[0]}"),
    ),
    "addresses": _forms(
        _people,
        f"https://<www>{_PAGE}?id={_CODE}",
        "<key>",
        www=("", "www."),
        key=(_HOST, _PAGE, _CODE),
    ),
    "units": _forms(_people, "{number}", "{times[<factor>]}", either_way=True, factor="012"),
    "check digits": _forms(_digits, "{<kind>[0]}", "{<kind>[1]}", kind=_CHECKED),
    "lookups": _forms(
        _people,
        "{names_<kind>[1]}-{number}",
        "{names_<kind>[0]} {number}",
        either_way=True,
        kind="01",
    ),
    "quarters": _forms(_quarters, "{y}Q{q}-{c}", "<key>", key=_QUARTERS),
}


def drawn_pairs(number: int, seed: int = 0) -> Iterator[tuple[Row, str]]:
    """Yield pairs of a source row and its key by a drawn rule, without end; no row or key twice."""
    draw = list(KINDS.values())[number % len(KINDS)]
    things, forms, form = draw(random.Random(f"rule {seed} {number}"))
    known: set[Any] = set()
    for thing in things(random.Random(f"rows {seed} {number}")):
        row = {name: cell.format(**thing) for name, cell in forms.items()}
        cells, key = tuple(row.values()), form.format(**thing)
        if known.isdisjoint((cells, key)):
            known |= {cells, key}
            yield row, key


def lived(
    number: int, size: int, *, n_later: int = N_LATER, seed: int = 0, fuzzy: bool = False
) -> dict[str, Any]:
    """Learn a rule from the first rows, and apply it to those that follow."""
    pairs = _first_pairs(number, seed, max(SIZES) + n_later)
    first, later = pairs[:size], pairs[size : size + n_later]
    kind = list(KINDS)[number % len(KINDS)]
    result: dict[str, Any] = {"rule": number, "kind": kind, "rows": size, "later": len(later)}
    joined = learn_transformation(*_tables(first, seed), seed=seed, fuzzy=fuzzy)
    example = {"example": [*first[0][0].values(), first[0][1]], "program": joined.program}
    if joined.program is None:
        return {**result, **example, "wrong": 0, "alone": len(later), "why": joined.tried}
    with TemporaryDirectory(prefix="pexeso-transform-") as folder:
        path = Path(folder) / "rule.json"
        joined.save(path)
        try:
            applied = learn_transformation(*_tables(later, seed), program=path, fuzzy=fuzzy)
        except InputError as error:
            return {**result, **example, "wrong": 0, "alone": len(later), "why": str(error)}
    own = {tuple(row.values()): key for row, key in later}
    table = applied.table(how="inner", many_to_many=True, many_to_one=True)
    columns = [table.column(name).to_pylist() for name in (*first[0][0], "key")]
    wrong = [[*cells, key] for *cells, key in zip(*columns, strict=True) if own[(*cells,)] != key]
    counts = {"wrong": len(wrong), "alone": len(later) - table.num_rows}
    return {**result, **example, **counts, "sample": wrong[:1]}


@lru_cache(maxsize=1)
def _first_pairs(number: int, seed: int, n: int) -> list[tuple[Row, str]]:
    return list(islice(drawn_pairs(number, seed), n))


def _tables(pairs: Sequence[tuple[Row, str]], seed: int) -> tuple[dict, dict]:
    source = {name: [row[name] for row, _ in pairs] for name in pairs[0][0]}
    return source, {"key": [key for _, key in random.Random(seed).sample(pairs, len(pairs))]}


def measured_life(*, seeds: Sequence[int] = SEEDS, n_later: int = N_LATER) -> dict[str, Any]:
    """Learn and apply all rules that are drawn with some seeds, from all numbers of rows."""
    rows = [
        {"seed": seed, **lived(number, size, n_later=n_later, seed=seed)}
        for seed in seeds
        for number in range(N_RULES)
        for size in SIZES
    ]
    shares = [_shares(rows, size, seed) for seed in seeds for size in SIZES]
    return {"sizes": shares, "rules": rows}


def _shares(rows: Sequence[dict[str, Any]], size: int, seed: int) -> dict[str, Any]:
    some = [row for row in rows if (row["rows"], row["seed"]) == (size, seed)]
    n_later = sum(row["later"] for row in some)
    return {
        "seed": seed,
        "rows": size,
        "rules": len(some),
        "learned": sum(row["program"] is not None for row in some),
        "wrong": sum(row["wrong"] for row in some) / n_later,
        "alone": sum(row["alone"] for row in some) / n_later,
    }
