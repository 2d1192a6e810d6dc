"""Compiled loops over words: a table of their keys, dot products, and what follows from them.

A table holds the keys of a few words, its owners, by pair. It is open addressing over a power of
two of slots; each slot leads to a chain of (owner, blocks, count). Tables are reused: `clear_table`
empties the slots that were filled.

What decides a match is whole numbers, or float64 in strict IEEE 754 arithmetic.
"""

from __future__ import annotations

import numpy as np

from pexeso.engine.sparse.loops.key_loops import (
    BITS_OF_BLOCKS,
    BLOCKS,
    common_of,
    write_keys,
)
from pexeso.runtime.jit import loop

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@loop
def slots_for(n_keys: int) -> int:
    """Return the number of slots of a table for so many keys, a power of two."""
    slots = 16
    while slots < 2 * n_keys:
        slots *= 2
    return slots


@loop
def slot_of(pair: int, pairs: np.ndarray, heads: np.ndarray) -> int:
    """Return the slot of a pair, or the empty one where it would go."""
    mask = len(pairs) - 1
    slot = np.int64((np.uint64(pair) * _SPREAD) >> np.uint64(40)) & mask
    while heads[slot] >= 0 and pairs[slot] != pair:
        slot = (slot + 1) & mask
    return slot


@loop
def add_word(
    text: np.ndarray,
    start: int,
    stop: int,
    owner: int,
    keys: np.ndarray,
    pairs: np.ndarray,
    heads: np.ndarray,
    chain: np.ndarray,
    filled: np.ndarray,
    sizes: np.ndarray,
) -> None:
    """Add the keys of a word to a table.

    Parameters
    ----------
    owner : int
        The word's number; words are added in ascending order.
    keys : numpy.ndarray, int64
        Room for the keys of the word.
    pairs : numpy.ndarray of shape (slots,), int64
    heads : numpy.ndarray of shape (slots,), int32
        Position in `chain` of the last entry of each slot, -1 where there is none.
    chain : numpy.ndarray of shape (room, 4), int32
        Owner, blocks, count and the entry before.
    filled : numpy.ndarray of shape (room,), int32
        The slots that are filled, in the order in which they were.
    sizes : numpy.ndarray of shape (2,), int64
        Entries of `chain` and of `filled`; updated.
    """
    for position in range(write_keys(text, start, stop, keys, 0)):
        pair, blocks = keys[position] >> BITS_OF_BLOCKS, keys[position] & BLOCKS
        slot = slot_of(pair, pairs, heads)
        head = heads[slot]
        if head < 0:
            pairs[slot] = pair
            filled[sizes[1]] = slot
            sizes[1] += 1
        entry = head
        while entry >= 0 and chain[entry, 0] == owner and chain[entry, 1] != blocks:
            entry = chain[entry, 3]
        if entry >= 0 and chain[entry, 0] == owner:
            chain[entry, 2] += 1
            continue
        entry = sizes[0]
        chain[entry, 0], chain[entry, 1], chain[entry, 2] = owner, blocks, 1
        chain[entry, 3] = head
        heads[slot] = entry
        sizes[0] += 1


@loop
def add_words(
    text: np.ndarray,
    starts: np.ndarray,
    words: np.ndarray,
    keys: np.ndarray,
    pairs: np.ndarray,
    heads: np.ndarray,
    chain: np.ndarray,
    filled: np.ndarray,
    sizes: np.ndarray,
) -> None:
    """Add the keys of some words to an empty table; their owners are their positions."""
    for owner in range(len(words)):
        word = words[owner]
        add_word(
            text, starts[word], starts[word + 1], owner, keys, pairs, heads, chain, filled, sizes
        )


@loop
def clear_table(heads: np.ndarray, filled: np.ndarray, sizes: np.ndarray) -> None:
    """Empty a table."""
    for position in range(sizes[1]):
        heads[filled[position]] = -1
    sizes[:] = 0


@loop
def count_common(
    text: np.ndarray,
    start: int,
    stop: int,
    keys: np.ndarray,
    pairs: np.ndarray,
    heads: np.ndarray,
    chain: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Compute the dot products C of a word with a table's owners.

    Parameters
    ----------
    counts : numpy.ndarray of shape (owners,), int64
        Written.
    """
    counts[:] = 0
    for position in range(write_keys(text, start, stop, keys, 0)):
        blocks = keys[position] & BLOCKS
        entry = heads[slot_of(keys[position] >> BITS_OF_BLOCKS, pairs, heads)]
        while entry >= 0:
            counts[chain[entry, 0]] += chain[entry, 2] * common_of(blocks, chain[entry, 1])
            entry = chain[entry, 3]


@loop
def similarity(count: int, square: int, other: int, letters: float) -> float:
    """Return s of two words that are not the same: float64, in [0, letters]."""
    return letters * (np.float64(count) / np.sqrt(np.float64(square) * np.float64(other)))


@loop
def compare_text(
    text: np.ndarray, start: int, stop: int, other: np.ndarray, first: int, last: int
) -> int:
    """Return -1, 0 or 1 as a text comes before another by its bytes, is the same, or after it."""
    size, room = stop - start, last - first
    for position in range(min(size, room)):
        byte, other_byte = text[start + position], other[first + position]
        if byte != other_byte:
            return -1 if byte < other_byte else 1
    return 0 if size == room else (-1 if size < room else 1)


@loop
def find_words(
    text: np.ndarray,
    starts: np.ndarray,
    other: np.ndarray,
    other_starts: np.ndarray,
    positions: np.ndarray,
) -> None:
    """Find words among others, which are in the order of their bytes; -1 for what is not there."""
    for word in range(len(starts) - 1):
        low, high = 0, len(other_starts) - 1
        positions[word] = -1
        while low < high:
            middle = (low + high) // 2
            order = compare_text(
                text,
                starts[word],
                starts[word + 1],
                other,
                other_starts[middle],
                other_starts[middle + 1],
            )
            if order == 0:
                positions[word] = middle
                break
            if order < 0:
                high = middle
            else:
                low = middle + 1


@loop
def words_ascend(text: np.ndarray, starts: np.ndarray) -> bool:
    """Return whether words are in the order of their bytes, each once."""
    for word in range(len(starts) - 2):
        order = compare_text(
            text, starts[word], starts[word + 1], text, starts[word + 1], starts[word + 2]
        )
        if order >= 0:
            return False
    return True


@loop
def put_in_order(
    starts: np.ndarray, rows: np.ndarray, offsets: np.ndarray, members: np.ndarray
) -> None:
    """Write lists that begin here and there in `rows` one after the other, each ascending."""
    for number in range(len(starts)):
        begin, end = offsets[number], offsets[number + 1]
        members[begin:end] = rows[starts[number] : starts[number] + end - begin]
        ascending = True
        for position in range(begin + 1, end):
            ascending &= members[position - 1] < members[position]
        if not ascending:
            members[begin:end].sort()
