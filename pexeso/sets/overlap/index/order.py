"""The order of tokens that all sets and queries share, and the tokens that stand in the same sets.

Rare tokens come first: a query then has few candidates before it can stop, and equal posting lists,
which have equal frequencies, can stand side by side (thesis, chapter 3). Any order gives the same
answers; this one gives them sooner.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pexeso.runtime.mixing import mixed

MAX_GROUPED = 1 << 20
"""Tokens in more sets than this are not compared with others: a value in a million columns hardly
ever has a twin, and its list is long."""


def hash_lists(offsets: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each list of a CSR: int64 (n,).

    Sums of mixed members (splitmix64), so that parts of a list can be summed anywhere and in any
    order.

    Parameters
    ----------
    offsets : int64 (n + 1,)
    members : integers (offsets[-1],)
        Distinct within a list.
    """
    hashes = mixed(members.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return (sums[offsets[1:]] - sums[offsets[:-1]]).view(np.int64)


def global_order(
    offsets: np.ndarray,
    members: np.ndarray,
    *,
    max_grouped: int = MAX_GROUPED,
    hashes: Callable[[np.ndarray, np.ndarray], np.ndarray] = hash_lists,
) -> np.ndarray:
    """Order tokens by frequency, hash of the list, the list itself, then input order.

    Parameters
    ----------
    offsets : int64 (n + 1,)
    members : integers (offsets[-1],)
        The sets of each token, ascending; tokens in the order of their texts.

    Returns
    -------
    int64 (n,)
        The tokens, rarest first.

    Notes
    -----
    Lists are compared only where frequency and hash are equal, neighbour with neighbour; they are
    sorted only where two of them then differ.
    """
    frequency = np.diff(offsets)
    hashed = np.where(frequency <= max_grouped, hashes(offsets, members), 0)
    order = np.lexsort((hashed, frequency))
    keys = frequency[order], hashed[order]
    same_key = np.zeros(len(order), bool)
    same_key[1:] = (
        (keys[0][1:] == keys[0][:-1]) & (keys[1][1:] == keys[1][:-1]) & (keys[0][1:] <= max_grouped)
    )
    collided = same_key & ~like_the_one_before(offsets, members, order, same_key)
    runs = np.cumsum(~same_key) - 1
    for run in np.unique(runs[collided]):
        rows = np.arange(*np.searchsorted(runs, [run, run + 1]))
        lists = np.stack([members[offsets[token] : offsets[token + 1]] for token in order[rows]])
        _, rank = np.unique(lists, axis=0, return_inverse=True)
        order[rows] = order[rows][np.argsort(rank.reshape(-1), kind="stable")]
    return order


def duplicate_groups(
    offsets: np.ndarray, members: np.ndarray, *, max_grouped: int = MAX_GROUPED
) -> np.ndarray:
    """Return the duplicate group number of each token.

    A group is a run of neighbouring tokens whose posting lists hold the same sets.

    Parameters
    ----------
    offsets : int64 (n + 1,)
    members : integers (offsets[-1],)
        The sets of each token, ascending; tokens in the global order.

    Returns
    -------
    int64 (n,)
        Ascending from 0; a step where the list differs from that of the token before.
    """
    frequency = np.diff(offsets)
    maybe = np.zeros(len(frequency), bool)
    maybe[1:] = (frequency[1:] == frequency[:-1]) & (frequency[1:] <= max_grouped)
    same = like_the_one_before(offsets, members, np.arange(len(frequency)), maybe)
    return np.cumsum(~same) - 1


def like_the_one_before(
    offsets: np.ndarray, members: np.ndarray, order: np.ndarray, positions: np.ndarray
) -> np.ndarray:
    """Return at which of `positions` a token of `order` has the list of the token before.

    Both lists must be equally long there.
    """
    same = positions.copy()
    rows = np.flatnonzero(positions)
    tokens, before = order[rows], order[rows - 1]
    lengths = offsets[tokens + 1] - offsets[tokens]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    inner = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    differs = (
        members[np.repeat(offsets[tokens], lengths) + inner]
        != members[np.repeat(offsets[before], lengths) + inner]
    )
    n_different = np.concatenate([[0], np.cumsum(differs)])
    same[rows] = n_different[starts[1:]] == n_different[starts[:-1]]
    return same
