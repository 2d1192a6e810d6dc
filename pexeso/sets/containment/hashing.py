"""Tokens as 64-bit numbers, the distinct ones of each set in order, and MinHash signatures of sets.

The hash is xxHash64 (Y. Collet, "xxHash fast digest algorithm", specification 0.1.1) with seed 42,
over UTF-8 bytes: what Spark's function `xxhash64` gives for a string, so that tokens hashed there
and here are the same numbers.

A signature holds the minima of m hash functions over a set's tokens (Broder, "On the resemblance
and containment of documents", SEQUENCES 1997). The k-th function is ``mix(token XOR seed_k)``, with
the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014) over a token's 64-bit hash; its
upper 32 bits are kept. Two signatures agree at a position with the probability of the Jaccard
similarity of their sets; functions that are linear in the hash, as permutations ``a h + b`` are, do
not quite have that. Two different tokens share a minimum by chance once in 2**32: nothing to sets
below 10**7 tokens.

An index keeps 16 bits of each minimum, mixed of all 32 (`shortened`): half the bytes. Different
minima then agree once in 2**16. Equal ones still do, so that no set is missed that would be found;
the others that are met are counted like every candidate, and dropped.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pexeso.engine.lists import offsets_of, ranges
from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.compiled import compiled
from pexeso.runtime.ranges import mixed

loops = compiled("pexeso.sets.loops")

SEED = 42


def hash_tokens(tokens: pa.Array) -> np.ndarray:
    """Hash Arrow texts without nulls to 64 bits, the same on every machine: uint64 (n,).

    Two of 10**9 tokens fall together with probability 0.03; two given ones with 2**-64.
    """
    return hash_bytes(tokens.cast(pa.large_string()), SEED)


def hash_bytes(values: pa.Array, seed: int) -> np.ndarray:
    """Hash an Arrow large_string or large_binary by xxHash64 with some seed: uint64 (n,).

    What a null is hashed to means nothing.
    """
    hashes = np.empty(len(values), np.uint64)
    loops.hash_texts(*string_buffers(values), seed, hashes)
    return hashes


def distinct_sorted(hashes: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort the tokens of each set and keep one of each: uint64 (d,), and offsets int64 (s + 1,)."""
    tokens, ends = np.array(hashes), np.zeros(len(offsets), np.int64)
    loops.sort_distinct(tokens, offsets, ends)
    return tokens[: ends[-1]].copy() if ends[-1] < len(tokens) else tokens, ends


def gathered(
    hashes: np.ndarray, offsets: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return some of the sets of a ragged list, in the order of `rows`, and their offsets."""
    sizes = np.diff(offsets)[rows]
    return hashes[ranges(offsets[rows], sizes)], offsets_of(sizes)


SHORT_BITS = 16

EMPTY = np.uint32(0xFFFFFFFF)  # What the signature of a set without tokens holds throughout

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint32(0x9E3779B1)
_CHUNK_ROWS = 1 << 14


def seeds_of(permutations: int, seed: int) -> np.ndarray:
    """Return the seeds of the hash functions: the numbers that splitmix64 draws.

    Those of fewer functions are a beginning of those of more.
    """
    numbers = np.uint64(seed) + np.arange(1, permutations + 1, dtype=np.uint64) * _GOLDEN
    return mixed(numbers)


def signatures(hashes: np.ndarray, offsets: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Make the signatures of sets: uint32 (s, m), in O(tokens * m) time.

    Set i is ``hashes[offsets[i]:offsets[i + 1]]``.
    """
    signature_rows = np.full((max(len(offsets) - 1, 0), len(seeds)), EMPTY, np.uint32)
    loops.add_minima(signature_rows, hashes, offsets, seeds)
    return signature_rows


def shortened(minima: np.ndarray) -> np.ndarray:
    """Return 16 bits of each minimum, uint16: the upper half of its product with an odd number.

    The lower half of a minimum itself would not do: those of large sets are small numbers.
    """
    return (minima * _SPREAD >> np.uint32(SHORT_BITS)).astype(np.uint16)


def similarities(stored: np.ndarray, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Estimate Jaccard similarities: the share of positions at which signatures agree.

    The standard error is ``sqrt(s * (1 - s) / m)``.
    """
    shares = np.empty(len(rows), np.float64)
    for begin in range(0, len(rows), _CHUNK_ROWS):
        part = slice(begin, begin + _CHUNK_ROWS)
        shares[part] = np.count_nonzero(stored[rows[part]] == query, axis=1) / len(query)
    return shares
