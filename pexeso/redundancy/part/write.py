"""Shards of hashed cells written: pieces divided among them, then each put down by one task."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pexeso.build.parts.base import Written
from pexeso.build.parts.divide import divide, write_one_shard
from pexeso.redundancy.part.entries import FORM
from pexeso.redundancy.part.open import PIECES, TABLES
from pexeso.redundancy.part.records import RECORD
from pexeso.redundancy.pieces import FIELDS, SCHEMA, n_columns, write_packed
from pexeso.store.files import new_file, write_document
from pexeso.store.local.target import META
from pexeso.store.manifest import FileEntry
from pexeso.store.texts import write_texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pexeso.build.job import BuildJob
    from pexeso.build.stages import Facts
    from pexeso.options import BuildOptions
    from pexeso.store.manifest import FolderEntry

PIECE_BYTES = 512
"""What a piece counts for beside its hashes and codes when pieces are divided."""

_ORDER = ("table", "first_row")
_PLACED = "pieces"
_SIZES = ("hashes", "codes", "facts")
"""What differs in size from piece to piece."""


def write(job: BuildJob) -> Written:
    """Write shards of the pieces that the job has read."""
    pieces = job.records_at_hand(RECORD, FIELDS)
    if pieces is None or not fit_one_shard(pieces, job.options):
        pieces = job.records(RECORD).select(*FIELDS)
    return Written(divide_and_write(job, pieces))


def fit_one_shard(pieces: pa.Table, options: BuildOptions) -> bool:
    """Return whether one shard takes some pieces."""
    lengths = (pc.sum(pc.binary_length(pieces[name])).as_py() or 0 for name in _SIZES)
    n_bytes = len(pieces) * PIECE_BYTES + sum(lengths)
    return shards_needed(n_bytes, options.partition_bytes) <= 1


def divide_and_write(job: BuildJob, pieces: DataFrame | pa.Table) -> list[FolderEntry]:
    """Divide pieces among shards, and write each."""
    laid_out = job.stage("divide-hashes", lambda folder, meter: _lay_out(job, pieces, folder))
    if not laid_out["shards"]:
        return []
    placed = job.stages.folder("divide-hashes")
    fill = partial(write_shard, placed)
    return job.write_folders("hashes", laid_out["shards"], fill, placed=placed)


def _lay_out(job: BuildJob, pieces: DataFrame | pa.Table, folder: Path) -> Facts:
    if isinstance(pieces, pa.Table):
        return {"shards": write_one_shard({_PLACED: pieces}, folder)}
    from pyspark.sql import functions as sql

    sizes = [sql.octet_length(name) for name in _SIZES]
    n_bytes = pieces.agg(sql.sum(sum(sizes, sql.lit(PIECE_BYTES)))).first()[0] or 0
    n_shards = shards_needed(n_bytes, job.options.partition_bytes)
    return {"shards": divide({_PLACED: pieces}, _ORDER, n_shards, folder)}


def shards_needed(n_bytes: int, partition_bytes: int) -> int:
    """Return how many shards take so many bytes of pieces."""
    return -(-n_bytes // partition_bytes)


def write_shard(placed: Path, number: int, folder: Path) -> tuple[dict[str, Any], list[FileEntry]]:
    """Put down the pieces of one shard.

    The same pieces give the same bytes, in whatever order they come.

    Returns
    -------
    facts, files
        Of the shard.

    Notes
    -----
    Memory holds the shard.
    """
    shard = ds.dataset(os.fspath(placed / _PLACED / f"shard={number}"), format="parquet")
    pieces = shard.to_table(columns=list(FIELDS)).cast(SCHEMA)
    keys = pieces.select([*_ORDER, "n_rows", "facts"])
    order = pc.sort_indices(keys, [(name, "ascending") for name in _ORDER])
    keys = keys.take(order)
    in_order = (pieces.slice(row, 1).to_pylist()[0] for row in order.to_pylist())
    with new_file(folder / PIECES) as file:
        write_packed(pa.PythonFile(file, mode="w"), in_order)
    listed = zip(keys["facts"].to_pylist(), keys["n_rows"].to_pylist(), strict=True)
    facts = {
        "pieces": len(keys),
        "rows": pc.sum(keys["n_rows"]).as_py() or 0,
        "cells": sum(n_columns(text) * n_rows for text, n_rows in listed),
        "form": FORM,
    }
    files = [file.entry(PIECES), write_texts(folder / TABLES, keys["table"])]
    return facts, [*files, write_document(folder / META, facts)]
