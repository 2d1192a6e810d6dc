"""The space of letters: what the similarity of two words and the distance of two values are.

A word ``<w>`` between two brackets has as its features each ordered pair of characters at most two
apart, whatever stands between them; and each such pair with the block of three characters in which
the first of the two stands, counted from the beginning, and again from the end. So a letter left
out, put in, changed or turned round takes few features away, and words of the same letters at other
places have few in common. Pairs count twice as much as pairs with a block. Features are counted,
and the dot product of the counts of two words is a whole number:

    C(w, w') = sum over the occurrences of a pair in both: 4 + [same block] + [same from the end]

A word of 1 to 14 digits and nothing else has one feature of its own instead, C(w, w) = 6: numbers
and dates that differ in a digit are other numbers and dates, and no misspellings.

The unit vector u(w) is these counts scaled to the length sqrt(1 - e), and a coordinate of the
word's own of the length sqrt(e), where e is the share of whole words. So for two words that are not
the same s(w, w') = (1 - e) * C(w, w') / sqrt(C(w, w) * C(w', w')), and for the same word s = 1.

A value x is the sum of b(w) u(w) over its words, each as often as it occurs, with b the weight of
the word. With a and b for the weights of the words i of q and j of x:

    dot(q, x) = sum_j b_j g_j, g_j = sum_i a_i s_ij;  cos = dot(q, x) / sqrt(dot(q, q) dot(x, x)),

and the distance is the Euclidean one of the vectors scaled to unit length, as a fraction of the
largest distance, 2: sqrt((1 - cos) / 2).

This is the definition to the last bit: both sums run in the order of the words' UTF-8 bytes, in
float64, each operation rounded once as IEEE 754 says. Whole numbers are exact in any order, so a
distance has the same bits however features are found, in any batch and on any device. Every faster
way must give the same matches.

Pairs of characters that need not touch are the skip-grams of Guthrie et al., "A closer look at
skip-gram modelling" (LREC 2006).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pexeso.errors import InputError

PAIR = 4
"""What a common pair counts, beside 1 for each common block."""

BLOCK, LAST_BLOCK = 3, 63
"""Characters of a block; all characters after the first 189 are in the last one."""

NO_COMMON_PAIR = np.sqrt(0.5)
"""The distance of two values that share no feature: every two values match from here on."""


@dataclass(frozen=True)
class LetterSpace:
    """How words are compared.

    Attributes
    ----------
    whole_word_share : float
        The share e of the squared length of a word's vector that is its own, in [0, 1).

    Examples
    --------
    >>> LetterSpace(0.05).letters
    0.95
    """

    whole_word_share: float

    def __post_init__(self) -> None:
        if not (isinstance(self.whole_word_share, float) and 0 <= self.whole_word_share < 1):
            raise InputError(
                "The share of whole words must be at least 0 and less than 1. Got "
                f"{self.whole_word_share!r} instead."
            )

    @property
    def letters(self) -> float:
        """The share of the squared length of a word's vector that is its features'."""
        return 1.0 - self.whole_word_share

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return asdict(self)


def fractions_of(dots: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return distances from dot products, as fractions of the largest distance, float64.

    Parameters
    ----------
    dots : numpy.ndarray, float64
    squares : numpy.ndarray, float64
        The product of the dot products of both values with themselves; not 0.
    """
    return np.sqrt(np.maximum(1.0 - dots / np.sqrt(squares), 0.0) * 0.5)
