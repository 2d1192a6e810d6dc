"""Tables that find the sets that share a band with a query, for every banding.

They serve every number of bands and of rows that the signatures allow.

Two layouts are known: prefix trees over few bands, which cannot serve many bands of few rows, and a
table of keys for each (rows, band), 694 entries a set at 256 hash functions and 8 rows. Here there
is one table for each value of a signature: all sets in the order of that value, those with the same
one in the order of their rows. A band is looked up by its first value; the sets that have it stand
together, those of one partition next to each other, and the other values of the band are compared
in the signatures themselves. So 256 entries a set serve all settings, one look-up serves all
partitions, and no keys fall together.

All look-ups of a search go hand in hand, one step of the binary search for each table in turn:
steps do not wait for each other's memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pexeso.errors import IndexCorruptError
from pexeso.runtime.jit import loop
from pexeso.runtime.scratch_buffers import borrow_counters, give_back
from pexeso.sets.containment.options import FEW_SETS

_ROW_BITS = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ROWS_TURNED = 1024


@dataclass(frozen=True)
class BandTables:
    """One table for each value of a signature.

    Attributes
    ----------
    values : uint16 or uint32 (m, s)
        ``values[k]``: the k-th values of all sets, ascending; of the type of the signatures.
    sets : uint16 or int32 (m, s)
        The set that each value is of: a row of the signatures; ascending where values are equal.
    """

    values: np.ndarray
    sets: np.ndarray


def build_tables(signatures: np.ndarray) -> BandTables:
    """Order the sets by each value of their signatures.

    O(m s log s) time, 16 bytes a set beside the result.

    Parameters
    ----------
    signatures : uint16 or uint32 (s, m)

    Examples
    --------
    >>> build_tables(np.array([[7, 1], [3, 1]], np.uint32)).sets.tolist()
    [[1, 0], [0, 1]]
    """
    n_sets, permutations = signatures.shape
    values, sets = (
        np.empty((permutations, n_sets), signatures.dtype),
        np.empty((permutations, n_sets), np.uint16 if n_sets <= FEW_SETS else np.int32),
    )
    for row in range(
        0, n_sets, _ROWS_TURNED
    ):  # so many stay in the processor's cache until each of their columns is written
        values[:, row : row + _ROWS_TURNED] = signatures[row : row + _ROWS_TURNED].T
    numbers = np.arange(n_sets, dtype=np.uint64)
    for position in range(permutations):
        keys = (values[position].astype(np.uint64) << _ROW_BITS) | numbers
        keys.sort()
        sets[position] = keys & _LOW
        keys >>= _ROW_BITS
        values[position] = keys
    return BandTables(values, sets)


def band_hits(
    tables: BandTables,
    signatures: np.ndarray,
    query: np.ndarray,
    ranges: np.ndarray,
    settings: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the sets that agree with the query in a whole band.

    O(m log s) time, and a comparison for each set that has the first value of a band.

    Parameters
    ----------
    signatures : uint16 or uint32 (s, m)
    ranges : int64 (p, 3)
        For each partition to look into: its first row, its end, and the first row that counts.
        Ascending and apart.
    settings : int64 (p, 2)
        Bands and rows for each.

    Returns
    -------
    (int64 (c,), int64 (c,))
        Rows of the sets found, ascending, and in how many bands each agrees.
    """
    if not len(ranges):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    hits = borrow_counters(len(signatures))
    found_rows = np.empty(int((ranges[:, 1] - ranges[:, 2]).sum()), np.int32)
    n_places = int((settings[:, 0] * settings[:, 1]).max())
    lows = np.zeros(n_places, np.int64)
    n = _look_up(
        tables.values, tables.sets, signatures, query, ranges, settings, lows, hits, found_rows
    )
    if n < 0:
        raise IndexCorruptError(
            "A table of an index for containment search names a set that there is not: build it "
            "again."
        )
    rows = np.sort(found_rows[:n]).astype(np.int64)
    counts = hits[rows].astype(np.int64)
    hits[rows] = 0
    give_back(hits)
    return rows, counts


@loop
def _look_up(values, sets, signatures, query, ranges, settings, lows, hits, found_rows):
    n_sets = len(signatures)
    left = n_sets
    while left > 1:
        half = left >> 1
        for position in range(len(lows)):
            if values[position, lows[position] + half - 1] < query[position]:
                lows[position] += half
        left -= half
    n = 0
    for position in range(len(lows)):
        value, of_table = query[position], sets[position]
        at, p = lows[position], 0
        if at < n_sets and values[position, at] < value:
            at += 1
        while at < n_sets and values[position, at] == value:
            row = of_table[at]
            if row < 0 or row >= n_sets:
                return -1
            while p < len(ranges) and row >= ranges[p, 1]:
                p += 1
            if p == len(ranges):
                break
            bands, rows = settings[p, 0], settings[p, 1]
            serves = position % rows == 0 and position < bands * rows
            first_row = ranges[p, 2] if serves else ranges[p, 1]
            if row < first_row:
                # The first set that counts, among those with this value: they end where the next
                # value begins.
                at = next_of(values[position], of_table, at, value, first_row)
                continue
            agrees = True
            for k in range(position + 1, position + rows):
                if signatures[row, k] != query[k]:
                    agrees = False
                    break
            if agrees:
                if hits[row] == 0:
                    if n == len(found_rows):
                        return -1
                    found_rows[n] = row
                    n += 1
                hits[row] += 1
            at += 1
    return n


@loop
def next_of(values, sets, at, wanted, min_set):
    """Return the first position after `at` with another value or with a set of at least `min_set`.

    The search gallops, in steps that double.
    """
    low, step = at, 1
    high = at + 1
    while high < len(values) and values[high] == wanted and sets[high] < min_set:
        low = high
        step *= 2
        high += step
    high = min(high, len(values))
    while low + 1 < high:
        middle = (low + high) >> 1
        if values[middle] == wanted and sets[middle] < min_set:
            low = middle
        else:
            high = middle
    return high
