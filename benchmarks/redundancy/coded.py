"""Which tables hold the rows of which, by comparing all rows: the truth about a lake.

Every column becomes the numbers of its distinct values, over all tables that are compared on it,
and rows the numbers of their distinct combinations: equal numbers are equal rows, without any
hashing. Tables are flat Parquet files, or CSV files, whose cells are text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.errors import InputError
from pexeso.lake.containers.reader import read_table


class TableFile:
    """A table of a lake; a CSV file is held in memory, of a Parquet file a column at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _text(self) -> pa.Table | None:
        if self._path.suffix != ".csv":
            return None
        table = read_table(self._path)
        cells = [pc.if_else(pc.equal(column, ""), None, column) for column in table.columns]
        return pa.Table.from_arrays(cells, names=[name.strip() for name in table.names])

    @cached_property
    def schema(self) -> pa.Schema:
        return pq.read_schema(self._path) if self._text is None else self._text.schema

    @cached_property
    def n_rows(self) -> int:
        return pq.read_metadata(self._path).num_rows if self._text is None else len(self._text)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Columns by name, in lower case unless names differ in case alone."""
        names = self.schema.names
        folded = [name.lower() for name in names]
        names = folded if len(set(folded)) == len(names) else names
        return {name: at for at, name in enumerate(names)} if len(set(names)) == len(names) else {}

    @property
    def kinds(self) -> set[tuple[str, str]]:
        types = self.schema.types
        return {(name, _kind(types[at])) for name, at in self.positions.items()}

    def column(self, name: str) -> pa.ChunkedArray:
        at = self.positions[name]
        if self._text is not None:
            return self._text.column(at)
        return pq.read_table(self._path, columns=[self.schema.names[at]]).column(0)


def coded_containment(folder: Path) -> set[tuple[str, str]]:
    """Return all pairs of files of which the first holds every row of the second."""
    paths = [path for ending in ("parquet", "csv") for path in sorted(folder.rglob(f"*.{ending}"))]
    files = {path.relative_to(folder).as_posix(): TableFile(path) for path in paths}
    files = {name: file for name, file in files.items() if file.positions}
    by_schema: dict[frozenset[tuple[str, str]], list[str]] = {}
    for name, file in files.items():
        by_schema.setdefault(frozenset(file.kinds), []).append(name)
    pairs = set()
    for columns, children in by_schema.items():
        min_rows = min(files[child].n_rows for child in children)
        parents = [
            name
            for name, file in files.items()
            if columns <= file.kinds and (name in children or file.n_rows >= min_rows)
        ]
        if len(parents) < 2:
            continue
        distinct = _distinct_rows(
            [files[name] for name in parents], sorted(name for name, _ in columns)
        )
        rows = dict(zip(parents, distinct, strict=True))
        for parent in parents:
            for child in children:
                if parent != child and files[child].n_rows <= files[parent].n_rows:
                    missing = np.setdiff1d(rows[child], rows[parent], assume_unique=True)
                    pairs |= set() if len(missing) else {(parent, child)}
    return pairs


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


def _distinct_rows(files: Sequence[TableFile], names: Sequence[str]) -> list[np.ndarray]:
    """Return the distinct rows of files on some columns, as numbers that mean the same in all."""
    ends = np.cumsum([file.n_rows for file in files])
    rows = np.zeros(int(ends[-1]), np.int64)
    for name in names:
        codes, n = _codes([file.column(name) for file in files])
        rows = pd.factorize(rows * n + codes)[0].astype(np.int64)
    return [np.unique(part) for part in np.split(rows, ends[:-1])]


def _codes(columns: Sequence[pa.ChunkedArray]) -> tuple[np.ndarray, int]:
    """Return numbers for the distinct values of columns together, and how many there are."""
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
