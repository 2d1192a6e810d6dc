"""Compiled loop of the search by similar values: the best mapping of each table.

A pair is a row and a key each of whose values matches some cell of the row. It trusts its arrays,
which `pexeso.composite.similar` makes.
"""

from __future__ import annotations

import numpy as np

from pexeso.runtime.jit import loop


@loop
def best_mappings(pair_ends, widths, pair_keys, begins, ends, columns, at_least):
    """Find the mapping of each table that joins most keys, the first of several.

    Parameters
    ----------
    pair_ends : int64 (t + 1,)
        The pairs of each table.
    widths : int64 (t,)
        Columns of each table.
    pair_keys : int32 (p,)
        Ascending in each table.
    begins, ends : int64 (p, m), int64 (p, m)
        Where the columns that match each value of the key begin and end.
    columns : int32
        Of a table, from 0.

    Returns
    -------
    (int64 (t,), int64 (t, m), bool (p,))
        Number of keys, less than `at_least` where no mapping joins so many; the mapping; and which
        pairs it joins.
    """
    m = begins.shape[1]
    n_keys = np.zeros(len(widths), np.int64)
    mappings = np.full((len(widths), m), -1, np.int64)
    joined = np.zeros(len(pair_keys), np.bool_)
    for table in range(len(widths)):
        run = slice(pair_ends[table], pair_ends[table + 1])
        lists = begins[run], ends[run], columns
        n_keys[table] = _best_mapping(
            lists, pair_keys[run], widths[table], at_least, mappings[table]
        )
        if n_keys[table] < at_least:
            continue
        for pair in range(pair_ends[table], pair_ends[table + 1]):
            fits = True
            for i in range(m):
                fits &= _has(columns, begins[pair, i], ends[pair, i], mappings[table, i])
            joined[pair] = fits
    return n_keys, mappings, joined


@loop
def _best_mapping(lists, pair_keys, width, needed, mapping):
    """Return the most keys that a mapping joins, and store the first such mapping.

    As in `pexeso.composite.loops`: a column that leaves no more keys than are known to be joined is
    not tried. Returns less than `needed` if no mapping joins so many.
    """
    m, n_pairs = lists[0].shape[1], len(pair_keys)
    pairs = np.empty((m, n_pairs), np.int64)  # by column: the pairs that fit those before
    pairs[0] = np.arange(n_pairs)
    n_kept = np.full(m, n_pairs)
    counts = np.empty((m, width), np.int64)
    column = np.full(m, -1, np.int64)
    _count_keys(lists, 0, pair_keys, pairs[0], counts[0])
    best, i = needed - 1, 0
    while i >= 0:
        column[i] += 1
        c = column[i]
        if c == width:
            column[i] = -1
            i -= 1
            continue
        used = False
        for before in range(i):
            used |= column[before] == c
        if used or counts[i, c] <= best:
            continue
        if i == m - 1:
            best = counts[i, c]
            mapping[:] = column
            continue
        n = 0
        for pair in pairs[i, : n_kept[i]]:
            pairs[i + 1, n] = pair
            n += _has(lists[2], lists[0][pair, i], lists[1][pair, i], c)
        i += 1
        n_kept[i] = n
        _count_keys(lists, i, pair_keys, pairs[i, :n], counts[i])
    return best


@loop
def _count_keys(lists, i, pair_keys, pairs, counts):
    """Count for each column the keys of pairs whose value i it matches."""
    begins, ends, columns = lists
    last_key = np.full(len(counts), -1, np.int64)
    counts[:] = 0
    for pair in pairs:
        key = pair_keys[pair]
        for at in range(begins[pair, i], ends[pair, i]):
            c = columns[at]
            counts[c] += last_key[c] != key
            last_key[c] = key


@loop
def _has(columns, begin, end, column):
    present = False
    for at in range(begin, end):
        present |= columns[at] == column
    return present
