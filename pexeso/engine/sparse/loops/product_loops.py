"""Compiled loops over all pairs of some words, or of some values, by the definition.

The features of some words, the owners, are noted once: for each feature, which of them have it and
how often. Features that many of them have are wide: a number for each owner, side by side, so that
several owners are added to at once. The dot products of another word with all owners then take one
step for each feature that it has, however often it has it.

Whole numbers are held as float64, exact up to 2^53 in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pexeso.engine.sparse.loops.key_loops import (
    BITS_OF_BLOCKS,
    FIRST_BLOCK,
    keys_of,
    write_keys,
)
from pexeso.engine.sparse.loops.word_loops import (
    add_words,
    clear_table,
    compare_text,
    count_common,
    similarity,
    slot_of,
    slots_for,
)
from pexeso.engine.sparse.space import LAST_BLOCK, PAIR
from pexeso.runtime.jit import loop

_BITS = BITS_OF_BLOCKS + 2
_OF_FIRST, _OF_LAST = 1 << BITS_OF_BLOCKS, 2 << BITS_OF_BLOCKS
_NARROW = 4
"""A feature is wide where more than one in so many owners has it."""

MANY = 16
"""Words of a value whose features are noted before they are compared with each other."""


class Features(NamedTuple):
    """The features of u words.

    Attributes
    ----------
    names : numpy.ndarray of shape (slots,), int64
        Open addressing over a power of two of slots.
    numbers : numpy.ndarray of shape (slots,), int32
        The number of each feature, -1 where a slot is empty.
    offsets, owners, counts : numpy.ndarray, int64, int32 and float64
        The words that have each of f features, and what it counts in each; of those that are not
        wide.
    wide_rows : numpy.ndarray of shape (f,), int64
        The row of `wide` of each feature, -1 where it has none.
    wide : numpy.ndarray of shape (w, u), float64
    times : numpy.ndarray of shape (f,), int64
        Zeros: room for how often another word has each feature.
    seen : numpy.ndarray of shape (f,), int32
        Room for the features that it has.
    """

    names: np.ndarray
    numbers: np.ndarray
    offsets: np.ndarray
    owners: np.ndarray
    counts: np.ndarray
    wide_rows: np.ndarray
    wide: np.ndarray
    times: np.ndarray
    seen: np.ndarray


@loop
def name_of(key: int, sort: int) -> int:
    """Return a feature of a key: its pair, or that with its block from the start or the end."""
    name = (key >> BITS_OF_BLOCKS) << _BITS
    if sort == 0:
        return name
    if sort == 1:
        return name | _OF_FIRST | (key & FIRST_BLOCK)
    return name | _OF_LAST | (key & LAST_BLOCK)


@loop
def note_features(text: np.ndarray, starts: np.ndarray, words: np.ndarray) -> Features:
    """Note the features of some words."""
    room = 3 * keys_of(starts, words)
    keys = np.empty(room, np.int64)
    n_slots = slots_for(room)
    names, numbers = np.empty(n_slots, np.int64), np.full(n_slots, -1, np.int32)
    # For each feature of a word: its number, the word's position, and what it counts.
    entries, n_entries, n_features = np.empty((room, 3), np.int32), 0, 0
    last_entry = np.full(room, -1, np.int64)
    for owner in range(len(words)):
        word, before = words[owner], n_entries
        for position in range(write_keys(text, starts[word], starts[word + 1], keys, 0)):
            for sort in range(3):
                name = name_of(keys[position], sort)
                slot = slot_of(name, names, numbers)
                number = numbers[slot]
                if number < 0:
                    number, names[slot], numbers[slot] = n_features, name, n_features
                    n_features += 1
                entry = last_entry[number]
                if entry < before:
                    entry, last_entry[number] = n_entries, n_entries
                    entries[entry, 0], entries[entry, 1], entries[entry, 2] = number, owner, 0
                    n_entries += 1
                entries[entry, 2] += PAIR if sort == 0 else 1
    sizes = np.zeros(n_features, np.int64)
    for entry in range(n_entries):
        sizes[entries[entry, 0]] += 1
    wide_rows, n_wide = np.full(n_features, -1, np.int64), 0
    offsets = np.zeros(n_features + 1, np.int64)
    for number in range(n_features):
        is_wide = len(words) >= 2 * _NARROW and sizes[number] * _NARROW > len(words)
        if is_wide:
            wide_rows[number], n_wide = n_wide, n_wide + 1
        offsets[number + 1] = offsets[number] + (0 if is_wide else sizes[number])
    wide, ends = np.zeros((n_wide, len(words))), offsets[:-1].copy()
    owners, counts = np.empty(offsets[-1], np.int32), np.empty(offsets[-1])
    for entry in range(n_entries):
        number = entries[entry, 0]
        if wide_rows[number] >= 0:
            wide[wide_rows[number], entries[entry, 1]] = entries[entry, 2]
        else:
            owners[ends[number]], counts[ends[number]] = entries[entry, 1], entries[entry, 2]
            ends[number] += 1
    return Features(
        names, numbers, offsets, owners, counts, wide_rows, wide,
        np.zeros(n_features, np.int64), np.empty(n_features, np.int32),
    )  # fmt: skip


@loop
def add_common(
    text: np.ndarray,
    start: int,
    stop: int,
    keys: np.ndarray,
    features: Features,
    products: np.ndarray,
) -> None:
    """Compute the dot products C of a word with those whose features were noted.

    Parameters
    ----------
    keys : numpy.ndarray, int64
        Room for the keys of the word.
    products : numpy.ndarray of shape (u,), float64
        Written.
    """
    products[:] = 0.0
    n_seen = 0
    for position in range(write_keys(text, start, stop, keys, 0)):
        for sort in range(3):
            slot = slot_of(name_of(keys[position], sort), features.names, features.numbers)
            number = features.numbers[slot]
            if number < 0:
                if sort == 0:  # where no word has the pair, none has it with a block
                    break
                continue
            if features.times[number] == 0:
                features.seen[n_seen] = number
                n_seen += 1
            features.times[number] += 1
    for position in range(n_seen):
        number = features.seen[position]
        times, features.times[number] = np.float64(features.times[number]), 0
        row = features.wide_rows[number]
        if row >= 0:
            wide = features.wide[row]
            for owner in range(len(products)):
                products[owner] += times * wide[owner]
        else:
            for entry in range(features.offsets[number], features.offsets[number + 1]):
                products[features.owners[entry]] += times * features.counts[entry]


@loop
def add_similarities(
    text: np.ndarray,
    starts: np.ndarray,
    squares: np.ndarray,
    words: np.ndarray,
    other: np.ndarray,
    start: int,
    stop: int,
    square: int,
    keys: np.ndarray,
    features: Features,
    letters: float,
    similarities: np.ndarray,
) -> None:
    """Compute s of a word with each of some, whose features were noted.

    Parameters
    ----------
    other : numpy.ndarray, uint8
        The word is ``other[start:stop]``, and `square` its dot product with itself.
    squares : numpy.ndarray of shape (u,), float64
        Those of ``words``.
    similarities : numpy.ndarray of shape (u,), float64
        Written.
    """
    add_common(other, start, stop, keys, features, similarities)
    own, same = np.float64(square), False
    for number in range(len(words)):
        same |= similarities[number] == own
    if not same:
        for number in range(len(words)):
            similarities[number] = letters * (similarities[number] / np.sqrt(squares[number] * own))
        return
    for number in range(len(words)):
        count, word = similarities[number], words[number]
        similarities[number] = letters * (count / np.sqrt(squares[number] * own))
        if (
            count == own
            and count == squares[number]
            and compare_text(text, starts[word], starts[word + 1], other, start, stop) == 0
        ):
            similarities[number] = 1.0


@loop
def longest_of(starts: np.ndarray) -> int:
    """Return the bytes of the longest word."""
    longest = 0
    for word in range(len(starts) - 1):
        longest = max(longest, starts[word + 1] - starts[word])
    return longest


@loop
def squares_of(squares: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return the dot products of some words with themselves, float64."""
    some = np.empty(len(words))
    for number in range(len(words)):
        some[number] = squares[words[number]]
    return some


@loop
def value_distances(
    text: np.ndarray,
    starts: np.ndarray,
    weights: np.ndarray,
    squares: np.ndarray,
    offsets: np.ndarray,
    members: np.ndarray,
    norms: np.ndarray,
    words: np.ndarray,
    places: np.ndarray,
    other: np.ndarray,
    other_starts: np.ndarray,
    other_weights: np.ndarray,
    other_squares: np.ndarray,
    other_offsets: np.ndarray,
    other_members: np.ndarray,
    other_norms: np.ndarray,
    letters: float,
    near: np.ndarray,
    distances: np.ndarray,
) -> None:
    """Compute the distances of n values to m others.

    Parameters
    ----------
    offsets : numpy.ndarray of shape (n + 1,), int64
        The values begin and end there in `members`.
    words : numpy.ndarray of shape (u,), int64
        The words of the values.
    places : numpy.ndarray
        Where each member of `members` is in `words`, from ``offsets[0]`` on.
    near : numpy.ndarray of shape (v, n), float64
        Room for the nearness of all words of the others to each value.
    distances : numpy.ndarray of shape (m, n), float64
        Written: fractions of the largest distance, infinite where a value has no words.
    """
    n, first_member = len(norms), offsets[0]
    features = note_features(text, starts, words)
    own_squares, similarities = squares_of(squares, words), np.empty(len(words))
    keys = np.empty(2 * longest_of(other_starts) + 1, np.int64)
    for word in range(len(other_starts) - 1):
        add_similarities(
            text, starts, own_squares, words, other, other_starts[word], other_starts[word + 1],
            other_squares[word], keys, features, letters, similarities,
        )  # fmt: skip
        for value in range(n):
            nearness = 0.0
            for position in range(offsets[value], offsets[value + 1]):
                nearness += (
                    np.float64(weights[members[position]])
                    * similarities[places[position - first_member]]
                )
            near[word, value] = nearness
    for row in range(len(other_norms)):
        dots, square = distances[row], other_norms[row]
        dots[:] = 0.0
        for position in range(other_offsets[row], other_offsets[row + 1]):
            weight = np.float64(other_weights[other_members[position]])
            nearnesses = near[other_members[position]]
            for value in range(n):
                dots[value] += weight * nearnesses[value]
        for value in range(n):
            dots[value] = np.sqrt(
                max(1.0 - dots[value] / np.sqrt(norms[value] * square), 0.0) * 0.5
            )
        if square > 0.0:
            for value in range(n):
                if not norms[value] > 0.0:
                    dots[value] = np.inf
        else:
            dots[:] = np.inf


@loop
def keep_nearest(
    distances: np.ndarray, rows: np.ndarray, owners: np.ndarray, nearest: np.ndarray
) -> None:
    """Keep the least distance of each of n values to the rows of each owner.

    Parameters
    ----------
    distances : numpy.ndarray of shape (m, n), float64
    rows, owners : numpy.ndarray, int64
        Which owner has which row.
    nearest : numpy.ndarray of shape (r, n), float64
        Lowered.
    """
    for entry in range(len(rows)):
        mine, nearest_yet = distances[rows[entry]], nearest[owners[entry]]
        for value in range(len(mine)):
            nearest_yet[value] = min(nearest_yet[value], mine[value])


@loop
def value_squares(
    text: np.ndarray,
    starts: np.ndarray,
    weights: np.ndarray,
    squares: np.ndarray,
    offsets: np.ndarray,
    members: np.ndarray,
    letters: float,
    begin: int,
    end: int,
    norms: np.ndarray,
) -> None:
    """Compute the dot product of each value with itself, float64; 0 without words."""
    longest, room, max_words = 0, 0, 0
    for value in range(begin, end):
        total = 0
        for position in range(offsets[value], offsets[value + 1]):
            word = members[position]
            size = 2 * (starts[word + 1] - starts[word]) + 1
            longest, total = max(longest, size), total + size
        room, max_words = max(room, total), max(max_words, offsets[value + 1] - offsets[value])
    keys, n_slots = np.empty(longest, np.int64), slots_for(room)
    pairs, heads = np.empty(n_slots, np.int64), np.full(n_slots, -1, np.int32)
    chain, filled = np.empty((room, 4), np.int32), np.empty(room, np.int32)
    sizes, counts = np.zeros(2, np.int64), np.zeros(max_words, np.int64)
    words, times = np.empty(max_words, np.int64), np.empty(max_words, np.int64)
    for value in range(begin, end):
        first, last = offsets[value], offsets[value + 1]
        if last - first == 1:
            weight = np.float64(weights[members[first]])
            norms[value] = weight * weight
            continue
        # A word that a value repeats is compared once, and added as often as it is there.
        n_words = 0
        for position in range(first, last):
            if position == first or members[position] != members[position - 1]:
                words[n_words], times[n_words] = members[position], 0
                n_words += 1
            times[n_words - 1] += 1
        if n_words >= MANY:
            norms[value] = square_of_many(
                text, starts, weights, squares, words[:n_words], times, keys, letters
            )
            continue
        add_words(text, starts, words[:n_words], keys, pairs, heads, chain, filled, sizes)
        total = 0.0
        for word, n_times in zip(words[:n_words], times[:n_words]):  # noqa: B905  for numba
            count_common(
                text, starts[word], starts[word + 1],
                keys, pairs, heads, chain, counts[:n_words],
            )  # fmt: skip
            nearness = 0.0
            for other in range(n_words):
                other_word = words[other]
                if counts[other] == 0:
                    continue
                alike = (
                    1.0 if other_word == word
                    else similarity(counts[other], squares[other_word], squares[word], letters)
                )  # fmt: skip
                for _ in range(times[other]):
                    nearness += np.float64(weights[other_word]) * alike
            for _ in range(n_times):
                total += np.float64(weights[word]) * nearness
        clear_table(heads, filled, sizes)
        norms[value] = total


@loop
def square_of_many(
    text: np.ndarray,
    starts: np.ndarray,
    weights: np.ndarray,
    squares: np.ndarray,
    words: np.ndarray,
    times: np.ndarray,
    keys: np.ndarray,
    letters: float,
) -> float:
    """Return the dot product of a value of many words with itself.

    Parameters
    ----------
    words, times : numpy.ndarray, int64
        Its distinct words, ascending, and how often it has each.
    keys : numpy.ndarray, int64
        Room for the keys of a word.
    """
    features, total = note_features(text, starts, words), 0.0
    similarities = np.empty(len(words))
    own_squares = squares_of(squares, words)
    for number in range(len(words)):
        word = words[number]
        add_similarities(
            text, starts, own_squares, words, text, starts[word], starts[word + 1], squares[word],
            keys, features, letters, similarities,
        )  # fmt: skip
        nearness = 0.0
        for other in range(len(words)):
            for _ in range(times[other]):
                nearness += np.float64(weights[words[other]]) * similarities[other]
        for _ in range(times[number]):
            total += np.float64(weights[word]) * nearness
    return total


@loop
def pair_products(
    text: np.ndarray,
    starts: np.ndarray,
    weights: np.ndarray,
    squares: np.ndarray,
    offsets: np.ndarray,
    members: np.ndarray,
    other: np.ndarray,
    other_starts: np.ndarray,
    other_weights: np.ndarray,
    other_squares: np.ndarray,
    other_offsets: np.ndarray,
    other_members: np.ndarray,
    letters: float,
    dots: np.ndarray,
) -> None:
    """Compute the dot product of each value with that of the same row, float64."""
    keys = np.empty(2 * longest_of(other_starts) + 1, np.int64)
    for row in range(len(dots)):
        words = members[offsets[row] : offsets[row + 1]].astype(np.int64)
        features, total = note_features(text, starts, words), 0.0
        similarities, own_squares = np.empty(len(words)), squares_of(squares, words)
        for position in range(other_offsets[row], other_offsets[row + 1]):
            word = other_members[position]
            add_similarities(
                text, starts, own_squares, words, other, other_starts[word],
                other_starts[word + 1], other_squares[word], keys, features, letters, similarities,
            )  # fmt: skip
            nearness = 0.0
            for number in range(len(words)):
                nearness += np.float64(weights[words[number]]) * similarities[number]
            total += np.float64(other_weights[word]) * nearness
        dots[row] = total
