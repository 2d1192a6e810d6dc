"""Compiled loops over stored rows: which may match, and which do by the definition."""

from __future__ import annotations

import numpy as np

from pexeso.engine.sparse.loops.list_loops import NO_LIST
from pexeso.engine.sparse.loops.views import Noted, QueryValues, Stored
from pexeso.engine.sparse.loops.word_loops import compare_text, count_common, similarity
from pexeso.errors import IndexCorruptError
from pexeso.runtime.jit import loop

_LITTLE = np.float32(1e-9)

_AHEAD = 64
"""Words whose lists are looked up before the first of them is read, so that memory is asked for
several at a time."""

_A_LOOK = 6
"""To look at all words of a row takes as long as to visit so many by one of them."""

DEAR = -2
"""In the place of a number of rows: to find them so takes longer than to compare all."""

FULL, MAX_STEPS = 128, 255
"""Steps that a row needs to be worth a look, and those after which they are not counted."""


@loop
def collect_rows(
    words: np.ndarray,
    near: np.ndarray,
    stored: Stored,
    floor: float,
    rounding: float,
    max_cost: float,
    gained: np.ndarray,
    touched: np.ndarray,
    rows: np.ndarray,
) -> tuple[int, int, int, bool]:
    """Write the rows whose words that are near enough add up to enough, each once.

    Rows are in bands of about equal sums S. For a similarity d a row can only match if what its
    words have beyond d, ``sum_j b_j max(g_j - d, 0)``, is at least ``floor - d * S``. With
    ``d = floor / S`` that is any word at least so near; rows of many words, of which nearly each
    has one, are looked at from a part of that on, so that one such word is not enough. What words
    add is counted in steps of which a row needs `FULL`, rounded up.

    Parameters
    ----------
    words : numpy.ndarray, int32
        With ``near * reach >= floor``.
    gained : numpy.ndarray of shape (N,), uint8
        Zeros; what is not is listed in `touched`.

    Returns
    -------
    n_rows, n_touched, n_entries : int
    """
    n_rows, n_touched, n_entries = 0, 0, 0
    n_bands = len(stored.band_ends)
    limits, steps = np.empty(n_bands, np.float32), np.empty(n_bands, np.float32)
    at_least = np.empty(n_bands, np.int64)
    for band in range(n_bands):
        share = stored.band_shares[band]
        limits[band] = share * floor / stored.band_sums[band]
        needed = max((1.0 - share) * floor * (1.0 - 1e-4 - rounding), _LITTLE)
        steps[band] = FULL / (255.0 * needed)
        # Where any word that is near enough will do, each is enough.
        at_least[band] = FULL if share == 1.0 else 1
    firsts, lasts = np.empty(_AHEAD, np.int64), np.empty(_AHEAD, np.int64)
    nearnesses, bands = np.empty(_AHEAD, np.float32), np.empty(_AHEAD, np.int64)
    asked_for = np.empty(_AHEAD, np.int64)
    for begin in range(0, len(words), _AHEAD):
        n_some = min(_AHEAD, len(words) - begin)
        for number in range(n_some):
            word = words[begin + number]
            first = stored.word_value_offsets[word]
            firsts[number], lasts[number] = first, stored.word_value_offsets[word + 1]
            nearnesses[number] = near[word] * stored.scales[word]
            bands[number] = stored.first_bands[word]
            # Nobody reads it: written so that the beginnings of many lists are on their way from
            # memory at a time. A word without rows is never among these: its reach is 0.
            asked_for[number] = stored.word_values[first] ^ stored.value_shares[first]
        for number in range(n_some):
            first, last, nearness = firsts[number], lasts[number], nearnesses[number]
            band = bands[number]
            end, limit = stored.band_ends[band], limits[band]
            step, min_gain = (nearness - limit) * steps[band], at_least[band]
            for entry in range(first, last):
                row = stored.word_values[entry]
                if row < 0 or row >= len(gained):
                    raise IndexCorruptError(NO_LIST)
                if row >= end:
                    while band < n_bands - 1 and row >= stored.band_ends[band]:
                        band += 1
                    end, limit = stored.band_ends[band], limits[band]
                    step, min_gain = (nearness - limit) * steps[band], at_least[band]
                if nearness < limit:
                    last = entry
                    break
                before = np.int64(gained[row])
                added = (
                    np.int64(min(stored.value_shares[entry] * step, np.float32(MAX_STEPS)))
                    + min_gain
                )
                after = min(before + added, MAX_STEPS)
                gained[row] = after
                if before == 0:
                    touched[n_touched] = row
                    n_touched += 1
                if before < FULL and after >= FULL:
                    rows[n_rows] = row
                    n_rows += 1
            n_entries += last - first
        if n_entries + _A_LOOK * n_rows > max_cost:
            return n_rows, n_touched, n_entries, False
    return n_rows, n_touched, n_entries, True


@loop
def look_at_rows(
    rows: np.ndarray,
    near: np.ndarray,
    value: int,
    query: QueryValues,
    stored: Stored,
    noted: Noted,
    floor: float,
    sure: float,
    letters: float,
    max_distance: float,
    max_letters: int,
) -> tuple[int, int]:
    """Move the rows that match a query value to the beginning.

    Parameters
    ----------
    near : numpy.ndarray of shape (V,), float32
        What the lists tell of each word.

    Returns
    -------
    n_rows, n_decided : int
        The first is `DEAR` where not all was done.
    """
    n_hits, n_decided = 0, 0
    for row in rows:
        first, last = stored.value_word_offsets[row], stored.value_word_offsets[row + 1]
        if first < 0 or last < first or last > len(stored.value_words):
            raise IndexCorruptError(NO_LIST)
        estimate = np.float32(0.0)
        for position in range(first, last):
            word = stored.value_words[position]
            if word < 0 or word >= len(near):
                raise IndexCorruptError(NO_LIST)
            estimate += near[word] * stored.factors[word]
        estimate /= stored.value_lengths[row]
        if estimate < floor:
            continue
        if estimate < sure:
            n_decided += 1
            is_match = within(row, value, query, stored, noted, letters, max_distance)
            if noted.n_letters[0] > max_letters:
                return DEAR, n_decided
            if not is_match:
                continue
        rows[n_hits] = row
        n_hits += 1
    return n_hits, n_decided


@loop
def within(
    row: int,
    value: int,
    query: QueryValues,
    stored: Stored,
    noted: Noted,
    letters: float,
    max_distance: float,
) -> bool:
    """Return whether a stored row matches a query value by the definition."""
    first, last = query.offsets[value], query.offsets[value + 1]
    counts, dot = noted.counts[: last - first], 0.0
    for position in range(stored.value_word_offsets[row], stored.value_word_offsets[row + 1]):
        word = stored.value_words[position]
        if noted.known[word] >= 0.0:
            dot += np.float64(stored.word_weights[word]) * noted.known[word]
            continue
        begin, end = stored.word_starts[word], stored.word_starts[word + 1]
        noted.n_letters[0] += end - begin
        count_common(
            stored.word_text, begin, end,
            noted.word_keys, noted.pairs, noted.heads, noted.chain, counts,
        )  # fmt: skip
        nearness = 0.0
        for number in range(last - first):
            member = query.members[first + number]
            if counts[number] == 0:
                continue
            if counts[number] == query.squares[member] and same_text(member, word, query, stored):
                nearness += np.float64(query.weights[member])
            else:
                nearness += np.float64(query.weights[member]) * similarity(
                    counts[number], query.squares[member], stored.word_squares[word], letters
                )
        noted.known[word], noted.known_words[noted.n_known[0]] = nearness, word
        noted.n_known[0] += 1
        dot += np.float64(stored.word_weights[word]) * nearness
    square = query.norms[value] * stored.value_norms[row]
    return np.sqrt(max(1.0 - dot / np.sqrt(square), 0.0) * 0.5) <= max_distance


@loop
def same_text(mine: int, word: int, query: QueryValues, stored: Stored) -> bool:
    """Return whether a word of the query is one of the partition."""
    return (
        compare_text(
            query.text, query.starts[mine], query.starts[mine + 1],
            stored.word_text, stored.word_starts[word], stored.word_starts[word + 1],
        )
        == 0
    )  # fmt: skip


@loop
def forget(noted: Noted) -> None:
    """Take back what was noted of words for one query value."""
    for position in range(noted.n_known[0]):
        noted.known[noted.known_words[position]] = -1.0
    noted.n_known[0] = noted.n_letters[0] = 0
