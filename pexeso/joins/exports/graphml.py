"""Edges as GraphML, which Gephi, yEd, Cytoscape and networkx read.

Nodes are columns, and stand before the first edge that they are in; edges lead from a column to one
that has its values. What XML cannot hold, such as most control characters, is written as U+FFFD.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

import numpy as np
import pyarrow as pa

from pexeso.joins.exports.edges import Edges
from pexeso.joins.exports.formats import ExportFormat, Naming
from pexeso.joins.exports.lines import joined, write_lines, written

_NODE_KEYS = {"table": "string", "column": "string", "copies": "long"}
_EDGE_KEYS = {
    "joinability": "double",
    "matched": "long",
    "total": "long",
    "right_total": "long",
    "right_unique": "boolean",
}
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_graphml(edges: Edges, path: Path, naming: Naming) -> None:
    """Write nodes and directed edges."""
    write_lines(path, _lines(edges))


def _lines(edges: Edges) -> Iterator[Iterable[str]]:
    yield [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        *(_key(name, "node", kind) for name, kind in _NODE_KEYS.items()),
        *(_key(name, "edge", kind) for name, kind in _EDGE_KEYS.items()),
        '<graph id="joins" edgedefault="directed">',
    ]
    known: dict[tuple[str, str], int] = {}
    for batch in edges.batches():
        new: list[str] = []
        ends = [_numbered(batch, side, known, new) for side in ("left", "right")]
        yield new
        yield _edges(batch, *ends).to_pylist()
    yield ["</graph>", "</graphml>"]


def _key(name: str, domain: str, kind: str) -> str:
    return f'<key id="{name}" for="{domain}" attr.name="{name}" attr.type="{kind}"/>'


def _numbered(
    batch: pa.RecordBatch, side: str, known: dict[tuple[str, str], int], new: list[str]
) -> pa.Array:
    """Return the numbers of the columns at one end, and add the lines of new ones."""
    names = [f"{side}_{field}" for field in ("table", "column", "copies")]
    rows = pa.Table.from_batches([batch]).select(names)
    at = pa.array(np.arange(rows.num_rows))
    distinct = rows.append_column("at", at).group_by(names, use_threads=False)
    groups = distinct.aggregate([("at", "list")])
    numbers = np.empty(rows.num_rows, np.int64)
    for table, column, copies, positions in zip(
        *(groups[name].to_pylist() for name in names), groups["at_list"], strict=True
    ):
        if (table, column) not in known:
            known[table, column] = len(known)
            data = {"table": _text(table), "column": _text(column), "copies": str(copies)}
            new.append(f'<node id="n{known[table, column]}">{_data(data)}</node>')
        numbers[positions.values.to_numpy()] = known[table, column]
    return pa.array(numbers)


def _edges(batch: pa.RecordBatch, left: pa.Array, right: pa.Array) -> pa.Array:
    pieces = ['<edge source="n', left, '" target="n', right, '">']
    for name in _EDGE_KEYS:
        values = written(batch.column(name), lambda value: str(value).lower())
        pieces += [f'<data key="{name}">', values, "</data>"]
    return joined([*pieces, "</edge>"])


def _data(values: dict[str, str]) -> str:
    return "".join(f'<data key="{name}">{value}</data>' for name, value in values.items())


def _text(value: str) -> str:
    # XML readers turn a carriage return into a new line, unless it is written by its number.
    return escape(_NO_XML.sub("\ufffd", value), quote=False).replace("\r", "&#13;")


GRAPHML = ExportFormat("graphml", ".graphml", write_graphml)
