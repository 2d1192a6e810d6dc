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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.joins.measures import encoded, in_one_piece, paired_codes, plain_column
from pexeso.lake.tokens import tokens_of
from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.compiled import compiled

loops = compiled("pexeso.acquisition.loops")

SEPARATOR = "\x1f"  # Stands between the parts of a hashed text


def hash_positions(
    table: pa.Table | pa.RecordBatch, names: Sequence[str], *, seed: int = 0
) -> np.ndarray:
    """Return the position of the join key of each row, from 0 to below 1; NaN without a key.

    Each distinct key is hashed once. Memory: the tokens of the columns, 40 bytes a row, and the
    text of each distinct key. It can be used in a Spark task as it is.
    """
    names = sorted(names)
    tokens, codes = zip(*_coded_tokens(table, names), strict=True)
    if len(names) == 1:
        distinct, inverse = list(tokens), codes[0]
    else:
        joint = reduce(paired_codes, codes)
        _, rows, inverse = np.unique(joint, return_index=True, return_inverse=True)
        pairs = zip(tokens, codes, strict=True)
        distinct = [column.take(pa.array(numbers[rows])) for column, numbers in pairs]
    prefix = pa.scalar(SEPARATOR.join([str(int(seed)), *names]), pa.large_string())
    separator = pa.scalar(SEPARATOR, pa.large_string())
    texts = pc.binary_join_element_wise(prefix, *distinct, separator)  # null where a cell is null
    positions = md5_52(texts.fill_null("")) / 16.0**13
    positions[texts.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return positions[inverse]


def with_key_tokens(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return a table with the columns of a join as tokens, so that equal keys are equal values."""
    for name, (tokens, codes) in zip(names, _coded_tokens(table, names), strict=True):
        at = table.column_names.index(name)
        table = table.set_column(at, name, tokens.take(pa.array(codes)))
    return table


def _coded_tokens(
    table: pa.Table | pa.RecordBatch, names: Sequence[str]
) -> list[tuple[pa.LargeStringArray, np.ndarray]]:
    """Return for each column the tokens of its distinct values, and the number of each row's."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    # Each distinct value once, of its own type, which decides on its text
    columns = [encoded(in_one_piece(plain_column(table, name)), name) for name in names]
    return [
        (tokens_of(column.dictionary), column.indices.to_numpy().astype(np.int64))
        for column in columns
    ]


def md5_52(texts: pa.LargeStringArray) -> np.ndarray:
    """Return the first 13 hexadecimal digits of the MD5 digests of texts as numbers."""
    return loops.md5_digits(*string_buffers(texts))


SMALL_DOMAIN = 1000  # Most distinct keys of a side of an edge that is not thinned


@dataclass(frozen=True)
class KeyTest:
    """The test of one edge: rows with keys at positions up to the rate pass."""

    names: tuple[str, ...]
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(sorted(self.names)))
