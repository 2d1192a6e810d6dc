"""Misspelt one-word values: how many are found, and how many values have an unrelated neighbour.

A misspelling is one letter substituted, left out, put in, or changed in turn with the next one. It
is drawn with a seed, at any position of the word, and is no value of the lake itself.

The neighbour of a value is *unrelated* unless it may be the same thing written differently. Two
values may be, when each word of the one that has fewer words is a variant of a word of the other;
two words are variants when they are equal, one edit apart (two from eight letters on), or begin
with the same letters, four or more and two thirds of the longer word: "german", "germany". In
`wikitables` two values that link to one thing are variants too. The rule is generous to short
words: "bern" and "bear" are two edits apart and unrelated, "bern" and "bert" are not counted.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import OSA

from benchmarks.effectiveness.lexical.products import Vectors, products

SHORTEST = 4
"""Letters of the shortest word that is misspelt: a code of three letters is no word any more."""

LONG_WORD = 8
"""From so many letters on two words that are two edits apart are variants."""

Related = Callable[[str, str], bool]


@dataclass(frozen=True)
class Misspelt:
    """Values of one lake and a misspelling of each; all normalised."""

    originals: list[str]
    misspellings: list[str]


def misspell(word: str, generator: np.random.Generator) -> str:
    """Return a word with one random edit, which may leave it as it is.

    Examples
    --------
    >>> misspell("berlin", np.random.default_rng(1))
    'bxerlin'
    """
    edit, at = int(generator.integers(4)), int(generator.integers(len(word)))
    letter = string.ascii_lowercase[int(generator.integers(26))]
    if edit == 0:
        return word[:at] + letter + word[at + 1 :]
    if edit == 1:
        return word[:at] + letter + word[at:]
    if edit == 2:
        return word[:at] + word[at + 1 :]
    at = min(at, len(word) - 2)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def drawn_misspellings(
    values: Mapping[str, Sequence[str]], n_drawn: int, seed: int = 0
) -> dict[str, Misspelt]:
    """Draw one-word values of lakes, and misspell them.

    Parameters
    ----------
    values : mapping of str to sequence of str
        The distinct normalised values of each lake.
    n_drawn : int
        Most values of all lakes together, each with the same chance.
    seed : int
    """
    generator = np.random.default_rng(seed)
    words = [
        (lake, value)
        for lake in sorted(values)
        for value in sorted(values[lake])
        if len(value) >= SHORTEST and value.isalpha()
    ]
    drawn = generator.permutation(len(words))[:n_drawn]
    known = {lake: set(texts) for lake, texts in values.items()}
    by_lake = {lake: Misspelt([], []) for lake in sorted(values)}
    for position in np.sort(drawn):
        lake, word = words[position]
        misspelt = misspell(word, generator)
        while misspelt in known[lake]:
            misspelt = misspell(word, generator)
        by_lake[lake].originals.append(word)
        by_lake[lake].misspellings.append(misspelt)
    return by_lake


def are_variants(word: str, other: str) -> bool:
    """Return whether two words may be one word in two spellings or forms.

    Examples
    --------
    >>> are_variants("german", "germany"), are_variants("bern", "bear")
    (True, False)
    """
    longer = max(len(word), len(other))
    limit = 2 if longer >= LONG_WORD else 1
    if OSA.distance(word, other, score_cutoff=limit) <= limit:
        return True
    same = [a == b for a, b in zip(word, other, strict=False)] + [False]
    return same.index(False) >= max(4, 2 * longer / 3)


def may_be_same(value: str, other: str) -> bool:
    """Return whether two values may be one thing in two spellings.

    Examples
    --------
    >>> may_be_same("berlin", "berlin germany"), may_be_same("chicago bears", "chicago bulls")
    (True, False)
    """
    fewer, more = sorted((value.split(), other.split()), key=len)
    return all(any(are_variants(word, its) for its in more) for word in fewer)


def nearest_unrelated(
    rows: Vectors,
    texts: Sequence[str],
    vectors: Vectors,
    values: Sequence[str],
    min_cosine: float,
    related: Related = may_be_same,
    within: Sequence[np.ndarray] | None = None,
) -> np.ndarray:
    """Return the cosine of each value with the nearest unrelated one, 0 below `min_cosine`.

    Parameters
    ----------
    rows : sparse or dense matrix of (n, d)
        The vectors of `texts`.
    texts : sequence of str
    vectors : sparse or dense matrix of (values, d)
        The vectors of `values`.
    values : sequence of str
    min_cosine : float
    related : callable
        Whether two texts may be the same thing.
    within : sequence of numpy.ndarray, optional
        For each text the values that are looked at; all where it is left out.
    """
    cosines = np.zeros(len(texts))
    for position, product in enumerate(products(rows, vectors)):
        looked_at = np.arange(len(values)) if within is None else within[position]
        near = looked_at[product[looked_at] >= min_cosine]
        for other in near[np.argsort(-product[near], kind="stable")]:
            if not related(texts[position], values[other]):
                cosines[position] = product[other]
                break
    return cosines
