"""Which values of a lake are alike, by the measures of strings that a user could take instead; each gives all pairs above a similarity.

Values are folded (`benchmarks.effectiveness.judged.fold`) for all of them. Every method compares all pairs, or all that can reach its
lowest similarity; none is approximate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy.sparse as sp

from benchmarks.effectiveness.judged import incidence

PIECE = 1000
"""Values that are compared with all others at a time."""

Similar = sp.csr_matrix
"""Similarity of pairs of values, (values, values); absent where it is below the lowest asked for."""


def equal(values: Sequence[str], least: float) -> Similar:
    """Take equal text alone."""
    return sp.identity(len(values), np.float32, "csr")


def jaccard_of_tokens(values: Sequence[str], least: float) -> Similar:
    """Divide the words that two values share by those of either."""
    held = _words(values)[1]
    sizes = np.asarray(held.sum(1)).ravel()

    def piece(start: int, stop: int) -> sp.coo_matrix:
        common = (held[start:stop] @ held.T).tocoo()
        common.data /= sizes[common.row + start] + sizes[common.col] - common.data
        return common

    return _gathered(len(values), least, piece)


def edit_similarity(values: Sequence[str], least: float) -> Similar:
    """Take 1 - the Levenshtein distance by the length of the longer text."""
    from rapidfuzz.distance import Levenshtein

    return _compared(values, Levenshtein.normalized_similarity, least)


def fuzzy_tokens(values: Sequence[str], least: float, *, least_of_tokens: float = 0.8) -> Similar:
    """Jaccard where words count as common by their edit similarity, of 0.8 and more: fuzzy token match.

    Each word is matched with its best partner in the other value; of the two sums, one from either side, the smaller counts. That is the
    heaviest matching where no two words of a value have the same best partner.

    Source: Wang, Li, Feng, "Fast-Join: an efficient method for fuzzy token matching based string similarity join" (ICDE 2011).
    """
    from rapidfuzz.distance import Levenshtein

    words, held = _words(values)
    alike = _compared(words, Levenshtein.normalized_similarity, least_of_tokens)
    sizes = np.asarray(held.sum(1)).ravel()
    near = (held @ alike).tocsr()

    def piece(start: int, stop: int) -> sp.coo_matrix:
        candidates = (near[start:stop] @ held.T).tocoo()
        row, column = candidates.row + start, candidates.col
        upper = candidates.data / np.maximum(sizes[row] + sizes[column] - candidates.data, 1)
        row, column = row[upper >= least], column[upper >= least]
        overlap = np.minimum(_best_sums(held, alike, row, column), _best_sums(held, alike, column, row))
        data = overlap / (sizes[row] + sizes[column] - overlap)
        return sp.coo_matrix((data, (row - start, column)), shape=(stop - start, len(values)))

    return _gathered(len(values), least, piece)


def tfidf(values: Sequence[str], least: float) -> Similar:
    """Take the cosine of words weighted by how rare they are."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    matrix = TfidfVectorizer(token_pattern=r"[^ ]+", dtype=np.float32).fit_transform(values)
    return _gathered(len(values), least, lambda start, stop: (matrix[start:stop] @ matrix.T).tocoo())


def cosine(vectors: np.ndarray, least: float) -> Similar:
    """Take the cosine of vectors, float32 (values, d), of length 1 or 0."""
    return products(vectors, vectors, least)


def products(left: np.ndarray, right: np.ndarray, least: float) -> Similar:
    """Take the products of the vectors of values with other vectors of the same values, float32 (values, d)."""

    def piece(start: int, stop: int) -> sp.coo_matrix:
        found = left[start:stop] @ right.T
        row, column = np.nonzero(found >= least)
        return sp.coo_matrix((found[row, column], (row, column)), shape=found.shape)

    return _gathered(len(left), least, piece)


def _words(values: Sequence[str]) -> tuple[list[str], sp.csr_matrix]:
    """Give the distinct words, and which value has which: 1 or nothing."""
    return incidence([value.split() for value in values])


def _compared(texts: Sequence[str], scorer: Callable, least: float) -> Similar:
    from rapidfuzz.process import cdist

    def piece(start: int, stop: int) -> sp.coo_matrix:
        scores = cdist(texts[start:stop], texts, scorer=scorer, score_cutoff=least, dtype=np.float32)
        row, column = np.nonzero(scores)
        return sp.coo_matrix((scores[row, column], (row, column)), shape=scores.shape)

    return _gathered(len(texts), least, piece)


def _gathered(n_values: int, least: float, piece: Callable[[int, int], sp.coo_matrix]) -> Similar:
    """Put pieces together, of which only what is similar enough stays; a value is like itself, whatever a measure says."""

    def pieces() -> Iterator[sp.csr_matrix]:
        for start in range(0, n_values, PIECE):
            found = piece(start, min(start + PIECE, n_values))
            enough = found.data >= least
            yield sp.csr_matrix((found.data[enough], (found.row[enough], found.col[enough])), shape=found.shape)

    stacked = sp.vstack(list(pieces()), "csr") if n_values else sp.csr_matrix((0, 0), dtype=np.float32)
    return stacked.maximum(sp.identity(n_values, np.float32, "csr"))


def _best_sums(held: sp.csr_matrix, alike: Similar, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Add up, for pairs of values, how alike each word of the first is to its nearest in the second."""
    sums = np.zeros(len(row), np.float32)
    for start in range(0, len(row), PIECE * 100):
        some = slice(start, start + PIECE * 100)
        first, second = held[row[some]].tocoo(), held[column[some]]
        # One row for each word of each first value: the words like it, cut down to those that the second value has.
        within = alike[first.col].multiply(second[first.row])
        np.add.at(sums[some], first.row, within.max(axis=1).toarray().ravel())
    return sums
