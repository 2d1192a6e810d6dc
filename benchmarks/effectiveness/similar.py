"""Similar values by string measures and by vectors: all pairs above a similarity.

The string measures are those that a user could choose instead.

Strings are folded (`benchmarks.effectiveness.judged.fold`) before. A measure compares every value
with every other one, or all that can reach its lowest similarity; none is approximate. What it
finds comes in pieces of rows, each from at most `PIECE_PAIRS` pairs (12 bytes each where all are
similar), so that memory does not grow with the number of pairs. A value of no text is like nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import scipy.sparse as sp

from benchmarks.effectiveness.judged import incidence

PIECE_PAIRS = 10_000_000
"""Pairs of values that are looked at together, and no more."""

SAME_WORD = 0.8
"""From this edit similarity on, fuzzy token match takes two words for the same one."""

Similar = sp.csr_matrix
"""Similarity of pairs of values, (values, others).

It is absent where it is below the lowest asked for.
"""

Pieces = Iterator[Similar]
"""Similarities in pieces, from the first value to the last."""

Measure = Callable[[Sequence[str], Sequence[str], float], Pieces]
"""From values, others and the lowest similarity."""


def equal(values: Sequence[str], others: Sequence[str], cutoff: float) -> Pieces:
    _, held = incidence([[text] if text else [] for text in (*values, *others)])
    left, right = held[: len(values)], held[len(values) :].T.tocsr()
    return _pieces(len(values), len(others), cutoff, lambda some: (left[some] @ right).tocoo())


def jaccard_of_tokens(values: Sequence[str], others: Sequence[str], cutoff: float) -> Pieces:
    """Divide the words that two values share by those of either."""
    _, held = _words([*values, *others])
    left, right = held[: len(values)], held[len(values) :]
    left_sizes, right_sizes = _sizes(left), _sizes(right)

    def piece(some: slice) -> sp.coo_matrix:
        common = (left[some] @ right.T).tocoo()
        common.data /= left_sizes[some][common.row] + right_sizes[common.col] - common.data
        return common

    return _pieces(len(values), len(others), cutoff, piece)


def edit_similarity(values: Sequence[str], others: Sequence[str], cutoff: float) -> Pieces:
    """Take 1 - the Levenshtein distance by the length of the longer text."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    # Two empty texts have all in common.
    has_text, other_has_text = (
        np.array([bool(text) for text in texts], bool) for texts in (values, others)
    )

    def piece(some: slice) -> sp.coo_matrix:
        scorer = Levenshtein.normalized_similarity
        scores = cdist(values[some], others, scorer=scorer, score_cutoff=cutoff, dtype=np.float32)
        scores[~has_text[some]] = 0
        scores[:, ~other_has_text] = 0
        return sp.coo_matrix(scores)

    return _pieces(len(values), len(others), cutoff, piece)


def fuzzy_tokens(values: Sequence[str], others: Sequence[str], cutoff: float) -> Pieces:
    """Compute the fuzzy token match: the Jaccard similarity with similar words as common."""
    words, held = _words([*values, *others])
    left, right = held[: len(values)], held[len(values) :]
    alike = _alike_words(words, np.unique(left.indices), np.unique(right.indices))
    back = alike.T.tocsr()
    left_sizes, right_sizes = _sizes(left), _sizes(right)
    near = (left @ alike).tocsr()

    def piece(some: slice) -> sp.coo_matrix:
        candidates = (near[some] @ right.T).tocoo()
        row, column = candidates.row, candidates.col
        both = left_sizes[some][row] + right_sizes[column]
        upper = candidates.data / np.maximum(both - candidates.data, 1)
        row, column, both = (array[upper >= cutoff] for array in (row, column, both))
        overlap = np.minimum(
            _best_sums(left[some], right, alike, row, column),
            _best_sums(right, left[some], back, column, row),
        )
        return sp.coo_matrix((overlap / (both - overlap), (row, column)), shape=candidates.shape)

    return _pieces(len(values), len(others), cutoff, piece)


def tfidf(values: Sequence[str], others: Sequence[str], cutoff: float) -> Pieces:
    """Compute the cosine of words weighted by their rarity."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(token_pattern=r"[^ ]+", dtype=np.float32).fit(
        sorted({*values, *others})
    )
    left, right = weights.transform(values), weights.transform(others).T.tocsr()
    return _pieces(len(values), len(others), cutoff, lambda some: (left[some] @ right).tocoo())


def products(left: np.ndarray, right: np.ndarray, cutoff: float) -> Pieces:
    """Compute the products of vectors, float32 (values, d) and (others, d)."""

    def piece(some: slice) -> sp.coo_matrix:
        scores = left[some] @ right.T
        row, column = np.nonzero(scores >= cutoff)
        return sp.coo_matrix((scores[row, column], (row, column)), shape=scores.shape)

    return _pieces(len(left), len(right), cutoff, piece)


def whole(pieces: Iterable[Similar], n_values: int) -> Similar:
    """Combine pieces that compare values with themselves."""
    parts = list(pieces)
    stacked = sp.vstack(parts, "csr") if parts else sp.csr_matrix((0, 0), dtype=np.float32)
    return stacked.maximum(sp.identity(n_values, np.float32, "csr"))


def _words(values: Sequence[str]) -> tuple[list[str], sp.csr_matrix]:
    """Return the distinct words, and which value has which: 1 or nothing."""
    return incidence([value.split() for value in values])


def _sizes(held: sp.csr_matrix) -> np.ndarray:
    return np.asarray(held.sum(1)).ravel()


def _alike_words(words: Sequence[str], of_values: np.ndarray, of_others: np.ndarray) -> Similar:
    """Compare the words of values with those of others; float32 (words, words)."""
    texts, against = ([words[word] for word in numbers] for numbers in (of_values, of_others))
    pieces = list(edit_similarity(texts, against, SAME_WORD))
    if not pieces:
        return sp.csr_matrix((len(words), len(words)), dtype=np.float32)
    pairs = sp.vstack(pieces, "coo")
    return sp.csr_matrix(
        (pairs.data, (of_values[pairs.row], of_others[pairs.col])), shape=(len(words), len(words))
    )


def _pieces(
    n_values: int, n_others: int, cutoff: float, piece: Callable[[slice], sp.coo_matrix]
) -> Pieces:
    """Compare piece by piece, and keep what is similar enough."""
    step = max(1, PIECE_PAIRS // max(n_others, 1))
    for start in range(0, n_values, step):
        scores = piece(slice(start, min(start + step, n_values)))
        enough = scores.data >= cutoff
        yield sp.csr_matrix(
            (scores.data[enough].astype(np.float32), (scores.row[enough], scores.col[enough])),
            shape=scores.shape,
        )


def _best_sums(
    held: sp.csr_matrix, other: sp.csr_matrix, alike: Similar, row: np.ndarray, column: np.ndarray
) -> np.ndarray:
    """Sum the similarity of each word of a value to its nearest word in another value."""
    sums = np.zeros(len(row), np.float32)
    for start in range(0, len(row), 100_000):
        some = slice(start, start + 100_000)
        first, second = held[row[some]].tocoo(), other[column[some]]
        # One row for each word of each first value: the words like it, cut down to those that the
        # second value has.
        within = alike[first.col].multiply(second[first.row])
        np.add.at(sums[some], first.row, within.max(axis=1).toarray().ravel())
    return sums
