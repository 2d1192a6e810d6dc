"""What the tasks of a build do with their Arrow batches; every function here runs in a worker process."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import pexeso.errors
from pexeso.errors import PexesoError
from pexeso.lake import catalog
from pexeso.lake.choose import ColumnRules
from pexeso.lake.files import TableFile
from pexeso.lake.normalise import Normaliser
from pexeso.lake.records import table_records
from pexeso.store.arrays import write_arrays
from pexeso.store.files import write_document
from pexeso.store.folders import filling
from pexeso.store.manifest import FileEntry
from pexeso.store.texts import write_texts

if TYPE_CHECKING:
    from pexeso.engine.grid_options import GridOptions

Batches = Iterator[pa.RecordBatch]

_OWN_ERROR = re.compile(r"pexeso\.errors\.(\w+): ([^\n]+)")


def read_tables(batches: Batches, *, rules: ColumnRules, normaliser: Normaliser, max_table_bytes: int) -> Batches:
    """Turn a listing of files (table, path, format, n_bytes) into records; a bad file becomes a record with its reason."""
    for batch in batches:
        for row in batch.to_pylist():
            file = TableFile(row["table"], Path(row["path"]), row["format"], row["n_bytes"])
            yield from table_records(file, rules, normaliser, max_bytes=max_table_bytes)


def write_tables(batches: Batches, *, folder: str, skipped: Sequence[tuple[str, str]]) -> Batches:
    """Write the catalog of tables from sorted table records, then the files that are no tables (path, reason)."""
    n_rows = 0
    with pq.ParquetWriter(Path(folder, catalog.TABLES_FILE), catalog.TABLES_SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch.select(catalog.TABLES_SCHEMA.names).cast(catalog.TABLES_SCHEMA))
            n_rows += len(batch)
        rows = [{"table": path, "reason": reason} for path, reason in skipped]
        writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=catalog.TABLES_SCHEMA))
    yield _rows(n_rows + len(rows))


def write_columns(batches: Batches, *, folder: str) -> Batches:
    """Write the catalog of columns from sorted column records, numbering those that are kept from 0."""
    n_rows = n_kept = 0
    with pq.ParquetWriter(Path(folder, catalog.COLUMNS_FILE), catalog.COLUMNS_SCHEMA) as writer:
        for batch in batches:
            kept = np.asarray(batch.column("reason").is_null())
            ids = pa.array(n_kept + np.cumsum(kept) - 1, pa.int64(), mask=~kept)
            numbered = batch.select(catalog.COLUMNS_SCHEMA.names[:-1]).append_column("column_id", ids)
            writer.write_batch(numbered.cast(catalog.COLUMNS_SCHEMA))
            n_kept += int(kept.sum())
            n_rows += len(batch)
    yield _rows(n_rows)


def write_partitions(batches: Batches, *, scratch: str, folders: Sequence[str], options: GridOptions) -> Batches:
    """Write the partitions whose numbers come in; give facts and files of each as JSON."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            facts, files = write_partition(Path(scratch), number, Path(folders[number]), options)
            listed = [[file.path, file.n_bytes, file.checksum] for file in files]
            yield pa.RecordBatch.from_pydict(
                {"number": [number], "facts": [json.dumps(facts)], "files": [json.dumps(listed)]}
            )


def write_partition(
    scratch: Path, number: int, folder: Path, options: GridOptions
) -> tuple[dict[str, int | str], list[FileEntry]]:
    """Build one partition from what the earlier stages left, and write its files.

    Memory is about four times the partition's vectors.
    """
    from pexeso.engine.building import (  # brings torch, which the tasks that read tables do without
        build_partition,
        n_cells,
        n_coordinates,
    )
    from pexeso.engine.cost import resolve_options

    values, vectors = _vectors(scratch, number)
    columns = _read(scratch, "placed_columns", number, ["column_id", "table", "label"]).sort_by("column_id")
    postings = _read(scratch, "placed_postings", number, ["column_id", "value", "text"])
    column_ids = columns["column_id"].to_numpy()
    column = np.searchsorted(column_ids, postings["column_id"].to_numpy())
    value = pc.index_in(postings["value"], values).to_numpy(zero_copy_only=False).astype(np.int64)
    text = postings["text"].combine_chunks().dictionary_encode()
    codes = text.indices.to_numpy(zero_copy_only=False)
    by_column = np.argsort(column, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=len(column_ids)))]).astype(np.int64)
    options, trials = resolve_options(vectors, offsets, value[by_column], options)
    arrays, order = build_partition(vectors, offsets, value[by_column], options)
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
    }
    choice = {"map": options.map, "coordinates": n_coordinates(arrays), "trials": [each.to_dict() for each in trials]}
    with filling(folder) as place:  # Spark may run a task again: the folder is there whole or not at all
        files = [
            *write_arrays(place, arrays),
            write_texts(place / "values.arrow", values.take(pa.array(order))),
            write_texts(place / "texts.arrow", text.dictionary),
            write_texts(place / "tables.arrow", columns["table"]),
            write_texts(place / "labels.arrow", columns["label"]),
            write_document(place / "meta.json", {**facts, "choice": choice}),
        ]
    return facts, files


def _texts_of_postings(
    column: np.ndarray, value: np.ndarray, codes: np.ndarray, order: np.ndarray, n_values: int
) -> np.ndarray:
    """Give the text of each posting, int32, in the order of ``column_values``: by column, then stored row."""
    stored_row = np.full(n_values, -1, dtype=np.int64)
    stored_row[order] = np.arange(len(order))
    row = stored_row[value]
    by_column_and_row = np.lexsort((row, column))
    kept = by_column_and_row[row[by_column_and_row] >= 0]
    return codes[kept].astype(np.int32)


def _vectors(scratch: Path, number: int) -> tuple[pa.StringArray, np.ndarray]:
    """Read a partition's distinct values, sorted, and their vectors, float32 (n, d)."""
    table = _read(scratch, "placed_vectors", number, ["value", "vector"]).sort_by("value").combine_chunks()
    vector = table["vector"].combine_chunks() if isinstance(table["vector"], pa.ChunkedArray) else table["vector"]
    flat = pc.list_flatten(vector).to_numpy(zero_copy_only=False)
    return _one_array(table["value"]), np.ascontiguousarray(flat.reshape(len(table), -1), dtype=np.float32)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)


def _read(scratch: Path, name: str, number: int, columns: list[str]) -> pa.Table:
    folder = scratch / name / f"partition={number}"
    return ds.dataset(os.fspath(folder), format="parquet").to_table(columns=columns)


def _rows(n_rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"rows": pa.array([n_rows], pa.int64())})


def facts_of(text: str) -> dict[str, int | str]:
    """Read the facts that `write_partitions` gave."""
    return json.loads(text)


def files_of(text: str) -> list[FileEntry]:
    """Read the files that `write_partitions` gave."""
    return [FileEntry(*entry) for entry in json.loads(text)]


def error_in(traceback: str) -> PexesoError | None:
    r"""Find the last error of ours in the text of a worker's traceback, and make it again.

    Examples
    --------
    >>> error_in("Traceback ...\npexeso.errors.EmbedderError: The model is gone.\n")
    EmbedderError('The model is gone.')
    """
    for name, message in reversed(_OWN_ERROR.findall(traceback)):
        kind = getattr(pexeso.errors, name, None)
        if isinstance(kind, type) and issubclass(kind, PexesoError):
            return kind(message)
    return None
