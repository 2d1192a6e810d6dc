"""Compiled loop of the fuzzy join: pairs of sets that are more similar than any second-best pair.

Similarities are quotients of whole numbers (for the cosine its square), rounded correctly to
float64, so that equal ones are equal and the order of different ones is never reversed, on any
machine. Different ones stay different where the numbers below the line are at most 2**26, as they
are for sets of up to 8,192 tokens (cosine) or 33 million (others); beyond, near equals may count as
equal, by which a join gets smaller but never breaks its promises.
"""

from __future__ import annotations

import numpy as np

from pexeso.runtime.jit import loop

JACCARD, DICE, COSINE, INCLUSION = range(4)
N_MEASURES = 4


@loop
def similarity(measure, shared, size, other_size):
    """Return how similar two sets are that share a number of tokens: 0 to 1, for COSINE squared."""
    if measure == JACCARD:
        return shared / (size + other_size - shared)
    if measure == DICE:
        return 2 * shared / (size + other_size)
    if measure == COSINE:
        return (shared * shared) / (size * other_size)
    return shared / min(size, other_size)


@loop
def any_above(shared, size, other_size, floors):
    """Return whether two sets are more similar than the floor of some measure."""
    for measure in range(N_MEASURES):
        if similarity(measure, shared, size, other_size) > floors[measure]:
            return True
    return False


@loop
def probe(
    offsets, tokens, other_offsets, other_tokens, begins, ends, lists, at_least,
    floors, best, other_best, watched, other_watched, partners, shares, own_partners,
):  # fmt: skip
    """Compare each set with those of the other side that are at least as large.

    Pairs above a floor count. The floor of a measure rises to the second-best similarity of every
    watched set, so that in the end each of these has at most one partner above it. Sets are in
    ascending order of size on both sides; tokens of a set, by the length of their lists.

    Of two sets of which the other is at least as large, some among the first ``size - shared + 1``
    tokens is common if `shared` tokens are (a prefix filter): only the lists of these are read.

    Parameters
    ----------
    offsets, tokens : int64 (n + 1,), int32
    other_offsets, other_tokens : int64 (m + 1,), int32
    begins, ends : int64 (t,)
        The list of sets of the other side of each token; `begins` is changed.
    lists : int32
        Sets of the other side, ascending within a list.
    floors : float64 (4,)
        Changed.
    best, other_best : float64 (n, 4), float64 (m, 4)
        The largest similarity of each set so far; changed.
    partners, shares : int32 (n or m, 4)
        The best partner of each set of the side that is meant by `own_partners`, and how many
        tokens they share; changed.
    """
    n_others = len(other_offsets) - 1
    counts = np.zeros(n_others, np.int32)
    touched = np.empty(n_others, np.int32)
    stamps = np.full(len(begins), -1, np.int32)
    first_other = 0
    for own_set in range(len(offsets) - 1):
        size = offsets[own_set + 1] - offsets[own_set]
        while first_other < n_others and (
            other_offsets[first_other + 1] - other_offsets[first_other] < size + at_least
        ):
            first_other += 1
        needed = size + 1
        while needed > 1 and any_above(needed - 1, size, size, floors):
            needed -= 1
        n_touched, unread = 0, needed - 1
        for at in range(offsets[own_set], offsets[own_set + 1] - unread):
            token = tokens[at]
            while begins[token] < ends[token] and lists[begins[token]] < first_other:
                begins[token] += 1
            for position in range(begins[token], ends[token]):
                other = lists[position]
                if counts[other] == 0:
                    touched[n_touched] = other
                    n_touched += 1
                counts[other] += 1
        stamped = False
        for i in range(n_touched):
            other = np.int64(touched[i])
            shared = np.int64(counts[other])
            counts[other] = 0
            other_size = other_offsets[other + 1] - other_offsets[other]
            if not any_above(shared + unread, size, other_size, floors):
                continue
            if unread:
                if not stamped:
                    for at in range(offsets[own_set], offsets[own_set + 1]):
                        stamps[tokens[at]] = own_set
                    stamped = True
                shared = np.int64(0)
                for at in range(other_offsets[other], other_offsets[other + 1]):
                    shared += stamps[other_tokens[at]] == own_set
            for measure in range(N_MEASURES):
                score = similarity(measure, shared, size, other_size)
                if score <= floors[measure]:
                    continue
                holder, partner = (own_set, other) if own_partners else (other, own_set)
                holders = best if own_partners else other_best
                if score > holders[holder, measure]:
                    partners[holder, measure], shares[holder, measure] = partner, shared
                if watched:
                    floors[measure] = max(floors[measure], min(score, best[own_set, measure]))
                if other_watched:
                    floors[measure] = max(floors[measure], min(score, other_best[other, measure]))
                best[own_set, measure] = max(best[own_set, measure], score)
                other_best[other, measure] = max(other_best[other, measure], score)
