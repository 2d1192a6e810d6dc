"""A column as a set of tokens, for joins by equal values: one record of the set, one of each token.

Numbers, ids and codes join by equal values as well as words do, so columns of every kind are taken
here; the other rules are those of the semantic index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from pexeso.lake.catalog import column_batches, record_batches
from pexeso.lake.choose import KINDS, reason_left_out
from pexeso.lake.records import BATCH_BYTES, ReadColumn, ReadTable
from pexeso.lake.tokens import distinct_tokens_of
from pexeso.runtime.ranges import runs_within


def records(tables: Sequence[ReadTable]) -> Iterator[pa.RecordBatch]:
    """Yield a record of each column's set, and one of each of its tokens.

    All rules hold but `kinds`; `min_distinct` counts tokens.
    """
    columns = [
        (table, column)
        for table in tables
        for column in table.columns
        if column.profile is not None
        and reason_left_out(column.profile, replace(table.rules, kinds=KINDS)) is None
    ]
    n_bytes = np.array([column.cells.nbytes for _, column in columns], np.int64)
    for run in runs_within(n_bytes, BATCH_BYTES):
        yield from _records_of(columns[run])


def _records_of(columns: list[tuple[ReadTable, ReadColumn]]) -> Iterator[pa.RecordBatch]:
    [readings] = {table.readings for table, _ in columns}
    tokens = distinct_tokens_of([column.cells for _, column in columns], readings)
    sets = [
        (table.name, column, of_column)
        for (table, column), of_column in zip(columns, tokens, strict=True)
        if len(of_column) >= table.rules.min_distinct
    ]
    yield from record_batches(
        {
            "record": "set",
            "table": name,
            "position": column.position,
            "label": column.label,
            "n_distinct": len(of_column),
        }
        for name, column, of_column in sets
    )
    yield from column_batches(
        "token",
        ((name, column.position, {"value": column_tokens}) for name, column, column_tokens in sets),
    )
