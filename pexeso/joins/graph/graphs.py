"""The join graph of an index: which edges it has, yielded a batch at a time."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.base import parts_of
from pexeso.errors import InputError
from pexeso.joins.exports.files import (
    EDGES,
    GRAPHML,
    format_of_file,
    mermaid_lines,
    strongest,
    write_export,
)
from pexeso.lake.frames.tables import Tabular
from pexeso.options import (
    DEFAULT_MAX_DISTANCE,
    DEFAULT_MIN_JOINABILITY,
    SearchOptions,
    columns_wanted,
    make_plain,
)
from pexeso.runtime.checks import require_choice, require_flag
from pexeso.runtime.formatting import MAX_ROWS, Shown, facts_table, many
from pexeso.runtime.progress import CountedProgress

if TYPE_CHECKING:
    import pandas as pd

    from pexeso.joins.graph.edges import Edges, EqualValues, Nodes, ValuesAlike
    from pexeso.lake.judgements import Column
    from pexeso.semantic.executor import Executor
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.store.local.reader import Store


# Names that searches have for them: by equal values, and by values alike.
METHODS = OVERLAP, SEMANTIC = ("overlap", "semantic")


@dataclass(frozen=True)
class GraphOptions:
    """Which edges a join graph has.

    Attributes
    ----------
    method : {"overlap", "semantic"} or None
        By equal values, or by values alike. None: the former where the index has token sets.
    min_joinability : float
        In (0, 1]: the share of the distinct values of the left column that match.
    max_distance : float or None
        In [0, 1], of values alike; None: 0 for columns of dates, numbers or codes, else what suits
        the model of the index.
    k : int, "all" or None
        Edges of each left column at most, those of the largest joinability; None: 20.
    fold_copies : bool
        Of columns that are copies of each other (`pexeso.results.copies`) the first by table and
        name represents all.
    """

    method: str | None = None
    min_joinability: float = DEFAULT_MIN_JOINABILITY
    max_distance: float | None = None
    k: int | str | None = None
    fold_copies: bool = False

    def __post_init__(self) -> None:
        make_plain(self)
        if self.method is not None:
            require_choice("method", self.method, METHODS)
        require_flag("fold_copies", self.fold_copies)
        if self.min_joinability is None:
            raise InputError("min_joinability must be a number in (0, 1]. Got None instead.")
        if self.max_distance is not None and self.method == OVERLAP:
            raise InputError(
                "max_distance is for values alike, and the method overlap compares equal ones: "
                "leave it out, or take the method semantic."
            )
        # Ranges are those of searches.
        distance = DEFAULT_MAX_DISTANCE if self.max_distance is None else self.max_distance
        SearchOptions(distance, self.min_joinability, k=self.k)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> GraphOptions:
        names = cls.__dataclass_fields__
        if unknown := sorted(set(given) - set(names)):
            raise InputError(
                f"Options of a graph are {', '.join(names)}. Got {', '.join(unknown)}."
            )
        return cls(**given)

    @property
    def limit(self) -> int | None:
        return columns_wanted(self.k)

    def method_for(self, store: Store) -> str:
        if self.method is not None:
            return self.method
        return OVERLAP if "overlap" in parts_of(store) and self.max_distance is None else SEMANTIC

    def to_dict(self, method: str, max_distance: float | None) -> dict[str, Any]:
        options: dict[str, Any] = {"method": method, "min_joinability": self.min_joinability}
        if max_distance is not None:
            options["max_distance"] = max_distance
        k = "all" if self.limit is None else self.limit
        return {**options, "k": k, "fold_copies": self.fold_copies}


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
        Columns that others represent: ``table, column, of_table, of_column``.
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
        """Yield the edges, of `pexeso.joins.exports.files.EDGES`, once.

        They are ordered by the table and the name of the left column; of one column by joinability,
        the largest first, then by the names of the right one.
        """
        yield from self._batches

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the edges of `batches`, a dictionary each."""
        return (row for batch in self.batches() for row in batch.to_pylist())

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the edges as they are found; see `pexeso.joins.graph.graphs.ColumnGraph.write`."""
        form = format_of_file(os.fspath(path))
        return write_export(form, self, path, overwrite=overwrite)

    def summary(self) -> dict[str, Any]:
        """Return options and counts as plain JSON, of the edges read so far."""
        return _summary_of(self, self.n_edges)


def _summary_of(graph: EdgeStream | ColumnGraph, n_edges: int) -> dict[str, Any]:
    counts = {"columns": graph.n_columns, "copies": graph.copies.num_rows, "edges": n_edges}
    return {"options": graph.options, **counts, "cut": graph.n_cut}


def stream_edges(
    opened: OpenIndex,
    options: GraphOptions,
    executor: Executor | None = None,
    *,
    passes: int = 1,
    edges_on: EdgesOn | None = None,
    progress: CountedProgress | None = None,
) -> EdgeStream:
    """Begin to find the edges of the join graph of an index.

    Memory does not grow with the edges but of one batch: `k` of each of its columns. Names and
    sizes of all columns are held; for equal values also what `LakeColumns` and `LakeTokens` hold;
    for values alike the vectors of one pass.
    """
    rejected, limit = opened.judgements.rejected_pairs, options.limit
    if limit is not None:  # one more shows a cut, after those that a person rejected
        limit += 1 + max(Counter(one for one, _ in rejected).values(), default=0)
    graph: EqualValues | ValuesAlike
    if options.method_for(opened.store) == OVERLAP:
        from pexeso.joins.graph.edges import EqualValues, missing_cells
        from pexeso.sets.lake_columns import LakeColumns

        columns = LakeColumns.of_index(opened)
        graph = EqualValues.of(columns, missing_cells(columns, opened), folds=options.fold_copies)
        plain_options = options.to_dict(OVERLAP, None)
        between = graph.edges if edges_on is None else partial(edges_on, graph)
        edges = between(options.min_joinability, limit)
    else:
        from pexeso.joins.graph.edges import ValuesAlike
        from pexeso.semantic.executor import search_store

        distance, by_kind = options.max_distance, options.max_distance is None
        if distance is None:
            distance = opened.usual_max_distance
        graph = ValuesAlike.of(opened, executor or search_store, folds=options.fold_copies)
        plain_options = options.to_dict(SEMANTIC, distance)
        edges = graph.edges(options.min_joinability, distance, limit, passes, by_kind=by_kind)
    stream = EdgeStream(plain_options, len(graph.nodes), graph.copies, ())
    edges = _without_rejected(edges, graph.nodes, rejected)
    stream._batches = _batches(stream, graph.nodes, edges, options.limit, progress)
    return stream


def _without_rejected(
    edges: Iterator[Edges], nodes: Nodes, rejected: frozenset[tuple[Column, Column]]
) -> Iterator[Edges]:
    tables = pa.array(sorted({table for (table, _), _ in rejected}), nodes.tables.type)
    at = np.flatnonzero(pc.is_in(nodes.tables, value_set=tables).to_numpy(zero_copy_only=False))
    names = zip(
        *(texts.take(at).to_pylist() for texts in (nodes.tables, nodes.labels)), strict=True
    )
    numbers = dict(zip(names, at.tolist(), strict=True))
    known = [pair for pair in rejected if numbers.keys() >= set(pair)]
    codes = np.array([numbers[one] * len(nodes) + numbers[other] for one, other in known], np.int64)
    for left, right, matched, n_compared in edges:
        kept = np.isin(left * len(nodes) + right, codes, invert=True)
        yield left[kept], right[kept], matched[kept], n_compared


# From `EqualValues`, a least joinability and a limit to the edges.
EdgesOn = Callable[..., Iterator["Edges"]]


def _batches(
    stream: EdgeStream,
    nodes: Nodes,
    edges: Iterator[Edges],
    limit: int | None,
    progress: CountedProgress | None,
) -> Iterator[pa.RecordBatch]:
    for left, right, matched, n_compared in edges:
        if limit is not None:
            rank = np.arange(len(left)) - np.searchsorted(left, left)
            stream.n_cut += int((rank == limit).sum())
            left, right, matched = (array[rank < limit] for array in (left, right, matched))
        stream.n_edges += len(left)
        if progress is not None:
            progress(n_compared, len(nodes))
        if len(left):
            yield _batch(nodes.take(left), nodes.take(right), matched)


def _batch(one: Nodes, other: Nodes, matched: np.ndarray) -> pa.RecordBatch:
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
        "left_copies": one.n_copies,
        "right_copies": other.n_copies,
    }
    arrays = [pa.array(columns[column.name]).cast(column.type) for column in EDGES]
    return pa.RecordBatch.from_arrays(arrays, schema=EDGES)


# Edges among which the lines of a picture are chosen, the strongest.
MAX_PICTURED = 500


@dataclass(frozen=True, repr=False)
class ColumnGraph(Tabular):
    """All pairs of columns of a lake that join.

    Attributes
    ----------
    options : dict
        What was asked for, with what was chosen for the index.
    n_columns : int
        Columns that were compared.
    n_cut : int
        Columns that have more edges than `k`.
    edges : pyarrow.Table
        A row for each edge. ``joinability`` is ``matched / total``: the share of the distinct
        values of the left column that match in the right one. It is not that of the other
        direction, which is an edge of its own. ``right_total`` are the distinct values of the right
        column, ``right_unique`` says whether it is known that no two rows have the same, missing
        cells (`pexeso.lake.cells`) apart.
    copies : pyarrow.Table
        Columns that others represent: ``table, column, of_table, of_column``.
    """

    options: dict[str, Any]
    n_columns: int
    n_cut: int
    edges: pa.Table = field(repr=False, compare=False)
    copies: pa.Table = field(repr=False, compare=False)

    fields = tuple(EDGES.names)  # of no dataclass field

    @classmethod
    def of(cls, stream: EdgeStream) -> ColumnGraph:
        """Return the graph of a stream, read to its end."""
        edges = pa.Table.from_batches(stream.batches(), EDGES)
        return cls(stream.options, stream.n_columns, stream.n_cut, edges, stream.copies)

    def __len__(self) -> int:
        return self.edges.num_rows

    def _summary(self) -> str:
        return f"{many(len(self), 'edge')} between {many(self.n_columns, 'column')}"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        names = EDGES.names[:5]
        rows = self.edges.select(names).slice(0, MAX_ROWS).to_pylist()
        return names, [list(row.values()) for row in rows]

    def _repr_html_(self) -> str:
        """Return what notebooks show: a picture of the strongest edges, and the first 20."""
        from pexeso.results.pages.join_drawing import join_graph_notebook

        best, _ = strongest(self.batches(), MAX_PICTURED)
        return join_graph_notebook(self._summary(), best.to_pylist()) + super()._repr_html_()

    def rows(self) -> list[dict[str, Any]]:
        """Return the edges, a dictionary each."""
        return self.edges.to_pylist()

    def to_arrow(self) -> pa.Table:
        """Return `edges`."""
        return self.edges

    def to_pandas(self) -> pd.DataFrame:
        """Return the edges as a DataFrame of pandas."""
        return self.edges.to_pandas()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the edges as record batches."""
        yield from self.edges.to_batches()

    def summary(self) -> dict[str, Any]:
        """Return options and counts as plain JSON."""
        return _summary_of(self, len(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form that the command line prints."""
        return {
            "options": self.options,
            "columns": self.n_columns,
            "copies": self.copies.to_pylist(),
            "edges": self.rows(),
        }

    def to_mermaid(self) -> str:
        """Return a Mermaid flowchart of at most 500 edges, those of the largest joinability."""
        return "".join(f"{line}\n" for line in mermaid_lines(self))

    def to_graphml(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the graph as GraphML, and return the path.

        Raises
        ------
        OutputError
            The file exists and is not to be replaced, or cannot be written.
        """
        return write_export(GRAPHML, self, path, overwrite=overwrite)

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the edges in the format that the name of the file asks for, and return the path.

        Parameters
        ----------
        path : path
            Ends in ``.jsonl``, ``.csv``, ``.parquet``, ``.mmd`` (Mermaid) or ``.graphml``.
        overwrite : bool
            Replace an existing file.

        Raises
        ------
        InputError
            The name ends in something else.
        OutputError
            The file exists and is not to be replaced, or cannot be written.
        """
        return write_export(format_of_file(os.fspath(path)), self, path, overwrite=overwrite)
