"""An index as a reader with restricted rights has it: what is hidden counts as deleted.

Every answer leaves out what was deleted, whichever part of the index it comes from. So columns that
may not be seen are taken for deleted ones, and the catalog is read from a copy without them.
"""

from __future__ import annotations

import os
import weakref
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.metadata import models_of, options_of
from pexeso.lake.catalog import COLUMNS, TABLES, Catalog, write_rows
from pexeso.lake.rights import Rights, rights
from pexeso.registry import requested_parts
from pexeso.runtime.ranges import merge_ranges, ranges_of
from pexeso.store.io.location import Location
from pexeso.store.io.temporary import temporary_folder
from pexeso.store.local.reader import Store
from pexeso.store.opening import open_store_anywhere


def open_visible(
    path: str | os.PathLike[str] | Location, *, keep_files: bool = False, visible: Any = None
) -> Store:
    """Open an index to be read; all that answers from an index opens it so.

    visible: what may be seen besides what this process may; see `pexeso.open_index`.
    """
    store, chosen = open_store_anywhere(path, keep_files=keep_files), rights(visible)
    return store if chosen is None else _restricted(store, chosen)


class _CatalogCopy:
    """A folder that lasts as long as a store has it."""

    def __init__(self) -> None:
        with ExitStack() as stack:
            self.name = os.fspath(stack.enter_context(temporary_folder("pexeso-catalog-")))
            weakref.finalize(self, stack.pop_all().close)


def _restricted(store: Store, chosen: Rights) -> Store:
    from pexeso.build.changes import READ_ONCE_BACK  # brings what updates alone need

    catalog, manifest = Catalog(store.catalog_files), store.manifest
    tables, columns = catalog.tables(), catalog.columns()
    names = zip(columns["table"].to_pylist(), columns["label"].to_pylist(), strict=True)
    is_seen = pa.array([chosen.sees(table, label) for table, label in names], pa.bool_())
    hidden = columns.filter(pc.invert(is_seen))
    of_tables = pc.is_in(tables["table"], value_set=pa.array([*chosen.tables], pa.string()))
    hidden_tables = tables["table"].filter(pc.invert(of_tables)).combine_chunks()
    # Notes name columns.
    is_whole = pc.invert(pc.is_in(tables["table"], value_set=hidden["table"].combine_chunks()))
    no_notes = pa.array([[]] * len(tables), tables["notes"].type)
    notes = pc.if_else(is_whole, tables["notes"].combine_chunks(), no_notes)
    tables = tables.set_column(
        tables.column_names.index("notes"), tables.schema.field("notes"), notes
    )
    pairs = [(row["table"], row["label"]) for row in hidden.select(["table", "label"]).to_pylist()]
    parts = requested_parts(options_of(store).parts, len(models_of(manifest)))
    deleted = ranges_of(hidden["column_id"].drop_null().sort().to_numpy())
    folder = _CatalogCopy()
    write_rows(folder.name, TABLES, tables.filter(of_tables).sort_by("table"))
    order = [(name, "ascending") for name in ("table", "name", "position")]
    write_rows(folder.name, COLUMNS, columns.filter(is_seen).sort_by(order))
    facts = {name: fact for name, fact in manifest.facts.items() if name != READ_ONCE_BACK}
    manifest = replace(
        manifest,
        facts=facts,
        parts={
            **manifest.parts,
            **{part.name: part.delete(store, hidden_tables, pairs) for part in parts},
        },
        deleted_columns=merge_ranges(manifest.deleted_columns, deleted),
    )
    return replace(store, manifest=manifest, catalog=folder, rights=chosen)
