"""Rewrite of shards that updates have left small or full of deleted tables.

New shards are written from the content of the old ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from pexeso.build.parts.base import Written
from pexeso.build.parts.copied import folders_fit, rows_of_folders
from pexeso.build.parts.deletion import with_deleted, worn_shards
from pexeso.lake.record_schema import SCHEMA
from pexeso.redundancy.part.entries import hash_shard_entries
from pexeso.redundancy.part.open import PIECES, open_hash_shard
from pexeso.redundancy.part.write import divide_and_write, fit_one_shard
from pexeso.redundancy.pieces import FIELDS
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry

if TYPE_CHECKING:
    from pexeso.build.job import BuildJob
    from pexeso.options import BuildOptions

PIECES_SCHEMA = pa.schema([SCHEMA.field(name) for name in FIELDS])


def delete(store: Store, tables: pa.Array) -> list[FolderEntry]:
    """Return the entries of all shards with the pieces of some tables deleted."""
    deletions = (
        (entry, open_hash_shard(store, entry).numbers_of(tables))
        for entry in hash_shard_entries(store)
    )
    return with_deleted(deletions, "pieces")


def worn(store: Store, options: BuildOptions) -> list[int]:
    """Choose the shards that a compaction rewrites."""
    return worn_shards(hash_shard_entries(store), "pieces", options.partition_bytes)


def rewrite(job: BuildJob, numbers: Sequence[int]) -> Written:
    """Divide the pieces that hold of some shards anew."""
    if not numbers:
        return Written([])
    read = partial(read_shards, store=job.index)
    if folders_fit(hash_shard_entries(job.index)[number] for number in numbers):
        pieces = rows_of_folders(numbers, read, PIECES_SCHEMA).read_all()
        if fit_one_shard(pieces, job.options):
            return Written(divide_and_write(job, pieces))
    return Written(divide_and_write(job, job.read_folders(numbers, read, PIECES_SCHEMA)))


def read_shards(batches: Iterator[pa.RecordBatch], *, store: Store) -> Iterator[pa.RecordBatch]:
    """Read what holds of the shards whose numbers come in, a piece at a time."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            shard = open_hash_shard(store, hash_shard_entries(store)[number])
            deleted = set(shard.deleted.tolist())
            with (
                pa.memory_map(str(shard.folder / PIECES)) as source,
                pa.ipc.open_file(source) as file,
            ):
                for piece in range(file.num_record_batches):
                    if piece not in deleted:
                        yield file.get_batch(piece).cast(PIECES_SCHEMA)
