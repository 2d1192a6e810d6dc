"""Loops of searches by equal texts: posting lists, dictionaries, hashes, signatures and bands.

Numbers that are read from an index are examined before they are followed.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libcpp.algorithm cimport sort
from libcpp.pair cimport pair
from libcpp.vector cimport vector

import numpy as np

from pexeso.runtime.galloping cimport not_before

ctypedef fused Offset:
    int32_t
    int64_t

ctypedef fused Token:
    int32_t
    int64_t

ctypedef fused Value:
    uint16_t
    uint32_t

ctypedef fused SetNumber:
    uint16_t
    int32_t

cdef enum:
    LESS = -1
    EQUAL = 0
    GREATER = 1
    DAMAGED = 2

include "containment/hashing.pxi"
include "containment/bands.pxi"


# Posting lists.


def best_by_lists(
    const int32_t[::1] list_sets,
    const int64_t[::1] begins,
    const int64_t[::1] ends,
    const int64_t[::1] weights,
    const int64_t[::1] excluded,
    int64_t k,
    int64_t at_least,
    int32_t[::1] counts,
):
    """Return the k sets in most of some posting lists, equal ones by number, and their counts.

    A step for each entry, and some for each set met. None where a list names no set.

    Parameters
    ----------
    begins, ends : int64 (m,)
        Where each list begins and ends.
    weights : int64 (m,)
        The tokens that each list stands for.
    excluded : int64
        Numbers of sets that are not wanted.
    counts : int32 (n,)
        All 0, as they are again where something is returned.
    """
    cdef int64_t n_sets = counts.shape[0], n = 0, n_entries = 0, most = 0, border, n_best = 0
    cdef int64_t j, i, at
    cdef int32_t row, weight, count
    cdef bint sound = True
    cdef vector[int64_t] having
    cdef vector[pair[int64_t, int64_t]] best
    for j in range(begins.shape[0]):
        n_entries += ends[j] - begins[j]
        most += weights[j]
    cdef int32_t[::1] hits = np.empty(min(n_entries, n_sets) + 1, np.int32)
    with nogil:
        for j in range(begins.shape[0]):
            weight = <int32_t>weights[j]
            for at in range(begins[j], ends[j]):
                row = list_sets[at]
                if row < 0 or row >= n_sets:
                    sound = False
                    break
                # Without a branch: nobody can foresee which sets were met before. The cell behind
                # the last is written to in vain.
                hits[n] = row
                n += counts[row] == 0
                counts[row] += weight
            if not sound:
                break
        if sound:
            for j in range(excluded.shape[0]):
                if 0 <= excluded[j] < n_sets:
                    counts[excluded[j]] = 0
            having.resize(most + 2)
            for i in range(n):
                having[counts[hits[i]]] += 1
            border = most + 1
            while border > at_least and n_best < k:
                border -= 1
                n_best += having[border]
            best.reserve(n_best)
            for i in range(n):
                count = counts[hits[i]]
                if count >= border:
                    best.push_back(pair[int64_t, int64_t](-count, hits[i]))
                counts[hits[i]] = 0
            sort(best.begin(), best.end())
    if not sound:
        return None
    sets, overlaps = np.empty(min(n_best, k), np.int64), np.empty(min(n_best, k), np.int64)
    cdef int64_t[::1] set_view = sets, overlap_view = overlaps
    for i in range(set_view.shape[0]):
        set_view[i], overlap_view[i] = best[i].second, -best[i].first
    return sets, overlaps


def count_by_lists(
    const int64_t[::1] begins,
    const int64_t[::1] ends,
    const uint8_t[::1] telling,
    const int32_t[::1] list_sets,
    int32_t[::1] counts,
    int32_t[::1] telling_counts,
    int64_t[::1] met,
):
    """Return how many sets hold some of q query tokens, -1 where a list names none.

    The sets are written to `met`, and the tokens of each, and those of them that are telling, are
    added to `counts` and `telling_counts`, which are all 0.
    """
    cdef int64_t n = 0, j, at
    cdef int32_t row
    cdef bint sound = True
    with nogil:
        for j in range(begins.shape[0]):
            for at in range(begins[j], ends[j]):
                row = list_sets[at]
                if row < 0 or row >= counts.shape[0]:
                    sound = False
                    break
                if counts[row] == 0:
                    met[n] = row
                    n += 1
                counts[row] += 1
                telling_counts[row] += telling[j]
            if not sound:
                break
    return n if sound else -1


def shortest_first(const Offset[::1] token_offsets, const int64_t[::1] tokens):
    """Return tokens by the lengths of their lists, and the entries of the lists up to each.

    None where there is no such token.
    """
    cdef int64_t n = tokens.shape[0], n_entries = 0, j, token, length
    cdef bint sound = True
    cdef vector[int64_t] keys
    ordered, entries = np.empty(n, np.int64), np.empty(n, np.int64)
    cdef int64_t[::1] ordered_view = ordered, entry_view = entries
    with nogil:
        keys.resize(n)
        for j in range(n):
            token = tokens[j]
            if token < 0 or token >= token_offsets.shape[0] - 1:
                sound = False
                break
            # The length before the place. Lists of more sets than there can be are refused later.
            length = token_offsets[token + 1] - token_offsets[token]
            keys[j] = min(max(length, <int64_t>0), <int64_t>0x7FFFFFFF) << 32 | j
        if sound:
            sort(keys.begin(), keys.end())
            for j in range(n):
                token = tokens[keys[j] & <int64_t>0xFFFFFFFF]
                n_entries += token_offsets[token + 1] - token_offsets[token]
                ordered_view[j], entry_view[j] = token, n_entries
    return (ordered, entries) if sound else None


def sets_with_enough(
    const Offset[::1] token_offsets,
    const int32_t[::1] list_sets,
    const Offset[::1] set_offsets,
    const Token[::1] set_tokens,
    const int64_t[::1] tokens,
    int64_t needed,
    int64_t entries_a_probe,
    int32_t[::1] counts,
    int32_t[::1] sets,
):
    """Store the sets with enough tokens in `sets`; return their number, or -1 for damaged arrays.

    The counts of these sets stay in `counts`; those of all others are 0 again. `sets` is one longer
    than can be needed.
    """
    cdef int64_t n_tokens = tokens.shape[0], n = 0, j = 0, prefix, begin, end, i, row, known, more
    cdef vector[int64_t] rest
    cdef bint sound = True
    with nogil:
        prefix = n_tokens - needed + 1
        while j < n_tokens:
            begin, end = token_offsets[tokens[j]], token_offsets[tokens[j] + 1]
            if begin < 0 or end < begin or end > list_sets.shape[0]:
                sound = False
                break
            if j < prefix:
                n = count_and_meet(list_sets, begin, end, counts, sets, n)
                sound = n >= 0
            else:
                # A set that is named first from here on has too few; one that cannot have enough is
                # left.
                n = drop(counts, sets, n, needed - (n_tokens - j))
                if end - begin > entries_a_probe * n:
                    break
                sound = count_met(list_sets, begin, end, counts)
            if not sound:
                break
            j += 1
        if sound and j < n_tokens:
            rest.assign(&tokens[j], &tokens[j] + (n_tokens - j))
            sort(rest.begin(), rest.end())
            for i in range(n):
                row = sets[i]
                begin, end = set_offsets[row], set_offsets[row + 1]
                if begin < 0 or end < begin or end > set_tokens.shape[0]:
                    sound = False
                    break
                known, more = counts[row], -1
                if end - begin >= needed:
                    more = in_common(
                        set_tokens, begin, end, rest.data(), rest.size(), needed - known
                    )
                counts[row] = <int32_t>(known + more) if more >= 0 else 0
        if sound:
            n = drop(counts, sets, n, needed)
    return n if sound else -1


# No processor foresees which sets were met before, so the next three loops do the same steps for
# all, and let numbers decide.


cdef int64_t count_and_meet(
    const int32_t[::1] entries,
    int64_t begin,
    int64_t end,
    int32_t[::1] counts,
    int32_t[::1] sets,
    int64_t n,
) noexcept nogil:
    """Count sets, and record those met first in `sets`; return -1 where there is no such set."""
    cdef int64_t at
    cdef int32_t row
    for at in range(begin, end):
        row = entries[at]
        if row < 0 or row >= counts.shape[0]:
            return -1
        sets[n] = row
        n += counts[row] == 0
        counts[row] += 1
    return n


cdef bint count_met(
    const int32_t[::1] entries, int64_t begin, int64_t end, int32_t[::1] counts
) noexcept nogil:
    """Count sets that were met before."""
    cdef int64_t at
    cdef int32_t row
    for at in range(begin, end):
        row = entries[at]
        if row < 0 or row >= counts.shape[0]:
            return False
        counts[row] += counts[row] > 0
    return True


cdef int64_t drop(
    int32_t[::1] counts, int32_t[::1] sets, int64_t n, int64_t needed
) noexcept nogil:
    """Leave the sets with at least so many tokens, which must be one or more."""
    cdef int64_t n_kept = 0, i
    cdef int32_t row, enough
    needed = max(needed, <int64_t>1)
    for i in range(n):
        row = sets[i]
        enough = counts[row] >= needed
        sets[n_kept] = row
        n_kept += enough
        counts[row] *= enough
    return n_kept


def count_overlaps(
    const Offset[::1] set_offsets,
    const Token[::1] set_tokens,
    const int64_t[::1] sets,
    const int64_t[::1] tokens,
    int64_t needed,
    int64_t[::1] counts,
):
    """Count the ascending tokens that sets hold, -1 for less than `needed`; False if damaged."""
    cdef int64_t n_tokens = tokens.shape[0], i, row, begin, end
    cdef const int64_t* wanted = &tokens[0] if n_tokens else NULL
    cdef bint sound = True
    with nogil:
        for i in range(sets.shape[0]):
            row = sets[i]
            if row < 0 or row >= set_offsets.shape[0] - 1:
                sound = False
                break
            begin, end = set_offsets[row], set_offsets[row + 1]
            if begin < 0 or end < begin or end > set_tokens.shape[0]:
                sound = False
                break
            counts[i] = -1
            if end - begin >= needed:
                counts[i] = in_common(set_tokens, begin, end, wanted, n_tokens, needed)
    return sound


cdef int64_t in_common(
    const Token[::1] set_tokens,
    int64_t low,
    int64_t end,
    const int64_t* tokens,
    int64_t n_tokens,
    int64_t needed,
) noexcept nogil:
    """Count ascending tokens in a set from `low` to `end`: -1 as soon as they cannot be enough."""
    cdef int64_t may_miss = n_tokens - needed, count = 0, j
    cdef Token token
    if may_miss < 0:
        return -1
    for j in range(n_tokens):
        token = <Token>tokens[j]
        low = not_before(set_tokens, low, end, token)
        if low < end and set_tokens[low] == token:
            count += 1
            low += 1
        else:
            may_miss -= 1
            if may_miss < 0:
                return -1
    return count


# Texts.


def first_not_less(
    const Offset[::1] offsets,
    const uint8_t[::1] data,
    const int64_t[::1] wanted_offsets,
    const uint8_t[::1] wanted_data,
    int64_t[::1] rows,
    const int64_t[::1] ends,
):
    """Find where each wanted text lies, or would, among ascending texts; see `find_texts`.

    It is the end if all texts are less. False where a text leads out of its file.
    """
    cdef bint sound
    with nogil:
        sound = search(offsets, data, wanted_offsets, wanted_data, rows, ends)
    return sound


def find_texts(
    const Offset[::1] offsets,
    const uint8_t[::1] data,
    const int64_t[::1] wanted_offsets,
    const uint8_t[::1] wanted_data,
    int64_t[::1] rows,
    const int64_t[::1] ends,
):
    """Find wanted texts among ascending ones.

    Parameters
    ----------
    offsets : int32 or int64 (n + 1,)
        Text i is ``data[offsets[i]:offsets[i + 1]]``.
    rows : int64 (q,)
        The first row that can hold each. Its row is written, -1 where there is none.
    ends : int64 (q,)
        The row behind those that are less; the text may be there too.

    Returns
    -------
    bool
        False where a text leads out of its file.
    """
    cdef int64_t j
    cdef int order
    cdef bint sound
    with nogil:
        sound = search(offsets, data, wanted_offsets, wanted_data, rows, ends)
        if sound:
            for j in range(rows.shape[0]):
                order = GREATER
                if rows[j] < offsets.shape[0] - 1:
                    order = compared(offsets, data, rows[j], wanted_offsets, wanted_data, j)
                if order == DAMAGED:
                    sound = False
                    break
                if order != EQUAL:
                    rows[j] = -1
    return sound


cdef bint search(
    const Offset[::1] offsets,
    const uint8_t[::1] data,
    const int64_t[::1] wanted_offsets,
    const uint8_t[::1] wanted_data,
    int64_t[::1] rows,
    const int64_t[::1] ends,
) noexcept nogil:
    """Take each step of the binary search for all texts in turn.

    So memory accesses do not wait for each other.
    """
    cdef int64_t left = 0, half, j
    cdef int order
    for j in range(rows.shape[0]):
        left = max(left, ends[j] - rows[j])
    while left > 0:
        half = (left + 1) >> 1
        for j in range(rows.shape[0]):
            if rows[j] + half > ends[j]:
                continue
            order = compared(offsets, data, rows[j] + half - 1, wanted_offsets, wanted_data, j)
            if order == DAMAGED:
                return False
            if order == LESS:
                rows[j] += half
        left -= half
    return True


cdef int compared(
    const Offset[::1] offsets,
    const uint8_t[::1] data,
    int64_t row,
    const int64_t[::1] wanted_offsets,
    const uint8_t[::1] wanted_data,
    int64_t wanted,
) noexcept nogil:
    """Compare a text with a wanted one byte by byte."""
    cdef int64_t begin = offsets[row], end = offsets[row + 1], at, until, i
    if begin < 0 or end < begin or end > data.shape[0]:
        return DAMAGED
    at, until = wanted_offsets[wanted], wanted_offsets[wanted + 1]
    for i in range(min(end - begin, until - at)):
        if data[begin + i] != wanted_data[at + i]:
            return LESS if data[begin + i] < wanted_data[at + i] else GREATER
    if end - begin == until - at:
        return EQUAL
    return LESS if end - begin < until - at else GREATER
