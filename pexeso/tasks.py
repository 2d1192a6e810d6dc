"""What the tasks of a build do with their Arrow batches; every function here runs in a worker process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import pexeso.errors
from pexeso.errors import PexesoError
from pexeso.lake.choose import ColumnRules
from pexeso.lake.content import fingerprint_file
from pexeso.lake.files import TableFile, path_from_text
from pexeso.lake.normalise import Normaliser
from pexeso.lake.records import table_records
from pexeso.places import Place
from pexeso.store.arrays import write_arrays
from pexeso.store.files import write_document
from pexeso.store.manifest import FileEntry
from pexeso.store.reader import Store
from pexeso.store.target import CHOICE, META, PartitionTarget, entry_to_json
from pexeso.store.texts import take_texts, write_texts

if TYPE_CHECKING:
    from pexeso.engine.grid_options import GridOptions

Batches = Iterator[pa.RecordBatch]

Written = tuple[dict[str, int | str], list[FileEntry]]
"""Facts and files of a partition."""

POSTINGS = pa.schema([("column_id", pa.int64()), ("value", pa.string()), ("text", pa.string())])
VECTORS = pa.schema([("value", pa.string()), ("vector", pa.list_(pa.float32()))])
ROWS_PER_BATCH = 1 << 14

_OWN_ERROR = re.compile(r"pexeso\.errors\.(\w+): ([^\n]+)")


def read_tables(
    batches: Batches,
    *,
    root: Path | Place,
    rules: ColumnRules,
    normaliser: Normaliser,
    max_table_bytes: int,
    tokens: bool,
) -> Batches:
    """Turn a listing of files (`pexeso.source.LISTING_SCHEMA`) into records; a bad file becomes a record with its reason."""
    for batch in batches:
        for row in batch.to_pylist():
            file = TableFile(**{**row, "path": path_from_text(root, row["path"])})
            yield from table_records(file, rules, normaliser, max_bytes=max_table_bytes, tokens=tokens)


def write_partitions(
    batches: Batches, *, placed: str, targets: Sequence[PartitionTarget], options: GridOptions
) -> Batches:
    """Write the partitions whose numbers come in, but for those that are there; give the manifest's entry of each as JSON.

    Parameters
    ----------
    batches
        Numbers of partitions.
    placed
        The folder with postings, vectors and columns by partition.
    targets
        Where each partition goes.
    options
        How it is mapped and cut.
    """
    for batch in batches:
        for number in batch.column(0).to_pylist():
            fill = partial(write_partition, Path(placed), number, options=options)
            entry = targets[number].written() or targets[number].write(fill)
            yield pa.RecordBatch.from_pydict({"number": [number], "entry": [entry_to_json(entry)]})


def write_partition(placed: Path, number: int, folder: Path, *, options: GridOptions) -> Written:
    """Build one partition from what the earlier stages left, and write its files.

    The same input gives the same bytes, however often a task runs. Memory is about four times the partition's vectors.
    """
    from embed.spark import task_device
    from pexeso.engine.building import (  # brings torch, which the tasks that read tables do without
        build_partition,
        n_cells,
        n_coordinates,
    )
    from pexeso.engine.cost import resolve_options

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
    offsets = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=len(column_ids)))]).astype(np.int64)
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
    }
    choice = {"map": options.map, "coordinates": n_coordinates(arrays), "trials": [each.to_dict() for each in trials]}
    files = [
        *write_arrays(folder, arrays),
        write_texts(folder / "values.arrow", values.take(pa.array(order))),
        write_texts(folder / "texts.arrow", text.dictionary),
        write_texts(folder / "tables.arrow", columns["table"]),
        write_texts(folder / "labels.arrow", columns["label"]),
        write_document(folder / META, {**facts, CHOICE: choice}),
    ]
    return facts, files


def compare_contents(batches: Batches, *, root: Path | Place) -> Batches:
    """Tell by their fingerprints which files of a listing have changed; gives table and change."""
    for batch in batches:
        for row in batch.to_pylist():
            same = fingerprint_file(path_from_text(root, row["path"])) == row["old_fingerprint"]
            yield pa.RecordBatch.from_pydict({"table": [row["table"]], "change": ["unchanged" if same else "changed"]})


def read_partitions(batches: Batches, *, store: Store, kind: str) -> Batches:
    """Read the columns that hold back from partitions whose numbers come in.

    Parameters
    ----------
    batches
        Numbers of partitions.
    store
        The index.
    kind
        ``postings``: column id, value and text of each posting (`POSTINGS`); ``vectors``: value and vector (`VECTORS`).
    """
    read = _stored_postings if kind == "postings" else _stored_vectors
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from read(store, number)


def _stored_postings(store: Store, number: int) -> Batches:
    arrays = store.partition(number)
    values, texts = store.texts(number, "values"), store.texts(number, "texts")
    offsets, mask = arrays["column_values_offsets"], store.deleted_mask(number)
    for start in range(0, len(arrays["column_values_members"]), ROWS_PER_BATCH):
        postings = np.arange(start, min(start + ROWS_PER_BATCH, len(arrays["column_values_members"])))
        column = np.searchsorted(offsets, postings, side="right") - 1
        if mask is not None:
            postings, column = postings[~mask[column]], column[~mask[column]]
        taken = (
            take_texts(values, arrays["column_values_members"][postings]),
            take_texts(texts, arrays["posting_texts"][postings]),
        )
        yield pa.RecordBatch.from_arrays([pa.array(arrays["column_ids"][column]), *taken], schema=POSTINGS)


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
        yield pa.RecordBatch.from_arrays([take_texts(values, some), as_lists(vectors)], schema=VECTORS)


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


def _vectors(placed: Path, number: int) -> tuple[pa.StringArray, np.ndarray]:
    """Read a partition's distinct values, sorted, and their vectors, float32 (n, d)."""
    table = _read(placed, "vectors", number, ["value", "vector"]).sort_by("value").combine_chunks()
    vector = table["vector"].combine_chunks() if isinstance(table["vector"], pa.ChunkedArray) else table["vector"]
    flat = pc.list_flatten(vector).to_numpy(zero_copy_only=False)
    return _one_array(table["value"]), np.ascontiguousarray(flat.reshape(len(table), -1), dtype=np.float32)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)


def _read(placed: Path, name: str, number: int, columns: list[str]) -> pa.Table:
    folder = placed / name / f"partition={number}"
    return ds.dataset(os.fspath(folder), format="parquet").to_table(columns=columns)


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
