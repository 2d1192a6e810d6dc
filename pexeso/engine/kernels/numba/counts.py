"""Compiled loops of the CPU kernel: which pairs match, and what that means for their columns.

Functions that decide a match keep to IEEE 754 to the letter: no reordering, no fusing. Only the
first, quick look may be loose, and its error is bounded (`pexeso.engine.precision`).

Compiled loops go where the numbers in an index lead them, and these come from files that may have
been made to lead elsewhere. So the first loop that follows a row to its columns looks at every
number before it is used: `count_pairs` at the offsets of a row, `count_columns` and `count_batch`
at its columns. `decide` and `settle` are given the pairs that were counted, and go nowhere else.
Rows need no look: a walk makes them up from the shapes of the arrays
(`pexeso.engine.layout.validation.require_shapes`). One comparison that never fails costs a loop
over scattered memory nothing that can be measured.

Arrays are named alike in all loops: `members` int64 (m,) are query values and `weights` int64 (m,)
theirs; `offsets` int64 (n + 1,) and `rows` int32 (p,) are the pairs by query value, a complement
being a match without a look; `column_offsets` int64 (N + 1,) and `columns` int32 the columns of
each row; `possible`, `matched` and `counts` int64 (C,). `vectors` are float32, or the bits of
float16 as uint16, which `as_single` reads. `last` int32 (C,) holds the last mark that
each column got.
"""

from __future__ import annotations

import numpy as np

from pexeso.errors import IndexCorruptError
from pexeso.runtime.halves import as_single
from pexeso.runtime.jit import loop

EUCLIDEAN, MANHATTAN, CHEBYSHEV = 0, 1, 2

NO_MATCH, MATCH, SKIPPED = 0, 1, 2

PAIRS_A_TURN = 8
"""Pairs that are worth a turn of a query value in a tile of rows."""

ROWS_A_TILE = 128
"""So few vectors stay in a cache near to the processor, with those of the query."""

_WAY_OUT = "'pexeso check' lists the damage; restore the index, or build it again."
_NO_RUN = f"The offsets of value_columns in a partition lead out of its postings: {_WAY_OUT}"
_NO_COLUMN = f"The postings of a partition name a column that it does not have: {_WAY_OUT}"


@loop(loose=True)
def quick_distance(left, right, metric, limit):
    """Compute the float32 distance of two vectors (squared if Euclidean), with early exit.

    `left` is float32; `right` is a stored vector.
    Some number beyond `limit` is returned once the distance is sure to be beyond it.
    """
    total = np.float32(0.0)
    n = left.shape[0]
    for begin in range(0, n, 64):
        end = min(begin + 64, n)
        part = np.float32(0.0)
        if metric == EUCLIDEAN:
            for axis in range(begin, end):
                difference = left[axis] - as_single(right[axis])
                part += difference * difference
            total += part
        elif metric == MANHATTAN:
            for axis in range(begin, end):
                part += abs(left[axis] - as_single(right[axis]))
            total += part
        else:
            for axis in range(begin, end):
                part = max(part, abs(left[axis] - as_single(right[axis])))
            total = max(total, part)
        if total > limit:
            return total
    return total


@loop()
def defining_distance(left, right, metric, terms):
    """Compute the float64 distance of two vectors.

    It equals that of `pexeso.engine.metrics.Metric.distances` bit for bit.
    """
    n = left.shape[0]
    if metric == CHEBYSHEV:
        largest = 0.0
        for axis in range(n):
            entry = np.float64(as_single(right[axis]))
            largest = max(largest, abs(np.float64(left[axis]) - entry))
        return largest
    for axis in range(n):
        difference = np.float64(left[axis]) - np.float64(as_single(right[axis]))
        terms[axis] = abs(difference) if metric == MANHATTAN else difference * difference
    width = n
    while width > 1:
        half = (width + 1) // 2
        for axis in range(width - half):
            terms[axis] = terms[axis] + terms[half + axis]
        width = half
    return terms[0] if metric == MANHATTAN else np.sqrt(terms[0])


@loop()
def decide(
    begin,
    end,
    members,
    offsets,
    rows,
    query_vectors,
    vectors,
    metric,
    tau,
    surely,
    possibly,
    check_columns,
    column_offsets,
    columns,
    possible,
    matched,
    needed,
    enough,
    states,
    work,
):
    """Decide the pairs of some query values.

    Pairs with no column that still matters are skipped (Lemma 7). Where there are many pairs, all
    values take turns with a tile of rows, whose vectors are read once if rows come in their order;
    in another order more are read, and the same is decided.

    Parameters
    ----------
    surely, possibly : float
        A quick distance of at most the first is a match, one over the second is none.
    states : uint8 (p,)
        Set to `NO_MATCH`, `MATCH` or `SKIPPED`.
    work : int64 (4,)
        Adds distances in float32, distances in float64, vectors read, pairs skipped.
    """
    terms = np.empty(query_vectors.shape[1], np.float64)
    n_pairs, n_rows = 0, vectors.shape[0]
    pending = np.empty(end - begin, np.int64)
    for position in range(begin, end):
        pending[position - begin] = offsets[members[position]]
        n_pairs += offsets[members[position] + 1] - offsets[members[position]]
    n_tiles = max(1, min(n_pairs // (PAIRS_A_TURN * max(1, end - begin)), n_rows // ROWS_A_TILE))
    for tile in range(1, n_tiles + 1):
        last = n_rows * tile // n_tiles
        for position in range(begin, end):
            query = members[position]
            pair = pending[position - begin]
            while pair < offsets[query + 1]:
                row = rows[pair]
                sure = row < 0
                if sure:
                    row = ~row
                elif row >= last:
                    break
                pair += 1
                if check_columns:
                    is_needed = False
                    for posting in range(column_offsets[row], column_offsets[row + 1]):
                        column = columns[posting]
                        if possible[column] >= needed and matched[column] < enough:
                            is_needed = True
                            break
                    if not is_needed:
                        states[pair - 1] = SKIPPED
                        work[3] += 1
                        continue
                if sure:
                    states[pair - 1] = MATCH
                    continue
                work[0] += 1
                quick = quick_distance(
                    query_vectors[query], vectors[row], metric, np.float32(possibly)
                )
                if quick <= surely:
                    states[pair - 1] = MATCH
                elif quick > possibly:
                    states[pair - 1] = NO_MATCH
                else:
                    work[1] += 1
                    distance = defining_distance(query_vectors[query], vectors[row], metric, terms)
                    states[pair - 1] = MATCH if distance <= tau else NO_MATCH
            pending[position - begin] = pair


@loop()
def count_pairs(offsets, rows, column_offsets, columns, members):
    """Return the number of (query value, row, column) triples of some query values."""
    total = 0
    for query in members:
        for pair in range(offsets[query], offsets[query + 1]):
            row = rows[pair]
            if row < 0:
                row = ~row
            first, last = column_offsets[row], column_offsets[row + 1]
            if first < 0 or last < first or last > columns.shape[0]:
                raise IndexCorruptError(_NO_RUN)
            total += last - first
    return total


@loop()
def count_columns(
    members, weights, offsets, rows, column_offsets, columns, mark, last, seen, counts, touched
):
    """Add to each column the weight of the query values that have a pair with one of its rows.

    Each value counts once. Gives the number of new columns.

    Parameters
    ----------
    touched : int32 (room,)
        Gets the columns that are new.
    """
    n_touched, n_columns = 0, counts.shape[0]
    for position in range(members.shape[0]):
        query = members[position]
        for pair in range(offsets[query], offsets[query + 1]):
            row = rows[pair]
            if row < 0:
                row = ~row
            for posting in range(column_offsets[row], column_offsets[row + 1]):
                column = columns[posting]
                if column < 0 or column >= n_columns:
                    raise IndexCorruptError(_NO_COLUMN)
                if last[column] == mark + position:
                    continue
                last[column] = mark + position
                counts[column] += weights[position]
                if not seen[column]:
                    seen[column] = True
                    touched[n_touched] = column
                    n_touched += 1
    return n_touched


@loop()
def settle(
    members, weights, offsets, rows, states, column_offsets, columns, mark, last, possible, matched
):
    """Update the counts with what `decide` found.

    Matched counts rise, and a column's possible count loses the query values that turned out to
    have no match in it.

    Parameters are those of `count_columns`; values ``mark, ..., mark + 2 m - 1`` are not in `last`.
    """
    for position in range(members.shape[0]):
        query = members[position]
        hit, miss = mark + 2 * position, mark + 2 * position + 1
        for pair in range(offsets[query], offsets[query + 1]):
            if states[pair] != MATCH:
                continue
            row = rows[pair]
            if row < 0:
                row = ~row
            for posting in range(column_offsets[row], column_offsets[row + 1]):
                column = columns[posting]
                if last[column] != hit:
                    last[column] = hit
                    matched[column] += weights[position]
        for pair in range(offsets[query], offsets[query + 1]):
            row = rows[pair]
            if row < 0:
                row = ~row
            for posting in range(column_offsets[row], column_offsets[row + 1]):
                column = columns[posting]
                if last[column] != hit and last[column] != miss:
                    last[column] = miss
                    possible[column] -= weights[position]


@loop()
def keep_matches(offsets, rows, states):
    """Drop the pairs that do not match: offsets and rows of the others, without complements."""
    kept_offsets = np.zeros(offsets.shape[0], np.int64)
    n_kept = 0
    for pair in range(rows.shape[0]):
        n_kept += states[pair] == MATCH
    kept_rows = np.empty(n_kept, np.int32)
    n_kept = 0
    for query in range(offsets.shape[0] - 1):
        for pair in range(offsets[query], offsets[query + 1]):
            if states[pair] == MATCH:
                kept_rows[n_kept] = rows[pair] if rows[pair] >= 0 else ~rows[pair]
                n_kept += 1
        kept_offsets[query + 1] = n_kept
    return kept_offsets, kept_rows


@loop()
def count_batch(
    begin,
    end,
    query_offsets,
    members,
    weights,
    needed,
    offsets,
    rows,
    column_offsets,
    columns,
    last,
    counts,
    room,
):
    """Count matches for a run of query columns, and keep the columns with enough of them.

    Counts are made from matching pairs.

    Parameters
    ----------
    query_offsets : int64 (Q + 1,)
    counts : int64 (C,)
        Zeros; they are zeros again afterwards.

    Returns
    -------
    which, column, count : int64 (r,)
        Ordered by query column; columns in no order.
    """
    touched, n_columns = np.empty(room, np.int32), counts.shape[0]
    size, n_found = 1024, 0
    which, column_found, count_found = (
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    mark = 0
    for query_column in range(begin, end):
        n_touched = 0
        for position in range(query_offsets[query_column], query_offsets[query_column + 1]):
            query = members[position]
            mark += 1
            for pair in range(offsets[query], offsets[query + 1]):
                row = rows[pair]
                first_posting, after = column_offsets[row], column_offsets[row + 1]
                if first_posting < 0 or after < first_posting or after > columns.shape[0]:
                    raise IndexCorruptError(_NO_RUN)
                for posting in range(first_posting, after):
                    column = columns[posting]
                    if column < 0 or column >= n_columns:
                        raise IndexCorruptError(_NO_COLUMN)
                    if last[column] == mark:
                        continue
                    last[column] = mark
                    if counts[column] == 0:
                        touched[n_touched] = column
                        n_touched += 1
                    counts[column] += weights[position]
        for number in range(n_touched):
            column = touched[number]
            if counts[column] >= needed[query_column]:
                if n_found == size:
                    size *= 2
                    which = np.concatenate((which, np.empty(n_found, np.int64)))
                    column_found = np.concatenate((column_found, np.empty(n_found, np.int64)))
                    count_found = np.concatenate((count_found, np.empty(n_found, np.int64)))
                which[n_found], column_found[n_found] = query_column, column
                count_found[n_found] = counts[column]
                n_found += 1
            counts[column] = 0
    return which[:n_found].copy(), column_found[:n_found].copy(), count_found[:n_found].copy()
