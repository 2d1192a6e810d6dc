"""Plain tables of known values, drawn from a seed: what hard files are made of."""

from __future__ import annotations

import random
from dataclasses import dataclass

_CITIES = [
    *("Oslo", "Lisboa", "São Paulo", "Kraków", "Zürich", "Besançon", "Tromsø", "Malmö", "Córdoba"),
    *("Den Haag", "New York", "Rio de Janeiro", "Göttingen", "Plzeň", "Reykjavík", "Bern", "Graz"),
]
_FIRST = ["Ann", "Björn", "Chloë", "Dmitri", "Eve", "Fátima", "Grace", "Hugo", "Inés", "Jürgen"]
_LAST = ["Lee", "O'Neill", "García", "Smith, Jr.", "Müller", "d'Arc", "Nowak", "Van Dyke", "Ito"]
_PRODUCTS = ["Desk", "Chair", 'Screen 24"', "Lamp; small", "Cable, 2 m", "Pen|red", "Mug #1", "Bag"]
_CODES = ["NO", "PT", "BR", "PL", "CH"]
_ANIMALS = ["fox", "hen", "cow", "owl", "bee", "elk", "ant", "pig", "cat", "dog", "hare", "mole"]
_NOTES = ["fine", "late", 'said "no"', "see A & B", "ok; paid", "50% off", "a, b and c", "-"]


@dataclass(frozen=True)
class PlainTable:
    """A table of known values: names, and rows of texts."""

    label: str
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def plain_tables(seed: int = 0) -> list[PlainTable]:
    """Draw the tables: eight, of 2 to 12 columns and 6 to 40 rows, one of words alone."""
    draw = random.Random(seed)
    choose = draw.choice

    def number(limit: int) -> str:
        return str(draw.randint(1, limit))

    def decimal() -> str:
        return f"{draw.uniform(0, 900):.2f}"

    def day() -> str:
        return f"20{draw.randint(10, 24)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"

    def person() -> str:
        return f"{choose(_FIRST)} {choose(_LAST)}"

    tables = {
        "cities": (
            ("City", "Country code", "Population"),
            [
                (choose(_CITIES), choose(["NO", "PT", "BR", "PL", "CH"]), number(900_000))
                for _ in range(24)
            ],
        ),
        "sales": (
            ("Date", "Product", "Price", "Units", "Comment"),
            [(day(), choose(_PRODUCTS), decimal(), number(90), choose(_NOTES)) for _ in range(30)],
        ),
        "people": (
            ("Name", "Town", "Age"),
            [(person(), choose(_CITIES), number(90)) for _ in range(20)],
        ),
        "words": (
            ("Animal", "Colour", "Place"),
            [(animal, choose(["red", "grey", "brown"]), choose(_CITIES)) for animal in _ANIMALS],
        ),
        "sensors": (
            ("Time", "Temperature", "Humidity", "Pressure"),
            [(f"{i // 60:02}:{i % 60:02}", decimal(), number(100), decimal()) for i in range(40)],
        ),
        "two": (
            ("Code", "Value"),
            [(f"AB-{draw.randint(100, 999)}", decimal()) for _ in range(18)],
        ),
        "wide": (
            ("Region", *(f"Item {letter}" for letter in "ABCDEFGHIJK")),
            [(choose(_CITIES), *(number(500) for _ in range(11))) for _ in range(16)],
        ),
        "small": (
            ("Country", "Capital", "Area"),
            [
                ("Norway", "Oslo", "385207"),
                ("Portugal", "Lisbon", "92212"),
                ("Poland", "Warsaw", "312696"),
                ("Chile", "Santiago", "756102"),
                ("Kenya", "Nairobi", "580367"),
                ("Japan", "Tokyo", "377975"),
            ],
        ),
    }
    return [PlainTable(label, names, tuple(rows)) for label, (names, rows) in tables.items()]
