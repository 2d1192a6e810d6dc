"""Pairs of tables whose rule is planted: concatenations, splits, substrings, case, dates, mails."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

SYLLABLES = [first + last for first in "bdfgklmnprstvz" for last in "aeiou"]
SIGNS = (" ", ", ", "-", "/", ".", "_", "|")
HOSTS = ("@school.example.org", "@a.us", "@mail.example.com")

Row = dict[str, str]
Rule = Callable[[Row], str]


@dataclass(frozen=True)
class Planted:
    """Two tables, and what belongs together.

    Attributes
    ----------
    source, target : dict of str to list of str
        Columns; the keys are the target's column ``key``.
    columns : list of str
        Of the source, those that the rule reads.
    partner : list of int or None
        For each row of the source that of the target that was made of it.
    collapses : bool
        Whether the rule makes one key of several rows, more often than by chance.
    """

    kind: str
    source: dict[str, list[str]]
    target: dict[str, list[str]]
    columns: list[str]
    partner: list[int | None]
    collapses: bool


def word(drawn: random.Random, n_syllables: int) -> str:
    return "".join(drawn.choices(SYLLABLES, k=n_syllables)).capitalize()


def person(drawn: random.Random, number: int) -> Row:
    day = date(1950, 1, 1) + timedelta(drawn.randrange(60 * 365))
    letters = "".join(drawn.choices("ABCDEFGHJKLMNPQRSTUVWXYZ", k=3))
    return {
        "first": word(drawn, drawn.choice((2, 3))),
        "last": word(drawn, drawn.choice((2, 3, 4))),
        "city": word(drawn, 3),
        "day": day.isoformat(),
        "code": f"{letters}{number + 10_000}{drawn.choice('XYZ')}",
    }


def concatenation(drawn: random.Random) -> tuple[list[str], Rule, Rule | None]:
    columns = drawn.sample(["first", "last", "city", "code"], drawn.choice((2, 3)))
    sign, start = drawn.choice(SIGNS), drawn.choice(("", "#", "id:"))
    return columns, lambda row: start + sign.join(row[name] for name in columns), None


def split(drawn: random.Random) -> tuple[list[str], Rule, Rule | None]:
    sign, order = drawn.choice(SIGNS[1:]), drawn.sample(["first", "last", "code"], 3)
    parts = drawn.sample(order, drawn.choice((1, 2)))
    if parts == ["first"]:
        parts = ["code"]
    return (
        ["text"],
        lambda row: " ".join(row[name] for name in parts),
        lambda row: sign.join(row[name] for name in order),
    )


def substring(drawn: random.Random) -> tuple[list[str], Rule, Rule | None]:
    start, stop = drawn.choice(((0, 8), (3, 8), (2, 8), (1, 9)))
    return ["code"], lambda row: row["code"][start:stop], None


def case(drawn: random.Random) -> tuple[list[str], Rule, Rule | None]:
    change = drawn.choice((str.upper, str.lower, str.swapcase))
    if change is str.swapcase:
        return (
            ["text"],
            lambda row: f"{row['first']} {row['last']}".upper(),
            lambda row: (f"{row['first']} {row['last']}").lower(),
        )
    columns = drawn.choice((["first", "last"], ["last", "city"]))
    return columns, lambda row: change(" ".join(row[name] for name in columns)), None


def days(drawn: random.Random) -> tuple[list[str], Rule, Rule | None]:
    form = drawn.choice(("%d/%m/%Y", "%m/%d/%Y", "%Y%m%d", "%d.%m.%Y", "%Y/%m/%d"))
    return ["day"], lambda row: date.fromisoformat(row["day"]).strftime(form), None


def mails(drawn: random.Random) -> tuple[list[str], Rule, Rule | None]:
    host, length = drawn.choice(HOSTS), drawn.choice((1, 1, 2, None))
    sign = drawn.choice(("", ".")) if length else "."

    def mail(row: Row) -> str:
        return (row["first"][:length] + sign + row["last"]).lower() + host

    if drawn.random() < 0.5:
        return ["first", "last"], mail, None
    return ["text"], mail, lambda row: f"{row['first']} {row['last']}"


def codes(drawn: random.Random) -> tuple[list[str], Rule, Rule | None]:
    sign, start = drawn.choice(("-", "/", "_")), drawn.choice(("", "K", "no "))
    if drawn.random() < 0.5:
        return ["code"], lambda row: start + sign.join((row["code"][:3], row["code"][3:8])), None
    return ["code"], lambda row: start + row["code"][3:8] + sign + row["code"][:3], None


def collapsing(drawn: random.Random) -> tuple[list[str], Rule, Rule | None]:
    if drawn.random() < 0.5:
        return ["day"], lambda row: f"{row['day'][5:7]}/{row['day'][:4]}", None
    return ["code", "city"], lambda row: f"{row['city'][:4].upper()}-{row['code'][3:6]}", None


KINDS = {
    "concatenation": concatenation,
    "split": split,
    "substring": substring,
    "case": case,
    "days": days,
    "mails": mails,
    "codes": codes,
    "collapsing": collapsing,
}


def planted(number: int, seed: int = 0) -> Planted:
    """Plant a rule in two tables.

    Some 60 % of the rows of either have their partner in the other; the rest are other people.
    """
    drawn = random.Random(f"planted {seed} {number}")
    kind = list(KINDS)[number % len(KINDS)]
    columns, rule, text = KINDS[kind](drawn)
    n_rows = drawn.randrange(60, 160)
    people: list[Row] = []
    texts: set[tuple[str, ...]] = set()
    while len(people) < 2 * n_rows:
        row = person(drawn, len(people))
        if text is not None:
            row["text"] = text(row)
        own = tuple(row[name] for name in columns)
        if own not in texts:  # rows of one text are one, to a rule
            texts.add(own)
            people.append(row)
    n_common = int(n_rows * drawn.uniform(0.5, 0.8))
    mine, theirs = people[:n_rows], people[n_rows - n_common : 2 * n_rows - n_common]
    # A key of others alone, that the rule writes for one of mine too, is its key by all signs.
    own_keys = {rule(row) for row in mine}
    theirs = theirs[:n_common] + [row for row in theirs[n_common:] if rule(row) not in own_keys]
    keys: dict[str, Row] = {}
    for row in theirs:
        keys.setdefault(rule(row), row)
    listed = list(keys)
    drawn.shuffle(listed)
    place = {id(keys[key]): at for at, key in enumerate(listed)}
    more = drawn.sample([name for name in people[0] if name not in columns], drawn.randrange(3))
    # Beside a text its parts would be what the key is made of.
    names = columns if text is not None else drawn.sample([*columns, *more], len(columns + more))
    return Planted(
        kind,
        {name: [row[name] for row in mine] for name in names},
        {"key": listed, "amount": [str(drawn.randrange(10, 99)) for _ in listed]},
        columns,
        [place.get(id(row)) for row in mine],
        kind == "collapsing",
    )
