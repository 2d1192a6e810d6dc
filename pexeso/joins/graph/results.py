"""The join graph of a lake as a result in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.joins.exports.edges import EDGES, strongest
from pexeso.joins.exports.graphml import GRAPHML
from pexeso.joins.exports.mermaid import mermaid_lines
from pexeso.joins.exports.registry import format_of_file, write_export
from pexeso.lake.frames.results import Tabular
from pexeso.runtime.shown import MAX_ROWS, many

if TYPE_CHECKING:
    import pandas as pd

    from pexeso.joins.graph.graphs import EdgeStream

MAX_PICTURED = 500
"""Edges among which the lines of a picture are chosen, the strongest."""


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
        column, ``right_unique`` tells whether it is known that no two rows have the same, missing
        cells (`pexeso.lake.cells.missing`) apart.
    copies : pyarrow.Table
        Columns that others stand for: ``table, column, of_table, of_column``.
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
        return {
            "options": self.options,
            "columns": self.n_columns,
            "copies": self.copies.num_rows,
            "edges": len(self),
            "cut": self.n_cut,
        }

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
            The file is there and is not to be replaced, or cannot be written.
        """
        return write_export(GRAPHML, self, path, overwrite=overwrite)

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the edges in the format that the name of the file asks for, and return the path.

        Parameters
        ----------
        path : path
            Ends in ``.jsonl``, ``.csv``, ``.parquet``, ``.mmd`` (Mermaid) or ``.graphml``.
        overwrite : bool
            Replace a file that is there.

        Raises
        ------
        InputError
            The name ends in something else.
        OutputError
            The file is there and is not to be replaced, or cannot be written.
        """
        return write_export(format_of_file(os.fspath(path)), self, path, overwrite=overwrite)
