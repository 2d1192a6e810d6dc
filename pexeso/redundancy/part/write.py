"""Hashed cells: records of tables, shards and their files, and an estimate of them.

Every column counts here, whatever the rules say of it, with the type that its file has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.base import Filled, PartEstimate, Placed, estimated, read_rows
from pexeso.build.parts.sample import LakeSample
from pexeso.errors import TableReadError
from pexeso.lake.catalog import batch_of
from pexeso.lake.records import ReadTable
from pexeso.options import BuildOptions
from pexeso.redundancy.part import FIELDS, RECORD, ROW_HASHES_PART
from pexeso.redundancy.part.open import PIECES, TABLES
from pexeso.redundancy.pieces import SCHEMA, n_columns, packed, pieces_of, write_packed
from pexeso.store.arrays import write_texts
from pexeso.store.files import new_file, write_document
from pexeso.store.manifest import META


def records(tables: Sequence[ReadTable]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        if table.rows is None or table.rows.typed is None:
            continue
        try:
            for piece in pieces_of(table.name, table.rows.typed()):
                fields = packed(piece)
                yield batch_of([{"record": RECORD, **{name: fields[name] for name in FIELDS}}])
        except (TableReadError, pa.ArrowException, ValueError, RecursionError):
            continue  # its texts could be read, its types not: it has no pieces, or not all


PIECE_BYTES = 512  # What a piece counts for besides its hashes and codes when pieces are divided.

_SIZES = ("hashes", "codes", "facts")  # What differs in size from piece to piece.


def sizes(name: str, rows: pa.RecordBatch | None) -> tuple[int]:
    return (0,) if rows is None else (_piece_bytes(rows),)


def _piece_bytes(pieces: pa.Table | pa.RecordBatch) -> int:
    lengths = (pc.sum(pc.binary_length(pieces[name])).as_py() or 0 for name in _SIZES)
    return len(pieces) * PIECE_BYTES + sum(lengths)


def shards_needed(n_bytes: int, options: BuildOptions) -> int:
    return -(-n_bytes // options.partition_bytes)


def write_shard(placed: Placed, number: int, folder: Path) -> Filled:
    pieces = read_rows(placed, "pieces", number, FIELDS).cast(SCHEMA)
    keys = pieces.select(["table", "first_row", "n_rows", "facts"])
    order = pc.sort_indices(keys, [(name, "ascending") for name in ROW_HASHES_PART.divided_by])
    keys = keys.take(order)
    in_order = (pieces.slice(row, 1).to_pylist()[0] for row in order.to_pylist())
    with new_file(folder / PIECES) as file:
        write_packed(pa.PythonFile(file, mode="w"), in_order)
    listed = zip(keys["facts"].to_pylist(), keys["n_rows"].to_pylist(), strict=True)
    facts = {
        "pieces": len(keys),
        "rows": pc.sum(keys["n_rows"]).as_py() or 0,
        "cells": sum(n_columns(text) * n_rows for text, n_rows in listed),
        "form": ROW_HASHES_PART.form,
    }
    files = [file.entry(PIECES), write_texts(folder / TABLES, keys["table"])]
    return facts, [*files, write_document(folder / META, facts)]


# What each stage takes for the smallest lake.
FIXED_SECONDS: Mapping[str, float] = {"read": 0.1, "divide-hashes": 0.1, "hashes": 0.1}

# What each cell costs, seconds of one core.
SECONDS_PER_CELL: Mapping[str, float] = {
    "read": 0.15e-6,
    "divide-hashes": 0.05e-6,
    "hashes": 0.03e-6,
}


@dataclass(frozen=True)
class RowHashesEstimate:
    """What the hashed cells of an index will take; `bytes` on the disk."""

    rows: int = 0
    cells: int = 0
    shards: int = 0
    bytes: int = 0


def estimate(sample: LakeSample) -> PartEstimate:
    """Count on a sample of the lake's files; bytes are scaled by the bytes of the files."""
    options = sample.options
    if not set(ROW_HASHES_PART.choices) & set(options.parts):
        return estimated("redundancy", RowHashesEstimate())
    read = sample.rows(RECORD)
    n_rows = sample.lake_total([pc.sum(rows["n_rows"]).as_py() or 0 for rows in read])
    cells = sample.lake_total(
        [
            sum(
                n_columns(facts) * n
                for facts, n in zip(
                    rows["facts"].to_pylist(), rows["n_rows"].to_pylist(), strict=True
                )
            )
            for rows in read
        ]
    )
    n_bytes = sample.lake_total([_piece_bytes(rows) for rows in read])
    counted = RowHashesEstimate(n_rows, cells, shards_needed(n_bytes, options), n_bytes)
    seconds = {
        stage: sample.factor * (FIXED_SECONDS[stage] + rate * cells / sample.cores)
        for stage, rate in SECONDS_PER_CELL.items()
    }
    memory = 2 * n_bytes // max(1, counted.shards)
    return estimated("redundancy", counted, n_bytes, memory, seconds)
