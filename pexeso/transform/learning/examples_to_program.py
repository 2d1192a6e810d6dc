"""A program of few operators that writes the key of every example.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, section 4.3 (``TryLearnTransform``, and the order of the logical operators).
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np

from pexeso.runtime.compiled import compiled
from pexeso.transform.learning.example_parts import CASINGS, Examples, examples_of
from pexeso.transform.programs.conversions import conversion, listed_kinds, lists
from pexeso.transform.programs.program import (
    MAX_OPERATORS,
    Constant,
    Extract,
    Operator,
    Program,
    lower,
    upper,
)

loops = compiled("pexeso.transform.loops")


@dataclass(frozen=True, slots=True)
class Candidate:
    operator: Operator
    places: tuple[int, ...]
    lengths: tuple[int, ...]


def candidates(
    examples: Examples, low: Sequence[int], high: Sequence[int], width: int
) -> list[Candidate]:
    """Return the operators that write a piece of every key's range, the best first.

    Best is who writes most letters in all keys together; then who writes different letters for
    different examples; then fewer splits, all to the end before a fixed length, a start counted
    from the front, a small start, letters as they are. Of operators that write the same, the first
    by this order represents all, or a constant.
    """
    lines, lengths, positions, sizes = loops.best_operators(
        examples.letters, np.array(low, np.int32), np.array(high, np.int32), width
    )
    choices = []
    for line, length, places, size in zip(
        lines.tolist(), lengths.tolist(), positions.tolist(), sizes.tolist(), strict=True
    ):
        operator: Operator
        if line < 0:
            operator = Constant(examples.keys[0][places[0] : places[0] + size[0]])
        else:
            extractor, casing, backward, start = examples.lines[line].tolist()
            column, splits, replacements, converted = examples.extractors[extractor]
            operator = Extract(
                column,
                splits,
                start=-1 - start if backward else start,
                length=length if length >= 0 else None,
                casing=CASINGS[casing],
                replacements=replacements,
                shorter=length >= 0 and not backward,
                conversion=converted,
            )
        choices.append(Candidate(operator, tuple(places), tuple(size)))
    return choices


# Cells of a source row; None where one is missing.
Row = Sequence[str | None]

_Range = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class LearningOptions:
    """How far a program is looked for."""

    max_operators: int = 10  # Of a program, inclusive (tau of the source). 1 to `MAX_OPERATORS`.
    # Operators that are tried for a piece of the keys, the best first (beta). At least 1.
    width: int = 6
    # Pieces of the keys that are looked at before the examples are given up. At least 1. Of 422
    # programs learned from the shared cases, one needed 13, and 98 % at most 5.
    max_steps: int = 16


@dataclass(slots=True)
class Effort:
    """What may still be spent on learning: some 100 million a second, counted, not measured.

    A letter of a part of a cell counts as often as the longest key has letters when operators are
    looked for; each line of operators counts once.
    """

    left: int = 10**12


def learn_program(
    rows: Sequence[Row],
    keys: Sequence[str],
    options: LearningOptions | None = None,
    effort: Effort | None = None,
    separators: Sequence[bool] = (False, True),
) -> Program | None:
    options = options or LearningOptions()
    if max(least_pieces(rows, keys)) > options.max_operators:
        return None
    for any_separator in separators:
        examples = examples_of(rows, keys, any_separator=any_separator)
        operators = _Search(examples, options, effort or Effort()).operators()
        if operators is not None:
            return Program(_joined(operators))
    return None


@dataclass(slots=True)
class _Search:
    examples: Examples
    options: LearningOptions
    effort: Effort
    steps: int = 0
    known: dict[_Range, list[Candidate]] = field(default_factory=dict)
    failed: dict[_Range, int] = field(default_factory=dict)

    def operators(self) -> list[Operator] | None:
        low = (0,) * len(self.examples.keys)
        high = tuple(map(len, self.examples.keys))
        return self._learn(low, high, min(self.options.max_operators, MAX_OPERATORS))

    def _learn(
        self, low: tuple[int, ...], high: tuple[int, ...], budget: int
    ) -> list[Operator] | None:
        empty = [one == other for one, other in zip(low, high, strict=True)]
        if all(empty):
            return []
        if budget <= 0 or any(empty) or self.failed.get((low, high), 0) >= budget:
            return None
        for candidate in self._candidates(low, high, budget):
            ends = tuple(
                start + length
                for start, length in zip(candidate.places, candidate.lengths, strict=True)
            )
            left = self._learn(low, candidate.places, budget - 1)
            if left is None:
                continue
            right = self._learn(ends, high, budget - 1 - len(left))
            if right is not None:
                return [*left, candidate.operator, *right]
        self.failed[low, high] = budget
        return None

    def _candidates(
        self, low: tuple[int, ...], high: tuple[int, ...], budget: int
    ) -> list[Candidate]:
        if (low, high) not in self.known:
            if self.steps == self.options.max_steps or self.effort.left <= 0:
                return []
            self.steps += 1
            longest = max(one - other for one, other in zip(high, low, strict=True))
            self.effort.left -= len(self.examples.plain) * longest + len(self.examples.lines)
            self.known[low, high] = candidates(self.examples, low, high, self.options.width)
        choices = self.known[low, high]
        # No operator writes more letters than the first: so many of them cannot write all.
        if choices and sum(choices[0].lengths) * budget < sum(high) - sum(low):
            return []
        return choices


def _joined(operators: list[Operator]) -> tuple[Operator, ...]:
    joined: list[Operator] = []
    for operator in operators:
        last = joined[-1] if joined else None
        if isinstance(operator, Constant) and isinstance(last, Constant):
            joined[-1] = Constant(last.text + operator.text)
        else:
            joined.append(operator)
    return tuple(joined)


# Stands between cells; it is no letter, so that no key has it.
_BETWEEN = "\0"

_WORD = re.compile(r"[^\W_]+")

# Zeros that a number may have in front.
_ZEROS = 8

# Number of the cell, of the word in it, and of the character in that; -1 where none holds it.
PieceStart = tuple[int, int, int]


def least_pieces(
    rows: Sequence[Sequence[str | None]], keys: Sequence[str], *, constants: bool = True
) -> list[int]:
    """Return for each example in how few pieces its key can be put together.

    A piece is in a cell of the row, or in the keys of all examples. Only letters and digits
    count, in any casing: signs may be constants, and replacements leave them out. So a program that
    writes the key has at least so many operators.
    """
    plain = [letters_of(key) for key in keys]
    return [
        n_pieces(key, letters_held(row, constants=constants), plain if constants else None)
        for row, key in zip(rows, plain, strict=True)
    ]


def piece_starts(row: Sequence[str | None], key: str) -> tuple[PieceStart, ...]:
    """Return where the pieces of a row begin that a key can be put together from.

    The key is covered from the left by the longest pieces of single words, in any casing. A letter
    or digit that no cell holds is a piece of its own. Keys that one rule wrote mostly have equal
    starts, and keys that look alike by chance have different ones.

    >>> piece_starts(["2024-05-17"], "17/05/2024")
    ((0, 2, 0), (0, 1, 0), (0, 0, 0))
    >>> piece_starts(["Kelly", "Moore"], "kmoore")
    ((0, 0, 0), (1, 0, 0))
    """
    words: list[str] = []
    named: list[tuple[int, int]] = []
    for cell, text in enumerate(row):
        of_cell = _WORD.findall(lower(upper(text))) if text else []
        words += of_cell
        named += [(cell, number) for number in range(len(of_cell))]
    begins = [0]
    for word in words:
        begins.append(begins[-1] + len(word) + len(_BETWEEN))
    held, letters = _BETWEEN.join(words), letters_of(key)
    starts: list[PieceStart] = []
    at = 0
    while at < len(letters):
        end, position = at + 1, held.find(letters[at])
        while position >= 0 and end < len(letters):
            longer = held.find(letters[at : end + 1], position)
            if longer < 0:
                break
            position, end = longer, end + 1
        word = bisect_right(begins, position) - 1
        starts.append((*named[word], position - begins[word]) if position >= 0 else (-1, -1, -1))
        at = end
    return tuple(starts)


@lru_cache(maxsize=4096)
def _listed(text: str) -> str:
    """Return what lists make of the words of a text, and its numbers with zeros in front."""
    made = []
    for word in _WORD.findall(lower(text)):
        for name in listed_kinds().get(word, ()):
            made.append(letters_of(conversion(name).of(word) or ""))
        if word.isdigit():
            made.append(word.rjust(_ZEROS + len(word), "0"))
    return _BETWEEN.join(made)


@lru_cache(maxsize=4096)
def letters_of(text: str) -> str:
    """Return the letters and digits of a text, equal in all casings."""
    return "".join(filter(str.isalnum, lower(upper(text))))


def letters_held(row: Sequence[str | None], *, constants: bool = True) -> str:
    """Return the letters and digits of which a row has pieces."""
    held = _BETWEEN.join(letters_of(cell) for cell in row if cell)
    if constants:
        held += _BETWEEN + _BETWEEN.join(_listed(cell) for cell in row if cell)
    return held


def n_pieces(key: str, held: str, keys: Sequence[str] | None, limit: int = sys.maxsize) -> int:
    """Return the number of the longest pieces, taken from the left: no cover has fewer.

    It is not counted on from one above the limit.
    """
    pieces = at = 0
    while at < len(key) and pieces <= limit:
        end = at + 1
        if key[at:end] in held:
            while end < len(key) and key[at : end + 1] in held:
                end += 1
            reach = end
        else:
            reach = at
        while keys and reach < len(key) and all(key[at : reach + 1] in other for other in keys):
            reach += 1
        if reach == at:
            if keys:
                return len(key) + 1
            reach += 1
        at = reach
        pieces += 1
    return pieces


_RUN = re.compile(r"[^\W\d_]+|\d+")
_MONTH_AND_YEAR, _YEAR = 2, re.compile("(19|20)[0-9]{2}")
_COMPACT_DATE = re.compile("(1[5-9]|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")


@cache
def _month_numbers() -> dict[str, str]:
    """Return the number of each name of a month, in any language of the lists."""
    return {
        text: number
        for (kind, form), entries in lists().items()
        if kind.endswith("months") and form == "numbers"
        for text, number in entries.items()
    }


def date_words(text: str) -> list[str]:
    """Return the words and numbers of a text, without zeros; of dates day, month and year."""
    words = []
    for word in _RUN.findall(lower(text)):
        if _COMPACT_DATE.fullmatch(word):
            words += [number.lstrip("0") for number in (word[:4], word[4:6], word[6:])]
        elif word.isdigit():
            words.append(word.lstrip("0"))
        else:
            words.append(_month_numbers().get(word, word))
    if len(words) == _MONTH_AND_YEAR:
        words += [word[2:] for word in words if _YEAR.fullmatch(word)]
    return words
