"""Character features of distinct words, counted as sparse matrices of whole numbers.

A word stands between ``<`` and ``>``. The kinds of features are:

========== =========================================================================================
``1`` to   n-grams of that many characters
``5``
``skip``   two characters with one between them, whatever that is
``near``   two characters in their order, at most two apart; how far is forgotten
``edges``  the same in ``<<word>>``, so that the first and the last letter count more
``half``   ``near``, and in which half of the word it begins
``start``  ``near``, and in which block of three characters it begins, from the start of the word
``end``    the same from the end of the word
========== =========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy.sparse as sp

BLOCK = 3
"""Characters in a block of the kinds ``start`` and ``end``."""


def _ngrams(length: int) -> Callable[[str], Iterator[str]]:
    def pieces(word: str) -> Iterator[str]:
        text = word if length == 1 else f"<{word}>"
        return (text[at : at + length] for at in range(len(text) - length + 1))

    return pieces


def _near(text: str) -> Iterator[tuple[int, str]]:
    """Return the position and the characters of each pair at most two apart."""
    for first in range(len(text)):
        for second in text[first + 1 : first + 3]:
            yield first, text[first] + second


def _skip(word: str) -> Iterator[str]:
    text = f"<{word}>"
    return (f"{text[at]}?{text[at + 2]}" for at in range(len(text) - 2))


def _edges(word: str) -> Iterator[str]:
    return (pair for _, pair in _near(f"<<{word}>>") if pair not in ("<<", ">>"))


def _half(word: str) -> Iterator[str]:
    length = len(word) + 2
    return (f"{pair}{2 * at // length}" for at, pair in _near(f"<{word}>"))


def _start(word: str) -> Iterator[str]:
    return (f"{pair}{at // BLOCK}" for at, pair in _near(f"<{word}>"))


def _end(word: str) -> Iterator[str]:
    length = len(word) + 2
    return (f"{pair}{(length - at) // BLOCK}" for at, pair in _near(f"<{word}>"))


KINDS: dict[str, Callable[[str], Iterator[str]]] = {
    **{str(length): _ngrams(length) for length in range(1, 6)},
    "skip": _skip,
    "near": lambda word: (pair for _, pair in _near(f"<{word}>")),
    "edges": _edges,
    "half": _half,
    "start": _start,
    "end": _end,
}
"""From a word to its features of a kind, with repeats."""


def pieces_of(word: str, kind: str) -> list[str]:
    """Return the features of one kind that a word has, with repeats.

    Examples
    --------
    >>> pieces_of("cat", "2"), pieces_of("cat", "near")
    (['<c', 'ca', 'at', 't>'], ['<c', '<a', 'ca', 'ct', 'at', 'a>', 't>'])
    >>> pieces_of("cat", "start")
    ['<c0', '<a0', 'ca0', 'ct0', 'at0', 'a>0', 't>1']
    """
    return list(KINDS[kind](word))


class WordGrams:
    """The features of words, each kind counted when it is first asked for.

    Attributes
    ----------
    words : list of str
        Distinct, ascending.
    number : dict of str to int
        The position of each.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = sorted(set(words))
        self.number = {word: position for position, word in enumerate(self.words)}
        self._counted: dict[str, sp.csr_matrix] = {}

    def counts(self, kind: str) -> sp.csr_matrix:
        """Return how often each word has each feature of a kind, float64 (words, features)."""
        if kind not in self._counted:
            self._counted[kind] = counted([KINDS[kind](word) for word in self.words])
        return self._counted[kind]


def counted(
    rows: Sequence[Iterator[str] | Sequence[str]], number: dict[str, int] | None = None
) -> sp.csr_matrix:
    """Return how often each row has each of its texts, float64 (rows, distinct texts).

    Parameters
    ----------
    rows : sequence of iterables of str
    number : dict of str to int, optional
        The column of each text, where that is fixed.
    """
    fixed = number is not None
    number, offsets, members = {} if number is None else number, [0], []
    for row in rows:
        members += [
            number[piece] if fixed else number.setdefault(piece, len(number)) for piece in row
        ]
        offsets.append(len(members))
    counts = sp.csr_matrix(
        (np.ones(len(members)), np.array(members, np.int32), np.array(offsets, np.int64)),
        shape=(len(rows), max(len(number), 1)),
    )
    counts.sum_duplicates()
    return counts
