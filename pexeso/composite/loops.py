"""Compiled loops of the search: hits from posting lists, and the best mapping of each table.

A hit is a row together with a group of keys that it may hold. They trust their arrays, which are
examined when an index is opened.
"""

from __future__ import annotations

import numpy as np

from pexeso.runtime.galloping import not_before
from pexeso.runtime.jit import loop

ENTRIES, PROBES, PASSED, HELD, EVALUATED, ABANDONED = range(6)
"""What is counted: see `pexeso.composite.search.Work`."""


@loop
def list_hits(value_offsets, posting_rows, values):
    """Return the rows of posting lists, and which list each row is of.

    Returns
    -------
    (int32 (h,), int32 (h,))
    """
    n = 0
    for value in values:
        n += value_offsets[value + 1] - value_offsets[value]
    rows, groups, n = np.empty(n, np.int32), np.empty(n, np.int32), 0
    for group in range(len(values)):
        for at in range(value_offsets[values[group]], value_offsets[values[group] + 1]):
            rows[n], groups[n] = posting_rows[at], group
            n += 1
    return rows, groups


@loop
def intersection_hits(value_offsets, posting_rows, keys, work):
    """Return the rows that are in the lists of all values of a key, and the key of each.

    Each entry of the shortest list is looked up in the others.

    Returns
    -------
    (int32 (h,), int32 (h,))
    """
    m = keys.shape[1]
    rows, groups, n = np.empty(64, np.int32), np.empty(64, np.int32), 0
    low = np.empty(m, np.int64)
    for key in range(len(keys)):
        shortest = 0
        for i in range(m):
            low[i] = value_offsets[keys[key, i]]
            length = value_offsets[keys[key, i] + 1] - low[i]
            best = keys[key, shortest]
            if length < value_offsets[best + 1] - value_offsets[best]:
                shortest = i
        value = keys[key, shortest]
        work[ENTRIES] += value_offsets[value + 1] - value_offsets[value]
        for at in range(value_offsets[value], value_offsets[value + 1]):
            row, everywhere = posting_rows[at], True
            for i in range(m):
                if keys[key, i] != value:
                    end = value_offsets[keys[key, i] + 1]
                    low[i] = not_before(posting_rows, low[i], end, row)
                    if low[i] == end or posting_rows[low[i]] != row:
                        everywhere = False
                        break
            if everywhere:
                if n == len(rows):
                    rows, groups = _longer(rows), _longer(groups)
                rows[n], groups[n] = row, key
                n += 1
    return rows[:n], groups[:n]


@loop
def best_tables(
    tables, hit_begins, hit_ends, hit_rows, hit_groups, group_ends, group_keys,
    keys, repeats, first, key_bits, row_bits, cells, table_rows, table_cells, widths,
    k, at_least, work,
):  # fmt: skip
    """Find the tables that join most keys.

    Parameters
    ----------
    tables : int64 (t,)
        Tables with hits, those with most first, equal ones by number.
    hit_begins, hit_ends : int64 (t,), int64 (t,)
        Where the hits of each begin and end.
    hit_rows, hit_groups : int32 (h,)
    group_ends, group_keys : int64 (g + 1,), int64
        The keys of each group.
    keys, repeats : int32 (n, m), int32 (n, m)
        Numbers of values, and how often each is in its key.
    first : int
        The column of the key that was looked up.
    key_bits, row_bits : uint64 (n, w), uint64 (rows, w)
        Super keys; w is 0 for no filter.
    cells, table_rows, table_cells, widths
        See `pexeso.composite.row_keys.RowKeys`.
    k : int
        Tables wanted, 0 for all.
    at_least : int
        Least number of keys, from 1 on.
    work : int64 (6,)
        Counts are added to it.

    Returns
    -------
    (int64 (r,), int64 (r,), int64 (r, m))
        Places of tables in `tables`, their numbers of keys and mappings, in no order.
    """
    m, n_words = keys.shape[1], key_bits.shape[1]
    capacity = min(k, len(tables)) if k else len(tables)
    found, best = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    mappings = np.empty((capacity, m), np.int64)
    mapping = np.empty(m, np.int64)
    pair_cells, pair_keys = np.empty(64, np.int64), np.empty(64, np.int32)
    n_found, worst = 0, 0
    for place in range(len(tables)):
        table, needed = tables[place], at_least
        if k and n_found == k:
            # Of equal tables the one with the lower number is wanted.
            needed = best[worst] + (table > tables[found[worst]])
        open_hits = hit_ends[place] - hit_begins[place]
        if open_hits < needed:
            # Every key needs a row of its own. The tables behind have as many hits or fewer, and
            # those with as many have higher numbers.
            break
        work[EVALUATED] += 1
        width, n_pairs, abandoned = widths[table], 0, False
        for hit in range(hit_begins[place], hit_ends[place]):
            row, n_before = hit_rows[hit], n_pairs
            begin = table_cells[table] + (row - table_rows[table]) * width
            for at in range(group_ends[hit_groups[hit]], group_ends[hit_groups[hit] + 1]):
                key = group_keys[at]
                work[PROBES] += 1
                covered = True
                for word in range(n_words):
                    if key_bits[key, word] & ~row_bits[row, word]:
                        covered = False
                        break
                if not covered:
                    continue
                work[PASSED] += 1
                if _holds(cells, begin, width, keys, repeats, key, first):
                    if n_pairs == len(pair_cells):
                        pair_cells, pair_keys = _longer(pair_cells), _longer(pair_keys)
                    pair_cells[n_pairs], pair_keys[n_pairs] = begin, key
                    n_pairs += 1
            open_hits -= n_pairs == n_before
            if open_hits < needed:
                abandoned = True
                break
        work[HELD] += n_pairs
        work[ABANDONED] += abandoned
        if abandoned or n_pairs < needed:
            continue
        by_key = np.argsort(pair_keys[:n_pairs], kind="mergesort")
        n = _best_mapping(
            cells, width, keys, pair_cells[by_key], pair_keys[by_key], needed, mapping
        )
        if n < needed:
            continue
        at = worst
        if n_found < capacity:
            at = n_found
            n_found += 1
        found[at], best[at] = place, n
        mappings[at] = mapping
        if k and n_found == k:
            for i in range(k):
                equal = best[i] == best[worst]
                if best[i] < best[worst] or (equal and tables[found[i]] > tables[found[worst]]):
                    worst = i
    return found[:n_found], best[:n_found], mappings[:n_found]


@loop
def _longer(array):
    longer = np.empty(2 * len(array), array.dtype)
    longer[: len(array)] = array
    return longer


@loop
def _holds(cells, begin, width, keys, repeats, key, first):
    """Return whether a row holds each value of a key as often as the key does.

    Then, and only then, its values can be given a column each, all different ones: cells that are
    admissible for two values of the key are so because these are equal. The value that was looked
    up comes last, as it is there.
    """
    m = keys.shape[1]
    for after in range(1, m + 1):
        i = first + after
        i -= m * (i >= m)
        value, n = keys[key, i], 0
        for column in range(begin, begin + width):
            n += cells[column] == value
        if n < repeats[key, i]:
            return False
    return True


@loop
def _best_mapping(cells, width, keys, pair_cells, pair_keys, needed, mapping):
    """Return the most keys that a mapping joins, and store the first such mapping.

    Columns are chosen in order, one for each value of the key. The pairs of a row and a key that
    fit the columns so far say how many keys each further column would leave; one that leaves no
    more than are known to be joined is not tried. A first mapping, by the column that leaves most
    in each step, says how many are joined at least.

    The pairs are sorted by key. Returns less than `needed` if no mapping joins so many.
    """
    m, n_pairs = keys.shape[1], len(pair_cells)
    kept = np.empty((m, n_pairs), np.int32)  # by column: the pairs that fit those before
    kept[0] = np.arange(n_pairs)
    n_kept = np.full(m, n_pairs)
    counts = np.empty((m, width), np.int32)
    column = np.full(m, -1, np.int64)
    for i in range(m):
        if i:
            before = kept[i - 1, : n_kept[i - 1]]
            n_kept[i] = _keep(
                cells, keys, i - 1, column[i - 1], pair_cells, pair_keys, before, kept[i]
            )
        _count_keys(cells, keys, i, pair_cells, pair_keys, kept[i, : n_kept[i]], counts[i])
        for c in range(width):
            if (column[i] < 0 or counts[i, c] > counts[i, column[i]]) and not _used(column, i, c):
                column[i] = c
    best = max(needed, counts[m - 1, column[m - 1]]) - 1
    column[:] = -1
    i = 0
    while i >= 0:
        column[i] += 1
        c = column[i]
        if c == width:
            column[i] = -1
            i -= 1
        elif counts[i, c] > best and not _used(column, i, c):
            if i == m - 1:
                best = counts[i, c]
                mapping[:] = column
                continue
            before = kept[i, : n_kept[i]]
            i += 1
            n_kept[i] = _keep(cells, keys, i - 1, c, pair_cells, pair_keys, before, kept[i])
            _count_keys(cells, keys, i, pair_cells, pair_keys, kept[i, : n_kept[i]], counts[i])
    return best


@loop
def _used(column, i, c):
    """Return whether a column is among the first i ones."""
    used = False
    for before in range(i):
        used |= column[before] == c
    return used


@loop
def _count_keys(cells, keys, i, pair_cells, pair_keys, kept, counts):
    """Count for each column the keys of pairs whose value i the row has there."""
    last_key = np.full(len(counts), -1, np.int32)
    counts[:] = 0
    for pair in kept:
        begin, key = pair_cells[pair], pair_keys[pair]
        value = keys[key, i]
        for c in range(len(counts)):  # without a branch, so that several columns take one step
            here = cells[begin + c] == value
            counts[c] += here & (last_key[c] != key)
            last_key[c] = key if here else last_key[c]


@loop
def _keep(cells, keys, i, c, pair_cells, pair_keys, before, kept):
    """Keep the pairs whose value i the row has in column c, and return their number."""
    n = 0
    for pair in before:
        kept[n] = pair
        n += cells[pair_cells[pair] + c] == keys[pair_keys[pair], i]
    return n


@loop
def rows_joined(
    hit_rows, hit_groups, group_ends, group_keys, keys, cells, first_row, first_cell, width, mapping
):
    """Count the rows of a table that a mapping joins to each key: int64 (n,).

    Parameters
    ----------
    hit_rows, hit_groups, group_ends, group_keys, keys, cells
        See `best_tables`; the hits are those of the table.
    first_row, first_cell, width : int
        Of the table.
    mapping : int64 (m,)
    """
    counts = np.zeros(len(keys), np.int64)
    for hit in range(len(hit_rows)):
        begin = first_cell + (hit_rows[hit] - first_row) * width
        for at in range(group_ends[hit_groups[hit]], group_ends[hit_groups[hit] + 1]):
            key, fits = group_keys[at], True
            for i in range(len(mapping)):
                fits &= cells[begin + mapping[i]] == keys[key, i]
            counts[key] += fits
    return counts
