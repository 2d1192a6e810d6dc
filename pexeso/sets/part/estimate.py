"""What token sets will hold and cost: counted on a sample of the lake's files.

Sets and the letters of their names are scaled by the number of files, (column, token) pairs by
bytes, distinct tokens by Heaps' law.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.base import PartEstimate
from pexeso.build.parts.estimation.sample import LakeSample, grown
from pexeso.sets.containment.options import FEW_SETS, EnsembleOptions
from pexeso.sets.part.write import own_choices, shards_needed

PAIR_BYTES = 16
"""On the disk: a set in a posting list with its place, and a token in a set."""

TOKEN_BYTES = 20
"""Beside the letters of a distinct token: where these end, its number, its group, and where its
list begins."""

SET_BYTES = 24
"""Beside the letters of a set's table and column: where these end, its id, its position, and where
its tokens begin."""

SIGNED_SET_BYTES = 6 * EnsembleOptions().permutations + 16
"""A signature of 16-bit numbers, in the tables a value and a set for each of them, and the set's id
and size."""

MORE_IN_LARGE_SHARDS = 2 * EnsembleOptions().permutations
"""Of sets in shards that hold more than `FEW_SETS`: 32 bits name a set there."""


MEMORY_OF_PAIR, MEMORY_OF_SIGNED_SET = 200, 6 << 10
"""Bytes of memory while a shard is built."""

FIXED_SECONDS: Mapping[str, float] = {"divide": 0.7, "tokens": 0.1}
"""What each stage takes for the smallest lake."""

SECONDS_PER_PAIR: Mapping[str, float] = {"read": 2e-6, "divide": 4.5e-6, "tokens": 1e-6}
"""What each (column, token) pair costs: passing it on, laying it out for its shard, and the lists;
seconds of one core."""

SECONDS_IN_READ = 0.5
"""What two more kinds of records cost the reading stage, however few there are."""

SIGNING_SECONDS, SECONDS_PER_SIGNED_PAIR, SECONDS_PER_SIGNED_SET = 0.1, 0.15e-6, 20e-6
"""What bands add to ``tokens``: loading its loops, hashing each pair, and putting each set
into the tables; seconds of one core."""


@dataclass(frozen=True)
class TokenSetsEstimate:
    """What the token sets of an index will hold.

    Attributes
    ----------
    bytes : int
        On the disk.
    """

    parts: tuple[str, ...] = ()
    columns: int = 0
    tokens: int = 0
    pairs: int = 0
    shards: int = 0
    bytes: int = 0


NO_SETS = TokenSetsEstimate()
"""What an index without token sets holds of them."""


def estimate(sample: LakeSample) -> PartEstimate:
    """Return what the shards of a lake take; nothing where they are not asked for."""
    parts = own_choices(sample.options)
    if not parts:
        return PartEstimate({"equal_text": asdict(NO_SETS)}, n_bytes=0, memory_bytes=0, seconds={})
    sets, sampled = pa.concat_tables(sample.rows("set")), sample.values("token")
    columns, pairs = round(len(sets) * sample.scale), sample.lake_pairs("token")
    tokens, growth = grown(sampled, pairs)
    shards = shards_needed(columns, pairs, parts, sample.options.partition_bytes)
    name_bytes = sum(
        pc.sum(pc.binary_length(sets[name])).as_py() or 0 for name in ("table", "label")
    )
    distinct = pc.unique(pa.chunked_array(sampled, pa.string()))
    n_bytes = parts_bytes(
        parts,
        columns=columns,
        pairs=pairs,
        tokens_written=tokens_of_shards(tokens, shards, growth),
        token_bytes=(pc.sum(pc.binary_length(distinct)).as_py() or 0) / max(1, len(distinct)),
        name_bytes=name_bytes / max(1, len(sets)),
        shards=shards,
    )
    sizes = TokenSetsEstimate(parts, columns, tokens, pairs, shards, n_bytes)
    seconds = {
        stage: sample.factor * more for stage, more in shard_seconds(sizes, sample.cores).items()
    }
    seconds = sample.seconds_of(seconds, FIXED_SECONDS)
    return PartEstimate({"equal_text": asdict(sizes)}, n_bytes, shard_memory(sizes), seconds)


def shard_seconds(sizes: TokenSetsEstimate, cores: int) -> dict[str, float]:
    """Return the seconds of the stages, and what is added to the reading stage.

    A shard is built by one core.
    """
    parallel = {"tokens": max(1, min(cores, sizes.shards))}
    seconds = {
        stage: rate * sizes.pairs / parallel.get(stage, cores)
        for stage, rate in SECONDS_PER_PAIR.items()
    }
    seconds["read"] += SECONDS_IN_READ
    for stage, fixed in FIXED_SECONDS.items():
        seconds[stage] += fixed
    if "bands" in sizes.parts:
        signing = SECONDS_PER_SIGNED_PAIR * sizes.pairs + SECONDS_PER_SIGNED_SET * sizes.columns
        seconds["tokens"] += SIGNING_SECONDS + signing / parallel["tokens"]
    return seconds


def parts_bytes(
    parts: tuple[str, ...],
    *,
    columns: int,
    pairs: int,
    tokens_written: int,
    token_bytes: float,
    name_bytes: float,
    shards: int = 1,
) -> int:
    """Return the bytes of the shards of an index on the disk."""
    each_set = SET_BYTES + name_bytes
    if "bands" in parts:
        is_large = columns > FEW_SETS * max(1, shards)
        each_set += SIGNED_SET_BYTES + (MORE_IN_LARGE_SHARDS if is_large else 0)
    return round(
        PAIR_BYTES * pairs + (TOKEN_BYTES + token_bytes) * tokens_written + each_set * columns
    )


def shard_memory(sizes: TokenSetsEstimate) -> int:
    """Return the memory in bytes of a task that builds a shard.

    The numbers are those of `pexeso.sets.part.write.write_shard`.
    """
    signed = MEMORY_OF_SIGNED_SET * sizes.columns if "bands" in sizes.parts else 0
    return (MEMORY_OF_PAIR * sizes.pairs + signed) // max(1, sizes.shards)


def tokens_of_shards(tokens: int, shards: int, growth: float) -> int:
    """Return the sum of the distinct tokens of each shard, by Heaps' law.

    Shards are taken to hold equally many pairs.

    Parameters
    ----------
    growth
        The exponent of the law, in [0, 1]: at 1 no token stands twice, at 0 each shard has all.
    """
    return round(tokens * max(1, shards) ** (1.0 - growth))
