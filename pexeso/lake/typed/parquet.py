"""Files as typed columns, a batch of rows at a time, and Parquet as a table of texts.

What compares whole rows reads tables with Parquet's types, as texts, or as JSON documents; searches
read them as text.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import sys
from collections.abc import Collection, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.errors import TableReadError
from pexeso.lake.readers.json_text import JsonRows, Key, key_names
from pexeso.lake.readers.table import ReadingBudget, Table, check_width, strings
from pexeso.lake.typed.sandbox import Answer, ask
from pexeso.lake.typed.text import AS_IT_IS, is_coded, text_table
from pexeso.runtime.formatting import first_line

ROWS_A_BATCH = 1 << 16
_ROWS_A_TEXT_BATCH = 4096
_ROWS_A_PROBE = 16
_MAX_REPEATED_BYTES = 256
_TAIL, _MAGIC = struct.Struct("<I4s"), b"PAR1"

# The family of cells that are JSON documents.
JSON = "json"


@dataclass(frozen=True)
class TypedRows:
    """Some rows of a table; `n_bare` is their number where there are no columns."""

    names: list[str]
    columns: list[pa.Array]
    is_json: bool = False
    n_bare: int = 0

    @property
    def n_rows(self) -> int:
        return len(self.columns[0]) if self.columns else self.n_bare


def open_parquet(
    source: pa.NativeFile | str | Path, read_dictionary: Collection[str] = ()
) -> pq.ParquetFile:
    """Open a Parquet file; every file of a lake is opened so.

    Points of time of the old type INT96 are read in microseconds, as Spark reads them: what is read
    in nanoseconds wraps around before 1677 and after 2262.
    """
    return pq.ParquetFile(
        source, read_dictionary=sorted(read_dictionary), coerce_int96_timestamp_unit="us"
    )


def is_as_it_is(data: bytes) -> bool:
    """Return whether the footer of a Parquet file says that its texts are those of memory."""
    return AS_IT_IS in (open_parquet(pa.BufferReader(data)).metadata.metadata or {})


def _check_footer(
    budget: ReadingBudget, metadata: pq.FileMetaData, source: pa.NativeFile | str
) -> None:
    """Raise `TableReadError` where a Parquet file says that it comes to more than it may.

    Values are counted at the leaves: a list has as many as it has items. Arrow 26 ends the process
    when it is asked about the leaf of a damaged footer, so that lists are counted in the sandbox.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    budget.check_unpacked(sum(group.total_byte_size for group in groups))
    lists = [
        number
        for number in range(metadata.num_columns)
        if metadata.schema.column(number).max_repetition_level
    ]
    n_values = metadata.num_rows * (metadata.num_columns - len(lists))
    if lists:
        footer = base64.b64encode(_footer(source)).decode()
        answered, _ = ask(__name__, {"footer": footer, "lists": lists}, budget, budget.n_bytes)
        n_values += answered["n_values"]
    n_columns = max(1, metadata.num_columns)
    budget.check_cells(max(metadata.num_rows, n_values // n_columns), n_columns)


def _footer(source: pa.NativeFile | str) -> bytes:
    with open(source, "rb") if isinstance(source, str) else nullcontext(source) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(end - _TAIL.size)
        size, _ = _TAIL.unpack(file.read(_TAIL.size))
        file.seek(end - size - _TAIL.size)
        return file.read(size + _TAIL.size)


def answer(request: dict[str, Any]) -> Answer:
    """Count the values of the lists of a file by its footer; called in the sandbox."""
    metadata = pq.read_metadata(pa.BufferReader(_MAGIC + base64.b64decode(request["footer"])))
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    leaves = request["lists"]
    return {
        "n_values": sum(group.column(leaf).num_values for group in groups for leaf in leaves)
    }, None


def parquet_rows(
    shown: str, source: pa.NativeFile | str, budget: ReadingBudget | None = None
) -> Iterator[TypedRows]:
    """Yield the rows of a Parquet file in batches of at most `ROWS_A_BATCH`.

    Texts that the file keeps in a dictionary come as one, so that a long text of many cells is
    held once. A file that is given by its path may be of any size, since it is not held.
    """
    if budget is None:
        n_bytes = os.path.getsize(source) if isinstance(source, str) else source.size()
        budget = ReadingBudget(shown, n_bytes, sys.maxsize)
    yield from budget.paced(_parquet_rows(shown, source, budget))


def _parquet_rows(
    shown: str, source: pa.NativeFile | str, budget: ReadingBudget
) -> Iterator[TypedRows]:
    try:
        file = open_parquet(source)
        check_width(shown, len(file.schema_arrow))
        _check_footer(budget, file.metadata, source)
        names, n_rows = file.schema_arrow.names, file.metadata.num_rows
        empty = [pa.array([], kind) for kind in file.schema_arrow.types]
        if coded := _coded_texts(file):
            file = open_parquet(source, coded)
        yield TypedRows(names, empty, n_bare=n_rows)  # no batch has these
        for batch in file.iter_batches(batch_size=ROWS_A_BATCH, use_threads=False):
            yield TypedRows(names, batch.columns)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TableReadError(
            f"{shown} is no readable Parquet file: {first_line(error)}."
        ) from error


def _coded_texts(file: pq.ParquetFile) -> list[str]:
    """Return the columns of texts that are dictionaries in each group of rows."""
    groups = [
        number for number in range(file.num_row_groups) if file.metadata.row_group(number).num_rows
    ]
    leaves = map(file.schema.column, range(len(file.schema)))
    texts = {
        leaf.path: number
        for number, leaf in enumerate(leaves)
        if leaf.physical_type == "BYTE_ARRAY"
        and "." not in leaf.path
        and str(leaf.logical_type.type) in ("STRING", "NONE")
    }
    for group in groups:
        # A reader raises what ends the process where it is asked for about a leaf.
        rows = file.iter_batches(1, row_groups=[group], columns=[*texts], use_threads=False)
        next(rows, None)
        chunks = file.metadata.row_group(group)
        texts = {
            path: number
            for path, number in texts.items()
            if "RLE_DICTIONARY" in chunks.column(number).encodings
        }
    return [*texts] if groups else []


def json_rows(data: bytes, budget: ReadingBudget) -> Iterator[TypedRows]:
    """Yield rows of JSON; keys that come later are columns of later batches too.

    Rows and columns are those of the file read as text.
    """
    yield from budget.paced(_json_rows(JsonRows(data, budget)))


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


def parse_parquet(data: bytes, budget: ReadingBudget, *, max_cell_bytes: int) -> Table:
    """Read a Parquet file as texts.

    A file of a few hundred bytes may say a long text as often as it likes. So columns with long
    ones are read as Parquet stores them, a list of different texts and numbers into it, and it is
    known how much they come to before they are written out. Besides `data` and the columns, memory
    holds one page of each column, of at most 2 GiB.
    """
    try:
        file = open_parquet(pa.BufferReader(data))
        check_width(budget.shown, len(file.schema_arrow))
        _check_footer(budget, file.metadata, pa.BufferReader(data))
        # What was written as a dictionary is read as one: Arrow would make it one by a cast, which
        # a wrong byte breaks off.
        coded = {field.name for field in file.schema_arrow if is_coded(field.type)}
        coded |= _long_texts(file, data, budget)
        if coded:
            file = open_parquet(pa.BufferReader(data), coded)
        batches = file.iter_batches(batch_size=_ROWS_A_TEXT_BATCH, use_threads=False)
        return text_table(
            budget,
            file.schema_arrow.names,
            (batch.columns for batch in batches),
            max_cell_bytes=max_cell_bytes,
        )
    except (pa.ArrowException, OSError) as error:
        raise TableReadError(
            f"{budget.shown} is no readable Parquet file: {first_line(error)}."
        ) from error


def _long_texts(file: pq.ParquetFile, data: bytes, budget: ReadingBudget) -> set[str]:
    """Return the columns whose dictionary holds a text that a batch could not have in each cell.

    The limit is at most 256 bytes for columns where a cell holds many texts.
    """
    limit = budget.max_bytes // (4 * _ROWS_A_TEXT_BATCH)
    paths: set[str] = set()
    for leaf in map(file.schema.column, range(len(file.schema))):
        if leaf.physical_type != "BYTE_ARRAY":
            continue
        coded = open_parquet(pa.BufferReader(data), [leaf.path])
        is_flat = leaf.max_repetition_level == 0
        max_bytes = limit if is_flat else min(limit, _MAX_REPEATED_BYTES)
        n_rows = _ROWS_A_TEXT_BATCH if is_flat else _ROWS_A_PROBE
        longest = 0
        for group in range(file.num_row_groups):
            # The list comes with the first value, in all its length.
            batches = coded.iter_batches(
                n_rows, row_groups=[group], columns=[leaf.path], use_threads=False
            )
            for batch in batches:
                budget.check_seconds()
                longest = max(map(_longest, batch.columns), default=0)
                if longest:
                    break
            if longest > max_bytes:
                paths.add(leaf.path)
                break
    return paths


def _longest(values: pa.Array) -> int:
    kind, types = values.type, pa.types
    if is_coded(kind):
        return pc.max(pc.binary_length(values.dictionary)).as_py() or 0
    parts: list[pa.Array] = []
    if types.is_struct(kind):
        parts = [values.field(number) for number in range(kind.num_fields)]
    elif types.is_map(kind):
        parts = [values.keys, values.items]
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        parts = [values.values]
    return max(map(_longest, parts), default=0)
