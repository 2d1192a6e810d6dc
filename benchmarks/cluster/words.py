"""Words that can be pronounced, made from whole numbers: one word a number, no word twice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SYLLABLES = pa.array(
    [f"{consonant}{vowel}" for consonant in "bcdfghjklmnpqrstvwxz" for vowel in "aeiou"]
)
_ENDINGS = pa.array(["", "n", "rs", "lin", "tmar"])
_PLACES = 5
_FACTOR, _SHIFT = 6_180_339_887, 2_718_281_828  # the factor has no divisor in common with 10

N_WORDS = len(_SYLLABLES) ** _PLACES
"""How many numbers have a word of their own."""

MOST_IDS = (2**63 - 1 - _SHIFT) // _FACTOR
"""Numbers below it are scrambled without overflow."""

WAYS = (
    "{}",
    "{} in capitals",
    "{} with a capital",
    " {} ",
    "{}.",
    '"{}"',
)
"""How a word is written in a cell. The normaliser reads all of them as the same value."""

PLAIN_SHARE = 0.75
"""Of cells that hold the word as it is; the other ways share the rest."""


def words_of(ids: np.ndarray) -> pa.StringArray:
    """Return the word of each number: five syllables that name it, and an ending; 10 to 14 letters.

    Neighbouring numbers have words that look nothing like each other.

    Parameters
    ----------
    ids : numpy.ndarray, int64
        At least 0 and below `MOST_IDS`.

    Examples
    --------
    >>> words_of(np.array([0, 1, 2])).to_pylist()
    ['hofohofohi', 'fafiqizowon', 'bifezetonars']
    """
    scrambled = (ids * _FACTOR + _SHIFT) % N_WORDS
    parts = [_SYLLABLES.take(pa.array(scrambled // 100**power % 100)) for power in range(_PLACES)]
    return pc.binary_join_element_wise(*parts, _ENDINGS.take(pa.array(ids % len(_ENDINGS))), "")


def written(words: pa.StringArray, draws: np.random.Generator) -> pa.StringArray:
    """Return words as people write them in cells; see `WAYS`."""
    others = (1 - PLAIN_SHARE) / (len(WAYS) - 1)
    way = draws.choice(len(WAYS), len(words), p=[PLAIN_SHARE, *[others] * (len(WAYS) - 1)])
    return pc.choose(
        pa.array(way),
        words,
        pc.ascii_upper(words),
        pc.ascii_capitalize(words),
        pc.binary_join_element_wise("", words, "", " "),
        pc.binary_join_element_wise(words, ".", ""),
        pc.binary_join_element_wise('"', words, '"', ""),
    )
