"""What examples of a program hold: parts of their cells, made by few steps, as letters.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, section 4.3 (the logical operators). An example is a row of the source and the key
that a program should write for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from string import ascii_letters, digits
from typing import Any

import numpy as np

from pexeso.engine.lists import offsets_of
from pexeso.runtime.compiled import compiled
from pexeso.transform.programs.conversions import (
    GROUP_SIGNS,
    MAX_WIDTH,
    UNITS,
    conversion,
    list_order,
    listed_kinds,
    lower,
)
from pexeso.transform.programs.program import Casing, Span, Split, upper

loops = compiled("pexeso.transform.loops")

# In the order in which operators prefer them.
CASINGS: tuple[Casing, ...] = ("none", "lower", "upper", "title")

# Letters of all parts of cells from which operators are made, for all examples.
MAX_LETTERS = 3000

# Splits and replacements of an operator.
MAX_STEPS = 4

# Digits of numbers that have no sign between thousands.
_THOUSAND = 3

# Stands for a letter whose other case is not one letter: it equals nothing.
NO_LETTER = 0


# How a part is made: the column, the splits, the replacements, and the conversion of an `Extract`.
_Steps = tuple[int, tuple[Split, ...], tuple[tuple[str, str], ...], str]

_PartList = list[tuple[tuple[str, ...], _Steps]]


@dataclass(frozen=True, slots=True)
class Examples:
    """What some rows hold and the keys wanted for them, as letters."""

    keys: tuple[str, ...]
    extractors: tuple[_Steps, ...]
    plain: np.ndarray  # uint32 (c,): letters of their texts
    # int32 (l, 4): extractor, casing, 1 where the start counts from the end, and start: in the
    # order in which operators are preferred that write the same number of letters
    lines: np.ndarray
    letters: Any  # `Letters` of `pexeso.transform.loops`, for the search for operators


def examples_of(
    rows: Sequence[Sequence[str | None]],
    keys: Sequence[str],
    *,
    any_separator: bool = False,
) -> Examples:
    return _as_letters(tuple(keys), parts_of(rows, keys, any_separator=any_separator))


def parts_of(
    rows: Sequence[Sequence[str | None]],
    keys: Sequence[str],
    *,
    any_separator: bool = False,
) -> _PartList:
    """Return parts of cells for all rows, those of few steps first.

    They are made with ever more steps until they have more than `MAX_LETTERS` letters; first of
    those parts that hold most of the keys.
    """
    parts = _Parts(_pieces(keys))
    for column in range(len(rows[0])):
        cells = tuple(row[column] for row in rows)
        texts = tuple(cell for cell in cells if cell)
        if len(texts) == len(cells):
            parts.add(texts, (column, (), (), ""))
    whole = list(parts.steps.items())
    # Signs may give way to nothing, and to the signs of the keys.
    replaced = ["", *_signs(keys)]
    once = parts.deeper(whole, 0.4, _splits, any_separator)
    several = parts.deeper(whole, 0.6, _spans, any_separator)
    twice = [] if any_separator else parts.deeper(once, 0.8, _splits, False)
    small_keys = list(map(lower, keys))
    parts.deeper([*whole, *once, *twice], 1.0, _conversions, keys, small_keys)
    others = parts.deeper([*whole, *once, *several, *twice], 0.95, _replacements, replaced)
    if not all(cell.isascii() for row in rows for cell in row if cell):
        parts.deeper(others, 1.0, _conversions, keys, small_keys)
    parts.deeper(others, 1.0, _replacements, replaced)
    if not any_separator:
        parts.deeper(several, 1.0, _splits, False)
        parts.deeper(once, 1.0, _spans, False)
    return sorted(parts.steps.items(), key=lambda part: _n_steps(part[1]))


# Letters of a piece of a key, which show the parts that hold most of it.
_PIECE = 3


def _n_steps(steps: _Steps) -> int:
    return len(steps[1]) + len(steps[2]) + bool(steps[3])


def _pieces(keys: Sequence[str]) -> list[list[str]]:
    size = min(_PIECE, *map(len, keys)) if len(keys) > 1 else min(_PIECE, len(keys[0]))
    return [
        sorted({key[at : at + size] for at in range(len(key) - size + 1)})
        for key in map(lower, keys)
    ]


@dataclass(slots=True)
class _Parts:
    """Parts of cells by their texts, the simplest for each."""

    pieces: list[list[str]]
    steps: dict[tuple[str, ...], _Steps] = field(default_factory=dict)
    ranks: dict[tuple[str, ...], tuple[int, int]] = field(default_factory=dict)
    letters: int = 0

    def add(self, texts: tuple[str, ...], steps: _Steps) -> bool:
        if texts in self.steps:
            return False
        self.steps[texts] = steps
        self.letters += sum(map(len, texts))
        return True

    def deeper(
        self, begun: _PartList, share: float, step: Callable[..., Any], *options: Any
    ) -> _PartList:
        """Add what one step more gives, first of the shortest parts that hold most of the keys."""
        new: _PartList = []
        for texts, steps in sorted(begun, key=self._rank) if len(begun) > 1 else begun:
            for split, replacement, name, new_texts in step(texts, *options):
                if self.letters > share * MAX_LETTERS:
                    return new
                longer = steps[0], (*steps[1], *split), (*steps[2], *replacement), name
                if self.add(new_texts, longer):
                    new.append((new_texts, longer))
        return new

    def _rank(self, part: tuple[tuple[str, ...], _Steps]) -> tuple[int, int]:
        texts = part[0]
        if texts not in self.ranks:
            held = 0
            for text, pieces in zip(texts, self.pieces, strict=True):
                held += sum(map(lower(text).__contains__, pieces))
            self.ranks[texts] = -held, sum(map(len, texts))
        return self.ranks[texts]


# The split, the replacement or the name of the conversion, and the parts that it gives.
_Made = Iterator[tuple[tuple[Split, ...], tuple[tuple[str, str], ...], str, tuple[str, ...]]]


def _splits(texts: tuple[str, ...], any_separator: bool) -> _Made:
    """Yield the splits that apply to all texts, with the one part they give, never an empty one."""
    for separator, parts, fewest in _divided(texts, any_separator):
        for part in (*range(fewest), *range(-1, -fewest - 1, -1)):
            pieces = tuple([text_parts[part] for text_parts in parts])
            if all(pieces):
                yield (Split(separator, part),), (), "", pieces


def _spans(texts: tuple[str, ...], any_separator: bool) -> _Made:
    for separator, parts, fewest in _divided(texts, any_separator):
        for span, part in _places_of_spans(fewest):
            if span == "to":
                pieces = tuple(
                    [
                        separator.join(text_parts[: part % len(text_parts) + 1])
                        for text_parts in parts
                    ]
                )
            else:
                pieces = tuple(
                    [separator.join(text_parts[part % len(text_parts) :]) for text_parts in parts]
                )
            if all(pieces):
                yield (Split(separator, part, span),), (), "", pieces


@cache
def _places_of_spans(fewest: int) -> tuple[tuple[Span, int], ...]:
    spans: list[tuple[Span, int]] = [("to", part) for part in range(-2, -fewest - 1, -1)]
    spans += (("from", part) for part in range(1, fewest))
    spans += (("to", part) for part in range(1, fewest - 1))
    spans += (("from", part) for part in range(-2, -fewest, -1))
    return tuple(spans)


def _divided(
    texts: tuple[str, ...], any_separator: bool
) -> Iterator[tuple[str, list[list[str]], int]]:
    for separator in _separators(texts, any_separator):
        parts = [text.split(separator) for text in texts]
        fewest = min(map(len, parts))
        if fewest > 1:
            yield separator, parts, fewest


def _separators(texts: tuple[str, ...], any_separator: bool) -> list[str]:
    shortest = min(texts, key=len)
    if not any_separator:
        signs = _signs([shortest])
        two = {one + other for one, other in pairwise(shortest) if one in signs and other in signs}
        return [*_shared_words(texts), *signs, *sorted(two)]
    short = {shortest[at : at + size] for size in (1, 2) for at in range(len(shortest))}
    return [
        *sorted(_shared_by_all(texts), key=lambda separator: (-len(separator), separator)),
        *sorted(short, key=lambda separator: (len(separator), separator)),
    ]


def _shared_words(texts: tuple[str, ...]) -> list[str]:
    """Return the words between blanks that all texts hold, with their blanks: ``" by "``."""
    first, *others = texts
    words = dict.fromkeys(f" {word} " for word in first.split(" ")[1:-1] if word)
    return [word for word in words if all(word in other for other in others)]


def _shared_by_all(texts: tuple[str, ...]) -> set[str]:
    """Return the longest pieces from each place of the first text that all others hold."""
    first, *others = texts
    pieces = set()
    for begin in range(len(first)):
        end = begin + 2
        while end < len(first) and all(first[begin : end + 1] in other for other in others):
            end += 1
        if end > begin + 2:
            pieces.add(first[begin:end])
    return pieces


_PLAIN = frozenset(ascii_letters + digits)


def _signs(texts: Sequence[str]) -> list[str]:
    return sorted(letter for letter in set("".join(texts)) - _PLAIN if not letter.isalnum())


def _replacements(texts: tuple[str, ...], new_signs: Sequence[str]) -> _Made:
    for old in _signs(texts):
        for new in new_signs:
            if new == old:
                continue
            new_texts = tuple([text.replace(old, new) for text in texts])
            if all(new_texts):
                yield (), ((old, new),), "", new_texts


def _conversions(texts: tuple[str, ...], keys: Sequence[str], small_keys: Sequence[str]) -> _Made:
    """Yield the conversions whose whole texts are in the keys; without accents, also any piece."""
    for name in _conversion_names(texts, keys):
        convert = conversion(name).of
        new_texts: list[str] = []
        for text, key in zip(texts, small_keys, strict=True):
            new = convert(text)
            if not new or (name != "unaccented" and lower(new) not in key):
                break
            new_texts.append(new)
        else:
            yield (), (), name, tuple(new_texts)


_DIGITS = re.compile("[0-9]+")
_NUMBER = re.compile("[0-9]{1,12}([.][0-9]{1,6})?")
_ISBN = 10


def _conversion_names(texts: tuple[str, ...], keys: Sequence[str]) -> Iterator[str]:
    """Yield the names of the conversions that may make some of the keys of texts."""
    if all(map(_DIGITS.fullmatch, texts)):
        longest = max(map(len, texts))
        if any(text[0] == "0" for text in texts):
            yield "strip zeros"
        for width in range(min(map(len, keys)), min(map(len, texts)), -1):
            if longest <= width <= MAX_WIDTH and all(
                text.rjust(width, "0") in key for text, key in zip(texts, keys, strict=True)
            ):
                yield f"pad {width}"
                break
        if longest > _THOUSAND:
            yield from (f"group {sign}" for sign in GROUP_SIGNS if any(sign in key for key in keys))
            yield from ("with EAN digit", "with Luhn digit", "to ISBN-10")
            countries = {key[:2] for key in keys}
            if len(countries) == 1 and re.fullmatch("[A-Z]{2}", *countries):
                yield f"IBAN {countries.pop()}"
    if all(map(_NUMBER.fullmatch, texts)):
        yield from (name for name, number in _in_units(texts[0]) if number in keys[0])
    elif any(not text.isascii() for text in texts):
        yield "unaccented"
    if len(texts[0]) >= _ISBN and texts[0][0].isdigit():
        yield "to ISBN-13"
    elif " " in texts[0]:
        yield "initials"
    kinds = listed_kinds().get(lower(texts[0]), frozenset())
    for text in texts[1:] if kinds else ():
        kinds &= listed_kinds().get(lower(text), frozenset())
    yield from sorted(kinds, key=list_order().__getitem__)


@lru_cache(maxsize=4096)
def _in_units(number: str) -> list[tuple[str, str]]:
    """Return what each of `UNITS` makes of a number."""
    made = ((name, conversion(name).of(number)) for name in UNITS)
    return [(name, new) for name, new in made if new]


def _as_letters(keys: tuple[str, ...], parts: _PartList) -> Examples:
    texts = [text for group, _ in parts for text in group]
    plain = "".join(texts)
    sizes = np.fromiter(map(len, texts), np.int32, len(texts))
    at = (np.cumsum(sizes) - sizes).astype(np.int32).reshape(len(parts), len(keys))
    size = sizes.reshape(len(parts), len(keys))
    extractors = tuple(steps for _, steps in parts)
    lines, groups = _lines(extractors, size)
    letters = _letters(plain)
    if plain.isascii():
        small, large, is_letter = plain.lower(), plain.upper(), _IS_LETTER[letters]
    else:
        small, large = plain.translate(_SMALL), plain.translate(_LARGE)
        is_letter = np.fromiter(map(str.isalpha, plain), bool, len(plain))
    goal_at = offsets_of([len(key) for key in keys]).astype(np.int32)
    arrays = (
        letters,
        _letters(small),
        _letters(large),
        is_letter,
        at,
        size,
        _letters("".join(keys)),
        goal_at,
        lines,
        groups,
    )
    return Examples(keys, extractors, letters, lines, loops.Letters(*arrays))


class _Cased(dict[int, int]):
    """Letters in a casing, for `str.translate`; filled as they are asked for."""

    def __init__(self, case: Callable[[str], str]) -> None:
        super().__init__()
        self.case = case

    def __missing__(self, point: int) -> int:
        cased_letter = self.case(chr(point))
        self[point] = ord(cased_letter) if len(cased_letter) == 1 else NO_LETTER
        return self[point]


_SMALL, _LARGE = _Cased(lower), _Cased(upper)
_IS_LETTER = np.array([chr(point).isalpha() for point in range(128)])


def _letters(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _lines(extractors: Sequence[_Steps], size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n_steps = np.array([_n_steps(steps) for steps in extractors], np.int64)
    groups = np.searchsorted(n_steps, np.arange(MAX_STEPS + 2))
    return loops.ordered_lines(groups, size)
