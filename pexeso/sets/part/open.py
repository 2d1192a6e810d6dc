"""Shards: the token sets of an index, divided into folders, each an index built by one task.

A shard holds sets in the order of table, then label, numbered from 0. Its folder has the files of
`pexeso.sets.overlap.index`, those of `pexeso.sets.containment.ensemble` where the index has
that part, and the names of the sets' tables and columns. What was deleted since is listed in the
manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts import base
from pexeso.build.parts.base import Batches, deleted_numbers, parts_of, problems_of, unlisted
from pexeso.engine.lists import distinct_numbers, ranges
from pexeso.errors import IndexCorruptError, InputError
from pexeso.lake.catalog import Catalog
from pexeso.registry import require_parts
from pexeso.sets.overlap.dictionary import first_not_less
from pexeso.sets.overlap.index import OverlapIndex, check_overlap, open_index
from pexeso.sets.overlap.planner import Planner
from pexeso.sets.part import SET_FIELDS, SETS, TOKEN_FIELDS, TOKEN_SETS_PART
from pexeso.store.arrays import Texts, open_array, open_texts, require_sound, take_texts
from pexeso.store.integrity import Problem
from pexeso.store.local.reader import Store
from pexeso.store.manifest import MANIFEST, FolderEntry

if TYPE_CHECKING:
    from pexeso.sets.containment.ensemble import CsrLists, Ensemble
    from pexeso.sets.overlap.batched import BatchedMergeList


@dataclass(frozen=True)
class SetNames:
    """Names of n sets, ascending by table, then label, by code point; may be memory-mapped."""

    tables: Texts
    labels: Texts

    def __len__(self) -> int:
        return len(self.tables)

    def of(self, numbers: np.ndarray) -> list[tuple[str, str]]:
        columns = [take_texts(texts, numbers) for texts in (self.tables, self.labels)]
        return list(zip(*(texts.to_pylist() for texts in columns), strict=True))

    def rows_of_tables(self, tables: pa.Array) -> np.ndarray:
        """Return the numbers of all sets of some tables, int64, ascending."""
        names = tables.cast(pa.string())
        # No name comes between one and that with the least letter behind it.
        both = names, pc.binary_join_element_wise(names, "\0", "")
        first, end = (first_not_less(self.tables, one.cast(pa.large_string())) for one in both)
        return np.sort(ranges(first, end - first))


TABLES, LABELS, POSITIONS = "tables.arrow", "labels.arrow", "positions"
ROWS_PER_BATCH = 1 << 14


@dataclass(frozen=True)
class Shard:
    """An open shard, with the numbers of deleted sets, int64 (d,), ascending.

    Files are memory-mapped when they are needed.
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
        return open_index(self.folder)

    @cached_property
    def planner(self) -> Planner:
        """What chooses the way of a search for overlaps; a few reads are timed for it."""
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
    def lists(self) -> CsrLists:
        """The posting lists, as searches for containment read them."""
        from pexeso.sets.containment.ensemble import CsrLists

        return CsrLists(self.overlap)

    @cached_property
    def bands(self) -> Ensemble | None:
        """Bands of signatures of the sets beside the lists, where the shard has them."""
        from pexeso.sets.containment.ensemble import read_ensemble

        return read_ensemble(self.folder, self.lists)

    def numbers_of(self, columns: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return the numbers of the sets of columns, -1 where there is none or a deleted one."""
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
        own_sets = self.names.rows_of_tables(pa.array([table], pa.large_string()))
        return np.union1d(self.deleted, own_sets) if len(own_sets) else self.deleted

    def numbers_of_tables(self, tables: pa.Array) -> np.ndarray:
        """Return the numbers of all sets of some tables, in O(tables log sets)."""
        return self.names.rows_of_tables(tables)

    def stored(self, name: str) -> Batches:
        """Yield the sets or the tokens that the shard was written from, without deleted ones."""
        index = self.overlap
        is_held = np.ones(index.n_sets, bool)
        is_held[self.deleted] = False
        if name == SETS:
            held = np.flatnonzero(is_held)
            for start in range(0, len(held), ROWS_PER_BATCH):
                numbers = held[start : start + ROWS_PER_BATCH]
                yield self._batch(SET_FIELDS, numbers, take_texts(self.names.labels, numbers))
            return
        place_of = np.empty(index.n_tokens, np.int64)
        place_of[index.dictionary.numbers] = np.arange(index.n_tokens)
        for start in range(0, len(index.set_tokens), ROWS_PER_BATCH):
            rows = np.arange(start, min(start + ROWS_PER_BATCH, len(index.set_tokens)))
            numbers = np.searchsorted(index.set_offsets, rows, side="right") - 1
            rows, numbers = rows[is_held[numbers]], numbers[is_held[numbers]]
            texts = take_texts(index.dictionary.texts, place_of[index.set_tokens[rows]])
            yield self._batch(TOKEN_FIELDS, numbers, texts)

    def _batch(self, fields: Sequence[str], numbers: np.ndarray, texts: pa.Array) -> pa.RecordBatch:
        tables = take_texts(self.names.tables, numbers)
        arrays = [tables, pa.array(self.positions[numbers]), texts]
        return pa.RecordBatch.from_arrays(arrays, names=list(fields))


def open_shards(store: Store) -> list[Shard]:
    """Open the shards of an index, in their order.

    Only sizes are read, and small files if the shards are on remote storage.
    """
    return [open_shard(store, entry) for entry in TOKEN_SETS_PART.entries(store)]


def open_shard(store: Store, entry: FolderEntry) -> Shard:
    TOKEN_SETS_PART.require_facts(entry)
    return Shard(store.folder(entry), tuple(entry.facts["parts"]), deleted_numbers(entry))


def require_part(store: Store, part: str) -> None:
    base.require_part(store, part, f"searches by {part} of equal texts")


_CHUNK = 1 << 20


def check(store: Store) -> list[Problem]:
    """Return the problems in the contents of the token sets of an index.

    The bytes of the index must be as they were written. One shard at a time is held: some 60 bytes
    a pair of column and token, and 2 KiB a set with signatures. Beside it the names of the
    catalog's tables.
    """
    try:
        require_parts(parts_of(store))
        catalog = Catalog(store.catalog_files)
        tables = catalog.tables(["table"])["table"]
        columns = catalog.columns(["table", "position", "label"])
    except (InputError, IndexCorruptError) as error:
        return [
            Problem(
                MANIFEST, "content", f"'{store.path}' cannot be searched by equal values: {error}"
            )
        ]
    entries = TOKEN_SETS_PART.entries(store)
    return problems_of(
        store, entries, lambda entry: _check_shard(store, entry, tables.combine_chunks(), columns)
    )


def _check_shard(
    store: Store, entry: FolderEntry, tables: pa.Array, columns: pa.Table
) -> Iterator[str]:
    shard = open_shard(store, entry)
    index = shard.overlap
    for texts in (index.dictionary.texts, shard.names.tables, shard.names.labels):
        require_sound(texts)
    wrong = [*check_overlap(index), *_check_names(shard, tables)]
    counts = (index.n_sets, len(index.list_sets), index.n_tokens)
    wrong += TOKEN_SETS_PART.wrong_counts(shard.folder, entry, counts)
    yield from wrong or _check_labels(shard, columns)
    missing = set(parts_of(store)) & set(TOKEN_SETS_PART.choices) - set(shard.parts)
    if missing:
        yield f"It has no {' and '.join(sorted(missing))}, which the index is to have."
    if not wrong and "containment" in shard.parts and shard.bands is not None:
        yield from check_ensemble(shard.bands)


def _check_names(shard: Shard, tables: pa.Array) -> Iterator[str]:
    names, n_sets = shard.names, shard.overlap.n_sets
    if not np.array_equal(shard.overlap.ids, np.arange(n_sets)):
        yield "ids: sets of a shard must be numbered from 0."
    for name, length in (("labels", len(names.labels)), ("positions", len(shard.positions))):
        if length != n_sets:
            yield f"{name}: it is of {length:,} columns, and there are {n_sets:,}."
            return
    if names.tables.null_count or names.labels.null_count:
        yield "tables, labels: a name is missing."
        return
    for start in range(0, n_sets - 1, _CHUNK):
        table, label = (texts.slice(start, _CHUNK + 1) for texts in (names.tables, names.labels))
        same = pc.equal(table[:-1], table[1:])
        rises = pc.or_(
            pc.less(table[:-1], table[1:]), pc.and_(same, pc.less(label[:-1], label[1:]))
        )
        if not pc.all(rises).as_py():
            yield "tables, labels: columns must be distinct and sorted."
            return
    held = np.setdiff1d(np.arange(n_sets), shard.deleted)
    yield from unlisted("It has columns", names.tables.take(pa.array(held)), tables)


def _check_labels(shard: Shard, columns: pa.Table) -> Iterator[str]:
    """Hold the labels of the columns that are not deleted against the catalog's."""
    names, held = shard.names, np.setdiff1d(np.arange(shard.overlap.n_sets), shard.deleted)
    held_names = {
        name: take_texts(texts, held).cast(pa.string())
        for name, texts in (("table", names.tables), ("told", names.labels))
    }
    held_columns = pa.table(
        {**held_names, "position": pa.array(np.asarray(shard.positions)[held]).cast(pa.int64())}
    )
    listed = columns.set_column(1, "position", columns["position"].cast(pa.int64()))
    both = held_columns.join(listed, ["table", "position"], join_type="inner")
    n_wrong = pc.sum(pc.not_equal(both["told"], both["label"]).fill_null(False)).as_py() or 0
    n_unknown = len(held_columns) - len(both)
    if n_wrong or n_unknown:
        yield f"It names {n_wrong + n_unknown:,} columns by another label than the catalog."


def check_ensemble(index: Ensemble) -> list[str]:
    """Look through an index; O(s m log s) time, and memory for a few numbers a set or a token."""
    problems = _rows(index)
    if not problems:
        problems = [*_tables(index), *_sizes(index)]
    return [f"The index for containment search: {sentence}" for sentence in problems]


def _rows(index: Ensemble) -> list[str]:
    sets, sizes = np.asarray(index.sets), np.asarray(index.sizes)
    problems = []
    if len(sizes) and (sizes[0] < 1 or (np.diff(sizes) < 0).any()):
        problems.append("sizes of sets must be at least 1 and never sink.")
    if len(sets) and (sets.min() < 0 or len(distinct_numbers(sets)) < len(sets)):
        problems.append("ids of sets must be at least 0, and each stand there once.")
    if not problems and len(index.starts) > 1:
        lasts = sizes[index.starts[1:-1] - 1]
        if (lasts >= sizes[index.starts[1:-1]]).any():
            problems.append("partitions must be ranges of sizes that lie apart.")
    return problems


def _tables(index: Ensemble) -> list[str]:
    rows = np.arange(len(index))
    for position in range(index.options.permutations):
        values, sets = (
            np.asarray(index.tables.values[position]),
            np.asarray(index.tables.sets[position]),
        )
        if not np.array_equal(np.sort(sets), rows):
            return [f"table {position} must name each row once."]
        keys = (values.astype(np.uint64) << np.uint64(32)) | sets.astype(np.uint64)
        if (keys[1:] <= keys[:-1]).any() or not np.array_equal(
            index.signatures[sets, position], values
        ):
            return [f"table {position} does not hold the values of signatures in their order."]
    return []


def _sizes(index: Ensemble) -> list[str]:
    if len(index) and index.sets.max() >= index.lists.n_sets:
        return ["it has ids of sets that its posting lists do not have."]
    same = np.array_equal(index.lists.sizes_of(np.asarray(index.sets)), index.sizes)
    return [] if same else ["its sizes of sets are not those of its posting lists."]
