"""What tells two values apart whose words are nearly the same: numbers, signs, opposites, places.

Two of these on both sides make two values different, however few letters they differ in: Terminal 1
is not Terminal 2, the Northern Region not the Southern one, and Springfield, Illinois not
Springfield, Missouri. A letter that stands alone counts as a number does: Gate B is not Gate C. One
on one side alone does not: "Boeing 747" is near "Boeing"; but a small number behind words is that
of another thing, and "Windows 10" not "Windows". Signs, repeated words, "non", deputies
and women count on one side too: ``AA-`` is not ``AA``, Baden-Baden is not Baden, and a non-smoker
is no smoker. A place with a direction or the like is another place: Inner Mongolia is not Mongolia,
and whatever starts or ends with a direction is not what it would be without: Haute-Savoie.

`pexeso.engine.sparse.marks` says how marks decide. ``opposites.json`` holds words of several
languages, in groups of which a thing can be one: a group has its members, and each member the other
words for it. ``cities.json`` holds other names of large cities by the English ones, normalised
(those of time zones are of the Unicode CLDR): their letters count as those of the English name, so
that they are near it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.spelling import sounds_of
from embed.words import Vocabulary, hash_strings
from pexeso.engine.lists import offsets_of
from pexeso.engine.sparse.marks import (
    BITS_OF_MEMBER,
    EDGE,
    LETTERS_GROUP,
    STRICT_GROUPS,
    Marks,
    marks_in_group,
)
from pexeso.lake.normalise import package_data
from pexeso.lake.normalise.rules import DISTINCTIONS
from pexeso.lake.normalise.territories import default_forms, known_places
from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.compiled import compiled

loops = compiled("pexeso.lake.normalise.loops")

NUMBERS, SIGNS, OPPOSITES, PLACES, REPEATS, _ = DISTINCTIONS

# Groups of opposites of which a word tells a value from one without it.
_ONE_SIDED = {"negation": loops.NEGATION, "deputy": loops.DEPUTY, "women": loops.FEMALE}

# Where members of groups make another thing of what they stand before or behind, which is the same
# without them elsewhere.
_EDGES = {
    **dict.fromkeys(
        [f"{side}{end}" for side in ("north", "south") for end in ("", "east", "west")],
        loops.AT_START | loops.AT_END,
    ),
    **dict.fromkeys(("east", "west", "junior", "male"), loops.AT_START | loops.AT_END),
    **dict.fromkeys(("upper", "lower"), loops.AT_START),
}

# Groups of words by which a place behind them is another: Inner Mongolia.
_GROUPS_OF_PARTS = ("direction", "level", "place", "age", "size")

# Letters of words that mean something else there: "SE" is a form of companies, "Man" Manchester.
_LONGEST_ELSEWHERE = {"direction": 2, "man": 3}

# Words that make another thing of the place that they stand behind, and the places whose people
# write them or not.
_TOWNS = ("city", "state", "tech")
_NO_NAMESAKES = ("new york", "washington", "singapore", "vatican")

_SIGN = r"[<>\x{2264}\x{2265}\x{b1}+#-]"
_SIGNED = (
    r"^[<>\x{2264}\x{2265}\x{b1}-].*[0-9]|^(?:\pL{1,3}|[0-9.]+)[+#-]+$"
    r"|^[<>\x{2264}\x{2265}\x{b1}+#-]+$"
)

# In scripts of which a letter is a sound. Words of five and six letters are so far apart by their
# pairs of letters where one is mistyped that most are not found; of four too many differ in one.
_SHORT_WORD = r"^[\p{Latin}\p{Cyrillic}\p{Greek}\p{Armenian}\p{Georgian}]{5,6}$"
_SHORT_LENGTHS = pa.array([5, 6])


def marks_of(values: pa.LargeStringArray, distinctions: Collection[str]) -> Marks:
    """Return the marks of normalised values, none of them null, by some of `DISTINCTIONS`."""
    text, starts = string_buffers(values)
    none, are_short = np.zeros(0, np.int64), np.zeros(len(values), bool)
    # Patterns of letters of any script take long to prepare, and few values need them.
    is_ascii, length = pc.string_is_ascii(values), pc.utf8_length(values)
    may = pc.indices_nonzero(pc.and_not(pc.is_in(length, _SHORT_LENGTHS), is_ascii))
    if len(may):
        are_short[may] = pc.match_substring_regex(values.take(may), _SHORT_WORD)
    owners = signs = none
    signed = pc.indices_nonzero(pc.match_substring_regex(values, _SIGN))
    if len(signed) and SIGNS in distinctions:
        owners, signs = _signs(values, signed)
    names, cities = known_names(), _city_names()
    forms, letters, sizes = (np.zeros(len(values), np.int64) for _ in range(3))
    members = loops.find_marks(
        text, starts, are_short, owners, signs,
        names.texts, names.opposites, names.edges,
        names.places, names.parts, names.most_words,
        cities.texts, cities.letters, NUMBERS in distinctions, REPEATS in distinctions,
        OPPOSITES in distinctions, PLACES in distinctions, names.negation, forms, letters, sizes,
    )  # fmt: skip
    return Marks(forms, letters, sounds_of(values), offsets_of(sizes), members)


def differences(
    ours: Sequence[str], theirs: Sequence[str], distinctions: Collection[str]
) -> list[str | None]:
    """Return for pairs of normalised values the words by which a rule tells them apart.

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
        # What is at an edge of a piece need not be at one of its value.
        inner = {
            text: {mark for mark in some if mark >> BITS_OF_MEMBER != EDGE}
            for text, some in members.items()
        }
        for at, (one, other) in enumerate(pieces):
            # The whole values come last.
            if result[at] is None and _are_apart(members[one[-1]], members[other[-1]]):
                apart = (
                    (left, right)
                    for left, right in product(one, other)
                    if left not in other[:-1]
                    and right not in one[:-1]
                    and _are_apart(inner[left], inner[right])
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
    left, right = (
        {
            mark >> BITS_OF_MEMBER
            for mark in mine - its
            if mark >> BITS_OF_MEMBER != EDGE or not any(_is_member(mark, some) for some in its)
        }
        for mine, its in ((one, other), (other, one))
    )
    groups = (left & right) | {group for group in left | right if group >= STRICT_GROUPS}
    return bool(groups - {LETTERS_GROUP})


def _is_member(mark: int, other: int) -> bool:
    return (mark ^ other) % (1 << BITS_OF_MEMBER) == 0


def _signs(values: pa.LargeStringArray, rows: pa.UInt64Array) -> tuple[np.ndarray, np.ndarray]:
    """Return which of some values have words with signs, and the mark of each: the signs alone."""
    lists = pc.split_pattern(values.take(rows), " ")
    words = lists.flatten()
    is_signed = pc.match_substring_regex(words, _SIGNED)
    owners = rows.take(pc.list_parent_indices(lists).filter(is_signed))
    texts = pc.replace_substring_regex(words.filter(is_signed), r"[\pL\pM\pN.]+", " ")
    texts = pc.utf8_rtrim_whitespace(texts)  # "< $ 5" is "<5"
    return owners.to_numpy().astype(np.int64), marks_in_group(loops.SIGN, hash_strings(texts))


@dataclass(frozen=True)
class _Names:
    """Words that have opposites and names of places, with the marks of both, 0 for none."""

    texts: object  # loops.Texts
    opposites: np.ndarray
    edges: np.ndarray  # See `loops.find_marks`
    places: np.ndarray
    parts: np.ndarray  # Of words by which a place behind them is another
    most_words: int  # Of a name of a place
    negation: int  # The mark of the word "non"


@cache
def known_names() -> _Names:
    words, groups, members, edges = [], [], [], []
    document = package_data("opposites.json")
    for number, (name, sides) in enumerate(document.items(), start=loops.FIRST_OPPOSITE):
        group = _ONE_SIDED.get(name, number)
        for member, others in sides.items():
            words += [member, *others]
            groups += [group] * (1 + len(others))
            members += [f"{name} {member}"] * (1 + len(others))
            edges += [
                _EDGES.get(member, 0) if len(word) > _LONGEST_ELSEWHERE.get(name, 0) else 0
                for word in (member, *others)
            ]
    places, names = known_places(default_forms)
    phrases = sorted({word.split(" ")[0] for word in words if " " in word})
    towns = pa.array([f"{place} {kind}" for place in _namesakes(places) for kind in _TOWNS])
    sides = [pa.array(words, pa.large_string()), places]
    texts = pa.concat_arrays([*sides, *(pa.array(some, places.type) for some in (phrases, towns))])
    texts = texts.unique()
    hashes = hash_strings(pa.array(members, pa.large_string())), hash_strings(names)
    marks = np.zeros((2, len(texts)), np.int64)
    for row, (side, group, some) in enumerate(
        zip(sides, (np.array(groups), loops.PLACE), hashes, strict=True)
    ):
        at = pc.index_in(side, value_set=texts).to_numpy()
        marks[row, at[::-1]] = marks_in_group(group, some)[::-1]  # of equal ones the first
    at_edges = pc.is_in(texts, pa.array(phrases, texts.type)).to_numpy(False) * loops.STARTS_PHRASE
    at = pc.index_in(sides[0], value_set=texts).to_numpy()
    np.bitwise_or.at(at_edges, at, edges)
    parts = pc.is_in(texts, value_set=pa.array(_words_of_parts(), texts.type))
    parts = np.where(parts.to_numpy(False), marks[0], 0)
    at = pc.index_in(towns.cast(texts.type), value_set=texts).to_numpy()
    parts[at] = np.where(marks[1][at], 0, marks_in_group(loops.PART, hash_strings(texts.take(at))))
    most_words = 1 + pc.max(pc.count_substring(places, " ")).as_py()
    negation = marks[0, pc.index(texts, "non").as_py()]
    at_edges = at_edges.astype(np.uint8)
    return _Names(_findable(texts), marks[0], at_edges, marks[1], parts, most_words, int(negation))


def _namesakes(places: pa.LargeStringArray) -> list[str]:
    """Return the names of places after which towns and universities are named."""
    return [place for place in places.unique().to_pylist() if place not in _NO_NAMESAKES]


def _words_of_parts() -> list[str]:
    """Return the words by which a place behind them is another one; centres are often buildings."""
    document = package_data("opposites.json")
    sides = [item for name in _GROUPS_OF_PARTS for item in document[name].items()]
    return [word for member, others in sides if member != "central" for word in (member, *others)]


@dataclass(frozen=True)
class _Cities:
    """Names of large cities in other languages, and the letters of the English name of each."""

    texts: object
    letters: np.ndarray


@cache
def _city_names() -> _Cities:
    pairs = {
        name: city
        for cities in package_data("cities.json").values()
        for city, names in cities.items()
        for name in names
    }
    names, cities = (pa.array(side, pa.large_string()) for side in (pairs, pairs.values()))
    letters = hash_strings(pc.replace_substring(cities, " ", ""))
    return _Cities(_findable(names), letters.view(np.int64))


def _findable(texts: pa.LargeStringArray) -> object:
    """Return texts as compiled loops look them up."""
    hashes, rows, _ = Vocabulary(texts).sorted_hashes
    return loops.Texts(hashes, rows, *string_buffers(texts))
