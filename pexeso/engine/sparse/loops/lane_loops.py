"""Compiled loops that go through all stored rows once for several query values.

Each query value has a lane of `BITS` bits: what a word adds to its dot product with a row that has
the word, in units, rounded down. Three lanes lie in one 64-bit number, so that one addition adds
for three values; no lane runs over, since by Cauchy and Schwarz no dot product is larger than the
length of the row times that of the value, which the unit makes room for.
"""

from __future__ import annotations

import numpy as np

from pexeso.engine.sparse.loops.list_loops import NO_LIST
from pexeso.errors import IndexCorruptError
from pexeso.runtime.jit import loop

BITS, IN_ONE = 21, 3
LANES = 2 * IN_ONE
"""Query values for which rows are gone through at once."""

TOP = 1 << (BITS - 1)
_LANE = np.uint64((1 << BITS) - 1)
_ONES = np.uint64(sum(1 << (BITS * lane) for lane in range(IN_ONE)))
_TOPS = np.uint64(int(_ONES) << (BITS - 1))
_SLACK = 8

ROW_ROUNDING = np.float64(2.0**-20)
"""Room for the rounding of lengths, factors and units."""

_WORDS, _ROWS = 512, 1024
_PREFIXES = 1 << 12


@loop
def scale_of(floors: np.ndarray, longest: float, most_words: int) -> float:
    """Return the units that a row needs for each unit of its length, to be worth a look.

    Parameters
    ----------
    floors : numpy.ndarray, float32
        The cosine with which a row is worth a look, of each lane.
    """
    return (TOP - 1 - most_words - _SLACK) * np.float64(floors.min()) * 0.999 / longest


@loop
def pack_lanes(
    near: np.ndarray, factors: np.ndarray, floors: np.ndarray, scale: float, packed: np.ndarray
) -> None:
    """Write the units of each word.

    Parameters
    ----------
    near : numpy.ndarray of shape (l, V), float32
        For each of l lanes.
    factors : numpy.ndarray of shape (V,), float32
        What nearness is multiplied by for a part of the dot product.
    packed : numpy.ndarray of shape (V, 2), uint64
        Written.
    """
    packed[:] = 0
    for begin in range(0, len(packed), _WORDS):
        end = min(begin + _WORDS, len(packed))
        for lane in range(len(near)):
            shift, half = np.uint64(BITS * (lane % IN_ONE)), lane // IN_ONE
            unit = np.float32(scale / np.float64(floors[lane]))
            for word in range(begin, end):
                units = np.uint64(np.int32(near[lane, word] * factors[word] * unit))
                packed[word, half] |= units << shift


@loop
def scan_rows(
    packed: np.ndarray,
    offsets: np.ndarray,
    members: np.ndarray,
    lengths: np.ndarray,
    scale: float,
    most_words: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the rows that are worth a look in any lane.

    Parameters
    ----------
    packed : numpy.ndarray of shape (V, 2), uint64
    offsets, members : numpy.ndarray
        The words of each row.
    lengths : numpy.ndarray of shape (N,), float32

    Returns
    -------
    rows : numpy.ndarray of shape (n,), int32
        Ascending.
    masks : numpy.ndarray of shape (n,), uint8
        One bit for each lane in which a row is worth a look.
    sums : numpy.ndarray of shape (n, 2), uint64
        Their units.
    """
    n_words, n_rows, n_found = np.uint64(len(packed)), len(offsets) - 1, 0
    room = 2 * _ROWS
    rows, masks, sums = (
        np.empty(room, np.int32),
        np.empty(room, np.uint8),
        np.empty((room, 2), np.uint64),
    )
    prefixes = np.zeros((max(_PREFIXES, most_words) + 1, 2), np.uint64)
    begin = 0
    while begin < n_rows:
        base, end = offsets[begin], min(begin + _ROWS, n_rows)
        while end > begin + 1 and offsets[end] - base >= len(prefixes):
            end = begin + max(1, (end - begin) // 2)
        if base < 0 or offsets[end] < base or offsets[end] > len(members):
            raise IndexCorruptError(NO_LIST)
        if offsets[end] - base >= len(prefixes):
            raise IndexCorruptError(NO_LIST)
        first, second = np.uint64(0), np.uint64(0)
        for position in range(offsets[end] - base):
            word = np.uint64(members[base + position])
            if word >= n_words:
                raise IndexCorruptError(NO_LIST)
            first += packed[word, 0]
            second += packed[word, 1]
            prefixes[position + 1, 0] = first
            prefixes[position + 1, 1] = second
        if n_found + end - begin > room:
            room, less = 2 * room, (rows, masks, sums)
            rows, masks = np.empty(room, np.int32), np.empty(room, np.uint8)
            sums = np.empty((room, 2), np.uint64)
            rows[:n_found], masks[:n_found] = less[0][:n_found], less[1][:n_found]
            sums[:n_found] = less[2][:n_found]
        for row in range(begin, end):
            start, stop = offsets[row] - base, offsets[row + 1] - base
            if start < 0 or stop < start or stop >= len(prefixes):
                raise IndexCorruptError(NO_LIST)
            # Lanes that reach what is needed carry into their top bit.
            carry = np.uint64(TOP - needed_of(lengths[row], stop - start, scale)) * _ONES
            first = prefixes[stop, 0] - prefixes[start, 0]
            second = prefixes[stop, 1] - prefixes[start, 1]
            reached, and_reached = (first + carry) & _TOPS, (second + carry) & _TOPS
            if reached | and_reached:
                rows[n_found], sums[n_found, 0], sums[n_found, 1] = row, first, second
                masks[n_found] = bits_of(reached) | bits_of(and_reached) << IN_ONE
                n_found += 1
        begin = end
    return rows[:n_found], masks[:n_found], sums[:n_found]


@loop
def bits_of(reached: int) -> int:
    """Return the top bits of lanes as one bit each."""
    bits = np.uint64(0)
    for lane in range(IN_ONE):
        bits |= ((reached >> np.uint64(BITS * (lane + 1) - 1)) & np.uint64(1)) << np.uint64(lane)
    return np.int64(bits)


@loop
def needed_of(length: float, n_words: int, scale: float) -> int:
    """Return the units that a row needs at least: less than one of each word was rounded down."""
    needed = np.int64(np.float64(length) * scale * (1.0 - ROW_ROUNDING))
    return max(needed - n_words - 1, 0)


@loop
def units_of(sums: np.ndarray, lane: int) -> int:
    """Return the units of one lane."""
    return np.int64((sums[lane // IN_ONE] >> np.uint64(BITS * (lane % IN_ONE))) & _LANE)
