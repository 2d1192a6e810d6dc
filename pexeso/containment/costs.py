"""What a search by posting lists and one by bands are expected to take: which of them is asked.

Both are sums of what is known before anything is read, each weighed by a time that was fitted to measurements
(`benchmarks/containment.py` prints them anew). Only their ratio decides, and a wrong guess costs time and never an answer.
"""

from __future__ import annotations

import math

LISTS_SEARCH, LISTS_TOKEN, LISTS_ENTRY = 20e-6, 0.08e-6, 14e-9
"""Seconds for a search, for a token of the query, and for an entry of the lists that must be read, the sets behind it included."""

BANDS_SEARCH, BANDS_STEP, BANDS_HASH, BANDS_HIT = 60e-6, 30e-9, 1e-9, 0.15e-6
"""Seconds for a search, for a step of one look-up in a table, for one hash function over one token, and for a set that has a value in common."""


def lists_seconds(n_tokens: int, n_entries: int) -> float:
    """Return the time of a search by posting lists.

    Parameters
    ----------
    n_entries : int
        `QueryLists.n_entries` of the tokens needed.
    """
    return LISTS_SEARCH + LISTS_TOKEN * n_tokens + LISTS_ENTRY * n_entries


def bands_seconds(n_tokens: int, permutations: int, n_sets: int, n_entries: int, usual_size: float) -> float:
    """Return the time of a search by bands.

    A set has the query's value of a hash function in common if it holds the one token of the query that gives the minimum, and if that is its own minimum
    too: for one in as many of the sets with that token as they have tokens. So the sets that are met are in proportion to the lengths of the query's lists
    here too.

    Parameters
    ----------
    permutations : int
        Hash functions, each with a table.
    n_sets : int
        Sets in a table.
    n_entries : int
        `QueryLists.n_entries` of one token: those of all lists.
    usual_size : float
        Tokens of a set: the harmonic mean.

    Examples
    --------
    >>> lists_seconds(1000, 10**4) < bands_seconds(1000, 256, 10**6, 10**7, 100.0) < lists_seconds(1000, 10**7)
    True
    """
    steps = permutations * math.log2(max(n_sets, 2))
    hits = permutations * n_entries / max(n_tokens, 1) / usual_size
    return BANDS_SEARCH + BANDS_STEP * steps + BANDS_HASH * permutations * n_tokens + BANDS_HIT * hits
