"""Tables that find the sets with a band in common, for every number of bands and of rows that signatures serve.

Two layouts are known: prefix trees over few bands, which cannot serve many bands of few rows, and a table of keys for each (rows, band), 694 entries a set at
256 hash functions and 8 rows. Here a band of r rows that begins at the k-th value is looked up in one table for that k: the sets in the order of their values
at k, k + 1, and so on. A table in order of eight values is in order of the first r of them, for every r up to eight. So 256 entries a set serve all
settings; and as the values themselves are compared, no keys fall together.

Table k is asked for bands of r rows only where r divides k, so it is in order of as many values as the largest such r has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pexeso.containment.compiling import loop
from pexeso.errors import IndexCorruptError

_ROW_BITS = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class BandTables:
    """One table for each value of a signature, each in pieces, one for each partition.

    Attributes
    ----------
    values : uint32 (m, s)
        ``values[k]``: the k-th values of all sets, ascending within each partition.
    sets : int32 (m, s)
        The set that each value is of: a row of the signatures.
    """

    values: np.ndarray
    sets: np.ndarray


def depth_of(place: int, permutations: int, max_rows: int) -> int:
    """Say how many rows the longest band that begins at this place of a signature has.

    Examples
    --------
    >>> [depth_of(place, 256, 8) for place in (0, 1, 6, 9, 16, 254, 255)]
    [8, 1, 6, 3, 8, 2, 1]
    """
    most = min(max_rows, permutations)
    return max(rows for rows in range(1, most + 1) if place % rows == 0 and place + rows <= permutations)


def build_tables(signatures: np.ndarray, starts: np.ndarray, max_rows: int) -> BandTables:
    """Order the sets of each partition by each value.

    O(m s log s) time, some hundred bytes a set of the largest partition beside the result.

    Parameters
    ----------
    signatures : uint32 (s, m)
    starts : int64 (n + 1,)
        Partition i has the rows ``starts[i]:starts[i + 1]``.
    max_rows : int
        At least 1.

    Returns
    -------
    BandTables
        The same on every machine: sets with equal values stand in the order of their rows.
    """
    n_sets, permutations = signatures.shape
    values, sets = np.empty((permutations, n_sets), np.uint32), np.empty((permutations, n_sets), np.int32)
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        columns = np.ascontiguousarray(signatures[begin:end].T)
        for place in range(permutations):
            depth = depth_of(place, permutations, max_rows)
            order, first = _in_order(columns[place : place + depth])
            values[place, begin:end] = first
            sets[place, begin:end] = order + begin
    return BandTables(values, sets)


def band_hits(
    tables: BandTables,
    signatures: np.ndarray,
    query: np.ndarray,
    ranges: np.ndarray,
    settings: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the sets that agree with the query in a whole band.

    A look-up costs two binary searches, and one step for each band that a set has in common.

    Parameters
    ----------
    tables : BandTables
    signatures : uint32 (s, m)
    query : uint32 (m,)
    ranges : int64 (p, 3)
        For each partition to look into: its first row, its end, and the first row that counts.
    settings : int64 (p, 2)
        Bands and rows for each.

    Returns
    -------
    (int64 (c,), int64 (c,))
        Rows of the sets found, ascending, and in how many bands each agrees.

    Raises
    ------
    IndexCorruptError
        A table names a set that is not of its partition.
    """
    hits = np.zeros(len(signatures), np.int32)
    found = np.empty(int((ranges[:, 1] - ranges[:, 2]).sum()), np.int64)
    n = _look_up(tables.values, tables.sets, signatures, query, ranges, settings, hits, found)
    if n < 0:
        raise IndexCorruptError(
            "A table of an index for containment search names a set of another partition: build the index again."
        )
    rows = np.sort(found[:n])
    return rows, hits[rows].astype(np.int64)


def _in_order(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order rows by the values of several columns (d, n), the first counting most, then by row; give the first column in that order too."""
    keyed = np.sort((columns[0].astype(np.uint64) << _ROW_BITS) | np.arange(columns.shape[1], dtype=np.uint64))
    order, first = (keyed & _LOW).astype(np.int64), (keyed >> _ROW_BITS).astype(np.uint32)
    # Rows that are still level stand in a group; the next column divides it. Mostly few are left after two.
    level, group = np.arange(len(order)), first.astype(np.uint64)
    for column in columns[1:]:
        same = group[1:] == group[:-1]
        tied = np.zeros(len(group), bool)
        tied[1:] |= same
        tied[:-1] |= same
        level, group = level[tied], group[tied]
        if not len(level):
            break
        number = np.cumsum(np.concatenate([[0], group[1:] != group[:-1]])).astype(np.uint64)
        keys = (number << _ROW_BITS) | column[order[level]]
        moved = np.argsort(keys, kind="stable")
        order[level], group = order[level[moved]], keys[moved]
    return order, first


@loop
def _look_up(values, sets, signatures, query, ranges, settings, hits, found):
    n = 0
    for p in range(len(ranges)):
        begin, end, least = ranges[p, 0], ranges[p, 1], ranges[p, 2]
        for band in range(settings[p, 0]):
            place = band * settings[p, 1]
            wanted = query[place]
            low = begin + np.searchsorted(values[place, begin:end], wanted)
            high = low
            if low < end and values[place, low] == wanted:
                high = begin + np.searchsorted(values[place, begin:end], wanted, side="right")
            for at in range(place + 1, place + settings[p, 1]):
                if low >= high:
                    break
                wanted = query[at]
                left, right = low, high
                while left < right:
                    middle = (left + right) >> 1
                    row = sets[place, middle]
                    if row < begin or row >= end:
                        return -1
                    if signatures[row, at] < wanted:
                        left = middle + 1
                    else:
                        right = middle
                low, right = left, high
                while left < right:
                    middle = (left + right) >> 1
                    row = sets[place, middle]
                    if row < begin or row >= end:
                        return -1
                    if signatures[row, at] <= wanted:
                        left = middle + 1
                    else:
                        right = middle
                high = left
            for i in range(low, high):
                row = sets[place, i]
                if row < begin or row >= end:
                    return -1
                if row >= least:
                    if hits[row] == 0:
                        found[n] = row
                        n += 1
                    hits[row] += 1
    return n
