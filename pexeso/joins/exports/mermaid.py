"""Edges as a Mermaid flowchart: tables as boxes around their columns, or with their one column.

Mermaid draws at most `MAX_EDGES` lines by its own settings. Of more edges those of the largest
joinability are kept, of equal ones those of most values, and a comment counts the others. Two
columns that join both ways have one line with a head at each end.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pexeso.joins.exports.edges import EDGES, Edges, strongest
from pexeso.joins.exports.formats import ExportFormat, Naming
from pexeso.joins.exports.lines import write_lines
from pexeso.runtime.formatting import percent

MAX_EDGES = 500
"""Lines that Mermaid draws unless its setting `maxEdges` says otherwise."""

_PLAIN = re.compile(r"[^\w .,/-]")

Column = tuple[str, str]


def write_mermaid(edges: Edges, path: Path, naming: Naming) -> None:
    """Write a flowchart."""
    write_lines(path, [mermaid_lines(edges)])


def mermaid_lines(edges: Edges) -> Iterator[str]:
    """Yield the lines of a flowchart; see the module."""
    best, n_edges = strongest(edges.batches(), MAX_EDGES)
    rows = best.sort_by([(name, "ascending") for name in EDGES.names[:4]]).to_pylist()
    yield "flowchart LR"
    if n_edges > len(rows):
        yield f"%% {n_edges - len(rows)} more edges, of smaller joinability or fewer values"
    columns = sorted({end for row in rows for end in _ends(row)})
    numbers = {column: f"c{number}" for number, column in enumerate(columns)}
    by_table: dict[str, list[Column]] = defaultdict(list)
    for column in columns:
        by_table[column[0]].append(column)
    for number, (table, members) in enumerate(by_table.items()):
        if len(members) == 1:
            yield f'  {numbers[members[0]]}["{_text(table)}<br/>{_text(members[0][1])}"]'
            continue
        yield f'  subgraph t{number}["{_text(table)}"]'
        for column in members:
            yield f'    {numbers[column]}["{_text(column[1])}"]'
        yield "  end"
    yield from _arrows(rows, numbers)


def _arrows(rows: list[dict[str, Any]], numbers: dict[Column, str]) -> Iterator[str]:
    by_ends = {_ends(row): percent(row["joinability"]) for row in rows}
    for (left, right), share in by_ends.items():
        back = by_ends.get((right, left))
        if back is None:
            yield f'  {numbers[left]} -->|"{share}"| {numbers[right]}'
        elif left < right:
            both = share if share == back else f"{share} / {back}"
            yield f'  {numbers[left]} <-->|"{both}"| {numbers[right]}'


def _ends(row: dict[str, Any]) -> tuple[Column, Column]:
    left, right = ((row[f"{side}_table"], row[f"{side}_column"]) for side in ("left", "right"))
    return left, right


def _text(text: str) -> str:
    """Return a text as it stands between quotes.

    What may mean something to Mermaid, HTML or Markdown is written by its number. Letters and
    digits of all scripts stay as they are.
    """
    return _PLAIN.sub(lambda match: f"#{ord(match[0])};", text) or " "


MERMAID = ExportFormat("mermaid", ".mmd", write_mermaid)
