"""Programs that write one key in the form of another: what they consist of and what they do.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, chapter 4. A `Program` is a sequence of logical operators (Theta there) whose texts
follow each other: `Constant` is CONSTANT, and an `Extract` is SUBSTR, SPLITSUBSTR or
SPLITSPLITSUBSTR by the number of its splits. What extends the published operators: parts that are
counted from the end (a negative `Split.part`) and several parts at a time (`Split.span`), texts
replaced (`Extract.replacements`) or converted (`Extract.conversion`), and pieces that may be
shorter (`Extract.shorter`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from pexeso.errors import InputError
from pexeso.transform.programs.conversions import conversion, lower

Casing = Literal["none", "lower", "upper", "title"]
Span = Literal["one", "to", "from"]

# Operators of a program (the source's largest tau).
MAX_OPERATORS = 16

# Characters that the replacements of an operator may make of a cell: as many as a cell has.
MAX_WRITTEN = 1 << 20


def check_written(n_characters: int) -> None:
    if n_characters > MAX_WRITTEN:
        raise InputError(
            f"a replacement of the program would write {n_characters:,} characters for one row; at "
            f"most {MAX_WRITTEN:,} are written, so learn the program again or shorten the "
            "replacement"
        )


def upper(text: str) -> str:
    """Return a text in capitals; ``ß`` is two of them, other letters have one or stay.

    >>> upper("straße ŉ")
    'STRASSE ŉ'
    """
    if text.isascii():
        return text.upper()
    capitals = text.replace("ß", "SS").upper()
    if len(capitals) == len(text) + text.count("ß"):
        return capitals
    return "".join(map(capital, text))


def capital(letter: str) -> str:
    """Return the capital of one letter.

    >>> capital("é"), capital("ß"), capital("ﬁ")
    ('É', 'SS', 'ﬁ')
    """
    # Greek letters with an iota below are two capitals, or one that holds both.
    one = [candidate for candidate in (letter.upper(), letter.title()) if len(candidate) == 1]
    return "SS" if letter == "ß" else one[0] if one else letter


def title(text: str) -> str:
    """Return a text whose runs of letters begin with a capital and go on in small letters.

    >>> title("o'neil MC-DONALD 3rd")
    "O'Neil Mc-Donald 3Rd"
    """
    pieces = []
    for letters, run in groupby(text, str.isalpha):
        piece = "".join(run)
        pieces.append(upper(piece[0]) + lower(piece[1:]) if letters else piece)
    return "".join(pieces)


_CASINGS = {"none": str, "lower": lower, "upper": upper, "title": title}


def cased(text: str, casing: Casing) -> str:
    return _CASINGS[casing](text)


@dataclass(frozen=True, slots=True)
class Constant:
    text: str

    def of(self, row: Sequence[str | None]) -> str | None:
        return self.text


@dataclass(frozen=True, slots=True)
class Split:
    """Cut a text at each place of a separator, and take one part or several."""

    separator: str
    part: int  # From 0, or from -1 backwards from the end. Empty parts count
    span: Span = "one"

    @property
    def min_parts(self) -> int:
        return max(2, self.part + 1, -self.part)

    def of(self, text: str) -> str | None:
        parts = text.split(self.separator)
        if len(parts) == 1 or not -len(parts) <= self.part < len(parts):
            return None
        if self.span == "one":
            return parts[self.part]
        position = self.part % len(parts)
        return self.separator.join(parts[: position + 1] if self.span == "to" else parts[position:])


@dataclass(frozen=True, slots=True)
class Extract:
    """A piece of a cell."""

    column: int
    splits: tuple[Split, ...] = ()
    start: int = 0  # Of the first character; from -1 backwards, where -1 is the last one
    length: int | None = None  # Characters, at least 1; without it all to the end
    casing: Casing = "none"
    replacements: tuple[tuple[str, str], ...] = ()
    shorter: bool = False
    conversion: str = ""  # Name of a conversion of the text, before a piece of it is cut; or none

    @property
    def cuts(self) -> bool:
        """Whether the piece is cut by place, and is more than the first character."""
        return bool(self.start) or (self.length or 1) > 1

    @property
    def min_length(self) -> int | None:
        """Characters that a text needs, split and with its replacements made, for a piece.

        With fewer the operator does not apply. None where no number is enough: a length that, from
        a start counted backwards, would reach behind the end. A text may be empty where all of it,
        or as many characters as there are, is taken from the beginning.
        """
        if self.start >= 0:
            to_end = self.length is None or self.shorter
            return self.start + (min(self.start, 1) if to_end else self.length or 0)
        if self.shorter or self.length is None or self.length <= -self.start:
            return -self.start
        return None

    @property
    def stop(self) -> int | None:
        """Place behind the last character, in the way of `start`; None for the text's end."""
        # Counted backwards, the end would be 0, which is a text's beginning.
        if self.length is None or self.start < 0 <= self.start + self.length:
            return None
        return self.start + self.length

    def of(self, row: Sequence[str | None]) -> str | None:
        """Return the piece of a row's cell, or None where some step does not apply.

        A step that needs more characters than there are does not apply, unless the piece may be
        shorter; nor does a start behind the end.
        """
        text = row[self.column]
        for split in self.splits:
            if text is None:
                return None
            text = split.of(text)
        if text is None:
            return None
        for old, new in self.replacements:
            if len(new) > len(old):
                check_written(len(text) + text.count(old) * (len(new) - len(old)))
            text = text.replace(old, new)
        if self.conversion:
            text = conversion(self.conversion).of(text)
            if text is None:
                return None
        start = self.start if self.start >= 0 else len(text) + self.start
        end = len(text) if self.length is None else start + self.length
        if start < 0 or (end > len(text) and not self.shorter) or start >= max(1, len(text)):
            return None
        return cased(text[start:end], self.casing)


Operator = Constant | Extract


@dataclass(frozen=True, slots=True)
class Program:
    """Operators whose texts, one after the other, are a row's key.

    >>> comma = Split(", ", 1), Split(", ", 0)
    >>> program = Program(
    ...     (Extract(0, (Split("(", 0), comma[0])), Constant(" "), Extract(0, (comma[1],)))
    ... )
    >>> program.of(["Obama, Barack(1961-)"])
    'Barack Obama'
    >>> program.of(["Barack Obama"]) is None
    True
    """

    operators: tuple[Operator, ...]

    def of(self, row: Sequence[str | None]) -> str | None:
        pieces = []
        for operator in self.operators:
            piece = operator.of(row)
            if piece is None:
                return None
            pieces.append(piece)
        return "".join(pieces)

    def named_columns(self, names: Sequence[str]) -> dict[int, str]:
        if self.columns and self.columns[-1] >= len(names):
            raise InputError(
                f"the program reads column {self.columns[-1] + 1}, but only {len(names)} columns "
                "are named; pass the names of the columns that it was learned from"
            )
        named = {column: names[column] for column in self.columns}
        for name in named.values():
            if not name or list(names).count(name) > 1:
                raise InputError(
                    f"the program reads a column named {name!r}, but the name of a column that it "
                    "reads must be the only one of its kind and not empty; rename the column"
                )
        return named

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(
            sorted(
                {operator.column for operator in self.operators if isinstance(operator, Extract)}
            )
        )
