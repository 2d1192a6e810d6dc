"""The edges of the join graph of an index, a batch at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from pexeso.joins.exports.edges import EDGES
from pexeso.joins.exports.registry import format_of_file, write_export
from pexeso.joins.graph.options import OVERLAP, SEMANTIC, GraphOptions
from pexeso.runtime.progress import CountedProgress
from pexeso.runtime.shown import Shown, facts_table, many

if TYPE_CHECKING:
    from pexeso.joins.graph.equal_values import Edges
    from pexeso.joins.graph.nodes import Folded, Nodes
    from pexeso.semantic.executor import Executor
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.sets.search.opening import TokenSets


@dataclass(repr=False)
class EdgeStream(Shown):
    """The edges of a join graph, made while they are read.

    Attributes
    ----------
    options : dict
        What was asked for, with what was chosen for the index.
    n_columns : int
        Columns between which edges are looked for.
    copies : pyarrow.Table
        Columns that others stand for: ``table, column, of_table, of_column``.
    n_edges, n_cut : int
        Edges read so far, and columns that have more than are given.
    """

    options: dict[str, Any]
    n_columns: int
    copies: pa.Table
    _batches: Iterable[pa.RecordBatch] = field(repr=False)
    n_edges: int = 0
    n_cut: int = 0

    def _summary(self) -> str:
        return f"{many(self.n_edges, 'edge')} read, between {many(self.n_columns, 'column')}"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        counts = {"columns": self.n_columns, "copies": self.copies.num_rows, "edges": self.n_edges}
        return facts_table({**self.options, **counts, "cut": self.n_cut})

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the edges, of `pexeso.joins.exports.edges.EDGES`, once.

        They are ordered by the table and the name of the left column; of one column by joinability,
        the largest first, then by the names of the right one.
        """
        yield from self._batches

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the edges as they are found; see `pexeso.joins.graph.results.ColumnGraph.write`."""
        form = format_of_file(os.fspath(path))
        return write_export(form, self, path, overwrite=overwrite)

    def summary(self) -> dict[str, Any]:
        """Return options and counts as plain JSON, of the edges read so far."""
        return {
            "options": self.options,
            "columns": self.n_columns,
            "copies": self.copies.num_rows,
            "edges": self.n_edges,
            "cut": self.n_cut,
        }


def stream_edges(
    opened: OpenIndex | TokenSets,
    options: GraphOptions,
    executor: Executor | None = None,
    *,
    passes: int = 1,
    edges_on: EdgesOn | None = None,
    progress: CountedProgress | None = None,
) -> EdgeStream:
    """Begin to find the edges of the join graph of an index.

    Notes
    -----
    Memory does not grow with the edges but of one batch: `k` of each of its columns. Names and
    sizes of all columns are held; for equal values also what `LakeColumns` and `LakeTokens` hold;
    for values alike the vectors of one pass.
    """
    limit = None if options.limit is None else options.limit + 1  # one more tells of a cut
    if options.method_for(opened.store) == OVERLAP:
        compared = _equal_values(opened, options, limit, edges_on)
    else:
        compared = _values_alike(cast("OpenIndex", opened), options, limit, executor, passes)
    stream = EdgeStream(compared.options, len(compared.nodes), compared.copies, ())
    stream._batches = _batches(stream, compared, options.limit, progress)
    return stream


@dataclass(frozen=True)
class _Compared:
    """Columns that are compared, and the edges between them."""

    options: dict[str, Any]
    nodes: Nodes
    folded: Folded
    copies: pa.Table
    edges: Iterator[Edges]


def _equal_values(
    opened: OpenIndex | TokenSets,
    options: GraphOptions,
    limit: int | None,
    edges_on: EdgesOn | None,
) -> _Compared:
    from pexeso.joins.graph.equal_values import EqualValues, missing_cells
    from pexeso.sets.lake_columns import LakeColumns

    columns = LakeColumns.of_index(opened)
    graph = EqualValues.of(columns, missing_cells(columns, opened), folds=options.fold_copies)
    edges = graph.edges if edges_on is None else partial(edges_on, graph)
    plain_options = options.to_dict(OVERLAP, None)
    return _Compared(
        plain_options,
        graph.nodes,
        graph.folded,
        graph.copies,
        edges(options.min_joinability, limit),
    )


def _values_alike(
    opened: OpenIndex,
    options: GraphOptions,
    limit: int | None,
    executor: Executor | None,
    passes: int,
) -> _Compared:
    from pexeso.joins.graph.semantic import ValuesAlike
    from pexeso.semantic.executor import LocalExecutor

    by_kind = options.max_distance is None
    distance = opened.usual_max_distance if options.max_distance is None else options.max_distance
    executor = LocalExecutor() if executor is None else executor
    graph = ValuesAlike.of(opened, executor, folds=options.fold_copies)
    edges = graph.edges(options.min_joinability, distance, limit, passes, by_kind=by_kind)
    plain_options = options.to_dict(SEMANTIC, distance)
    return _Compared(plain_options, graph.nodes, graph.folded, graph.copies, edges)


EdgesOn = Callable[..., Iterator["Edges"]]
"""From `EqualValues`, a least joinability and a limit to the edges."""


def _batches(
    stream: EdgeStream, compared: _Compared, limit: int | None, progress: CountedProgress | None
) -> Iterator[pa.RecordBatch]:
    nodes, n_copies = compared.nodes, compared.folded.n_copies
    for left, right, matched, n_compared in compared.edges:
        if limit is not None:
            rank = np.arange(len(left)) - np.searchsorted(left, left)
            stream.n_cut += int((rank == limit).sum())
            left, right, matched = (array[rank < limit] for array in (left, right, matched))
        stream.n_edges += len(left)
        if progress is not None:
            progress(n_compared, len(nodes))
        if len(left):
            yield _batch(nodes, left, right, matched, n_copies)


def _batch(
    nodes: Nodes, left: np.ndarray, right: np.ndarray, matched: np.ndarray, n_copies: np.ndarray
) -> pa.RecordBatch:
    one, other = nodes.take(left), nodes.take(right)
    columns = {
        "left_table": one.tables,
        "left_column": one.labels,
        "right_table": other.tables,
        "right_column": other.labels,
        "joinability": matched / one.totals,
        "matched": matched,
        "total": one.totals,
        "right_total": other.totals,
        "right_unique": other.unique,
        "left_copies": n_copies[left],
        "right_copies": n_copies[right],
    }
    arrays = [pa.array(columns[column.name]).cast(column.type) for column in EDGES]
    return pa.RecordBatch.from_arrays(arrays, schema=EDGES)
