"""Addition of parts to an index that lacks some or all of them.

The tables that the index lists are read once more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.build.append import require_files
from pexeso.build.build import workers_for
from pexeso.build.job import BuildJob, build_bar
from pexeso.build.lake_source.changes import (
    CHANGED,
    CLOSED,
    GONE,
    NO_TABLE,
    READ_ONCE_BACK,
    REREAD,
    UNCHANGED,
    find_changes,
    names_of,
)
from pexeso.build.lake_source.source import LISTING_SCHEMA, FolderSource
from pexeso.build.parts.base import OfParts
from pexeso.build.recorded import options_of
from pexeso.lake.catalog import Catalog
from pexeso.registry import requested_parts, require_parts
from pexeso.runtime.progress import with_bar
from pexeso.store.io.location import Location
from pexeso.store.manifest import Manifest
from pexeso.store.opening import open_store_anywhere, open_writer


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
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Added:
    """Add parts to an index.

    Existing parts stay as they are, and later updates keep the new parts up to date.

    New parts are made of the tables that the index lists, whose files are read again; what rests on
    a part that is there (signatures on token sets) of that.

    Parameters
    ----------
    path : path, URL or Place
        The index.
    parts
        Of `pexeso.registry.choices`.
    master, conf, progress
        See `pexeso.build_index`.

    Returns
    -------
    Added

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
        with workers_for(source, writer, master, conf) as workers:
            job = BuildJob(
                writer,
                replace(options, parts=every),
                store=store,
                workers=workers,
                progress=progress,
            )
            left_out = [] if source is None else _read_again(job, source)
            written = {
                part.name: part.rewrite(job, range(len(store.manifest.parts[part.name])))
                for part in more
            }
            written |= {part.name: part.write(job) for part in new}
            none = pa.array([], pa.string())
            known = store.manifest.facts.get(READ_ONCE_BACK, ())
            facts = {READ_ONCE_BACK: sorted({*known, *left_out})}
            manifest = job.commit(
                {name: [] for name in written}, written, facts=facts, removed=none
            )
    return _added(requested, every, manifest, left_out=len(left_out))


def _read_again(job: BuildJob, source: FolderSource) -> list[str]:
    """Read again the files that have not changed since they were indexed.

    New files wait for the next append, which adds them to every part.

    Returns
    -------
    list of str
        The tables of the index that are left out.
    """
    job.list_tables(source)
    job.stage(
        "changes", lambda folder, meter: find_changes(job, source, folder, compare="modified")
    )
    if source.is_small():
        changes = pq.read_table(job.stages.folder("changes") / "changes")
        same = changes.filter(pc.equal(changes["change"], UNCHANGED))
    else:
        same = job.frame("changes", "changes").where(f"change = '{UNCHANGED}'")
    job.read(source, same.select(LISTING_SCHEMA.names))
    tables = job.records_at_hand("table", ["table", "reason"])
    if tables is None:
        tables = job.records("table").select("table", "reason").toArrow()
    no_table = tables["table"].filter(tables["reason"].is_valid())
    was_table = Catalog(job.index.catalog_files).tables(
        ["table", "reason"], among=no_table.combine_chunks()
    )
    unread = was_table.filter(was_table["reason"].is_null())["table"]
    return [
        *names_of(job, (CHANGED, REREAD, NO_TABLE, GONE, CLOSED)).to_pylist(),
        *unread.to_pylist(),
    ]


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
