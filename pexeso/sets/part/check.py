"""Shards looked through: what `pexeso check` tells of the parts for equal text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.base import parts_of, problems_of
from pexeso.build.parts.shards import count_unknown
from pexeso.errors import IndexCorruptError, InputError
from pexeso.lake.catalog import Catalog
from pexeso.registry import require_parts
from pexeso.sets.overlap.saving import check_overlap
from pexeso.sets.part import TOKEN_SETS_PART
from pexeso.sets.part.open import Shard, open_shard
from pexeso.store.integrity import Problem
from pexeso.store.local.reader import Store
from pexeso.store.manifest import MANIFEST, FolderEntry
from pexeso.store.texts import require_sound, take_texts

if TYPE_CHECKING:
    from pexeso.sets.containment.ensemble import Ensemble

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
    n_unknown = count_unknown(names.tables.take(pa.array(held)), tables)
    if n_unknown:
        yield f"It has columns of {n_unknown:,} tables that the catalog does not list."


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
    if len(sets) and (sets.min() < 0 or len(np.unique(sets)) < len(sets)):
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
