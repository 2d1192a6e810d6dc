"""Compaction: partitions that updates have left small or full of deleted columns are written anew, from what is in them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pexeso import tasks
from pexeso.changes import live_rows
from pexeso.elsewhere import open_store_anywhere, open_writer
from pexeso.equal_text.compaction import rewrite_shards, shards_worth_rewriting
from pexeso.equal_text.layout import TOKEN_STAGES
from pexeso.id_ranges import Ranges, merge_ranges, ranges_of
from pexeso.lake.catalog import COLUMNS, TABLES
from pexeso.numbering import write_numbered, write_tables
from pexeso.options import BuildOptions
from pexeso.pipeline import session_for
from pexeso.places import Place
from pexeso.recorded import kept_records, options_of
from pexeso.steps import Steps
from pexeso.store.reader import Store
from pexeso.updating import Update

COMPACT_STAGES = ("catalog", "partition", "index", *TOKEN_STAGES, "commit")
"""The steps of a compaction in order, as given to `progress`."""

MAX_DELETED_SHARE = 0.2
"""A partition of which more columns are deleted is rewritten by `compact`."""


def compact(
    path: str | os.PathLike[str] | Place,
    *,
    everything: bool = False,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Update:
    """Rewrite partitions that updates have left small or full of deleted columns, and bring the catalog into one folder.

    Nothing is read from the lake and nothing embedded again. Answers stay the same.

    Parameters
    ----------
    path : path, URL or Place
        The index.
    everything : bool
        Divide all columns into partitions anew. Otherwise only partitions of which more than a fifth of the columns is deleted are
        rewritten, and those of less than half of ``partition_bytes`` where there is more than one.
    master, conf, progress
        See `pexeso.pipeline.build`.

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
        options = options_of(store.manifest)
        chosen = list(range(store.n_partitions)) if everything else worth_rewriting(store, options)
        shards = list(range(len(store.manifest.token_sets)))
        if not everything:
            shards = shards_worth_rewriting(store, options.partition_bytes, MAX_DELETED_SHARE)
        if not chosen and not shards and len(store.manifest.catalogs) == 1:
            return Update(store.manifest.generation, False)
        with session_for(None, writer, master, conf) as spark:
            return _compact(Steps(spark, writer, options, progress), store, chosen, shards)


def worth_rewriting(store: Store, options: BuildOptions) -> list[int]:
    """Choose the partitions that `compact` rewrites; small ones only where there are more than were asked for."""
    full_of_deleted, small = [], []
    for number in range(store.n_partitions):
        mask = store.deleted_mask(number)
        if mask is not None and mask.mean() > MAX_DELETED_SHARE:
            full_of_deleted.append(number)
        elif store.partition_entry(number).n_bytes < options.partition_bytes / 2:
            small.append(number)
    worthwhile = len(small) + len(full_of_deleted) > 1 and store.n_partitions > (options.n_partitions or 1)
    return sorted(full_of_deleted + (small if worthwhile else []))


def _compact(steps: Steps, store: Store, chosen: list[int], shards: list[int]) -> Update:
    writer, manifest = steps.writer, store.manifest
    steps.stage("catalog", lambda folder, meter: _gather(steps, store, chosen, folder))
    kept = [entry for number, entry in enumerate(manifest.partitions) if number not in set(chosen)]
    partitions = []
    if steps.stages.finished("catalog")["postings"]:
        everything = len(chosen) == store.n_partitions
        steps.plan(
            steps.frame("catalog", "postings"),
            steps.frame("catalog", "vectors"),
            manifest.facts["dimensions"],
            steps.options.n_partitions if everything else None,
        )
        partitions = steps.write_partitions()
    token_sets = rewrite_shards(steps, store, shards, first=len(partitions))
    steps.tell("commit")
    steps.write_report()
    new = [*kept, *partitions]
    committed = writer.commit(
        **kept_records(manifest),
        catalogs=[writer.seal_folder(writer.catalog_folder)],
        embedder=manifest.embedder,
        partitions=new,
        token_sets=token_sets,
        deleted_columns=_deleted_in(store, set(range(store.n_partitions)) - set(chosen)),
        facts={
            **manifest.facts,
            "values": sum(entry.facts["values"] for entry in new),
            "postings": sum(entry.facts["postings"] for entry in new),
        },
    )
    return Update(
        committed.generation,
        True,
        partitions_added=len(partitions),
        partitions_rewritten=len(chosen),
        shards_added=len(token_sets) - (len(manifest.token_sets) - len(shards)),
        shards_rewritten=len(shards),
    )


def _gather(steps: Steps, store: Store, chosen: list[int], folder: Path) -> dict[str, Any]:
    """Write the catalog that holds, and what is to be laid out anew: postings and vectors of the partitions chosen."""
    steps.empty_catalog()
    write_tables(live_rows(steps.spark, store, TABLES), steps.writer.catalog_folder)
    write_numbered(live_rows(steps.spark, store, COLUMNS), steps.writer.catalog_folder)
    n_postings = 0
    for name, schema in (("postings", tasks.POSTINGS), ("vectors", tasks.VECTORS)):
        frame = steps.from_partitions(chosen, store, name, schema)
        frame.write.parquet((folder / name).as_uri())
        if name == "postings":
            n_postings = steps.spark.read.parquet((folder / name).as_uri()).count()
    return {"postings": n_postings}


def _deleted_in(store: Store, numbers: Iterable[int]) -> Ranges:
    """Give the deleted columns that are still in some partitions."""
    ranges = []
    for number in sorted(numbers):
        mask = store.deleted_mask(number)
        if mask is not None:
            ranges.append(ranges_of(store.array(number, "column_ids")[mask]))
    return merge_ranges(*ranges)
