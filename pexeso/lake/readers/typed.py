"""One file as typed columns, a batch of rows at a time: Parquet's types, texts, or JSON documents.

What compares whole rows reads tables so; searches read them as text.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from pexeso.errors import TableReadError
from pexeso.lake.readers.budget import ReadingBudget
from pexeso.lake.readers.json_documents import Key
from pexeso.lake.readers.jsonlines import JsonRows, key_names
from pexeso.lake.readers.table import check_width, strings

ROWS_A_BATCH = 1 << 16
JSON = "json"
"""The family of cells that are JSON documents."""


@dataclass(frozen=True)
class TypedRows:
    """Some rows of a table.

    Attributes
    ----------
    n_bare : int
        Number of rows where there are no columns.
    """

    names: list[str]
    columns: list[pa.Array]
    is_json: bool = False
    n_bare: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0]) if self.columns else self.n_bare


def open_parquet(
    source: pa.NativeFile | BinaryIO | str | Path, read_dictionary: Collection[str] = ()
) -> pq.ParquetFile:
    """Open a Parquet file; every file of a lake is opened so.

    Points of time of the old type INT96 are read in microseconds, as Spark reads them: what is read
    in nanoseconds wraps around before 1677 and after 2262.
    """
    return pq.ParquetFile(
        source, read_dictionary=sorted(read_dictionary), coerce_int96_timestamp_unit="us"
    )


def check_footer(budget: ReadingBudget, metadata: pq.FileMetaData) -> None:
    """Raise `TableReadError` where a Parquet file says that it comes to more than it may.

    Values are counted at the leaves: a list has as many as it has items.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    budget.check_unpacked(sum(group.total_byte_size for group in groups))
    n_values = sum(
        group.column(number).num_values for group in groups for number in range(group.num_columns)
    )
    n_columns = max(1, metadata.num_columns)
    budget.check_cells(max(metadata.num_rows, n_values // n_columns), n_columns)


def parquet_rows(
    shown: str,
    source: pa.NativeFile | BinaryIO | str,
    budget: ReadingBudget | None = None,
) -> Iterator[TypedRows]:
    """Yield the rows of a Parquet file in batches of at most `ROWS_A_BATCH`.

    Texts that the file keeps in a dictionary come as one, so that a long text that stands in many
    cells is held once. A file that is given by its path may be of any size, since it is not held.
    """
    if budget is None:
        n_bytes = os.path.getsize(source) if isinstance(source, str) else source.seek(0, 2)
        budget = ReadingBudget(shown, n_bytes, sys.maxsize)
    yield from budget.paced(_parquet_rows(shown, source, budget))


def _parquet_rows(
    shown: str, source: pa.NativeFile | BinaryIO | str, budget: ReadingBudget
) -> Iterator[TypedRows]:
    try:
        if hasattr(source, "seek"):
            source.seek(0)
        plain = open_parquet(source)
        check_width(shown, len(plain.schema_arrow))
        check_footer(budget, plain.metadata)
        coded = _coded_texts(plain.metadata)
        file = plain
        if coded:
            if hasattr(source, "seek"):
                source.seek(0)
            file = open_parquet(source, coded)
        names = file.schema_arrow.names
        empty = [pa.array([], kind) for kind in plain.schema_arrow.types]
        yield TypedRows(names, empty, n_bare=plain.metadata.num_rows)  # no batch tells of these
        for batch in file.iter_batches(batch_size=ROWS_A_BATCH, use_threads=False):
            yield TypedRows(names, batch.columns)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise TableReadError(f"{shown} is no readable Parquet file: {reason}.") from error


def _coded_texts(metadata: pq.FileMetaData) -> list[str]:
    """Return the flat columns of texts that are kept in a dictionary in every row group."""
    paths = []
    for number in range(metadata.num_columns if metadata.num_row_groups else 0):
        leaf = metadata.schema.column(number)
        if leaf.physical_type != "BYTE_ARRAY" or "." in leaf.path:
            continue
        if str(leaf.logical_type.type) not in ("STRING", "NONE"):
            continue
        groups = range(metadata.num_row_groups)
        if all("RLE_DICTIONARY" in metadata.row_group(g).column(number).encodings for g in groups):
            paths.append(leaf.path)
    return paths


def json_rows(shown: str, data: bytes, budget: ReadingBudget | None = None) -> Iterator[TypedRows]:
    """Yield rows of JSON; keys that come later are columns of later batches too.

    Rows and columns are those of the file read as text.
    """
    budget = budget or ReadingBudget(shown, len(data))
    yield from budget.paced(_json_rows(JsonRows(shown, data, budget)))


def _json_rows(json_table: JsonRows) -> Iterator[TypedRows]:
    keys: dict[Key, None] = {}
    for rows in json_table.chunks():
        keys.update(dict.fromkeys(key for row in rows for key in row))
        columns = [strings([_canonical(row.get(key)) for row in rows]) for key in keys]
        yield TypedRows(key_names(keys), columns, is_json=True, n_bare=len(rows))


def _canonical(value: object) -> str | None:
    if value is None:
        return None
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
