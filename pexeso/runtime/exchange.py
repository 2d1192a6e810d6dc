"""Rows that pass from the tasks that make them to those that need them, through files.

Each task cuts its rows by bucket and writes them to a file of its own (`BucketWriter`); the task
that owns a bucket reads it from all these files (`read_bucket`). A file is a sequence of rounds,
each with one batch of Arrow for every bucket, so that a bucket is found without an index and a
writer holds no more than one round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.compiled import compiled

# Most bytes of rows that a writer holds before it writes them.
ROUND_BYTES = 32 << 20

SUFFIX = ".arrow"

_FIRST_SEED = 42


def hash_rows(*columns: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Hash rows of texts and whole numbers, none of them missing, int64 (n,).

    It is what Spark's ``xxhash64`` gives, by which rows have been dealt out ever since.
    """
    hashes = np.full(len(columns[0]), _FIRST_SEED, np.uint64)
    for column in columns:
        text, offsets = _bytes_of(column)
        hashes = compiled("pexeso.runtime.loops").hash_bytes(text, offsets, hashes)
    return hashes.view(np.int64)


def _bytes_of(column: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_integer(column.type):
        numbers = np.ascontiguousarray(column.to_numpy(zero_copy_only=False))
        places = np.arange(len(numbers) + 1, dtype=np.int64) * numbers.itemsize
        return numbers.view(np.uint8), places
    return string_buffers(column.cast(pa.large_string()))


def buckets_by_hash(n_buckets: int, *columns: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return the bucket of each row, so that rows with equal fields are in the same one."""
    return hash_rows(*columns) % n_buckets


class BucketWriter:
    """Writes rows to a file, each batch cut by bucket; to be used in a `with` block."""

    def __init__(self, path: Path, n_buckets: int, schema: pa.Schema) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.counts = np.zeros(n_buckets, np.int64)
        self._schema, self._held, self._buckets = schema, [], []
        self._n_bytes = 0
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._writer = pa.ipc.new_file(str(path), schema, options=options)

    def add(self, rows: pa.Table | pa.RecordBatch, buckets: np.ndarray) -> None:
        """Add rows, whose fields are at least those of the schema, and the bucket of each."""
        if not rows.num_rows:
            return
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        self._held.append(rows.select(self._schema.names).cast(self._schema))
        self._buckets.append(np.asarray(buckets, np.int64))
        self._n_bytes += rows.nbytes
        if self._n_bytes >= ROUND_BYTES:
            self._write_round()

    def _write_round(self) -> None:
        rows, buckets = pa.concat_tables(self._held), np.concatenate(self._buckets)
        self._held, self._buckets, self._n_bytes = [], [], 0
        counts = np.bincount(buckets, minlength=len(self.counts))
        if len(counts) > 1:
            rows = rows.take(pa.array(np.argsort(buckets, kind="stable")))
        ends = np.cumsum(counts)
        for begin, end in zip(ends - counts, ends, strict=True):
            self._writer.write_batch(_one_batch(rows.slice(begin, end - begin), self._schema))
        self.counts += counts

    def close(self) -> None:
        if self._held:
            self._write_round()
        self._writer.close()

    def __enter__(self) -> BucketWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._writer.close()


def _one_batch(rows: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    batches = rows.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema)


def bucket_files(folder: Path) -> list[Path]:
    """Return the files of a folder that tasks wrote with `BucketWriter`, in one order."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def batches_of_bucket(
    paths: Iterable[Path], bucket: int, n_buckets: int, names: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one bucket of some files, one round of a file at a time."""
    for path in paths:
        with pa.memory_map(str(path)) as source:
            with pa.ipc.open_file(source) as file:
                schema = file.schema
            some = None if names is None else [schema.get_field_index(name) for name in names]
            options = pa.ipc.IpcReadOptions(included_fields=some)
            with pa.ipc.open_file(source, options=options) as file:
                for place in range(bucket, file.num_record_batches, n_buckets):
                    batch = file.get_batch(place)
                    if batch.num_rows:
                        yield batch if names is None else batch.select(list(names))


def read_bucket(
    folder: Path, bucket: int, n_buckets: int, schema: pa.Schema, names: Sequence[str] | None = None
) -> pa.Table:
    """Read the rows of one bucket that all tasks wrote to a folder."""
    names = schema.names if names is None else list(names)
    empty = schema.empty_table().select(names)
    batches = list(batches_of_bucket(bucket_files(folder), bucket, n_buckets, names))
    return pa.Table.from_batches(batches).cast(empty.schema) if batches else empty


def range_bounds(sample: pa.Array | pa.ChunkedArray, n_ranges: int) -> pa.Array:
    """Return the texts at which ranges of about equally many rows begin, all but the first."""
    ordered = sample.take(pc.sort_indices(sample))
    places = np.arange(1, n_ranges) * len(ordered) // n_ranges
    bounds = ordered.take(pa.array(places))
    bounds = bounds.combine_chunks() if isinstance(bounds, pa.ChunkedArray) else bounds
    return bounds.unique()


def buckets_by_range(values: pa.Array | pa.ChunkedArray, bounds: pa.Array) -> np.ndarray:
    """Return the range that each text lies in: how many of the bounds are not above it."""
    if not len(bounds):
        return np.zeros(len(values), np.int64)
    distinct = values.dictionary_encode()
    if isinstance(distinct, pa.ChunkedArray):
        distinct = distinct.unify_dictionaries().combine_chunks()
    # By code point, as Arrow sorts texts.
    both = pa.concat_arrays([bounds.cast(pa.string()), distinct.dictionary.cast(pa.string())])
    order = pc.sort_indices(both).to_numpy()
    is_bound = order < len(bounds)
    rank = np.empty(len(both), np.int64)
    rank[order] = np.cumsum(is_bound)
    # A text that equals a bound belongs behind it, wherever the sort has put it.
    place = pc.index_in(distinct.dictionary.cast(pa.string()), bounds.cast(pa.string()))
    equal = pc.fill_null(place, -1).to_numpy(zero_copy_only=False)
    ranks = rank[len(bounds) :]
    ranks = np.where(equal >= 0, rank[np.maximum(equal, 0)], ranks)
    return ranks[distinct.indices.to_numpy(zero_copy_only=False)]
