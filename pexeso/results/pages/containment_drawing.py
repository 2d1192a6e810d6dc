"""A drawing of connected tables: boxes, frames and lines in whole pixels, for an SVG."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from pexeso.results.pages.containment_graph import LakeGraph, Part, Skeleton, skeleton
from pexeso.results.pages.layered_layout import Layout, LevelLine, layered_layout
from pexeso.runtime.formatting import plain

BOX_WIDTH, BOX_HEIGHT = 224, 44
NAME_CELLS = 28
"""Letters of a name in a box, those of East Asia counted twice."""

_GAP, _LINE_GAP, _COLUMN_GAP, _MARGIN = 18, 14, 84, 8
_FRAME_TOP, _FRAME_SIDE, _FRAME_INNER = 24, 10, 10
_ARC, _ARC_STEP, _MAX_ARC = 14, 7, 42
_HEAD = 9


@dataclass(frozen=True)
class Box:
    """A table: its corner, names, and whether it can go."""

    x: int
    y: int
    label: str
    name: str
    goes: bool
    n_bytes: int


@dataclass(frozen=True)
class Frame:
    """Around tables that hold each other."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class Line:
    """A line with its arrow heads."""

    kind: str
    path: str
    heads: str
    parent: str
    child: str
    is_mutual: bool


@dataclass(frozen=True)
class Drawing:
    """All that is drawn of connected tables.

    Attributes
    ----------
    n_tables : int
        How many are connected, also those that are not drawn.
    n_levels, n_equal_groups, n_whole, n_partly, n_rebuilds : int
        Of the drawing, for its description.
    n_implied, n_omitted : int
        See `pexeso.results.pages.containment_graph.Skeleton`.
    """

    number: int
    name: str
    n_tables: int
    width: int
    height: int
    boxes: tuple[Box, ...]
    frames: tuple[Frame, ...]
    lines: tuple[Line, ...]
    n_levels: int
    n_equal_groups: int
    n_whole: int
    n_partly: int
    n_rebuilds: int
    n_implied: int
    n_omitted: int


def drawing_of(graph: LakeGraph, part: Part, number: int) -> Drawing:
    """Draw connected tables: parents left of children, those that hold each other in a frame."""
    structure = skeleton(graph, part)
    heights = [_group_height(len(group)) for group in structure.groups]
    group_of = {table: at for at, group in enumerate(structure.groups) for table in group}
    level_lines, spans = _level_lines(structure, group_of)
    layout = layered_layout(structure.levels, heights, level_lines, gap=_GAP, line_gap=_LINE_GAP)
    with_arcs = {span.left for span in spans["rebuilt"] if span.line is None}
    geometry = _Places(structure, heights, layout, with_arcs)
    names = [graph.names[table] for table in part.tables.tolist()]
    sizes = graph.sizes[part.tables].tolist()
    removable = (graph.rebuilt_from[part.tables] >= 0).tolist()
    boxes = tuple(
        Box(*geometry.corner[table], short_name(name), name, removable[table], sizes[table])
        for table, name in enumerate(names)
    )
    leaders = [names[group[0]] for group in structure.groups]
    lines = [
        Line(kind, *geometry.between(span), *_ends_of(span, names, leaders), span.is_mutual)
        for kind in ("whole", "partly", "rebuilt")
        for span in spans[kind]
    ]
    largest = max(range(len(names)), key=lambda table: (sizes[table], -table))
    return Drawing(
        number,
        names[largest],
        part.n_tables,
        geometry.width,
        layout.height + 2 * _MARGIN,
        boxes,
        tuple(geometry.frames),
        tuple(lines),
        max(structure.levels) + 1,
        sum(len(group) > 1 for group in structure.groups),
        len(structure.whole),
        len(structure.partly),
        len(structure.rebuilds),
        structure.n_implied,
        structure.n_omitted,
    )


def short_name(name: str, max_cells: int = NAME_CELLS) -> str:
    """Return a name that fits a box: of a long one the middle is left out."""
    name = plain(name, 10 * NAME_CELLS) if len(name) <= 10 * NAME_CELLS else _safe_ends(name)
    cells = [_cells(letter) for letter in name]
    if sum(cells) <= max_cells:
        return name
    start, n_start = 0, 0
    while n_start + cells[start] <= max_cells // 3:
        n_start += cells[start]
        start += 1
    end, n_end = len(name), 0
    while n_start + 1 + n_end + cells[end - 1] <= max_cells:
        end -= 1
        n_end += cells[end]
    return f"{name[:start]}…{name[end:]}"


@dataclass(frozen=True)
class _Span:
    """A line from the right side of one group to the left side of another, by number.

    `line` is that of the layout; without one both are of one level, and the line is an arc.
    `parent` and `child` are the tables where it is one between tables, not groups.
    """

    left: int
    right: int
    to_right: bool
    to_left: bool
    line: int | None = None
    parent: int = -1
    child: int = -1

    @property
    def is_mutual(self) -> bool:
        return self.to_right and self.to_left


def _ends_of(span: _Span, names: list[str], leaders: list[str]) -> tuple[str, str]:
    """Return the names of the parent and the child of a line."""
    if span.parent >= 0:
        return names[span.parent], names[span.child]
    ends = leaders[span.left], leaders[span.right]
    return ends if span.to_right else ends[::-1]


def _level_lines(
    structure: Skeleton, group_of: Mapping[int, int]
) -> tuple[list[LevelLine], dict[str, list[_Span]]]:
    """Return the lines between levels, and all lines by kind."""
    lines: list[LevelLine] = []
    spans: dict[str, list[_Span]] = {"whole": [], "partly": [], "rebuilt": []}
    n_bundles = 0

    def add(left: int, right: int, bundle: int) -> int:
        lines.append(LevelLine(left, right, bundle))
        return len(lines) - 1

    for left, together in groupby(structure.whole, key=lambda line: line[0]):
        for _, right in together:
            spans["whole"].append(_Span(left, right, True, False, add(left, right, n_bundles)))
        n_bundles += 1
    for parent, together in groupby(sorted(structure.rebuilds), key=lambda line: line[0]):
        for _, child in together:
            left, right = group_of[parent], group_of[child]
            line = None if left == right else add(left, right, n_bundles)
            spans["rebuilt"].append(_Span(left, right, True, False, line, parent, child))
        n_bundles += 1
    for one, other, both in structure.partly:
        is_back = structure.levels[other] < structure.levels[one]
        left, right = (other, one) if is_back else (one, other)
        line = (
            None
            if structure.levels[one] == structure.levels[other]
            else add(left, right, n_bundles)
        )
        spans["partly"].append(_Span(left, right, both or not is_back, both or is_back, line))
        n_bundles += 1
    return lines, spans


class _Places:
    """Where boxes and frames are, and the paths of lines between them."""

    def __init__(
        self, structure: Skeleton, heights: list[int], layout: Layout, with_arcs: set[int]
    ) -> None:
        frame_widths = [
            BOX_WIDTH + 2 * _FRAME_SIDE + (_MAX_ARC if at in with_arcs else 0)
            for at in range(len(structure.groups))
        ]
        widths = [BOX_WIDTH] * (max(structure.levels) + 1)
        for at, (group, level) in enumerate(zip(structure.groups, structure.levels, strict=True)):
            if len(group) > 1:
                widths[level] = max(widths[level], frame_widths[at])
        self._levels, self._layout = structure.levels, layout
        self._starts = [_MARGIN]
        for width in widths:
            self._starts.append(self._starts[-1] + width + _COLUMN_GAP)
        self._ends = [start + width for start, width in zip(self._starts, widths, strict=False)]
        # Arcs between groups of the last level need some space to their right.
        self.width = self._ends[-1] + (_MAX_ARC if structure.partly else 0) + _MARGIN
        self.frames: list[Frame] = []
        self.corner: dict[int, tuple[int, int]] = {}
        self._group_end: list[int] = []
        self._group_middle = [middle + _MARGIN for middle in layout.middles]
        for at, (group, level) in enumerate(zip(structure.groups, structure.levels, strict=True)):
            x, y = self._starts[level], self._group_middle[at] - heights[at] // 2
            if len(group) == 1:
                self.corner[group[0]] = x, y
                self._group_end.append(x + BOX_WIDTH)
                continue
            self.frames.append(Frame(x, y, frame_widths[at], heights[at]))
            self._group_end.append(x + frame_widths[at])
            for row, table in enumerate(group):
                down = y + _FRAME_TOP + row * (BOX_HEIGHT + _FRAME_INNER)
                self.corner[table] = x + _FRAME_SIDE, down

    def between(self, span: _Span) -> tuple[str, str]:
        """Return the path of a line and of its arrow heads."""
        if span.parent >= 0:
            x, y = self.corner[span.parent]
            x, y = x + BOX_WIDTH, y + BOX_HEIGHT // 2
            end_x, end_y = self.corner[span.child]
            end_y += BOX_HEIGHT // 2
            arc_x = end_x + BOX_WIDTH
        else:
            x, y = self._group_end[span.left], self._group_middle[span.left]
            end_x = self._starts[self._levels[span.right]]
            end_y = self._group_middle[span.right]
            arc_x = self._group_end[span.right]
        if span.line is None:
            return self._arc(span, (x, y), (arc_x, end_y))
        heads = (arrow_head(end_x, end_y, 1) if span.to_right else "") + (
            arrow_head(x, y, -1) if span.to_left else ""
        )
        path = [f"M{x} {y}"]
        level = self._levels[span.left]
        if x < self._ends[level]:
            x = self._ends[level]
            path.append(f"H{x}")
        for waypoint in self._layout.waypoints[span.line]:
            level += 1
            path.append(curve(x, y, self._starts[level], waypoint + _MARGIN))
            x, y = self._ends[level], waypoint + _MARGIN
            path.append(f"H{x}")
        start = self._starts[self._levels[span.right]]
        path.append(curve(x, y, start, end_y))
        if start < end_x:
            path.append(f"H{end_x}")
        return "".join(path), heads

    def _arc(self, span: _Span, start: tuple[int, int], end: tuple[int, int]) -> tuple[str, str]:
        rows = abs(end[1] - start[1]) // (BOX_HEIGHT + _FRAME_INNER)
        out = max(start[0], end[0]) + min(_MAX_ARC, _ARC + _ARC_STEP * rows)
        path = f"M{start[0]} {start[1]}C{out} {start[1]} {out} {end[1]} {end[0]} {end[1]}"
        heads = (arrow_head(*end, -1) if span.to_right else "") + (
            arrow_head(*start, -1) if span.to_left else ""
        )
        return path, heads


def _group_height(n_tables: int) -> int:
    if n_tables == 1:
        return BOX_HEIGHT
    return _FRAME_TOP + n_tables * (BOX_HEIGHT + _FRAME_INNER)


def curve(x: int, y: int, end_x: int, end_y: int) -> str:
    """Return the part of a path that leads level out of one point and level into another."""
    half = (end_x - x) // 2
    return f"C{x + half} {y} {end_x - half} {end_y} {end_x} {end_y}"


def arrow_head(x: int, y: int, direction: int) -> str:
    """Return an arrow head that points to the right (1) or left (-1)."""
    back = x - direction * _HEAD
    return f"M{x} {y}L{back} {y - _HEAD // 2}V{y + _HEAD // 2}Z"


def _safe_ends(name: str) -> str:
    """Return the two ends of a long name, so that the time does not grow with its length."""
    half = 5 * NAME_CELLS
    return f"{plain(name[:half], half)}…{plain(name[-half:], half)}"


def _cells(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
