"""Patterns of the cells that a program was learned from, and why others are refused.

A rule says nothing of cells unlike those that it was learned from. A `Pattern` holds their shapes:
runs of letters and of digits with the signs between them; the lengths of runs, where the program
cuts pieces by place; and the characters that were always the same and that the program does not
read, so that nothing shows what it should write if they were others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.programs.program import Extract, Program

# Rows that are looked at.
MAX_ROWS = 2000

# Shapes from which on others are allowed too: the program has held for whatever came.
_MANY_SHAPES = 4

# Rows of a shape from which on a character is always the same.
_MIN_ROWS = 3

# Stands for any letter or digit in `Run.text`, where it is neither.
ANY = "?"

# Characters that are put in the place of another, of letters and of digits.
_OTHERS = (("q", "K"), ("1", "8"))

_RUNS = re.compile(r"[^\W\d_]+|\d+|[\W_]+")
_CLASSES = {"letters": r"[^\W\d_]", "digits": r"\d"}


@dataclass(frozen=True, slots=True)
class Run:
    """Letters, digits or signs that follow each other.

    Attributes
    ----------
    kind : {"letters", "digits", "signs"}
    text : str
        Its characters, `ANY` for one that may be another; empty where its length may be another.
    """

    kind: str
    text: str = ""

    @property
    def regex(self) -> str:
        if self.kind == "signs":
            return re.escape(self.text)
        any_one = _CLASSES[self.kind]
        if not self.text:
            return f"{any_one}+"
        return "".join(any_one if one == ANY else re.escape(one) for one in self.text)


Shape = tuple[Run, ...]


@dataclass(frozen=True)
class Pattern:
    """The shapes of the cells of a column; unless it is `open`, a cell must have one of them."""

    shapes: tuple[Shape, ...]
    open: bool = False

    @cached_property
    def _by_kinds(self) -> dict[tuple[str, ...], list[tuple[Shape, re.Pattern[str]]]]:
        known: dict[tuple[str, ...], list[tuple[Shape, re.Pattern[str]]]] = {}
        for shape in self.shapes:
            compiled = re.compile("".join(run.regex for run in shape))
            known.setdefault(_kinds(shape), []).append((shape, compiled))
        return known

    def allows(self, text: str) -> bool:
        known = self._by_kinds.get(_kinds(_shape(text)))
        if known is None:
            return self.open
        return any(regex.fullmatch(text) for _, regex in known)

    def why_not(self, text: str) -> str:
        """Return why a text is refused: the first character that is not as it always was."""
        shape = _shape(text)
        known = self._by_kinds.get(_kinds(shape))
        if known is None:
            return "its letters, digits and signs follow each other as in no value there"
        place = 1
        for run, expected in zip(shape, known[0][0], strict=True):
            if expected.text and len(run.text) != len(expected.text):
                return (
                    f"it has {len(run.text)} {run.kind} from character {place} on, where there "
                    f"were always {len(expected.text)}"
                )
            for at, (one, other) in enumerate(zip(run.text, expected.text, strict=False)):
                if other not in (ANY, one):
                    return f"character {place + at} was always {other!r}"
            place += len(run.text)
        return "it is unlike the values there"


def allowed(pattern: Pattern, cells: pa.Array) -> np.ndarray:
    """Return which cells a pattern allows; missing ones are."""
    encoded = cells.dictionary_encode()
    known = np.array([pattern.allows(text) for text in encoded.dictionary.to_pylist()], bool)
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return np.append(known, True)[codes]


def pattern_of(rows: Sequence[Sequence[str | None]], program: Program, column: int) -> Pattern:
    """Return the pattern of a column of rows for which a program writes a key."""
    shapes: dict[tuple[str, ...], list[Sequence[str | None]]] = {}
    for row in rows:
        shapes.setdefault(_kinds(_shape(row[column] or "")), []).append(row)
    lengths = any(map(_cuts, _extracts(program, column)))
    made = []
    for some_rows in shapes.values():
        is_known = len(some_rows) >= _MIN_ROWS or len(shapes) == 1
        made.append(_common(some_rows, lengths, program if is_known else None, column))
    return Pattern(tuple(made), len(shapes) >= _MANY_SHAPES)


def _extracts(program: Program, column: int) -> Iterator[Extract]:
    for operator in program.operators:
        if isinstance(operator, Extract) and operator.column == column:
            yield operator


def _cuts(extract: Extract) -> bool:
    return bool(extract.start) or (extract.length or 1) > 1


def _shape(text: str) -> Shape:
    return tuple(Run(_kind(run), run) for run in _RUNS.findall(text))


def _kind(run: str) -> str:
    return "digits" if run[0].isdecimal() else "letters" if run[0].isalnum() else "signs"


def _kinds(shape: Shape) -> tuple[str, ...]:
    return tuple(run.text if run.kind == "signs" else run.kind for run in shape)


def _common(
    rows: Sequence[Sequence[str | None]], lengths: bool, program: Program | None, column: int
) -> Shape:
    """Return the shape of rows of one kind, with what is the same in all and unread."""
    common, begin = [], 0
    for runs in zip(*(_shape(row[column] or "") for row in rows), strict=True):
        first = runs[0]
        if first.kind != "signs" and len({len(run.text) for run in runs}) == 1:
            fixed = "".join(
                one
                if len({run.text[at] for run in runs}) == 1
                and program is not None
                and not _is_read(rows[0], begin + at, program, column)
                else ANY
                for at, one in enumerate(first.text)
            )
            first = Run(first.kind, fixed if lengths or fixed.strip(ANY) else "")
        elif first.kind != "signs":
            first = Run(first.kind)
        begin += len(runs[0].text)
        common.append(first)
    return tuple(common)


def _is_read(row: Sequence[str | None], at: int, program: Program, column: int) -> bool:
    """Return whether a program writes something else where a character of a cell is another."""
    text = row[column] or ""
    for other in _OTHERS[text[at].isdecimal()]:
        changed = list(row)
        changed[column] = text[:at] + other + text[at + 1 :]
        if other != text[at] and program.of(changed) != program.of(row):
            return True
    return False
