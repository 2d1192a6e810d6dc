"""How many keys a program would hit if it wrote letters at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.runtime.jit import loop
from pexeso.runtime.mixing import mixed
from pexeso.runtime.ranges import offsets_of
from pexeso.transform.learning.sampling import sample_texts

_E = 2.718281828459045

_MANY = 20_000
"""Of more texts or keys than these a sample is looked at, drawn by what they are."""

_SIGN, _LETTER, _DIGIT = 0, 1, 2


def hits_by_chance(written: pa.Array | Sequence[str], keys: pa.Array | Sequence[str]) -> float:
    """Return how many keys would be hit by texts whose letters come by chance.

    A text of chance has the form of one that was written, letters, digits and signs where that has
    them, and each letter and each digit is drawn from those that stand at its place in texts of
    that form, all by themselves. So short codes and numbers hit each other, and words do not. To
    judge a key, the text that equals it is left out, and where letters vary each that was ever
    written counts once more. The result is an upper bound: the sum over the keys of the expected
    number of texts that equal them, at most 1 each. Of more than 20,000 texts or keys it is
    estimated from as many.

    Parameters
    ----------
    written, keys : arrays or sequences of distinct str

    Examples
    --------
    >>> hits_by_chance(["10", "11", "12", "20"], ["10", "11", "12"])
    1.3333333333333333
    >>> round(hits_by_chance(["anna", "otto"], ["anna", "hans"]), 4)
    0.08
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
    letters = _Letters.of(pa.concat_arrays([some, goal_sample]))
    counts = _Counts.of(letters, len(some))
    expected = _expected(
        letters.codes,
        letters.offsets,
        letters.kinds,
        letters.forms,
        is_written,
        len(some),
        len(texts) / len(some),
        counts.n_texts,
        counts.first_place,
        counts.pairs,
        counts.n_of_pair,
        counts.n_kinds,
        counts.same_as,
        counts.n_varied,
    )
    return float(expected * len(goals) / len(goal_sample))


@dataclass(frozen=True, slots=True)
class _Letters:
    """Letters of texts, numbered, and the forms of the texts.

    Attributes
    ----------
    codes : int64 (c,)
    offsets : int64 (t + 1,)
    kinds : int8
        Of each number, whether it is a sign, a letter or a digit.
    forms : int64 (t,)
        Number of the form of each text, by first text.
    """

    codes: np.ndarray
    offsets: np.ndarray
    kinds: np.ndarray
    forms: np.ndarray

    @classmethod
    def of(cls, texts: pa.Array) -> _Letters:
        points = np.frombuffer("".join(texts.to_pylist()).encode("utf-32-le"), np.uint32)
        known, codes = np.unique(points, return_inverse=True)
        kinds = np.array(
            [
                _DIGIT if chr(point).isdigit() else _LETTER if chr(point).isalpha() else _SIGN
                for point in known.tolist()
            ],
            np.int8,
        )
        lengths = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
        offsets = offsets_of(lengths.astype(np.int64))
        # Signs stand for themselves, letters and digits for their kind.
        shapes = np.where(kinds[codes] == _SIGN, points, kinds[codes]).astype(np.uint32)
        buffers = [None, pa.py_buffer(offsets * 4), pa.py_buffer(shapes)]
        shaped = pa.Array.from_buffers(pa.large_binary(), len(texts), buffers)
        forms = shaped.dictionary_encode().indices.to_numpy(zero_copy_only=False)
        return cls(codes.astype(np.int64), offsets, kinds, forms.astype(np.int64))


@dataclass(frozen=True, slots=True)
class _Counts:
    """What stands at each place of the texts of each form.

    Attributes
    ----------
    n_texts : int64 (f,)
        Of each form.
    first_place : int64 (f + 1,)
        Number of the first place of each form.
    pairs : int64 (p,)
        Place times the number of letters, plus letter: ascending.
    n_of_pair : int64 (p,)
    n_kinds : int64
        Different letters at each place.
    same_as : int64
        The first place of the form that always holds the same letter.
    n_varied : int64 (3,)
        Different letters and digits at places where they vary.
    """

    n_texts: np.ndarray
    first_place: np.ndarray
    pairs: np.ndarray
    n_of_pair: np.ndarray
    n_kinds: np.ndarray
    same_as: np.ndarray
    n_varied: np.ndarray

    @classmethod
    def of(cls, letters: _Letters, n_written: int) -> _Counts:
        """Count the letters of the first texts, those that were written."""
        n_letters = len(letters.kinds)
        lengths = np.diff(letters.offsets)[:n_written]
        forms = letters.forms[:n_written]
        n_forms = int(forms.max()) + 1
        n_texts = np.bincount(forms, minlength=n_forms)
        size = np.zeros(n_forms, np.int64)
        size[forms] = lengths
        first_place = offsets_of(size)
        codes = letters.codes[: letters.offsets[n_written]]
        positions = np.arange(len(codes)) - np.repeat(letters.offsets[:n_written], lengths)
        positions += np.repeat(first_place[forms], lengths)
        pairs, n_of_pair = np.unique(positions * n_letters + codes, return_counts=True)
        n_kinds = np.bincount(pairs // n_letters, minlength=first_place[-1])
        varies = n_kinds[pairs // n_letters] > 1
        varies |= np.repeat(n_texts == 1, size)[pairs // n_letters]
        varied = np.unique(pairs[varies] % n_letters)
        n_varied = np.bincount(letters.kinds[varied], minlength=3)
        return cls(
            n_texts,
            first_place,
            pairs,
            n_of_pair,
            n_kinds,
            _same_places(codes, np.repeat(forms, lengths), positions, first_place),
            n_varied,
        )


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


@loop
def _expected(
    codes: Any,
    offsets: Any,
    kinds: Any,
    forms: Any,
    is_written: Any,
    n_written: Any,
    scale: Any,
    n_texts: Any,
    first_place: Any,
    pairs: Any,
    n_of_pair: Any,
    n_kinds: Any,
    same_as: Any,
    n_varied: Any,
) -> Any:
    """Return how many of the texts behind those that were written are hit by chance."""
    total = 0.0
    for key in range(len(forms) - n_written):
        text = n_written + key
        form = forms[text]
        if form >= len(n_texts):
            continue
        itself = 1 if is_written[key] else 0
        one = n_texts[form] * scale
        for at in range(offsets[text], offsets[text + 1]):
            letter_position = first_place[form] + at - offsets[text]
            same = same_as[letter_position]
            if same != letter_position:
                if codes[offsets[text] + same - first_place[form]] != codes[at]:
                    one = 0.0
                continue
            pair = letter_position * len(kinds) + codes[at]
            position = np.searchsorted(pairs, pair)
            count = 0
            if position < len(pairs) and pairs[position] == pair:
                count = n_of_pair[position]
            if kinds[codes[at]] > 0 and (n_kinds[letter_position] > 1 or n_texts[form] == 1):
                others = n_texts[form] - itself + n_varied[kinds[codes[at]]]
                one = one * (count - itself + 1) / others
            elif count == 0:
                one = 0.0
        total += min(1.0, one)
    return total


def bound_on_luck(hits: int, expected: float) -> float:
    """Return an upper bound on the probability of so many hits where fewer are expected.

    Chernoff's for a sum of independent events: ``(expected / hits) ** hits * e ** (hits -
    expected)``. Of multiplications alone, so that every processor gives the same.

    Examples
    --------
    >>> bound_on_luck(3, 4.0)
    1.0
    >>> f"{bound_on_luck(10, 1.0):.0e}"
    '8e-07'
    """
    if hits <= expected:
        return 1.0
    luck = 1.0
    whole = int(expected)
    for number in range(hits):
        luck *= expected * _E / hits
        if number < whole:
            luck /= _E
    return min(1.0, luck)
