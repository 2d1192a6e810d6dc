"""MinHash signatures: a set as the minima of m hash functions over its tokens.

Source: Broder, "On the resemblance and containment of documents", SEQUENCES 1997.

The k-th function is ``mix(token XOR seed_k)``, with the finaliser of splitmix64 (Steele, Lea and
Flood, OOPSLA 2014) over a token's 64-bit hash; its upper 32 bits are kept. Two signatures agree at
a place with the probability of the Jaccard similarity of their sets; functions that are linear in
the hash, as permutations ``a h + b`` are, do not quite have that. Two different tokens share a
minimum by chance once in 2**32: nothing to sets below 10**7 tokens.

An index keeps 16 bits of each minimum, mixed of all 32 (`shortened`): half the bytes. Different
minima then agree once in 2**16. Equal ones still do, so that no set is missed that would be found;
the others that are met are counted like every candidate, and dropped.
"""

from __future__ import annotations

import numpy as np

from pexeso.errors import InputError
from pexeso.runtime.jit import loop
from pexeso.runtime.mixing import mixed
from pexeso.sets.containment.hashing import require_ragged
from pexeso.sets.containment.options import MAX_PERMUTATIONS

EMPTY = np.uint32(0xFFFFFFFF)
"""What every place of the signature of a set without tokens holds: the neutral element of unions,
which are minima."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_C1, _C2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32 = (np.uint64(n) for n in (30, 27, 31, 32))
_SPREAD = np.uint32(0x9E3779B1)
_MAX_HASH = np.uint64(0xFFFFFFFFFFFFFFFF)
_ROWS_AT_ONCE = 1 << 14


def seeds_of(permutations: int, seed: int) -> np.ndarray:
    """Return the seeds of the hash functions: the numbers that splitmix64 draws.

    Those of fewer functions are a beginning of those of more.
    """
    if not 1 <= permutations <= MAX_PERMUTATIONS:
        raise InputError(
            f"A signature must have 1 to {MAX_PERMUTATIONS} hash functions. Got {permutations!r}."
        )
    if not 0 <= seed < 1 << 64:
        raise InputError(
            f"The seed of the hash functions must be from 0 to 2**64 - 1. Got {seed!r}."
        )
    numbers = np.uint64(seed) + np.arange(1, permutations + 1, dtype=np.uint64) * _GOLDEN
    return mixed(numbers)


def signatures(hashes: np.ndarray, offsets: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Make the signatures of sets.

    Time O(tokens * m); memory that of the result.

    Parameters
    ----------
    offsets : int64 (s + 1,)
        Set i is ``hashes[offsets[i]:offsets[i + 1]]``.

    Returns
    -------
    uint32 (s, m)
        `EMPTY` throughout for a set without tokens.

    Examples
    --------
    >>> one = signatures(np.array([5, 9], np.uint64), np.array([0, 2]), seeds_of(4, seed=1))
    >>> parts = signatures(np.array([5, 9], np.uint64), np.array([0, 1, 2]), seeds_of(4, seed=1))
    >>> bool((one[0] == np.minimum(parts[0], parts[1])).all())
    True
    """
    signature_rows = np.full((max(len(offsets) - 1, 0), len(seeds)), EMPTY, np.uint32)
    add_tokens(signature_rows, hashes, offsets, seeds)
    return signature_rows


def add_tokens(
    signature_rows: np.ndarray, hashes: np.ndarray, offsets: np.ndarray, seeds: np.ndarray
) -> None:
    """Add tokens to sets whose signatures are incomplete.

    So a set of any size can be passed in batches of any size.

    Parameters
    ----------
    signature_rows : uint32 (s, m)
        Changed in place; `EMPTY` throughout at the start.
    """
    require_ragged(hashes, offsets)
    _add(signature_rows, hashes, offsets, seeds)


SHORT_BITS = 16


def shortened(minima: np.ndarray) -> np.ndarray:
    """Return 16 bits of each minimum, uint16: the upper half of its product with an odd number.

    The lower half of a minimum itself would not do: those of large sets are small numbers.

    Parameters
    ----------
    minima : uint32, any shape

    Examples
    --------
    >>> shortened(np.array([7, 7, 8], np.uint32)).tolist()
    [21380, 21380, 61883]
    """
    return (minima * _SPREAD >> np.uint32(SHORT_BITS)).astype(np.uint16)


def similarities(stored: np.ndarray, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Estimate Jaccard similarities: the share of places at which signatures agree.

    The standard error is ``sqrt(s * (1 - s) / m)``.

    Parameters
    ----------
    stored : uint16 or uint32 (s, m)

    Returns
    -------
    float64 (c,)
        In [0, 1].
    """
    shares = np.empty(len(rows), np.float64)
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(begin, begin + _ROWS_AT_ONCE)
        shares[part] = np.count_nonzero(stored[rows[part]] == query, axis=1) / len(query)
    return shares


@loop
def _add(signature_rows, hashes, offsets, seeds):
    m = len(seeds)
    minima = np.empty(m, np.uint64)
    for row in range(len(offsets) - 1):
        minima[:] = _MAX_HASH
        for at in range(offsets[row], offsets[row + 1]):
            token = hashes[at]
            for k in range(m):
                number = token ^ seeds[k]
                number = (number ^ (number >> _30)) * _C1
                number = (number ^ (number >> _27)) * _C2
                minima[k] = min(minima[k], number ^ (number >> _31))
        for k in range(m):
            signature_rows[row, k] = min(signature_rows[row, k], np.uint32(minima[k] >> _32))
