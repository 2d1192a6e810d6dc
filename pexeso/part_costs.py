"""What parts for equal text will hold and cost: counted on a sample of the lake's files, as `pexeso.estimate` does for the rest.

Sets and the letters of their names are scaled by the number of files, (column, token) pairs by bytes, distinct tokens by Heaps' law, which the caller fits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.containment.options import EnsembleOptions

PAIR_BYTES = 16
"""On the disk: a set in a posting list with its place, and a token in a set."""

TOKEN_BYTES = 28
"""Beside the letters of a distinct token: where these end, its number, its group, and where its list begins."""

SET_BYTES = 28
"""Beside the letters of a set's table and column: where these end, its id, its position, and where its tokens begin."""

SIGNED_SET_BYTES = 12 * EnsembleOptions().permutations + 16
"""A signature of 32-bit numbers, in the tables a value and a set for each of them, and the set's id and size."""


MEMORY_OF_PAIR, MEMORY_OF_SIGNED_SET = 200, 6 << 10
"""Bytes of memory while a shard is built."""


@dataclass
class TokenSample:
    """What the files read so far have as sets of tokens.

    Attributes
    ----------
    columns : int
    name_bytes : int
        Of tables and columns, for each column once.
    pairs : Counter
        (column, token) pairs by the format of their file.
    tokens : list of pa.StringArray
        For each file the tokens of all its columns, one column after the other.
    """

    columns: int = 0
    name_bytes: int = 0
    pairs: Counter[str] = field(default_factory=Counter)
    tokens: list[pa.Array] = field(default_factory=list)

    @property
    def n_pairs(self) -> int:
        """(column, token) pairs in all."""
        return sum(self.pairs.values())

    def add(self, kept: pa.Table, format_name: str) -> None:
        """Count the sets and tokens among the records of a file.

        Parameters
        ----------
        kept
            Of `pexeso.lake.record_schema.SCHEMA`, without what is left out.
        format_name
            Of the file.
        """
        kinds = kept["record"]
        sets = kept.filter(pc.equal(kinds, "set"))
        tokens = kept.filter(pc.equal(kinds, "token"))["value"].combine_chunks()
        self.columns += len(sets)
        self.name_bytes += sum(pc.sum(pc.binary_length(sets[name])).as_py() or 0 for name in ("table", "label"))
        self.pairs[format_name] += len(tokens)
        self.tokens.append(tokens)

    def token_bytes(self) -> float:
        """Give the mean bytes of a distinct token; 0 where there is none."""
        distinct = pc.unique(pa.chunked_array(self.tokens, pa.string()))
        return (pc.sum(pc.binary_length(distinct)).as_py() or 0) / max(1, len(distinct))


@dataclass(frozen=True)
class PartsEstimate:
    """What the parts for equal text of an index will hold.

    Attributes
    ----------
    parts : tuple of str
        Of `pexeso.options.PARTS`; empty where none were asked for, and then all is 0.
    columns, tokens, pairs : int
        Columns as sets, distinct tokens of the lake, and (column, token) pairs.
    shards : int
    bytes : int
        On the disk.
    """

    parts: tuple[str, ...] = ()
    columns: int = 0
    tokens: int = 0
    pairs: int = 0
    shards: int = 0
    bytes: int = 0


NO_PARTS = PartsEstimate()
"""What an index without parts for equal text holds of them."""


def parts_bytes(
    parts: tuple[str, ...], *, columns: int, pairs: int, tokens_written: int, token_bytes: float, name_bytes: float
) -> int:
    """Give the bytes of the shards of an index on the disk.

    Parameters
    ----------
    parts
        Of `pexeso.options.PARTS`.
    columns, pairs
        Columns as sets, and (column, token) pairs.
    tokens_written
        Distinct tokens of each shard, of all shards together: a token that stands in two is written twice.
    token_bytes, name_bytes
        Mean letters of a token, and of the names of a column and its table.

    Examples
    --------
    >>> parts_bytes(("overlap",), columns=1, pairs=10, tokens_written=10, token_bytes=6.0, name_bytes=12.0)
    540
    """
    each_set = SET_BYTES + name_bytes + (SIGNED_SET_BYTES if "containment" in parts else 0)
    return round(PAIR_BYTES * pairs + (TOKEN_BYTES + token_bytes) * tokens_written + each_set * columns)


def shard_memory(found: PartsEstimate) -> int:
    """Give the bytes of memory of a task that builds a shard, as `pexeso.equal_text.building.write_shard` states them.

    Examples
    --------
    >>> shard_memory(PartsEstimate(("overlap",), columns=10, tokens=500, pairs=1000, shards=2))
    100000
    """
    signed = MEMORY_OF_SIGNED_SET * found.columns if "containment" in found.parts else 0
    return (MEMORY_OF_PAIR * found.pairs + signed) // max(1, found.shards)


def tokens_of_shards(tokens: int, shards: int, growth: float) -> int:
    """Give the distinct tokens of each shard, summed over shards of equally many pairs, by Heaps' law.

    Parameters
    ----------
    tokens, shards
    growth
        The exponent of the law, in [0, 1]: at 1 no token stands twice, at 0 each shard has all.

    Examples
    --------
    >>> tokens_of_shards(1000, 4, 1.0), tokens_of_shards(1000, 4, 0.0), tokens_of_shards(1000, 4, 0.5)
    (1000, 4000, 2000)
    """
    return round(tokens * max(1, shards) ** (1.0 - growth))
