"""Shards: the rows of an index, divided into folders by table.

A shard holds tables in the order of their names, numbered from 0, all rows of each. What was
deleted since is listed in the manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.base import Batches, deleted_numbers, require_part, unlisted
from pexeso.composite.part import ROW_KEYS_PART
from pexeso.engine.lists import distinct_numbers
from pexeso.errors import IndexCorruptError
from pexeso.store.arrays import Texts, open_array, open_texts, require_sound, take_texts
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry

if TYPE_CHECKING:
    from pexeso.composite.row_keys import RowKeys

# Of `pexeso.composite.row_keys.RowKeys`.
ARRAYS = ("cells", "table_rows", "table_columns", "value_offsets", "posting_rows")

SUPER_KEYS = "super_keys_%s"
VALUES, TABLES, COLUMNS = "values.arrow", "tables.arrow", "columns.arrow"


@dataclass(frozen=True)
class RowShard:
    """An open shard; files are memory-mapped when they are asked for."""

    folder: Path
    filters: tuple[dict[str, Any], ...]
    deleted: np.ndarray  # int64 (d,): numbers of tables that are not to be found, ascending

    def __reduce__(self) -> tuple[Any, ...]:
        # Maps are of this process: another one opens its own.
        return RowShard, (self.folder.absolute(), self.filters, self.deleted)

    def __deepcopy__(self, memo: dict[int, Any]) -> RowShard:
        return self

    @cached_property
    def rows(self) -> RowKeys:
        from pexeso.composite.row_keys import RowKeys, SuperKeys, filter_from_json

        super_keys = {}
        for description in self.filters:
            hashing = filter_from_json(description)
            words = open_array(self.folder / f"{SUPER_KEYS % hashing.name}.npy")
            super_keys[hashing.name] = SuperKeys(hashing, np.asarray(words.view(np.uint64)))
        arrays = {name: open_array(self.folder / f"{name}.npy") for name in ARRAYS}
        rows = RowKeys(open_texts(self.folder / VALUES), **arrays, super_keys=super_keys)
        for what, texts, n in (
            ("tables", self.tables, rows.n_tables),
            ("columns", self.columns, int(rows.table_columns[-1])),
        ):
            if len(texts) != n:
                raise IndexCorruptError(
                    f"'{self.folder}' names {len(texts):,} {what}, and there are {n:,}: restore "
                    "it from a copy, or build it again."
                )
        return rows

    @cached_property
    def tables(self) -> Texts:
        """The names of the tables, ascending by code point."""
        return open_texts(self.folder / TABLES)

    @cached_property
    def columns(self) -> Texts:
        """The labels of all columns, table after table."""
        return open_texts(self.folder / COLUMNS)

    def table_names(self, numbers: Sequence[int] | np.ndarray) -> list[str]:
        return take_texts(self.tables, numbers).to_pylist()

    def labels(self, table: int) -> list[str]:
        begin, end = self.rows.table_columns[table : table + 2].tolist()
        return take_texts(self.columns, np.arange(begin, end)).to_pylist()

    def table_columns(self, table: int) -> list[pa.Array]:
        """Return the cells of each column of a table, in the form in which they are compared."""
        rows = self.rows
        begin, end = rows.table_cells[table : table + 2].tolist()
        cells = rows.cells[begin:end].reshape(-1, int(rows.widths[table])).T
        values = rows.values.cast(pa.large_string())
        return [values.take(pa.array(column, mask=column < 0)) for column in cells]

    def numbers_of_tables(self, tables: pa.Array) -> np.ndarray:
        from pexeso.sets.overlap.dictionary import find_texts

        positions = find_texts(self.tables, tables)
        return distinct_numbers(positions[positions >= 0])

    def hidden(self, table: str | None) -> np.ndarray:
        """Return the numbers of tables to hide: deleted ones, and the one of a name."""
        numbers = self.numbers_of_tables(pa.array([] if table is None else [table], pa.string()))
        return np.union1d(self.deleted, numbers)

    def stored(self, _: str) -> Batches:
        """Yield the records that the rows were written from, without deleted tables."""
        from pexeso.composite.part.records import Piece, fields_of, rows_of_a_piece, together

        rows, begins = self.rows, dict[tuple[str, int], int]()

        def pieces() -> Iterator[Piece]:
            for table in np.setdiff1d(np.arange(rows.n_tables), self.deleted).tolist():
                [name], width = self.table_names([table]), int(rows.widths[table])
                n_rows = int(rows.table_rows[table + 1] - rows.table_rows[table])
                step = rows_of_a_piece(width)
                for first in range(0, n_rows, step):
                    labels = None if first else self.labels(table)
                    begins[name, first] = int(rows.table_cells[table]) + first * width
                    yield Piece(name, first, min(step, n_rows - first), width, labels)

        for some in together(pieces()):
            starts = [begins.pop((piece.table, piece.first_row)) for piece in some]
            numbers = [
                rows.cells[start : start + piece.n_cells]
                for start, piece in zip(starts, some, strict=True)
            ]
            take = partial(take_texts, rows.values)
            yield pa.RecordBatch.from_pydict(fields_of(some, numbers, len(rows.values), take))


def open_row_shards(store: Store) -> list[RowShard]:
    require_part(store, "composite", "composite keys")
    return [open_shard(store, entry) for entry in ROW_KEYS_PART.entries(store)]


def open_shard(store: Store, entry: FolderEntry) -> RowShard:
    ROW_KEYS_PART.require_facts(entry)
    return RowShard(store.folder(entry), tuple(entry.facts["filters"]), deleted_numbers(entry))


def check_shard(shard: RowShard, entry: FolderEntry, listed: pa.Array) -> Iterator[str]:
    from pexeso.composite.row_keys import faults_within

    rows = shard.rows
    yield from faults_within(rows)
    for texts in (shard.tables, shard.columns):
        require_sound(texts)
        if texts.null_count:
            yield "the name of a table or a column is missing."
            return
    if pc.any(pc.greater_equal(shard.tables[:-1], shard.tables[1:])).as_py():
        yield "tables must be distinct and sorted."
    counts = (rows.n_tables, rows.n_rows, len(rows.cells), len(rows.values))
    yield from ROW_KEYS_PART.wrong_counts(shard.folder, entry, counts)
    held = np.setdiff1d(np.arange(len(shard.tables)), shard.deleted)
    yield from unlisted("it has rows", shard.tables.take(pa.array(held)), listed)
