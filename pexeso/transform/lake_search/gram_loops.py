"""Loops over the letters of texts: pieces of q letters as numbers, and what columns share.

A piece is the place of q letters in a row (a q-gram). A text of fewer letters is one piece by
itself, which is looked for inside longer texts too, if it has at least `MIN_LETTERS`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pexeso.runtime.jit import loop

Q = 3
"""Letters of a piece."""

MIN_LETTERS = 2
"""Of a text that is shorter than a piece."""

MAX_LETTERS = 500
"""Of a text; what follows is not looked at. As much as programs are learned from."""

INSIDE, WHOLE = 0, 1
"""How a piece of fewer than `Q` letters is looked for: a whole text inside others, or a piece
inside others that some text is as a whole."""

_MULTIPLIER = 0x9E3779B97F4A7C15


@loop
def decode(text: Any, first: int, last: int, letters: Any) -> int:
    """Write the code points of a UTF-8 text into `letters`; return how many, at most its size."""
    count = 0
    position = first
    while position < last and count < len(letters):
        byte = text[position]
        if byte < 0x80:
            size, letter = 1, np.int64(byte)
        elif byte < 0xE0:
            size, letter = 2, np.int64(byte & 0x1F)
        elif byte < 0xF0:
            size, letter = 3, np.int64(byte & 0x0F)
        else:
            size, letter = 4, np.int64(byte & 0x07)
        for step in range(1, size):
            if position + step < last:
                letter = (letter << 6) | np.int64(text[position + step] & 0x3F)
        letters[count] = letter
        count += 1
        position += size
    return count


@loop
def gram(letters: Any, first: int, size: int, kind: int) -> Any:
    """Return the number of a piece: uint64, never 0, another for each size and kind."""
    mixed = np.uint64(2 * size + kind) * np.uint64(_MULTIPLIER)
    for position in range(first, first + size):
        mixed = (mixed ^ np.uint64(letters[position])) * np.uint64(_MULTIPLIER)
        mixed ^= mixed >> np.uint64(29)
    return mixed | np.uint64(1 << 63)


@loop
def query_grams(text: Any, offsets: Any) -> Any:
    """Return the pieces of each text, once each or more often, and the text that each is of.

    Those by which others are looked for in it: its pieces of `Q` letters, or itself; and its
    shorter pieces, which others may be as a whole.
    """
    letters = np.empty(MAX_LETTERS, np.int64)
    total = 0
    for value in range(len(offsets) - 1):
        total += (Q - MIN_LETTERS + 1) * min(offsets[value + 1] - offsets[value], MAX_LETTERS)
    grams, values = np.empty(total, np.uint64), np.empty(total, np.int32)
    at = 0
    for value in range(len(offsets) - 1):
        size = decode(text, offsets[value], offsets[value + 1], letters)
        if MIN_LETTERS <= size < Q:
            grams[at] = gram(letters, 0, size, INSIDE)
            values[at] = value
            at += 1
        for first in range(size - Q + 1):
            grams[at] = gram(letters, first, Q, INSIDE)
            values[at] = value
            at += 1
        for short in range(MIN_LETTERS, Q):
            for first in range(size - short + 1):
                grams[at] = gram(letters, first, short, WHOLE)
                values[at] = value
                at += 1
    return grams[:at], values[:at]


@loop
def fill_table(grams: Any, table: Any, numbers: Any) -> None:
    """Put distinct pieces into a table of open addresses, whose size is a power of 2."""
    mask = np.uint64(len(table) - 1)
    for number in range(len(grams)):
        slot = (grams[number] >> np.uint64(20)) & mask
        while table[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = grams[number]
        numbers[slot] = number


@loop
def find(piece: Any, table: Any, numbers: Any) -> int:
    """Return the number of a piece, or -1."""
    mask = np.uint64(len(table) - 1)
    slot = (piece >> np.uint64(20)) & mask
    while table[slot] != 0:
        if table[slot] == piece:
            return numbers[slot]
        slot = (slot + np.uint64(1)) & mask
    return -1


@loop
def shared_grams(
    text: Any, first: int, last: int, letters: Any, lengths: Any, table: Any, numbers: Any, out: Any
) -> int:
    """Write the numbers of the pieces that a text shares with the query; return how many.

    Parameters
    ----------
    text : uint8
    letters : int64
        Room for its letters.
    out : int32
        At least ``Q * MAX_LETTERS`` places.
    """
    size = decode(text, first, last, letters)
    count = 0
    if MIN_LETTERS <= size < Q:
        number = find(gram(letters, 0, size, WHOLE), table, numbers)
        if number >= 0:
            out[count] = number
            count += 1
    for start in range(size - Q + 1):
        number = find(gram(letters, start, Q, INSIDE), table, numbers)
        if number >= 0:
            out[count] = number
            count += 1
    for short in range(MIN_LETTERS, Q):
        if lengths[short]:
            for start in range(size - short + 1):
                number = find(gram(letters, start, short, INSIDE), table, numbers)
                if number >= 0:
                    out[count] = number
                    count += 1
    return count


@loop
def compare_columns(
    text: Any,
    offsets: Any,
    equal: Any,
    columns: Any,
    lengths: Any,
    table: Any,
    numbers: Any,
    holder_offsets: Any,
    holders: Any,
    n_values: int,
    max_holders: int,
    max_pieces: int,
    partners: Any,
    strengths: Any,
    scores: Any,
) -> None:
    """Find for each text the query value that shares most telling pieces, and score columns.

    Parameters
    ----------
    text : uint8
        All texts, one after the other.
    offsets : int64 (t + 1,)
        Where each begins.
    equal : int64 (t,)
        The query value that a text equals, or -1.
    columns : int64 (c + 1,)
        Where the texts of each column begin.
    holder_offsets, holders
        Query values that hold each piece: int64 (g + 1,), int32.
    n_values : int
        Of the query.
    partners : int32 (t,)
        Written: the query value with most telling pieces, the first of several; -1 where there is
        none, or an equal one.
    strengths : int32 (t,)
        Written: telling pieces that it shares with it.
    scores : int64 (c, 2)
        Written: query values that are partners of some text, without those that a text equals; and
        the telling pieces of each with its best text, at most `max_pieces`, in sum.
    """
    letters = np.empty(MAX_LETTERS, np.int64)
    grams = np.empty(Q * MAX_LETTERS, np.int32)
    n_grams = len(holder_offsets) - 1
    in_texts = np.zeros(n_grams, np.int64)  # texts of the column that hold a piece
    seen = np.full(n_grams, -1, np.int64)  # the last text that held it
    pieces = np.zeros(n_values, np.int64)  # telling ones that a text shares with a value
    best = np.zeros(n_values, np.int64)
    is_equal = np.full(n_values, -1, np.int64)
    touched = np.empty(n_values, np.int32)
    partnered = np.empty(n_values, np.int32)
    for column in range(len(columns) - 1):
        start, end = columns[column], columns[column + 1]
        room = 1024
        hits = np.empty(room, np.int32)
        ends = np.empty(end - start, np.int64)
        n_hits = 0
        for row in range(start, end):
            if equal[row] >= 0:
                is_equal[equal[row]] = column
            count = shared_grams(
                text, offsets[row], offsets[row + 1], letters, lengths, table, numbers, grams
            )
            if n_hits + count > room:
                room = 2 * (n_hits + count)
                larger = np.empty(room, np.int32)
                larger[:n_hits] = hits[:n_hits]
                hits = larger
            for position in range(count):
                piece = grams[position]
                if seen[piece] != row:
                    seen[piece] = row
                    in_texts[piece] += 1
                    hits[n_hits] = piece
                    n_hits += 1
            ends[row - start] = n_hits
        n_partnered = 0
        first = 0
        for row in range(start, end):
            n_touched = 0
            for position in range(first, ends[row - start]):
                piece = hits[position]
                low, high = holder_offsets[piece], holder_offsets[piece + 1]
                if equal[row] < 0 and (high - low) * in_texts[piece] <= max_holders:
                    for holder in range(low, high):
                        value = holders[holder]
                        if is_equal[value] != column:
                            if pieces[value] == 0:
                                touched[n_touched] = value
                                n_touched += 1
                            pieces[value] += 1
            first = ends[row - start]
            chosen = -1
            for position in range(n_touched):
                value = touched[position]
                if chosen < 0 or (-pieces[value], value) < (-pieces[chosen], chosen):
                    chosen = value
            if chosen >= 0:
                if best[chosen] == 0:
                    partnered[n_partnered] = chosen
                    n_partnered += 1
                best[chosen] = max(best[chosen], min(pieces[chosen], max_pieces))
            partners[row] = chosen
            strengths[row] = pieces[chosen] if chosen >= 0 else 0
            for position in range(n_touched):
                pieces[touched[position]] = 0
        scores[column, 0] = n_partnered
        scores[column, 1] = 0
        for position in range(n_partnered):
            scores[column, 1] += best[partnered[position]]
            best[partnered[position]] = 0
        for position in range(n_hits):
            in_texts[hits[position]] = 0
            seen[hits[position]] = -1
