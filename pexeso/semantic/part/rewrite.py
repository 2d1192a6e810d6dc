"""Rewriting of partitions that updates have left small or full of deleted columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.build.parts.base import Written, worn_folders
from pexeso.build.parts.metadata import (
    WEIGHED_BY,
    embedder_folder,
    entry_bytes,
    held_columns,
    options_for_model,
    partition_limits,
    stale_models,
    store_of_model,
    written_fields,
)
from pexeso.runtime.ranges import merge_ranges, ranges_of
from pexeso.semantic.part import stage_of
from pexeso.store.io.parquet import parquet_files
from pexeso.store.local.reader import Store
from pexeso.store.manifest import FolderEntry

if TYPE_CHECKING:
    from pexeso.build.job import BuildJob
    from pexeso.options import BuildOptions


def delete(
    store: Store, tables: pa.Array, columns: Sequence[tuple[str, str]] = (), *, model: int = 0
) -> Sequence[FolderEntry]:
    """Return all partitions as they are: the manifest has the ids of deleted columns."""
    return store_of_model(store, model).manifest.partitions


def worn(store: Store, options: BuildOptions, *, model: int = 0) -> list[int]:
    """Select the partitions to rewrite: small ones only beyond the number that was asked for."""
    store = store_of_model(store, model)
    masks = (store.deleted_mask(number) for number in range(store.n_partitions))
    shares = [0.0 if mask is None else mask.mean() for mask in masks]
    return worn_folders(
        store.manifest.partitions,
        shares,
        options.partition_bytes,
        min_count=options.n_partitions or options.min_partitions,
    )


def rewrite(job: BuildJob, numbers: Sequence[int], *, model: int = 0) -> Written:
    """Divide the remaining columns of some partitions again.

    Vectors are copied from the partitions, and nothing is embedded but for sketches of the values
    of a lexical model, where there is more than one new partition. Where the words of the model
    were weighed by other columns, they are weighed again; and where that changes a weight, all
    partitions are written again.
    """
    # Brings torch, which the tasks that read do not need.
    from pexeso.semantic.part.stored import stored_postings, stored_vectors
    from pexeso.semantic.part.write import divide_and_write, embedded

    weighed: dict[str, Any] = {}
    if model in stale_models(job.index):
        again = _weigh_again(job, model)
        if isinstance(again, Written):
            return again
        weighed = again
    store = store_of_model(job.index, model)
    folder_of_embedder = embedder_folder(store)
    facts_before = store.manifest.facts
    rest = sorted(set(range(store.n_partitions)) - set(numbers))

    def sources(folder: Path) -> tuple[list[Path], list[Path]] | None:
        if not stored_postings(job, store, numbers, folder)["postings"]:
            return None
        postings = parquet_files(folder / "postings")
        if "letters" not in facts_before:
            return postings, stored_vectors(job, store, numbers, folder)
        if _fit_into_one(job, store, numbers, not rest, model):
            return postings, []
        return postings, embedded(job, parquet_files(folder / "values"), folder_of_embedder, folder)

    entries = []
    if numbers:
        entries = divide_and_write(job, sources, facts_before, not rest, folder_of_embedder, model)
    every = [*(store.partition_entry(number) for number in rest), *entries]
    facts = {name: sum(entry.facts[name] for entry in every) for name in ("values", "postings")}
    facts |= weighed
    masks = [(number, mask) for number in rest if (mask := store.deleted_mask(number)) is not None]
    still = [ranges_of(store.array(number, "column_ids")[mask]) for number, mask in masks]
    return Written(
        entries, **written_fields(job.index, model, facts, {}), deleted=merge_ranges(*still)
    )


def _weigh_again(job: BuildJob, model: int) -> Written | dict[str, Any]:
    """Weigh words by the columns that hold; return facts alone where no weight has changed."""
    from pexeso.semantic.part.write import MADE, make_model, read_values, write_embedded

    source, before = read_values(job), store_of_model(job.index, model).manifest
    dimensions = None if "letters" in before.facts else before.facts["dimensions"]
    made = make_model(job, model, source, dimensions=dimensions)
    saved = job.stages.folder(stage_of("train", model)) / MADE
    if made["fingerprint"] == before.fingerprints["embedder"]:
        n_columns = job.stages.finished(source)["columns"]
        return {WEIGHED_BY: held_columns(job.next_column(), n_columns)}
    job.renewed_models[model] = saved
    written = write_embedded(job, model, source, made, saved)
    return replace(written, replaced=range(len(before.partitions)))


def _fit_into_one(
    job: BuildJob, store: Store, numbers: Sequence[int], whole: bool, model: int
) -> bool:
    """Return whether one partition takes what holds of some partitions."""
    from partition.plan import limits_of

    entries = [store.partition_entry(number) for number in numbers]
    # With the deleted ones, so at least as many as there are.
    sizes = [sum(entry.facts[name] for entry in entries) for name in ("columns", "postings")]
    limits = limits_of(
        *sizes,
        store.manifest.facts["dimensions"],
        entry_bytes=entry_bytes(options_for_model(job.options, model)),
        **partition_limits(job.options, whole=whole),
    )
    return limits.n_bins == 1
