"""Compiled loops that count the tokens which columns share."""

from __future__ import annotations

import numpy as np

from pexeso.runtime.jit import loop

SOUND, DAMAGED = 0, -1


@loop
def count_by_lists(begins, ends, telling, list_sets, counts, telling_counts, met):
    """Count for each set the query tokens that it holds.

    Parameters
    ----------
    begins, ends : int64 (q,)
        The posting list of each query token, within `list_sets`.
    telling : bool (q,)
        Tokens that are counted by themselves too.
    list_sets : int32 (e,)
    counts, telling_counts : int32 (n_sets,)
        All 0; written to.
    met : int64 (n_sets,)
        Written to: the sets that were met, first.

    Returns
    -------
    int
        How many sets were met, `DAMAGED` where a list names none.
    """
    n = 0
    for j in range(len(begins)):
        for at in range(begins[j], ends[j]):
            row = list_sets[at]
            if row < 0 or row >= len(counts):
                return DAMAGED
            if counts[row] == 0:
                met[n] = row
                n += 1
            counts[row] += 1
            telling_counts[row] += telling[j]
    return n


@loop
def live_frequencies(token_offsets, list_sets, live, frequencies):
    """Count the live sets of each posting list; return `DAMAGED` where one names no set."""
    for token in range(len(frequencies)):
        n = 0
        for at in range(token_offsets[token], token_offsets[token + 1]):
            row = list_sets[at]
            if row < 0 or row >= len(live):
                return DAMAGED
            n += live[row]
        frequencies[token] = n
    return SOUND


@loop
def _grown(array):
    larger = np.empty(2 * len(array) + 16, array.dtype)
    larger[: len(array)] = array
    return larger


@loop
def _holds(tokens, low, end, token):
    """Return whether an ascending run holds a number."""
    last = end
    while low < end:
        middle = (low + end) // 2
        if tokens[middle] < token:
            low = middle + 1
        else:
            end = middle
    return low < last and tokens[low] == token


@loop
def _best(right, shared, ties, limit):
    """Return the positions of the pairs that share most, of equal ones those of the least tie."""
    order = np.argsort(right, kind="mergesort")
    ranks = np.empty(len(order), np.int64)
    for at in range(len(order)):
        ranks[at] = ties[right[order[at]]] - (shared[order[at]] << 32)
    return np.sort(order[np.argsort(ranks, kind="mergesort")[:limit]])


@loop
def find_containers(
    lefts, offsets, tokens, telling, prefixes, needed, min_telling, lists, columns, ties, limit
):
    """Find the sets that hold enough tokens of given ones.

    Parameters
    ----------
    lefts : int64 (m,)
        Columns whose containers are wanted.
    offsets : int64 (m + 1,)
        Where the tokens of each begin.
    tokens : int64 (offsets[-1],)
        As numbers of the searched index, -1 where it lacks one; the rarest of a column first.
    telling : bool (offsets[-1],)
        Whether a token is one of few columns; such ones are first.
    prefixes : int64 (m,)
        How many tokens of each are looked up: one of them is shared with each container.
    needed : int64 (m,)
        Least number of shared tokens.
    min_telling : int
        The same of telling ones.
    lists : tuple
        ``token_offsets, list_sets, set_offsets, set_tokens`` of the searched index.
    columns : tuple
        ``of_set``: the column of each set of the searched index, -1 for none; ``table``, ``key``,
        ``size``: of each column of the lake its table, whether it is nearly a key, its tokens.
    ties : int64 (n,)
        Of columns that share equally many tokens the one with the least comes first, then that of
        the smaller number; each below 2**32.
    limit : int
        The most for each of the given columns: those that share most tokens.

    Returns
    -------
    (int, int64 (r,), int64 (r,), int64 (r,), int)
        `SOUND` or `DAMAGED`; a column, one that contains it, and the tokens that they share; how
        many were left out by the limit.
    """
    token_offsets, list_sets, set_offsets, set_tokens = lists
    of_set, table, key, size = columns
    stamps = np.full(len(of_set), -1, np.int64)
    left, right, shared = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    n = 0
    dropped = 0
    for row in range(len(lefts)):
        me, first, end, begin = lefts[row], offsets[row], offsets[row + 1], n
        misses = (end - first) - needed[row]
        n_telling = 0
        for at in range(first, end):
            n_telling += telling[at]
        for at in range(first, first + prefixes[row]):
            token = tokens[at]
            if token < 0:
                continue
            for entry in range(token_offsets[token], token_offsets[token + 1]):
                other = list_sets[entry]
                if other < 0 or other >= len(of_set):
                    return DAMAGED, left[:0], right[:0], shared[:0], 0
                if stamps[other] == row:
                    continue
                stamps[other] = row
                column = of_set[other]
                if (
                    column < 0
                    or table[column] == table[me]
                    or size[column] < needed[row]
                    or not (key[column] or key[me])
                ):
                    continue
                # Verified: the rarest tokens first, since they are missed most.
                low, high = set_offsets[other], set_offsets[other + 1]
                missed = 0
                missed_telling = 0
                for position in range(first, end):
                    if tokens[position] < 0 or not _holds(set_tokens, low, high, tokens[position]):
                        missed += 1
                        missed_telling += telling[position]
                        if missed > misses or n_telling - missed_telling < min_telling:
                            break
                if missed > misses or n_telling - missed_telling < min_telling:
                    continue
                if n == len(left):
                    left, right, shared = _grown(left), _grown(right), _grown(shared)
                left[n], right[n], shared[n] = me, column, (end - first) - missed
                n += 1
        if n - begin > limit:
            best = _best(right[begin:n], shared[begin:n], ties, limit)
            right[begin : begin + limit] = right[begin:n][best]
            shared[begin : begin + limit] = shared[begin:n][best]
            dropped += n - begin - limit
            n = begin + limit
    return SOUND, left[:n], right[:n], shared[:n], dropped


@loop
def find_namesakes(lefts, offsets, entry_runs, run_begins, members, columns, limit, percent):
    """Find for columns those of the same name that share enough tokens with them.

    Parameters
    ----------
    lefts : int64 (m,)
        The columns.
    offsets : int64 (m + 1,)
        Where the entries of each begin in `entry_runs`.
    entry_runs : int64 (offsets[-1],)
        For each token of a column the run of members with that token and name, -1 for none.
    run_begins : int64 (r + 1,)
        Where each run begins in `members`.
    members : int64 (e,)
        Columns that hold a token of their name.
    columns : tuple
        ``table`` and ``size`` of each column of the lake; ``position`` of each among the members;
        ``names``, the members in order.
    limit : int
        The most for each column: those that share most tokens, of equal ones the smaller column,
        then by number.
    percent : int
        Least share of the tokens of the smaller column, in percent.

    Returns
    -------
    (int64 (r,), int64 (r,), int64 (r,), int)
        A column, a namesake, the tokens that they share; how many were left out by the limit.
    """
    table, size, position, names = columns
    counts = np.zeros(len(names), np.int64)
    candidates = np.empty(len(names), np.int64)
    left, right, shared = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    n = 0
    dropped = 0
    for row in range(len(lefts)):
        me = lefts[row]
        n_candidates = 0
        for at in range(offsets[row], offsets[row + 1]):
            run = entry_runs[at]
            if run < 0:
                continue
            for entry in range(run_begins[run], run_begins[run + 1]):
                other = members[entry]
                if table[other] == table[me]:
                    continue
                slot = position[other]
                if counts[slot] == 0:
                    candidates[n_candidates] = slot
                    n_candidates += 1
                counts[slot] += 1
        n_selected = 0
        for at in range(n_candidates):
            slot = candidates[at]
            min_size = min(size[me], size[names[slot]])
            if 100 * counts[slot] >= percent * min_size:
                candidates[n_selected] = slot
                n_selected += 1
            else:
                counts[slot] = 0
        chosen = np.sort(candidates[:n_selected])
        if n_selected > limit:
            ranks = np.empty(n_selected, np.int64)
            for at in range(n_selected):
                ranks[at] = size[names[chosen[at]]] - (counts[chosen[at]] << 32)
            order = np.argsort(ranks, kind="mergesort")
            for at in order[limit:]:
                counts[chosen[at]] = 0
            chosen = chosen[order[:limit]]
            dropped += n_selected - limit
        for slot in chosen:
            if n == len(left):
                left, right, shared = _grown(left), _grown(right), _grown(shared)
            left[n], right[n], shared[n] = me, names[slot], counts[slot]
            counts[slot] = 0
            n += 1
    return left[:n], right[:n], shared[:n], dropped
