"""A power-law lake of any size for the benchmark of overlap search.

Its columns, values and overlaps follow power laws.
"""

from __future__ import annotations

import numpy as np

SMALLEST = 3
SIZES, POPULARITY = 0.9, 0.7
PRIVATE, SHARING = 0.3, 0.5
MOST_POPULAR, N_TOKENS = 50, 10**8
_FIRST, _LARGEST_GENERATION = 64, 1 << 16
_OWN, _TOKEN_BITS = 1 << 40, 42


def power_law_lake(
    n_sets: int, *, largest: int = 3000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Draw sets of token numbers.

    Sizes are `SMALLEST` times a Pareto variable of shape `SIZES`, at most `largest`; the popularity
    of tokens is a Pareto law of shape `POPULARITY`. A share `PRIVATE` of each set are tokens that
    no other set draws, and a share `SHARING` of the sets begin with a random part of a set before
    them.

    Returns
    -------
    offsets : int64 (n_sets + 1,)
    tokens : int64 (offsets[-1],)
        Those of set s are ``tokens[offsets[s]:offsets[s + 1]]``, each once, in random order.

    Notes
    -----
    Sets are drawn in generations that double, up to 65,536 at a time; each takes its parts from
    those before. Some 30 tokens a set.

    Examples
    --------
    >>> offsets, tokens = power_law_lake(1000)
    >>> len(offsets), bool(np.diff(offsets).max() <= 3000)
    (1001, True)
    """
    rng = np.random.default_rng(seed)
    offsets, tokens = np.zeros(1, np.int64), np.empty(1 << 16, np.int64)
    while len(offsets) <= n_sets:
        n_before, end = len(offsets) - 1, int(offsets[-1])
        n_new = min(max(_FIRST, n_before), _LARGEST_GENERATION, n_sets - n_before)
        sizes = np.minimum(SMALLEST * (1 + rng.pareto(SIZES, n_new)), largest).astype(np.int64)
        lengths, drawn = _generation(rng, sizes, offsets, tokens)
        if end + len(drawn) > len(tokens):
            tokens = np.concatenate([tokens[:end], np.empty(max(len(drawn), end), np.int64)])
        tokens[end : end + len(drawn)] = drawn
        offsets = np.concatenate([offsets, end + np.cumsum(lengths)])
    return offsets, tokens[: offsets[-1]]


def _generation(
    rng: np.random.Generator, sizes: np.ndarray, offsets: np.ndarray, tokens: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Draw one generation: the number of tokens of each set, and all of them."""
    n_new, n_before = len(sizes), len(offsets) - 1
    n_private = (PRIVATE * sizes).astype(np.int64)
    room = sizes - n_private
    owner = np.repeat(np.arange(n_new), 2 * sizes)
    popular = (MOST_POPULAR * rng.pareto(POPULARITY, len(owner))).astype(np.int64) % N_TOKENS
    n_part = np.zeros(n_new, np.int64)
    if n_before:
        other = rng.integers(0, n_before, n_new)
        size_of_other = offsets[other + 1] - offsets[other]
        n_part = np.minimum((rng.random(n_new) * (size_of_other + 1)).astype(np.int64), room)
        n_part[rng.random(n_new) >= SHARING] = 0
    part = tokens[_within(n_part) + np.repeat(offsets[other], n_part)] if n_before else tokens[:0]
    # Private tokens and parts come first, and are kept; of popular ones as many as there is room
    # for.
    private = _OWN + int(offsets[-1]) + np.arange(n_private.sum())
    owners = np.concatenate(
        [np.repeat(np.arange(n_new), n_private), np.repeat(np.arange(n_new), n_part), owner]
    )
    drawn = np.concatenate([private, part, popular])
    _, first = np.unique(owners << _TOKEN_BITS | drawn, return_index=True)
    first.sort()
    first = first[np.argsort(owners[first], kind="stable")]
    owners, drawn = owners[first], drawn[first]
    lengths = np.bincount(owners, minlength=n_new)
    mask = _within(lengths) < sizes[owners]
    owners, drawn = owners[mask], drawn[mask]
    mixed = np.lexsort((rng.random(len(drawn)), owners))
    return np.bincount(owners, minlength=n_new), drawn[mixed]


def _within(lengths: np.ndarray) -> np.ndarray:
    """Count from 0 within each of runs of these lengths."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
