"""Rewrite of shards that updates have left small or full of deleted tables.

New shards are written from the content of the old ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pexeso.build.parts.base import Written
from pexeso.build.parts.copied import folders_fit, rows_of_folders
from pexeso.build.parts.deletion import with_deleted, worn_shards
from pexeso.composite.part.open import (
    RowShard,
    open_row_shard,
    row_shard_entries,
)
from pexeso.composite.part.records import FIELDS, Piece, fields_of, rows_of_a_piece, together
from pexeso.composite.part.write import divide_and_write, fit_one_shard
from pexeso.lake.record_schema import SCHEMA
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry
from pexeso.store.texts import take_texts

if TYPE_CHECKING:
    from pexeso.build.job import BuildJob
    from pexeso.options import BuildOptions

Batches = Iterator[pa.RecordBatch]

ROWS_SCHEMA = pa.schema([SCHEMA.field(name) for name in FIELDS])


def delete(store: Store, tables: pa.Array) -> list[FolderEntry]:
    """Return the entries of all shards with some tables deleted."""
    deletions = (
        (entry, open_row_shard(store, entry).numbers_of(tables))
        for entry in row_shard_entries(store)
    )
    return with_deleted(deletions, "tables")


def worn(store: Store, options: BuildOptions) -> list[int]:
    """Choose the shards that a compaction rewrites."""
    return worn_shards(row_shard_entries(store), "tables", options.partition_bytes)


def rewrite(job: BuildJob, numbers: Sequence[int]) -> Written:
    """Divide the tables that hold of some shards anew."""
    if not numbers:
        return Written([])
    read = partial(read_shards, store=job.index)
    if folders_fit(row_shard_entries(job.index)[number] for number in numbers):
        rows = rows_of_folders(numbers, read, ROWS_SCHEMA).read_all()
        if fit_one_shard(rows, job.options):
            return Written(divide_and_write(job, rows))
    return Written(divide_and_write(job, job.read_folders(numbers, read, ROWS_SCHEMA)))


def read_shards(batches: Batches, *, store: Store) -> Batches:
    """Read what holds of the shards whose numbers come in, as records."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from _stored_rows(open_row_shard(store, row_shard_entries(store)[number]))


@dataclass(frozen=True)
class _StoredPiece(Piece):
    """Rows of a table of a shard, with the place of their first cell."""

    begin: int = 0


def _stored_rows(shard: RowShard) -> Batches:
    rows = shard.rows
    for pieces in together(_pieces(shard)):
        numbers = [rows.cells[piece.begin : piece.begin + piece.n_cells] for piece in pieces]
        fields = fields_of(pieces, numbers, len(rows.values), partial(take_texts, rows.values))
        yield pa.RecordBatch.from_pydict(fields, schema=ROWS_SCHEMA)


def _pieces(shard: RowShard) -> Iterator[_StoredPiece]:
    rows = shard.rows
    for table in np.setdiff1d(np.arange(rows.n_tables), shard.deleted).tolist():
        [name], width = shard.table_names([table]), int(rows.widths[table])
        begin, n_rows = (
            int(rows.table_cells[table]),
            int(rows.table_rows[table + 1] - rows.table_rows[table]),
        )
        step = rows_of_a_piece(width)
        for first in range(0, n_rows, step):
            labels = None if first else shard.labels(table)
            n = min(step, n_rows - first)
            yield _StoredPiece(name, first, n, width, labels, begin=begin + first * width)
