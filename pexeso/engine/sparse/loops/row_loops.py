"""Compiled loops over stored rows: which may match, and which do by the definition."""

from __future__ import annotations

import numpy as np

from pexeso.engine.sparse.loops.list_loops import NO_LIST
from pexeso.engine.sparse.loops.word_loops import compare_text, count_common, similarity
from pexeso.errors import IndexCorruptError
from pexeso.runtime.jit import loop

_LITTLE = np.float32(1e-9)


@loop
def collect_rows(
    words: np.ndarray,
    near: np.ndarray,
    reach: np.ndarray,
    scales: np.ndarray,
    word_value_offsets: np.ndarray,
    word_values: np.ndarray,
    value_shares: np.ndarray,
    band_ends: np.ndarray,
    band_sums: np.ndarray,
    band_shares: np.ndarray,
    floor: float,
    rounding: float,
    gained: np.ndarray,
    touched: np.ndarray,
    rows: np.ndarray,
) -> tuple[int, int, int]:
    """Write the rows whose words that are near enough add up to enough, each once.

    Rows are in bands of about equal sums S. For a similarity d a row can only match if what its
    words have beyond d, ``sum_j b_j max(g_j - d, 0)``, is at least ``floor - d * S``. With
    ``d = floor / S`` that is any word at least so near; rows of many words, of which nearly each
    has one, are looked at from a part of that on, so that one such word is not enough.

    Parameters
    ----------
    value_shares : numpy.ndarray, uint8
        The scaled weight of the word in each row, in steps of 1/255, rounded up.
    band_ends : numpy.ndarray of shape (K,), int64
        The first row after each band.
    band_sums, band_shares : numpy.ndarray of shape (K,), float32
        The largest S of each band, and the part of ``floor / S`` from which on words count.
    gained : numpy.ndarray of shape (N,), float32
        Zeros; what is not is listed in `touched`.

    Returns
    -------
    n_rows, n_touched, n_entries : int
    """
    n_rows, n_touched, n_entries = 0, 0, 0
    n_bands = len(band_ends)
    limits, needed = np.empty(n_bands, np.float32), np.empty(n_bands, np.float32)
    for band in range(n_bands):
        limits[band] = band_shares[band] * floor / band_sums[band]
        kept = (1.0 - band_shares[band]) * floor * (1.0 - 1e-4 - rounding)
        needed[band] = max(kept, _LITTLE) * 255.0
    for word in words:
        if near[word] * reach[word] < floor:
            continue
        nearness, band = near[word] * scales[word], 0
        first, last = word_value_offsets[word], word_value_offsets[word + 1]
        for entry in range(first, last):
            row = word_values[entry]
            if row < 0 or row >= len(gained):
                raise IndexCorruptError(NO_LIST)
            while band < n_bands - 1 and row >= band_ends[band]:
                band += 1
            if nearness < limits[band]:
                last = entry
                break
            before = gained[row]
            after = before + value_shares[entry] * (nearness - limits[band]) + 512 * _LITTLE
            gained[row] = after
            if before == 0.0:
                touched[n_touched] = row
                n_touched += 1
            if before < needed[band] and after >= needed[band]:
                rows[n_rows] = row
                n_rows += 1
        n_entries += last - first
    return n_rows, n_touched, n_entries


@loop
def count_visits(words: np.ndarray, word_value_offsets: np.ndarray) -> int:
    """Return how often rows have any of some words."""
    n_visits = 0
    for word in words:
        n_visits += word_value_offsets[word + 1] - word_value_offsets[word]
    return n_visits


@loop
def within(
    row: int,
    first: int,
    last: int,
    text: np.ndarray,
    starts: np.ndarray,
    weights: np.ndarray,
    squares: np.ndarray,
    members: np.ndarray,
    norm: float,
    word_text: np.ndarray,
    word_starts: np.ndarray,
    word_weights: np.ndarray,
    word_squares: np.ndarray,
    value_word_offsets: np.ndarray,
    value_words: np.ndarray,
    value_norms: np.ndarray,
    letters: float,
    max_distance: float,
    word_keys: np.ndarray,
    pairs: np.ndarray,
    heads: np.ndarray,
    chain: np.ndarray,
    counts: np.ndarray,
    known: np.ndarray,
    known_words: np.ndarray,
    n_known: np.ndarray,
) -> bool:
    """Return whether a stored row matches a query value by the definition.

    Parameters
    ----------
    first, last : int
        Where the words of the query value are in `members`; their pairs are in the table.
    known : numpy.ndarray of shape (V,), float64
        The nearness of words to the query value by the definition, -1 where it is not known.
    known_words, n_known
        The words that are known, and their number.
    """
    dot = 0.0
    for position in range(value_word_offsets[row], value_word_offsets[row + 1]):
        word = value_words[position]
        if known[word] >= 0.0:
            dot += np.float64(word_weights[word]) * known[word]
            continue
        begin, end = word_starts[word], word_starts[word + 1]
        count_common(
            word_text, begin, end, word_keys, pairs, heads, chain, counts[: last - first],
        )  # fmt: skip
        nearness = 0.0
        for number in range(last - first):
            mine = members[first + number]
            if counts[number] == 0:
                continue
            if (
                counts[number] == squares[mine]
                and compare_text(text, starts[mine], starts[mine + 1], word_text, begin, end) == 0
            ):
                nearness += np.float64(weights[mine])
            else:
                nearness += np.float64(weights[mine]) * similarity(
                    counts[number], squares[mine], word_squares[word], letters
                )
        known[word], known_words[n_known[0]] = nearness, word
        n_known[0] += 1
        dot += np.float64(word_weights[word]) * nearness
    fraction = np.sqrt(max(1.0 - dot / np.sqrt(norm * value_norms[row]), 0.0) * 0.5)
    return fraction <= max_distance
