"""Feather, Arrow IPC, ORC and Avro files: one table, read in the sandbox.

Arrow 26 ends the process for some damaged ORC files and Feather files of the first version, and
takes what memory a file asks for. A few bytes of Avro can stand for records without end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, BinaryIO

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.readers.table import ReadingBudget, check_width, strings
from pexeso.lake.typed.sandbox import (
    Answer,
    SandboxedFormat,
    budget_of,
    check_table,
    gathered,
    require_package,
)
from pexeso.lake.typed.value_texts import cell_text
from pexeso.runtime.formatting import first_line

# Its tables are called by the formats of files: "arrow", "orc" and "avro".
TABLE_FILES = SandboxedFormat(__name__)

_ROWS_A_CHUNK = 1 << 14
_MAX_DEPTH = 16
_UUID_BYTES = 16
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
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}


def answer(request: dict[str, Any]) -> Answer:
    if not os.path.getsize(request["path"]):
        raise TableReadError("{shown} is empty: it has no bytes.")
    read = _avro_table if request["table"] == "avro" else _arrow_table
    with open(request["path"], "rb") as stream:
        return {}, read(stream, budget_of(request))


def _arrow_table(stream: BinaryIO, budget: ReadingBudget) -> pa.Table:
    try:
        schema, batches = _open(stream)
        check_width("{shown}", len(schema))
        return gathered(map(_validated, batches), schema, budget)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise TableReadError(f"{{shown}} cannot be read: {first_line(error)}.") from error


def _open(stream: BinaryIO) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema of a file, and its rows as it keeps them; in ORC these are stripes."""
    start = stream.read(8)
    stream.seek(0)
    if start.startswith(b"FEA1"):
        import pyarrow.feather

        table = pyarrow.feather.read_table(stream, use_threads=False)
        return table.schema, iter(table.to_batches())
    if start.startswith(b"ORC"):
        import pyarrow.orc

        stripes = pyarrow.orc.ORCFile(stream)
        return stripes.schema, (stripes.read_stripe(n) for n in range(stripes.nstripes))
    if start.startswith(b"ARROW1"):
        file = pa.ipc.open_file(stream)
        return file.schema, (file.get_batch(n) for n in range(file.num_record_batches))
    reader = pa.ipc.open_stream(stream)
    return reader.schema, iter(reader)


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Refuse a batch that is damaged; texts that are not UTF-8 are not, and are mended later."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        batch.validate()
        for column in batch.columns:
            _as_bytes(column).validate(full=True)
    return batch


def _as_bytes(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(values.indices, _as_bytes(values.dictionary))
    return values if (plain := _type_of_bytes(kind)) == kind else values.view(plain)


def _type_of_bytes(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind):
        return pa.binary()
    if pa.types.is_large_string(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_type_of_bytes(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_type_of_bytes(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_type_of_bytes(kind.value_type)))
    return kind


def _avro_table(stream: BinaryIO, budget: ReadingBudget) -> pa.Table:
    """Read records of Avro; each field of a record is a column.

    Maps, and fields of several types, are texts: nested values of these as JSON.
    """
    require_package("fastavro")
    import fastavro

    try:
        _check_blocks(fastavro.block_reader(stream), budget)
        stream.seek(0)
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
    except (TableReadError, MemoryError):
        raise
    except Exception as error:  # fastavro lets through whatever goes wrong while it decodes
        cut_short = isinstance(error, EOFError)
        reason = "it ends in the middle of a record" if cut_short else first_line(error)
        raise TableReadError(f"{{shown}} is no readable Avro file: {reason}.") from error
    columns = [pa.chunked_array(arrays, arrays[0].type) for arrays in pieces]
    return pa.Table.from_arrays(columns, names=names)


def _check_blocks(blocks: Any, budget: ReadingBudget) -> None:
    """Refuse what the heads of the blocks say is too much, before a record is made.

    A record without a field, or of nulls alone, takes no byte.
    """
    schema = blocks.writer_schema
    n_columns = len(schema.get("fields", ())) if isinstance(schema, dict) else 1
    n_rows = n_bytes = 0
    for block in blocks:
        n_rows, n_bytes = n_rows + block.num_records, n_bytes + len(block.bytes_.getbuffer())
        check_table(budget, n_bytes, n_rows, n_columns)
        budget.check_unpacked(n_bytes)


def _maker(schema: Any) -> Callable[[list[Any]], pa.Array]:
    kind = _arrow_type(schema, _MAX_DEPTH)
    if kind is None or pa.types.is_string(kind):
        return lambda values: strings([None if v is None else _text(v) for v in values])
    return lambda values: pa.array(values, kind)


def _arrow_type(schema: Any, depth: int) -> pa.DataType | None:
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
        is_of_bytes = kind == "fixed" and schema.get("size") == _UUID_BYTES
        top = pa.uuid() if is_of_bytes else pa.string()
        return top if depth == _MAX_DEPTH else None
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


def _text(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=_text)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return cell_text(value)
