"""Compiled loops of the search: hits from posting lists, and the best mapping of each table.

A hit is a row together with a group of keys that it may hold. They trust their arrays, which are
examined when an index is opened.
"""

from __future__ import annotations

import numpy as np

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
                    low[i] = _not_before(posting_rows, low[i], end, row)
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
def _not_before(numbers, low, end, wanted):
    """Return the first place from `low` to `end` whose number is not below the wanted one."""
    step, high = 1, low
    while high < end and numbers[high] < wanted:  # doubling steps: the next one is often near
        low = high + 1
        high += step
        step *= 2
    high = min(high, end)
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


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
    mapping, stamps = np.empty(m, np.int64), np.zeros(len(keys) + 1, np.int64)
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
        n = _best_mapping(
            cells, width, keys, pair_cells[:n_pairs], pair_keys[:n_pairs], needed, stamps, mapping
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
def _best_mapping(cells, width, keys, pair_cells, pair_keys, needed, stamps, mapping):
    """Return the most keys that a mapping joins, and store the first such mapping.

    Columns are tried in order, one for each value of the key; pairs of a row and a key that fit the
    columns so far are kept, and a choice is left when they hold no more keys than are known to be
    joined. Returns less than `needed` if no mapping joins so many.
    """
    m, n_pairs = keys.shape[1], len(pair_cells)
    kept = np.empty((m, n_pairs), np.int32)
    n_kept = np.empty(m + 1, np.int64)
    n_kept[0] = n_pairs
    column = np.full(m, -1, np.int64)
    best = needed - 1
    most = _distinct(pair_keys, stamps)
    i = 0
    while i >= 0 and best < most:
        column[i] += 1
        if column[i] == width:
            column[i] = -1
            i -= 1
            continue
        used = False
        for before in range(i):
            used |= column[before] == column[i]
        if used:
            continue
        stamps[-1] += 1
        stamp, n, n_keys = stamps[-1], 0, 0
        for j in range(n_kept[i]):
            pair = kept[i - 1, j] if i else j
            key = pair_keys[pair]
            if cells[pair_cells[pair] + column[i]] == keys[key, i]:
                kept[i, n] = pair
                n += 1
                n_keys += stamps[key] != stamp
                stamps[key] = stamp
        if n_keys <= best:
            continue
        if i == m - 1:
            best = n_keys
            mapping[:] = column
        else:
            i += 1
            n_kept[i] = n
    return best


@loop
def _distinct(pair_keys, stamps):
    """Count the keys among pairs. The last stamp is that of the last count."""
    stamps[-1] += 1
    n = 0
    for key in pair_keys:
        n += stamps[key] != stamps[-1]
        stamps[key] = stamps[-1]
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
