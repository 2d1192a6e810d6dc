"""The schema of the records that a table is read into, and batches of them."""

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
        pa.field("kind", pa.string()),  # text, date, number or empty
        pa.field("n_missing", pa.int64()),
        pa.field("median_tokens", pa.float64()),
        # of a value and of a token
        pa.field("value", pa.string()),  # normalised; of a token its text
        # of a value
        pa.field("text", pa.string()),  # as first written, without white space around it
        pa.field("count", pa.int64()),  # cells
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
