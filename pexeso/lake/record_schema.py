"""The schema of the records that a table is read into, and batches of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import numpy as np
import pyarrow as pa

MAX_RECORDS = 1 << 16
"""Most records in one batch."""

SCHEMA = pa.schema(
    [
        pa.field(
            "record", pa.string(), nullable=False
        ),  # table, column, value, or what a part of an index calls its own
        pa.field("table", pa.string(), nullable=False),
        # of a table
        pa.field("format", pa.string()),
        pa.field("n_bytes", pa.int64()),  # on disk
        pa.field(
            "modified", pa.int64()
        ),  # when the file was last changed, in nanoseconds since 1970; null where unknown
        pa.field(
            "version", pa.string()
        ),  # what its storage calls this state of the file; null where it has no name for it
        pa.field("encoding", pa.string()),
        pa.field("delimiter", pa.string()),
        pa.field("n_columns", pa.int32()),
        pa.field(
            "fingerprint", pa.string()
        ),  # of the bytes on disk; null where these could not be read or unpacked
        pa.field("notes", pa.list_(pa.string())),  # what was repaired
        # of a table and of a column
        pa.field("n_rows", pa.int64()),
        pa.field("reason", pa.string()),  # why it is left out; null where it is kept
        # of all but a table
        pa.field("position", pa.int32()),  # 0-based
        # of a column and of a set
        pa.field("label", pa.string()),
        pa.field("n_distinct", pa.int64()),  # of kept columns: normalised values; of sets: tokens
        # of a column
        pa.field("name", pa.string()),
        pa.field("kind", pa.string()),  # text, code, date, number or empty
        pa.field("n_missing", pa.int64()),
        pa.field("median_tokens", pa.float64()),
        # of a value and of a token
        pa.field("value", pa.string()),  # normalised; of a token its text
        # of a value
        pa.field("text", pa.string()),  # as first written, without white space around it
        pa.field("count", pa.int64()),  # cells
        # of rows; n_columns too, and n_rows, which are those of the record
        pa.field("first_row", pa.int64()),  # what rows are ordered by, those of one record together
        pa.field("labels", pa.list_(pa.string())),  # of all columns
        pa.field("texts", pa.list_(pa.string())),  # distinct, not empty
        pa.field("cells", pa.list_(pa.int32())),  # row after row: places in texts, -1 if missing
        # of hashed cells, with n_rows and first_row; see pexeso.redundancy.pieces
        pa.field("facts", pa.string()),  # JSON of the columns
        pa.field("hashes", pa.binary()),
        pa.field("codes", pa.binary()),
    ]
)
"""Schema of the records. Fields that are not of a record's sort are null."""


def batch_of(records: list[dict[str, object]]) -> pa.RecordBatch:
    """Make a batch of records; fields that are not given are null."""
    return pa.RecordBatch.from_pylist(records, schema=SCHEMA)


def batch_of_columns(given: dict[str, pa.Array]) -> pa.RecordBatch:
    """Create a batch of records from whole columns of equal length.

    Fields that are not given are null.
    """
    length = len(next(iter(given.values())))
    arrays = [
        given[field.name] if field.name in given else pa.nulls(length, field.type)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def record_batches(records: Iterable[dict[str, object]]) -> Iterator[pa.RecordBatch]:
    """Yield records in batches of at most `MAX_RECORDS`."""
    left = iter(records)
    while some := list(islice(left, MAX_RECORDS)):
        yield batch_of(some)


def column_batches(
    kind: str, columns: Iterable[tuple[str, int, Mapping[str, pa.Array]]]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of columns in batches of at most `MAX_RECORDS`, small columns together.

    Parameters
    ----------
    columns
        Of each its table and position, and arrays of equal length with the other fields.
    """
    pending: list[tuple[str, int, list[pa.Array], int]] = []
    names: list[str] = []
    n_pending = 0
    for table, position, fields in columns:
        names, arrays = list(fields), list(fields.values())
        start, end = 0, len(arrays[0])
        while start < end:
            length = min(end - start, MAX_RECORDS - n_pending)
            some = [array.slice(start, length) for array in arrays] if length < end else arrays
            pending.append((table, position, some, length))
            start, n_pending = start + length, n_pending + length
            if n_pending == MAX_RECORDS:
                yield _column_batch(kind, names, pending)
                pending, n_pending = [], 0
    if pending:
        yield _column_batch(kind, names, pending)


def _column_batch(
    kind: str, names: list[str], columns: list[tuple[str, int, list[pa.Array], int]]
) -> pa.RecordBatch:
    tables, positions, arrays, lengths = zip(*columns, strict=True)
    row = pa.array(np.repeat(np.arange(len(lengths)), lengths))
    fields = {
        "record": pa.repeat(kind, len(row)),
        "table": pa.array(tables, pa.string()).take(row),
        "position": pa.array(positions, pa.int32()).take(row),
    }
    fields |= {
        name: pa.concat_arrays(pieces).cast(SCHEMA.field(name).type)
        for name, pieces in zip(names, zip(*arrays, strict=True), strict=True)
    }
    return batch_of_columns(fields)
