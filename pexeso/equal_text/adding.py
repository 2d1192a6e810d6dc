"""Parts for equal text added to an index that has none, or not all: the tables that it lists are read once more."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from pexeso.changes import CHANGED, GONE, UNCHANGED, find_changes
from pexeso.elsewhere import open_store_anywhere, open_writer
from pexeso.equal_text.compaction import rewrite_shards
from pexeso.equal_text.layout import TOKEN_STAGES, sets_of_tokens, write_token_sets
from pexeso.equal_text.shards import parts_of
from pexeso.lake.catalog import REMOVED, REMOVED_SCHEMA, write_rows
from pexeso.options import require_parts
from pexeso.pipeline import session_for
from pexeso.places import Place
from pexeso.recorded import kept_records, options_of
from pexeso.source import LISTING
from pexeso.steps import Steps
from pexeso.store.manifest import FolderEntry
from pexeso.store.reader import Store
from pexeso.updating import require_files

ADD_STAGES = ("list", "changes", "read", *TOKEN_STAGES, "commit")
"""The steps of adding a part in order, as given to `progress`."""


@dataclass(frozen=True)
class Added:
    """What adding parts did.

    Attributes
    ----------
    generation : int
        Of the index now in place.
    committed : bool
        False where the index has them.
    parts : tuple of str
        Those that the index has now.
    columns, tokens, pairs : int
        Columns as sets, their distinct tokens (counted in each shard), and (column, token) pairs.
    left_out : int
        Tables of the index that are not in its new parts yet, since their files have changed or are gone: the next append adds what there is.
    """

    generation: int
    committed: bool
    parts: tuple[str, ...]
    columns: int
    tokens: int
    pairs: int
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Give the plain JSON form."""
        return {**asdict(self), "parts": list(self.parts)}


def add_parts(
    path: str | os.PathLike[str] | Place,
    parts: Iterable[str],
    *,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Added:
    """Add parts for equal text to an index; what it has stays as it is, and later updates keep the new parts up to date.

    Token sets are made of the tables that the index lists, whose files are read again. Signatures alone are made of the token sets.

    Parameters
    ----------
    path : path, URL or Place
        The index.
    parts
        Of `pexeso.options.PARTS`.
    master, conf, progress
        See `pexeso.pipeline.build`.

    Returns
    -------
    Added

    Raises
    ------
    StoredIndexError, LakeError, OutputError, SparkError
        See `pexeso.errors`. The index is as it was then.
    """
    wanted = require_parts(parts)
    with open_writer(path, update=True, purpose=f"add {json.dumps(wanted)}") as writer:
        store = open_store_anywhere(path)
        had = parts_of(store)
        every = require_parts([*had, *wanted])
        if set(every) == set(had):
            return _added(store.manifest.generation, False, every, store.manifest.token_sets)
        source = None if had else require_files(store, None)
        with session_for(source, writer, master, conf) as spark:
            steps = Steps(spark, writer, replace(options_of(store.manifest), parts=every), progress)
            left_out = 0
            if source is None:
                entries = rewrite_shards(steps, store, range(len(store.manifest.token_sets)), first=0)
            else:
                steps.list_tables(source)
                found = steps.stage(
                    "changes", lambda folder, meter: find_changes(steps, store, source, folder, compare="modified")
                )
                left_out = found[CHANGED] + found[GONE]
                steps.read(source, _unchanged(steps))
                entries = write_token_sets(steps, *sets_of_tokens(steps), first=0)
            steps.tell("commit")
            return _commit(steps, store, every, entries, left_out)


def _unchanged(steps: Steps) -> Any:
    """List the files that are as they were when they were indexed; new ones wait for the next append, which adds them to every part."""
    same = steps.frame("changes", "changes").where(f"change = '{UNCHANGED}'").select("table")
    return steps.frame("list", LISTING).join(same, "table", "left_semi")


def _commit(steps: Steps, store: Store, parts: tuple[str, ...], entries: list[FolderEntry], left_out: int) -> Added:
    writer, manifest = steps.writer, store.manifest
    steps.write_report()
    write_rows(writer.catalog_folder, REMOVED, pa.table([pa.array([], pa.string())], schema=REMOVED_SCHEMA))
    records = kept_records(manifest)
    committed = writer.commit(
        **{**records, "options": {**records["options"], "parts": list(parts)}},
        catalogs=[*manifest.catalogs, writer.seal_folder(writer.catalog_folder)],
        embedder=manifest.embedder,
        partitions=manifest.partitions,
        token_sets=entries,
        deleted_columns=manifest.deleted_columns,
        facts=manifest.facts,
    )
    return _added(committed.generation, True, parts, entries, left_out)


def _added(
    generation: int, committed: bool, parts: tuple[str, ...], entries: Iterable[FolderEntry], left_out: int = 0
) -> Added:
    facts = [entry.facts for entry in entries]
    columns, tokens, pairs = (sum(each[name] for each in facts) for name in ("sets", "tokens", "pairs"))
    return Added(generation, committed, parts, columns, tokens, pairs, left_out)
