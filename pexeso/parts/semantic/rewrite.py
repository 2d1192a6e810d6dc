"""Rewrite of partitions that updates have left small or full of deleted columns.

New partitions are written from the content of the old ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pexeso.io.location import read_parquet, spark_path
from pexeso.parts.base import Batches, Written, worn_folders
from pexeso.parts.models import embedder_folder, store_of_model, told
from pexeso.store.id_ranges import merge_ranges, ranges_of
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry
from pexeso.store.texts import take_texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pexeso.build.job import BuildJob
    from pexeso.options import BuildOptions

POSTINGS = pa.schema([("column_id", pa.int64()), ("value", pa.string()), ("text", pa.string())])
VECTORS = pa.schema([("value", pa.string()), ("vector", pa.list_(pa.float32()))])
ROWS_PER_BATCH = 1 << 14


def delete(store: Store, tables: pa.Array, *, model: int = 0) -> Sequence[FolderEntry]:
    """Return all partitions as they are: ids of deleted columns stand in the manifest."""
    return store_of_model(store, model).manifest.partitions


def worn(store: Store, options: BuildOptions, *, model: int = 0) -> list[int]:
    """Select the partitions that a compaction rewrites.

    Small partitions are selected only if there are more partitions than were requested.
    """
    store = store_of_model(store, model)
    masks = (store.deleted_mask(number) for number in range(store.n_partitions))
    shares = [0.0 if mask is None else mask.mean() for mask in masks]
    return worn_folders(
        store.manifest.partitions, shares, options.partition_bytes, least=options.n_partitions or 1
    )


def rewrite(job: BuildJob, numbers: Sequence[int], *, model: int = 0) -> Written:
    """Divide the remaining columns of some partitions anew.

    Vectors are copied from the partitions, and nothing is embedded but for sketches of the values
    of a lexical model, where there is more than one new partition.
    """
    from embed.spark import embed_values
    from pexeso.parts.semantic.write import (
        divide_and_write,
    )  # brings torch, which the tasks that read do without

    store = store_of_model(job.index, model)
    folder_of_embedder = embedder_folder(store)
    facts_before = store.manifest.facts
    kept = sorted(set(range(store.n_partitions)) - set(numbers))

    def frames(folder: Path) -> tuple[DataFrame, DataFrame] | None:
        postings = _stored(job, store, numbers, folder, "stored_postings", POSTINGS)
        if postings.isEmpty():
            return None
        if "letters" in facts_before:
            values = postings.select("value").distinct()
            return postings, embed_values(values, folder_of_embedder)
        return postings, _stored(job, store, numbers, folder, "stored_vectors", VECTORS)

    entries = []
    if numbers:
        n_partitions = None if kept else job.options.n_partitions
        entries = divide_and_write(
            job, frames, facts_before, n_partitions, folder_of_embedder, model
        )
    every = [*(store.partition_entry(number) for number in kept), *entries]
    facts = {name: sum(entry.facts[name] for entry in every) for name in ("values", "postings")}
    masks = [(number, mask) for number in kept if (mask := store.deleted_mask(number)) is not None]
    still = [ranges_of(store.array(number, "column_ids")[mask]) for number, mask in masks]
    return Written(entries, **told(job.index, model, facts, {}), deleted=merge_ranges(*still))


def _stored(
    job: BuildJob, store: Store, numbers: Sequence[int], folder: Path, name: str, schema: pa.Schema
) -> DataFrame:
    frame = job.read_folders(numbers, partial(read_partitions, store=store, kind=name), schema)
    if schema is VECTORS:
        frame = frame.dropDuplicates(["value"])
    frame.write.parquet(spark_path(folder / name))
    return read_parquet(job.spark, folder / name)


def read_partitions(batches: Batches, *, store: Store, kind: str) -> Batches:
    """Read the columns that hold back from partitions whose numbers come in.

    Parameters
    ----------
    batches
        Numbers of partitions.
    kind
        ``stored_postings``: column id, value and text of each posting (`POSTINGS`);
        ``stored_vectors``: value and vector (`VECTORS`).
    """
    read = _stored_postings if kind == "stored_postings" else _stored_vectors
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from read(store, number)


def _stored_postings(store: Store, number: int) -> Batches:
    arrays = store.partition(number)
    values, texts = store.texts(number, "values"), store.texts(number, "texts")
    offsets, mask = arrays["column_values_offsets"], store.deleted_mask(number)
    for start in range(0, len(arrays["column_values_members"]), ROWS_PER_BATCH):
        postings = np.arange(
            start, min(start + ROWS_PER_BATCH, len(arrays["column_values_members"]))
        )
        column = np.searchsorted(offsets, postings, side="right") - 1
        if mask is not None:
            postings, column = postings[~mask[column]], column[~mask[column]]
        taken = (
            take_texts(values, arrays["column_values_members"][postings]),
            take_texts(texts, arrays["posting_texts"][postings]),
        )
        yield pa.RecordBatch.from_arrays(
            [pa.array(arrays["column_ids"][column]), *taken], schema=POSTINGS
        )


def _stored_vectors(store: Store, number: int) -> Batches:
    from embed.spark import as_lists

    arrays, mask = store.partition(number), store.deleted_mask(number)
    needed = np.ones(len(arrays["vectors"]), dtype=bool)
    if mask is not None:
        held = np.repeat(~mask, np.diff(arrays["column_values_offsets"]))
        needed[:] = False
        needed[arrays["column_values_members"][held]] = True
    rows = np.flatnonzero(needed)
    values = store.texts(number, "values")
    for start in range(0, len(rows), ROWS_PER_BATCH):
        some = rows[start : start + ROWS_PER_BATCH]
        vectors = np.ascontiguousarray(arrays["vectors"][some], dtype=np.float32)
        yield pa.RecordBatch.from_arrays(
            [take_texts(values, some), as_lists(vectors)], schema=VECTORS
        )
