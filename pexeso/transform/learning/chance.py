"""How many keys a program would hit if it wrote letters at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log2

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import offsets_of
from pexeso.runtime.compiled import compiled
from pexeso.runtime.ranges import mixed
from pexeso.transform.texts import n_common, sample_texts

loops = compiled("pexeso.transform.loops")

_E = 2.718281828459045

# Texts or keys above which a sample is looked at, drawn by what they are.
_MANY = 20_000

_SIGN, _LETTER, _DIGIT = 0, 1, 2


def hits_by_chance(
    written: pa.Array | Sequence[str], keys: pa.Array | Sequence[str], following: float = 1.0
) -> float:
    """Return how many keys would be hit by texts whose letters come by chance.

    A text of chance has the form of one that was written, letters, digits and signs where that has
    them, and each letter and each digit is drawn from those at its place in texts of
    that form, all by themselves. So short codes and numbers hit each other, and words do not. To
    judge a key, the text that equals it is left out, where letters vary each that was ever written
    counts once more, and each is `following` times as likely, as one follows from another; of
    digits the first two that vary, as most of a number does not follow from the rest. The result is
    an upper bound: the sum over the keys of the expected number of texts that equal them, at most 1
    each. Of more than 20,000 texts or keys it is estimated from as many.
    """
    texts, goals = (
        side.cast(pa.large_string())
        if isinstance(side, pa.Array)
        else pa.array(side, pa.large_string())
        for side in (written, keys)
    )
    some = texts.take(pa.array(sample_texts(texts, _MANY)))
    goal_sample = goals.take(pa.array(sample_texts(goals, _MANY, 1)))
    if not len(some) or not len(goal_sample):
        return 0.0
    is_written = pc.is_in(goal_sample, some).to_numpy(zero_copy_only=False)
    letters = _letters(pa.concat_arrays([some, goal_sample]))
    counts = _counts(*letters, len(some))
    scale = len(texts) / len(some)
    expected = loops.expected_hits(*letters, is_written, len(some), scale, *counts, following)
    return float(expected * len(goals) / len(goal_sample))


def _letters(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return letters as numbers, where each text begins, its form, and what each number is."""
    points = np.frombuffer("".join(texts.to_pylist()).encode("utf-32-le"), np.uint32)
    known, codes = np.unique(points, return_inverse=True)
    kinds = np.array(
        [
            _DIGIT if chr(point).isdigit() else _LETTER if chr(point).isalpha() else _SIGN
            for point in known.tolist()
        ],
        np.int8,
    )
    offsets = offsets_of(pc.utf8_length(texts).to_numpy(zero_copy_only=False).astype(np.int64))
    # Signs are themselves, letters and digits their kind.
    shapes = np.where(kinds[codes] == _SIGN, points, kinds[codes]).astype(np.uint32)
    buffers = [None, pa.py_buffer(offsets * 4), pa.py_buffer(shapes)]
    shaped = pa.Array.from_buffers(pa.large_binary(), len(texts), buffers)
    forms = shaped.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), offsets, kinds, forms.astype(np.int64)


def _counts(
    codes: np.ndarray, offsets: np.ndarray, kinds: np.ndarray, forms: np.ndarray, n_written: int
) -> tuple[np.ndarray, ...]:
    """Count what is at each place of the first texts, those that were written, by form.

    A pair is a place and a letter there, as one number. Of each place `n_kinds` are its different
    letters, and `same_as` is the first place of the form that always holds the same letter;
    `n_varied` are the different letters and digits at places where they vary.
    """
    n_letters = len(kinds)
    lengths, forms = np.diff(offsets)[:n_written], forms[:n_written]
    n_texts = np.bincount(forms)
    size = np.zeros(len(n_texts), np.int64)
    size[forms] = lengths
    first_place = offsets_of(size)
    codes = codes[: offsets[n_written]]
    positions = np.arange(len(codes)) - np.repeat(offsets[:n_written], lengths)
    positions += np.repeat(first_place[forms], lengths)
    pairs, n_of_pair = np.unique(positions * n_letters + codes, return_counts=True)
    n_kinds = np.bincount(pairs // n_letters, minlength=first_place[-1])
    varies = n_kinds[pairs // n_letters] > 1
    varies |= np.repeat(n_texts == 1, size)[pairs // n_letters]
    n_varied = np.bincount(kinds[np.unique(pairs[varies] % n_letters)], minlength=3)
    same_as = _same_places(codes, np.repeat(forms, lengths), positions, first_place)
    return n_texts, first_place, pairs, n_of_pair, n_kinds, same_as, n_varied


def _same_places(
    codes: np.ndarray, forms: np.ndarray, positions: np.ndarray, first_place: np.ndarray
) -> np.ndarray:
    """Return for each place the first of its form that holds the same letter in all texts."""
    text = np.cumsum(positions == first_place[forms]).astype(np.uint64)
    sums = np.zeros(first_place[-1], np.uint64)
    with np.errstate(over="ignore"):
        np.add.at(sums, positions, mixed(mixed(text) + codes.astype(np.uint64)))
    form = np.repeat(np.arange(len(first_place) - 1), np.diff(first_place))
    order = np.lexsort((np.arange(len(sums)), sums, form))
    new = np.ones(len(order), bool)
    new[1:] = (sums[order][1:] != sums[order][:-1]) | (form[order][1:] != form[order][:-1])
    same = np.empty(len(order), np.int64)
    same[order] = order[np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    return same


def bits_of_few(
    pieces: Sequence[str], copied: Sequence[str], keys: Sequence[str], n_written: int
) -> float:
    """Return the bits by which the letters copied into keys exceed what luck would give.

    Where a few rows alone are there, `hits_by_chance` knows too little of their letters, and takes
    even long names for chance. Here a letter says as many bits as it is rare both in what is
    `copied` of all rows and in all `keys`; what a key begins with as the one before it in order
    does says nothing again, nor does what all end with. Each key could have been hit by any text
    that was written, and the keys that are hit could have been others. The `pieces` are, for each
    key that is hit, the letters that were copied from its row, without constants.
    """
    sides = [Counter("".join(side)) for side in (copied, keys)]
    tail = n_common([piece[::-1] for piece in pieces]) if len(pieces) > 1 else 0
    bits, before = 0.0, ""
    for piece in sorted(piece[: len(piece) - tail] for piece in pieces):
        start = n_common([piece, before])
        for letter in piece[start:]:
            bits -= log2(max(side[letter] / max(1, side.total()) for side in sides))
        bits -= log2(n_written)
        before = piece
    return bits - len(pieces) * log2(len(keys) / len(pieces))


def bound_on_luck(hits: int, expected: float) -> float:
    """Return an upper bound on the probability of so many hits where fewer are expected.

    Chernoff's for a sum of independent events: ``(expected / hits) ** hits * e ** (hits -
    expected)``. Of multiplications alone, so that every processor gives the same.
    """
    if hits <= expected:
        return 1.0
    luck = 1.0
    whole = int(expected)
    for number in range(hits):
        luck *= expected * _E / hits
        # Spread over all steps: a product that once is nearly 0 never comes back from there.
        if (number + 1) * whole // hits > number * whole // hits:
            luck /= _E
    return min(1.0, luck)
