"""Compiled loops of the search for matching values by posting lists of pairs of letters.

For a query value q the similarity g(w) of q and each word w that the partition has is added up from
the lists of q's pairs; a stored value x that matches has a word with ``g(w) * S(x)`` no less than
the cosine wanted, where S(x) is the sum of x's scaled weights, since cos = sum_j b_j g_j. Rows are
in the order of S, largest first, so that a word's values that can match begin its list.

The lists of one pair, for all blocks in which it stands, lie side by side. What each adds is what
its occurrences in q have in common with it (`common_of`).

Where a small distance is asked for, the longest lists need not be read. Let q = r + s, with s the
pairs left out, and rho = |r|. The angle of x and q is at most t, that of q and r is acos(rho), so

    r . x >= rho * cos(acos(rho) + t) = rho * (rho * c - sqrt(1 - rho^2) * sqrt(1 - c^2)),

and r takes the place of q, with this bound in the place of c.

Where a value has so many near words that most rows would be looked at one by one, it waits until
there are several of that kind, for which all rows are gone through at once (`lane_loops`).

Sums are float32 of numbers that are not negative, so that each is off by a bounded share; bounds
make room for it. What lies within this room, and all that was found from r alone, is decided by the
definition.

Source: bounds of this kind are those of Anastasiu and Karypis, "L2AP: fast cosine similarity search
with prefix L-2 norm bounds" (ICDE 2014), and Li et al., "Cosine threshold queries" (2018).
"""

from __future__ import annotations

import numpy as np

from pexeso.engine.sparse.loops.lane_loops import (
    LANES,
    ROW_ROUNDING,
    pack_lanes,
    scale_of,
    scan_rows,
    units_of,
)
from pexeso.engine.sparse.loops.list_loops import (
    NO_LIST,
    count_read,
    largest_value,
    read_lists,
    select_words,
    weigh_pairs,
)
from pexeso.engine.sparse.loops.row_loops import collect_rows, count_visits, within
from pexeso.engine.sparse.loops.word_loops import add_words, clear_table, slots_for
from pexeso.errors import IndexCorruptError
from pexeso.runtime.jit import loop

DENSE = 8
"""Where more than one in so many words of a partition is read, all words are looked through."""

_ROOM = 1 << 12
_ROUNDING = np.float64(2.0**-22)
_ROUNDING_OF_A_SUM = np.float64(1.01 * 2.0**-24)
_LEAST_FLOOR = 1e-6


@loop
def find_matches(
    begin: int,
    end: int,
    # The query values, as in `pexeso.engine.sparse.vectors.SparseVectors`.
    text: np.ndarray,
    starts: np.ndarray,
    weights: np.ndarray,
    squares: np.ndarray,
    offsets: np.ndarray,
    members: np.ndarray,
    norms: np.ndarray,
    own_words: np.ndarray,
    # The partition's words, keys and values.
    word_text: np.ndarray,
    word_starts: np.ndarray,
    longest_word: int,
    most_value_words: int,
    word_weights: np.ndarray,
    word_squares: np.ndarray,
    scales: np.ndarray,
    factors: np.ndarray,
    reach: np.ndarray,
    keys: np.ndarray,
    list_offsets: np.ndarray,
    list_words: np.ndarray,
    word_value_offsets: np.ndarray,
    word_values: np.ndarray,
    value_shares: np.ndarray,
    value_word_offsets: np.ndarray,
    value_words: np.ndarray,
    value_norms: np.ndarray,
    value_lengths: np.ndarray,
    band_ends: np.ndarray,
    band_sums: np.ndarray,
    band_shares: np.ndarray,
    # The space and the threshold.
    letters: float,
    cosine: float,
    max_distance: float,
    many: float,
    # Working memory, and what is found.
    lanes: np.ndarray,
    packed: np.ndarray,
    words: np.ndarray,
    known: np.ndarray,
    known_words: np.ndarray,
    gained: np.ndarray,
    touched: np.ndarray,
    candidates: np.ndarray,
    found_starts: np.ndarray,
    found_sizes: np.ndarray,
    work: np.ndarray,
) -> np.ndarray:
    """Find the stored rows that match some query values.

    Parameters
    ----------
    begin, end : int
        The run of query values.
    own_words : numpy.ndarray of shape (u,), int64
        The partition's number of each word of the query, -1 where it has it not.
    longest_word : int
        Bytes of the partition's longest word.
    most_value_words : int
        Words of the partition's value that has most: sums over them are off by their number.
    scales, factors : numpy.ndarray of shape (V,), float32
        ``letters / sqrt(square)`` of each word, and that times its weight.
    reach : numpy.ndarray of shape (V,), float32
        The scale of each word times the largest S of its values, over the share of its band.
    keys : numpy.ndarray of shape (F,), int64
        Pairs with their blocks, ascending.
    list_offsets, list_words : numpy.ndarray, int64 and int32
        The words of each key, a word as often as it has it.
    word_value_offsets, word_values : numpy.ndarray, int64 and int32
        The rows of each word, ascending, a row once.
    value_shares, band_ends, band_sums, band_shares
        See `collect_rows`.
    value_norms, value_lengths : numpy.ndarray of shape (N,), float64 and float32
        The dot product of each row with itself, and its root.
    cosine : float
        Above 0: less is no match, whatever the rounding.
    many : float
        Where visits of rows, times this, are as many as there are rows, all are gone through.
    lanes : numpy.ndarray of shape (LANES, V), float32
        Zeros; given back as such.
    packed : numpy.ndarray of shape (V, 2), uint64
    words, known_words : numpy.ndarray of shape (V,), int32
    known : numpy.ndarray of shape (V,), float64
        All -1; given back as such.
    gained : numpy.ndarray of shape (N,), float32
        Zeros; given back as such.
    touched, candidates : numpy.ndarray of shape (N,), int32
    found_starts, found_sizes : numpy.ndarray of shape (end - begin,), int64
        Where the rows of each value begin in what is returned, and how many it has.
    work : numpy.ndarray of shape (5,), int64
        Adds entries of lists of words, and of rows, rows decided by the definition, lists left out,
        rows whose similarity was added up.

    Returns
    -------
    numpy.ndarray, int32
        The matching rows of each value, in no order.
    """
    longest, room, most_words = largest_value(starts, offsets, members, begin, end)
    word_keys = np.empty(max(longest, 2 * longest_word + 1), np.int64)
    n_slots = slots_for(room)
    pairs, heads = np.empty(n_slots, np.int64), np.full(n_slots, -1, np.int32)
    chain, filled = np.empty((room, 4), np.int32), np.empty(room, np.int32)
    sizes, counts = np.zeros(2, np.int64), np.zeros(most_words, np.int64)
    entry_shares, pair_norms, costs = np.empty(room), np.empty(room), np.empty(room)
    lists, n_known = np.empty((room, 2), np.int64), np.zeros(1, np.int64)
    waiting, floors = np.empty(LANES, np.int64), np.empty(LANES, np.float32)
    sure_from, n_waiting = np.empty(LANES), 0
    found_rows, n_found = np.empty(_ROOM, np.int32), 0
    found_sizes[:] = 0
    longest_value = np.float64(value_lengths.max()) if len(value_lengths) else 1.0
    for value in range(begin, end):
        first, last = offsets[value], offsets[value + 1]
        if first < last:
            add_words(
                text, starts, members[first:last], word_keys, pairs, heads, chain, filled, sizes
            )
            n_pairs, length, near = sizes[1], np.sqrt(norms[value]), lanes[n_waiting]
            weigh_pairs(
                first, length, weights, squares, members, own_words,
                pairs, heads, chain, filled, keys, list_offsets, word_value_offsets,
                entry_shares, pair_norms[:n_pairs], lists, costs,
            )  # fmt: skip
            order = np.argsort(costs[:n_pairs])
            n_read, n_entries, bound = count_read(
                order, pair_norms, lists, list_offsets, letters, cosine
            )
            # A stored word is added to once for each of its keys, as often as it has them.
            rounding = (last - first + most_value_words + 64) * _ROUNDING + (
                (2 * longest_word + 2) * _ROUNDING_OF_A_SUM
            )
            floor = np.float32(max(bound * (1.0 - rounding), _LEAST_FLOOR))
            sure = np.float32(cosine * (1.0 + rounding) + 1e-6 if n_read == n_pairs else np.inf)
            dense = n_entries * DENSE >= len(near)
            n_words = 0
            if letters < 1.0:
                for position in range(first, last):
                    word = own_words[members[position]]
                    if word < 0:
                        continue
                    if near[word] == 0.0 and not dense:
                        words[n_words] = word
                        n_words += 1
                    near[word] += np.float32(
                        weights[members[position]] / length * (1.0 - letters)
                        / np.float64(scales[word])
                    )  # fmt: skip
            n_words = read_lists(
                order[:n_read], lists, filled, heads, chain, entry_shares, keys, list_offsets,
                list_words, dense, near, words, n_words,
            )  # fmt: skip
            work[0] += n_entries
            work[3] += n_pairs - n_read
            n_touched, many = n_words, False
            if dense:
                n_words = select_words(near, reach, floor, words)
                many = count_visits(words[:n_words], word_value_offsets) * many >= len(gained)
            if many:
                waiting[n_waiting], floors[n_waiting], sure_from[n_waiting] = value, floor, sure
                n_waiting += 1
            else:
                n_candidates, n_rows, n_looked_at = collect_rows(
                    words[:n_words], near, reach, scales, word_value_offsets, word_values,
                    value_shares, band_ends, band_sums, band_shares, floor, rounding, gained,
                    touched, candidates,
                )  # fmt: skip
                for position in range(n_rows):
                    gained[touched[position]] = 0.0
                n_hits = 0
                for number in range(n_candidates):
                    row = candidates[number]
                    begin_words, end_words = value_word_offsets[row], value_word_offsets[row + 1]
                    if begin_words < 0 or end_words < begin_words or end_words > len(value_words):
                        raise IndexCorruptError(NO_LIST)
                    estimate = np.float32(0.0)
                    for position in range(begin_words, end_words):
                        word = value_words[position]
                        if word < 0 or word >= len(near):
                            raise IndexCorruptError(NO_LIST)
                        estimate += near[word] * factors[word]
                    estimate /= value_lengths[row]
                    if estimate < floor:
                        continue
                    if estimate < sure:
                        work[2] += 1
                        if not within(
                            row, first, last, text, starts, weights, squares, members,
                            norms[value], word_text, word_starts, word_weights, word_squares,
                            value_word_offsets, value_words, value_norms, letters, max_distance,
                            word_keys, pairs, heads, chain, counts, known, known_words, n_known,
                        ):  # fmt: skip
                            continue
                    candidates[n_hits] = row
                    n_hits += 1
                found_rows = with_room(found_rows, n_found, n_hits)
                found_rows[n_found : n_found + n_hits] = candidates[:n_hits]
                found_starts[value - begin], found_sizes[value - begin] = n_found, n_hits
                n_found += n_hits
                work[1] += n_looked_at
                work[4] += n_candidates
                if dense:
                    near[:] = 0.0
                else:
                    for position in range(n_touched):
                        near[words[position]] = 0.0
            forget(known, known_words, n_known)
            clear_table(heads, filled, sizes)
        if n_waiting == 0 or (n_waiting < LANES and value < end - 1):
            continue
        scale = scale_of(floors[:n_waiting], longest_value, most_value_words)
        pack_lanes(lanes[:n_waiting], factors, floors, scale, packed)
        rows, masks, sums = scan_rows(
            packed, value_word_offsets, value_words, value_lengths, scale, most_value_words
        )
        found_rows = with_room(found_rows, n_found, n_waiting * len(rows))
        for lane in range(n_waiting):
            asked = waiting[lane]
            first, last = offsets[asked], offsets[asked + 1]
            # What a row needs for each unit of its length to match for certain.
            enough = scale * (sure_from[lane] / np.float64(floors[lane])) * (1.0 + ROW_ROUNDING)
            found_starts[asked - begin] = n_found
            for number in range(len(rows)):
                if not masks[number] >> lane & 1:
                    continue
                row, units = rows[number], units_of(sums[number], lane)
                if units < np.float64(value_lengths[row]) * enough:
                    work[2] += 1
                    if sizes[0] == 0:
                        add_words(
                            text, starts, members[first:last],
                            word_keys, pairs, heads, chain, filled, sizes,
                        )  # fmt: skip
                    if not within(
                        row, first, last, text, starts, weights, squares, members,
                        norms[asked], word_text, word_starts, word_weights, word_squares,
                        value_word_offsets, value_words, value_norms, letters, max_distance,
                        word_keys, pairs, heads, chain, counts, known, known_words, n_known,
                    ):  # fmt: skip
                        continue
                found_rows[n_found] = row
                n_found += 1
            found_sizes[asked - begin] = n_found - found_starts[asked - begin]
            forget(known, known_words, n_known)
            clear_table(heads, filled, sizes)
        work[4] += n_waiting * len(gained)
        lanes[:n_waiting] = 0.0
        n_waiting = 0
    return found_rows[:n_found]


@loop
def forget(known: np.ndarray, known_words: np.ndarray, n_known: np.ndarray) -> None:
    """Take back what was noted of words for one query value."""
    for position in range(n_known[0]):
        known[known_words[position]] = -1.0
    n_known[0] = 0


@loop
def with_room(rows: np.ndarray, n_rows: int, n_more: int) -> np.ndarray:
    """Return an array that begins with the same rows, and has room for some more."""
    if n_rows + n_more <= len(rows):
        return rows
    larger = np.empty(max(2 * len(rows), n_rows + n_more), np.int32)
    larger[:n_rows] = rows[:n_rows]
    return larger
