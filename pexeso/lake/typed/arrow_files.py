"""Feather, Arrow IPC and ORC files: tables whose types are Arrow's already.

They are read in a process of their own: Arrow 26 ends the process for some damaged ORC files and
Feather files of the first version, and takes what memory a file asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.readers.budget import ReadingBudget
from pexeso.lake.readers.file_source import FileSource
from pexeso.lake.readers.table import check_width
from pexeso.lake.typed.apart import budget_of, gathered, read_file_apart
from pexeso.lake.typed.table import TypedTable
from pexeso.runtime.formatting import first_line

_FEATHER_1 = b"FEA1"
_ARROW_FILE = b"ARROW1"
_ORC = b"ORC"


def read(source: FileSource) -> TypedTable:
    """Read the one table of a Feather, Arrow or ORC file; what it is, its first bytes say.

    Memory: the table, at most `max_bytes` of the source, here and in the process that reads.
    """
    return read_file_apart(source, __name__)


def answer(request: dict[str, Any]) -> tuple[dict[str, Any], pa.Table]:
    """Read a file; called in a process of its own."""
    try:
        with open(request["path"], "rb") as stream:
            return {}, _table(stream, budget_of(request))
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise TableReadError(f"{{shown}} cannot be read: {first_line(error)}.") from error


def _table(stream: BinaryIO, budget: ReadingBudget) -> pa.Table:
    schema, batches = _open(stream)
    check_width("{shown}", len(schema))
    return gathered(map(_validated, batches), schema, budget)


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
    """Return a type with bytes in place of texts, inside nested ones as well."""
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


def _open(stream: BinaryIO) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema of a file, and its rows as it keeps them; in ORC these are stripes."""
    start = stream.read(8)
    stream.seek(0)
    if not start:
        raise TableReadError("{shown} is empty: it has no bytes.")
    if start.startswith(_FEATHER_1):
        import pyarrow.feather

        table = pyarrow.feather.read_table(stream, use_threads=False)
        return table.schema, iter(table.to_batches())
    if start.startswith(_ORC):
        import pyarrow.orc

        stripes = pyarrow.orc.ORCFile(stream)
        return stripes.schema, (stripes.read_stripe(n) for n in range(stripes.nstripes))
    if start.startswith(_ARROW_FILE):
        file = pa.ipc.open_file(stream)
        return file.schema, (file.get_batch(n) for n in range(file.num_record_batches))
    reader = pa.ipc.open_stream(stream)
    return reader.schema, iter(reader)
