"""What partitions want of a table: the distinct normalised values of the columns that are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pexeso.lake.records import value_records

if TYPE_CHECKING:
    import pyarrow as pa

    from pexeso.lake.records import ReadTable


def records(tables: Sequence[ReadTable], *, model: int = 0) -> Iterator[pa.RecordBatch]:
    return value_records(tables) if model == 0 else iter(())
