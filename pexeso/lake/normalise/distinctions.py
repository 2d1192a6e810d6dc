"""What tells two values apart whose words are nearly the same: numbers, signs, opposites, places.

Two of these on both sides make two values different, however few letters they differ in: Terminal 1
is not Terminal 2, the Northern Region not the Southern one, and Springfield, Illinois not
Springfield, Missouri. One on one side alone does not: "Windows 10" is near "Windows". Signs and
repeated words count on one side too: ``AA-`` is not ``AA``, and Baden-Baden is not Baden.

`pexeso.engine.sparse.marks` says how marks decide. ``opposites.json`` holds words of several
languages, in groups of which a thing can be one: a group has its members, and each member the other
words for it. ``cities.json`` holds other names of large cities by the English ones, normalised
(those of time zones are of the Unicode CLDR): their letters count as those of the English name, so
that they are near it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.spelling import sounds_of
from embed.words import Vocabulary, hash_strings
from pexeso.engine.lists import ranges
from pexeso.engine.sparse.marks import (
    BITS_OF_MEMBER,
    LETTERS_GROUP,
    STRICT_GROUPS,
    Marks,
    marks_in_group,
)
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
_ROMAN_ENDS = {"i": "1", "v": "5", "x": "10", "xl": "40", "l": "50"}  # as the last of several words
_SIGNED = (
    r"^[<>\x{2264}\x{2265}\x{b1}-].*[0-9]|^(?:\pL{1,3}|[0-9.]+)[+#-]+$"
    r"|^[<>\x{2264}\x{2265}\x{b1}+#-]+$"
)
_MAX_LETTERS = 6
# In scripts of which a letter is a sound.
_SHORT_WORD = r"^[\p{Latin}\p{Cyrillic}\p{Greek}\p{Armenian}\p{Georgian}]{5,6}$"
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_REPEATS = np.arange(2, 5)  # of a value of several words
_HASHES_OF_REPEATS = mixed(_REPEATS.astype(np.uint64))
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
    sizes : numpy.ndarray of shape (n,), int64
    owners : numpy.ndarray, int64
        Of each occurrence, its value.
    """

    distinct: pa.LargeStringArray
    ids: np.ndarray
    offsets: np.ndarray
    sizes: np.ndarray
    owners: np.ndarray

    @classmethod
    def of(cls, values: pa.LargeStringArray) -> _Words:
        lists = pc.split_pattern(values, " ")
        encoded = lists.flatten().dictionary_encode()
        offsets = lists.offsets.to_numpy().astype(np.int64)
        sizes = np.diff(offsets)
        return cls(
            encoded.dictionary.cast(pa.large_string()),
            encoded.indices.to_numpy().astype(np.int64),
            offsets,
            sizes,
            np.repeat(np.arange(len(sizes)), sizes),
        )


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
    # All texts are hashed together: of each kind the group, the values and a text of each.
    kinds: list[tuple[int, np.ndarray, pa.LargeStringArray]] = []
    holders = is_alone = np.zeros(0, np.int64)
    if NUMBERS in distinctions:
        holders, numbers, is_alone = _numbers(words.distinct)
        kinds += [(_NUMBER, holders, numbers), (_NUMBER, *_roman_ends(words))]
    if SIGNS in distinctions:
        kinds.append((_SIGN, *_signs(words)))
    if REPEATS in distinctions:
        kinds.append((_REPEATED_WORD, *_repeated_words(words)))
    kinds.append((LETTERS_GROUP, *_without_a_letter(words)))
    texts = [
        values,
        pc.replace_substring(_english_cities(values), " ", ""),
        *(texts for *_, texts in kinds),
    ]
    ends = np.cumsum([len(some) for some in texts])[:-1]
    forms, letters, *hashes = np.split(hash_strings(pa.concat_arrays(texts)), ends)
    parts = [(group, owners, some) for (group, owners, _), some in zip(kinds, hashes, strict=True)]
    if NUMBERS in distinctions:
        sequences = _sequences(words, is_alone[words.ids], holders, hashes[0])
        parts[0] = (_NUMBER, *_of_words(words, holders, hashes[0]))
        parts = [_in_short_values(words, *part) for part in (*parts[:2], sequences)] + parts[2:]
    if REPEATS in distinctions:
        parts.append(_repeated_values(words))
    groups = np.repeat([group for group, *_ in parts], [len(owners) for _, owners, _ in parts])
    none = np.zeros(0, np.int64)
    owners = np.concatenate([none, *(owners for _, owners, _ in parts)])
    hashed = np.concatenate([none.view(np.uint64), *(some for *_, some in parts)])
    named, marks = _names(words, OPPOSITES in distinctions, PLACES in distinctions)
    return Marks.of_pairs(
        forms.view(np.int64),
        letters.view(np.int64),
        sounds_of(values),
        np.concatenate([owners, named]),
        np.concatenate([marks_in_group(groups, hashed), marks]),
    )


def differences(
    ours: Sequence[str], theirs: Sequence[str], distinctions: Collection[str]
) -> list[str | None]:
    """Return for pairs of normalised values the words by which a rule tells them apart.

    Examples
    --------
    >>> differences(["apollo 11", "oslo"], ["apollo 13", "oslo city"], DISTINCTIONS)
    ['11 against 13', None]
    """
    pieces = [(_pieces(one), _pieces(other)) for one, other in zip(ours, theirs, strict=True)]
    texts = sorted({text for sides in pieces for side in sides for text in side})
    result: list[str | None] = [None] * len(pieces)
    for rule in DISTINCTIONS:
        if rule not in distinctions:
            continue
        marks = marks_of(pa.array(texts, pa.large_string()), [rule])
        members = {
            text: set(marks.members[begin:end].tolist())
            for text, begin, end in zip(texts, marks.offsets[:-1], marks.offsets[1:], strict=True)
        }
        for at, (one, other) in enumerate(pieces):
            # The whole values come last.
            if result[at] is None and _are_apart(members[one[-1]], members[other[-1]]):
                apart = (
                    (left, right)
                    for left, right in product(one, other)
                    if left not in other[:-1]
                    and right not in one[:-1]
                    and _are_apart(members[left], members[right])
                )
                left, right = next(apart, (one[-1], other[-1]))
                result[at] = f"{left} against {right}"
    return result


def _pieces(value: str) -> list[str]:
    """Return the words of a value, what it ends with, and it, the shortest first."""
    words = value.split(" ")
    ends = [" ".join(words[-size:]) for size in range(2, len(words))]
    return [*words, *ends, value]


def _are_apart(one: set[int], other: set[int]) -> bool:
    left, right = ({mark >> BITS_OF_MEMBER for mark in some} for some in (one - other, other - one))
    groups = (left & right) | {group for group in left | right if group >= STRICT_GROUPS}
    return bool(groups - {LETTERS_GROUP})


def _english_cities(values: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return values with the English name in the place of other names of large cities."""
    vocabulary, cities = _city_names()
    rows = vocabulary.find(values)
    is_city = rows >= 0
    if not is_city.any():
        return values
    return pc.replace_with_mask(values, pa.array(is_city), cities.take(pa.array(rows[is_city])))


@cache
def _city_names() -> tuple[Vocabulary, pa.LargeStringArray]:
    """Return the names in ``cities.json``, and the English name of each."""
    page = files("pexeso.lake.normalise").joinpath("cities.json")
    pairs = [
        (name, city)
        for cities in json.loads(page.read_text("utf-8")).values()
        for city, names in cities.items()
        for name in names
    ]
    names, cities = (
        pa.array(side, pa.large_string()) for side in zip(*dict(pairs).items(), strict=True)
    )
    return Vocabulary(names), cities


# The group, the values that have a mark of it, and the hash of each.
Part = tuple[int, np.ndarray, np.ndarray]


def _in_short_values(words: _Words, group: int, owners: np.ndarray, hashes: np.ndarray) -> Part:
    is_short = words.sizes[owners] <= _MAX_WORDS_WITH_NUMBER
    return group, owners[is_short], hashes[is_short]


def _without_a_letter(words: _Words) -> tuple[np.ndarray, pa.LargeStringArray]:
    """Return the values that are one short word, and these words, whole and without each letter.

    Words of five and six letters are so far apart by their pairs of letters where one is mistyped
    that most are not found; of four letters too many differ in one. The first letter is seldom
    mistyped, and stays.
    """
    is_short = pc.match_substring_regex(words.distinct, _SHORT_WORD)
    alone = np.flatnonzero(words.sizes == 1)
    ids = words.ids[words.offsets[alone]]
    some = is_short.to_numpy(zero_copy_only=False)[ids]
    owners, texts = alone[some], words.distinct.take(pa.array(ids[some]))
    left, holders = [texts], [owners]
    for place in range(1, _MAX_LETTERS):
        reaches = pc.greater(pc.utf8_length(texts), place)
        longer = texts.filter(reaches)
        rest = pc.utf8_slice_codeunits(longer, place + 1, _MAX_LETTERS)
        begin = pc.utf8_slice_codeunits(longer, 0, place)
        left.append(pc.binary_join_element_wise(begin, rest, pa.scalar("", pa.large_string())))
        holders.append(owners[reaches.to_numpy(zero_copy_only=False)])
    return np.concatenate(holders), pa.concat_arrays(left)


def _of_words(
    words: _Words, holders: np.ndarray, hashes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values that have words, ascending, and the hashes of these."""
    counts = np.bincount(holders, minlength=len(words.distinct))
    sizes = counts[words.ids]
    return (
        np.repeat(words.owners, sizes),
        hashes[ranges((np.cumsum(counts) - counts)[words.ids], sizes)],
    )


def _numbers(texts: pa.LargeStringArray) -> tuple[np.ndarray, pa.LargeStringArray, np.ndarray]:
    """Return the words that hold numbers, ascending; the numbers; and which words are one alone."""
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
    is_number = pc.match_substring_regex(numbers, "[0-9]")
    is_alone = pc.match_substring_regex(texts, r"^-?[0-9.]+$").to_numpy(zero_copy_only=False)
    return holders[is_number.to_numpy(zero_copy_only=False)], numbers.filter(is_number), is_alone


def _roman_ends(words: _Words) -> tuple[np.ndarray, pa.LargeStringArray]:
    """Return values that end with a numeral of one letter, and its number: "World War I"."""
    row = pc.index_in(words.distinct, value_set=pa.array([*_ROMAN_ENDS], pa.large_string()))
    row_of_word = pc.fill_null(row, -1).to_numpy()
    last = row_of_word[words.ids[words.offsets[1:] - 1]]
    owners = np.flatnonzero((last >= 0) & (words.sizes > 1))
    numbers = pa.array([*_ROMAN_ENDS.values()], pa.large_string())
    return owners, numbers.take(pa.array(last[owners]))


def _sequences(
    words: _Words, is_number: np.ndarray, holders: np.ndarray, hashes: np.ndarray
) -> Part:
    """Return the hashes of runs of numbers in their order: "2 1" is not "1 2"."""
    hash_of_word = np.zeros(len(words.distinct), np.uint64)
    hash_of_word[holders] = hashes
    at = np.flatnonzero(is_number)
    owners = words.owners[at]
    is_start = np.ones(len(at), bool)
    is_start[1:] = (at[1:] != at[:-1] + 1) | (owners[1:] != owners[:-1])
    starts = np.flatnonzero(is_start)
    sizes = np.diff(np.append(starts, len(at)))
    is_run = sizes > 1
    if not is_run.any():
        return _SEQUENCE, owners[:0], hash_of_word[:0]
    position = np.arange(len(at)) - np.repeat(starts, sizes)
    powers = np.cumprod(np.full(int(sizes.max()), _MULTIPLIER, np.uint64))
    sums = np.add.reduceat(hash_of_word[words.ids[at]] * powers[position], starts)
    return _SEQUENCE, owners[starts][is_run], mixed(sums[is_run])


def _signs(words: _Words) -> tuple[np.ndarray, pa.LargeStringArray]:
    has_sign = pc.match_substring_regex(words.distinct, r"[<>\x{2264}\x{2265}\x{b1}+#-]")
    signed = pc.and_(has_sign, pc.match_substring_regex(words.distinct, _SIGNED))
    at = np.flatnonzero(signed.to_numpy(zero_copy_only=False)[words.ids])
    texts = words.distinct.take(pa.array(words.ids[at]))
    return words.owners[at], pc.replace_substring_regex(texts, r"[\pL\pM\pN.]+", " ")


@dataclass(frozen=True)
class _Names:
    """Words that have opposites and names of places, with the marks of both, 0 where there is none.

    Attributes
    ----------
    texts : Vocabulary
    opposites, places : numpy.ndarray, int64
        The last is that of a text that is not there.
    ends : dict of int to pyarrow.LargeStringArray
        The last words of names of places by the number of their words, the largest first.
    """

    texts: Vocabulary
    opposites: np.ndarray
    places: np.ndarray
    ends: dict[int, pa.LargeStringArray]


@cache
def known_names() -> _Names:
    document = json.loads(
        files("pexeso.lake.normalise").joinpath("opposites.json").read_text("utf-8")
    )
    words, groups, members = [], [], []
    for group, (name, sides) in enumerate(document.items(), start=_FIRST_OPPOSITE):
        for member, others in sides.items():
            words += [member, *others]
            groups += [group] * (1 + len(others))
            members += [f"{name} {member}"] * (1 + len(others))
    normaliser = Normaliser().switched(off=["territories"])
    places, names = known_places(normaliser.normalise_columns)
    n_words = pc.add(pc.count_substring(places, " "), 1).to_numpy()
    last = pc.replace_substring_regex(places, "^.* ", "")
    ends = {
        length: last.filter(pa.array(n_words == length)).unique()
        for length in sorted(set(n_words.tolist()), reverse=True)
    }
    sides = [pa.array(words, pa.large_string()), places]
    texts = pa.concat_arrays(sides).unique()
    hashes = hash_strings(pa.array(members, pa.large_string())), hash_strings(names)
    marks = np.zeros((2, len(texts) + 1), np.int64)
    for row, (side, group, some) in enumerate(
        zip(sides, (np.array(groups), _PLACE), hashes, strict=True)
    ):
        at = pc.index_in(side, value_set=texts).to_numpy()
        marks[row, at[::-1]] = marks_in_group(group, some)[::-1]  # of equal ones the first
    return _Names(Vocabulary(texts), *marks, ends)


def _names(words: _Words, opposites: bool, places: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the marks of opposites, and of the longest name of a place at the end of each value.

    They are the values that have a mark, and the marks.
    """
    known, distinct = known_names(), words.distinct
    last = words.ids[words.offsets[1:] - 1]
    texts, owners, lengths = [distinct], [], []
    for length, ends in known.ends.items() if places else ():
        is_end = pc.is_in(distinct, ends).to_numpy(zero_copy_only=False)
        some = np.flatnonzero((words.sizes >= length) & is_end[last])
        at = words.offsets[1:][some] - length
        pieces = [distinct.take(pa.array(words.ids[at + k])) for k in range(length)]
        texts.append(pc.binary_join_element_wise(*pieces, pa.scalar(" ", pa.large_string())))
        owners.append(some)
        lengths.append(np.full(len(some), length))
    rows = known.texts.find(pa.concat_arrays(texts))
    none = np.zeros(0, np.int64)
    marks = known.opposites[rows[: len(distinct)]][words.ids] if opposites else none
    at = np.flatnonzero(marks)
    owner, length = (np.concatenate([none, *parts]) for parts in (owners, lengths))
    place = known.places[rows[len(distinct) :]]
    owner, length, place = owner[place != 0], length[place != 0], place[place != 0]
    # The longest come first. "UK and Ireland" is more than one place.
    owner, first = np.unique(owner, return_index=True)
    length, place = length[first], place[first]
    is_and = pc.equal(distinct, "and").to_numpy(zero_copy_only=False)
    before = words.ids[np.maximum(words.offsets[1:][owner] - length - 1, 0)]
    is_one = (words.sizes[owner] == length) | ~is_and[before]
    return (
        np.concatenate([words.owners[at], owner[is_one]]),
        np.concatenate([marks[at], place[is_one]]),
    )


def _repeated_words(words: _Words) -> tuple[np.ndarray, pa.LargeStringArray]:
    """Return short values that begin with a word twice, and it: in long ones it is a slip."""
    short = np.flatnonzero((words.sizes > 1) & (words.sizes <= _MAX_WORDS_WITH_REPEAT))
    first = words.offsets[short]
    repeats = words.ids[first] == words.ids[first + 1]
    return short[repeats], words.distinct.take(pa.array(words.ids[first[repeats]]))


def _repeated_values(words: _Words) -> Part:
    """Return values of several words that are the same words twice or more."""
    holders, hashes = [], []
    starts = words.offsets[:-1]
    place = np.arange(len(words.ids)) - starts[words.owners]
    for times, hashed in zip(_REPEATS, _HASHES_OF_REPEATS, strict=True):
        may = (words.sizes % times == 0) & (words.sizes > times)
        some = may[words.owners]
        owners = words.owners[some]
        first = starts[owners] + place[some] % (words.sizes // times)[owners]
        may[owners[words.ids[some] != words.ids[first]]] = False
        holders.append(np.flatnonzero(may))
        hashes.append(np.full(len(holders[-1]), hashed))
    return _REPEATED_VALUE, np.concatenate(holders), np.concatenate(hashes)
