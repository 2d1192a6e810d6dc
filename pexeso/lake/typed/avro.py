"""Avro files: records to Arrow by fastavro, in a process of its own.

A few bytes of Avro can stand for records without end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import islice
from typing import Any

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.readers.budget import ReadingBudget
from pexeso.lake.readers.file_source import FileSource
from pexeso.lake.readers.table import check_width, strings
from pexeso.lake.typed.apart import budget_of, check_table, read_file_apart
from pexeso.lake.typed.cells import cell_text
from pexeso.lake.typed.table import TypedTable
from pexeso.runtime.formatting import first_line

_ROWS_A_CHUNK = 1 << 14
_MAX_DEPTH = 16
_TYPES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "enum": pa.string(),
}
_LOGICAL_TYPES = {
    "date": pa.date32(),
    "time-millis": pa.time64("us"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}


def read(source: FileSource) -> TypedTable:
    """Read the records of an Avro file; each field of a record is a column.

    Dates, times, decimals and arrays keep their types, and so do records in records. Maps, and
    fields of several types, are texts: nested values of these as JSON.

    Memory: the table, at most `max_bytes` of the source, here and in the process that reads.
    """
    return read_file_apart(source, __name__)


def answer(request: dict[str, Any]) -> tuple[dict[str, Any], pa.Table]:
    """Read a file; called in a process of its own."""
    if not os.path.getsize(request["path"]):
        raise TableReadError("{shown} is empty: it has no bytes.")
    try:
        return {}, _table(request["path"], budget_of(request))
    except (TableReadError, MemoryError):
        raise
    except Exception as error:  # fastavro lets through whatever goes wrong while it decodes
        cut_short = isinstance(error, EOFError)
        reason = "it ends in the middle of a record" if cut_short else first_line(error)
        raise TableReadError(f"{{shown}} is no readable Avro file: {reason}.") from error


def _table(path: str, budget: ReadingBudget) -> pa.Table:
    import fastavro

    _check_blocks(path, budget)
    with open(path, "rb") as stream:
        records = fastavro.reader(stream)
        schema = records.writer_schema
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise TableReadError("{shown} holds no table: its values are no records.")
        check_width("{shown}", len(schema["fields"]))
        names = [field["name"] for field in schema["fields"]]
        makers = [_maker(field["type"]) for field in schema["fields"]]
        pieces: list[list[pa.Array]] = [[make([])] for make in makers]
        n_bytes = n_rows = 0
        while rows := list(islice(records, _ROWS_A_CHUNK)):
            for name, make, arrays in zip(names, makers, pieces, strict=True):
                arrays.append(make([row.get(name) for row in rows]))
                n_bytes += arrays[-1].nbytes
            n_rows += len(rows)
            check_table(budget, n_bytes, n_rows, len(names))
    columns = [pa.chunked_array(arrays, arrays[0].type) for arrays in pieces]
    return pa.Table.from_arrays(columns, names=names)


def _check_blocks(path: str, budget: ReadingBudget) -> None:
    """Refuse what the heads of the blocks say is too much, before a record is made.

    A record without a field, or of nulls alone, takes no byte.
    """
    import fastavro

    n_rows = n_bytes = 0
    with open(path, "rb") as stream:
        blocks = fastavro.block_reader(stream)
        schema = blocks.writer_schema
        n_columns = len(schema.get("fields", ())) if isinstance(schema, dict) else 1
        for block in blocks:
            n_rows, n_bytes = n_rows + block.num_records, n_bytes + len(block.bytes_.getbuffer())
            check_table(budget, n_bytes, n_rows, n_columns)
            budget.check_unpacked(n_bytes)


def _maker(schema: Any) -> Callable[[list[Any]], pa.Array]:
    """Return what makes an array of the values of a field."""
    kind = _arrow_type(schema, _MAX_DEPTH)
    if kind is None or pa.types.is_string(kind):
        return _texts
    return lambda values: pa.array(values, kind)


def _arrow_type(schema: Any, depth: int) -> pa.DataType | None:
    """Return the type of a field in Arrow, None for one of several types, by key or recursive."""
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        return _arrow_type(others[0], depth) if len(others) == 1 else None
    if isinstance(schema, str):
        return _TYPES.get(schema)  # a name stands for a record that was described before
    if not isinstance(schema, dict) or not depth:
        return None
    kind, logical = schema.get("type"), schema.get("logicalType")
    if logical == "decimal":
        precision, scale = schema.get("precision", 0), schema.get("scale", 0)
        return pa.decimal256(precision, scale) if 0 < precision <= 76 else None
    if logical == "uuid":
        return pa.string() if depth == _MAX_DEPTH else None
    if logical in _LOGICAL_TYPES:
        return _LOGICAL_TYPES[logical]
    if kind == "array":
        item = _arrow_type(schema["items"], depth - 1)
        return None if item is None else pa.list_(item)
    if kind == "record":
        types = {field["name"]: _arrow_type(field["type"], depth - 1) for field in schema["fields"]}
        return None if None in types.values() else pa.struct(list(types.items()))
    if kind == "fixed":
        return pa.binary(schema["size"])
    return _arrow_type(kind, depth - 1) if isinstance(kind, list | dict) else _TYPES.get(kind)


def _texts(values: list[Any]) -> pa.Array:
    return strings([None if value is None else _text(value) for value in values])


def _text(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=_text)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return cell_text(value)
