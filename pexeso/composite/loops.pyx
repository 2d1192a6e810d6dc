"""Loops of searches by composite keys: hits from posting lists, and the best mapping of each table.

A hit is a row together with a group of keys that it may hold; keys of a group stand together. What
is read from an index is compared, never followed, but for the places of rows and lists: these the
caller examines.
"""

from libc.math cimport log2
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.algorithm cimport sort
from libcpp.pair cimport pair
from libcpp.vector cimport vector

import numpy as np

from pexeso.runtime.galloping cimport not_before

include "row_keys.pxi"
include "row_filters.pxi"
include "similar.pxi"

ENTRIES, TABLES, EVALUATED, ABANDONED, PROBES, PASSED, HELD = range(7)
"""What is counted: see `pexeso.composite.search.Work`."""

cdef enum:
    AT_ENTRIES = 0
    AT_EVALUATED = 2
    AT_ABANDONED = 3
    AT_PROBES = 4
    AT_PASSED = 5
    AT_HELD = 6

cdef int64_t MOST = 0x7FFFFFFFFFFFFFFF


def expected_work(
    const int64_t[::1] begins, const int64_t[::1] ends, const int32_t[:, ::1] keys, int64_t column
):
    """Return what a search would read: entries of lists, probes, and steps of an intersection.

    Parameters
    ----------
    begins, ends : int64 (u,)
        Where the list of each value begins and ends.
    keys : int32 (n, m)
        Which of these values a key has; those with the same value in `column` stand together.
    """
    cdef int64_t n_entries = 0, n_probes = 0, last = -1, key, value, length, shortest, second, i
    cdef double n_steps = 0.0
    with nogil:
        for key in range(keys.shape[0]):
            value = keys[key, column]
            length = ends[value] - begins[value]
            n_probes += length
            n_entries += length * (value != last)
            last = value
            shortest = second = MOST
            for i in range(keys.shape[1]):
                value = keys[key, i]
                length = ends[value] - begins[value]
                if length < shortest:
                    shortest, second = length, shortest
                else:
                    second = min(second, length)
            # Most rows are not in the second list either, so the lists behind it are seldom read.
            n_steps += shortest * (1 + log2(1 + <double>second / <double>shortest))
    return n_entries, n_probes, n_steps


def list_hits(
    const int64_t[::1] begins, const int64_t[::1] ends, const int32_t[::1] posting_rows
):
    """Return the rows of posting lists, and which list each row is of: int64 (h,)."""
    cdef int64_t n = 0, group, at
    for group in range(begins.shape[0]):
        n += ends[group] - begins[group]
    hits = np.empty(n, np.int64)
    cdef int64_t[::1] hit_view = hits
    n = 0
    with nogil:
        for group in range(begins.shape[0]):
            for at in range(begins[group], ends[group]):
                hit_view[n] = (<int64_t>posting_rows[at] << 32) | group
                n += 1
    return hits


def intersection_hits(
    const int64_t[::1] begins,
    const int64_t[::1] ends,
    const int32_t[::1] posting_rows,
    const int32_t[:, ::1] keys,
    int64_t[::1] work,
):
    """Return the rows that are in the lists of all values of a key, and the key of each.

    Parameters
    ----------
    begins, ends : int64 (u,)
        Where the list of each value begins and ends.
    posting_rows : int32
    keys : int32 (n, m)
        Which of these values a key has.
    work : int64 (7,)
        The entries read are added to it.
    """
    cdef int64_t m = keys.shape[1], key, i, position, begin, until, at, other, n_entries = 0
    cdef int32_t row
    cdef bint everywhere
    cdef vector[int64_t] hits, low, end
    with nogil:
        low.resize(m)
        end.resize(m)
        for key in range(keys.shape[0]):
            for i in range(m):
                begin, until = begins[keys[key, i]], ends[keys[key, i]]
                position = i
                while position > 0 and end[position - 1] - low[position - 1] > until - begin:
                    low[position], end[position] = low[position - 1], end[position - 1]
                    position -= 1
                low[position], end[position] = begin, until
            n_entries += end[0] - low[0]
            for at in range(low[0], end[0]):
                row, everywhere = posting_rows[at], True
                for other in range(1, m):
                    low[other] = not_before(posting_rows, low[other], end[other], row)
                    if low[other] == end[other] or posting_rows[low[other]] != row:
                        everywhere = False
                        break
                if everywhere:
                    hits.push_back((<int64_t>row << 32) | key)
    work[AT_ENTRIES] += n_entries
    return array_of(hits)


cdef array_of(const vector[int64_t]& numbers):
    made = np.empty(numbers.size(), np.int64)
    cdef int64_t[::1] view = made
    cdef int64_t i
    for i in range(view.shape[0]):
        view[i] = numbers[i]
    return made


def tables_of_hits(const int32_t[::1] hit_rows, const int64_t[::1] table_rows):
    """Return the tables with hits: int64 (r, 4).

    These are a table, where its hits begin and end, and the rows with hits.

    Parameters
    ----------
    hit_rows : int32 (h,)
        Ascending, each a row of some table.
    table_rows : int64 (t + 1,)
        Where the rows of each table begin.
    """
    cdef int64_t n_hits = hit_rows.shape[0], n = 0, table = -1, last_row = -1, hit, row
    cdef int64_t end = 0, n_rows = 0  # of the table at hand
    tables = np.empty((min(n_hits, table_rows.shape[0] - 1), 4), np.int64)
    cdef int64_t[:, ::1] view = tables
    with nogil:
        for hit in range(n_hits):
            row = hit_rows[hit]
            if row >= end:
                if n:
                    view[n - 1, 2], view[n - 1, 3] = hit, n_rows
                table = not_before(table_rows, table + 1, table_rows.shape[0], row + 1) - 1
                view[n, 0], view[n, 1] = table, hit
                end, n_rows = table_rows[table + 1], 0
                n += 1
            n_rows += row != last_row
            last_row = row
        if n:
            view[n - 1, 2], view[n - 1, 3] = n_hits, n_rows
    return tables[:n]


ctypedef pair[int32_t, int64_t] Pair  # a key, and where the cells of a row that holds it begin


cdef struct Keys:
    # Of n keys of m values their numbers, and how often each is in its key; the one to look at last.
    const int32_t* numbers
    const int32_t* repeats
    int64_t m
    int64_t first


def best_tables(
    const int64_t[:, ::1] tables,
    const int32_t[::1] hit_rows,
    const int32_t[::1] hit_groups,
    const int64_t[::1] group_ends,
    const int32_t[:, ::1] keys,
    const int32_t[:, ::1] repeats,
    int64_t first,
    const uint64_t[:, ::1] key_bits,
    const uint64_t[:, ::1] row_bits,
    const int32_t[::1] cells,
    const int64_t[::1] table_rows,
    const int64_t[::1] table_cells,
    const int64_t[::1] widths,
    int64_t k,
    int64_t at_least,
    int64_t[::1] work,
):
    """Find the tables that join most keys: (int64 (r,), int64 (r,), int64 (r, m)).

    Parameters
    ----------
    tables : int64 (t, 4)
        As `tables_of_hits` returns them; those with most rows first, equal ones by number.
    hit_rows, hit_groups : int32 (h,), int32 (h,)
    group_ends : int64 (g + 1,)
        The keys of group i are those from ``group_ends[i]`` to ``group_ends[i + 1] - 1``.
    keys, repeats : int32 (n, m), int32 (n, m)
        Numbers of values, and how often each is in its key.
    key_bits, row_bits : uint64 (n, w), uint64 (rows, w)
        Super keys; w is 0 for no filter.
    k : int
        0 for all tables.
    work : int64 (7,)
        Counts are added to it.
    """
    cdef int64_t m = keys.shape[1], n_words = key_bits.shape[1], n_tables = tables.shape[0]
    cdef int64_t capacity = min(k, n_tables) if k else n_tables
    cdef int64_t n_found = 0, worst = 0, n_probes = 0, n_passed = 0, n_pairs, n_before, n, i, at
    cdef int64_t position, table, hit, end, open_rows, needed, width, row, begin, group, key, word
    cdef int64_t n_evaluated = 0, n_abandoned = 0, n_held = 0
    cdef bint covered, equal
    cdef const uint64_t* of_key
    cdef const uint64_t* of_row
    cdef const int32_t* row_cells
    cdef Keys view
    cdef vector[Pair] pairs
    cdef vector[int64_t] mapping
    positions, best = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    mappings = np.empty((capacity, m), np.int64)
    cdef int64_t[::1] position_view = positions, best_view = best
    cdef int64_t[:, ::1] mapping_view = mappings
    if not n_tables or not keys.shape[0] or not m:
        return positions[:0], best[:0], mappings[:0]
    with nogil:
        view.numbers, view.repeats, view.m, view.first = &keys[0, 0], &repeats[0, 0], m, first
        mapping.resize(m)
        for position in range(n_tables):
            table, hit = tables[position, 0], tables[position, 1]
            end, open_rows = tables[position, 2], tables[position, 3]
            needed = at_least
            if k and n_found == k:
                # Of equal tables the one with the lower number is wanted.
                needed = best_view[worst] + (table > tables[position_view[worst], 0])
            if open_rows < needed:
                # Every key needs a row of its own. The tables behind have as many rows or fewer,
                # and those with as many have higher numbers.
                break
            n_evaluated += 1
            width = widths[table]
            pairs.clear()
            n_pairs = 0
            while hit < end and open_rows >= needed:
                row, n_before = hit_rows[hit], n_pairs
                begin = table_cells[table] + (row - table_rows[table]) * width
                row_cells = &cells[begin] if width else NULL
                of_row = &row_bits[row, 0] if n_words else NULL
                while hit < end and hit_rows[hit] == row:
                    group = hit_groups[hit]
                    n_probes += group_ends[group + 1] - group_ends[group]
                    for key in range(group_ends[group], group_ends[group + 1]):
                        covered = True
                        if n_words:
                            of_key = &key_bits[key, 0]
                            for word in range(n_words):
                                if of_key[word] & ~of_row[word]:
                                    covered = False
                                    break
                        if not covered:
                            continue
                        n_passed += 1
                        if holds(row_cells, width, view, key):
                            pairs.push_back(Pair(<int32_t>key, begin))
                            n_pairs += 1
                    hit += 1
                open_rows -= n_pairs == n_before
            n_held += n_pairs
            if open_rows < needed:
                n_abandoned += hit < end
                continue
            sort(pairs.begin(), pairs.end())
            n = best_mapping(cells, width, view, pairs, open_rows, needed, mapping)
            if n < needed:
                continue
            at = worst
            if n_found < capacity:
                at = n_found
                n_found += 1
            position_view[at], best_view[at] = position, n
            for i in range(m):
                mapping_view[at, i] = mapping[i]
            if k and n_found == k:
                for i in range(k):
                    equal = best_view[i] == best_view[worst]
                    if best_view[i] < best_view[worst] or (
                        equal and tables[position_view[i], 0] > tables[position_view[worst], 0]
                    ):
                        worst = i
    work[AT_EVALUATED] += n_evaluated
    work[AT_ABANDONED] += n_abandoned
    work[AT_HELD] += n_held
    work[AT_PROBES] += n_probes
    work[AT_PASSED] += n_passed
    return positions[:n_found], best[:n_found], mappings[:n_found]


cdef bint holds(const int32_t* row, int64_t width, Keys keys, int64_t key) noexcept nogil:
    """Return whether a row holds each value of a key as often as the key does."""
    cdef const int32_t* numbers = keys.numbers + key * keys.m
    cdef const int32_t* repeats = keys.repeats + key * keys.m
    cdef int64_t after, i, column
    cdef int32_t value, n
    for after in range(1, keys.m + 1):
        i = keys.first + after
        i -= keys.m * (i >= keys.m)
        value, n = numbers[i], 0
        for column in range(width):
            n += row[column] == value
        if n < repeats[i]:
            return False
    return True


cdef int64_t best_mapping(
    const int32_t[::1] cells,
    int64_t width,
    Keys keys,
    const vector[Pair]& pairs,
    int64_t n_rows,
    int64_t needed,
    vector[int64_t]& mapping,
) noexcept nogil:
    """Return the most keys that a mapping joins, and store the first such mapping.

    Pairs are sorted by key. No mapping joins more keys than they have rows, `n_rows`. `mapping` is
    left as it is where none joins so many as are needed.
    """
    cdef int64_t m = keys.m, n_pairs = pairs.size(), best = needed - 1, step = 0, i, c, n, at
    cdef int32_t* of_step
    cdef int32_t* of_value
    cdef vector[int32_t] kept, counts, last_key  # by step: the pairs that fit the columns chosen,
    cdef vector[int64_t] n_kept, chosen, column  # and what each column leaves for each value
    kept.resize(m * n_pairs)
    for at in range(n_pairs):
        kept[at] = <int32_t>at
    n_kept.assign(m, n_pairs)
    counts.resize(m * m * width)
    last_key.resize(width)
    chosen.assign(m, -1)  # by step: the value of the key that gets its column
    column.assign(m, -1)  # by value of the key
    while step >= 0:
        of_step = counts.data() + step * m * width
        i = chosen[step]
        if i < 0:
            i = narrowest(
                cells, width, keys, pairs, kept.data() + step * n_pairs, n_kept[step], column,
                max(best, needed), of_step, last_key,
            )  # fmt: skip
            chosen[step] = i
        of_value, c = of_step + i * width, 0
        for at in range(1, width):
            if of_value[at] > of_value[c]:
                c = at
        n = of_value[c]
        of_value[c] = -1
        column[i] = c
        if n < max(best, needed):
            column[i] = chosen[step] = -1
            step -= 1
        elif min(n, n_rows) == best and not may_be_first(of_step, width, column, best, mapping):
            column[i] = -1
        elif step == m - 1:
            best = n
            for at in range(m):
                mapping[at] = column[at]
        else:
            step += 1
            n_kept[step] = keep(
                cells, keys, i, c, pairs, kept.data() + (step - 1) * n_pairs, n_kept[step - 1],
                kept.data() + step * n_pairs,
            )  # fmt: skip
    return best


cdef int64_t narrowest(
    const int32_t[::1] cells,
    int64_t width,
    Keys keys,
    const vector[Pair]& pairs,
    const int32_t* kept,
    int64_t n_kept,
    const vector[int64_t]& column,
    int64_t enough,
    int32_t* counts,
    vector[int32_t]& last_key,
) noexcept nogil:
    """Count what each free column leaves for each value without one; return the narrowest value."""
    cdef int64_t best = -1, fewest = 0, i, n, at
    cdef int32_t* of_value
    for i in range(keys.m):
        if column[i] >= 0:
            continue
        of_value = counts + i * width
        count_keys(cells, width, keys, i, pairs, kept, n_kept, of_value, last_key)
        for at in range(keys.m):
            if column[at] >= 0:
                of_value[column[at]] = -1
        n = 0
        for at in range(width):
            n += of_value[at] >= enough
        if best < 0 or n < fewest:
            best, fewest = i, n
    return best


cdef bint may_be_first(
    const int32_t* counts,
    int64_t width,
    const vector[int64_t]& column,
    int64_t best,
    const vector[int64_t]& mapping,
) noexcept nogil:
    """Return whether columns that leave as many keys as the best mapping may come before it."""
    cdef int64_t m = column.size(), i, lowest
    for i in range(m):
        lowest = column[i]
        if lowest < 0:
            lowest = 0
            while lowest < width and (
                counts[i * width + lowest] < best or is_used(column, lowest)
            ):
                lowest += 1
        if lowest != mapping[i]:
            return lowest < mapping[i]
    return False


cdef bint is_used(const vector[int64_t]& column, int64_t c) noexcept nogil:
    cdef int64_t m = column.size(), i
    for i in range(m):
        if column[i] == c:
            return True
    return False


cdef void count_keys(
    const int32_t[::1] cells,
    int64_t width,
    Keys keys,
    int64_t i,
    const vector[Pair]& pairs,
    const int32_t* kept,
    int64_t n_kept,
    int32_t* counts,
    vector[int32_t]& last_keys,
) noexcept nogil:
    """Count for each column the keys of pairs whose value i the row has there."""
    cdef int32_t* last_key = last_keys.data()
    cdef const int32_t* row
    cdef int64_t at, c
    cdef int32_t key, value, is_equal
    for c in range(width):
        counts[c], last_key[c] = 0, -1
    for at in range(n_kept):
        key, row = pairs[kept[at]].first, &cells[pairs[kept[at]].second]
        value = keys.numbers[key * keys.m + i]
        # Without a branch and in 32 bits, so that several columns take one step.
        for c in range(width):
            is_equal = row[c] == value
            counts[c] += is_equal & (last_key[c] != key)
            last_key[c] = key if is_equal else last_key[c]


cdef int64_t keep(
    const int32_t[::1] cells,
    Keys keys,
    int64_t i,
    int64_t c,
    const vector[Pair]& pairs,
    const int32_t* before,
    int64_t n_before,
    int32_t* kept,
) noexcept nogil:
    """Keep the pairs whose value i the row has in column c, and return their number."""
    cdef int64_t n = 0, at
    cdef int32_t one
    for at in range(n_before):
        one = before[at]
        kept[n] = one
        n += cells[pairs[one].second + c] == keys.numbers[pairs[one].first * keys.m + i]
    return n


def rows_joined(
    const int32_t[::1] hit_rows,
    const int32_t[::1] hit_groups,
    const int64_t[::1] group_ends,
    const int32_t[:, ::1] keys,
    const int32_t[::1] cells,
    int64_t first_row,
    int64_t first_cell,
    int64_t width,
    const int64_t[::1] mapping,
):
    """Count the rows of a table that a mapping joins to each key: int64 (n,).

    Parameters
    ----------
    mapping : int64 (m,)
    """
    cdef int64_t hit, begin, group, key, i
    cdef bint fits
    counts = np.zeros(keys.shape[0], np.int64)
    cdef int64_t[::1] view = counts
    with nogil:
        for hit in range(hit_rows.shape[0]):
            begin = first_cell + (hit_rows[hit] - first_row) * width
            group = hit_groups[hit]
            for key in range(group_ends[group], group_ends[group + 1]):
                fits = True
                for i in range(mapping.shape[0]):
                    if cells[begin + mapping[i]] != keys[key, i]:
                        fits = False
                        break
                view[key] += fits
    return counts
