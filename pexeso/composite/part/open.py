"""Shards: the rows of an index, divided into folders by table.

A shard holds tables in the order of their names, numbered from 0, all rows of each. What was
deleted since is listed in the manifest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pexeso.build.parts.deletion import DELETED, deleted_numbers
from pexeso.errors import IndexCorruptError, InputError
from pexeso.lake.key_texts import NAME
from pexeso.store.arrays import open_array
from pexeso.store.id_ranges import are_ranges
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry
from pexeso.store.texts import Texts, open_texts, take_texts

if TYPE_CHECKING:
    from pexeso.composite.row_keys import RowKeys

ARRAYS = ("cells", "table_rows", "table_columns", "value_offsets", "posting_rows")
"""Of `pexeso.composite.row_keys.RowKeys`."""

SUPER_KEYS = "super_keys_%s"
VALUES, TABLES, COLUMNS = "values.arrow", "tables.arrow", "columns.arrow"

COUNTS = ("tables", "rows", "cells", "values")


@dataclass(frozen=True)
class RowShard:
    """An open shard; files are memory-mapped when they are asked for.

    Attributes
    ----------
    deleted : int64 (d,)
        Numbers of tables that are not to be found, ascending.
    """

    folder: Path
    filters: tuple[dict[str, Any], ...]
    deleted: np.ndarray

    def __reduce__(self) -> tuple[Any, ...]:
        # Maps are of this process: another one opens its own.
        return RowShard, (self.folder.absolute(), self.filters, self.deleted)

    def __deepcopy__(self, memo: dict[int, Any]) -> RowShard:
        return self

    @cached_property
    def rows(self) -> RowKeys:
        """The rows as numbers of values, and what finds them."""
        from pexeso.composite.filters import filter_from_json
        from pexeso.composite.row_keys import RowKeys, SuperKeys  # bring numba

        super_keys = {}
        for description in self.filters:
            hashing = filter_from_json(description)
            words = open_array(self.folder / f"{SUPER_KEYS % hashing.name}.npy")
            super_keys[hashing.name] = SuperKeys(hashing, words.view(np.uint64))
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
        """Return the names of some tables."""
        return take_texts(self.tables, numbers).to_pylist()

    def labels(self, table: int) -> list[str]:
        """Return the labels of the columns of a table, in order."""
        begin, end = self.rows.table_columns[table : table + 2].tolist()
        return take_texts(self.columns, np.arange(begin, end)).to_pylist()

    def numbers_of(self, tables: pa.Array) -> np.ndarray:
        """Return the numbers of tables that the shard holds, int64, ascending."""
        from pexeso.sets.overlap.loops import find_texts  # brings numba

        positions = find_texts(self.tables, tables)
        return np.unique(positions[positions >= 0])

    def hidden(self, table: str | None) -> np.ndarray:
        """Return the numbers of tables to hide: deleted ones, and the one of a name."""
        numbers = self.numbers_of(pa.array([] if table is None else [table], pa.string()))
        return np.union1d(self.deleted, numbers)


def open_row_shards(store: Store) -> list[RowShard]:
    """Open the shards of an index, in their order; only sizes are read."""
    if "composite" not in (store.manifest.options.get("parts") or ()):
        raise InputError(
            f"The index '{store.path}' has no part for composite keys. Add it with 'pexeso "
            f"add-part {store.path} composite', or build indexes with it from the start: 'pexeso "
            "index LAKE INDEX --include composite'."
        )
    return [open_row_shard(store, entry) for entry in row_shard_entries(store)]


def row_shard_entries(store: Store) -> tuple[FolderEntry, ...]:
    """Return what the manifest of an index has on its shards, in their order."""
    return store.manifest.parts.get("row_keys", ())


def open_row_shard(store: Store, entry: FolderEntry) -> RowShard:
    """Open one shard; see `open_row_shards`."""
    require_row_facts(entry)
    return RowShard(store.folder(entry), tuple(entry.facts["filters"]), deleted_numbers(entry))


def require_row_facts(entry: FolderEntry) -> None:
    """Refuse an entry whose facts cannot be those of a shard."""
    facts = entry.facts
    counted = all(type(facts.get(name)) is int and facts[name] >= 0 for name in COUNTS)
    if (
        not counted
        or not isinstance(facts.get("filters"), list)
        or not are_ranges(facts.get(DELETED, []), facts["tables"])
    ):
        raise IndexCorruptError(
            f"The manifest of the index does not tell of '{entry.folder}' what a folder of rows "
            "holds: it was not written by pexeso. Build the index again."
        )
    if facts.get("form") != NAME:
        raise IndexCorruptError(
            f"The cells in '{entry.folder}' have the form {facts.get('form')!r}, and this version "
            f"of pexeso compares the form {NAME!r}: build the index again."
        )
