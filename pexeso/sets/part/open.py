"""Shards: the token sets of an index, divided into folders.

Each folder is an index of its own, built by one task.

A shard holds sets in the order of table, then label, numbered from 0. Its folder has the files of
`pexeso.sets.overlap.index.saving`, those of `pexeso.sets.containment.stored` where the index has
that part, and the names of the sets' tables and columns. What was deleted since is listed in the
manifest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.deletion import DELETED, deleted_numbers
from pexeso.errors import IndexCorruptError, InputError
from pexeso.sets.overlap.index.saving import open_index
from pexeso.sets.overlap.index.sets import OverlapIndex
from pexeso.sets.overlap.planner import Planner
from pexeso.store.arrays import open_array
from pexeso.store.id_ranges import are_ranges
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry
from pexeso.store.texts import Texts, open_texts, take_texts

if TYPE_CHECKING:
    from pexeso.sets.containment.ensemble import Ensemble
    from pexeso.sets.overlap.batched import BatchedMergeList
    from pexeso.sets.part.lists import OverlapLists


@dataclass(frozen=True)
class SetNames:
    """Names of n sets, ascending by table, then label, by code point.

    Attributes
    ----------
    tables, labels : (n,) texts
        May be memory-mapped.
    """

    tables: Texts
    labels: Texts

    def __len__(self) -> int:
        return len(self.tables)

    def of(self, numbers: np.ndarray) -> list[tuple[str, str]]:
        """Return (table, label) of some sets."""
        tables, labels = (
            take_texts(texts, numbers).to_pylist() for texts in (self.tables, self.labels)
        )
        return list(zip(tables, labels, strict=True))

    def rows_of(self, table: str) -> tuple[int, int]:
        """Return the first set of a table and the one after its last.

        Both are equal if the table has no set.
        """
        names = pa.array([table], pa.large_string())
        first, end = self._bounds(names, before=True), self._bounds(names, before=False)
        return int(first[0]), int(end[0])

    def rows_of_tables(self, tables: pa.Array) -> np.ndarray:
        """Return the numbers of all sets of some tables, int64, ascending.

        Each step of the bisection covers all tables.
        """
        names = tables.cast(pa.large_string())
        first, end = self._bounds(names, before=True), self._bounds(names, before=False)
        lengths = end - first
        starts = np.repeat(first - np.cumsum(lengths) + lengths, lengths)
        return np.sort(starts + np.arange(lengths.sum()))

    def _bounds(self, names: pa.Array, *, before: bool) -> np.ndarray:
        """Count the sets whose table is less than each of some names, or not greater."""
        is_left = pc.less if before else pc.less_equal
        low, high = np.zeros(len(names), np.int64), np.full(len(names), len(self), np.int64)
        for _ in range(len(self).bit_length() if len(names) else 0):
            middle = np.minimum((low + high) // 2, len(self) - 1)
            left = is_left(take_texts(self.tables, middle), names).to_numpy(zero_copy_only=False)
            searching = low < high
            low = np.where(searching & left, middle + 1, low)
            high = np.where(searching & ~left, middle, high)
        return low


TABLES, LABELS, POSITIONS = "tables.arrow", "labels.arrow", "positions"

COUNTS = ("sets", "pairs", "tokens")
"""Facts of a shard's entry: its columns, the (column, token) pairs, and distinct tokens; those
deleted since included."""


@dataclass(frozen=True)
class Shard:
    """An open shard; files are memory-mapped when they are asked for.

    Attributes
    ----------
    parts : tuple of str
        Which parts it has; see `pexeso.registry.choices`.
    deleted : int64 (d,)
        Numbers of sets that are not to be found, ascending.
    """

    folder: Path
    parts: tuple[str, ...]
    deleted: np.ndarray

    def __reduce__(self) -> tuple[Any, ...]:
        # Maps are of this process: another one opens its own.
        return Shard, (self.folder.absolute(), self.parts, self.deleted)

    def __deepcopy__(self, memo: dict[int, Any]) -> Shard:
        return self

    @cached_property
    def overlap(self) -> OverlapIndex:
        """Sets and posting lists."""
        return open_index(self.folder)

    @cached_property
    def planner(self) -> Planner:
        """What tells which way a search for overlaps goes; a few reads are timed for it."""
        return Planner.measured(self.overlap)

    def batched(self, device: str) -> BatchedMergeList:
        """Return the posting lists on a torch device, where they stay while the shard is open."""
        if device not in self._batched:
            from pexeso.sets.overlap.batched import BatchedMergeList  # brings torch

            self._batched[device] = BatchedMergeList(self.overlap, device)
        return self._batched[device]

    @cached_property
    def _batched(self) -> dict[str, BatchedMergeList]:
        return {}

    @cached_property
    def names(self) -> SetNames:
        """The table and the label of each set."""
        names = SetNames(open_texts(self.folder / TABLES), open_texts(self.folder / LABELS))
        if len(names) != self.overlap.n_sets:
            raise IndexCorruptError(
                f"'{self.folder}' has names of {len(names):,} columns and token sets of "
                f"{self.overlap.n_sets:,}: restore it from a copy, or build it again."
            )
        return names

    @cached_property
    def positions(self) -> np.ndarray:
        """The position of each set's column in its table, int32."""
        return open_array(self.folder / f"{POSITIONS}.npy")

    @cached_property
    def lists(self) -> OverlapLists:
        """The posting lists, as searches for containment read them."""
        from pexeso.sets.part.lists import OverlapLists

        return OverlapLists(self.overlap)

    @cached_property
    def bands(self) -> Ensemble | None:
        """Bands of signatures of the sets beside the lists, where the shard has them."""
        from pexeso.sets.containment.stored import (
            read_ensemble,
        )  # brings numba, which searches for overlaps do without

        return read_ensemble(self.folder, self.lists)

    def numbers_of(self, columns: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return the numbers of the sets of columns given as (table, label), int64.

        The number is -1 if there is no such set or it is deleted.
        """
        tables = sorted({table for table, _ in columns})
        rows = self.names.rows_of_tables(pa.array(tables, pa.large_string()))
        number_of = dict(zip(self.names.of(rows), rows.tolist(), strict=True))
        numbers = np.array([number_of.get(column, -1) for column in columns], np.int64)
        numbers[np.isin(numbers, self.deleted)] = -1
        return numbers

    def hidden(self, table: str | None) -> np.ndarray:
        """Return the numbers of sets to hide from a search: deleted ones and those of a table."""
        if table is None:
            return self.deleted
        first, end = self.names.rows_of(table)
        return np.union1d(self.deleted, np.arange(first, end)) if end > first else self.deleted


def open_shards(store: Store) -> list[Shard]:
    """Open the shards of an index, in their order.

    Only sizes are read, and small files if the shards are on remote storage.
    """
    return [open_shard(store, entry) for entry in shard_entries(store)]


def shard_entries(store: Store) -> tuple[FolderEntry, ...]:
    """Return what the manifest of an index has on its shards, in their order."""
    return store.manifest.parts.get("token_sets", ())


def open_shard(store: Store, entry: FolderEntry) -> Shard:
    """Open one shard; see `open_shards`."""
    require_shard_facts(entry)
    return Shard(store.folder(entry), tuple(entry.facts["parts"]), deleted_numbers(entry))


def require_shard_facts(entry: FolderEntry) -> None:
    """Refuse an entry whose facts cannot be those of a shard."""
    facts = entry.facts
    counted = all(type(facts.get(name)) is int and facts[name] >= 0 for name in COUNTS)
    parts, deleted = facts.get("parts"), facts.get(DELETED, [])
    named = isinstance(parts, list) and all(isinstance(part, str) for part in parts)
    if not counted or not named or not are_ranges(deleted, facts["sets"]):
        raise IndexCorruptError(
            f"The manifest of the index does not tell of '{entry.folder}' what a folder of token "
            "sets holds: it was not written by pexeso. "
            "Build the index again."
        )


def require_part(store: Store, part: str) -> None:
    """Refuse to search an index without a part."""
    if part not in parts_of(store):
        raise InputError(
            f"The index '{store.path}' has no part for searches by {part} of equal texts. Add it "
            f"with 'pexeso add-part {store.path} {part}', or build "
            f"indexes with it from the start: 'pexeso index LAKE INDEX --include {part}'."
        )


def parts_of(store: Store) -> Sequence[str]:
    """Return the parts that an index has; see `pexeso.registry.choices`."""
    parts = store.manifest.options.get("parts", [])
    return parts if isinstance(parts, list) else []
