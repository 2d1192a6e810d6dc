"""Edges as JSON lines, CSV and Parquet: the columns of `pexeso.joins.exports.edges.EDGES`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow as pa

from pexeso.joins.exports.edges import EDGES, Edges
from pexeso.joins.exports.formats import ExportFormat, Naming
from pexeso.joins.exports.lines import Piece, joined, write_lines, written


def write_jsonl(edges: Edges, path: Path, naming: Naming) -> None:
    """Write an object for each edge, one a line."""
    write_lines(path, (json_lines(batch).to_pylist() for batch in edges.batches()))


def json_lines(batch: pa.RecordBatch) -> pa.Array:
    """Return a JSON object for each edge of a batch."""
    pieces: list[Piece] = []
    for at, field in enumerate(EDGES):
        pieces.append(f"{', ' if at else '{'}{json.dumps(field.name)}: ")
        pieces.append(written(batch.column(at), partial(json.dumps, ensure_ascii=False)))
    return joined([*pieces, "}"])


def write_csv(edges: Edges, path: Path, naming: Naming) -> None:
    """Write a row for each edge, below a header."""
    import pyarrow.csv as csv

    with csv.CSVWriter(path, EDGES) as writer:
        for batch in edges.batches():
            writer.write_batch(batch)


def write_parquet(edges: Edges, path: Path, naming: Naming) -> None:
    """Write a row for each edge, a row group for some."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, EDGES) as writer:
        for batch in edges.batches():
            writer.write_batch(batch)


JSONL = ExportFormat("jsonl", ".jsonl", write_jsonl)
CSV = ExportFormat("csv", ".csv", write_csv)
PARQUET = ExportFormat("parquet", ".parquet", write_parquet)
