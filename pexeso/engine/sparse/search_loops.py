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

Sums are float32 of numbers that are not negative, so that each is off by a bounded share; bounds
make room for it. What lies within this room, and all that was found from r alone, is decided by the
definition.

Source: bounds of this kind are those of Anastasiu and Karypis, "L2AP: fast cosine similarity search
with prefix L-2 norm bounds" (ICDE 2014), and Li et al., "Cosine threshold queries" (2018).
"""

from __future__ import annotations

import numpy as np

from pexeso.engine.sparse.word_loops import (
    add_word,
    clear_table,
    common_of,
    compare_text,
    count_common,
    similarity,
    slots_for,
)
from pexeso.errors import IndexCorruptError
from pexeso.runtime.jit import loop

SELECTIVE = 0.5
"""Lists are left out where what is read of a value must still be so similar to it, as a cosine."""

DENSE = 8
"""Where more than one in so many words of a partition is read, all words are looked through."""

_A_VALUE = 64
"""To look at a value of a word takes as long as to read so many entries of lists."""

_BLOCK, _MANY = 64, 2
_LITTLE = np.float32(1e-9)

_WAY_OUT = "'pexeso check' lists the damage; restore the index, or build it again."
_NO_LIST = f"The lists of a partition lead out of it: {_WAY_OUT}"
_ROUNDING = np.float64(2.0**-22)


@loop
def largest_value(
    starts: np.ndarray, offsets: np.ndarray, members: np.ndarray, begin: int, end: int
) -> tuple[int, int, int]:
    """Return the most keys of a word and of a value, and the most words, of a run of values."""
    longest, letters, words = 0, 0, 0
    for value in range(begin, end):
        total = 0
        for position in range(offsets[value], offsets[value + 1]):
            size = 2 * (starts[members[position] + 1] - starts[members[position]]) + 1
            longest, total = max(longest, size), total + size
        letters, words = max(letters, total), max(words, offsets[value + 1] - offsets[value])
    return longest, letters, words


@loop
def first_key(wanted: int, keys: np.ndarray) -> int:
    """Return the position of the first of ascending keys that is no less than one."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@loop
def bound_of(rest: float, cosine: float) -> float:
    """Return what r . x is at least where the part left out has the squared length `rest`."""
    kept = max(1.0 - rest, 0.0)
    return kept * cosine - np.sqrt(kept * rest) * np.sqrt(max(1.0 - cosine * cosine, 0.0))


@loop(loose=True)
def select_words(near: np.ndarray, reach: np.ndarray, bound: float, words: np.ndarray) -> int:
    """Write the words with ``near * reach >= bound``; return their number."""
    n_words = 0
    for begin in range(0, len(near), _BLOCK):
        end = min(begin + _BLOCK, len(near))
        largest = np.float32(0.0)
        for word in range(begin, end):
            largest = max(largest, near[word] * reach[word])
        if largest >= bound:
            for word in range(begin, end):
                if near[word] * reach[word] >= bound:
                    words[n_words] = word
                    n_words += 1
    return n_words


@loop
def weigh_pairs(
    first: int,
    length: float,
    weights: np.ndarray,
    squares: np.ndarray,
    members: np.ndarray,
    own_words: np.ndarray,
    pairs: np.ndarray,
    heads: np.ndarray,
    chain: np.ndarray,
    filled: np.ndarray,
    keys: np.ndarray,
    list_offsets: np.ndarray,
    word_value_offsets: np.ndarray,
    entry_shares: np.ndarray,
    norms: np.ndarray,
    lists: np.ndarray,
    costs: np.ndarray,
) -> None:
    """Write what each pair of a table counts in a query value, its lists, and what it costs.

    To read a pair costs the entries of its lists, and a part of the values of the words that it is
    from.

    Parameters
    ----------
    entry_shares : numpy.ndarray, float64
        Of each entry of the chain; written.
    norms : numpy.ndarray of shape (p,), float64
        What each pair adds to the squared length of the features of the value; written.
    lists : numpy.ndarray of shape (p, 2), int64
        The lists of each pair, from the first to before the second; written.
    costs : numpy.ndarray of shape (p,), float64
        0 where the partition has no word with the pair; written.
    """
    for number in range(len(norms)):
        slot = filled[number]
        cost, norm, entry = 0.0, 0.0, heads[slot]
        while entry >= 0:
            word = members[first + chain[entry, 0]]
            share = weights[word] * chain[entry, 2] / np.sqrt(np.float64(squares[word])) / length
            entry_shares[entry] = share
            own = own_words[word]
            if own >= 0:
                cost += (word_value_offsets[own + 1] - word_value_offsets[own]) / squares[word]
            entry = chain[entry, 3]
        entry = heads[slot]
        while entry >= 0:
            other = heads[slot]
            while other >= 0:
                norm += (
                    entry_shares[entry] * entry_shares[other]
                    * common_of(chain[entry, 1], chain[other, 1])
                )  # fmt: skip
                other = chain[other, 3]
            entry = chain[entry, 3]
        norms[number] = norm
        begin = first_key(pairs[slot] << 12, keys)
        end = begin
        if begin < len(keys) and keys[begin] >> 12 == pairs[slot]:
            end = first_key((pairs[slot] + 1) << 12, keys)
        lists[number, 0], lists[number, 1] = begin, end
        n_entries = list_offsets[end] - list_offsets[begin]
        costs[number] = n_entries + _A_VALUE * cost if end > begin else 0.0


@loop
def count_read(
    order: np.ndarray,
    norms: np.ndarray,
    lists: np.ndarray,
    list_offsets: np.ndarray,
    letters: float,
    cosine: float,
) -> tuple[int, int, float]:
    """Decide which lists are read.

    Returns
    -------
    n_read : int
        The lists of the first so many pairs in `order` are read. All of them, unless leaving the
        others out saves half of the entries.
    n_entries : int
        Entries of these lists.
    bound : float
        What is read of a match is at least so similar to the query value.
    """
    n_entries, n_pairs = 0, len(order)
    for number in range(n_pairs):
        n_entries += list_offsets[lists[number, 1]] - list_offsets[lists[number, 0]]
    n_read, rest, bound, left = n_pairs, 0.0, cosine, n_entries
    while n_read:
        number = order[n_read - 1]
        more = rest + letters * norms[number]
        lower = bound_of(more, cosine)
        if lists[number, 0] == lists[number, 1] or (
            lower < SELECTIVE * np.sqrt(max(1.0 - more, 0.0))
        ):
            break
        rest, bound = more, lower
        left -= list_offsets[lists[number, 1]] - list_offsets[lists[number, 0]]
        n_read -= 1
    if left * 2 >= n_entries:
        return n_pairs, n_entries, cosine
    return n_read, left, bound


@loop
def read_lists(
    order: np.ndarray,
    lists: np.ndarray,
    filled: np.ndarray,
    heads: np.ndarray,
    chain: np.ndarray,
    entry_shares: np.ndarray,
    keys: np.ndarray,
    list_offsets: np.ndarray,
    list_words: np.ndarray,
    dense: bool,
    near: np.ndarray,
    words: np.ndarray,
    n_words: int,
) -> int:
    """Add what lists count to their words; note the words unless all are looked through anyway."""
    for number in order:
        for place in range(lists[number, 0], lists[number, 1]):
            share, entry = 0.0, heads[filled[number]]
            while entry >= 0:
                share += entry_shares[entry] * common_of(keys[place] & 4095, chain[entry, 1])
                entry = chain[entry, 3]
            added = np.float32(share)
            first, last = list_offsets[place], list_offsets[place + 1]
            if first < 0 or last < first or last > len(list_words):
                raise IndexCorruptError(_NO_LIST)
            for at in range(first, last):
                word = list_words[at]
                if word < 0 or word >= len(near):
                    raise IndexCorruptError(_NO_LIST)
                if near[word] == 0.0 and not dense:
                    words[n_words] = word
                    n_words += 1
                near[word] += added
    return n_words


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
        needed[band] = max((1.0 - band_shares[band]) * floor * (1.0 - 1e-4), _LITTLE) * 255.0
    for word in words:
        if near[word] * reach[word] < floor:
            continue
        nearness, band = near[word] * scales[word], 0
        first, last = word_value_offsets[word], word_value_offsets[word + 1]
        for entry in range(first, last):
            row = word_values[entry]
            if row < 0 or row >= len(gained):
                raise IndexCorruptError(_NO_LIST)
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
def collect_all(
    words: np.ndarray,
    near: np.ndarray,
    scales: np.ndarray,
    word_weights: np.ndarray,
    word_value_offsets: np.ndarray,
    value_word_offsets: np.ndarray,
    value_words: np.ndarray,
    value_norms: np.ndarray,
    floor: float,
    rows: np.ndarray,
) -> int:
    """Write all rows that are near enough, where most would be looked at anyway; else return -1.

    One row after the other is read much faster than rows here and there.
    """
    n_visits = 0
    for word in words:
        n_visits += word_value_offsets[word + 1] - word_value_offsets[word]
    if n_visits * _MANY < len(rows):
        return -1
    for word in range(len(near)):
        near[word] *= scales[word] * word_weights[word]
    n_rows = 0
    for row in range(len(rows)):
        first, last = value_word_offsets[row], value_word_offsets[row + 1]
        if first < 0 or last < first or last > len(value_words):
            raise IndexCorruptError(_NO_LIST)
        estimate = np.float32(0.0)
        for position in range(first, last):
            word = value_words[position]
            if word < 0 or word >= len(near):
                raise IndexCorruptError(_NO_LIST)
            estimate += near[word]
        if estimate >= floor * np.float32(np.sqrt(value_norms[row])) * np.float32(1.0 - 1e-6):
            rows[n_rows] = row
            n_rows += 1
    for word in range(len(near)):
        near[word] /= scales[word] * word_weights[word]
    return n_rows


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
    word_weights: np.ndarray,
    word_squares: np.ndarray,
    scales: np.ndarray,
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
    band_ends: np.ndarray,
    band_sums: np.ndarray,
    band_shares: np.ndarray,
    # The space and the threshold.
    letters: float,
    cosine: float,
    max_distance: float,
    # Working memory, and what is found.
    near: np.ndarray,
    words: np.ndarray,
    known: np.ndarray,
    known_words: np.ndarray,
    gained: np.ndarray,
    touched: np.ndarray,
    candidates: np.ndarray,
    found_rows: np.ndarray,
    found_sizes: np.ndarray,
    work: np.ndarray,
) -> int:
    """Find the stored rows that match some query values.

    Parameters
    ----------
    begin, end : int
        The run of query values.
    own_words : numpy.ndarray of shape (u,), int64
        The partition's number of each word of the query, -1 where it has it not.
    longest_word : int
        Bytes of the partition's longest word.
    scales : numpy.ndarray of shape (V,), float32
        ``letters / sqrt(square)`` of each word.
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
    cosine : float
        Above 0: less is no match, whatever the rounding.
    near : numpy.ndarray of shape (V,), float32
        Zeros; given back as such.
    words, known_words : numpy.ndarray of shape (V,), int32
    known : numpy.ndarray of shape (V,), float64
        All -1; given back as such.
    gained : numpy.ndarray of shape (N,), float32
        Zeros; given back as such.
    touched, candidates : numpy.ndarray of shape (N,), int32
    found_rows : numpy.ndarray, int32
        The matching rows of one value after the other, in no order.
    found_sizes : numpy.ndarray of shape (end - begin,), int64
        How many each value has.
    work : numpy.ndarray of shape (5,), int64
        Adds entries of lists of words, and of rows, rows decided by the definition, lists left out,
        rows whose similarity was added up.

    Returns
    -------
    int
        The first value that is not done, since `found_rows` was full; `end` where all are.
    """
    longest, room, most_words = largest_value(starts, offsets, members, begin, end)
    word_keys = np.empty(max(longest, 2 * longest_word + 1), np.int64)
    n_slots = slots_for(room)
    pairs, heads = np.empty(n_slots, np.int64), np.full(n_slots, -1, np.int32)
    chain, filled = np.empty((room, 4), np.int32), np.empty(room, np.int32)
    sizes, counts = np.zeros(2, np.int64), np.zeros(most_words, np.int64)
    entry_shares, pair_norms, costs = np.empty(room), np.empty(room), np.empty(room)
    lists, n_known = np.empty((room, 2), np.int64), np.zeros(1, np.int64)
    n_found = 0
    for value in range(begin, end):
        found_sizes[value - begin] = 0
        first, last = offsets[value], offsets[value + 1]
        if first == last:
            continue
        length = np.sqrt(norms[value])
        for position in range(first, last):
            word = members[position]
            add_word(
                text, starts[word], starts[word + 1], position - first,
                word_keys, pairs, heads, chain, filled, sizes,
            )  # fmt: skip
        n_pairs = sizes[1]
        weigh_pairs(
            first, length, weights, squares, members, own_words,
            pairs, heads, chain, filled, keys, list_offsets, word_value_offsets,
            entry_shares, pair_norms[:n_pairs], lists, costs,
        )  # fmt: skip
        order = np.argsort(costs[:n_pairs])
        n_read, n_entries, bound = count_read(
            order, pair_norms, lists, list_offsets, letters, cosine
        )
        rounding = (sizes[0] + last - first + 64) * _ROUNDING
        floor = np.float32(bound * (1.0 - rounding))
        sure = np.float32(cosine * (1.0 + rounding) + 1e-6)
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
        n_touched = n_words
        if dense:
            n_words = select_words(near, reach, floor, words)
        n_candidates = collect_all(
            words[:n_words], near, scales, word_weights, word_value_offsets, value_word_offsets,
            value_words, value_norms, floor, candidates,
        )  # fmt: skip
        if n_candidates < 0:
            n_candidates, n_rows, n_looked_at = collect_rows(
                words[:n_words], near, reach, scales, word_value_offsets, word_values,
                value_shares, band_ends, band_sums, band_shares, floor, gained, touched,
                candidates,
            )  # fmt: skip
            work[1] += n_looked_at
            for position in range(n_rows):
                gained[touched[position]] = 0.0
        n_hits = 0
        for number in range(n_candidates):
            row = candidates[number]
            first_word, last_word = value_word_offsets[row], value_word_offsets[row + 1]
            if first_word < 0 or last_word < first_word or last_word > len(value_words):
                raise IndexCorruptError(_NO_LIST)
            estimate = np.float32(0.0)
            for position in range(first_word, last_word):
                word = value_words[position]
                if word < 0 or word >= len(near):
                    raise IndexCorruptError(_NO_LIST)
                estimate += near[word] * word_weights[word] * scales[word]
            estimate /= np.float32(np.sqrt(value_norms[row]))
            if estimate < floor:
                continue
            if n_read < n_pairs or estimate < sure:
                work[2] += 1
                if not within(
                    row, first, last, text, starts, weights, squares, members, norms[value],
                    word_text, word_starts, word_weights, word_squares, value_word_offsets,
                    value_words, value_norms, letters, max_distance,
                    word_keys, pairs, heads, chain, counts, known, known_words, n_known,
                ):  # fmt: skip
                    continue
            candidates[n_hits] = row
            n_hits += 1
        for position in range(n_known[0]):
            known[known_words[position]] = -1.0
        n_known[0] = 0
        if dense:
            near[:] = 0.0
        else:
            for position in range(n_touched):
                near[words[position]] = 0.0
        clear_table(heads, filled, sizes)
        work[0] += n_entries
        work[4] += n_candidates
        work[3] += n_pairs - n_read
        if n_found + n_hits > len(found_rows):
            return value
        found_rows[n_found : n_found + n_hits] = candidates[:n_hits]
        found_sizes[value - begin] = n_hits
        n_found += n_hits
    return end


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
