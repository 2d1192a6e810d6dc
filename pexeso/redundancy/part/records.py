"""The cells of a table as records: pieces of it with hashes in place of values.

Every column counts here, whatever the rules say of it, with the type that its file has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.record_schema import batch_of
from pexeso.lake.records import ReadTable
from pexeso.redundancy.pieces import FIELDS, packed, pieces_of

RECORD = "row_hashes"


def records(tables: Sequence[ReadTable]) -> Iterator[pa.RecordBatch]:
    """Yield the pieces of tables, a record each; of those alone that are files."""
    for table in tables:
        if table.rows is None or table.rows.typed is None:
            continue
        try:
            for piece in pieces_of(table.name, table.rows.typed()):
                fields = packed(piece)
                yield batch_of([{"record": RECORD, **{name: fields[name] for name in FIELDS}}])
        except (TableReadError, pa.ArrowException, ValueError, RecursionError):
            continue  # its texts could be read, its types not: it has no pieces, or not all
