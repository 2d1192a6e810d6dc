"""Which tables hold the rows of which, for lakes too large for rows as Python tuples.

Every column becomes the numbers of its distinct values, over all tables that are compared on it,
and rows the numbers of their distinct combinations: equal numbers are equal rows, without any
hashing. Tables are flat Parquet files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.errors import InputError


def coded_containment(folder: Path, *, row_count_gate: bool = True) -> set[tuple[str, str]]:
    """Return all pairs of files of which the first holds every row of the second."""
    files = {
        path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.parquet"))
    }
    schemas = {name: _types_of(path) for name, path in files.items()}
    n_rows = {name: pq.read_metadata(path).num_rows for name, path in files.items()}
    by_schema: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, types in schemas.items():
        by_schema.setdefault(tuple(sorted(types.items())), []).append(name)
    pairs = set()
    for columns, children in by_schema.items():
        parents = [name for name, types in schemas.items() if set(columns) <= set(types.items())]
        min_rows = min(n_rows[child] for child in children)
        parents = [
            name
            for name in parents
            if name in children or not row_count_gate or n_rows[name] >= min_rows
        ]
        if len(parents) < 2:
            continue
        distinct = _distinct_rows([files[name] for name in parents], [name for name, _ in columns])
        rows = dict(zip(parents, distinct, strict=True))
        for parent in parents:
            for child in children:
                if parent == child or (row_count_gate and n_rows[child] > n_rows[parent]):
                    continue
                if len(np.setdiff1d(rows[child], rows[parent], assume_unique=True)) == 0:
                    pairs.add((parent, child))
    return pairs


def _types_of(path: Path) -> dict[str, str]:
    return {field.name.lower(): _kind(field.type) for field in pq.read_schema(path)}


def _kind(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_floating(kind):
        return "float"
    if types.is_integer(kind):
        return "int"
    if types.is_decimal(kind) or types.is_timestamp(kind):
        return str(kind)
    for is_kind in (types.is_string, types.is_date32, types.is_boolean):
        if is_kind(kind):
            return is_kind.__name__
    raise InputError(f"Columns of the type {kind} are not compared here.")


def _distinct_rows(paths: Sequence[Path], names: Sequence[str]) -> list[np.ndarray]:
    """Return the distinct rows of files on some columns, as numbers that mean the same in all."""
    ends = np.cumsum([pq.read_metadata(path).num_rows for path in paths])
    rows = np.zeros(int(ends[-1]), np.int64)
    for name in names:
        codes, n = _codes([_column(path, name) for path in paths])
        rows = pd.factorize(rows * n + codes)[0].astype(np.int64)
    return [np.unique(part) for part in np.split(rows, ends[:-1])]


def _column(path: Path, name: str) -> pa.ChunkedArray:
    [real] = [field for field in pq.read_schema(path).names if field.lower() == name]
    return pq.read_table(path, columns=[real]).column(0)


def _codes(columns: Sequence[pa.ChunkedArray]) -> tuple[np.ndarray, int]:
    """Return numbers for the distinct values of columns together, and how many there are.

    Missing cells are one value, and so is NaN.
    """
    kind = columns[0].type
    if pa.types.is_integer(kind):
        kind = pa.int64()
    elif pa.types.is_floating(kind):
        kind = pa.float64()
    chunks = [chunk.cast(kind) for column in columns for chunk in column.chunks]
    if kind == pa.float64():
        chunks = [pc.add(chunk, 0.0) for chunk in chunks]  # of 0.0 and -0.0 one value
    whole = pa.chunked_array(chunks, kind).combine_chunks()
    coded = whole.dictionary_encode(null_encoding="encode")
    return coded.indices.to_numpy().astype(np.int64), max(1, len(coded.dictionary))
