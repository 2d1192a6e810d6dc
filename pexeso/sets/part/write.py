"""Shards written: sets divided among them, then each built by the task that owns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.base import Filled, PartEstimate, Placed, estimated, read_rows
from pexeso.build.parts.sample import LakeSample, grown
from pexeso.options import BuildOptions
from pexeso.sets.containment import DOCUMENT, FEW_SETS, LISTS_ALONE, EnsembleOptions
from pexeso.sets.overlap.index import build_index, save_index
from pexeso.sets.part import SET_FIELDS, SETS, TOKEN_FIELDS, TOKEN_SETS_PART, TOKENS
from pexeso.sets.part.open import LABELS, POSITIONS, TABLES
from pexeso.store.arrays import write_arrays, write_texts
from pexeso.store.files import write_document
from pexeso.store.manifest import META

# Bytes that a (column, token) pair counts for when sets are divided: about twice what it takes on
# the disk, a third of what building takes.
DIVIDED_PAIR_BYTES = 64


def sizes(name: str, rows: pa.RecordBatch | None) -> tuple[int, int]:
    """Return the numbers of sets and of (column, token) pairs among some rows."""
    n_rows = 0 if rows is None else rows.num_rows
    return (n_rows, 0) if name == SETS else (0, n_rows)


def shards_needed(n_sets: int, n_pairs: int, options: BuildOptions) -> int:
    """Return how many shards take what there is, each of about `partition_bytes`."""
    # A signature, and in the tables a value and a set for each of its places.
    of_a_set = 8 * EnsembleOptions().permutations if "bands" in options.parts else 0
    return -(-(n_pairs * DIVIDED_PAIR_BYTES + n_sets * of_a_set) // options.partition_bytes)


def write_shard(placed: Placed, number: int, folder: Path, *, parts: tuple[str, ...]) -> Filled:
    """Build one shard from its prepared data (`placed`), and write its files.

    Returns the shard's facts and its files.

    The same sets give the same bytes, in whatever order rows come. Memory is some 130 bytes a
    (column, token) pair, and 6 KiB a set with bands.
    """
    sets = read_rows(placed, SETS, number, SET_FIELDS)
    sets = sets.sort_by([("table", "ascending"), ("label", "ascending")]).combine_chunks()
    tokens = read_rows(placed, TOKENS, number, TOKEN_FIELDS)
    numbers, values = _numbers_of_sets(sets, tokens), [tokens["value"]]
    del tokens  # most of the memory of the task
    index = build_index(numbers, values.pop())
    facts = {
        "sets": index.n_sets,
        "pairs": len(index.list_sets),
        "tokens": index.n_tokens,
        "parts": list(parts),
    }
    files = [
        *save_index(index, folder),
        *write_arrays(folder, {POSITIONS: sets["position"].to_numpy()}),
    ]
    files += [
        write_texts(folder / TABLES, sets["table"]),
        write_texts(folder / LABELS, sets["label"]),
    ]
    if "bands" in parts:
        from pexeso.sets.containment.ensemble import ensemble_over, write_ensemble

        files += write_ensemble(ensemble_over(index), folder)
    elif "containment" in parts:
        files.append(write_document(folder / DOCUMENT, {"version": LISTS_ALONE}))
    return facts, [*files, write_document(folder / META, facts)]


def _numbers_of_sets(sets: pa.Table, tokens: pa.Table) -> np.ndarray:
    """Return the number of the set that each token stands in, int64."""
    tables = pc.unique(sets["table"])
    keys, token_keys = (_keys(rows, tables) for rows in (sets, tokens))
    order = np.argsort(keys)
    return order[np.searchsorted(keys, token_keys, sorter=order)]


def _keys(rows: pa.Table, tables: pa.Array) -> np.ndarray:
    """Make one integer of the table and the position of each row."""
    table = pc.index_in(rows["table"], value_set=tables).to_numpy().astype(np.int64)
    return (table << 32) | rows["position"].to_numpy().astype(np.int64)


# The estimate is counted on a sample of the lake's files: sets and the letters of their names are
# scaled by the number of files, (column, token) pairs by bytes, distinct tokens by Heaps' law.

PAIR_BYTES = 16  # On the disk: a set in a posting list with its place, and a token in a set

# Beside the letters of a distinct token: where these end, its number, its group, and where its list
# begins.
TOKEN_BYTES = 20

# Beside the letters of a set's table and column: where these end, its id, its position, and where
# its tokens begin.
SET_BYTES = 24

# A signature of 16-bit numbers, in the tables a value and a set for each of them, and the set's id
# and size.
SIGNED_SET_BYTES = 6 * EnsembleOptions().permutations + 16

# Of sets in shards that hold more than `FEW_SETS`: 32 bits name a set there.
MORE_IN_LARGE_SHARDS = 2 * EnsembleOptions().permutations


MEMORY_OF_PAIR, MEMORY_OF_SIGNED_SET = 130, 6 << 10  # Bytes of memory while a shard is built

# What each stage takes for the smallest lake.
FIXED_SECONDS: Mapping[str, float] = {"divide": 0.1, "tokens": 0.1}

# What each (column, token) pair costs: passing it on, laying it out for its shard, and the lists;
# seconds of one core.
SECONDS_PER_PAIR: Mapping[str, float] = {"read": 2e-6, "divide": 0.6e-6, "tokens": 1e-6}

# What two more kinds of records cost the reading stage, however few there are.
SECONDS_IN_READ = 0.1

# What bands add to ``tokens``: loading its loops, hashing each pair, and putting each set into the
# tables; seconds of one core.
SIGNING_SECONDS, SECONDS_PER_SIGNED_PAIR, SECONDS_PER_SIGNED_SET = 0.1, 0.15e-6, 20e-6


@dataclass(frozen=True)
class TokenSetsEstimate:
    parts: tuple[str, ...] = ()
    columns: int = 0
    tokens: int = 0
    pairs: int = 0
    shards: int = 0
    bytes: int = 0  # On the disk


NO_SETS = TokenSetsEstimate()  # What an index without token sets holds of them


def estimate(sample: LakeSample) -> PartEstimate:
    parts = TOKEN_SETS_PART.own_choices(sample.options)
    if not parts:
        return estimated("equal_text", NO_SETS)
    sets, sampled = pa.concat_tables(sample.rows("set")), sample.values("token")
    columns, pairs = round(len(sets) * sample.scale), sample.lake_pairs("token")
    tokens, growth = grown(sampled, pairs)
    shards = shards_needed(columns, pairs, sample.options)
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
    counted = TokenSetsEstimate(parts, columns, tokens, pairs, shards, n_bytes)
    seconds = {
        stage: sample.factor * more for stage, more in shard_seconds(counted, sample.cores).items()
    }
    return estimated("equal_text", counted, n_bytes, shard_memory(counted), seconds)


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

    Shards are taken to hold equally many pairs. With an exponent of 1 no token is in two shards,
    with one of 0 each shard has all.
    """
    return round(tokens * max(1, shards) ** (1.0 - growth))
