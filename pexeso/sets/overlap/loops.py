"""Compiled loops that count posting lists and find texts.

The answers are those of `merge` and `dictionary`, which use arrays.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pexeso.errors import IndexCorruptError
from pexeso.runtime.jit import loop
from pexeso.runtime.scratch_buffers import borrow_counters, give_back

_DAMAGED = 2


def best_by_lists(
    list_sets: np.ndarray,
    runs: tuple[np.ndarray, np.ndarray],
    weights: np.ndarray,
    n_sets: int,
    k: int,
    at_least: int,
    excluded: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Count posting lists, and give the k sets with most of them, equal ones by number.

    Parameters
    ----------
    list_sets : int32 (e,)
    runs : (int64 (m,), int64 (m,))
        Where each list begins and ends, within `list_sets`.
    weights : int64 (m,)
        The tokens that each list stands for.
    excluded : int64
        Numbers of sets that are not wanted.

    Returns
    -------
    (int64 (r,), int64 (r,))
        Numbers of sets, and their counts; r is at most k.

    Notes
    -----
    A step for each entry, and some for each set met; 4 bytes for each set of the index stay with
    the thread.
    """
    begins, ends = runs
    counts = borrow_counters(n_sets)
    hits = np.empty(min(int((ends - begins).sum()), n_sets) + 1, np.int32)
    sets, overlaps = _best(list_sets, begins, ends, weights, excluded, k, at_least, counts, hits)
    if len(sets) and sets[0] < 0:
        raise IndexCorruptError(
            "A posting list of an overlap index names a set that is not there: it was changed or "
            "cut short. Restore it from a copy, or build it again."
        )
    give_back(counts)
    order = np.lexsort((sets, -overlaps))[:k]
    return sets[order], overlaps[order]


@loop
def _best(list_sets, begins, ends, weights, excluded, k, at_least, counts, hits):
    """Return the sets whose counts are at least the k-th, or one set -1 for a damaged list.

    The sets are in no particular order.
    """
    n, max_count = 0, 0
    for j in range(len(begins)):
        weight = weights[j]
        max_count += weight
        for at in range(begins[j], ends[j]):
            row = list_sets[at]
            if row < 0 or row >= len(counts):
                return np.full(1, -1, np.int64), np.zeros(1, np.int64)
            # Without a branch: nobody can foresee which sets were met before. The place behind the
            # last is written to in vain.
            hits[n] = row
            n += counts[row] == 0
            counts[row] += weight
    for row in excluded:
        if row >= 0 and row < len(counts):
            counts[row] = 0
    having = np.zeros(max_count + 2, np.int64)
    for i in range(n):
        having[counts[hits[i]]] += 1
    border, n_best = max_count + 1, 0
    while border > at_least and n_best < k:
        border -= 1
        n_best += having[border]
    sets, overlaps, m = np.empty(n_best, np.int64), np.empty(n_best, np.int64), 0
    for i in range(n):
        count = counts[hits[i]]
        if count >= border:
            sets[m], overlaps[m] = hits[i], count
            m += 1
        counts[hits[i]] = 0
    return sets, overlaps


def find_texts(texts: pa.Array, wanted: pa.Array) -> np.ndarray:
    """Find texts among sorted texts, in O(log n) steps each.

    All texts take each step in turn, so that memory accesses do not wait for each other.

    Returns
    -------
    int64 (q,)
        The place of each, -1 where it is not there.
    """
    positions = np.zeros(len(wanted), np.int64)
    if not _find(*utf8_of(texts), *utf8_of(wanted), positions):
        raise IndexCorruptError(
            "A text in the dictionary of an overlap index leads out of its file: 'pexeso check' "
            "tells which. Restore it from a copy, or build it again."
        )
    return positions


def utf8_of(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return where texts begin and end, and their bytes, as they lie in Arrow's buffers.

    Returns
    -------
    (int32 or int64 (n + 1,), uint8)
        Read-only views, so that loops are compiled once for arrays in memory and mapped ones.
    """
    dtype = np.int32 if texts.type == pa.string() else np.int64
    _, offsets, data = texts.buffers()
    ends = (
        np.frombuffer(offsets, dtype)[texts.offset : texts.offset + len(texts) + 1]
        if len(texts)
        else np.zeros(1, dtype)
    )
    return _read_only(ends), _read_only(np.frombuffer(data if data is not None else b"", np.uint8))


@loop
def _find(offsets, data, wanted_offsets, wanted_data, positions):
    n = len(offsets) - 1
    left = n
    while left > 1:
        half = left >> 1
        for j in range(len(positions)):
            order = _compared(
                offsets, data, positions[j] + half - 1, wanted_offsets, wanted_data, j
            )
            if order == _DAMAGED:
                return False
            if order < 0:
                positions[j] += half
        left -= half
    for j in range(len(positions)):
        # The search ends at the last place that can be, and where that is less at the one behind.
        for _ in range(2):
            order = (
                _compared(offsets, data, positions[j], wanted_offsets, wanted_data, j)
                if positions[j] < n
                else 1
            )
            if order == _DAMAGED:
                return False
            if order >= 0:
                break
            positions[j] += 1
        if order != 0:
            positions[j] = -1
    return True


@loop
def _compared(offsets, data, row, wanted_offsets, wanted_data, j):
    """Compare a text with a wanted text byte by byte: -1 less, 0 equal, 1 greater.

    Returns 2 if the text leads out of its file.
    """
    begin, end = offsets[row], offsets[row + 1]
    if begin < 0 or end < begin or end > len(data):
        return _DAMAGED
    at, until = wanted_offsets[j], wanted_offsets[j + 1]
    for i in range(min(end - begin, until - at)):
        if data[begin + i] != wanted_data[at + i]:
            return -1 if data[begin + i] < wanted_data[at + i] else 1
    if end - begin == until - at:
        return 0
    return -1 if end - begin < until - at else 1


def _read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view, so that loops are compiled once.

    Mapped arrays are read-only too.
    """
    view = array.view()
    view.flags.writeable = False
    return view
