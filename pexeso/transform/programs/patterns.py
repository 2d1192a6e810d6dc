"""Patterns of the cells that a program was learned from, and why others are refused.

A rule says nothing of cells unlike those that it was learned from. A `Pattern` holds their shapes:
runs of letters and of digits with the signs between them; the lengths of runs, where a piece that
is cut by place would not follow longer ones; the characters that were always the same and that the
program does not read, so that nothing shows what it should write if they were others; and runs that
always equalled one another, such as day and month, so that nothing shows which of them it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.normalise.characters import (
    LETTER,
    NUMBER,
    classes_of,
    code_points,
    text_blocks,
    texts_of_points,
)
from pexeso.transform.programs.program import Extract, Program, lower

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

# Which kind of run a character belongs to, by its class: a sign by itself.
_SIGN, _LETTER, _DIGIT = 0, ord("a"), ord("0")
_KIND_OF_CLASS = np.full(6, _SIGN, np.uint32)
_KIND_OF_CLASS[[LETTER, NUMBER]] = _LETTER, _DIGIT
_KINDS = {_SIGN: "signs", _LETTER: "letters", _DIGIT: "digits"}


@dataclass(frozen=True, slots=True)
class Run:
    """Letters, digits or signs that follow each other."""

    kind: str  # "letters", "digits" or "signs"
    # Its characters, `ANY` for one that may be another; empty where its length may be another
    text: str = ""
    same_as: int = -1  # Number of a run before it that it equals; -1 where it may be another


Shape = tuple[Run, ...]


@dataclass(frozen=True)
class Pattern:
    """The shapes of the cells of a column; unless it is `open`, a cell must have one of them."""

    shapes: tuple[Shape, ...]
    open: bool = False

    @cached_property
    def by_form(self) -> dict[str, list[Shape]]:
        known: dict[str, list[Shape]] = {}
        for shape in self.shapes:
            known.setdefault(_form(shape), []).append(shape)
        return known

    def allows(self, text: str) -> bool:
        return bool(allowed(self, pa.array([text]))[0])

    def why_not(self, text: str) -> str:
        """Return why a text is refused: the first character that is not as it always was."""
        shape = _shape(text)
        known = self.by_form.get(_form(shape))
        if known is None:
            return "its letters, digits and signs follow each other as in no value there"
        place = 1
        for run, expected in zip(shape, known[0], strict=True):
            if expected.same_as >= 0 and run.text != (other := shape[expected.same_as].text):
                return f"{run.text!r} was always the same as what is {other!r} here"
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
    blocks = text_blocks(encoded.dictionary)
    known = np.concatenate(
        [*(_allowed(pattern, some.cast(pa.string())) for some in blocks), [True]]
    )
    return known[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)]


def _allowed(pattern: Pattern, texts: pa.StringArray) -> np.ndarray:
    points, rows = code_points(texts)
    kinds = _KIND_OF_CLASS[classes_of(points)]
    # Each text is followed by a newline, which is a sign.
    places = np.flatnonzero(np.append(True, kinds[1:] != kinds[:-1]) | (kinds == _SIGN))
    runs = Runs(points, places, np.diff(places, append=len(points)))
    firsts = np.searchsorted(rows[places], np.arange(len(texts)))
    letters = np.where(kinds == _SIGN, points, kinds)[places]
    forms = texts_of_points(letters, rows[places], len(texts))
    known = pa.array([f"{form}\n" for form in pattern.by_form], pa.string())
    numbers = pc.fill_null(pc.index_in(forms, known), -1).to_numpy(zero_copy_only=False)
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(len(known) + 1))
    flags = np.full(len(texts), pattern.open)
    for shapes, start, stop in zip(pattern.by_form.values(), ends[:-1], ends[1:], strict=True):
        some = order[start:stop]
        flags[some] = np.any([runs.have(shape, firsts[some]) for shape in shapes], axis=0)
    return flags


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of texts; each sign is one."""

    points: np.ndarray
    places: np.ndarray  # where each run begins among the characters
    lengths: np.ndarray

    def have(self, shape: Shape, at: np.ndarray) -> np.ndarray:
        """Return which texts have a shape, whose first runs are numbered by `at`."""
        fits = np.ones(len(at), bool)
        numbers: list[np.ndarray] = []
        for run in shape:
            numbers.append(at)
            if run.same_as >= 0:
                fits &= self._are_equal(at, numbers[run.same_as])
            if run.kind == "signs":
                at = at + len(run.text)
                continue
            if run.text:
                fits &= self.lengths[at] == len(run.text)
            for number, one in enumerate(run.text):
                if one != ANY:
                    places = self.places[at] + number
                    fits &= self.points.take(places, mode="clip") == ord(one)
            at = at + 1
        return fits

    def _are_equal(self, at: np.ndarray, others: np.ndarray) -> np.ndarray:
        flags = self.lengths[at] == self.lengths[others]
        for number in range(int(self.lengths[at[flags]].max(initial=0))):
            one, other = (
                self.points.take(self.places[side] + number, mode="clip") for side in (at, others)
            )
            flags &= (one == other) | (number >= self.lengths[at])
        return flags


def pattern_of(rows: Sequence[Sequence[str | None]], program: Program, column: int) -> Pattern:
    """Return the pattern of a column of rows for which a program writes a key."""
    shapes: dict[str, list[Sequence[str | None]]] = {}
    for row in rows:
        shapes.setdefault(_form(_shape(row[column] or "")), []).append(row)
    cutting = [
        operator
        for operator in program.operators
        if isinstance(operator, Extract) and operator.column == column and operator.cuts
    ]
    made = []
    for some_rows in shapes.values():
        is_known = len(some_rows) >= _MIN_ROWS or len(shapes) == 1
        made.append(_common(some_rows, cutting, program if is_known else None, column))
    return Pattern(tuple(made), len(shapes) >= _MANY_SHAPES)


def _shape(text: str) -> Shape:
    points = np.array(list(map(ord, text)), np.uint32)
    kinds = _KIND_OF_CLASS[classes_of(points)].tolist()
    runs = groupby(zip(text, kinds, strict=True), itemgetter(1))
    return tuple(Run(_KINDS[kind], "".join(one for one, _ in run)) for kind, run in runs)


def _form(shape: Shape) -> str:
    """Return signs as they are, and one letter for each run of letters or digits."""
    letters = {"letters": chr(_LETTER), "digits": chr(_DIGIT)}
    return "".join(letters.get(run.kind, run.text) for run in shape)


def _common(
    rows: Sequence[Sequence[str | None]],
    cutting: Sequence[Extract],
    program: Program | None,
    column: int,
) -> Shape:
    """Return the shape of rows of one kind, with what is the same in all and unread."""
    common: list[Run] = []
    known: dict[tuple[str, ...], tuple[int, bool]] = {}
    begin = 0
    for runs in zip(*(_shape(row[column] or "") for row in rows), strict=True):
        first, places = runs[0], range(begin, begin + len(runs[0].text))
        begin += len(first.text)
        if first.kind != "signs":
            is_read = [program is None or _is_read(rows[0], at, program, column) for at in places]
            fixed = ""
            if len({len(run.text) for run in runs}) == 1:
                fixed = "".join(
                    ANY if read or len({run.text[at] for run in runs}) > 1 else one
                    for at, (one, read) in enumerate(zip(first.text, is_read, strict=True))
                )
            number, was_read = known.setdefault(
                tuple(run.text for run in runs), (len(common), any(is_read))
            )
            may_differ = program is None or number == len(common) or not (was_read or any(is_read))
            if not fixed.strip(ANY) and all(
                _follows(extract, rows[0], places, column) for extract in cutting
            ):
                fixed = ""
            first = Run(first.kind, fixed, -1 if may_differ else number)
        common.append(first)
    return tuple(common)


def _follows(extract: Extract, row: Sequence[str | None], places: range, column: int) -> bool:
    """Return whether a piece follows a run that is longer: has what it reads, or is the same."""
    text, old = row[column] or "", extract.of(row)
    others = "8136790452" if text[places[0]].isdecimal() else "qkxzjvwyupbf"
    other = next((one for one in others if one not in lower(text)), None)
    if old is None or other is None:
        return False
    is_read = any(_is_read(row, at, Program((extract,)), column) for at in places)
    for at in (places.start, places.stop):
        longer = list(row)
        longer[column] = text[:at] + other + text[at:]
        new = lower(extract.of(longer) or "")
        if (other in new) != is_read or new.replace(other, "", 1) != lower(old):
            return False
    return True


def _is_read(row: Sequence[str | None], at: int, program: Program, column: int) -> bool:
    """Return whether a program writes something else where a character of a cell is another."""
    text = row[column] or ""
    for other in _OTHERS[text[at].isdecimal()]:
        changed = list(row)
        changed[column] = text[:at] + other + text[at + 1 :]
        if other != text[at] and program.of(changed) != program.of(row):
            return True
    return False
