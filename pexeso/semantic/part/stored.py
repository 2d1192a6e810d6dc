"""Postings and vectors of stored partitions, written again for other partitions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.build.catalog_writer import split_values, value_buckets, value_writer, write_distinct
from pexeso.build.parts.base import Batches
from pexeso.build.workers import Attempt
from pexeso.runtime.exchange import BucketWriter, buckets_by_hash, read_bucket
from pexeso.store.arrays import take_texts
from pexeso.store.io.parquet import parquet_files
from pexeso.store.local.reader import Store

if TYPE_CHECKING:
    from pexeso.build.job import BuildJob
    from pexeso.build.workers import Facts


POSTINGS = pa.schema([("column_id", pa.int64()), ("value", pa.string()), ("text", pa.string())])
VECTORS = pa.schema([("value", pa.string()), ("vector", pa.list_(pa.float32()))])
ROWS_PER_BATCH = 1 << 14


def stored_postings(job: BuildJob, store: Store, numbers: Sequence[int], folder: Path) -> Facts:
    """Write what holds of some partitions as the stage ``catalog`` does; return what is there."""
    entries = [store.partition_entry(number) for number in numbers]
    n_bytes = sum(entry.n_bytes for entry in entries)
    n_buckets = value_buckets(job.workers, sum(entry.facts["postings"] for entry in entries))
    task = partial(_copy_postings, store=store, n_buckets=n_buckets)
    counts = job.run(task, list(numbers), folder, n_bytes=n_bytes)
    return {
        "columns": sum(n_columns for n_columns, _ in counts),
        "postings": sum(n_postings for _, n_postings in counts),
        "values": write_distinct(job.workers, folder, n_buckets),
    }


def _copy_postings(
    number: int, attempt: Attempt, *, store: Store, n_buckets: int
) -> tuple[int, int]:
    """Write the postings that hold of a partition, and count its columns and them."""
    columns, n_rows, path = set(), 0, attempt.path("postings", "part.parquet")
    with pq.ParquetWriter(path, POSTINGS) as writer, value_writer(attempt, n_buckets) as out:
        for batch in _stored_postings(store, number):
            writer.write_batch(batch)
            columns.update(batch["column_id"].unique().to_pylist())
            split_values(out, batch["value"])
            n_rows += len(batch)
    return len(columns), n_rows


def stored_vectors(job: BuildJob, store: Store, numbers: Sequence[int], folder: Path) -> list[Path]:
    """Write the vectors of what holds of some partitions, each value once, by bucket."""
    entries = [store.partition_entry(number) for number in numbers]
    n_buckets = value_buckets(job.workers, sum(entry.facts["postings"] for entry in entries))
    n_bytes = sum(entry.n_bytes for entry in entries)
    split = partial(_split_vectors, store=store, n_buckets=n_buckets)
    job.run(split, list(numbers), folder, n_bytes=n_bytes)
    task = partial(_first_vectors, placed=folder / "split_vectors", n_buckets=n_buckets)
    job.run(task, range(n_buckets), folder, n_bytes=n_bytes)
    return parquet_files(folder / "vectors")


def _split_vectors(number: int, attempt: Attempt, *, store: Store, n_buckets: int) -> None:
    with BucketWriter(attempt.path("split_vectors", "part.arrow"), n_buckets, VECTORS) as writer:
        for batch in _stored_vectors(store, number):
            writer.add(batch, buckets_by_hash(n_buckets, batch["value"]))


def _first_vectors(bucket: int, attempt: Attempt, *, placed: Path, n_buckets: int) -> None:
    """Write the vector of each value of a bucket once, of whichever partition."""
    rows = read_bucket(placed, bucket, n_buckets, VECTORS).combine_chunks()
    first = pc.index_in(rows["value"].unique(), value_set=rows["value"].combine_chunks())
    pq.write_table(rows.take(first), attempt.path("vectors", "part.parquet"))


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
        text_arrays = (
            take_texts(values, arrays["column_values_members"][postings]),
            take_texts(texts, arrays["posting_texts"][postings]),
        )
        yield pa.RecordBatch.from_arrays(
            [pa.array(arrays["column_ids"][column]), *text_arrays], schema=POSTINGS
        )


def _stored_vectors(store: Store, number: int) -> Batches:
    from embed.batches import as_lists

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
