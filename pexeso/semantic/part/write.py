"""Writing of partitions: model, embedding, division of columns, and reading of stored ones.

Each partition is built by the task that owns it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from embed.batches import embed_file
from embed.corpus import MAX_TOKENS, write_corpus
from embed.registry import create_embedder, load_embedder
from embed.stored import with_precision
from partition.plan import limits_of, plan_partitions, planned
from pexeso.build.parts.base import Filled, Placed, Written
from pexeso.build.parts.metadata import (
    WEIGHED,
    WEIGHED_BY,
    embedder_folder,
    entry_bytes,
    folder_of_model,
    held_columns,
    models_of,
    options_for_model,
    partition_limits,
    sparse_vectors,
    store_of_model,
    written_fields,
)
from pexeso.build.workers import Attempt
from pexeso.engine.lists import offsets_of
from pexeso.errors import InputError
from pexeso.lake.catalog import COLUMNS as CATALOG_COLUMNS
from pexeso.lake.catalog import Catalog, files_in
from pexeso.runtime.exchange import BucketWriter, buckets_by_hash, hash_rows, read_bucket
from pexeso.runtime.threads import LARGE_BYTES, release_unused
from pexeso.semantic.part import stage_of
from pexeso.semantic.part.stored import POSTINGS, ROWS_PER_BATCH, VECTORS, stored_postings
from pexeso.store.arrays import write_arrays, write_texts
from pexeso.store.files import empty_folder, write_document
from pexeso.store.io.parquet import n_bytes_of, parquet_files
from pexeso.store.manifest import CHOICE, META, METRIC, FileEntry, FolderEntry

if TYPE_CHECKING:
    from collections.abc import Callable

    from pexeso.build.job import BuildJob
    from pexeso.build.workers import Facts
    from pexeso.engine.options import PartitionLayoutOptions

# Values of an average column of which a sketch is made: enough to tell which columns are alike.
SKETCHES_A_COLUMN = 64


def read_values(job: BuildJob) -> str:
    """Read all values of an index that is to get a model; return the stage that left them."""

    def work(folder: Path) -> Facts:
        return stored_postings(job, store, range(store.n_partitions), folder)

    models = models_of(job.index.manifest)
    for number in range(len(models)):
        store = store_of_model(job.index, number)
        entries = store.manifest.partitions
        if not any(entry.facts.get("values_without_vector") for entry in entries):
            job.stage("values", work)
            return "values"
    job.writer.keep = False
    raise InputError(
        f"The index '{job.index.path}' lacks the values that its model knows nothing about "
        f"({', '.join(models)}), so that no other can be added. Build the index again with all "
        "models that you need (overwrite=True, --overwrite)."
    )


@dataclass(frozen=True)
class PlacedPartition:
    """Columns and distinct sorted values of a partition that is to be built.

    `column_offsets`, int64 (C + 1,), is where those of each column begin in `value`, int32, and
    `order` the row of each of these among the postings that were laid out.
    """

    placed: Placed
    number: int
    columns: pa.Table
    values: pa.Array
    column_offsets: np.ndarray
    value: np.ndarray
    order: np.ndarray

    @classmethod
    def read(cls, placed: Placed, number: int, values: pa.Array | None = None) -> PlacedPartition:
        columns = placed.read("columns", number, COLUMNS).sort_by("column_id")
        ids = placed.read("postings", number, POSTINGS, ["column_id"])["column_id"].to_numpy()
        column = np.searchsorted(columns["column_id"].to_numpy(), ids).astype(np.int32)
        posted = one_array(placed.read("postings", number, POSTINGS, ["value"])["value"])
        if values is None:
            in_order, is_first, values = _in_order(posted)
            value = np.empty(len(posted), np.int32)
            value[in_order] = np.cumsum(is_first, dtype=np.int32) - 1
            values = values.filter(pa.array(is_first))
        else:
            value = pc.index_in(posted, values).to_numpy(zero_copy_only=False)
        # Rows come from a shuffle, in any order.
        order = np.lexsort((value, column)).astype(np.int32)
        offsets = offsets_of(np.bincount(column, minlength=columns.num_rows))
        return cls(placed, number, columns, values, offsets, value[order], order)

    def texts(self) -> tuple[pa.Array, np.ndarray]:
        """Read the distinct texts, as they come by column, then value, and which each has."""
        posted = one_array(self.placed.read("postings", self.number, POSTINGS, ["text"])["text"])
        posted = posted.take(pa.array(self.order))
        in_order, is_first = _in_order(posted)[:2]
        release_unused(LARGE_BYTES)
        first = in_order[is_first]
        rank, text = np.empty(len(first), np.int32), np.empty(len(posted), np.int32)
        rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
        text[in_order] = rank[np.cumsum(is_first, dtype=np.int32) - 1]
        return posted.take(pa.array(np.sort(first))), text

    def write(
        self,
        folder: Path,
        files: list[FileEntry],
        order: np.ndarray,
        facts: Mapping[str, Any],
        document: Mapping[str, Any],
    ) -> Filled:
        """Write what `files` lack of the partition; `order` is the value of each stored row."""
        texts, text = self.texts()
        release_unused(LARGE_BYTES)
        # The text of each posting in the order of ``column_values``: by column, then stored row.
        stored_row = np.full(len(self.values), -1, np.int32)
        stored_row[order] = np.arange(len(order), dtype=np.int32)
        row = stored_row[self.value]
        columns = np.arange(len(self.columns), dtype=np.int32)
        column = np.repeat(columns, np.diff(self.column_offsets))
        by_column_and_row = np.lexsort((row, column))
        postings = by_column_and_row[row[by_column_and_row] >= 0]
        text = text[postings]
        ids = self.columns["column_id"].to_numpy()
        every = {
            "columns": len(ids),
            "values": len(order),
            "values_without_vector": len(self.values) - len(order),
            "postings": len(text),
            **facts,
        }
        files = [
            *files,
            *write_arrays(folder, {"column_ids": ids, "posting_texts": text}),
            write_texts(folder / "texts.arrow", texts),
            write_texts(folder / "values.arrow", self.values.take(pa.array(order))),
            write_texts(folder / "tables.arrow", self.columns["table"]),
            write_texts(folder / "labels.arrow", self.columns["label"]),
            write_document(folder / META, {**every, **document}),
        ]
        return every, files


def _in_order(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, pa.Array]:
    """Return the order of texts, int64, those in order, and which of these are new, bool."""
    order = pc.sort_indices(texts)
    texts = texts.take(order)
    is_first = np.ones(len(texts), bool)
    if len(texts):
        is_first[1:] = pc.not_equal(texts[1:], texts[:-1])
    return order.to_numpy().view(np.int64), is_first, texts


def one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)


MADE_FROM_CORPUS = ("fasttext", "hashing", "lexical")
"""Models made here: one is trained on the lake's values, the others weigh words by how rare they
are in the lake."""

VALUES_PER_CORPUS = MAX_TOKENS // 2

MADE = "model"
"""Where a stage leaves a model that may not come into the index."""


def write(job: BuildJob, *, model: int = 0) -> Written:
    """Write partitions of the values in the job's catalog; a model that is new is made first."""
    if not job.makes_model(model):
        return write_embedded(job, model, "catalog")
    source = "catalog" if job.store is None else read_values(job)
    saved = folder_of_model(job.writer.embedder_folder, model)
    return write_embedded(job, model, source, make_model(job, model, source, saved), saved)


def write_embedded(
    job: BuildJob, model: int, source: str, made: Facts | None = None, saved: Path | None = None
) -> Written:
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
    if "letters" not in facts:
        _embed(job, stage_of("embed", model), source, folder)
    limits = limits_of(
        counts["columns"],
        counts["postings"],
        facts["dimensions"],
        entry_bytes=entry_bytes(options_for_model(job.options, model)),
        **partition_limits(job.options, whole=is_new),
    )
    entries = divide_and_write(
        job,
        partial(_sources, job, source, folder, model, in_one=limits.n_bins == 1),
        facts,
        is_new,
        folder,
        model,
    )
    more = {
        "values": facts["values"] + counts["values"],
        "postings": facts["postings"] + sum(entry.facts["postings"] for entry in entries),
    }
    if weighs:
        n_columns = sum(entry.facts["columns"] for entry in entries)
        more[WEIGHED_BY] = held_columns(next_column, n_columns)
    return Written(entries, **written_fields(job.store, model, {**facts, **more}, fingerprints))


def _sources(
    job: BuildJob, source: str, embedder: Path, model: int, folder: Path, *, in_one: bool
) -> tuple[list[Path], list[Path]]:
    """Return the files of postings, and of vectors where they are needed."""
    postings = parquet_files(job.stages.folder(source) / "postings")
    if (stage := stage_of("embed", model)) in job.stages.names:
        return postings, parquet_files(job.stages.folder(stage) / "vectors")
    if in_one:
        return postings, []
    counts = job.stages.finished(source)
    share = SKETCHES_A_COLUMN * counts["columns"] / counts["postings"]
    values = parquet_files(job.stages.folder(source) / "values")
    return postings, embedded(job, values, embedder, folder, share=share)


def embedded(
    job: BuildJob, values: Sequence[Path], embedder: Path, folder: Path, share: float = 1.0
) -> list[Path]:
    """Write the vectors of files of values, or of a share of these: a file for each."""
    embedder = embedder.resolve()
    fingerprint = load_embedder(embedder).fingerprint
    task = partial(embed_file, folder=str(embedder), fingerprint=fingerprint, share=share)
    job.run(task, values, folder, n_bytes=n_bytes_of(values), alone=True)
    return parquet_files(folder / "vectors")


def make_model(
    job: BuildJob, model: int, source: str, saved: Path | None = None, dimensions: int | None = None
) -> Facts:
    def work(folder: Path) -> Facts:
        options, corpus = options_for_model(job.options, model), None
        if options.model in MADE_FROM_CORPUS:
            corpus = folder / "corpus.txt"
            _write_corpus(job, source, folder, corpus)
        embedder = create_embedder(
            options.model,
            corpus=corpus,
            dimensions=options.dimensions if dimensions is None else dimensions,
            value_vectors=options.value_vectors,
            seed=options.seed,
            distinctions=job.options.normaliser.distinctions,
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


def _write_corpus(job: BuildJob, source: str, folder: Path, path: Path) -> None:
    """Write a sample of (column, value) pairs as text.

    Tasks draw the sample if the lake is larger than it. It depends on the ids of columns; those of
    an existing index are numbered as a fresh build would.
    """
    ranks = None if job.store is None else _column_ranks(job)
    files = parquet_files(job.stages.folder(source) / "postings")
    n_pairs = job.stages.finished(source)["postings"]
    if n_pairs > VALUES_PER_CORPUS:
        share = int(VALUES_PER_CORPUS / n_pairs * _OF_A_MILLION)
        task = partial(_draw_pairs, share=share, seed=job.options.seed, ranks=ranks)
        job.run(task, files, folder, n_bytes=n_bytes_of(files))
        files, ranks = parquet_files(folder / "pairs"), None
    dataset = ds.dataset(files, schema=_PAIRS)
    batches = dataset.to_batches(
        columns={"group": ds.field("column_id"), "value": ds.field("value")}
    )
    write_corpus(
        batches if ranks is None else (_ranked(batch, ranks) for batch in batches),
        path,
        seed=job.options.seed,
    )


_PAIRS = pa.schema([("column_id", pa.int64()), ("value", pa.string())])
_OF_A_MILLION = 1_000_000


def _draw_pairs(
    path: Path, attempt: Attempt, *, share: int, seed: int, ranks: pa.Table | None
) -> None:
    """Write the pairs of a file that are drawn by hash, their columns by rank."""
    # A number of 32 bits where it is one: how it was always hashed.
    kind = np.int32 if -(2**31) <= seed < 2**31 else np.int64
    with pq.ParquetWriter(attempt.path("pairs", "part.parquet"), _PAIRS) as writer:
        for batch in pq.ParquetFile(path).iter_batches(ROWS_PER_BATCH, columns=_PAIRS.names):
            if ranks is not None:
                pairs = batch.rename_columns(["group", "value"])
                batch = _ranked(pairs, ranks).rename_columns(_PAIRS.names)
            pairs = batch.cast(_PAIRS)
            seeds = pa.array(np.full(len(pairs), seed, kind))
            drawn = np.fmod(hash_rows(pairs["column_id"], pairs["value"], seeds), _OF_A_MILLION)
            writer.write_batch(pairs.filter(pa.array(np.abs(drawn) < share)))


def _column_ranks(job: BuildJob) -> pa.Table:
    """Return ``column_id`` of all columns, ascending, and ``rank``, the ids of a fresh build."""
    ids = Catalog(files_in([job.writer.catalog_folder])).columns(["column_id"])["column_id"]
    table = pa.table({"column_id": ids.drop_null(), "rank": np.arange(len(ids) - ids.null_count)})
    return table.sort_by("column_id")


def _ranked(batch: pa.RecordBatch, ranks: pa.Table) -> pa.RecordBatch:
    places = np.searchsorted(ranks["column_id"].to_numpy(), batch.column("group").to_numpy())
    groups = ranks["rank"].to_numpy()[places]
    return pa.RecordBatch.from_pydict({"group": groups, "value": batch.column("value")})


def _embed(job: BuildJob, stage: str, source: str, embedder: Path) -> Facts:
    def work(folder: Path) -> Facts:
        embedded(job, parquet_files(job.stages.folder(source) / "values"), embedder, folder)
        return {"dimensions": load_embedder(embedder).dimensions}

    return job.stage(stage, work)


def divide_and_write(
    job: BuildJob,
    sources: Callable[[Path], tuple[list[Path], list[Path]] | None],
    facts: Facts,
    whole: bool,
    embedder_folder: Path,
    model: int,
) -> list[FolderEntry]:
    """Divide columns into partitions, lay out what each needs, and have each built by a task.

    `sources`, given a folder of the stage, returns files of postings (``column_id, value, text``)
    and of vectors (``value, vector``), as `partition.plan` takes them; None where there is nothing.
    Of a lexical model the vectors are sketches, needed only where there is more than one partition.
    """
    from pexeso.engine.options import PartitionLayoutOptions  # brings torch

    options, is_lexical = job.options, "letters" in facts

    def work(folder: Path) -> Facts:
        files = sources(folder)
        if files is None:
            return {"partitions": 0}
        postings, vectors = files
        n_bytes = n_bytes_of([*postings, *vectors])
        n_found = plan_partitions(
            partial(job.run, folder=folder, n_bytes=n_bytes),
            folder,
            postings,
            vectors,
            dimensions=facts["dimensions"],
            entry_bytes=entry_bytes(options_for_model(options, model)),
            seed=options.seed,
            **partition_limits(options, whole=whole),
        )
        place = partial(_place, plan=folder, n_partitions=n_found, n_buckets=len(vectors))
        place = partial(place, with_values=not is_lexical)
        job.run(place, postings, folder, n_bytes=n_bytes)
        if not is_lexical:
            place = partial(
                _place_vectors, placed=folder / _VALUES, n_partitions=n_found, n=len(vectors)
            )
            job.run(place, list(enumerate(vectors)), folder, n_bytes=n_bytes)
        [catalog] = files_in([job.writer.catalog_folder])(CATALOG_COLUMNS)
        place = partial(_place_columns, plan=folder, n_partitions=n_found)
        job.run(place, catalog, folder, n_bytes=n_bytes_of(catalog))
        return {"partitions": n_found, "bytes": n_bytes}

    stage = stage_of("partition", model)
    divided = job.stage(stage, work)
    n_partitions = divided["partitions"]
    if not n_partitions:
        return []
    placed = Placed(job.stages.folder(stage), range(n_partitions), n_partitions)
    if is_lexical:
        fill = partial(write_sparse_partition, placed, embedder_folder=embedder_folder)
    else:
        fill = partial(write_partition, placed, options=PartitionLayoutOptions(**options.grid()))
    # Products of matrices are rounded otherwise by several threads, as this process has.
    stage, n_bytes = stage_of("index", model), divided["bytes"]
    return job.write_folders(stage, n_partitions, fill, n_bytes=n_bytes, alone=not is_lexical)


_VALUES = "placed_values"
_PLACES = pa.schema([("value", pa.string()), ("partition", pa.int64())])


def _place(
    path: Path,
    attempt: Attempt,
    *,
    plan: Path,
    n_partitions: int,
    n_buckets: int,
    with_values: bool,
) -> None:
    """Write postings for the tasks that own their partitions, and which values these need."""
    file = pq.ParquetFile(path)
    ids = file.read(columns=["column_id"])["column_id"].unique().sort()
    places = planned(plan, ids)
    needed = []
    with BucketWriter(attempt.path("postings", "part.arrow"), n_partitions, POSTINGS) as writer:
        for batch in file.iter_batches(ROWS_PER_BATCH, columns=POSTINGS.names):
            row = np.searchsorted(ids.to_numpy(), batch["column_id"].to_numpy())
            writer.add(batch, places[row])
            if with_values:
                columns = [batch["value"], pa.array(places[row])]
                needed.append(_distinct_rows(pa.Table.from_arrays(columns, schema=_PLACES)))
    if with_values:
        rows = _distinct_rows(pa.concat_tables([_PLACES.empty_table(), *needed]))
        with BucketWriter(attempt.path(_VALUES, "part.arrow"), n_buckets, _PLACES) as writer:
            writer.add(rows, buckets_by_hash(n_buckets, rows["value"]))


def _distinct_rows(rows: pa.Table) -> pa.Table:
    return rows.group_by(_PLACES.names, use_threads=False).aggregate([])


def _place_vectors(
    item: tuple[int, Path], attempt: Attempt, *, placed: Path, n_partitions: int, n: int
) -> None:
    """Write the vectors of a bucket for the partitions that need them."""
    bucket, path = item
    needed = _distinct_rows(read_bucket(placed, bucket, n, _PLACES)).sort_by("partition")
    with BucketWriter(attempt.path("vectors", "part.arrow"), n_partitions, VECTORS) as writer:
        for batch in pq.ParquetFile(path).iter_batches(ROWS_PER_BATCH, columns=VECTORS.names):
            row = pc.index_in(needed["value"].combine_chunks(), value_set=batch["value"])
            known = np.flatnonzero(row.is_valid().to_numpy(zero_copy_only=False))
            rows = pa.Table.from_batches([batch]).cast(VECTORS).take(row.take(pa.array(known)))
            writer.add(rows, needed["partition"].to_numpy()[known])


COLUMNS = pa.schema([("column_id", pa.int64()), ("table", pa.string()), ("label", pa.string())])


def _place_columns(path: Path, attempt: Attempt, *, plan: Path, n_partitions: int) -> None:
    """Write the columns of a file of the catalog for the partitions that they are in."""
    rows = pq.read_table(path, columns=COLUMNS.names, partitioning=None)
    rows = rows.filter(pc.field("column_id").is_valid())
    places = planned(plan, rows["column_id"])
    is_in = places >= 0
    with BucketWriter(attempt.path("columns", "part.arrow"), n_partitions, COLUMNS) as writer:
        writer.add(rows.filter(pa.array(is_in)), places[is_in])


def write_partition(
    placed: Placed, number: int, folder: Path, *, options: PartitionLayoutOptions
) -> Filled:
    """Build one partition from what the earlier stages left, and write its files.

    The same input gives the same bytes, however often a task runs. Memory is about four times the
    partition's vectors.
    """
    # Brings torch, which the tasks that read tables do not need.
    from embed.batches import task_device
    from pexeso.engine.dense.building import (
        build_partition,
        n_cells,
        n_coordinates,
        n_levels,
        resolve_options,
    )

    table = placed.read("vectors", number, VECTORS).sort_by("value")
    table = table.combine_chunks()
    values = one_array(table["value"])
    flat = pc.list_flatten(one_array(table["vector"])).to_numpy(zero_copy_only=False)
    vectors = np.ascontiguousarray(flat.reshape(len(table), -1), dtype=np.float32)
    contents = PlacedPartition.read(placed, number, values)
    columns = contents.column_offsets, contents.value.astype(np.int64)
    options, trials = resolve_options(vectors, *columns, options)
    arrays, order = build_partition(vectors, *columns, options, device=task_device())
    facts = {
        "cells": n_cells(arrays),
        "coordinates": n_coordinates(arrays),
        "map": options.map,
        **({} if n_levels(arrays) is None else {"levels": n_levels(arrays)}),
    }
    choice = {name: facts[name] for name in ("map", "coordinates", "levels") if name in facts}
    choice["trials"] = [trial._asdict() for trial in trials]
    document = {METRIC: options.metric, CHOICE: choice}
    return contents.write(folder, write_arrays(folder, arrays), order, facts, document)


def write_sparse_partition(
    placed: Placed, number: int, folder: Path, *, embedder_folder: Path
) -> Filled:
    """Do as `write_partition` for values of a lexical model.

    Memory is about twice what is written, or less; each array is dropped once it is
    written.
    """
    from pexeso.engine.sparse.partition import arrays_in_turn

    contents = PlacedPartition.read(placed, number)
    release_unused(LARGE_BYTES)
    arrays, order = arrays_in_turn(
        sparse_vectors(load_embedder(embedder_folder), contents.values),
        contents.column_offsets,
        contents.value,
    )
    sizes: dict[str, int] = {}

    def counted() -> Iterator[tuple[str, np.ndarray]]:
        for name, array in arrays:
            sizes[name] = len(array)
            yield name, array

    files = write_arrays(folder, counted())
    facts = {"words": sizes["word_weights"], "keys": sizes["keys"]}
    return contents.write(folder, files, order, facts, {})
