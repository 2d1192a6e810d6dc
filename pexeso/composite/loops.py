"""Compiled loops of the search: hits from posting lists, and the best mapping of each table.

A hit is a row together with a group of keys that it may hold; keys of a group stand together. What
is read from an index is compared, never followed, but for the places of rows and lists: these the
caller examines.
"""

from __future__ import annotations

import numpy as np

from pexeso.runtime.galloping import not_before
from pexeso.runtime.jit import loop

ENTRIES, PROBES, PASSED, HELD, EVALUATED, ABANDONED = range(6)
"""What is counted: see `pexeso.composite.search.Work`."""


@loop
def expected_work(begins, ends, keys, column):
    """Return what a search would read: entries of lists, probes, and steps of an intersection.

    Parameters
    ----------
    begins, ends : int64 (u,)
        Where the list of each value begins and ends.
    keys : int32 (n, m)
        Which of these values a key has; those with the same value in `column` stand together.
    """
    n_entries, n_probes, n_steps, last = 0, 0, 0.0, -1
    for key in range(len(keys)):
        value = keys[key, column]
        length = ends[value] - begins[value]
        n_probes += length
        n_entries += length * (value != last)
        last = value
        shortest = second = np.iinfo(np.int64).max
        for value in keys[key]:
            length = ends[value] - begins[value]
            if length < shortest:
                shortest, second = length, shortest
            else:
                second = min(second, length)
        # Most rows are not in the second list either, so the lists behind it are seldom read.
        n_steps += shortest * (1 + np.log2(1 + second / shortest))
    return n_entries, n_probes, n_steps


@loop
def list_hits(begins, ends, posting_rows):
    """Return the rows of posting lists, and which list each row is of.

    Returns
    -------
    int64 (h,)
        Rows in the upper 32 bits, lists in the lower.
    """
    n = 0
    for group in range(len(begins)):
        n += ends[group] - begins[group]
    hits, n = np.empty(n, np.int64), 0
    for group in range(len(begins)):
        for at in range(begins[group], ends[group]):
            hits[n] = (np.int64(posting_rows[at]) << 32) | group
            n += 1
    return hits


@loop
def intersection_hits(begins, ends, posting_rows, keys, work):
    """Return the rows that are in the lists of all values of a key, and the key of each.

    Each entry of the shortest list is looked up in the others, shorter ones first.

    Parameters
    ----------
    begins, ends : int64 (u,)
        Where the list of each value begins and ends.
    posting_rows : int32
    keys : int32 (n, m)
        Which of these values a key has.
    work : int64 (6,)
        The entries read are added to it.

    Returns
    -------
    int64 (h,)
        Rows in the upper 32 bits, keys in the lower.
    """
    m = keys.shape[1]
    hits, n = np.empty(64, np.int64), 0
    low, end = np.empty(m, np.int64), np.empty(m, np.int64)
    for key in range(len(keys)):
        for i in range(m):
            begin, until = begins[keys[key, i]], ends[keys[key, i]]
            position = i
            while position > 0 and end[position - 1] - low[position - 1] > until - begin:
                low[position], end[position] = low[position - 1], end[position - 1]
                position -= 1
            low[position], end[position] = begin, until
        work[ENTRIES] += end[0] - low[0]
        for at in range(low[0], end[0]):
            row, everywhere = posting_rows[at], True
            for other in range(1, m):
                low[other] = not_before(posting_rows, low[other], end[other], row)
                if low[other] == end[other] or posting_rows[low[other]] != row:
                    everywhere = False
                    break
            if everywhere:
                if n == len(hits):
                    hits = _longer(hits)
                hits[n] = (np.int64(row) << 32) | key
                n += 1
    return hits[:n]


@loop
def tables_of_hits(hit_rows, table_rows):
    """Return the tables with hits.

    Parameters
    ----------
    hit_rows : int32 (h,)
        Ascending, each a row of some table.
    table_rows : int64 (t + 1,)
        Where the rows of each table begin.

    Returns
    -------
    int64 (r, 4)
        Table, where its hits begin and end, and how many rows they are.
    """
    tables = np.empty((min(len(hit_rows), len(table_rows) - 1), 4), np.int64)
    n, table, last_row = 0, -1, -1
    for hit in range(len(hit_rows)):
        row = hit_rows[hit]
        if table < 0 or row >= table_rows[table + 1]:
            if table >= 0:
                tables[n - 1, 2] = hit
            table = not_before(table_rows, table + 1, len(table_rows), row + 1) - 1
            tables[n, 0], tables[n, 1], tables[n, 2], tables[n, 3] = table, hit, len(hit_rows), 0
            n += 1
        tables[n - 1, 3] += row != last_row
        last_row = row
    return tables[:n]


@loop
def best_tables(
    tables, hit_rows, hit_groups, group_ends, keys, repeats, first, key_bits, row_bits,
    cells, table_rows, table_cells, widths, k, at_least, work,
):  # fmt: skip
    """Find the tables that join most keys.

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
    work : int64 (6,)
        Counts are added to it.

    Returns
    -------
    (int64 (r,), int64 (r,), int64 (r, m))
        Places of tables in `tables`, their numbers of keys and mappings, in no order.
    """
    m, n_words = keys.shape[1], key_bits.shape[1]
    capacity = min(k, len(tables)) if k else len(tables)
    positions, best = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    mappings = np.empty((capacity, m), np.int64)
    mapping = np.empty(m, np.int64)
    pair_cells, pair_keys = np.empty(64, np.int64), np.empty(64, np.int32)
    n_found, worst, n_probes, n_passed = 0, 0, 0, 0
    for position in range(len(tables)):
        table, hit, end, open_rows = (
            tables[position, 0], tables[position, 1], tables[position, 2], tables[position, 3],
        )  # fmt: skip
        needed = at_least
        if k and n_found == k:
            # Of equal tables the one with the lower number is wanted.
            needed = best[worst] + (table > tables[positions[worst], 0])
        if open_rows < needed:
            # Every key needs a row of its own. The tables behind have as many rows or fewer, and
            # those with as many have higher numbers.
            break
        work[EVALUATED] += 1
        width, n_pairs = widths[table], 0
        while hit < end and open_rows >= needed:
            row, n_before = hit_rows[hit], n_pairs
            begin = table_cells[table] + (row - table_rows[table]) * width
            while hit < end and hit_rows[hit] == row:
                group = hit_groups[hit]
                n_probes += group_ends[group + 1] - group_ends[group]
                for key in range(group_ends[group], group_ends[group + 1]):
                    covered = True
                    for word in range(n_words):
                        if key_bits[key, word] & ~row_bits[row, word]:
                            covered = False
                            break
                    if not covered:
                        continue
                    n_passed += 1
                    if _holds(cells, begin, width, keys, repeats, key, first):
                        if n_pairs == len(pair_cells):
                            pair_cells, pair_keys = _longer(pair_cells), _longer(pair_keys)
                        pair_cells[n_pairs], pair_keys[n_pairs] = begin, key
                        n_pairs += 1
                hit += 1
            open_rows -= n_pairs == n_before
        work[HELD] += n_pairs
        if open_rows < needed:
            work[ABANDONED] += hit < end
            continue
        by_key = np.argsort(pair_keys[:n_pairs], kind="mergesort")
        n = best_mapping(
            cells, width, keys, pair_cells[by_key], pair_keys[by_key], open_rows, needed, mapping
        )
        if n < needed:
            continue
        at = worst
        if n_found < capacity:
            at = n_found
            n_found += 1
        positions[at], best[at] = position, n
        mappings[at] = mapping
        if k and n_found == k:
            for i in range(k):
                equal = best[i] == best[worst]
                if best[i] < best[worst] or (
                    equal and tables[positions[i], 0] > tables[positions[worst], 0]
                ):
                    worst = i
    work[PROBES] += n_probes
    work[PASSED] += n_passed
    return positions[:n_found], best[:n_found], mappings[:n_found]


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
    m, row = keys.shape[1], cells[begin : begin + width]
    for after in range(1, m + 1):
        i = first + after
        i -= m * (i >= m)
        value, n = keys[key, i], np.int32(0)
        for column in range(width):
            n += np.int32(row[column] == value)
        if n < repeats[key, i]:
            return False
    return True


@loop
def best_mapping(cells, width, keys, pair_cells, pair_keys, n_rows, needed, mapping):
    """Return the most keys that a mapping joins, and store the first such mapping.

    Columns are chosen for one value of the key after the other. The pairs of a row and a key that
    fit the columns so far say how many keys each column for each further value would leave: no
    mapping with it joins more. The value with the fewest columns that leave enough is next, and of
    these the column that leaves most.

    Parameters
    ----------
    cells : int32
    keys : int32 (n, m)
    pair_cells, pair_keys : int64 (p,), int32 (p,)
        Where the cells of the row begin, and the key, of each pair where the row holds the key;
        sorted by key.
    n_rows : int
        Rows among the pairs: no mapping joins more keys.
    mapping : int64 (m,)
        Where the mapping is stored, if one joins so many.
    """
    m, n_pairs = keys.shape[1], len(pair_cells)
    pairs = np.empty((m, n_pairs), np.int32)  # by step: the pairs that fit the columns chosen
    pairs[0] = np.arange(n_pairs)
    n_kept = np.full(m, n_pairs)
    counts = np.empty((m, m, width), np.int32)  # by step: what each column leaves for each value
    chosen = np.full(m, -1, np.int64)  # by step: the value of the key that gets its column
    column = np.full(m, -1, np.int64)  # by value of the key
    best, step = needed - 1, 0
    while step >= 0:
        i = chosen[step]
        if i < 0:
            i = _narrowest(
                cells, keys, pair_cells, pair_keys, pairs[step, : n_kept[step]], column,
                max(best, needed), counts[step],
            )  # fmt: skip
            chosen[step] = i
        c = np.argmax(counts[step, i])
        n = counts[step, i, c]
        counts[step, i, c] = -1
        column[i] = c
        if n < max(best, needed):
            column[i] = chosen[step] = -1
            step -= 1
        elif min(n, n_rows) == best and not _may_be_first(counts[step], column, best, mapping):
            column[i] = -1
        elif step == m - 1:
            best = n
            mapping[:] = column
        else:
            before = pairs[step, : n_kept[step]]
            step += 1
            n_kept[step] = _keep(cells, keys, i, c, pair_cells, pair_keys, before, pairs[step])
    return best


@loop
def _narrowest(cells, keys, pair_cells, pair_keys, pairs, column, enough, counts):
    """Count what each free column leaves for each value without one; return the narrowest value.

    That is the value for which the fewest columns leave enough.
    """
    narrowest, fewest = -1, 0
    for i in range(len(column)):
        if column[i] >= 0:
            continue
        _count_keys(cells, keys, i, pair_cells, pair_keys, pairs, counts[i])
        for other in column:
            if other >= 0:
                counts[i, other] = -1
        n = np.count_nonzero(counts[i] >= enough)
        if narrowest < 0 or n < fewest:
            narrowest, fewest = i, n
    return narrowest


@loop
def _may_be_first(counts, column, best, mapping):
    """Return whether columns that leave as many keys as the best mapping may come before it."""
    for i in range(len(column)):
        lowest = column[i]
        if lowest < 0:
            lowest = 0
            while lowest < counts.shape[1] and (counts[i, lowest] < best or _used(column, lowest)):
                lowest += 1
        if lowest != mapping[i]:
            return lowest < mapping[i]
    return False


@loop
def _used(column, c):
    used = False
    for other in column:
        used |= other == c
    return used


@loop
def _count_keys(cells, keys, i, pair_cells, pair_keys, pairs, counts):
    """Count for each column the keys of pairs whose value i the row has there."""
    width = len(counts)
    last_key = np.full(width, -1, np.int32)
    counts[:] = 0
    for pair in pairs:
        key = pair_keys[pair]
        value, row = keys[key, i], cells[pair_cells[pair] : pair_cells[pair] + width]
        # Of a view, without a branch and in 32 bits, so that several columns take one step.
        for c in range(width):
            is_equal = row[c] == value
            counts[c] += np.int32(is_equal & (last_key[c] != key))
            last_key[c] = key if is_equal else last_key[c]


@loop
def _keep(cells, keys, i, c, pair_cells, pair_keys, before, pairs):
    """Keep the pairs whose value i the row has in column c, and return their number."""
    n = 0
    for pair in before:
        pairs[n] = pair
        n += cells[pair_cells[pair] + c] == keys[pair_keys[pair], i]
    return n


@loop
def rows_joined(
    hit_rows, hit_groups, group_ends, keys, cells, first_row, first_cell, width, mapping
):
    """Count the rows of a table that a mapping joins to each key: int64 (n,).

    Parameters
    ----------
    mapping : int64 (m,)
    """
    counts = np.zeros(len(keys), np.int64)
    for hit in range(len(hit_rows)):
        begin = first_cell + (hit_rows[hit] - first_row) * width
        for key in range(group_ends[hit_groups[hit]], group_ends[hit_groups[hit] + 1]):
            fits = True
            for i in range(len(mapping)):
                fits &= cells[begin + mapping[i]] == keys[key, i]
            counts[key] += fits
    return counts
