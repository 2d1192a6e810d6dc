"""The exact stage: for each pair of tables, how many rows of the one occur in the other.

Pairs are worked on by the columns of the child: each table is hashed once on these columns, whether
it is the parent or the child of a pair.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pexeso.redundancy.containment import RowCounts, contained_rows, counted_rows
from pexeso.redundancy.pieces import StoredPiece, stored_pieces
from pexeso.redundancy.plans.in_tasks import done_in_tasks
from pexeso.redundancy.schema_tokens import Token
from pexeso.redundancy.tables import (
    TableOfPieces,
    hashes_of_rows,
    name_of,
    ordered_tokens,
    place_of_cells,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_OF_A_UNIT = 1 << 22
"""Rows to be hashed by one unit of work, about."""

ROWS_KEPT = 1 << 22
"""Rows of tables whose hashes a task keeps for further pairs: some 64 bytes each."""

_ROW = pa.schema([(name, pa.int64()) for name in ("parent", "child", "rows")])

Unit = str
"""JSON: ``tokens``; ``tables``, places of cells by number of the table; ``pairs``."""


def units_of(
    tables: Sequence[TableOfPieces], parents: np.ndarray, children: np.ndarray
) -> Iterator[Unit]:
    """Divide pairs of tables into units of work."""
    schema_of = {child: tuple(ordered_tokens(tables[child])) for child in set(children.tolist())}
    schemas: dict[tuple[Token, ...], list[int]] = {}
    for pair, child in enumerate(children.tolist()):
        schemas.setdefault(schema_of[child], []).append(pair)
    for tokens, pairs in schemas.items():
        pairs.sort(key=lambda pair: (parents[pair], children[pair]))
        some: list[tuple[int, int]] = []
        held: dict[int, int] = {}
        for pair in pairs:
            both = int(parents[pair]), int(children[pair])
            more = {number: tables[number].n_rows for number in both}
            if some and sum((held | more).values()) > ROWS_OF_A_UNIT and both[0] != some[-1][0]:
                yield _unit(tables, tokens, some)
                some, held = [], {}
            some.append(both)
            held |= more
        yield _unit(tables, tokens, some)


def _unit(
    tables: Sequence[TableOfPieces], tokens: tuple[Token, ...], pairs: list[tuple[int, int]]
) -> Unit:
    numbers = sorted({number for pair in pairs for number in pair})
    return json.dumps(
        {
            "tokens": [name_of(token) for token in tokens],
            "tables": {number: place_of_cells(tables[number], tokens) for number in numbers},
            "pairs": pairs,
        }
    )


def count_contained(
    units: Iterable[Unit],
    *,
    spark: SparkSession | None = None,
    semantics: str = "set",
    min_containment: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the rows of children that occur in parents, in tasks of Spark or threads.

    Returns
    -------
    parents, children, rows : int64 (e,)
        Of the pairs of which at least `min_containment` of the child's rows are contained, or which
        has none, by parent and child.
    """
    work = partial(_work, semantics=semantics, min_containment=min_containment)
    rows = [tuple(row.values()) for row in done_in_tasks(spark, units, work, _ROW)]
    edges = np.array(sorted(rows), np.int64).reshape(-1, 3)
    return edges[:, 0], edges[:, 1], edges[:, 2]


def _work(unit: Unit, *, semantics: str, min_containment: float) -> list[dict[str, Any]]:
    document = json.loads(unit)
    tables: Mapping[str, Any] = document["tables"]
    opened = lru_cache(maxsize=None)(stored_pieces)
    counts = _Counts(tables, document["tokens"], lambda path, number: opened(path)[number])
    edges = []
    for parent, child in document["pairs"]:
        parent_counts = counts.of(parent)
        child_counts = counts.of(child)
        n_rows = int(child_counts.counts.sum())
        missing = int((1 - min_containment) * n_rows) + 1 if min_containment < 1 else 0
        rows = contained_rows(child_counts, parent_counts, semantics, max_missing=missing)
        if rows >= 0 and containment(rows, n_rows) >= min_containment:
            edges.append({"parent": parent, "child": child, "rows": rows})
    return edges


def containment(rows: int, n_rows: int) -> float:
    """Return the share of a table's rows that is contained; an empty table is contained whole."""
    return rows / n_rows if n_rows else 1.0


class _Counts:
    """Rows of tables counted on some columns, kept while there is room."""

    def __init__(
        self,
        tables: Mapping[str, Any],
        tokens: Sequence[str],
        open_piece: Callable[[Path, int], StoredPiece],
    ) -> None:
        self._tables, self._tokens, self._open = tables, tokens, open_piece
        self._kept: dict[int, RowCounts] = {}

    def of(self, table: int) -> RowCounts:
        if table in self._kept:
            counts = self._kept.pop(table)
        else:
            hashes = hashes_of_rows(self._tables[str(table)], self._tokens, self._open)
            counts = counted_rows(hashes)
        self._kept[table] = counts  # the last used one is the last
        while len(self._kept) > 2 and sum(map(len, self._kept.values())) > ROWS_KEPT:
            self._kept.pop(next(iter(self._kept)))
        return counts
