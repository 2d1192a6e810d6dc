"""A drawing of the join graph of a lake: tables with their columns, and lines between these.

Of a large graph the first lines given are drawn, so many that they can be followed. All places are
whole numbers, so that a drawing is the same on every machine.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from pexeso.results.pages.layered_layout import (
    Columns,
    LevelLine,
    arc,
    arrow_head,
    layered_layout,
    short_name,
)
from pexeso.results.pages.page import rendered
from pexeso.runtime.formatting import percent

MAX_TABLES = 40
# Tables and lines of a drawing.
MAX_LINES = 60

# Lines of one column: where many columns have the same values, some of their lines show it.
MAX_OF_COLUMN = 4

BOX_WIDTH = 212

_HEAD_HEIGHT, _ROW_HEIGHT, _FOOT = 26, 18, 6
_GAP, _LINE_GAP, _PART_GAP, _COLUMN_GAP, _MARGIN = 22, 12, 30, 70, 8
_ARC, _MAX_ARC = 18, 44
_MAX_LEVELS, _STACK = 4, 5
_TABLE_CELLS, _COLUMN_CELLS, _SAID_CELLS = 26, 32, 60
# So wide a drawing may be without scrolling on a desk; connected tables are side by side.
_WIDTH = 1120

# The names of a table and of a column.
Column = tuple[str, str]


@dataclass(frozen=True)
class _Join:
    one: Column
    other: Column
    there: Mapping[str, Any] | None
    back: Mapping[str, Any] | None

    @property
    def is_whole(self) -> bool:
        return any(row["matched"] == row["total"] for row in (self.there, self.back) if row)

    @property
    def said(self) -> str:
        ways = ((self.there, self.one, self.other), (self.back, self.other, self.one))
        return "; ".join(
            f"{percent(row['joinability'])} of the values of {_said(ours)} are in {_said(target)}"
            for row, ours, target in ways
            if row is not None
        )


def join_drawing(
    rows: Iterable[Mapping[str, Any]], of_column: int = MAX_OF_COLUMN
) -> SimpleNamespace | None:
    """Draw the first joins of some edges, at most `of_column` of a column; None without an edge."""
    joins = _joins_of(rows)
    if not joins:
        return None
    drawn = _chosen(joins, of_column)
    tables = sorted({column[0] for join in drawn for column in (join.one, join.other)})
    parts = _parts(tables, drawn)
    boxes: list[SimpleNamespace] = []
    lines: list[SimpleNamespace] = []
    width, left, top, bottom = 0, _MARGIN, _MARGIN, _MARGIN
    for part in parts:
        between = [join for join in drawn if join.one[0] in part]
        if left > _MARGIN and left + _width(part, between) + _MARGIN > _WIDTH:
            left, top = _MARGIN, bottom + _PART_GAP
        geometry = _Places(part, between, left, top)
        boxes += geometry.boxes
        lines += geometry.lines
        left += _width(part, between)
        width, bottom = max(width, left + _MARGIN), max(bottom, top + geometry.height)
        left += _COLUMN_GAP
    known = {column[0] for join in joins for column in (join.one, join.other)}
    n_whole = sum(line.kind == "whole" for line in lines)
    return SimpleNamespace(
        width=width,
        height=bottom + _MARGIN,
        boxes=boxes,
        lines=lines,
        n_tables=len(known),
        n_joins=len(joins),  # pairs of columns, in one direction or in both
        said=(
            f"{len(boxes):,} tables with their columns, and {len(lines):,} lines between "
            f"columns that join. Of {n_whole:,} all values of one column are in the other one."
        ),
    )


def join_graph_notebook(description: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the drawing as HTML with a style of its own, for notebooks; empty without an edge."""
    drawing = join_drawing(rows)
    if drawing is None:
        return ""
    shown = {"drawing": drawing, "description": description, "box_width": BOX_WIDTH}
    return rendered("join_drawing_notebook.html", shown)


def _said(column: Column) -> str:
    return " : ".join(short_name(name, _SAID_CELLS) for name in column)


def _joins_of(rows: Iterable[Mapping[str, Any]]) -> list[_Join]:
    """Return pairs of columns in the order of the first row of each."""
    by_ends: dict[tuple[Column, Column], dict[bool, Mapping[str, Any]]] = {}
    for row in rows:
        left, right = ((row[f"{side}_table"], row[f"{side}_column"]) for side in ("left", "right"))
        is_there = left <= right
        by_ends.setdefault((left, right) if is_there else (right, left), {})[is_there] = row
    return [_Join(*ends, ways.get(True), ways.get(False)) for ends, ways in by_ends.items()]


def _chosen(joins: list[_Join], of_column: int) -> list[_Join]:
    chosen: list[_Join] = []
    tables: set[str] = set()
    n_lines: Counter[Column] = Counter()
    for join in joins:
        ends = (join.one, join.other)
        both = tables | {table for table, _ in ends}
        if len(both) > MAX_TABLES or any(n_lines[end] >= of_column for end in ends):
            continue
        tables = both
        n_lines.update(ends)
        chosen.append(join)
        if len(chosen) == MAX_LINES:
            break
    return chosen


def _neighbours(joins: Iterable[_Join]) -> dict[str, set[str]]:
    near: dict[str, set[str]] = defaultdict(set)
    for join in joins:
        near[join.one[0]].add(join.other[0])
        near[join.other[0]].add(join.one[0])
    return near


def _parts(tables: list[str], joins: list[_Join]) -> list[dict[str, int]]:
    """Return connected tables with their levels, the part with the most tables first.

    Tables of a line are of different levels where this needs few; the table with the most
    neighbours is placed first, then those that are near to it.
    """
    near = _neighbours(joins)
    order = sorted(tables, key=lambda table: (-len(near[table]), table))
    parts: list[dict[str, int]] = []
    known: set[str] = set()
    for first in order:
        if first in known:
            continue
        levels: dict[str, int] = {}
        queue = [first]
        known.add(first)
        for table in queue:
            near_levels = Counter(
                levels[neighbour] for neighbour in near[table] if neighbour in levels
            )
            if table == first:
                levels[table] = int(len(near[table]) > _STACK)  # with tables on both sides
            else:
                # Rather in the next column than in one that grows long.
                full = Counter(levels.values())
                levels[table] = min(
                    range(_MAX_LEVELS), key=lambda at: (near_levels[at], full[at] // _STACK, at)
                )
            new = sorted(
                near[table] - known, key=lambda neighbour: (-len(near[neighbour]), neighbour)
            )
            queue += new
            known.update(new)
        used = sorted(set(levels.values()))
        parts.append({table: used.index(level) for table, level in levels.items()})
    return sorted(parts, key=lambda part: (-len(part), min(part)))


def _width(levels: dict[str, int], joins: list[_Join]) -> int:
    """Return how wide connected tables are, with lines between tables of the last level."""
    last = max(levels.values())
    has_arcs = any(levels[join.one[0]] == last == levels[join.other[0]] for join in joins)
    return last * (BOX_WIDTH + _COLUMN_GAP) + BOX_WIDTH + (_MAX_ARC if has_arcs else 0)


class _Places:
    def __init__(self, levels: dict[str, int], joins: list[_Join], left: int, top: int) -> None:
        columns: dict[str, set[str]] = defaultdict(set)
        for join in joins:
            for table, column in (join.one, join.other):
                columns[table].add(column)
        names = list(levels)
        number = {name: at for at, name in enumerate(names)}
        rows = [_HEAD_HEIGHT + _ROW_HEIGHT * len(columns[name]) + _FOOT for name in names]
        heights = [height + height % 2 for height in rows]
        spans = [
            (join.one, join.other)
            if levels[join.one[0]] <= levels[join.other[0]]
            else (join.other, join.one)
            for join in joins
        ]
        between = [
            LevelLine(number[left[0]], number[right[0]], at)
            for at, (left, right) in enumerate(spans)
            if levels[left[0]] != levels[right[0]]
        ]
        layout = layered_layout(
            list(levels.values()), heights, between, gap=_GAP, line_gap=_LINE_GAP
        )
        self._levels, self._top = levels, top
        widths = [BOX_WIDTH] * (max(levels.values()) + 1)
        self._columns = Columns.of(left, widths, _COLUMN_GAP)
        self._waypoints = [[middle + top for middle in line] for line in layout.waypoints]
        self._at: dict[Column, int] = {}
        self.height = layout.height
        self.boxes = [
            self._box(name, sorted(columns[name]), layout.middles[at] - height // 2, height)
            for at, (name, height) in enumerate(zip(names, heights, strict=True))
        ]
        line_of = {line.bundle: at for at, line in enumerate(between)}
        self.lines = [
            self._line(join, *span, line_of.get(at))
            for at, (join, span) in enumerate(zip(joins, spans, strict=True))
        ]

    def _box(self, table: str, columns: list[str], y: int, height: int) -> SimpleNamespace:
        x, y = self._columns.starts[self._levels[table]], y + self._top
        rows = []
        for at, column in enumerate(columns):
            middle = y + _HEAD_HEIGHT + at * _ROW_HEIGHT + _ROW_HEIGHT // 2
            self._at[table, column] = middle
            label = short_name(column, _COLUMN_CELLS)
            rows.append(SimpleNamespace(y=middle + 4, label=label, name=column))
        label = short_name(table, _TABLE_CELLS)
        return SimpleNamespace(x=x, y=y, height=height, label=label, name=table, rows=rows)

    def _line(self, join: _Join, left: Column, right: Column, line: int | None) -> SimpleNamespace:
        to_other, to_one = join.there is not None, join.back is not None
        to_right, to_left = (to_other, to_one) if left == join.one else (to_one, to_other)
        level = self._levels[left[0]]
        x, y, end_y = self._columns.ends[level], self._at[left], self._at[right]
        if line is None:
            end_x, towards = x, -1
            path = arc((x, y), (x, end_y), x + min(_MAX_ARC, _ARC + abs(end_y - y) // 16))
        else:
            end_x, towards = self._columns.starts[self._levels[right[0]]], 1
            path = self._columns.path((x, y), (end_x, end_y), self._waypoints[line], level)
        heads = arrow_head(end_x, end_y, towards) if to_right else ""
        heads += arrow_head(x, y, -1) if to_left else ""
        kind = "whole" if join.is_whole else "partly"
        return SimpleNamespace(kind=kind, path=path, heads=heads, said=join.said)
