"""A column as a set of tokens, for joins by equal values: one record of the set, one of each token.

Numbers, ids and codes join by equal values as well as words do, so columns of every kind are taken
here; the other rules are those of the semantic index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from pexeso.lake.catalog import column_batches, record_batches
from pexeso.lake.choose import KINDS, reason_left_out
from pexeso.lake.records import BATCH_BYTES, ReadColumn, ReadTable
from pexeso.lake.tokens import distinct_tokens_of


def records(tables: Sequence[ReadTable]) -> Iterator[pa.RecordBatch]:
    """Yield a record of each column's set, and one of each of its tokens.

    All rules hold but `kinds`; `min_distinct` counts tokens.
    """
    together: list[tuple[ReadTable, ReadColumn]] = []
    n_bytes = 0
    for table in tables:
        rules = replace(table.rules, kinds=KINDS)
        for column in table.columns:
            if column.profile is None or reason_left_out(column.profile, rules) is not None:
                continue
            if n_bytes + column.cells.nbytes > BATCH_BYTES and together:
                yield from _records_of(together)
                together, n_bytes = [], 0
            together.append((table, column))
            n_bytes += column.cells.nbytes
    if together:
        yield from _records_of(together)


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
