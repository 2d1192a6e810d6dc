"""The part ``life``: rules that are learned from few rows and applied to later ones.

Each rule is drawn, learned from a few rows, saved, and applied to other rows of the same kind. A
later row is joined with its own key, with another's, or left alone. The last is allowed; the one
before is what a saved rule must never do.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pexeso.errors import InputError
from pexeso.transform.joins.learned import learn_transformation

SIZES = (3, 5, 10, 30, 300)
"""Rows that a rule is learned from."""

N_RULES, N_LATER = 60, 10_000

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

Row = dict[str, str]


@dataclass(frozen=True)
class LifeRule:
    """A rule: its kind, and the pairs of a source row and its key that it makes, without end."""

    kind: str
    pairs: Callable[[], Iterator[tuple[Row, str]]]


def _word(drawn: random.Random, n_syllables: int) -> str:
    return "".join(drawn.choices(_SYLLABLES, k=n_syllables)).capitalize()


def _person(drawn: random.Random, number: int) -> Row:
    letters = "".join(drawn.choices("ABCDEFGHJKLMNPQRSTUVWXYZ", k=3))
    first, last = _word(drawn, drawn.choice((2, 3))), _word(drawn, drawn.choice((2, 3, 4)))
    return {
        "first": first,
        "last": last,
        "name": f"{first} {last}",
        "city": _word(drawn, 3),
        "code": f"{letters}{drawn.randrange(10_000, 99_999)}{drawn.choice('XYZ')}",
        "number": str(drawn.randrange(1, 10 ** drawn.choice((3, 4, 5, 6, 7)))),
        "id": f"{number + 1}",
    }


def _days(drawn: random.Random) -> Iterator[date]:
    """Yield days one after the other, or at random."""
    day = date(1990, 1, 1) + timedelta(drawn.randrange(12_000))
    in_order = drawn.random() < 0.5
    while True:
        yield day
        day = (
            day + timedelta(1)
            if in_order
            else date(1970, 1, 1) + timedelta(drawn.randrange(20_000))
        )


Make = Callable[[Row], str]


def _of_people(source: Make | Sequence[str], key: Make) -> Callable[..., Iterator]:
    def pairs(drawn: random.Random) -> Iterator[tuple[Row, str]]:
        number = 0
        while True:
            person = _person(drawn, number)
            number += 1
            row = (
                {"text": source(person)}
                if callable(source)
                else {name: person[name] for name in source}
            )
            yield row, key(person)

    return pairs


def _of_days(source: Callable[[date], str], key: Callable[[date], str]) -> Callable[..., Iterator]:
    def pairs(drawn: random.Random) -> Iterator[tuple[Row, str]]:
        for day in _days(drawn):
            yield {"text": source(day)}, key(day)

    return pairs


def _concatenation(drawn: random.Random) -> Any:
    columns = drawn.sample(["first", "last", "city", "code"], drawn.choice((2, 3)))
    sign = drawn.choice((" ", ", ", "-", "/", "_"))
    return _of_people(columns, lambda row: sign.join(row[name] for name in columns))


def _split(drawn: random.Random) -> Any:
    sign, order = drawn.choice((", ", "-", "/", "|")), drawn.sample(["first", "last", "code"], 3)
    parts = drawn.sample(order, 2)
    return _of_people(
        lambda row: sign.join(row[name] for name in order),
        lambda row: " ".join(row[name] for name in parts),
    )


def _substring(drawn: random.Random) -> Any:
    start, stop = drawn.choice(((0, 8), (3, 9), (1, 9)))
    return _of_people(["code"], lambda row: row["code"][start:stop])


def _case(drawn: random.Random) -> Any:
    change = drawn.choice((str.upper, str.lower))
    return _of_people(["name"], lambda row: change(row["name"]))


_DAY_FORMS = ("%Y%m%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%Y-%m-%d")


def _numbered_days(drawn: random.Random) -> Any:
    one, other = drawn.sample(_DAY_FORMS, 2)
    return _of_days(lambda day: day.strftime(one), lambda day: day.strftime(other))


def _named_day(drawn: random.Random) -> Callable[[date], str]:
    names = drawn.choice(_MONTHS).split()
    form = drawn.choice(("{d} {m} {y}", "{d:02}-{m}-{y}", "{m} {d}, {y}", "{d}. {m} {y}"))
    return lambda day: form.format(d=day.day, m=names[day.month - 1], y=day.year)


def _days_from_names(drawn: random.Random) -> Any:
    form = drawn.choice(("%Y-%m-%d", "%d/%m/%Y", "%Y%m%d"))
    return _of_days(_named_day(drawn), lambda day: day.strftime(form))


def _days_to_names(drawn: random.Random) -> Any:
    return _of_days(lambda day: day.strftime("%Y-%m-%d"), _named_day(drawn))


def _mails(drawn: random.Random) -> Any:
    length, sign = drawn.choice(((1, ""), (1, "."), (None, ".")))
    host = drawn.choice(("@school.example.org", "@a.us"))
    return _of_people(
        ["name"], lambda row: (row["first"][:length] + sign + row["last"]).lower() + host
    )


def _codes(drawn: random.Random) -> Any:
    sign, start = drawn.choice(("-", "/")), drawn.choice(("", "K", "no "))
    return _of_people(
        ["code"], lambda row: start + row["code"][3:8] + sign + row["code"][:3] + row["code"][8:]
    )


def _zeros(drawn: random.Random) -> Any:
    width, start = drawn.choice((8, 9)), drawn.choice(("", "", "N-"))
    if drawn.random() < 0.5:
        return _of_people(["number"], lambda row: f"{start}{row['number']:>0{width}}")
    return _of_people(lambda row: f"{start}{row['number']:>0{width}}", lambda row: row["number"])


def _thousands(drawn: random.Random) -> Any:
    sign = drawn.choice((",", ".", " ", "'"))

    def grouped(row: Row) -> str:
        return f"{int(row['number']):,}".replace(",", sign)

    if drawn.random() < 0.5:
        return _of_people(["number"], grouped)
    return _of_people(grouped, lambda row: row["number"])


def _accents(drawn: random.Random) -> Any:
    shift = drawn.randrange(12)

    def accented(row: Row) -> str:
        letters = list(row["name"])
        for at in range(1, len(letters), 3):
            if letters[at] in "aeiou":
                letters[at] = _ACCENTED[(at + shift + ord(letters[at])) % len(_ACCENTED)]
        return "".join(letters)

    def plain(row: Row) -> str:
        text = unicodedata.normalize("NFD", accented(row))
        text = "".join(letter for letter in text if not unicodedata.combining(letter))
        return text.lower().replace(" ", "-") if in_small else text

    in_small = drawn.random() < 0.5
    return _of_people(accented, plain)


def _initials(drawn: random.Random) -> Any:
    form = drawn.choice(("{f}. {l}", "{l}, {f}.", "{l} {f}"))
    return _of_people(["name"], lambda row: form.format(f=row["first"][0], l=row["last"]))


def _addresses(drawn: random.Random) -> Any:
    www = drawn.choice(("", "www."))
    kind = drawn.choice(("host", "path", "query"))

    def address(row: Row) -> str:
        host = f"{row['last']}{row['city']}.com".lower()
        return f"https://{www}{host}/{row['first'].lower()}/page.html?id={row['code']}"

    def key(row: Row) -> str:
        host, _, path = (
            address(row).removeprefix(f"https://{www}").partition("?id=")[0].partition("/")
        )
        return {"host": host, "path": f"{host}/{path}", "query": row["code"]}[kind]

    return _of_people(address, key)


def _units(drawn: random.Random) -> Any:
    factor = drawn.choice((1000, 100, 60))
    if drawn.random() < 0.5:
        return _of_people(["number"], lambda row: str(int(row["number"]) * factor))
    return _of_people(lambda row: str(int(row["number"]) * factor), lambda row: row["number"])


def _weighted(digits: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weights[at % len(weights)] for at, digit in enumerate(digits))


def _ean(digits: str) -> str:
    return digits + str(-_weighted(digits, (1, 3)) % 10)


def _isbn_10(digits: str) -> str:
    return digits + "0123456789X"[_weighted(digits, range(1, 10)) % 11]


def _luhn(digits: str) -> str:
    doubled = [int(digit) * (2 - at % 2) for at, digit in enumerate(reversed(digits))]
    return digits + str(-sum(number // 10 + number % 10 for number in doubled) % 10)


def _iban(digits: str) -> str:
    return f"DE{98 - int(digits + '131400') % 97:02}{digits}"


def _check_digits(drawn: random.Random) -> Any:
    kind = drawn.choice(("ean", "isbn", "isbn back", "luhn", "iban"))

    def pairs(drawn: random.Random) -> Iterator[tuple[Row, str]]:
        while True:
            digits = "".join(drawn.choices("0123456789", k=18))
            isbn = digits[:9]
            pair = {
                "ean": (digits[:12], _ean(digits[:12])),
                "isbn": (_isbn_10(isbn), _ean("978" + isbn)),
                "isbn back": (_ean("978" + isbn), _isbn_10(isbn)),
                "luhn": (digits[:15], _luhn(digits[:15])),
                "iban": (digits, _iban(digits)),
            }[kind]
            yield {"text": pair[0]}, pair[1]

    return pairs


def _lookups(drawn: random.Random) -> Any:
    words = drawn.choice(_CODES).split()
    codes, back = dict(zip(words[::2], words[1::2], strict=True)), drawn.random() < 0.5
    names = list(codes)

    def named(row: Row) -> str:
        return names[int(row["code"][3:8]) % len(names)]

    def long(row: Row) -> str:
        return f"{named(row)} {row['number']}"

    def short(row: Row) -> str:
        return f"{codes[named(row)]}-{row['number']}"

    return _of_people(short, long) if back else _of_people(long, short)


def _quarters(drawn: random.Random) -> Any:
    form = drawn.choice(("{c} Q{q}/{y}", "{y}.{q}.{c}", "{q}/{y} {c}"))

    def pairs(drawn: random.Random) -> Iterator[tuple[Row, str]]:
        while True:
            row = {"y": drawn.randrange(1990, 2030), "q": drawn.randrange(1, 5)}
            city = _word(drawn, drawn.choice((1, 2)))
            yield {"text": f"{row['y']}Q{row['q']}-{city}"}, form.format(c=city, **row)

    return pairs


KINDS = {
    "concatenation": _concatenation,
    "split": _split,
    "substring": _substring,
    "case": _case,
    "days": _numbered_days,
    "days from names": _days_from_names,
    "days to names": _days_to_names,
    "mails": _mails,
    "codes": _codes,
    "zeros": _zeros,
    "thousands": _thousands,
    "accents": _accents,
    "initials": _initials,
    "addresses": _addresses,
    "units": _units,
    "check digits": _check_digits,
    "lookups": _lookups,
    "quarters": _quarters,
}


def drawn_rule(number: int, seed: int = 0) -> LifeRule:
    kind = list(KINDS)[number % len(KINDS)]
    drawn = random.Random(f"rule {seed} {number}")
    pairs = KINDS[kind](drawn)
    return LifeRule(kind, lambda: pairs(random.Random(f"rows {seed} {number}")))


def distinct_pairs(rule: LifeRule, n: int) -> list[tuple[Row, str]]:
    """Return the first pairs of a rule that differ from those before in their row and their key."""
    pairs: list[tuple[Row, str]] = []
    rows: set[tuple[str, ...]] = set()
    keys: set[str] = set()
    for row, key in rule.pairs():
        if tuple(row.values()) not in rows and key not in keys:
            rows.add(tuple(row.values()))
            keys.add(key)
            pairs.append((row, key))
            if len(pairs) == n:
                break
    return pairs


def lived(
    number: int, size: int, *, n_later: int = N_LATER, seed: int = 0, fuzzy: bool = False
) -> dict[str, Any]:
    """Learn a rule from the first rows, and apply it to those that follow."""
    rule = drawn_rule(number, seed)
    pairs = distinct_pairs(rule, size + n_later)
    first, later = pairs[:size], pairs[size:]
    result: dict[str, Any] = {"rule": number, "kind": rule.kind, "rows": size, "later": len(later)}
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
    alone = len(later) - table.num_rows
    return {**result, **example, "wrong": len(wrong), "alone": alone, "sample": wrong[:1]}


def _shuffled(pairs: Sequence[tuple[Row, str]], seed: int) -> list[tuple[Row, str]]:
    return random.Random(seed).sample(pairs, len(pairs))


def _tables(pairs: Sequence[tuple[Row, str]], seed: int) -> tuple[dict, dict]:
    source = {name: [row[name] for row, _ in pairs] for name in pairs[0][0]}
    return source, {"key": [key for _, key in _shuffled(pairs, seed)]}


def measured_life(
    *, seed: int = 0, n_rules: int = N_RULES, n_later: int = N_LATER, sizes: Sequence[int] = SIZES
) -> dict[str, Any]:
    """Learn and apply all rules, from all numbers of rows."""
    rows = [
        lived(number, size, n_later=n_later, seed=seed)
        for size in sizes
        for number in range(n_rules)
    ]
    return {"sizes": [_shares(rows, size) for size in sizes], "rules": rows}


def _shares(rows: Sequence[dict[str, Any]], size: int) -> dict[str, Any]:
    some = [row for row in rows if row["rows"] == size]
    n_later = sum(row["later"] for row in some)
    return {
        "rows": size,
        "rules": len(some),
        "learned": sum(row["program"] is not None for row in some),
        "wrong": sum(row["wrong"] for row in some) / n_later,
        "alone": sum(row["alone"] for row in some) / n_later,
    }
