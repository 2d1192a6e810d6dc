"""What exporters read: the edges of a join graph as Arrow record batches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import pyarrow as pa

EDGES = pa.schema(
    [
        *((name, pa.large_string()) for name in ("left_table", "left_column")),
        *((name, pa.large_string()) for name in ("right_table", "right_column")),
        ("joinability", pa.float64()),  # matched / total
        *((name, pa.int64()) for name in ("matched", "total", "right_total")),
        ("right_unique", pa.bool_()),  # known: no two rows have the same right value
        *((name, pa.int64()) for name in ("left_copies", "right_copies")),
    ]
)
"""One row an edge: the share of the distinct values of the left column that match in the right."""

_UNNAMED = re.compile(r"#\d+")


class Edges(Protocol):
    """The edges of a join graph."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the edges, of `EDGES`, those of a left column one after the other."""
        ...

    def summary(self) -> dict[str, Any]:
        """Return the options and counts as plain JSON."""
        ...


def named_rows(edges: Edges) -> Iterator[dict[str, Any]]:
    """Yield the edges between columns that have a name, for tools that know columns by names."""
    for batch in edges.batches():
        for row in batch.to_pylist():
            names = (row["left_column"], row["right_column"])
            if not any(_UNNAMED.fullmatch(name) for name in names):
                yield row


_ORDER = [
    *((name, "descending") for name in ("joinability", "matched")),
    *((name, "ascending") for name in EDGES.names[:4]),
]


def strongest(batches: Iterable[pa.RecordBatch], limit: int) -> tuple[pa.Table, int]:
    """Return the strongest edges, and how many there are; it holds few more than it returns."""
    best, n_edges = EDGES.empty_table(), 0
    for batch in batches:
        n_edges += batch.num_rows
        best = pa.concat_tables([best, pa.Table.from_batches([batch])])
        best = best.sort_by(_ORDER).slice(0, limit).combine_chunks()
    return best, n_edges
