"""Writing of partitions: model, embedding, division of columns.

Each partition is built by the task that owns it.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from embed.corpus import MAX_TOKENS, CorpusOptions, write_corpus
from embed.registry import create_embedder, load_embedder
from embed.spark import embed_values
from partition.spark import plan_partitions
from pexeso.io.location import read_parquet, spark_path
from pexeso.parts.base import Filled, Written
from pexeso.store.arrays import write_arrays
from pexeso.store.files import write_document
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

MADE_FROM_CORPUS = ("fasttext", "hashing")
"""Models made here: one is trained on the lake's values, the other weighs words by how rare they
are in the lake."""

VALUES_PER_CORPUS = MAX_TOKENS // 2


def write(job: BuildJob) -> Written:
    """Write partitions of the values in the job's catalog, embedded by the index's model.

    A build creates the model first.
    """
    found = job.stages.finished("catalog")
    if job.store is None:
        model, folder = _make_model(job), job.writer.embedder_folder
        facts = {
            "embedder": model["kind"],
            "dimensions": model["dimensions"],
            "values": 0,
            "postings": 0,
        }
        fingerprints = {"embedder": model["fingerprint"]}
    else:
        before, folder, fingerprints = job.store.manifest.facts, job.store.embedder_folder, {}
        facts = {name: before[name] for name in ("dimensions", "values", "postings")}
    if not found["postings"]:
        return Written([], facts, fingerprints)
    _embed(job, folder)
    frames = job.frame("catalog", "postings"), job.frame("embed", "vectors")
    n_partitions = job.options.n_partitions if job.store is None else None
    entries = divide_and_write(job, lambda _: frames, facts["dimensions"], n_partitions)
    more = {
        "values": facts["values"] + found["values"],
        "postings": facts["postings"] + sum(entry.facts["postings"] for entry in entries),
    }
    return Written(entries, {**facts, **more}, fingerprints)


def _make_model(job: BuildJob) -> Facts:
    """Train the model or read it, and save it into the index."""

    def work(folder: Path, meter: TaskMeter) -> Facts:
        options, corpus = job.options, None
        if options.model in MADE_FROM_CORPUS:
            corpus = folder / "corpus.txt"
            _write_corpus(job, folder / "pairs", corpus)
        embedder = create_embedder(
            options.model, corpus=corpus, dimensions=options.dimensions, seed=options.seed
        )
        empty_folder(job.writer.embedder_folder)
        embedder.save(job.writer.embedder_folder)
        return {
            "kind": embedder.kind,
            "dimensions": embedder.dimensions,
            "fingerprint": embedder.fingerprint,
        }

    return job.stage("train", work)


def _write_corpus(job: BuildJob, pairs_folder: Path, path: Path) -> None:
    """Write a sample of (column, value) pairs as text.

    Spark draws the sample if the lake is larger than the sample.
    """
    from pyspark.sql import functions as sql

    pairs = job.frame("catalog", "postings").select(sql.col("column_id").alias("group"), "value")
    n_pairs = job.stages.finished("catalog")["postings"]
    if n_pairs > VALUES_PER_CORPUS:
        share = VALUES_PER_CORPUS / n_pairs
        drawn = sql.xxhash64("group", "value", sql.lit(job.options.seed)) % 1_000_000
        pairs = pairs.where(sql.abs(drawn) < int(share * 1_000_000))
    pairs.write.parquet(spark_path(pairs_folder))
    batches = ds.dataset(pairs_folder, format="parquet").to_batches()
    write_corpus(batches, path, CorpusOptions(seed=job.options.seed))


def _embed(job: BuildJob, embedder_folder: Path) -> Facts:
    """Embed each distinct value once."""

    def work(folder: Path, meter: TaskMeter) -> Facts:
        frame = embed_values(
            job.frame("catalog", "values"), embedder_folder, measured=meter.measured
        )
        frame.write.parquet(spark_path(folder / "vectors"))
        return {"dimensions": load_embedder(embedder_folder).dimensions}

    return job.stage("embed", work)


def divide_and_write(
    job: BuildJob,
    frames: Callable[[Path], tuple[DataFrame, DataFrame] | None],
    dimensions: int,
    n_partitions: int | None,
) -> list[FolderEntry]:
    """Divide columns into partitions, lay out what each needs, and have each built by a task.

    Parameters
    ----------
    frames : callable
        Given a folder of the stage, returns ``column_id, value, text`` (postings) and
        ``value, vector``; None where there is nothing.
    n_partitions : int or None
        None: as many as ``partition_bytes`` asks for.
    """
    from pexeso.engine.layout.options import (
        PartitionLayoutOptions,
    )  # brings torch, which a deletion does without

    options = job.options

    def work(folder: Path, meter: TaskMeter) -> Facts:
        found = frames(folder)
        if found is None:
            return {"partitions": 0}
        postings, vectors = found
        plan, n_found = plan_partitions(
            postings.select("column_id", "value"),
            vectors,
            dimensions=dimensions,
            n_partitions=n_partitions,
            partition_bytes=None if n_partitions else options.partition_bytes,
            seed=options.seed,
        )
        place = partial(_place, job, folder)
        placed = place("postings", postings.join(plan, "column_id"))
        values = placed.select("partition", "value").distinct()
        place("vectors", values.join(vectors, "value"))
        place(
            "columns",
            job.kept_columns().select("column_id", "table", "label").join(plan, "column_id"),
        )
        plan.unpersist()
        return {"partitions": n_found}

    planned = job.stage("partition", work)
    if not planned["partitions"]:
        return []
    fill = partial(
        write_partition,
        job.stages.folder("partition"),
        options=PartitionLayoutOptions(**options.grid()),
    )
    return job.write_folders("index", planned["partitions"], fill)


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
    columns = _read(placed, "columns", number, ["column_id", "table", "label"]).sort_by("column_id")
    postings = _read(placed, "postings", number, ["column_id", "value", "text"])
    # Rows come from a shuffle, in any order.
    postings = postings.sort_by([("column_id", "ascending"), ("value", "ascending")])
    column_ids = columns["column_id"].to_numpy()
    column = np.searchsorted(column_ids, postings["column_id"].to_numpy())
    value = pc.index_in(postings["value"], values).to_numpy(zero_copy_only=False).astype(np.int64)
    text = postings["text"].combine_chunks().dictionary_encode()
    codes = text.indices.to_numpy(zero_copy_only=False)
    offsets = np.concatenate(
        [[0], np.cumsum(np.bincount(column, minlength=len(column_ids)))]
    ).astype(np.int64)
    options, trials = resolve_options(vectors, offsets, value, options)
    arrays, order = build_partition(vectors, offsets, value, options, device=task_device())
    arrays["column_ids"] = column_ids
    arrays["posting_texts"] = _texts_of_postings(column, value, codes, order, len(values))
    facts = {
        "columns": len(column_ids),
        "values": len(order),
        "values_without_vector": len(values) - len(order),
        "postings": len(arrays["posting_texts"]),
        "cells": n_cells(arrays),
        "coordinates": n_coordinates(arrays),
        "map": options.map,
        **({} if n_levels(arrays) is None else {"levels": n_levels(arrays)}),
    }
    choice = {name: facts[name] for name in ("map", "coordinates", "levels") if name in facts}
    choice["trials"] = [each.to_dict() for each in trials]
    files = [
        *write_arrays(folder, arrays),
        write_texts(folder / "values.arrow", values.take(pa.array(order))),
        write_texts(folder / "texts.arrow", text.dictionary),
        write_texts(folder / "tables.arrow", columns["table"]),
        write_texts(folder / "labels.arrow", columns["label"]),
        write_document(folder / META, {**facts, METRIC: options.metric, CHOICE: choice}),
    ]
    return facts, files


def _texts_of_postings(
    column: np.ndarray, value: np.ndarray, codes: np.ndarray, order: np.ndarray, n_values: int
) -> np.ndarray:
    """Return the text of each posting, int32, in the order of ``column_values``.

    This order is by column, then stored row.
    """
    stored_row = np.full(n_values, -1, dtype=np.int64)
    stored_row[order] = np.arange(len(order))
    row = stored_row[value]
    by_column_and_row = np.lexsort((row, column))
    kept = by_column_and_row[row[by_column_and_row] >= 0]
    return codes[kept].astype(np.int32)


def _vectors(placed: Path, number: int) -> tuple[pa.StringArray, np.ndarray]:
    """Read a partition's distinct values, sorted, and their vectors, float32 (n, d)."""
    table = _read(placed, "vectors", number, ["value", "vector"]).sort_by("value").combine_chunks()
    vector = (
        table["vector"].combine_chunks()
        if isinstance(table["vector"], pa.ChunkedArray)
        else table["vector"]
    )
    flat = pc.list_flatten(vector).to_numpy(zero_copy_only=False)
    return _one_array(table["value"]), np.ascontiguousarray(
        flat.reshape(len(table), -1), dtype=np.float32
    )


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)


def _read(placed: Path, name: str, number: int, columns: list[str]) -> pa.Table:
    folder = placed / name / f"partition={number}"
    return ds.dataset(os.fspath(folder), format="parquet").to_table(columns=columns)
