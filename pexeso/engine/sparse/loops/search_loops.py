"""Compiled loops of the search for matching values by posting lists of pairs of letters.

For a query value q the similarity g(w) of q and each word w that the partition has is added up from
the lists of q's pairs; a stored value x that matches has a word with ``g(w) * S(x)`` no less than
the cosine wanted, where S(x) is the sum of x's scaled weights, since cos = sum_j b_j g_j. Rows are
in the order of S, largest first, so that a word's values that can match begin its list.

The lists of one pair, for all blocks in which it stands, lie side by side. What each adds is what
its occurrences in q have in common with it (`common_of`).

Where a small distance is asked for, the longest lists need not be read. Let q = r + s, with s the
pairs left out, and rho = |r|. The angle of x and q is at most t, that of q and r is acos(rho), so

    r . x >= rho * cos(acos(rho) + t) = rho * (rho * c - sqrt(1 - rho^2) * sqrt(1 - c^2)),

and r takes the place of q, with this bound in the place of c.

Where a value has so many near words that most rows would be looked at one by one, it waits until
there are several of that kind, for which all rows are gone through at once (`lane_loops`).

Sums are float32 of numbers that are not negative, so that each is off by a bounded share; bounds
make room for it. What lies within this room, and all that was found from r alone, is decided by the
definition.

Source: bounds of this kind are those of Anastasiu and Karypis, "L2AP: fast cosine similarity search
with prefix L-2 norm bounds" (ICDE 2014), and Li et al., "Cosine threshold queries" (2018).
"""

from __future__ import annotations

import numpy as np

from pexeso.engine.sparse.loops.lane_loops import (
    LANES,
    ROW_ROUNDING,
    pack_lanes,
    scale_of,
    scan_rows,
    units_of,
)
from pexeso.engine.sparse.loops.list_loops import (
    count_read,
    keep_words,
    largest_value,
    read_lists,
    select_words,
    weigh_pairs,
)
from pexeso.engine.sparse.loops.row_loops import (
    DEAR,
    collect_rows,
    forget,
    look_at_rows,
    within,
)
from pexeso.engine.sparse.loops.views import Noted, QueryValues, Room, Stored
from pexeso.engine.sparse.loops.word_loops import add_words, clear_table, slots_for
from pexeso.runtime.jit import loop

DENSE = 8
"""Where more than one in so many words of a partition is read, all words are looked through."""

ENTRIES, VISITS, DECIDED, LEFT_OUT, CANDIDATES = range(5)
"""What is counted: entries of lists of words, and of rows, rows decided by the definition, lists
left out, rows whose similarity was added up."""

WAITS = -1
"""In the place of a number of rows: they are found for several query values at once."""

ENTRIES_A_WORD = 8
"""To compare a word with another by the definition, among many, takes as long as to read so many
entries of lists."""

_A_LETTER, _A_STEP = 5, 2
"""To decide by the definition takes, for each letter of a stored word, as long as to read so many
entries, and so many more for each place where the query value has one of its pairs."""

_FEW_ENTRIES = 1 << 14
_ROOM = 1 << 12
_ROUNDING = np.float64(2.0**-22)
_ROUNDING_OF_A_SUM = np.float64(1.01 * 2.0**-24)
_LEAST_FLOOR = 1e-6


@loop
def find_matches(
    begin: int,
    end: int,
    query: QueryValues,
    stored: Stored,
    room: Room,
    longest_word: int,
    most_value_words: int,
    letters: float,
    cosine: float,
    max_distance: float,
    visits_a_scan: float,
    found_starts: np.ndarray,
    found_sizes: np.ndarray,
    work: np.ndarray,
) -> np.ndarray:
    """Find the stored rows that match some query values.

    Parameters
    ----------
    found_starts, found_sizes : numpy.ndarray of shape (end - begin,), int64
        Where the rows of each value begin in what is returned, and how many it has.
    work : numpy.ndarray of shape (5,), int64
        `ENTRIES` and so on are added.

    Returns
    -------
    numpy.ndarray, int32
        The matching rows of each value, in no order.
    """
    longest, most_keys, most_words = largest_value(
        query.starts, query.offsets, query.members, begin, end
    )
    n_slots = slots_for(most_keys)
    noted = Noted(
        np.empty(max(longest, 2 * longest_word + 1), np.int64),
        np.zeros(most_words, np.int64),
        np.empty(n_slots, np.int64),
        np.full(n_slots, -1, np.int32),
        np.empty((most_keys, 4), np.int32),
        np.empty(most_keys, np.int32),
        np.zeros(2, np.int64),
        room.known,
        room.known_words,
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
    )
    shares, norms, costs = np.empty(most_keys), np.empty(most_keys), np.empty(most_keys)
    lists = np.empty((most_keys, 2), np.int64)
    found_rows, n_found = np.empty(_ROOM, np.int32), 0
    found_starts[:], found_sizes[:] = 0, 0
    n_rows, n_waiting = len(room.gained), 0
    waiting, floors, sure_from = np.empty(LANES, np.int64), np.empty(LANES), np.empty(LANES)
    for value in range(begin, end):
        first, last = query.offsets[value], query.offsets[value + 1]
        near, n_words = room.lanes[n_waiting], 0
        if first < last:
            take_note(value, query, noted)
            n_words, dense, bound, is_whole = read_value(
                value, query, stored, noted, shares, norms, costs, lists, letters, cosine,
                near, room.words, work,
            )  # fmt: skip
        if n_words == DEAR:
            found_sizes[value - begin] = DEAR
        elif first < last:
            rounding = rounding_of(value, query, longest_word, most_value_words)
            floor = np.float32(max(bound * (1.0 - rounding), _LEAST_FLOOR))
            sure = np.float32(cosine * (1.0 + rounding) + 1e-6 if is_whole else np.inf)
            max_cost = np.inf
            if dense:
                n_near = select_words(near, stored.reach, floor, room.flags, room.words)
                max_cost = visits_a_scan * n_rows / LANES
            else:
                n_near = keep_words(near, stored.reach, floor, room.words[:n_words])
            n_hits = look_up(
                room.words[:n_near], near, value, query, stored, noted, room, floor, sure,
                rounding, max_cost, letters, max_distance, work,
            )  # fmt: skip
            if n_hits == WAITS:
                waiting[n_waiting], floors[n_waiting], sure_from[n_waiting] = value, floor, sure
                n_waiting += 1
            else:
                found_rows = with_rows(found_rows, n_found, room.rows[: max(n_hits, 0)])
                found_starts[value - begin], found_sizes[value - begin] = n_found, n_hits
                n_found += max(n_hits, 0)
                if dense:
                    near[:] = 0.0
                else:
                    for position in range(n_words):
                        near[room.words[position]] = 0.0
        if n_waiting == 0 or (n_waiting < LANES and value < end - 1):
            continue
        if 2 * n_waiting >= LANES:
            found_rows, n_found = scan_for(
                waiting[:n_waiting], floors, sure_from, begin, query, stored, noted, room,
                most_value_words, letters, max_distance, found_rows, n_found,
                found_starts, found_sizes, work,
            )  # fmt: skip
        else:
            # Too few to be worth it.
            for lane in range(n_waiting):
                late, near, floor = waiting[lane], room.lanes[lane], np.float32(floors[lane])
                take_note(late, query, noted)
                rounding = rounding_of(late, query, longest_word, most_value_words)
                n_near = select_words(near, stored.reach, floor, room.flags, room.words)
                n_hits = look_up(
                    room.words[:n_near], near, late, query, stored, noted, room, floor,
                    np.float32(sure_from[lane]), rounding, np.inf, letters, max_distance, work,
                )  # fmt: skip
                found_rows = with_rows(found_rows, n_found, room.rows[: max(n_hits, 0)])
                found_starts[late - begin], found_sizes[late - begin] = n_found, n_hits
                n_found += max(n_hits, 0)
        room.lanes[:n_waiting] = 0.0
        n_waiting = 0
    forget(noted)
    return found_rows[:n_found]


@loop
def take_note(value: int, query: QueryValues, noted: Noted) -> None:
    """Fill the table with the pairs of a query value, in the place of another's."""
    forget(noted)
    clear_table(noted.heads, noted.filled, noted.sizes)
    add_words(
        query.text, query.starts, query.members[query.offsets[value] : query.offsets[value + 1]],
        noted.word_keys, noted.pairs, noted.heads, noted.chain, noted.filled, noted.sizes,
    )  # fmt: skip


@loop
def entries_worth_reading(value: int, query: QueryValues, stored: Stored) -> int:
    """Return the entries of lists that take as long to read as to compare with all words."""
    n_words = query.offsets[value + 1] - query.offsets[value]
    return _FEW_ENTRIES + ENTRIES_A_WORD * n_words * len(stored.scales)


@loop
def letters_worth_deciding(value: int, query: QueryValues, stored: Stored, noted: Noted) -> int:
    """Return the letters that take as long to decide by as to compare with all words."""
    places = noted.sizes[0] / max(1, noted.sizes[1])
    return np.int64(entries_worth_reading(value, query, stored) / (_A_LETTER + _A_STEP * places))


@loop
def rounding_of(value: int, query: QueryValues, longest_word: int, most_value_words: int) -> float:
    """Return the share by which sums of float32 may be off for a query value."""
    n_words = query.offsets[value + 1] - query.offsets[value]
    # A stored word is added to once for each of its keys, as often as it has them.
    of_keys = (2 * longest_word + 2) * _ROUNDING_OF_A_SUM
    return (n_words + most_value_words + 64) * _ROUNDING + of_keys


@loop
def read_value(
    value: int,
    query: QueryValues,
    stored: Stored,
    noted: Noted,
    shares: np.ndarray,
    norms: np.ndarray,
    costs: np.ndarray,
    lists: np.ndarray,
    letters: float,
    cosine: float,
    near: np.ndarray,
    words: np.ndarray,
    work: np.ndarray,
) -> tuple[int, bool, float, bool]:
    """Add up from lists how near each word of the partition is to a query value.

    Parameters
    ----------
    shares, norms, costs, lists : numpy.ndarray
        Room; see `weigh_pairs`.
    near : numpy.ndarray of shape (V,), float32
        Zeros; written, up to the scale of each word.
    words : numpy.ndarray of shape (V,), int32
        The words that were reached are written, unless all are to be looked through.

    Returns
    -------
    n_words : int
        Words written; `DEAR` where nothing was read.
    bound : float
        What was read of a match is at least so similar.
    """
    first, last = query.offsets[value], query.offsets[value + 1]
    n_pairs, length = noted.sizes[1], np.sqrt(query.norms[value])
    weigh_pairs(
        first, length, query.weights, query.squares, query.members, query.own_words,
        noted.pairs, noted.heads, noted.chain, noted.filled, stored.keys, stored.list_offsets,
        stored.word_value_offsets, shares, norms[:n_pairs], lists, costs,
    )  # fmt: skip
    order = np.argsort(costs[:n_pairs])
    n_read, n_entries, bound = count_read(order, norms, lists, stored.list_offsets, letters, cosine)
    if n_entries > entries_worth_reading(value, query, stored):
        return DEAR, False, 0.0, False
    dense, n_words = n_entries * DENSE >= len(near), 0
    if letters < 1.0:
        for position in range(first, last):
            word = query.own_words[query.members[position]]
            if word < 0:
                continue
            if near[word] == 0.0 and not dense:
                words[n_words] = word
                n_words += 1
            near[word] += np.float32(
                query.weights[query.members[position]] / length * (1.0 - letters)
                / np.float64(stored.scales[word])
            )  # fmt: skip
    n_words = read_lists(
        order[:n_read], lists, noted.filled, noted.heads, noted.chain, shares, stored.keys,
        stored.list_offsets, stored.list_words, dense, near, words, n_words,
    )  # fmt: skip
    work[ENTRIES] += n_entries
    work[LEFT_OUT] += n_pairs - n_read
    return n_words, dense, bound, n_read == n_pairs


@loop
def look_up(
    words: np.ndarray,
    near: np.ndarray,
    value: int,
    query: QueryValues,
    stored: Stored,
    noted: Noted,
    room: Room,
    floor: float,
    sure: float,
    rounding: float,
    max_cost: float,
    letters: float,
    max_distance: float,
    work: np.ndarray,
) -> int:
    """Write the rows that match a query value to ``room.rows``; return their number.

    It is `WAITS` where to look them up costs more than `max_cost`, see `collect_rows`, and `DEAR`
    where to decide costs more than to compare all.
    """
    n_rows, n_touched, n_visits, is_done = collect_rows(
        words, near, stored, floor, rounding, max_cost, room.gained, room.touched, room.rows
    )
    for position in range(n_touched):
        room.gained[room.touched[position]] = 0
    work[VISITS] += n_visits
    if not is_done:
        return WAITS
    n_hits, n_decided = look_at_rows(
        room.rows[:n_rows], near, value, query, stored, noted, floor, sure, letters, max_distance,
        letters_worth_deciding(value, query, stored, noted),
    )  # fmt: skip
    work[CANDIDATES] += n_rows
    work[DECIDED] += n_decided
    return n_hits


@loop
def scan_for(
    waiting: np.ndarray,
    floors: np.ndarray,
    sure_from: np.ndarray,
    begin: int,
    query: QueryValues,
    stored: Stored,
    noted: Noted,
    room: Room,
    most_value_words: int,
    letters: float,
    max_distance: float,
    found_rows: np.ndarray,
    n_found: int,
    found_starts: np.ndarray,
    found_sizes: np.ndarray,
    work: np.ndarray,
) -> tuple[np.ndarray, int]:
    """Find the rows that match the waiting query values by going through all rows once.

    Returns
    -------
    found_rows : numpy.ndarray
    n_found : int
    """
    floors = floors[: len(waiting)].astype(np.float32)
    longest = np.float64(stored.value_lengths.max())
    scale = scale_of(floors, longest, most_value_words)
    pack_lanes(room.lanes[: len(waiting)], stored.factors, floors, scale, room.packed)
    rows, masks, sums = scan_rows(
        room.packed, stored.value_word_offsets, stored.value_words, stored.value_lengths, scale,
        most_value_words,
    )  # fmt: skip
    found_rows = with_room(found_rows, n_found, len(waiting) * len(rows))
    for lane in range(len(waiting)):
        value, is_noted, max_letters = waiting[lane], False, np.int64(0)
        # What a row needs for each unit of its length to match for certain.
        enough = scale * (sure_from[lane] / np.float64(floors[lane])) * (1.0 + ROW_ROUNDING)
        found_starts[value - begin] = n_found
        for number in range(len(rows)):
            if not masks[number] >> lane & 1:
                continue
            row, units = rows[number], units_of(sums[number], lane)
            if units < np.float64(stored.value_lengths[row]) * enough:
                work[DECIDED] += 1
                if not is_noted:
                    take_note(value, query, noted)
                    max_letters = letters_worth_deciding(value, query, stored, noted)
                    is_noted = True
                if noted.n_letters[0] > max_letters:
                    break
                if not within(row, value, query, stored, noted, letters, max_distance):
                    continue
            found_rows[n_found] = row
            n_found += 1
        if is_noted and noted.n_letters[0] > max_letters:
            n_found, found_sizes[value - begin] = found_starts[value - begin], DEAR
            continue
        found_sizes[value - begin] = n_found - found_starts[value - begin]
    work[CANDIDATES] += len(waiting) * len(room.gained)
    return found_rows, n_found


@loop
def with_rows(found_rows: np.ndarray, n_found: int, rows: np.ndarray) -> np.ndarray:
    """Return an array that begins with what was found, and goes on with some rows."""
    found_rows = with_room(found_rows, n_found, len(rows))
    found_rows[n_found : n_found + len(rows)] = rows
    return found_rows


@loop
def with_room(rows: np.ndarray, n_rows: int, n_more: int) -> np.ndarray:
    """Return an array that begins with the same rows, and has room for some more."""
    if n_rows + n_more <= len(rows):
        return rows
    larger = np.empty(max(2 * len(rows), n_rows + n_more), np.int32)
    larger[:n_rows] = rows[:n_rows]
    return larger
