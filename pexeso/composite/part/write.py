"""Shards of rows written: tables divided among them, then each built by the task that owns it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pexeso.build.parts.base import Written
from pexeso.build.parts.divide import divide, write_one_shard
from pexeso.composite.part.open import ARRAYS, COLUMNS, SUPER_KEYS, TABLES, VALUES
from pexeso.composite.part.records import FIELDS, RECORD
from pexeso.lake.key_texts import NAME
from pexeso.lake.record_schema import SCHEMA
from pexeso.runtime.ranges import offsets_of
from pexeso.store.arrays import write_arrays
from pexeso.store.files import write_document
from pexeso.store.local.target import META
from pexeso.store.manifest import FileEntry
from pexeso.store.texts import write_texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pexeso.build.job import BuildJob
    from pexeso.build.stages import Facts
    from pexeso.options import BuildOptions
    from pexeso.store.manifest import FolderEntry

CELL_BYTES, ROW_BYTES = 24, 48
"""Bytes that a cell and a row count for when tables are divided: about twice what they take on the
disk, half of what building takes."""

ROWS = "rows"
"""What is laid out for a shard: records of `pexeso.composite.part.records`."""


_LONG = pa.schema(
    [
        *(SCHEMA.field(name) for name in ("table", "n_rows", "n_columns", "first_row")),
        pa.field("labels", pa.large_list(pa.large_string())),
        pa.field("texts", pa.large_list(pa.large_string())),
        pa.field("cells", pa.large_list(pa.int32())),
    ]
)
"""All lists of a shard together may be longer than 2 GiB."""


def write(job: BuildJob) -> Written:
    """Write shards of the rows that the job has read."""
    rows = job.records_at_hand(RECORD, FIELDS)
    if rows is None or not fit_one_shard(rows, job.options):
        rows = job.records(RECORD).select(*FIELDS)
    return Written(divide_and_write(job, rows))


def fit_one_shard(rows: pa.Table, options: BuildOptions) -> bool:
    """Return whether one shard takes some records."""
    n_rows, n_columns = (rows[name].to_numpy().astype(np.int64) for name in ("n_rows", "n_columns"))
    letters = pc.sum(pc.binary_length(pc.list_flatten(rows["texts"]))).as_py() or 0
    sizes = int(n_rows @ n_columns), int(n_rows.sum()), letters
    return shards_needed(*sizes, options.partition_bytes) <= 1


def divide_and_write(job: BuildJob, rows: DataFrame | pa.Table) -> list[FolderEntry]:
    """Divide tables among shards, and build each."""
    laid_out = job.stage("divide-rows", lambda folder, meter: _lay_out(job, rows, folder))
    if not laid_out["shards"]:
        return []
    placed = job.stages.folder("divide-rows")
    fill = partial(write_shard, placed, filters=tuple(job.options.row_filters))
    return job.write_folders("rows", laid_out["shards"], fill, placed=placed)


def _lay_out(job: BuildJob, rows: DataFrame | pa.Table, folder: Path) -> Facts:
    if isinstance(rows, pa.Table):
        return {"shards": write_one_shard({ROWS: rows}, folder)}
    from pyspark.sql import functions as sql

    n_cells = sql.sum(sql.col("n_rows") * sql.col("n_columns"))
    letters = sql.sum(sql.expr("aggregate(texts, 0L, (sum, text) -> sum + octet_length(text))"))
    sizes = rows.agg(n_cells, sql.sum("n_rows"), letters).first()
    n_shards = shards_needed(*(size or 0 for size in sizes), job.options.partition_bytes)
    return {"shards": divide({ROWS: rows}, ("table",), n_shards, folder)}


def shards_needed(n_cells: int, n_rows: int, text_bytes: int, partition_bytes: int) -> int:
    """Return how many shards take what there is, each of about `partition_bytes`."""
    n_bytes = n_cells * CELL_BYTES + n_rows * ROW_BYTES + text_bytes
    return -(-n_bytes // partition_bytes)


def write_shard(
    placed: Path, number: int, folder: Path, *, filters: tuple[str, ...]
) -> tuple[dict[str, Any], list[FileEntry]]:
    """Build one shard from its prepared data (`placed`), and write its files.

    The same tables give the same bytes, in whatever order records come.

    Parameters
    ----------
    filters : tuple of str
        See `pexeso.composite.filters.require_filters`.

    Returns
    -------
    facts, files
        Of the shard.

    Notes
    -----
    Memory is some 50 bytes a cell, twice the texts, and the super keys.
    """
    from pexeso.composite.filters import filter_to_json, filters_of
    from pexeso.composite.row_keys import row_keys_of  # brings numba

    shard = ds.dataset(os.fspath(placed / ROWS / f"shard={number}"), format="parquet")
    records = shard.to_table(columns=list(FIELDS)).cast(_LONG)
    records = records.sort_by([("table", "ascending"), ("first_row", "ascending")])
    values, cells = _numbered_cells(records)
    begins = _begins(records["table"])
    n_rows = np.add.reduceat(records["n_rows"].to_numpy(), begins)
    widths = records["n_columns"].to_numpy()[begins].astype(np.int64)
    mean_columns = (n_rows * widths).sum() / n_rows.sum()
    rows = row_keys_of(
        values, cells, offsets_of(n_rows), offsets_of(widths), filters_of(filters, mean_columns)
    )
    facts = {
        "tables": rows.n_tables,
        "rows": rows.n_rows,
        "cells": len(cells),
        "values": len(values),
        "form": NAME,
        "filters": [filter_to_json(keys.hashing) for keys in rows.super_keys.values()],
    }
    firsts = records.take(pa.array(begins))
    words = {SUPER_KEYS % name: keys.words.view(np.int64) for name, keys in rows.super_keys.items()}
    files = [
        *write_arrays(folder, {**{name: getattr(rows, name) for name in ARRAYS}, **words}),
        write_texts(folder / VALUES, values),
        write_texts(folder / TABLES, firsts["table"]),
        write_texts(folder / COLUMNS, pc.list_flatten(firsts["labels"])),
    ]
    return facts, [*files, write_document(folder / META, facts)]


def _numbered_cells(records: pa.Table) -> tuple[pa.Array, np.ndarray]:
    """Return the distinct texts of records in order, and all cells as numbers of them."""
    from pexeso.composite.row_keys import numbered

    values, number_of_text = numbered(pc.list_flatten(records["texts"]))
    n_texts = pc.list_value_length(records["texts"]).to_numpy().astype(np.int64)
    n_cells = pc.list_value_length(records["cells"]).to_numpy()
    cells = pc.list_flatten(records["cells"]).to_numpy()
    positions = cells + np.repeat(offsets_of(n_texts)[:-1], n_cells)
    numbers = np.full(len(cells), -1, np.int32)
    numbers[cells >= 0] = number_of_text[positions[cells >= 0]]
    if values.nbytes < 2**31:
        values = values.cast(pa.string())
    return values, numbers


def _begins(tables: pa.ChunkedArray) -> np.ndarray:
    """Return where the records of each table begin: int64 (t,)."""
    is_first = np.ones(len(tables), bool)
    if len(tables) > 1:
        joined = tables.combine_chunks()
        is_first[1:] = pc.not_equal(joined[1:], joined[:-1]).to_numpy(zero_copy_only=False)
    return np.flatnonzero(is_first)
