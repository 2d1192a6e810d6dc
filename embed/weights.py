"""How much a word counts in its value: a word that is everywhere says little, a rare one much.

The weight of a word that makes up a share p of all words is ``log(1 + 1 / p)``, the inverse document frequency with
words for documents; a word never seen counts as one seen once.

Source: Sparck Jones, "A statistical interpretation of term specificity and its application in retrieval" (Journal of
Documentation, 1972).
"""

from __future__ import annotations

import numpy as np


def rarity(counts: np.ndarray, n_tokens: int) -> np.ndarray:
    """Return the weights of words by how often they occur.

    Parameters
    ----------
    counts : numpy.ndarray of shape (v,), int64
        Occurrences of each word, at least 1 (less counts as 1).
    n_tokens : int
        Occurrences of all words, at least 1.

    Returns
    -------
    numpy.ndarray of shape (v + 1,), float32
        All above 0; the last is for words that are not among the v.

    Examples
    --------
    >>> rarity(np.array([50, 1]), 100).round(2).tolist()
    [1.1, 4.62, 4.62]
    """
    seen = np.maximum(np.append(counts, 1), 1).astype(np.float64)
    return np.log1p(n_tokens / seen).astype(np.float32)
