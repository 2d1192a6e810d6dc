"""Updates of an index: append new and changed tables, delete tables.

Each writes what is new beside what is there, and is one commit of the manifest. Column ids go on from the highest ever
given; a table that changed is a removed one and a new one. Append runs the stages of a build (`pexeso.steps`) over what
is new; delete needs no Spark. What updates leave behind, `pexeso.compacting` clears away.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.changes import CHANGED, GONE, NEW, UNCHANGED, find_changes
from pexeso.elsewhere import open_store_anywhere, open_writer
from pexeso.equal_text.layout import TOKEN_STAGES, sets_of_tokens, write_token_sets
from pexeso.equal_text.shards import without_tables
from pexeso.errors import InputError, LakeError
from pexeso.id_ranges import Ranges, merge_ranges, ranges_of
from pexeso.lake.catalog import REMOVED, REMOVED_SCHEMA, Catalog, write_rows
from pexeso.pipeline import session_for
from pexeso.places import Place
from pexeso.recorded import kept_records, options_of
from pexeso.source import LISTING, SKIPPED, SPARK_PREFIX, FolderSource, source_of
from pexeso.steps import Steps
from pexeso.store.build_writer import BuildWriter
from pexeso.store.claim import some_names
from pexeso.store.manifest import FolderEntry, Manifest
from pexeso.store.reader import Store

APPEND_STAGES = ("list", "changes", "read", "catalog", "embed", "partition", "index", *TOKEN_STAGES, "commit")
"""The steps of an append in order, as given to `progress`."""


@dataclass(frozen=True)
class Update:
    """What an update did.

    Attributes
    ----------
    generation : int
        Of the index now in place.
    committed : bool
        False where there was nothing to do.
    new, changed, deleted : int
        Tables that came, that were replaced, and that went.
    missing : int
        Tables of the index whose files are no longer in the lake, and which were left in the index.
    unchanged : int
        Tables left as they are.
    columns_added, columns_deleted : int
        Indexed columns.
    partitions_added, partitions_rewritten : int
    shards_added, shards_rewritten : int
        The same of token sets.
    """

    generation: int
    committed: bool
    new: int = 0
    changed: int = 0
    deleted: int = 0
    missing: int = 0
    unchanged: int = 0
    columns_added: int = 0
    columns_deleted: int = 0
    partitions_added: int = 0
    partitions_rewritten: int = 0
    shards_added: int = 0
    shards_rewritten: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Give the plain JSON form."""
        return asdict(self)


def append(
    path: str | os.PathLike[str] | Place,
    lake: str | os.PathLike[str] | None = None,
    *,
    delete_missing: bool = False,
    compare: str = "modified",
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Update:
    """Add the tables of a lake that are new or have changed since the index was last written.

    Costs a listing of the lake and of the catalog, and beyond that only what is new: it is read, embedded with the index's own model and
    written as partitions of its own.

    Parameters
    ----------
    path : path, URL or Place
        The index.
    lake : path, optional
        Where the lake is now; by default where it was.
    delete_missing : bool
        Delete the tables whose files are gone.
    compare : {"modified", "content"}
        A file of the same size and time of change (and version, where its storage has one) is the same; with ``"content"`` every file of the
        same size is read, and compared by its fingerprint. One whose time alone differs is always compared by its fingerprint.
    master, conf, progress
        See `pexeso.pipeline.build`.

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
    asked = {"lake": source.name, "delete_missing": delete_missing, "compare": compare}
    with open_writer(path, update=True, purpose=f"append {json.dumps(asked, sort_keys=True)}") as writer:
        store = open_store_anywhere(path)  # the one that the writer locked
        with session_for(source, writer, master, conf) as spark:
            steps = Steps(spark, writer, options_of(store.manifest), progress)
            return _append(steps, store, source, delete_missing, compare)


def require_files(store: Store, lake: Any) -> FolderSource:
    """Give the files that an index was built of, or those that are in their place now.

    Raises
    ------
    LakeError
        It was built of Spark tables.
    """
    named = store.manifest.facts["lake"]
    source = None if lake is None and named.startswith(SPARK_PREFIX) else source_of(named if lake is None else lake)
    if source is None or not source.is_files:
        raise LakeError(
            f"What has changed in Spark tables ('{named if source is None else source.name}') cannot be told: build the index again, over this one "
            "(overwrite=True, --overwrite)."
        )
    return source


def _append(steps: Steps, store: Store, source: FolderSource, delete_missing: bool, compare: str) -> Update:
    listing = steps.list_tables(source)
    if not listing["tables"] and delete_missing:
        steps.writer.keep = False
        raise LakeError(
            f"There is no table in '{source.name}', so every table of '{store.path}' would be deleted. Delete the index instead."
        )
    found = steps.stage("changes", lambda folder, meter: find_changes(steps, store, source, folder, compare=compare))
    removed = _names(steps, (CHANGED, GONE) if delete_missing else (CHANGED,))
    counts = {
        "new": found[NEW],
        "changed": found[CHANGED],
        "deleted": found[GONE] if delete_missing else 0,
        "missing": 0 if delete_missing else found[GONE],
        "unchanged": found[UNCHANGED],
    }
    if not found["rows"] and not len(removed) and source.name == store.manifest.facts["lake"]:
        steps.writer.keep = False
        steps.tell("commit")
        return Update(store.manifest.generation, False, **counts)
    facts = store.manifest.facts
    first_id = _next_column(store)
    steps.read(source, steps.frame("changes", LISTING))
    added = steps.write_catalog(first_id, steps.frame("changes", SKIPPED))
    partitions = []
    if added["postings"]:
        steps.embed(store.embedder_folder)
        steps.plan_new(facts["dimensions"], None)
        partitions = steps.write_partitions()
    token_sets = write_token_sets(steps, *sets_of_tokens(steps), first=len(partitions)) if steps.options.parts else []
    steps.tell("commit")
    steps.write_report()
    gone = ids_of(store, removed)
    manifest = _commit(
        steps.writer,
        store,
        removed,
        partitions=(*store.manifest.partitions, *partitions),
        token_sets=(*without_tables(store, removed), *token_sets),
        deleted=merge_ranges(store.manifest.deleted_columns, ranges_of(gone)),
        facts={
            "lake": source.name,
            "values": facts["values"] + added["values"],
            "postings": facts["postings"] + sum(entry.facts["postings"] for entry in partitions),
            "next_column": first_id + added["columns"],
        },
    )
    return Update(
        manifest.generation,
        True,
        **counts,
        columns_added=added["columns"],
        columns_deleted=len(gone),
        partitions_added=len(partitions),
        shards_added=len(token_sets),
    )


def _names(steps: Steps, kinds: Sequence[str]) -> pa.Array:
    """Read the names of the tables of some kinds of change, sorted; as many as have changed."""
    frame = steps.frame("changes", "changes").where(" or ".join(f"change = '{kind}'" for kind in kinds))
    return frame.select("table").toArrow()["table"].combine_chunks().sort()


def delete(path: str | os.PathLike[str] | Place, tables: Iterable[str]) -> Update:
    """Delete tables from an index; their files in the lake are not touched.

    The columns are no longer found from the commit on; `compact` removes their data. Takes no Spark, and reads the catalog only.

    Parameters
    ----------
    path : path, URL or Place
        The index.
    tables : iterable of str
        Names, as search prints them.

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
    wanted = pa.array(sorted(set(tables)), pa.string())
    with open_writer(path, update=True) as writer:
        store = open_store_anywhere(path)
        there = Catalog(store.catalog_files).tables(["table"], among=wanted)["table"]
        unknown = wanted.filter(pc.invert(pc.is_in(wanted, value_set=there.combine_chunks())))
        if len(unknown):
            raise InputError(_unknown(store, unknown.to_pylist()))
        if not len(wanted):
            return Update(store.manifest.generation, False)
        gone = ids_of(store, wanted)
        deleted = merge_ranges(store.manifest.deleted_columns, ranges_of(gone))
        manifest = _commit(
            writer,
            store,
            wanted,
            partitions=store.manifest.partitions,
            token_sets=without_tables(store, wanted),
            deleted=deleted,
            facts={},
        )
    return Update(manifest.generation, True, deleted=len(wanted), columns_deleted=len(gone))


def _unknown(store: Store, names: list[str]) -> str:
    return (
        f"The index '{store.path}' has no table {some_names(names)}. Tables are named by their path relative to "
        f"'{store.manifest.facts['lake']}', as search prints them. Nothing was deleted."
    )


def _commit(
    writer: BuildWriter,
    store: Store,
    removed: pa.Array,
    *,
    partitions: Sequence[FolderEntry],
    token_sets: Sequence[FolderEntry],
    deleted: Ranges,
    facts: dict[str, Any],
) -> Manifest:
    """Commit another folder of the catalog over what is there."""
    write_rows(writer.catalog_folder, REMOVED, pa.table([removed], schema=REMOVED_SCHEMA))
    manifest = store.manifest
    return writer.commit(
        **kept_records(manifest),
        catalogs=[*manifest.catalogs, writer.seal_folder(writer.catalog_folder)],
        embedder=manifest.embedder,
        partitions=partitions,
        token_sets=token_sets,
        deleted_columns=deleted,
        facts={**manifest.facts, "next_column": _next_column(store), **facts},
    )


def ids_of(store: Store, tables: pa.Array) -> np.ndarray:
    """Give the ids of the indexed columns of some tables, int64, ascending."""
    chosen = Catalog(store.catalog_files).columns(["column_id"], among=tables)["column_id"].drop_null()
    return np.sort(chosen.to_numpy())


def _next_column(store: Store) -> int:
    """Give the lowest column id that no column ever had."""
    known = store.manifest.facts.get("next_column")
    if known is not None:
        return known
    highest = pc.max(Catalog(store.catalog_files).columns(["column_id"])["column_id"]).as_py()
    return 0 if highest is None else highest + 1
