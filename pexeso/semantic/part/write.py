"""Writing of partitions: model, embedding, division of columns.

Each partition is built by the task that owns it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from embed.corpus import MAX_TOKENS, CorpusOptions, write_corpus
from embed.half import with_precision
from embed.registry import create_embedder, load_embedder
from embed.spark import embed_values
from partition.spark import limits_of, plan_partitions
from pexeso.build.parts.base import Filled, Written
from pexeso.build.parts.encode import sparse_vectors
from pexeso.build.parts.models import (
    WEIGHED,
    WEIGHED_BY,
    embedder_folder,
    entry_bytes,
    folder_of_model,
    held_columns,
    options_for_model,
    partition_limits,
    store_of_model,
    written_fields,
)
from pexeso.lake.catalog import Catalog, files_in
from pexeso.semantic.part.part import stage_of
from pexeso.semantic.part.stored import read_values
from pexeso.store.arrays import write_arrays
from pexeso.store.files import write_document
from pexeso.store.io.location import read_parquet, spark_path
from pexeso.store.local.removal import empty_folder
from pexeso.store.local.target import CHOICE, META, METRIC
from pexeso.store.manifest import FolderEntry
from pexeso.store.texts import write_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from pexeso.build.job import BuildJob
    from pexeso.build.report import TaskMeter
    from pexeso.build.stages import Facts
    from pexeso.engine.layout.options import PartitionLayoutOptions


@dataclass(frozen=True)
class PlacedPartition:
    """Columns, values and texts of a partition that is to be built.

    Attributes
    ----------
    values : pyarrow.StringArray
        n distinct values, sorted.
    column, value : numpy.ndarray, int64
        Of each posting, by column, then value.
    text : numpy.ndarray
        Of each posting, its text.
    """

    columns: pa.Table
    values: pa.Array
    column: np.ndarray
    value: np.ndarray
    texts: pa.Array
    text: np.ndarray

    @classmethod
    def read(cls, placed: Path, number: int, values: pa.Array | None = None) -> PlacedPartition:
        """Read what is placed for a partition.

        Parameters
        ----------
        values : pyarrow.StringArray, optional
            Its distinct values, sorted, where they are known.
        """
        columns = read_placed(placed, "columns", number, ["column_id", "table", "label"])
        # The catalog's own files also have columns that are left out.
        columns = columns.filter(pc.field("column_id").is_valid()).sort_by("column_id")
        postings = read_placed(placed, "postings", number, ["column_id", "value", "text"])
        # Rows come from a shuffle, in any order.
        postings = postings.sort_by([("column_id", "ascending"), ("value", "ascending")])
        if values is None:
            values = one_array(postings["value"]).unique()
            values = values.take(pc.sort_indices(values))
        ids = columns["column_id"].to_numpy()
        column = np.searchsorted(ids, postings["column_id"].to_numpy())
        value = pc.index_in(postings["value"], values).to_numpy(zero_copy_only=False)
        text = postings["text"].combine_chunks().dictionary_encode()
        codes = text.indices.to_numpy(zero_copy_only=False)
        return cls(columns, values, column, value.astype(np.int64), text.dictionary, codes)

    @property
    def column_offsets(self) -> np.ndarray:
        """Where the values of each column begin in `value`, int64 (C + 1,)."""
        sizes = np.bincount(self.column, minlength=self.columns.num_rows)
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def write(
        self,
        folder: Path,
        arrays: Mapping[str, np.ndarray],
        order: np.ndarray,
        facts: Mapping[str, Any],
        document: Mapping[str, Any],
    ) -> Filled:
        """Write the files of the partition.

        Parameters
        ----------
        arrays : mapping of str to numpy.ndarray
            Those of the engine.
        order : numpy.ndarray, int64
            The value of each stored row.
        """
        texts = self._texts_of_postings(order)
        ids = self.columns["column_id"].to_numpy()
        every = {
            "columns": len(ids),
            "values": len(order),
            "values_without_vector": len(self.values) - len(order),
            "postings": len(texts),
            **facts,
        }
        files = [
            *write_arrays(folder, {**arrays, "column_ids": ids, "posting_texts": texts}),
            write_texts(folder / "values.arrow", self.values.take(pa.array(order))),
            write_texts(folder / "texts.arrow", self.texts),
            write_texts(folder / "tables.arrow", self.columns["table"]),
            write_texts(folder / "labels.arrow", self.columns["label"]),
            write_document(folder / META, {**every, **document}),
        ]
        return every, files

    def _texts_of_postings(self, order: np.ndarray) -> np.ndarray:
        """Return the text of each posting, int32, in the order of ``column_values``.

        This order is by column, then stored row.
        """
        stored_row = np.full(len(self.values), -1, dtype=np.int64)
        stored_row[order] = np.arange(len(order))
        row = stored_row[self.value]
        by_column_and_row = np.lexsort((row, self.column))
        postings = by_column_and_row[row[by_column_and_row] >= 0]
        return self.text[postings].astype(np.int32)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)


def read_placed(placed: Path, name: str, number: int, columns: list[str]) -> pa.Table:
    """Read some columns of what a stage left for a partition."""
    folder = placed / name / f"partition={number}"
    return ds.dataset(os.fspath(folder), format="parquet").to_table(columns=columns)


MADE_FROM_CORPUS = ("fasttext", "hashing", "lexical")
"""Models made here: one is trained on the lake's values, the others weigh words by how rare they
are in the lake."""

VALUES_PER_CORPUS = MAX_TOKENS // 2

MADE = "model"
"""Where a stage leaves a model that may not come into the index."""


def write(job: BuildJob, *, model: int = 0) -> Written:
    """Write partitions of the values in the job's catalog, embedded by a model of the index.

    Where the index is to get the model in this job, it is made first.
    """
    if not job.makes_model(model):
        return write_embedded(job, model, "catalog")
    source = "catalog" if job.store is None else read_values(job)
    saved = folder_of_model(job.writer.embedder_folder, model)
    return write_embedded(job, model, source, make_model(job, model, source, saved), saved)


def write_embedded(
    job: BuildJob,
    model: int,
    source: str,
    made: Facts | None = None,
    saved: Path | None = None,
) -> Written:
    """Write partitions of the values that a stage left."""
    counts, is_new = job.stages.finished(source), made is not None
    if is_new:
        folder = saved
        facts = {
            "embedder": made["kind"],
            "dimensions": made["dimensions"],
            **({"letters": made["letters"]} if made["letters"] else {}),
            "values": 0,
            "postings": 0,
        }
        fingerprints = {"embedder": made["fingerprint"]}
    else:
        store = store_of_model(job.store, model)
        # Absolute: Spark's workers may have been started in another working folder.
        folder = embedder_folder(store).absolute()
        before, fingerprints = store.manifest.facts, {}
        names = ("dimensions", "values", "postings", "letters")
        facts = {name: before[name] for name in names if name in before}
    weighs = is_new and job.options.models[model] in WEIGHED
    next_column = counts["columns"] if job.store is None else job.next_column()
    if not counts["postings"]:
        facts |= {WEIGHED_BY: held_columns(next_column, 0)} if weighs else {}
        return Written([], **written_fields(job.store, model, facts, fingerprints))
    embedded = None
    if "letters" not in facts:
        stage = stage_of("embed", model)
        _embed(job, stage, source, folder)
        embedded = job.stages.folder(stage) / "vectors"

    def frames(_: Path) -> tuple[DataFrame, DataFrame]:
        if embedded is None:
            vectors = embed_values(job.frame(source, "values"), folder)
        else:
            vectors = read_parquet(job.spark, embedded)
        return job.frame(source, "postings"), vectors

    limits = limits_of(
        counts["columns"],
        counts["postings"],
        facts["dimensions"],
        entry_bytes=entry_bytes(options_for_model(job.options, model)),
        **partition_limits(job.options, whole=is_new),
    )
    divide = partial(_place_all, job, source, embedded) if limits.n_bins == 1 else None
    entries = divide_and_write(job, frames, facts, is_new, folder, model, divide=divide)
    more = {
        "values": facts["values"] + counts["values"],
        "postings": facts["postings"] + sum(entry.facts["postings"] for entry in entries),
    }
    if weighs:
        n_columns = sum(entry.facts["columns"] for entry in entries)
        more[WEIGHED_BY] = held_columns(next_column, n_columns)
    return Written(entries, **written_fields(job.store, model, {**facts, **more}, fingerprints))


def make_model(
    job: BuildJob,
    model: int,
    source: str,
    saved: Path | None = None,
    dimensions: int | None = None,
) -> Facts:
    """Train the model on what a stage left, or read it, and save it."""

    def work(folder: Path, meter: TaskMeter) -> Facts:
        options, corpus = options_for_model(job.options, model), None
        if options.model in MADE_FROM_CORPUS:
            corpus = folder / "corpus.txt"
            _write_corpus(job, source, folder / "pairs", corpus)
        embedder = create_embedder(
            options.model,
            corpus=corpus,
            dimensions=options.dimensions if dimensions is None else dimensions,
            value_vectors=options.value_vectors,
            seed=options.seed,
        )
        embedder = with_precision(embedder, options.vector_precision)
        if saved is not None:
            saved.mkdir(exist_ok=True)
            empty_folder(saved)
        embedder.save(folder / MADE if saved is None else saved)
        return {
            "kind": embedder.kind,
            "dimensions": embedder.dimensions,
            "letters": embedder.space if embedder.kind == "lexical" else None,
            "fingerprint": embedder.fingerprint,
        }

    return job.stage(stage_of("train", model), work)


def _write_corpus(job: BuildJob, source: str, pairs_folder: Path, path: Path) -> None:
    """Write a sample of (column, value) pairs as text.

    Spark draws the sample if the lake is larger than the sample. It hangs on the ids of columns;
    of an index that is there those are taken that a fresh build would give.
    """
    ranks = None if job.store is None else _column_ranks(job)
    pairs = job.stages.folder(source) / "postings"
    n_pairs = job.stages.finished(source)["postings"]
    if n_pairs > VALUES_PER_CORPUS:
        from pyspark.sql import functions as sql

        share = VALUES_PER_CORPUS / n_pairs
        drawn = sql.xxhash64("column_id", "value", sql.lit(job.options.seed)) % 1_000_000
        frame = job.frame(source, "postings").select("column_id", "value")
        if ranks is not None:
            ranked = job.spark.createDataFrame(ranks)
            frame = frame.join(ranked, "column_id").select(
                sql.col("rank").alias("column_id"), "value"
            )
            ranks = None
        frame.where(sql.abs(drawn) < int(share * 1_000_000)).write.parquet(spark_path(pairs_folder))
        pairs = pairs_folder
    dataset = ds.dataset(os.fspath(pairs), format="parquet")
    batches = dataset.to_batches(
        columns={"group": ds.field("column_id"), "value": ds.field("value")}
    )
    write_corpus(
        batches if ranks is None else (_ranked(batch, ranks) for batch in batches),
        path,
        CorpusOptions(seed=job.options.seed),
    )


def _column_ranks(job: BuildJob) -> pa.Table:
    """Return ``column_id`` of all columns that hold, ascending, and the ids of a fresh build.

    These are the ``rank`` of each in the order of the catalog.
    """
    ids = Catalog(files_in([job.writer.catalog_folder])).columns(["column_id"])["column_id"]
    table = pa.table({"column_id": ids.drop_null(), "rank": np.arange(len(ids) - ids.null_count)})
    return table.sort_by("column_id")


def _ranked(batch: pa.RecordBatch, ranks: pa.Table) -> pa.RecordBatch:
    places = np.searchsorted(ranks["column_id"].to_numpy(), batch.column("group").to_numpy())
    groups = ranks["rank"].to_numpy()[places]
    return pa.RecordBatch.from_pydict({"group": groups, "value": batch.column("value")})


def _embed(job: BuildJob, stage: str, source: str, embedder_folder: Path) -> Facts:
    """Embed each distinct value once."""

    def work(folder: Path, meter: TaskMeter) -> Facts:
        frame = embed_values(job.frame(source, "values"), embedder_folder, measured=meter.measured)
        frame.write.parquet(spark_path(folder / "vectors"))
        return {"dimensions": load_embedder(embedder_folder).dimensions}

    return job.stage(stage, work)


def divide_and_write(
    job: BuildJob,
    frames: Callable[[Path], tuple[DataFrame, DataFrame] | None],
    facts: Facts,
    whole: bool,
    embedder_folder: Path,
    model: int,
    *,
    divide: Callable[[Path], int] | None = None,
) -> list[FolderEntry]:
    """Divide columns into partitions, lay out what each needs, and have each built by a task.

    Parameters
    ----------
    frames : callable
        Given a folder of the stage, returns ``column_id, value, text`` (postings) and
        ``value, vector``; None where there is nothing. Where the index has a lexical model the
        vectors are sketches, needed only where there is more than one partition.
    """
    from pexeso.engine.layout.options import (
        PartitionLayoutOptions,
    )  # brings torch, which a deletion does without

    options, is_lexical = job.options, "letters" in facts

    def work(folder: Path, meter: TaskMeter) -> Facts:
        if divide is not None:
            return {"partitions": divide(folder)}
        pair = frames(folder)
        if pair is None:
            return {"partitions": 0}
        postings, vectors = pair
        plan, n_found = plan_partitions(
            postings.select("column_id", "value"),
            vectors,
            dimensions=facts["dimensions"],
            entry_bytes=entry_bytes(options_for_model(options, model)),
            seed=options.seed,
            **partition_limits(options, whole=whole),
        )
        write_frame = partial(_place, job, folder)
        placed = write_frame("postings", postings.join(plan, "column_id"))
        if not is_lexical:
            values = placed.select("partition", "value").distinct()
            write_frame("vectors", values.join(vectors, "value"))
        write_frame(
            "columns",
            job.kept_columns().select("column_id", "table", "label").join(plan, "column_id"),
        )
        plan.unpersist()
        return {"partitions": n_found}

    stage = stage_of("partition", model)
    planned = job.stage(stage, work)
    if not planned["partitions"]:
        return []
    placed = job.stages.folder(stage)
    if is_lexical:
        fill = partial(write_sparse_partition, placed, embedder_folder=embedder_folder)
    else:
        fill = partial(write_partition, placed, options=PartitionLayoutOptions(**options.grid()))
    # Products of matrices are rounded otherwise by several threads, as this process has.
    n_partitions, at_hand = planned["partitions"], placed if is_lexical else None
    return job.write_folders(stage_of("index", model), n_partitions, fill, placed=at_hand)


def _place_all(job: BuildJob, source: str, vectors: Path | None, folder: Path) -> int:
    """Lay everything out for one partition, which is what earlier stages left as it is."""
    left = {
        "postings": job.stages.folder(source) / "postings",
        "columns": job.writer.catalog_folder,
        **({} if vectors is None else {"vectors": vectors}),
    }
    for name, stored in left.items():
        target = folder / name / "partition=0"
        target.mkdir(parents=True)
        for path in stored.glob("columns-*.parquet" if name == "columns" else "*.parquet"):
            shutil.copyfile(path, target / path.name)
    return 1


def _place(job: BuildJob, folder: Path, name: str, frame: DataFrame) -> DataFrame:
    path = folder / name
    frame.repartition("partition").write.partitionBy("partition").parquet(spark_path(path))
    return read_parquet(job.spark, path)


def write_partition(
    placed: Path, number: int, folder: Path, *, options: PartitionLayoutOptions
) -> Filled:
    """Build one partition from what the earlier stages left, and write its files.

    The same input gives the same bytes, however often a task runs. Memory is about four times the
    partition's vectors.
    """
    from embed.spark import task_device

    # Brings torch, which the tasks that read tables do without.
    from pexeso.engine.building.building import (
        build_partition,
        n_cells,
        n_coordinates,
        n_levels,
    )
    from pexeso.engine.building.map_choice import resolve_options

    values, vectors = _vectors(placed, number)
    contents = PlacedPartition.read(placed, number, values)
    offsets = contents.column_offsets
    options, trials = resolve_options(vectors, offsets, contents.value, options)
    arrays, order = build_partition(vectors, offsets, contents.value, options, device=task_device())
    facts = {
        "cells": n_cells(arrays),
        "coordinates": n_coordinates(arrays),
        "map": options.map,
        **({} if n_levels(arrays) is None else {"levels": n_levels(arrays)}),
    }
    choice = {name: facts[name] for name in ("map", "coordinates", "levels") if name in facts}
    choice["trials"] = [trial.to_dict() for trial in trials]
    document = {METRIC: options.metric, CHOICE: choice}
    return contents.write(folder, arrays, order, facts, document)


def write_sparse_partition(
    placed: Path, number: int, folder: Path, *, embedder_folder: Path
) -> Filled:
    """Do as `write_partition` for values of a lexical model.

    Memory is about six times the words and keys of the partition.
    """
    from pexeso.engine.sparse.building import build_partition

    contents = PlacedPartition.read(placed, number)
    vectors = sparse_vectors(load_embedder(embedder_folder), contents.values)
    arrays, order = build_partition(vectors, contents.column_offsets, contents.value)
    facts = {"words": len(arrays["word_weights"]), "keys": len(arrays["keys"])}
    return contents.write(folder, arrays, order, facts, {})


def _vectors(placed: Path, number: int) -> tuple[pa.StringArray, np.ndarray]:
    """Read a partition's distinct values, sorted, and their vectors, float32 (n, d)."""
    table = read_placed(placed, "vectors", number, ["value", "vector"]).sort_by("value")
    table = table.combine_chunks()
    flat = pc.list_flatten(one_array(table["vector"])).to_numpy(zero_copy_only=False)
    return one_array(table["value"]), np.ascontiguousarray(
        flat.reshape(len(table), -1), dtype=np.float32
    )
