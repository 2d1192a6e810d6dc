"""Edges by equal values, from the token sets of an index.

The share of equal values is counted for all columns at once
(`pexeso.joins.graph.containers`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.vector_space import count_needed
from pexeso.joins.graph.containers import LakeTokens, chunks, containers
from pexeso.joins.graph.nodes import Folded, Nodes
from pexeso.results.copies import ColumnSets, foldable_sizes
from pexeso.results.table_columns import HasCatalog
from pexeso.runtime.ranges import offsets_of
from pexeso.sets.lake_columns import LakeColumns

Edges = tuple[np.ndarray, np.ndarray, np.ndarray, int]
"""Left and right nodes and the values that match, int64 (e,), by left node and those that match
most first; and how many left nodes are done."""


@dataclass(frozen=True, eq=False)
class EqualValues:
    """Columns of an index that are compared by equal values."""

    columns: LakeColumns
    nodes: Nodes
    folded: Folded
    copies: pa.Table

    @classmethod
    def of(cls, columns: LakeColumns, missing: np.ndarray, *, folds: bool) -> EqualValues:
        """Return the columns of a lake as nodes.

        Parameters
        ----------
        missing : int64 (n,)
            Cells without a value, -1 where that is not known.
        """
        unique = (missing >= 0) & (columns.sizes == columns.n_rows - missing)
        nodes = Nodes(columns.tables, columns.labels, columns.sizes, unique)
        folded = Folded.of(_sets_of(columns)) if folds else Folded.none(len(columns))
        rows = folded.kept
        return cls(take_columns(columns, rows), nodes.take(rows), folded, folded.copies(nodes))

    def edges(self, min_joinability: float, limit: int | None) -> Iterator[Edges]:
        """Yield all edges, at most so many of each left node."""
        return edges_between(self.columns, min_joinability, limit, 0, len(self.columns))


def edges_between(
    columns: LakeColumns,
    min_joinability: float,
    limit: int | None,
    begin: int,
    end: int,
    tokens: LakeTokens | None = None,
) -> Iterator[Edges]:
    """Yield the edges from some columns to all.

    Parameters
    ----------
    limit : int or None
        Edges of each left column at most.
    """
    needed = count_needed(min_joinability, columns.sizes)
    tokens = LakeTokens.of(columns) if tokens is None else tokens
    max_edges = np.iinfo(np.int64).max if limit is None else limit
    for part in chunks(columns.sizes[begin:end]):
        bounds = {"begin": begin + part.start, "end": begin + part.stop}
        for left, right, shared, _ in containers(columns, tokens, needed, max_edges, **bounds):
            yield left, right, shared, part.stop


def missing_cells(columns: LakeColumns, opened: HasCatalog) -> np.ndarray:
    """Return for each column how many rows have no value there, -1 where that is not known."""
    rows = opened.catalog.columns(["table", "label", "n_missing"])
    numbered_columns = pa.table(
        {"table": columns.tables, "label": columns.labels, "at": _range(columns)}
    )
    typed = rows.cast(pa.schema([*list(numbered_columns.schema)[:2], ("n_missing", pa.int64())]))
    joined = numbered_columns.join(typed, ["table", "label"], join_type="left outer").sort_by("at")
    return pc.fill_null(joined["n_missing"], -1).to_numpy()


def take_columns(columns: LakeColumns, rows: np.ndarray) -> LakeColumns:
    """Return some columns, in their order; the others are as if they were deleted."""
    if len(rows) == len(columns):
        return columns
    at = pa.array(rows, pa.int64())
    arrays = {
        name: getattr(columns, name)[rows] for name in ("shard_of", "set_of", "sizes", "n_rows")
    }
    return replace(
        columns, tables=columns.tables.take(at), labels=columns.labels.take(at), **arrays
    )


def _range(columns: LakeColumns) -> pa.Array:
    return pa.array(np.arange(len(columns)))


def _sets_of(columns: LakeColumns) -> ColumnSets:
    sizes = foldable_sizes(columns.sizes)
    chosen = np.flatnonzero(sizes)
    _, members = LakeTokens.of(columns).of_columns(chosen)
    return ColumnSets(offsets_of(sizes), members)
