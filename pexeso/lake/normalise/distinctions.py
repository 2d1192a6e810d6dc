"""What tells two values apart whose words are nearly the same: numbers, signs, opposites, places.

Two of these on both sides make two values different, however few letters they differ in: Terminal 1
is not Terminal 2, the Northern Region not the Southern one, and Springfield, Illinois not
Springfield, Missouri. One on one side alone does not: "Windows 10" is near "Windows". Signs and
repeated words count on one side too: ``AA-`` is not ``AA``, and Baden-Baden is not Baden.

`pexeso.engine.sparse.marks` says how marks decide. ``opposites.json`` holds words of several
languages, in groups of which a thing can be one: a group has its members, and each member the other
words for it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.spelling import sounds_of
from embed.words import Vocabulary, hash_strings
from pexeso.engine.lists import offsets_of, ranges
from pexeso.engine.sparse.marks import STRICT_GROUPS, Marks, marks_in_group
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.normalise.rules import DISTINCTIONS
from pexeso.lake.normalise.territories import known_places
from pexeso.runtime.ranges import mixed

NUMBERS, SIGNS, OPPOSITES, PLACES, REPEATS, _ = DISTINCTIONS

_NUMBER, _SEQUENCE, _PLACE, _FIRST_OPPOSITE = 1, 2, 3, 8
_SIGN, _REPEATED_WORD, _REPEATED_VALUE = STRICT_GROUPS, STRICT_GROUPS + 1, STRICT_GROUPS + 2

_NUMBER_WORDS = {
    **{"one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6"},
    **{"seven": "7", "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12"},
}
_ROMAN_ENDS = {"i": "1", "v": "5", "x": "10"}  # as the last of several words
_SIGNED = (
    r"^[<>\x{2264}\x{2265}\x{b1}-].*[0-9]|^(?:\pL{1,3}|[0-9.]+)[+#-]+$"
    r"|^[<>\x{2264}\x{2265}\x{b1}+#-]+$"
)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MAX_REPEATS = 4  # of a value of several words
_MAX_WORDS_WITH_REPEAT = 3

# Numbers of longer values describe more often than they name: sizes, models, years.
_MAX_WORDS_WITH_NUMBER = 8


@dataclass(frozen=True)
class _Words:
    """The words of n values in their order.

    Attributes
    ----------
    distinct : pyarrow.LargeStringArray
    ids : numpy.ndarray, int64
        Of each occurrence, its position in `distinct`.
    offsets : numpy.ndarray of shape (n + 1,), int64
    """

    distinct: pa.LargeStringArray
    ids: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, values: pa.LargeStringArray) -> _Words:
        lists = pc.split_pattern(values, " ")
        encoded = lists.flatten().dictionary_encode()
        sizes = np.diff(lists.offsets.to_numpy()).astype(np.int64)
        return cls(
            encoded.dictionary.cast(pa.large_string()),
            encoded.indices.to_numpy().astype(np.int64),
            offsets_of(sizes),
        )

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.offsets)

    @property
    def owners(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.offsets) - 1), self.sizes)


def marks_of(values: pa.LargeStringArray, distinctions: Collection[str]) -> Marks:
    """Return the marks of normalised values.

    Parameters
    ----------
    values
        Length n, without nulls.
    distinctions
        Which of `DISTINCTIONS` are made.
    """
    if not len(values):
        return Marks.none(0)
    words = _Words.of(values)
    parts = []
    if NUMBERS in distinctions:
        is_short = words.sizes <= _MAX_WORDS_WITH_NUMBER
        parts += [
            (owners[is_short[owners]], marks[is_short[owners]]) for owners, marks in _numbers(words)
        ]
    if SIGNS in distinctions:
        parts.append(_of_words(words, *_signs(words.distinct)))
    if OPPOSITES in distinctions:
        parts.append(_of_words(words, *_opposites(words.distinct)))
    if PLACES in distinctions:
        parts.append(_places(words))
    if REPEATS in distinctions:
        parts += [_repeated_words(words), *_repeated_values(words)]
    nothing = np.zeros(0, np.int64)
    owners, marks = (np.concatenate(side) for side in zip((nothing, nothing), *parts, strict=True))
    together = pc.replace_substring(values, " ", "")
    forms, letters = (hash_strings(texts).view(np.int64) for texts in (values, together))
    return Marks.of_pairs(forms, letters, sounds_of(values), owners, marks)


Marked = tuple[np.ndarray, np.ndarray]  # the value, or word, that has each mark, and the marks


def _of_words(words: _Words, holders: np.ndarray, marks: np.ndarray) -> Marked:
    """Return the marks of values, given those of distinct words."""
    order = np.argsort(holders, kind="stable")
    offsets = offsets_of(np.bincount(holders, minlength=len(words.distinct)))
    sizes = np.diff(offsets)[words.ids]
    return np.repeat(words.owners, sizes), marks[order][ranges(offsets[words.ids], sizes)]


def _numbers(words: _Words) -> list[Marked]:
    """Return marks of numbers, and of runs of them in their order ("2 1" is not "1 2")."""
    texts = words.distinct
    table = pa.array([*_NUMBER_WORDS], pa.large_string())
    spoken = pc.index_in(texts, value_set=table)
    digits = pa.array([*_NUMBER_WORDS.values()], pa.large_string()).take(spoken)
    texts = pc.coalesce(digits, texts)
    has_digit = np.flatnonzero(
        pc.match_substring_regex(texts, "[0-9]").to_numpy(zero_copy_only=False)
    )
    pieces = pc.split_pattern_regex(texts.take(pa.array(has_digit)), r"[^0-9.]+|\.(?:[^0-9]|$)")
    holders = np.repeat(has_digit, np.diff(pieces.offsets.to_numpy()))
    numbers = pieces.flatten()
    for pattern, replacement in ((r"^0+([0-9])", r"\1"), (r"(\.[0-9]*?)0+$", r"\1"), (r"\.$", "")):
        numbers = pc.replace_substring_regex(numbers, pattern, replacement)
    is_number = pc.match_substring_regex(numbers, "[0-9]").to_numpy(zero_copy_only=False)
    holders, hashes = holders[is_number], hash_strings(numbers)[is_number]
    alone = pc.match_substring_regex(texts, r"^-?[0-9.]+$").to_numpy(zero_copy_only=False)
    hash_of_word = np.zeros(len(texts), np.uint64)
    hash_of_word[holders] = hashes
    return [
        _of_words(words, holders, marks_in_group(_NUMBER, hashes)),
        _roman_ends(words),
        _sequences(words, alone[words.ids], hash_of_word[words.ids]),
    ]


def _roman_ends(words: _Words) -> Marked:
    """Return the marks of values that end with a numeral of one letter: "World War I"."""
    row = pc.index_in(words.distinct, value_set=pa.array([*_ROMAN_ENDS], pa.large_string()))
    row_of_word = pc.fill_null(row, -1).to_numpy()
    last = row_of_word[words.ids[words.offsets[1:] - 1]]
    owners = np.flatnonzero((last >= 0) & (words.sizes > 1))
    hashes = hash_strings(pa.array([*_ROMAN_ENDS.values()], pa.large_string()))
    return owners, marks_in_group(_NUMBER, hashes[last[owners]])


def _sequences(words: _Words, is_number: np.ndarray, hashes: np.ndarray) -> Marked:
    at = np.flatnonzero(is_number)
    owners = words.owners[at]
    is_start = np.ones(len(at), bool)
    is_start[1:] = (at[1:] != at[:-1] + 1) | (owners[1:] != owners[:-1])
    starts = np.flatnonzero(is_start)
    sizes = np.diff(np.append(starts, len(at)))
    if not len(starts):
        return owners, np.zeros(0, np.int64)
    position = np.arange(len(at)) - np.repeat(starts, sizes)
    powers = np.cumprod(np.full(int(sizes.max()), _MULTIPLIER, np.uint64))
    sums = np.add.reduceat(hashes[at] * powers[position], starts)
    is_run = sizes > 1
    return owners[starts][is_run], marks_in_group(_SEQUENCE, mixed(sums[is_run]))


def _signs(texts: pa.LargeStringArray) -> Marked:
    has_sign = pc.match_substring_regex(texts, r"[<>\x{2264}\x{2265}\x{b1}+#-]")
    signed = pc.and_(has_sign, pc.match_substring_regex(texts, _SIGNED))
    holders = np.flatnonzero(signed.to_numpy(zero_copy_only=False))
    signs = pc.replace_substring_regex(texts.take(pa.array(holders)), r"[\pL\pM\pN.]+", " ")
    return holders, marks_in_group(_SIGN, hash_strings(signs))


@cache
def _opposite_words() -> tuple[Vocabulary, np.ndarray]:
    """Return the words of groups of opposites, and the mark of each."""
    document = json.loads(
        files("pexeso.lake.normalise").joinpath("opposites.json").read_text("utf-8")
    )
    words, groups, members = [], [], []
    for group, (name, sides) in enumerate(document.items(), start=_FIRST_OPPOSITE):
        for member, others in sides.items():
            words += [member, *others]
            groups += [group] * (1 + len(others))
            members += [f"{name} {member}"] * (1 + len(others))
    hashes = hash_strings(pa.array(members, pa.large_string()))
    marks = np.zeros(len(words), np.int64)
    for group in set(groups):
        of_group = np.array(groups) == group
        marks[of_group] = marks_in_group(group, hashes[of_group])
    return Vocabulary(pa.array(words, pa.large_string())), marks


def _opposites(texts: pa.LargeStringArray) -> Marked:
    vocabulary, marks = _opposite_words()
    rows = vocabulary.find(texts)
    holders = np.flatnonzero(rows >= 0)
    return holders, marks[rows[holders]]


@cache
def _place_names() -> tuple[Vocabulary, np.ndarray, dict[int, pa.LargeStringArray]]:
    """Return names of places, the mark of each, and the last words of names by their lengths."""
    normaliser = Normaliser().switched(off=["territories"])
    texts, names = known_places(normaliser.normalise_columns)
    n_words = pc.add(pc.count_substring(texts, " "), 1).to_numpy()
    last = pc.replace_substring_regex(texts, "^.* ", "")
    ends = {
        length: last.filter(pa.array(n_words == length)).unique()
        for length in sorted(set(n_words.tolist()), reverse=True)
    }
    return Vocabulary(texts), marks_in_group(_PLACE, hash_strings(names)), ends


def _places(words: _Words) -> Marked:
    """Return the marks of the longest name of a place that each value ends with."""
    vocabulary, marks, ends = _place_names()
    sizes, last = words.sizes, words.ids[words.offsets[1:] - 1]
    undecided = np.ones(len(sizes), bool)
    is_and = pc.equal(words.distinct, "and").to_numpy(zero_copy_only=False)
    owners, parts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for length, last_words in ends.items():
        is_end = pc.is_in(words.distinct, last_words).to_numpy(zero_copy_only=False)
        some = np.flatnonzero(undecided & (sizes >= length) & is_end[last])
        before = words.ids[np.maximum(words.offsets[1:][some] - length - 1, 0)]
        at = ranges(words.offsets[1:][some] - length, np.full(len(some), length))
        pieces = [words.distinct.take(pa.array(words.ids[at[k::length]])) for k in range(length)]
        rows = vocabulary.find(
            pc.binary_join_element_wise(*pieces, pa.scalar(" ", pa.large_string()))
        )
        some, before, rows = some[rows >= 0], before[rows >= 0], rows[rows >= 0]
        undecided[some] = False
        # "UK and Ireland" is more than one place.
        is_one = (sizes[some] == length) | ~is_and[before]
        owners.append(some[is_one])
        parts.append(marks[rows[is_one]])
    return np.concatenate(owners), np.concatenate(parts)


def _repeated_words(words: _Words) -> Marked:
    """Return marks of short values that begin with a word twice: in long ones it is a slip."""
    short = np.flatnonzero((words.sizes > 1) & (words.sizes <= _MAX_WORDS_WITH_REPEAT))
    first = words.offsets[short]
    repeats = words.ids[first] == words.ids[first + 1]
    marks = marks_in_group(_REPEATED_WORD, hash_strings(words.distinct))
    return short[repeats], marks[words.ids[first[repeats]]]


def _repeated_values(words: _Words) -> list[Marked]:
    """Return marks of values of several words that are the same words twice or more."""
    parts = []
    owners, sizes, starts = words.owners, words.sizes, words.offsets[:-1]
    place = np.arange(len(words.ids)) - starts[owners]
    for times in range(2, _MAX_REPEATS + 1):
        may = (sizes % times == 0) & (sizes > times)
        some = may[owners]
        period = (sizes // times)[owners[some]]
        first = starts[owners[some]] + place[some] % period
        differs = owners[some][words.ids[some] != words.ids[first]]
        may[differs] = False
        holders = np.flatnonzero(may)
        hashes = mixed(np.full(len(holders), times, np.uint64))
        parts.append((holders, marks_in_group(_REPEATED_VALUE, hashes)))
    return parts
