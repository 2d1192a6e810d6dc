"""What the partitions of an index hold: values, texts and vectors, read in tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.build.parts.base import Batches
from pexeso.build.parts.copied import folders_fit, rows_of_folders
from pexeso.build.parts.models import models_of, store_of_model
from pexeso.errors import InputError
from pexeso.lake.catalog import COLUMNS, Catalog, files_in
from pexeso.store.io.location import read_parquet, spark_path
from pexeso.store.io.parquet_folder import write_parquet_folder
from pexeso.store.local.reader import Store
from pexeso.store.texts import take_texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pexeso.build.job import BuildJob
    from pexeso.build.report import TaskMeter
    from pexeso.build.stages import Facts

POSTINGS = pa.schema([("column_id", pa.int64()), ("value", pa.string()), ("text", pa.string())])
VECTORS = pa.schema([("value", pa.string()), ("vector", pa.list_(pa.float32()))])
ROWS_PER_BATCH = 1 << 14


def read_values(job: BuildJob) -> str:
    """Read all values of an index that is to get a model; gives the stage that left them."""

    def work(folder: Path, meter: TaskMeter) -> Facts:
        numbers = range(store.n_partitions)
        if folders_fit(store.manifest.partitions):
            read = partial(read_partitions, store=store, schema=POSTINGS)
            write_parquet_folder(rows_of_folders(numbers, read, POSTINGS), folder / "postings")
            rows = pq.read_table(folder / "postings", columns=["column_id", "value"])
            values = pa.table({"value": rows["value"].unique()})
            return {
                "columns": pc.count_distinct(rows["column_id"]).as_py(),
                "postings": rows.num_rows,
                "values": write_parquet_folder(values, folder / "values"),
            }
        postings = stored_rows(job, store, numbers, folder / "postings", POSTINGS)
        postings.select("value").distinct().write.parquet(spark_path(folder / "values"))
        values = read_parquet(job.spark, folder / "values")
        columns = postings.select("column_id").distinct()
        return {
            "columns": columns.count(),
            "postings": postings.count(),
            "values": values.count(),
        }

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


def stored_rows(
    job: BuildJob, store: Store, numbers: Sequence[int], folder: Path, schema: pa.Schema
) -> DataFrame:
    """Write rows of some partitions, of `POSTINGS` or `VECTORS`, as a folder, and read it."""
    frame = job.read_folders(numbers, partial(read_partitions, store=store, schema=schema), schema)
    if schema is VECTORS:
        frame = frame.dropDuplicates(["value"])
    frame.write.parquet(spark_path(folder))
    return read_parquet(job.spark, folder)


def copy_into_one(job: BuildJob, store: Store, numbers: Sequence[int], folder: Path) -> int:
    """Lay out what holds of some partitions for one, in the driver.

    Returns
    -------
    int
        0 where nothing holds, else 1.
    """

    def rows(schema: pa.Schema) -> pa.RecordBatchReader:
        read = partial(read_partitions, store=store, schema=schema)
        return rows_of_folders(numbers, read, schema)

    def write(name: str, table: pa.Table | pa.RecordBatchReader) -> int:
        return write_parquet_folder(table, folder / name / "partition=0")

    if not write("postings", rows(POSTINGS)):
        return 0
    ids = pq.read_table(folder / "postings", columns=["column_id"])["column_id"].unique()
    catalog = Catalog(files_in([job.writer.catalog_folder]))
    held = pc.field("column_id").isin(ids)
    pieces = catalog.pieces(COLUMNS, ["column_id", "table", "label"], held)
    write("columns", pa.concat_tables(piece() for piece in pieces))
    if "letters" not in store.manifest.facts:
        vectors = rows(VECTORS).read_all()
        first = pc.index_in(vectors["value"].unique(), value_set=vectors["value"])
        write("vectors", vectors.take(first))
    return 1


def read_partitions(batches: Batches, *, store: Store, schema: pa.Schema) -> Batches:
    """Read the columns that hold back from partitions whose numbers come in."""
    read = _stored_postings if schema.equals(POSTINGS) else _stored_vectors
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from read(store, number)


def _stored_postings(store: Store, number: int) -> Batches:
    arrays = store.partition(number)
    values, texts = store.texts(number, "values"), store.texts(number, "texts")
    offsets, mask = arrays["column_values_offsets"], store.deleted_mask(number)
    for start in range(0, len(arrays["column_values_members"]), ROWS_PER_BATCH):
        postings = np.arange(
            start, min(start + ROWS_PER_BATCH, len(arrays["column_values_members"]))
        )
        column = np.searchsorted(offsets, postings, side="right") - 1
        if mask is not None:
            postings, column = postings[~mask[column]], column[~mask[column]]
        text_arrays = (
            take_texts(values, arrays["column_values_members"][postings]),
            take_texts(texts, arrays["posting_texts"][postings]),
        )
        yield pa.RecordBatch.from_arrays(
            [pa.array(arrays["column_ids"][column]), *text_arrays], schema=POSTINGS
        )


def _stored_vectors(store: Store, number: int) -> Batches:
    from embed.spark import as_lists

    arrays, mask = store.partition(number), store.deleted_mask(number)
    needed = np.ones(len(arrays["vectors"]), dtype=bool)
    if mask is not None:
        held = np.repeat(~mask, np.diff(arrays["column_values_offsets"]))
        needed[:] = False
        needed[arrays["column_values_members"][held]] = True
    rows = np.flatnonzero(needed)
    values = store.texts(number, "values")
    for start in range(0, len(rows), ROWS_PER_BATCH):
        some = rows[start : start + ROWS_PER_BATCH]
        vectors = np.ascontiguousarray(arrays["vectors"][some], dtype=np.float32)
        yield pa.RecordBatch.from_arrays(
            [take_texts(values, some), as_lists(vectors)], schema=VECTORS
        )
