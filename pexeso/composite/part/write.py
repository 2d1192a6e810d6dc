"""Shards of rows written: tables divided among them, then each built by the task that owns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.base import Filled, PartEstimate, Placed, estimated, read_rows
from pexeso.build.parts.sample import LakeSample, grown
from pexeso.composite.part import FIELDS, RECORD, ROW_KEYS_PART, ROWS
from pexeso.composite.part.open import ARRAYS, COLUMNS, SUPER_KEYS, TABLES, VALUES
from pexeso.engine.lists import offsets_of
from pexeso.lake.catalog import SCHEMA
from pexeso.lake.tokens import NAME
from pexeso.options import BuildOptions
from pexeso.store.arrays import write_arrays, write_texts
from pexeso.store.files import write_document
from pexeso.store.manifest import META

# Bytes that a cell and a row count for when tables are divided: about twice what they take on the
# disk, half of what building takes.
CELL_BYTES, ROW_BYTES = 24, 48

# All lists of a shard together may be longer than 2 GiB.
_LONG = pa.schema(
    [
        *(SCHEMA.field(name) for name in ("table", "n_rows", "n_columns", "first_row")),
        pa.field("labels", pa.large_list(pa.large_string())),
        pa.field("texts", pa.large_list(pa.large_string())),
        pa.field("cells", pa.large_list(pa.int32())),
    ]
)


def sizes(name: str, rows: pa.RecordBatch | None) -> tuple[int, int, int]:
    """Return the numbers of cells and of rows among some records, and the bytes of the texts."""
    if rows is None:
        return 0, 0, 0
    n_rows, n_columns = (rows[field].to_numpy().astype(np.int64) for field in _COUNTS)
    letters = pc.sum(pc.binary_length(pc.list_flatten(rows["texts"]))).as_py() or 0
    return int(n_rows @ n_columns), int(n_rows.sum()), letters


_COUNTS = ("n_rows", "n_columns")


def shards_needed(n_cells: int, n_rows: int, text_bytes: int, options: BuildOptions) -> int:
    n_bytes = n_cells * CELL_BYTES + n_rows * ROW_BYTES + text_bytes
    return -(-n_bytes // options.partition_bytes)


def write_shard(placed: Placed, number: int, folder: Path, *, filters: tuple[str, ...]) -> Filled:
    from pexeso.composite.row_keys import filter_to_json, filters_of, row_keys_of

    records = read_rows(placed, ROWS, number, FIELDS).cast(_LONG)
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


# The estimate is counted on a sample of the lake's files: rows and cells are scaled by bytes,
# distinct values by Heaps' law.

# On the disk: a cell and its entry in a posting list; and of a value, besides its letters, where
# these end and where its list begins.
STORED_CELL_BYTES, STORED_VALUE_BYTES = 8, 12

MEMORY_OF_CELL = 50  # Bytes of memory while a shard is built.

# What each stage takes for the smallest lake.
FIXED_SECONDS: Mapping[str, float] = {"read": 0.1, "divide-rows": 0.1, "rows": 0.1}

# What each cell costs, seconds of one core.
SECONDS_PER_CELL: Mapping[str, float] = {"read": 0.25e-6, "divide-rows": 0.15e-6, "rows": 0.15e-6}


@dataclass(frozen=True)
class RowKeysEstimate:
    rows: int = 0
    cells: int = 0
    values: int = 0
    shards: int = 0
    bytes: int = 0  # On the disk


def estimate(sample: LakeSample) -> PartEstimate:
    options = sample.options
    if not set(ROW_KEYS_PART.choices) & set(options.parts):
        return estimated("composite", RowKeysEstimate())
    read = sample.rows(RECORD)
    texts = [pc.list_flatten(rows["texts"].combine_chunks()) for rows in read]
    cells = sample.lake_total(
        [pc.sum(pc.multiply(rows["n_rows"], rows["n_columns"])).as_py() or 0 for rows in read]
    )
    n_rows = sample.lake_total([pc.sum(rows["n_rows"]).as_py() or 0 for rows in read])
    n_texts = sample.lake_total([len(file_texts) for file_texts in texts])
    distinct = pc.unique(pa.chunked_array(texts, pa.string()))
    mean_bytes = (pc.sum(pc.binary_length(distinct)).as_py() or 0) / max(1, len(distinct))
    values, growth = grown(texts, n_texts) if len(distinct) else (0, 1.0)
    shards = shards_needed(cells, n_rows, round(n_texts * mean_bytes), options)
    # A value in two shards is written twice.
    values = round(values * max(1, shards) ** (1.0 - growth))
    filter_bytes = sum(int(name.split("-")[1]) // 8 for name in options.row_filters)
    n_bytes = round(
        cells * STORED_CELL_BYTES
        + n_rows * filter_bytes
        + values * (STORED_VALUE_BYTES + mean_bytes)
    )
    counted = RowKeysEstimate(n_rows, cells, values, shards, n_bytes)
    seconds = {
        stage: sample.factor
        * (FIXED_SECONDS[stage] + rate * cells / min(sample.cores, _tasks(stage, counted)))
        for stage, rate in SECONDS_PER_CELL.items()
    }
    memory = MEMORY_OF_CELL * cells // max(1, shards)
    return estimated("composite", counted, n_bytes, memory, seconds)


def _tasks(stage: str, sizes: RowKeysEstimate) -> int:
    """Return how many tasks a stage has at most: a shard is built by one."""
    return max(1, sizes.shards) if stage == "rows" else 1 << 30
