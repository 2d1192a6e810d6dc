"""Append: the tables of a lake that are new or have changed, added to an index.

What is new is written beside what is there, and is one commit of the manifest. Column ids go on
from the highest ever given; a table that changed is a removed one and a new one. What updates leave
behind, `pexeso.build.compact` clears away.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from pexeso.build.build import workers_for
from pexeso.build.job import BuildJob, build_bar, ids_of
from pexeso.build.lake_source.changes import (
    CHANGED,
    CLOSED,
    GONE,
    NEW,
    READ_ONCE_BACK,
    REPLACED,
    REREAD,
    UNCHANGED,
    find_changes,
    names_of,
    stale_formats,
)
from pexeso.build.lake_source.source import LISTING, SKIPPED, SPARK_PREFIX, FolderSource, source_of
from pexeso.build.recorded import options_of
from pexeso.build.report import Update, folder_counts
from pexeso.build.stages import Facts
from pexeso.errors import InputError, LakeError
from pexeso.lake.containers.formats import READERS
from pexeso.runtime.progress import with_bar
from pexeso.store.id_ranges import merge_ranges, ranges_of
from pexeso.store.io.location import Location
from pexeso.store.local.reader import Store
from pexeso.store.opening import open_store_anywhere, open_writer


@with_bar(build_bar)
def append(
    path: str | os.PathLike[str] | Location,
    lake: str | os.PathLike[str] | None = None,
    *,
    delete_missing: bool = False,
    compare: str = "modified",
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Update:
    """Add the tables of a lake that are new or have changed since the index was last written.

    Costs a listing of the lake and of the catalog, and beyond that only what is new: it is read,
    embedded with the index's own model and written as partitions of its own.

    Parameters
    ----------
    path : path, URL or Place
        The index.
    lake : path, optional
        Where the lake is now; by default where it was. A place with none of the tables of the
        index is refused.
    delete_missing : bool
        Delete the tables whose files are gone. Those in a folder or file that is there and cannot
        be opened stay.
    compare : {"modified", "content"}
        A file of the same size and time of change (and version, where its storage has one) is the
        same; with ``"content"`` every file of the same size is read, and compared by its
        fingerprint. One whose time alone differs is always compared by its fingerprint. Tables of
        a format that pexeso reads in another way than when they were indexed are all read again.
    master, conf, progress
        See `pexeso.build_index`.

    Returns
    -------
    Update

    Raises
    ------
    StoredIndexError, LakeError, OutputError, SparkError, EmbedderError
        See `pexeso.errors`. The index is as it was then.
    """
    if compare not in ("modified", "content"):
        raise InputError(f"compare must be 'modified' or 'content'. Got {compare!r}.")
    store = open_store_anywhere(path)
    source = require_files(store, lake)
    request = {
        "lake": source.name,
        "delete_missing": delete_missing,
        "compare": compare,
        "readers": READERS,
    }
    with open_writer(
        path, update=True, purpose=f"append {json.dumps(request, sort_keys=True)}"
    ) as writer:
        store = open_store_anywhere(path)  # the one that the writer locked
        with workers_for(source, writer, master, conf) as workers:
            job = BuildJob(
                writer, options_of(store), store=store, workers=workers, progress=progress
            )
            return _append(job, source, delete_missing, compare)


def require_files(store: Store, lake: Any) -> FolderSource:
    """Return the files that an index was built of, or those that are in their place now."""
    named = store.manifest.facts["lake"]
    source = (
        None
        if lake is None and named.startswith(SPARK_PREFIX)
        else source_of(named if lake is None else lake)
    )
    if source is None or not source.is_files:
        raise LakeError(
            f"What has changed in Spark tables ('{named if source is None else source.name}') "
            "cannot be told: build the index again, over this one "
            "(overwrite=True, --overwrite)."
        )
    return source


def _append(job: BuildJob, source: FolderSource, delete_missing: bool, compare: str) -> Update:
    store = job.index
    listing = job.list_tables(source)
    if not listing["tables"] and delete_missing:
        job.writer.keep = False
        raise LakeError(
            f"There is no table in '{source.name}', so every table of '{store.path}' would be "
            "deleted. Delete the index instead."
        )
    changes = job.stage(
        "changes", lambda folder, meter: find_changes(job, source, folder, compare=compare)
    )
    _require_same_lake(job, source, changes)
    removed = names_of(job, (*REPLACED, *([GONE] if delete_missing else [])))
    counts = {
        "new": changes[NEW],
        "changed": changes[CHANGED],
        "reread": changes[REREAD],
        "deleted": changes[GONE] if delete_missing else 0,
        "missing": 0 if delete_missing else changes[GONE],
        "unchanged": changes[UNCHANGED],
        "closed": changes[CLOSED],
    }
    if not changes["rows"] and not len(removed) and source.name == store.manifest.facts["lake"]:
        job.writer.keep = False
        job.tell("commit")
        return Update(store.manifest.generation, False, **counts, of_parts=folder_counts())
    first_id = job.next_column()
    job.read(source, job.stages.folder("changes") / LISTING, changes.get("bytes"))
    added = job.write_catalog(first_id, job.stages.folder("changes") / SKIPPED)
    skipped, written = job.left_out(), job.write_parts()
    removed_ids = ids_of(store, removed)
    away = set(names_of(job, (GONE, CLOSED)).to_pylist()).difference(removed.to_pylist())
    if not stale_formats(store):
        away &= set(store.manifest.facts.get(READ_ONCE_BACK, ()))
    manifest = job.commit(
        {part.name: part.delete(store, removed) for part in job.parts},
        written,
        facts={
            "lake": source.name,
            "next_column": first_id + added["columns"],
            "readers": READERS,
            READ_ONCE_BACK: sorted(away),
        },
        removed=removed,
        deleted=merge_ranges(store.manifest.deleted_columns, ranges_of(removed_ids)),
    )
    return Update(
        manifest.generation,
        True,
        **counts,
        columns_added=added["columns"],
        columns_deleted=len(removed_ids),
        left_out=skipped,
        of_parts=folder_counts({name: output.folders for name, output in written.items()}),
    )


def _require_same_lake(job: BuildJob, source: FolderSource, changes: Facts) -> None:
    """Refuse another place that has none of the tables of the index.

    With it for its lake, the index would find tables that nothing can be joined with.
    """
    before = job.index.manifest.facts["lake"]
    has_tables = any(changes[kind] for kind in (CHANGED, REREAD, UNCHANGED, CLOSED))
    if source.name == before or has_tables or not changes[GONE]:
        return
    job.writer.keep = False
    raise LakeError(
        f"The lake of '{job.index.path}' cannot have moved to '{source.name}', which has none of "
        f"the {changes[GONE]:,} tables of the index. To add tables, put them into '{before}' and "
        "append without naming a lake, or build an index of their own."
    )
