"""Compaction: rewrites folders that updates left small or full of deleted columns.

The new folders are made from the contents of the old ones.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from pexeso.build import in_driver
from pexeso.build.build import workers_for
from pexeso.build.job import BuildJob, build_bar
from pexeso.build.lake_source.changes import live_rows
from pexeso.build.numbering import write_numbered, write_tables
from pexeso.build.parts.models import stale_models
from pexeso.build.recorded import options_of
from pexeso.build.report import Update, folder_counts
from pexeso.lake.catalog import COLUMNS, TABLES, Catalog
from pexeso.runtime.progress import with_bar
from pexeso.store.id_ranges import merge_ranges
from pexeso.store.io.location import Location
from pexeso.store.opening import open_store_anywhere, open_writer


@with_bar(build_bar)
def compact(
    path: str | os.PathLike[str] | Location,
    *,
    everything: bool = False,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Update:
    """Rewrite partitions that updates left small or full of deleted columns.

    The catalog is brought into one folder. Nothing is read from the lake.

    Models that weigh words by how rare they are (lexical, hashing) keep the weights of the build
    through all appends and deletions; here words are counted again over the columns that hold, and
    where that changes a weight, all partitions of the model are written anew. Answers are those of
    a fresh build then. Of other models nothing is embedded again, and answers stay the same.

    Parameters
    ----------
    path : path, URL or Place
        The index.
    everything : bool
        Repartition all columns. Otherwise only partitions of which more than a fifth of the columns
        is deleted are rewritten, and those of less than half of ``partition_bytes`` where there is
        more than one.
    master, conf, progress
        See `pexeso.build_index`.

    Returns
    -------
    Update

    Raises
    ------
    StoredIndexError, OutputError, SparkError
        See `pexeso.errors`. The index is as it was then.
    """
    purpose = f"compact {json.dumps({'everything': everything})}"
    with open_writer(path, update=True, purpose=purpose) as writer:
        store = open_store_anywhere(path)
        options, folders = options_of(store), store.manifest.parts
        job = BuildJob(writer, options, store=store, progress=progress)
        chosen = {
            part.name: list(range(len(folders.get(part.name, ()))))
            if everything
            else part.worn(store, options)
            for part in job.parts
        }
        is_clean = not any(chosen.values()) and len(store.manifest.catalogs) == 1
        if is_clean and not stale_models(store):
            return Update(store.manifest.generation, False, of_parts=folder_counts())
        with workers_for(None, writer, master, conf) as workers:
            job.workers = workers
            job.stage("catalog", lambda folder, meter: rewrite_catalog(job))
            written = {part.name: part.rewrite(job, chosen[part.name]) for part in job.parts}
            for name, output in written.items():
                if output.replaced is not None:
                    chosen[name] = list(output.replaced)
            remaining = {
                name: [
                    entry
                    for number, entry in enumerate(folders.get(name, ()))
                    if number not in set(numbers)
                ]
                for name, numbers in chosen.items()
            }
            deleted = merge_ranges(*(output.deleted for output in written.values()))
            facts = {"next_column": job.next_column()}
            manifest = job.commit(remaining, written, facts=facts, deleted=deleted)
    added = {name: output.folders for name, output in written.items()}
    return Update(manifest.generation, True, of_parts=folder_counts(added, chosen))


def rewrite_catalog(job: BuildJob) -> dict[str, Any]:
    """Write all of the catalog that holds as one folder."""
    job.empty_catalog()
    if in_driver.catalog_fits(job.index, TABLES, COLUMNS):
        catalog = Catalog(job.index.catalog_files)
        tables, columns = catalog.tables(), catalog.columns()
    else:
        tables, columns = (live_rows(job.spark, job.index, kind) for kind in (TABLES, COLUMNS))
    write_tables(tables, job.writer.catalog_folder)
    write_numbered(columns, job.writer.catalog_folder)
    return {}
