"""Tokens as 64-bit numbers, and the distinct ones of each set in order.

The hash is xxHash64 (Y. Collet, "xxHash fast digest algorithm", specification 0.1.1) with seed 42,
over UTF-8 bytes: what Spark's function `xxhash64` gives for a string, so that tokens hashed there
and here are the same numbers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError
from pexeso.runtime.jit import loop

SEED = 42

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
# Named, since numba makes a float of an uint64 and a plain number.
_BITS = tuple(np.uint64(n) for n in range(65))


def hash_tokens(tokens: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Hash tokens to 64 bits.

    Parameters
    ----------
    tokens : pyarrow array of length n, string or large_string, without nulls

    Returns
    -------
    uint64 (n,)
        The same on every machine. Two of 10**9 tokens fall together with probability 0.03; two
        given ones with 2**-64.

    Examples
    --------
    >>> [hex(number) for number in hash_tokens(pa.array(["abc"])).tolist()]
    ['0x13c1d910702770e6']
    """
    if not (pa.types.is_string(tokens.type) or pa.types.is_large_string(tokens.type)):
        raise InputError(
            f"Tokens must be an Arrow array of texts (string or large_string). Got {tokens.type}."
        )
    if tokens.null_count:
        raise InputError(
            f"Tokens must not be null, but {tokens.null_count:,} of {len(tokens):,} are: leave "
            "them out."
        )
    if isinstance(tokens, pa.ChunkedArray):
        parts = [hash_tokens(chunk) for chunk in tokens.chunks]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)
    return hash_bytes(tokens.cast(pa.large_string()), SEED)


def hash_bytes(values: pa.Array, seed: int) -> np.ndarray:
    """Hash texts or bytes by xxHash64 with some seed.

    Parameters
    ----------
    values : pyarrow array of length n, large_string or large_binary
        What a null is hashed to means nothing.

    Returns
    -------
    uint64 (n,)
    """
    hashes = np.empty(len(values), np.uint64)
    if len(values):
        _, offsets, text = values.buffers()
        ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
        _hash_all(np.frombuffer(text or b"", np.uint8), ends, np.uint64(seed), hashes)
    return hashes


def distinct_sorted(hashes: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort the tokens of each set and keep one of each.

    Returns
    -------
    (uint64 (d,), int64 (s + 1,))
        Tokens and offsets, d at most n.

    Examples
    --------
    >>> distinct_sorted(np.array([7, 3, 7, 1], np.uint64), np.array([0, 3, 3, 4]))
    (array([3, 7, 1], dtype=uint64), array([0, 2, 2, 3]))
    """
    require_ragged(hashes, offsets)
    tokens, ends = np.array(hashes), np.zeros(len(offsets), np.int64)
    _sort_distinct(tokens, offsets, ends)
    return tokens[: ends[-1]].copy() if ends[-1] < len(tokens) else tokens, ends


def gathered(
    hashes: np.ndarray, offsets: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return some of the sets, in the order of `rows`; or runs of another ragged list.

    Returns
    -------
    (uint64 (d,), int64 (c + 1,))
        Tokens, of the type that they have, and offsets.

    Examples
    --------
    >>> gathered(np.array([3, 7, 1], np.uint64), np.array([0, 2, 2, 3]), np.array([2, 0]))
    (array([1, 3, 7], dtype=uint64), array([0, 1, 3]))
    """
    ends = np.concatenate([[0], np.cumsum(np.diff(offsets)[rows])]).astype(np.int64)
    tokens = np.empty(ends[-1], hashes.dtype)
    _copy_rows(hashes, offsets, rows, tokens)
    return tokens, ends


def as_hashes(tokens: pa.Array | pa.ChunkedArray | np.ndarray) -> np.ndarray:
    """Return the hashes of tokens: of texts, or hashes as they are.

    Parameters
    ----------
    tokens : Arrow texts or uint64 (n,)

    Returns
    -------
    uint64 (n,)
    """
    if isinstance(tokens, np.ndarray):
        if tokens.dtype != np.uint64 or tokens.ndim != 1:
            raise InputError(
                f"Hashed tokens must be an array uint64 with one axis. Got {tokens.dtype} of "
                f"shape {tokens.shape}."
            )
        return tokens
    if not isinstance(tokens, pa.Array | pa.ChunkedArray):
        raise InputError(
            "Tokens must be an Arrow array of texts or a NumPy array uint64 of hashes. Got "
            f"{type(tokens).__name__}."
        )
    return hash_tokens(tokens)


def require_ragged(hashes: np.ndarray, offsets: np.ndarray) -> None:
    """Refuse what is not a ragged list of hashes."""
    if not isinstance(hashes, np.ndarray) or hashes.dtype != np.uint64 or hashes.ndim != 1:
        kind = (
            f"{hashes.dtype} of shape {hashes.shape}"
            if isinstance(hashes, np.ndarray)
            else type(hashes).__name__
        )
        raise InputError(f"Hashed tokens must be a NumPy array uint64 with one axis. Got {kind}.")
    if (
        not isinstance(offsets, np.ndarray)
        or offsets.dtype != np.int64
        or offsets.ndim != 1
        or not len(offsets)
    ):
        kind = (
            f"{offsets.dtype} of shape {offsets.shape}"
            if isinstance(offsets, np.ndarray)
            else type(offsets).__name__
        )
        raise InputError(
            "Offsets of sets must be a NumPy array int64, one longer than there are sets. Got "
            f"{kind}."
        )
    if offsets[0] != 0 or offsets[-1] != len(hashes) or (np.diff(offsets) < 0).any():
        raise InputError(
            "Offsets of sets must begin with 0, never sink and end with the number of tokens, "
            f"{len(hashes):,}. "
            f"Got {int(offsets[0]):,} to {int(offsets[-1]):,}."
        )


@loop
def _sort_distinct(hashes, offsets, ends):
    n = 0
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        part = hashes[begin:end]
        for i in range(1, len(part)):
            if part[i] < part[i - 1]:  # most callers bring sets in order, which costs one look
                part.sort()
                break
        for i in range(len(part)):
            # What is written lies at or before what is read, so nothing unread is lost.
            if i == 0 or part[i] != hashes[n - 1]:
                hashes[n] = part[i]
                n += 1
        ends[row + 1] = n


@loop
def _copy_rows(hashes, offsets, rows, tokens):
    n = 0
    for row in rows:
        for at in range(offsets[row], offsets[row + 1]):
            tokens[n] = hashes[at]
            n += 1


@loop
def _left(number, bits):
    return (number << bits) | (number >> (_BITS[64] - bits))


@loop
def _round(lane, word):
    return _left(lane + word * _P2, _BITS[31]) * _P1


@loop
def _word(text, at, n_bytes):
    word = np.uint64(0)
    for i in range(n_bytes):
        word |= np.uint64(text[at + i]) << np.uint64(8 * i)
    return word


@loop
def _hash_all(text, ends, seed, hashes):
    for row in range(len(hashes)):
        at, end = ends[row], ends[row + 1]
        length = np.uint64(end - at)
        if end - at >= 32:
            one, two, three, four = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
            while at + 32 <= end:
                one = _round(one, _word(text, at, 8))
                two = _round(two, _word(text, at + 8, 8))
                three = _round(three, _word(text, at + 16, 8))
                four = _round(four, _word(text, at + 24, 8))
                at += 32
            state = (
                _left(one, _BITS[1])
                + _left(two, _BITS[7])
                + _left(three, _BITS[12])
                + _left(four, _BITS[18])
            )
            for lane in (one, two, three, four):
                state = (state ^ _round(np.uint64(0), lane)) * _P1 + _P4
        else:
            state = seed + _P5
        state += length
        while at + 8 <= end:
            state = _left(state ^ _round(np.uint64(0), _word(text, at, 8)), _BITS[27]) * _P1 + _P4
            at += 8
        if at + 4 <= end:
            state = _left(state ^ (_word(text, at, 4) * _P1), _BITS[23]) * _P2 + _P3
            at += 4
        while at < end:
            state = _left(state ^ (np.uint64(text[at]) * _P5), _BITS[11]) * _P1
            at += 1
        state = (state ^ (state >> _BITS[33])) * _P2
        state = (state ^ (state >> _BITS[29])) * _P3
        hashes[row] = state ^ (state >> _BITS[32])
