"""Deletion of tables from an index, without Spark.

Searches no longer find the tables; `pexeso.build.compact` removes their data.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.job import BuildJob, ids_of
from pexeso.build.recorded import options_of
from pexeso.build.report import Update, folder_counts
from pexeso.errors import InputError
from pexeso.lake.catalog import Catalog
from pexeso.runtime.formatting import shown
from pexeso.store.id_ranges import merge_ranges, ranges_of
from pexeso.store.io.location import Location
from pexeso.store.local.build_lock import some_names
from pexeso.store.local.reader import Store
from pexeso.store.opening import open_store_anywhere, open_writer


def delete(path: str | os.PathLike[str] | Location, tables: Iterable[str]) -> Update:
    """Delete tables from an index; their files in the lake are not touched.

    The columns are no longer found from the commit on; `compact` removes their data. Takes no
    Spark, and reads the catalog only.

    Parameters
    ----------
    path : path, URL or Place
        The index.
    tables : iterable of str
        Names, as search prints them; that of a file will do where it holds one table.

    Returns
    -------
    Update

    Raises
    ------
    InputError
        The index has no such table; nothing is deleted then.
    StoredIndexError, OutputError
        See `pexeso.errors`.
    """
    names = _table_names(tables)
    open_store_anywhere(path)  # a damaged one is told as such, not as one to be overwritten
    with open_writer(path, update=True) as writer:
        store = open_store_anywhere(path)
        catalog = Catalog(store.catalog_files)
        requested = pa.array(sorted(set(map(catalog.named, names))), pa.string())
        known = catalog.tables(["table"], among=requested)["table"]
        unknown = requested.filter(pc.invert(pc.is_in(requested, value_set=known.combine_chunks())))
        if len(unknown):
            raise InputError(_unknown(store, unknown.to_pylist()))
        if not len(requested):
            return Update(store.manifest.generation, False, of_parts=folder_counts())
        job = BuildJob(writer, options_of(store), store=store)
        removed_ids = ids_of(store, requested)
        manifest = job.commit(
            {part.name: part.delete(store, requested) for part in job.parts},
            {},
            facts={"next_column": job.next_column()},
            removed=requested,
            deleted=merge_ranges(store.manifest.deleted_columns, ranges_of(removed_ids)),
        )
    return Update(
        manifest.generation,
        True,
        deleted=len(requested),
        columns_deleted=len(removed_ids),
        of_parts=folder_counts(),
    )


def _table_names(tables: Any) -> set[str]:
    names = [None] if isinstance(tables, str) or not isinstance(tables, Iterable) else list(tables)
    if not all(isinstance(name, str) for name in names):
        raise InputError(
            f'delete takes a list of names of tables, such as ["a.csv"]. Got {shown(tables)} '
            "instead. Nothing was deleted."
        )
    return set(names)


def _unknown(store: Store, names: list[str]) -> str:
    return (
        f"The index '{store.path}' has no table {some_names(names)}. Tables are named by their "
        "path relative to "
        f"'{store.manifest.facts['lake']}', as search prints them. Nothing was deleted."
    )
