r"""Positions of join keys in [0, 1), the same in all tables: the hash of correlated samples.

The paper keeps a row t of a sample if h(t[J]) <= p, with h uniform on [0, 1] and the same for all
tables, and leaves h open. Here the position of a key is

    int(md5(text)[0:13], 16) / 16**13,

52 bits, where ``text`` is UTF-8 and holds, each separated from the next by the byte 0x1f,

1. the seed in decimal digits, ``"7"``;
2. the names of the columns J, sorted by their code points;
3. the values of these columns, in the same order, as tokens (`pexeso.lake.tokens`): 1, 1.0 and "1"
   are one key in tables that spell it differently.

So the key (a="x", b=2) with the seed 7 has the text ``7\x1fa\x1fb\x1fx\x1f2``. Spark SQL gives the
same of columns that hold tokens, without a pass through Python::

    conv(substr(md5(concat_ws(char(31), '7', 'a', 'b', a, b)), 1, 13), 16, 10) / pow(16, 13)

A key with a missing cell has no position: it joins nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.joins.measures.codes import encoded, in_one_piece, paired_codes, plain_column
from pexeso.lake.tokens import tokens_of
from pexeso.runtime.jit import loop

SEPARATOR = "\x1f"
"""Stands between the parts of a hashed text."""


def hash_positions(
    table: pa.Table | pa.RecordBatch, names: Sequence[str], *, seed: int = 0
) -> np.ndarray:
    """Return the position of the join key of each row.

    Each distinct key is hashed once. Memory: the tokens of the columns, 40 bytes a row, and the
    text of each distinct key. It can be used in a Spark task as it is.

    Returns
    -------
    numpy.ndarray of float64, shape (n,)
        From 0 to below 1, NaN where a cell of the key is missing.
    """
    names = sorted_names(names)
    tokens, codes = zip(*_coded_tokens(table, names), strict=True)
    if len(names) == 1:
        distinct, inverse = list(tokens), codes[0]
    else:
        joint = codes[0]
        for column in codes[1:]:
            joint = paired_codes(joint, column)
        _, rows, inverse = np.unique(joint, return_index=True, return_inverse=True)
        pairs = zip(tokens, codes, strict=True)
        distinct = [column.take(pa.array(numbers[rows])) for column, numbers in pairs]
    prefix = pa.scalar(SEPARATOR.join([str(int(seed)), *names]), pa.large_string())
    separator = pa.scalar(SEPARATOR, pa.large_string())
    texts = pc.binary_join_element_wise(prefix, *distinct, separator)  # null where a cell is null
    positions = md5_52(texts.fill_null("")) / 16.0**13
    positions[texts.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return positions[inverse]


def sorted_names(names: Sequence[str]) -> list[str]:
    """Return the columns of a join in the order in which they are hashed."""
    if isinstance(names, str) or not names or len(set(names)) < len(names):
        raise InputError(
            f"A join needs a list of one or more columns, each named once, got {names!r}."
        )
    return sorted(names)


def key_tokens(table: pa.Table | pa.RecordBatch, names: Sequence[str]) -> list[pa.LargeStringArray]:
    """Return the columns of a join as tokens, null where a cell is missing."""
    pairs = _coded_tokens(table, names)
    return [tokens.take(pa.array(codes)) for tokens, codes in pairs]


def with_key_tokens(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return a table with the columns of a join as tokens, so that equal keys are equal values."""
    for name, tokens in zip(names, key_tokens(table, names), strict=True):
        table = table.set_column(table.column_names.index(name), name, tokens)
    return table


def _coded_tokens(
    table: pa.Table | pa.RecordBatch, names: Sequence[str]
) -> list[tuple[pa.LargeStringArray, np.ndarray]]:
    """Return for each column the tokens of its distinct values, and the number of each row's."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    columns = [_encoded(table, name) for name in names]
    return [
        (tokens_of(column.dictionary), column.indices.to_numpy().astype(np.int64))
        for column in columns
    ]


def _encoded(table: pa.Table, name: str) -> pa.DictionaryArray:
    """Return a column with each distinct value once, of its own type, which decides on its text."""
    return encoded(in_one_piece(plain_column(table, name)), name)


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

    Returns
    -------
    numpy.ndarray of uint64, shape (n,)
        Below 2**52.
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


SMALL_DOMAIN = 1000
"""Most distinct keys of a side of an edge that is not thinned."""


@dataclass(frozen=True)
class KeyTest:
    """The test of one edge: rows with keys at positions up to the rate pass."""

    names: tuple[str, ...]
    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise InputError(f"The rate of a sample must be above 0 and up to 1, got {self.rate}.")
        object.__setattr__(self, "names", tuple(sorted_names(self.names)))
