"""A column as a set of tokens, for joins by equal values: one record of the set, one of each token.

Numbers, ids and codes join by equal values as well as words do, so columns of every kind are taken
here; the other rules are those of the semantic index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from pexeso.lake.choose import KINDS, ColumnRules, reason_left_out
from pexeso.lake.record_schema import MAX_RECORDS, batch_of, batch_of_columns
from pexeso.lake.records import ReadColumn, ReadTable
from pexeso.lake.tokens import distinct_tokens


def records(table: ReadTable) -> Iterator[pa.RecordBatch]:
    """Yield a record of each column's set, and one of each of its tokens."""
    for column in table.columns:
        yield from set_records(table.name, column, table.rules)


def set_records(table: str, column: ReadColumn, rules: ColumnRules) -> Iterator[pa.RecordBatch]:
    """Return the records of a column's tokens.

    There are none if the column is not to be joined by equal values.

    Parameters
    ----------
    rules
        All hold but `kinds`; `min_distinct` counts tokens.

    Yields
    ------
    pa.RecordBatch
        Of `pexeso.lake.record_schema.SCHEMA`, at most `MAX_RECORDS` rows: the ``set``, with its
        label and number of tokens, then each ``token``.
    """
    if (
        column.profile is None
        or reason_left_out(column.profile, replace(rules, kinds=KINDS)) is not None
    ):
        return
    tokens = distinct_tokens(column.cells)
    if len(tokens) < rules.min_distinct:
        return
    about = {
        "table": table,
        "position": column.position,
        "label": column.label,
        "n_distinct": len(tokens),
    }
    yield batch_of([{"record": "set", **about}])
    for start in range(0, len(tokens), MAX_RECORDS):
        some = tokens.slice(start, MAX_RECORDS).cast(pa.string())
        columns = {
            "record": pa.repeat("token", len(some)),
            "table": pa.repeat(table, len(some)),
            "position": pa.repeat(pa.scalar(column.position, pa.int32()), len(some)),
            "value": some,
        }
        yield batch_of_columns(columns)
