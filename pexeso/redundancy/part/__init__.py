"""The part for redundant tables: hashes of all cells, so that rows of any columns compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pexeso.build.parts.base import ShardedPart

if TYPE_CHECKING:
    import pyarrow as pa

    from pexeso.lake.records import ReadTable

RECORD, PIECES = "row_hashes", "pieces"
FIELDS = ("table", "first_row", "n_rows", "facts", "hashes", "codes")


class RowHashesPart(ShardedPart):
    package = "pexeso.redundancy.part"
    name = "row_hashes"
    choices = ("redundancy",)
    stages = ("divide-hashes", "hashes")
    folders_are = "hash_shards"
    rows = ((PIECES, RECORD, FIELDS),)
    divided_by = ("table", "first_row")
    counts = ("pieces", "rows", "cells")
    summed = (("hashed_rows", "rows"), ("hashed_cells", "cells"))
    content = "hashed cells"
    # Of the hashes of values (`pexeso.redundancy.row_hashes`); another one cannot be compared.
    form = "cells-2"

    def records(self, tables: Sequence[ReadTable]) -> Iterator[pa.RecordBatch]:
        return self._module("write").records(tables)


ROW_HASHES_PART = RowHashesPart()
