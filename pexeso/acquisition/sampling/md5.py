"""The first 52 bits of MD5 digests of many short texts at once.

R. Rivest, RFC 1321. The digest is no protection here but a hash that Spark, SQL engines and Python
all have, so that a seller can draw the same sample with any of them.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from pexeso.runtime.jit import loop

_WORD = 0xFFFFFFFF
_SINES = np.array([int(abs(math.sin(i + 1)) * 2**32) for i in range(64)], np.uint64)
_ROTATIONS = np.repeat(
    np.array([7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21], np.uint64).reshape(4, 4),
    4,
    axis=0,
).reshape(64)
_START = np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476], np.uint64)


def md5_52(texts: pa.LargeStringArray) -> np.ndarray:
    """Return the first 13 hexadecimal digits of the MD5 digests of texts as numbers.

    Parameters
    ----------
    texts : pyarrow.LargeStringArray of length n
        Hashed as UTF-8; none missing.

    Returns
    -------
    numpy.ndarray of uint64, shape (n,)
        Below 2**52.

    Examples
    --------
    >>> hex(md5_52(pa.array(["abc"], pa.large_string()))[0])
    '0x900150983cd24'
    """
    _, offsets, letters = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    empty = np.zeros(1, np.uint8)  # Arrow leaves out a buffer without letters
    return _digests(np.frombuffer(letters, np.uint8) if letters else empty, bounds, *_TABLES)


_TABLES = _SINES, _ROTATIONS, _START


@loop
def _digests(letters, bounds, sines, rotations, start):
    digests = np.empty(len(bounds) - 1, np.uint64)
    words = np.empty(16, np.uint64)
    state = np.empty(4, np.uint64)
    for i in range(len(digests)):
        first, size = bounds[i], bounds[i + 1] - bounds[i]
        state[:] = start
        # A byte 0x80 and the number of bits in 8 bytes follow the text, to whole blocks of 64.
        for block in range(0, size + 9, 64):
            words[:] = 0
            for j in range(block, min(block + 64, size + 1)):
                byte = np.uint64(letters[first + j]) if j < size else np.uint64(0x80)
                words[(j - block) >> 2] |= byte << np.uint64(8 * (j & 3))
            if block + 64 >= size + 9:
                words[14] = np.uint64(8 * size) & np.uint64(_WORD)
                words[15] = np.uint64(8 * size) >> np.uint64(32)
            _add_block(state, words, sines, rotations)
        # The digest is the state as bytes, the lowest first; 52 bits of it are 6.5 bytes.
        digits = np.uint64(0)
        for j in range(7):
            digits = digits << np.uint64(8) | state[j >> 2] >> np.uint64(8 * (j & 3)) & np.uint64(
                255
            )
        digests[i] = digits >> np.uint64(4)
    return digests


@loop
def _add_block(state, words, sines, rotations):
    word = np.uint64(_WORD)
    a, b, c, d = state
    for i in range(64):
        if i < 16:
            mixed, position = b & c | ~b & d, i
        elif i < 32:
            mixed, position = d & b | ~d & c, (5 * i + 1) & 15
        elif i < 48:
            mixed, position = b ^ c ^ d, (3 * i + 5) & 15
        else:
            mixed, position = c ^ (b | ~d), (7 * i) & 15
        total = (a + (mixed & word) + sines[i] + words[position]) & word
        turned = total << rotations[i] | total >> (np.uint64(32) - rotations[i])
        a, d, c, b = d, c, b, (b + turned) & word
    state[0] = (state[0] + a) & word
    state[1] = (state[1] + b) & word
    state[2] = (state[2] + c) & word
    state[3] = (state[3] + d) & word
