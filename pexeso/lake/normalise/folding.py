"""Folding of characters: Unicode forms, accents and punctuation, on arrays of texts."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.normalise.characters import (
    INVISIBLE,
    LETTER,
    MARK,
    NUMBER,
    change_characters,
    classes_of,
)

COMMA = ","
"""The word that stands for a comma after `separate_words`: it ends a part of an address."""

_PLAIN = r"^[0-9A-Za-z]+(?: [0-9A-Za-z]+)*$"
_APOSTROPHES = "'`\u2019\u02bc"
_MINUS_SIGNS = "-\u2212"
_ACCENTS = (0x300, 0x36F)
# Blocks of Unicode whose letters take accents that may be dropped: Latin and Greek, with their
# extensions.
_ACCENTED_SCRIPTS = (
    (0x41, 0x24F),
    (0x370, 0x3FF),
    (0x1E00, 0x1FFF),
    (0x2C60, 0x2C7F),
    (0xA720, 0xA7FF),
)


def only_where(
    values: pa.StringArray,
    mask: pa.BooleanArray,
    change: Callable[[pa.StringArray], pa.StringArray],
) -> pa.StringArray:
    """Return `values` with `change` applied to those that `mask` selects.

    `mask` holds no nulls. `change` maps an array to an array.
    """
    n_chosen = mask.true_count
    if n_chosen == 0:
        return values
    if n_chosen == len(values):
        return change(values)
    return pc.replace_with_mask(values, mask, change(values.filter(mask)))


def fold_unicode(
    values: pa.StringArray, *, accents: bool, letters: dict[str, str]
) -> pa.StringArray:
    """Convert texts to Unicode form NFKC, and remove Latin and Greek accents if `accents`.

    Marks of other scripts stay: there they tell letters apart (Cyrillic й, the vowels of Indian
    scripts).
    """

    def fold(texts: pa.StringArray) -> pa.StringArray:
        if accents:
            texts = change_characters(pc.utf8_normalize(texts, form="NFKD"), _without_accents)
            if pc.all(pc.string_is_ascii(texts)).as_py():
                return texts
            data = texts.buffers()[2].to_pybytes()
            spellings = letters | {
                letter.upper(): plain.upper() for letter, plain in letters.items()
            }
            for letter, plain in spellings.items():
                if letter.encode() in data:
                    texts = pc.replace_substring(texts, letter, plain)
        return pc.utf8_normalize(texts, form="NFKC")

    return only_where(values, pc.invert(pc.string_is_ascii(values)), fold)


def _without_accents(points: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    is_accent = (points >= _ACCENTS[0]) & (points <= _ACCENTS[1])
    # The base of a run of accents is the last character before it; -1 where a text starts with one.
    base = np.maximum.accumulate(np.where(is_accent, -1, np.arange(len(points))))
    base_points = points[np.maximum(base, 0)]
    is_foldable = np.zeros(len(points), dtype=bool)
    for first, last in _ACCENTED_SCRIPTS:
        is_foldable |= (base_points >= first) & (base_points <= last)
    mask = ~(is_accent & is_foldable) & ~_is_end(rows)
    return points[mask], rows[mask]


def separate_words(values: pa.StringArray, *, join_initials: bool = True) -> pa.StringArray:
    """Reduce texts to words separated by single spaces.

    Commas and semicolons remain as separate words.

    Letters, marks and digits of every script stay. So do a decimal point, the minus sign of a
    number that is the whole value's start, and ``+`` and ``#`` behind a letter ("C++"). Apostrophes
    inside words and dots inside acronyms go without a trace ("O'Neil", "U.S.A."), thousands
    separators too; ``&`` becomes "and"; all else becomes a space.

    Examples
    --------
    >>> texts = pa.array(["U.S.A. (est. 1776)", "AT&T,  Inc.", "C++", "-1,234.50"])
    >>> separate_words(texts).to_pylist()
    ['USA est 1776', 'AT and T , Inc', 'C++', '-1234.50']
    """

    def separate(texts: pa.StringArray) -> pa.StringArray:
        return change_characters(
            pc.replace_substring(texts, "&", " and "), partial(_words, join_initials=join_initials)
        )

    return only_where(values, pc.invert(pc.match_substring_regex(values, _PLAIN)), separate)


def _words(
    points: np.ndarray, rows: np.ndarray, *, join_initials: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Keep the characters of words and commas.

    One space precedes each word except the first of a row.
    """
    classes = classes_of(points)
    if (classes == INVISIBLE).any():
        visible = classes != INVISIBLE
        points, rows, classes = points[visible], rows[visible], classes[visible]
    number = classes == NUMBER
    letter = (classes == LETTER) | (classes == MARK)
    dropped, kept_sign = np.zeros((2, len(points)), dtype=bool)
    # Few texts have signs that are not simply spaces between words.
    signs = set(points[~(letter | number)].tolist())
    if not signs.isdisjoint(map(ord, _MINUS_SIGNS)):
        minus = _is_any(points, _MINUS_SIGNS)
        space = _is_space_behind_minus(points, minus, number)
        is_first = np.concatenate([[True], rows[1:] != rows[:-1]])
        is_number_next = _after(number) | _after(space)
        kept_sign |= is_first & minus & is_number_next
        points = np.where(kept_sign, ord("-"), points)
        dropped |= space
    if not signs.isdisjoint(map(ord, _APOSTROPHES)):
        dropped |= _is_any(points, _APOSTROPHES) & _before(letter) & _after(letter)
    if ord(".") in signs:
        dot = points == ord(".")
        dropped |= _is_dot_of_initials(points, dot, letter, number, join_initials)
        kept_sign |= dot & _before(number) & _after(number)
    if ord(COMMA) in signs:
        after_1, after_2, after_3, after_4 = (_after(number, steps) for steps in (1, 2, 3, 4))
        dropped |= (points == ord(COMMA)) & _before(number) & after_1 & after_2 & after_3 & ~after_4
    if ord("+") in signs or ord("#") in signs:
        plus, sharp = points == ord("+"), points == ord("#")
        first_plus = plus & _before(letter)
        kept_sign |= first_plus | (plus & _before(first_plus)) | (sharp & _before(letter))
    comma = ((points == ord(COMMA)) | (points == ord(";"))) & ~dropped
    # Dropped characters go first: what stood on their two sides becomes one word.
    stays = ~dropped
    points, rows = np.where(comma, ord(COMMA), points)[stays], rows[stays]
    comma, in_word = comma[stays], (letter | number | kept_sign)[stays]
    mask = comma | in_word
    is_start = comma | (in_word & ~_before(in_word))
    points, rows, is_start = points[mask], rows[mask], is_start[mask]
    has_space = is_start & (rows == np.concatenate([[-1], rows[:-1]]))
    source = np.repeat(np.arange(len(points)), 1 + has_space)
    is_space = (
        np.concatenate([source[1:] == source[:-1], [False]]) if len(source) else source.astype(bool)
    )
    return np.where(is_space, ord(" "), points[source]), rows[source]


def _is_dot_of_initials(
    points: np.ndarray,
    dot: np.ndarray,
    letter: np.ndarray,
    number: np.ndarray,
    join_initials: bool,
) -> np.ndarray:
    """Return which dots and spaces stand between letters that stand alone."""
    lone = letter & ~_before(letter | number) & ~_after(letter | number)
    dropped = dot & _before(lone) & _after(lone)
    if not join_initials:
        return dropped
    # The dot behind the second letter tells initials from the end of a sentence.
    between = dot & _before(lone) & _after(points == ord(" ")) & _after(lone, 2) & _after(dot, 3)
    return dropped | between | _before(between)


def _is_space_behind_minus(points: np.ndarray, minus: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Return which spaces stand between a minus sign that starts its value and a number: "- 5"."""
    starts = minus & ~_before(points != ord("\n"))
    return (points == ord(" ")) & _before(starts) & _after(number)


def _is_end(rows: np.ndarray) -> np.ndarray:
    """Return which code points are the newline at the end of each row."""
    return np.concatenate([rows[1:] != rows[:-1], [True]]) if len(rows) else np.zeros(0, dtype=bool)


def _is_any(points: np.ndarray, characters: str) -> np.ndarray:
    flags = points == ord(characters[0])
    for character in characters[1:]:
        flags |= points == ord(character)
    return flags


def _before(flags: np.ndarray) -> np.ndarray:
    """Return for each character whether the flag holds for the one before it."""
    return np.concatenate([[False], flags[:-1]]) if len(flags) else flags


def _after(flags: np.ndarray, steps: int = 1) -> np.ndarray:
    """Return for each character whether the flag holds for the one `steps` behind it."""
    shifted = np.zeros_like(flags)
    shifted[:-steps] = flags[steps:]
    return shifted


def single_spaces(values: pa.StringArray) -> pa.StringArray:
    """Reduce every run of white space to one space and remove it at both ends."""
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(values, r"[\s\pZ]+", " "))
