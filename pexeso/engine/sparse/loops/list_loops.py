"""Compiled loops over the posting lists of pairs of letters: which are read, and what they tell."""

from __future__ import annotations

import numpy as np

from pexeso.engine.sparse.loops.key_loops import BITS_OF_BLOCK, BLOCKS
from pexeso.engine.sparse.space import LAST_BLOCK, PAIR
from pexeso.errors import IndexCorruptError
from pexeso.runtime.jit import loop

SELECTIVE = 0.6
"""Lists are left out where what is read of a value must still be so similar to it, as a cosine."""

_A_VALUE = 64
"""To look at a value of a word takes as long as to read so many entries of lists."""

NO_LIST = (
    "The lists of a partition lead out of it: 'pexeso check' lists the damage; restore the index, "
    "or build it again."
)


@loop
def largest_value(
    starts: np.ndarray, offsets: np.ndarray, members: np.ndarray, begin: int, end: int
) -> tuple[int, int, int]:
    """Return the most keys of a word and of a value, and the most words, of a run of values."""
    longest, letters, words = 0, 0, 0
    for value in range(begin, end):
        total = 0
        for position in range(offsets[value], offsets[value + 1]):
            size = 2 * (starts[members[position] + 1] - starts[members[position]]) + 1
            longest, total = max(longest, size), total + size
        letters, words = max(letters, total), max(words, offsets[value + 1] - offsets[value])
    return longest, letters, words


@loop
def first_key(wanted: int, keys: np.ndarray) -> int:
    """Return the position of the first of ascending keys that is no less than one."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@loop
def bound_of(rest: float, cosine: float) -> float:
    """Return what r . x is at least where the part left out has the squared length `rest`."""
    kept_square = max(1.0 - rest, 0.0)
    return kept_square * cosine - np.sqrt(kept_square * rest) * np.sqrt(
        max(1.0 - cosine * cosine, 0.0)
    )


@loop
def select_words(
    near: np.ndarray, reach: np.ndarray, bound: float, flags: np.ndarray, words: np.ndarray
) -> int:
    """Write the words with ``near * reach >= bound``, ascending; return their number.

    Parameters
    ----------
    flags : numpy.ndarray, uint8
        Eight at once are looked at: as long as `near`, and up to a multiple of 8 with zeros behind.
    """
    for word in range(len(near)):
        flags[word] = near[word] * reach[word] >= bound
    n_words, eights = 0, flags.view(np.uint64)
    for eight in range(len(eights)):
        if eights[eight]:
            for word in range(8 * eight, 8 * eight + 8):
                if flags[word]:
                    words[n_words] = word
                    n_words += 1
    return n_words


@loop
def keep_words(near: np.ndarray, reach: np.ndarray, bound: float, words: np.ndarray) -> int:
    """Move the words with ``near * reach >= bound`` to the beginning; return their number."""
    n_words = 0
    for position in range(len(words)):
        word = words[position]
        if near[word] * reach[word] >= bound:
            words[position], words[n_words] = words[n_words], word
            n_words += 1
    return n_words


@loop
def weigh_pairs(
    first: int,
    length: float,
    weights: np.ndarray,
    squares: np.ndarray,
    members: np.ndarray,
    own_words: np.ndarray,
    pairs: np.ndarray,
    heads: np.ndarray,
    chain: np.ndarray,
    filled: np.ndarray,
    keys: np.ndarray,
    list_offsets: np.ndarray,
    word_value_offsets: np.ndarray,
    entry_shares: np.ndarray,
    norms: np.ndarray,
    lists: np.ndarray,
    costs: np.ndarray,
) -> None:
    """Write what each pair of a table counts in a query value, its lists, and what it costs.

    To read a pair costs the entries of its lists, and a part of the values of the words that it is
    from.

    Parameters
    ----------
    entry_shares : numpy.ndarray, float64
        Of each entry of the chain; written.
    norms : numpy.ndarray of shape (p,), float64
        What each pair adds to the squared length of the features of the value; written.
    lists : numpy.ndarray of shape (p, 2), int64
        The lists of each pair, from the first to before the second; written.
    costs : numpy.ndarray of shape (p,), float64
        0 where the partition has no word with the pair; written.
    """
    sums = np.empty(2 * LAST_BLOCK + 3)
    for number in range(len(norms)):
        slot = filled[number]
        cost, entry = 0.0, heads[slot]
        while entry >= 0:
            word = members[first + chain[entry, 0]]
            share = weights[word] * chain[entry, 2] / np.sqrt(np.float64(squares[word])) / length
            entry_shares[entry] = share
            own_word = own_words[word]
            if own_word >= 0:
                cost += (word_value_offsets[own_word + 1] - word_value_offsets[own_word]) / squares[
                    word
                ]
            entry = chain[entry, 3]
        norm = add_blocks(heads[slot], chain, entry_shares, sums)
        norms[number] = norm
        begin = first_key(pairs[slot] << 12, keys)
        end = begin
        if begin < len(keys) and keys[begin] >> 12 == pairs[slot]:
            end = first_key((pairs[slot] + 1) << 12, keys)
        lists[number, 0], lists[number, 1] = begin, end
        n_entries = list_offsets[end] - list_offsets[begin]
        costs[number] = n_entries + _A_VALUE * cost if end > begin else 0.0


@loop
def add_blocks(head: int, chain: np.ndarray, entry_shares: np.ndarray, sums: np.ndarray) -> float:
    """Add up what a pair of a query value counts: all of it, by block, and by that from the end.

    Parameters
    ----------
    head : int
        The pair's last entry of `chain`.
    sums : numpy.ndarray of shape (1 + 2 * 64,), float64
        Written; all of it times `PAIR`.

    Returns
    -------
    float
        What the pair adds to the squared length of the features of the value.
    """
    sums[:] = 0.0
    norm, entry = 0.0, head
    while entry >= 0:
        share = entry_shares[entry]
        first = 1 + (chain[entry, 1] >> BITS_OF_BLOCK)
        last = 2 + LAST_BLOCK + (chain[entry, 1] & LAST_BLOCK)
        norm += share * (2.0 * (sums[first] + sums[last]) + 2.0 * share)
        sums[first] += share
        sums[last] += share
        sums[0] += share
        entry = chain[entry, 3]
    norm += PAIR * sums[0] * sums[0]
    sums[0] *= PAIR
    return norm


@loop
def count_read(
    order: np.ndarray,
    norms: np.ndarray,
    lists: np.ndarray,
    list_offsets: np.ndarray,
    letters: float,
    cosine: float,
) -> tuple[int, int, float]:
    """Decide which lists are read.

    Returns
    -------
    n_read : int
        The lists of the first so many pairs in `order` are read. All of them, unless leaving the
        others out saves half of the entries.
    n_entries : int
        Entries of these lists.
    bound : float
        What is read of a match is at least so similar to the query value.
    """
    n_entries, n_pairs = 0, len(order)
    for number in range(n_pairs):
        n_entries += list_offsets[lists[number, 1]] - list_offsets[lists[number, 0]]
    n_read, rest, bound, left = n_pairs, 0.0, cosine, n_entries
    while n_read:
        number = order[n_read - 1]
        more = rest + letters * norms[number]
        lower = bound_of(more, cosine)
        if lists[number, 0] == lists[number, 1] or (
            lower < SELECTIVE * np.sqrt(max(1.0 - more, 0.0))
        ):
            break
        rest, bound = more, lower
        left -= list_offsets[lists[number, 1]] - list_offsets[lists[number, 0]]
        n_read -= 1
    if left * 2 >= n_entries:
        return n_pairs, n_entries, cosine
    return n_read, left, bound


@loop
def read_lists(
    order: np.ndarray,
    lists: np.ndarray,
    filled: np.ndarray,
    heads: np.ndarray,
    chain: np.ndarray,
    entry_shares: np.ndarray,
    keys: np.ndarray,
    list_offsets: np.ndarray,
    list_words: np.ndarray,
    dense: bool,
    near: np.ndarray,
    words: np.ndarray,
    n_words: int,
) -> int:
    """Add what lists count to their words; note the words unless all are looked through anyway."""
    sums = np.empty(2 * LAST_BLOCK + 3)
    for number in order:
        add_blocks(heads[filled[number]], chain, entry_shares, sums)
        for position in range(lists[number, 0], lists[number, 1]):
            blocks = keys[position] & BLOCKS
            share = sums[0] + sums[1 + (blocks >> BITS_OF_BLOCK)]
            share += sums[2 + LAST_BLOCK + (blocks & LAST_BLOCK)]
            added = np.float32(share)
            first, last = list_offsets[position], list_offsets[position + 1]
            if first < 0 or last < first or last > len(list_words):
                raise IndexCorruptError(NO_LIST)
            for at in range(first, last):
                word = list_words[at]
                if word < 0 or word >= len(near):
                    raise IndexCorruptError(NO_LIST)
                if near[word] == 0.0 and not dense:
                    words[n_words] = word
                    n_words += 1
                near[word] += added
    return n_words
