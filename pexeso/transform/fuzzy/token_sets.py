"""Texts as sets of words or of q-grams, for the fuzzy join.

Case does not count. A text without tokens (shorter than q, or without a word) is a token itself, of
a kind that no other text has pieces of: it shares all with an equal text and nothing with others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pexeso.runtime.ranges import offsets_of, ranges
from pexeso.transform.programs.program import lower

MIN_Q, MAX_Q = 2, 10

TOKENISERS = ("word", *(f"{q}-gram" for q in range(MIN_Q, MAX_Q + 1)))
"""Words end at white space and commas; q-grams are all pieces of q characters."""


@dataclass(frozen=True, slots=True)
class TokenSets:
    """Sets of tokens.

    Attributes
    ----------
    offsets : int64 (n + 1,)
        Where the set of each text begins and ends.
    tokens : int32
        Ascending within a set.
    n_tokens : int
        Tokens are below it.
    """

    offsets: np.ndarray
    tokens: np.ndarray
    n_tokens: int


def token_sets(texts: Sequence[str], tokenisers: Iterable[str]) -> Iterator[tuple[str, TokenSets]]:
    """Yield the token sets of texts for several tokenisers, in the order of `TOKENISERS`.

    Takes about 80 bytes a character.

    Examples
    --------
    >>> [(_, sets)] = token_sets(["Reagan, Ronald", "ronald reagan"], ["word"])
    >>> sets.tokens.tolist(), sets.offsets.tolist()
    ([0, 1, 0, 1], [0, 2, 4])
    """
    requested = set(tokenisers)
    texts = [lower(text) for text in texts]
    whole = _numbered(pa.array([text.encode("utf-8", "surrogatepass") for text in texts]))
    if "word" in requested:
        yield "word", _as_sets(*_words(texts), whole)
    longest = max((q for q in range(MIN_Q, MAX_Q + 1) if f"{q}-gram" in requested), default=0)
    for q, grams in enumerate(_grams(texts, longest), start=1):
        if f"{q}-gram" in requested:
            yield f"{q}-gram", _as_sets(*grams, whole)


def _words(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the text of each word, and the word's number."""
    words = [text.replace(",", " ").split() for text in texts]
    numbers: dict[str, int] = {}
    tokens = [numbers.setdefault(word, len(numbers)) for own_words in words for word in own_words]
    owners = np.repeat(np.arange(len(texts)), [len(own_words) for own_words in words])
    return owners, np.array(tokens, np.int64)


def _grams(texts: list[str], longest: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the text and the number of each piece of one character, of two, and so on."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    letters = _numbered(pa.array(letters))
    n_letters = int(letters.max(initial=-1)) + 1
    owners = np.repeat(np.arange(len(texts)), lengths)
    ends = np.repeat(np.cumsum(lengths), lengths)
    starts, grams = np.arange(len(letters)), letters
    for q in range(1, longest + 1):
        if q > 1:  # longer by the letter behind it
            inside = starts + q <= ends[starts]
            starts = starts[inside]
            grams = _numbered(pa.array(grams[inside] * n_letters + letters[starts + q - 1]))
        yield owners[starts], grams


def _numbered(values: pa.Array) -> np.ndarray:
    """Return numbers from 0 for values, equal ones alike: int64."""
    return values.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _as_sets(owners: np.ndarray, tokens: np.ndarray, whole: np.ndarray) -> TokenSets:
    n = len(whole)
    first_whole = int(tokens.max(initial=-1)) + 1
    bare = np.flatnonzero(np.bincount(owners, minlength=n) == 0)
    owners = np.concatenate([owners, bare])
    tokens = np.concatenate([tokens, first_whole + whole[bare]])
    n_tokens = int(tokens.max(initial=-1)) + 1
    return TokenSets(*_by_owner(owners, tokens, n, n_tokens), n_tokens)


def _by_owner(
    owners: np.ndarray, tokens: np.ndarray, n: int, n_tokens: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sort pairs of a text and a token, and keep one of each."""
    pairs = np.sort(owners * n_tokens + tokens)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    owners, tokens = np.divmod(pairs, max(n_tokens, 1))
    return offsets_of(np.bincount(owners, minlength=n)), tokens.astype(np.int32)


def chosen_sets(sets: TokenSets, texts: np.ndarray, ranks: np.ndarray) -> TokenSets:
    """Return the sets of some texts, with other numbers for the tokens.

    Parameters
    ----------
    texts : int64 (c,)
    ranks : int64 (n_tokens,)
        The new number of each token.
    """
    sizes = np.diff(sets.offsets)[texts]
    owners = np.repeat(np.arange(len(texts)), sizes)
    tokens = ranks[sets.tokens[ranges(sets.offsets[texts], sizes)]]
    return TokenSets(*_by_owner(owners, tokens, len(texts), sets.n_tokens), sets.n_tokens)
