"""Rewrite of shards that updates have left small or full of deleted sets.

New shards are written from the content of the old ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pexeso.build.parts.base import Written
from pexeso.build.parts.copied import folders_fit, rows_of_folders
from pexeso.build.parts.deletion import with_deleted, worn_shards
from pexeso.sets.part.open import Shard, open_shard, shard_entries
from pexeso.sets.part.write import (
    SETS,
    TOKENS,
    divide_and_write,
    own_choices,
    shards_needed,
)
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry
from pexeso.store.texts import take_texts

if TYPE_CHECKING:
    from pexeso.build.job import BuildJob
    from pexeso.options import BuildOptions

Batches = Iterator[pa.RecordBatch]

SETS_SCHEMA = pa.schema([("table", pa.string()), ("position", pa.int32()), ("label", pa.string())])
TOKENS_SCHEMA = pa.schema(
    [("table", pa.string()), ("position", pa.int32()), ("value", pa.string())]
)
ROWS_PER_BATCH = 1 << 14


def delete(store: Store, tables: pa.Array) -> list[FolderEntry]:
    """Return the entries of all shards with the sets of some tables deleted.

    Reads the names of the tables in each shard, in O(tables log sets).
    """
    deletions = (
        (entry, open_shard(store, entry).names.rows_of_tables(tables))
        for entry in shard_entries(store)
    )
    return with_deleted(deletions, "sets")


def worn(store: Store, options: BuildOptions) -> list[int]:
    """Choose the shards that a compaction rewrites."""
    return worn_shards(shard_entries(store), "sets", options.partition_bytes)


def rewrite(job: BuildJob, numbers: Sequence[int]) -> Written:
    """Divide the sets that hold of some shards anew."""
    if not numbers:
        return Written([])
    entries = [shard_entries(job.index)[number] for number in numbers]
    # With the deleted ones, so at least as many as are needed.
    sizes = (sum(entry.facts[name] for entry in entries) for name in ("sets", "pairs"))
    n_shards = shards_needed(*sizes, own_choices(job.options), job.options.partition_bytes)
    read = rows_of_folders if n_shards == 1 and folders_fit(entries) else job.read_folders
    rows = {
        kind: read(numbers, partial(read_shards, store=job.index, kind=kind), schema)
        for kind, schema in ((SETS, SETS_SCHEMA), (TOKENS, TOKENS_SCHEMA))
    }
    return Written(divide_and_write(job, rows))


def read_shards(batches: Batches, *, store: Store, kind: str) -> Batches:
    """Read what holds of the shards whose numbers come in.

    That is `SETS` (of `SETS_SCHEMA`) or `TOKENS` (of `TOKENS_SCHEMA`).
    """
    read = _stored_sets if kind == SETS else _stored_tokens
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from read(open_shard(store, shard_entries(store)[number]))


def _stored_sets(shard: Shard) -> Batches:
    numbers = np.setdiff1d(np.arange(shard.overlap.n_sets), shard.deleted)
    for start in range(0, len(numbers), ROWS_PER_BATCH):
        some = numbers[start : start + ROWS_PER_BATCH]
        yield _batch(shard, some, take_texts(shard.names.labels, some), SETS_SCHEMA)


def _stored_tokens(shard: Shard) -> Batches:
    index = shard.overlap
    place_of = np.empty(index.n_tokens, np.int64)
    place_of[index.dictionary.numbers] = np.arange(index.n_tokens)
    deleted = np.zeros(index.n_sets, bool)
    deleted[shard.deleted] = True
    for start in range(0, len(index.set_tokens), ROWS_PER_BATCH):
        rows = np.arange(start, min(start + ROWS_PER_BATCH, len(index.set_tokens)))
        numbers = np.searchsorted(index.set_offsets, rows, side="right") - 1
        rows, numbers = rows[~deleted[numbers]], numbers[~deleted[numbers]]
        texts = take_texts(index.dictionary.texts, place_of[index.set_tokens[rows]])
        yield _batch(shard, numbers, texts, TOKENS_SCHEMA)


def _batch(shard: Shard, numbers: np.ndarray, texts: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [take_texts(shard.names.tables, numbers), pa.array(shard.positions[numbers]), texts]
    return pa.RecordBatch.from_arrays(
        [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)], schema=schema
    )
