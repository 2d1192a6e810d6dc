"""Shards of rows looked through: what `pexeso check` tells of the part for composite keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.base import problems_of
from pexeso.composite.part.open import COUNTS, RowShard, open_row_shard, row_shard_entries
from pexeso.errors import IndexCorruptError
from pexeso.lake.catalog import Catalog
from pexeso.store.files import read_document
from pexeso.store.integrity import Problem
from pexeso.store.local.reader import Store
from pexeso.store.local.target import META
from pexeso.store.manifest import FolderEntry
from pexeso.store.paths import MANIFEST
from pexeso.store.texts import require_sound


def check(store: Store, progress: Callable[[int, int], None] | None = None) -> list[Problem]:
    """Return the problems in the contents of the rows of an index.

    The bytes of the index must be as they were written.

    Notes
    -----
    One shard at a time is held: what `pexeso.composite.row_keys.faults_within` says. Beside it the
    names of the catalog's tables.
    """
    if not row_shard_entries(store):
        return []
    try:
        listed = Catalog(store.catalog_files).tables(["table"])["table"].combine_chunks()
    except IndexCorruptError as error:
        return [Problem(MANIFEST, "content", str(error))]
    return problems_of(
        store, row_shard_entries(store), lambda entry: _check_shard(store, entry, listed)
    )


def _check_shard(store: Store, entry: FolderEntry, listed: pa.Array) -> Iterator[str]:
    from pexeso.composite.row_keys import faults_within

    shard = open_row_shard(store, entry)
    yield from faults_within(shard.rows)
    for texts in (shard.tables, shard.columns):
        require_sound(texts)
        if texts.null_count:
            yield "the name of a table or a column is missing."
            return
    if pc.any(pc.greater_equal(shard.tables[:-1], shard.tables[1:])).as_py():
        yield "tables must be distinct and sorted."
    yield from _check_counts(shard, entry, read_document(shard.folder / META))
    held = np.setdiff1d(np.arange(len(shard.tables)), shard.deleted)
    held_tables = shard.tables.take(pa.array(held)).cast(pa.string())
    n_unknown = len(held_tables) - (pc.sum(pc.is_in(held_tables, value_set=listed)).as_py() or 0)
    if n_unknown:
        yield f"it has rows of {n_unknown:,} tables that the catalog does not list."


def _check_counts(shard: RowShard, entry: FolderEntry, document: object) -> Iterator[str]:
    rows = shard.rows
    numbers = (rows.n_tables, rows.n_rows, len(rows.cells), len(rows.values))
    for where, facts in (
        (MANIFEST, entry.facts),
        (META, document if isinstance(document, dict) else {}),
    ):
        for name, number in zip(COUNTS, numbers, strict=True):
            if facts.get(name) != number:
                yield f"{where} tells of {facts.get(name)!r} {name}, and there are {number:,}."
