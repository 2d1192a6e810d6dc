"""The groups that reasons and notes fall into.

A reason is written as ``GROUP[: DETAIL][; WAY OUT]``, after the name of the table where it is a
sentence: ``a.csv is empty: it has no header row.`` is of the group ``empty``. What a library says
of a file, and names, stand in the detail or in parentheses, so that what stands before is the same
for all that was left out alike, but for numbers. A test reads the sources for reasons that are
written otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

_VERBS = "is|was|has|had|holds|cannot|could|does|comes|unpacks|ends|takes|needs|must|lacks"
_AFTER_A_NAME = re.compile(rf" (?=(?:{_VERBS}) )")
_PARTS = re.compile(r"(?<=.)[/#]")
_QUOTED_NAME = re.compile(rf"""(["']).*?\1 (?=(?:{_VERBS}) )""", re.DOTALL)
_COLUMN_NAME = re.compile(r"column .+? \(#[0-9,]+\) (?=is )", re.DOTALL)
_SUBJECT = re.compile(r"(?:it )?(?:is )?")
_END = re.compile(
    r": |; |\. "  # the detail, the way out, a further sentence
    r"| \((?![a-z_]+\)|#)"  # words of a library; options such as (min_rows) belong to the group
)
_WITH_DETAIL = ("not a table",)
"""Groups whose details are groups of their own: they are of our own words, and few."""

_NUMBER = re.compile(r"(?<![\w#.-])([0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)(?!\w)")
_SINGULAR = re.compile(r"^ (distinct value|row|column|line|cell|byte|value|table|member)\b")


class Template(NamedTuple):
    """A text, and where numbers stand in it."""

    words: tuple[str, ...]
    numbers: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Template:
        """Find the numbers of a text."""
        parts = _NUMBER.split(text)
        return cls(tuple(parts[::2]), tuple(parts[1::2]))

    @property
    def key(self) -> tuple[str, ...]:
        """The same for all texts that differ in numbers alone."""
        return (self.words[0], *map(_plural, self.words[1:]))

    def written(self, lows: Sequence[str] | None = None, highs: Sequence[str] | None = None) -> str:
        """Write the text, with ranges in the place of its numbers where they are given.

        Examples
        --------
        >>> Template.of("3 rows, at least 5 needed").written(("0", "5"), ("4", "5"))
        '0 to 4 rows, at least 5 needed'
        """
        parts = [self.words[0]]
        for low, high, after in zip(
            lows or self.numbers, highs or self.numbers, self.words[1:], strict=True
        ):
            parts += (low, after) if low == high else (f"{low} to {high}", _plural(after))
        return "".join(parts)


class GroupedReason(NamedTuple):
    """A reason, or a note, and the group that it falls into."""

    text: str
    head: Template
    whole: Template
    key: tuple[str, ...]


def grouped(reason: str, table: str = "") -> GroupedReason:
    """Return a reason with the group that it falls into.

    Examples
    --------
    >>> grouped("a.csv is empty: it has no header row.", "a.csv").head.written()
    'empty'
    >>> few, fewer = (grouped(f"{n}, at least 5 needed (min_rows)") for n in ("4 rows", "1 row"))
    >>> few.head.written(), few.key == fewer.key
    ('4 rows, at least 5 needed (min_rows)', True)
    """
    text = _SUBJECT.sub("", _without_name(reason, table), count=1).rstrip(".")
    start = 0
    for group in _WITH_DETAIL:
        if text.startswith(f"{group}: "):
            start = len(group) + 2
    end = _END.search(text, start)
    whole = Template.of(text)
    head = Template.of(text[: end.start()]) if end else whole
    return GroupedReason(text, head, whole, head.key)


def number_of(text: str) -> float:
    """Return the number that a reason holds as text.

    Examples
    --------
    >>> number_of("1,200")
    1200.0
    """
    return float(text.replace(",", ""))


def _plural(after_a_number: str) -> str:
    return _SINGULAR.sub(r" \1s", after_a_number)


def _without_name(reason: str, table: str) -> str:
    """Take the name off that a sentence begins with: of the table, or of the file that holds it."""
    ends = (part.start() for part in _PARTS.finditer(table))
    for end in chain((len(table),), ends):
        if reason.startswith(table[:end]) and (after := _AFTER_A_NAME.match(reason, end)):
            return reason[after.end() :]
    if match := _QUOTED_NAME.match(reason):
        return reason[match.end() :]
    if match := _COLUMN_NAME.match(reason):
        return f"a column {reason[match.end() :]}"
    return reason
