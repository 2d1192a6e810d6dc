"""Updates of an index: tables appended and deleted, partitions compacted, parts and models added.

What is new is written next to what exists, and is one commit of the manifest. Column ids go on from
the highest ever given; a table that changed is a removed one and a new one. Searches no longer find
what was deleted; a compaction removes its data.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from embed.registry import check_model
from pexeso.build.catalog_writer import read_record_files, rewrite_sorted
from pexeso.build.changes import (
    CHANGED,
    CLOSED,
    GONE,
    NEW,
    NO_TABLE,
    READ_ONCE_BACK,
    REPLACED,
    REREAD,
    UNCHANGED,
    find_changes,
    names_of,
    stale_formats,
)
from pexeso.build.job import AUTO, BuildJob, build_bar, ids_of, workers_for
from pexeso.build.parts.base import OfParts
from pexeso.build.parts.metadata import models_of, options_of, stale_models
from pexeso.build.report import Update, folder_counts
from pexeso.build.source import LISTING, SKIPPED, SPARK_PREFIX, FolderSource, source_of
from pexeso.build.workers import Facts
from pexeso.errors import InputError, LakeError
from pexeso.lake.catalog import Catalog
from pexeso.lake.containers.formats import READERS
from pexeso.options import BuildOptions
from pexeso.registry import MAX_MODELS, model_names, requested_parts, require_parts
from pexeso.runtime.formatting import listed_names, shown
from pexeso.runtime.progress import with_bar
from pexeso.runtime.ranges import merge_ranges, ranges_of
from pexeso.store.io.location import Location
from pexeso.store.local.reader import Store
from pexeso.store.manifest import Manifest
from pexeso.store.opening import open_store_anywhere, open_writer


@with_bar(build_bar)
def append(
    path: str | os.PathLike[str] | Location,
    lake: str | os.PathLike[str] | None = None,
    *,
    delete_missing: bool = False,
    compare: str = "modified",
    engine: str = AUTO,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Update:
    """Add the tables of a lake that are new or have changed since the index was last written.

    Costs a listing of the lake and of the catalog, and beyond that only what is new: it is read,
    embedded with the index's own model and written as partitions of its own.

    Parameters
    ----------
    lake : path, optional
        Where the lake is now; by default where it was. A place with none of the tables of the
        index is refused.
    delete_missing : bool
        Delete the tables whose files are gone. Those in an existing folder or file that cannot
        be opened stay.
    compare : {"modified", "content"}
        A file of the same size and time of change (and version, where its storage has one) is the
        same; with ``"content"`` every file of the same size is read, and compared by its
        fingerprint. One whose time alone differs is always compared by its fingerprint. Tables of
        a format that pexeso reads in another way than when they were indexed are all read again.
    engine, master, conf, progress
        See `pexeso.build_index`.

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
    purpose = f"append {json.dumps(request, sort_keys=True)}"
    with open_writer(path, update=True, purpose=purpose) as writer:
        store = open_store_anywhere(path)  # the one that the writer locked
        with workers_for(source, writer, engine, master, conf) as workers:
            options = options_of(store)
            job = BuildJob(writer, options, store=store, workers=workers, progress=progress)
            return _append(job, source, delete_missing, compare)


def require_files(store: Store, lake: Any) -> FolderSource:
    """Return the files that an index was built of, or those that are in their place now."""
    named = store.manifest.facts["lake"]
    source = None
    if lake is not None or not named.startswith(SPARK_PREFIX):
        source = source_of(named if lake is None else lake, options_of(store))
    if source is None or not source.is_files:
        raise LakeError(
            f"What has changed in Spark tables ('{named if source is None else source.name}') "
            "cannot be told: build the index again, over this one "
            "(overwrite=True, --overwrite)."
        )
    return source


def _append(job: BuildJob, source: FolderSource, delete_missing: bool, compare: str) -> Update:
    store = job.index
    # Files that are to be read, or whose readers have changed, are opened for what they hold now.
    opens_files = compare == "content" or stale_formats(store)
    listing = job.list_tables(source, None if opens_files else store)
    if not listing["tables"] and delete_missing:
        job.writer.keep = False
        raise LakeError(
            f"There is no table in '{source.name}', so every table of '{store.path}' would be "
            "deleted. Delete the index instead."
        )
    find = partial(find_changes, job, source, compare=compare)
    changes = job.stage("changes", find)
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
    job.read(source, job.stages.folder("changes") / LISTING, changes["bytes"])
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
        of_parts=folder_counts(written),
    )


def _require_same_lake(job: BuildJob, source: FolderSource, changes: Facts) -> None:
    """Refuse another place that has none of the tables of the index."""
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


def delete(path: str | os.PathLike[str] | Location, tables: Iterable[str]) -> Update:
    """Delete tables from an index; their files in the lake are not touched.

    The columns are no longer found from the commit on; `compact` removes their data. Takes no
    Spark, and reads the catalog only.

    Parameters
    ----------
    tables : iterable of str
        Names, as search prints them; that of a file will do where it holds one table.

    Raises
    ------
    InputError
        The index has no such table; nothing is deleted then.
    StoredIndexError, OutputError
        See `pexeso.errors`.
    """
    names = [None] if isinstance(tables, str) or not isinstance(tables, Iterable) else list(tables)
    if not all(isinstance(name, str) for name in names):
        raise InputError(
            f'delete takes a list of names of tables, such as ["a.csv"]. Got {shown(tables)} '
            "instead. Nothing was deleted."
        )
    open_store_anywhere(path)  # a damaged one is refused as such, not as one to be overwritten
    with open_writer(path, update=True) as writer:
        store = open_store_anywhere(path)
        catalog = Catalog(store.catalog_files)
        requested = pa.array(sorted(set(map(catalog.named, names))), pa.string())
        known = catalog.tables(["table"], among=requested)["table"]
        unknown = requested.filter(pc.invert(pc.is_in(requested, value_set=known.combine_chunks())))
        if len(unknown):
            raise InputError(
                f"The index '{store.path}' has no table {listed_names(unknown.to_pylist(), 3)}. "
                "Tables are named by their path relative to "
                f"'{store.manifest.facts['lake']}', as search prints them. Nothing was deleted."
            )
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


@with_bar(build_bar)
def compact(
    path: str | os.PathLike[str] | Location,
    *,
    everything: bool = False,
    engine: str = AUTO,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Update:
    """Rewrite partitions that updates left small or full of deleted columns.

    The catalog is brought into one folder. Nothing is read from the lake.

    Models that weigh words by how rare they are (lexical, hashing) keep the weights of the build
    through all appends and deletions; here words are counted again over the columns that hold, and
    where that changes a weight, all partitions of the model are rewritten. Answers are those of
    a fresh build then. Of other models nothing is embedded again, and answers stay the same.

    Parameters
    ----------
    everything : bool
        Repartition all columns. Otherwise only partitions of which more than a fifth of the columns
        is deleted are rewritten, and those of less than half of ``partition_bytes`` where there is
        more than one.
    engine, master, conf, progress
        See `pexeso.build_index`.

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
        with workers_for(None, writer, engine, master, conf) as workers:
            job.workers = workers
            rewrite_catalog(job)
            written = {part.name: part.rewrite(job, chosen[part.name]) for part in job.parts}
            for name, output in written.items():
                if output.replaced is not None:
                    chosen[name] = list(output.replaced)
            remaining = {
                name: [entry for n, entry in enumerate(folders.get(name, ())) if n not in numbers]
                for name, numbers in chosen.items()
            }
            deleted = merge_ranges(*(output.deleted for output in written.values()))
            facts = {"next_column": job.next_column()}
            manifest = job.commit(remaining, written, facts=facts, deleted=deleted)
    return Update(manifest.generation, True, of_parts=folder_counts(written, chosen))


def rewrite_catalog(job: BuildJob) -> None:
    catalog = job.writer.catalog_folder
    job.stage("catalog", partial(rewrite_sorted, job.workers, job.index.catalog_files, catalog))


@dataclass(frozen=True, repr=False)
class Added(OfParts):
    """What adding parts did.

    Attributes
    ----------
    generation : int
        Of the index now in place.
    committed : bool
        False where the index has them.
    parts : tuple of str
        Those that the index has now.
    left_out : int
        Tables of the index that are not in its new parts yet, since their files have changed, are
        read in another way now, or are gone: the next append adds what there is, and a later one
        those that come back.
    of_parts : dict
        What the parts hold; of token sets ``columns``, as sets, their distinct ``tokens`` (counted
        in each shard), and (column, token) ``pairs``.
    """

    generation: int
    committed: bool
    parts: tuple[str, ...]
    left_out: int = 0


@with_bar(build_bar)
def add_parts(
    path: str | os.PathLike[str] | Location,
    parts: Iterable[str],
    *,
    engine: str = AUTO,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Added:
    """Add parts to an index.

    Existing parts stay as they are, and later updates keep the new parts up to date.

    New parts are made of the tables that the index lists, whose files are read again; what rests on
    an existing part (signatures on token sets) of that.

    Parameters
    ----------
    parts
        Of `pexeso.registry.choices`.
    engine, master, conf, progress
        See `pexeso.build_index`.

    Raises
    ------
    StoredIndexError, LakeError, OutputError, SparkError
        See `pexeso.errors`. The index is as it was then.
    """
    requested = require_parts(parts)
    with open_writer(path, update=True, purpose=f"add {json.dumps(requested)}") as writer:
        store = open_store_anywhere(path)
        options = options_of(store)
        every = require_parts([*options.parts, *requested])
        if every == options.parts:
            return _added(requested, every, store.manifest, committed=False)
        had = requested_parts(options.parts, len(options.models))
        new = [part for part in requested_parts(every, len(options.models)) if part not in had]
        more = [
            part
            for part in had
            if set(part.choices) & set(every) > set(part.choices) & set(options.parts)
        ]
        source = require_files(store, None) if new else None
        with workers_for(source, writer, engine, master, conf) as workers:
            options = replace(options, parts=every)
            job = BuildJob(writer, options, store=store, workers=workers, progress=progress)
            left_out = [] if source is None else _read_again(job, source)
            written = {
                part.name: part.rewrite(job, range(len(store.manifest.parts[part.name])))
                for part in more
            }
            written |= {part.name: part.write(job) for part in new}
            known = store.manifest.facts.get(READ_ONCE_BACK, ())
            manifest = job.commit(
                {name: [] for name in written},
                written,
                facts={READ_ONCE_BACK: sorted({*known, *left_out})},
                removed=pa.array([], pa.string()),
            )
    return _added(requested, every, manifest, left_out=len(left_out))


def _read_again(job: BuildJob, source: FolderSource) -> list[str]:
    """Read the unchanged files of the lake again; return the indexed tables that are left out."""
    job.list_tables(source)
    find = partial(find_changes, job, source, compare="modified", to_read=(UNCHANGED,))
    changes = job.stage("changes", find)
    job.read(source, job.stages.folder("changes") / LISTING, changes["bytes"])
    tables = read_record_files(job.record_files("table"), ["table", "reason"])
    no_table = tables["table"].filter(tables["reason"].is_valid())
    was_table = Catalog(job.index.catalog_files).tables(
        ["table", "reason"], among=no_table.combine_chunks()
    )
    unread = was_table.filter(was_table["reason"].is_null())["table"]
    missing = names_of(job, (CHANGED, REREAD, NO_TABLE, GONE, CLOSED))
    return [*missing.to_pylist(), *unread.to_pylist()]


def _added(
    requested: tuple[str, ...],
    parts: tuple[str, ...],
    manifest: Manifest,
    *,
    committed: bool = True,
    left_out: int = 0,
) -> Added:
    totals: dict[str, int] = {}
    for part in requested_parts(requested):
        totals |= part.totals(manifest.parts.get(part.name, ()))
    return Added(manifest.generation, committed, parts, left_out, of_parts=totals)


@with_bar(build_bar)
def add_model(
    path: str | os.PathLike[str] | Location,
    model: str,
    *,
    dimensions: int | None = None,
    value_vectors: str | None = None,
    engine: str = AUTO,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Update:
    """Add a model to an index, or several with commas between them.

    Answers are those of an index that was built with all of them; those of its present models stay.
    The tables that the new models know are those that the index lists, whatever has become of their
    files. Later updates keep all models up to date.

    Parameters
    ----------
    model, dimensions, value_vectors
        Of the new models; see `pexeso.options.BuildOptions`. Their metric and the map of their
        filters are those that the index was built with.
    engine, master, conf, progress
        See `pexeso.build_index`.

    Raises
    ------
    InputError
        The index holds the model already, would hold more than it can, or lacks values that the
        models it holds know nothing about.
    StoredIndexError, OutputError, SparkError, EmbedderError, MissingPackageError
        See `pexeso.errors`. The index is as it was then.
    """
    settings = {"model": model, "dimensions": dimensions, "value_vectors": value_vectors}
    BuildOptions(**settings)  # refuses what no model can be given
    for name in model_names(model):
        check_model(name)
    purpose = f"add model {json.dumps(settings, sort_keys=True)}"
    with open_writer(path, update=True, purpose=purpose) as writer:
        store = open_store_anywhere(path)
        models = (*models_of(store.manifest), *model_names(model))
        _require_room(store, models)
        options = replace(
            options_of(store),
            model=",".join(models),
            dimensions=dimensions,
            value_vectors=value_vectors,
        )
        with workers_for(None, writer, engine, master, conf) as workers:
            job = BuildJob(writer, options, store=store, workers=workers, progress=progress)
            # Folders of an index are kept as they are, so the models there are copied to a new one.
            shutil.copytree(store.embedder_folder, writer.embedder_folder, dirs_exist_ok=True)
            rewrite_catalog(job)
            written = {
                part.name: part.write(job)
                for part in job.parts
                if job.makes_model(getattr(part, "model", 0))
            }
            manifest = job.commit({}, written)
    return Update(manifest.generation, True, of_parts=folder_counts(written))


def _require_room(store: Store, models: tuple[str, ...]) -> None:
    if len(set(models)) < len(models):
        raise InputError(
            f"The index '{store.path}' holds the models {', '.join(models_of(store.manifest))}. "
            f"Got the model {next(name for name in models if models.count(name) > 1)!r} to be "
            "added: name one that it does not hold, or build the index again to make this one anew."
        )
    if len(models) > MAX_MODELS:
        raise InputError(
            f"An index can hold at most {MAX_MODELS} models, and '{store.path}' would hold "
            f"{', '.join(models)}. Leave some out, or build another index."
        )
