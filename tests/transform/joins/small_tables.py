"""Two small tables of each kind that a program joins, and joins by nested loops."""

from __future__ import annotations

import pyarrow as pa

PAIRS = (
    ("Anna", "Meier"),
    ("Bert", "Schulz"),
    ("Carl", "Bauer"),
    ("Dora", "Wolf"),
    ("Emil", "Klein"),
    ("Fritz", "Koch"),
    ("Gerda", "Richter"),
    ("Hans", "Braun"),
    ("Ida", "Vogel"),
    ("Jakob", "Frank"),
    ("Karl", "Berg"),
    ("Lena", "Sommer"),
)
FIRST = [first for first, _ in PAIRS]
LAST = [last for _, last in PAIRS]

PEOPLE = {"age": [str(30 + number) for number in range(12)], "first": FIRST, "last": LAST}
MAILS = {
    "room": [f"{number}" for number in range(11, -1, -1)],
    "mail": [
        f"{first[0].lower()}.{last.lower()}@firm.de"
        for first, last in zip(FIRST, LAST, strict=True)
    ][::-1],
}
NAMES = {"name": [f"{first} {last}" for first, last in zip(FIRST, LAST, strict=True)]}

PRESIDENTS = {
    "President": [
        "Barack Obama",
        "George W. Bush",
        "Bill Clinton",
        "George H. W. Bush",
        "Ronald Reagan",
    ],
    "Popular Vote": ["52.93%", "47.87%", "43.01%", "53.37%", "50.75%"],
}
APPROVAL = {
    "President": [
        "Obama, Barack(1961-)",
        "Bush, George W.(1946-)",
        "Clinton, Bill(1946-)",
        "Bush, George H. W.(1924-)",
        "Reagan, Ronald(1911-2004)",
    ],
    "Approval": ["47.0", "49.4", "55.1", "60.9", "52.8"],
}
DOMAIN = "@forsyth.k12.ga.us"
TEACHERS = {
    "Name": [
        "Suhela Chowdhury",
        "Maureen Paluzzi",
        "Missy Payne",
        "Carolyn Craddock",
        "Kelly Moore",
    ],
    "Title": ["Principal", "Instructor", "Instructor", "Admin", "Instructor"],
}
EMAILS = {
    "Email": [
        name + DOMAIN for name in ("schowdhury", "mpaluzzi", "mipayne", "ccraddock", "kmoore")
    ],
    "School": ["Big Creek", "Brookwood", "Chattahoo", "Chestatee", "Princeville"],
}

MIXED = {
    "who": [f"{first} {last}" for first, last in zip(FIRST, LAST, strict=True)]
    + [f"{last}, {first}" for first, last in zip(FIRST[::-1], LAST, strict=True)]
    + ["ops@firm.de", "desk@firm.de"]
}
"""Names in two formats, and two that are addresses already."""

MIXED_MAILS = {
    "mail": [
        f"{first.lower()}.{last.lower()}@firm.de"
        for first, last in [*zip(FIRST, LAST, strict=True), *zip(FIRST[::-1], LAST, strict=True)]
    ]
    + ["ops@firm.de", "desk@firm.de", "nobody@firm.de"],
    "room": [str(number) for number in range(27)],
}

CASES = {
    "two columns": (PEOPLE, MAILS, ["first", "last"], ["mail"]),
    "target to source": (PRESIDENTS, APPROVAL, ["President"], ["President"]),
    "fuzzy": (TEACHERS, EMAILS, ["Name"], ["Email"]),
    "several programs": (MIXED, MIXED_MAILS, ["who"], ["mail"]),
    "two columns of the target": (MAILS, PEOPLE, ["mail"], ["first", "last"]),
}
"""Two tables, and the columns by which a program joins them."""

Rows = list[dict[str, str | None]]


def rows_of(table: dict[str, list[str | None]]) -> Rows:
    """Return the rows of a table as mappings."""
    return pa.table(table).to_pylist()


def joined_by_loops(
    source: Rows,
    target: Rows,
    pairs: list[list],
    columns: list[str],
    key: list[str],
    *,
    how: str = "left",
) -> list[tuple]:
    """Join two tables by nested loops over what a join says that it joins.

    Parameters
    ----------
    source, target : lists of rows
    pairs : list of [source value, target value, kind]
    columns, key : lists of str
        Of the source and of the target, whose cells the values are.
    """
    kinds = {(_value(left), _value(right)): kind for left, right, kind in pairs}
    rows = []
    for row in source:
        mine = tuple(row[name] for name in columns)
        partners = []
        for other in target:
            kind = kinds.get((mine, tuple(other[name] for name in key)))
            if kind is not None:
                partners.append((*row.values(), *other.values(), kind))
        if how == "left" and not partners:
            partners.append((*row.values(), *[None] * len(target[0]), None))
        rows += partners
    return rows


def _value(value: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
