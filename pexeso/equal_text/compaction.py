"""Shards that updates have left small or full of deleted sets, written anew from what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pexeso.equal_text.layout import write_token_sets
from pexeso.equal_text.shards import Shard, deleted_sets, open_shard
from pexeso.source import spark_schema
from pexeso.store.manifest import FolderEntry
from pexeso.store.reader import Store
from pexeso.store.texts import take_texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pexeso.steps import Steps

Batches = Iterator[pa.RecordBatch]

SETS_SCHEMA = pa.schema([("table", pa.string()), ("position", pa.int32()), ("label", pa.string())])
TOKENS_SCHEMA = pa.schema([("table", pa.string()), ("position", pa.int32()), ("value", pa.string())])
ROWS_PER_BATCH = 1 << 14


def shards_worth_rewriting(store: Store, partition_bytes: int, max_deleted_share: float) -> list[int]:
    """Choose the shards that a compaction rewrites: those with many deleted sets, and small ones where there is more than one."""
    full_of_deleted, small = [], []
    for number, entry in enumerate(store.manifest.token_sets):
        if len(deleted_sets(entry)) > max_deleted_share * entry.facts["sets"]:
            full_of_deleted.append(number)
        elif entry.n_bytes < partition_bytes / 2:
            small.append(number)
    return sorted(full_of_deleted + (small if len(small) + len(full_of_deleted) > 1 else []))


def rewrite_shards(
    steps: Steps, store: Store, numbers: Sequence[int], *, first: int, parts: tuple[str, ...] | None = None
) -> list[FolderEntry]:
    """Divide the sets that hold of some shards anew, and give the entries of all shards that there are then.

    Parameters
    ----------
    steps, first, parts
        As for `pexeso.equal_text.layout.write_token_sets`.
    store : Store
    numbers
        Of shards.
    """
    entries = store.manifest.token_sets
    if not numbers:
        return list(entries)
    sets, tokens = (_frame(steps, store, numbers, kind) for kind in ("sets", "tokens"))
    kept = [entry for number, entry in enumerate(entries) if number not in set(numbers)]
    return [*kept, *write_token_sets(steps, sets, tokens, first=first, parts=parts)]


def _frame(steps: Steps, store: Store, numbers: Sequence[int], kind: str) -> DataFrame:
    frame = steps.spark.createDataFrame(pa.table({"number": pa.array(numbers, pa.int64())})).repartition(len(numbers))
    schema = SETS_SCHEMA if kind == "sets" else TOKENS_SCHEMA
    return frame.mapInArrow(partial(read_shards, store=store, kind=kind), spark_schema(schema))


def read_shards(batches: Batches, *, store: Store, kind: str) -> Batches:
    """Read what holds of the shards whose numbers come in: ``sets`` (`SETS_SCHEMA`) or ``tokens`` (`TOKENS_SCHEMA`)."""
    read = _stored_sets if kind == "sets" else _stored_tokens
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from read(open_shard(store, store.manifest.token_sets[number]))


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
