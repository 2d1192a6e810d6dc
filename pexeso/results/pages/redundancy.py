"""The page of contained tables: what can go, what holds what as a drawing, and all of it in words.

It is one file that runs and loads nothing; names and statements are texts that the templates
escape. Of each connected part of the graph there is a drawing. Tables that hold each other share a
frame. Lines that follow from others, as every table holds what is in the tables that it holds, are
left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

import numpy as np

from pexeso.results.pages.layered_layout import (
    Columns,
    Layout,
    LevelLine,
    arc,
    arrow_head,
    layered_layout,
    short_name,
)
from pexeso.results.pages.page import MAX_NAME, rendered
from pexeso.runtime.compiled import compiled
from pexeso.runtime.formatting import many, plain

# Rows of a table of the page; what is left out is counted there.
MAX_ROWS = 1000

# Names of tables that a table holds, in the plan.
MAX_DERIVED = 5

# Longest statement shown, in characters.
MAX_STATEMENT = 5000


def redundancy_page(report: Mapping[str, Any], *, lake: str) -> str:
    """Return the page of the contained tables of a lake, and of the plan of those that can go.

    Of connected tables the largest 60 are drawn, in 20 drawings at most, and lists have 1,000
    rows at most; the page says what is left out.
    """
    return rendered("redundancy.html", redundancy_shown(report, lake=lake))


def redundancy_shown(report: Mapping[str, Any], *, lake: str) -> dict[str, Any]:
    graph = lake_graph(report)
    parts, n_parts = connected_parts(graph)
    drawings = [drawing_of(graph, part, number) for number, part in enumerate(parts, 1)]
    deletions = sorted(
        report["plan"]["delete"], key=lambda deletion: (-deletion["bytes"], deletion["table"])
    )
    return {
        "title": f"Redundant tables of {plain(lake, MAX_NAME)}",
        "summary": _summary(report),
        "deletions": _listed(deletions),
        "drawings": drawings,
        "n_parts": n_parts,
        "n_alone": len(graph.names) - len({*graph.parents.tolist(), *graph.children.tolist()}),
        "pairs": _listed(related(sorted(report["edges"], key=itemgetter("child", "parent")))),
        "tables": _listed(sorted(report["tables"], key=lambda table: table["name"])),
        "parent_of": {deletion["table"]: deletion["parent"] for deletion in deletions},
        "stages": report["stages"],
        "left_out": _listed(report["left_out"]),
        "refuted": _listed(report["refuted"]),
        "max_derived": MAX_DERIVED,
        "max_tables": MAX_TABLES,
        "box_width": BOX_WIDTH,
        "box_height": BOX_HEIGHT,
        "statement": lambda text: plain(text, MAX_STATEMENT),
        "amount": _amount,
    }


def _summary(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers that come first: a share of nothing is None, as an unknown gap is."""
    plan = report["plan"]
    lake_bytes = sum(table["bytes"] for table in report["tables"])
    freed, cost, keep_all = plan["freed_bytes"], plan["cost"], plan["keep_all_cost"]
    return {
        "n_tables": len(report["tables"]),
        "n_contained": len(
            {edge["child"] for edge in report["edges"] if edge["containment"] == 1.0}
        ),
        "exact": all(edge["exact"] for edge in report["edges"]),
        "n_deleted": len(plan["delete"]),
        "lake_bytes": lake_bytes,
        "freed_bytes": freed,
        "cost": cost,
        "keep_all_cost": keep_all,
        "freed_share": freed / lake_bytes if lake_bytes else None,
        "saved_share": (keep_all - cost) / keep_all if keep_all else None,
        "optimal": plan["optimal"],
        "gap": plan["gap"],
        "verified": all(deletion["verified"] for deletion in plan["delete"]),
    }


def related(edges: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return pairs with what each is; one of two equal tables is listed once."""
    whole = {
        (edge["parent"], edge["child"]): edge["exact"]
        for edge in edges
        if edge["containment"] == 1.0
    }
    pairs = []
    for edge in edges:
        parent, child = edge["parent"], edge["child"]
        is_whole = (parent, child) in whole
        is_equal = is_whole and (child, parent) in whole
        if is_equal and child < parent:
            continue
        relation = "has the rows of" if is_equal else "is in" if is_whole else "is partly in"
        if is_whole and not (edge["exact"] and whole.get((child, parent), True)):
            relation = "may have the rows of" if is_equal else "may be in"
        pairs.append({**edge, "relation": relation})
    return pairs


def _listed(rows: Sequence[Any]) -> dict[str, Any]:
    first = rows[:MAX_ROWS]
    return {"rows": first, "total": len(rows), "n_more": len(rows) - len(first)}


def _amount(cost: float) -> str:
    return f"{cost:,.2f}" if cost >= 1 else f"{Decimal(f'{cost:.3g}'):f}"


loops = compiled("pexeso.runtime.loops")

# Tables of a drawing; of more connected tables the largest are drawn.
MAX_TABLES = 60

# The largest connected parts are drawn.
MAX_DRAWINGS = 20

# Lines of a drawing for tables that are partly contained.
MAX_PARTLY_CONTAINED = 100


@dataclass(frozen=True)
class LakeGraph:
    """The tables and pairs of a report as arrays."""

    names: list[str]  # Of all tables, sorted
    sizes: np.ndarray  # int64 (n,): bytes of each
    parents: np.ndarray  # int64 (e,): pairs of tables, by position in `names`
    children: np.ndarray
    containments: np.ndarray  # float64 (e,): which share of the child's rows the parent holds.
    # int64 (n,): the parent in the plan of each table that can go; -1 for one that stays.
    rebuilt_from: np.ndarray


@dataclass(frozen=True)
class Part:
    """Connected tables, `n_tables` of them, and those that are drawn, by name: int64 (m,)."""

    tables: np.ndarray
    n_tables: int


@dataclass(frozen=True)
class Skeleton:
    """The tables of a drawing in groups of equal ones, and the lines that say what holds what.

    Tables are numbered in the drawing, groups by their first tables. `n_implied` pairs of tables
    follow from what is drawn; `n_omitted` lines were too many.
    """

    groups: list[list[int]]
    levels: list[int]
    whole: list[tuple[int, int]]
    partly: list[tuple[int, int, bool]]
    rebuilds: list[tuple[int, int]]
    n_implied: int
    n_omitted: int


def lake_graph(report: Mapping[str, Any]) -> LakeGraph:
    edges, deletions = report["edges"], report["plan"]["delete"]
    size_of = {table["name"]: table["bytes"] for table in report["tables"]}
    pairs = {(edge["parent"], edge["child"]): edge["containment"] for edge in edges}
    pairs |= {(deletion["parent"], deletion["table"]): 1.0 for deletion in deletions}
    names = sorted({*size_of, *(name for pair in pairs for name in pair)})
    position = {name: at for at, name in enumerate(names)}
    rebuilt_from = np.full(len(names), -1, dtype=np.int64)
    for deletion in deletions:
        rebuilt_from[position[deletion["table"]]] = position[deletion["parent"]]
    ends = np.array(
        [(position[parent], position[child]) for parent, child in pairs], dtype=np.int64
    ).reshape(-1, 2)
    return LakeGraph(
        names,
        np.array([size_of.get(name, 0) for name in names], dtype=np.int64),
        ends[:, 0],
        ends[:, 1],
        np.array(list(pairs.values()), dtype=np.float64),
        rebuilt_from,
    )


def connected_parts(graph: LakeGraph) -> tuple[list[Part], int]:
    """Return the parts that are drawn, largest first, and how many there are in all.

    Tables that are in no pair are in no part.
    """
    if not len(graph.parents):
        return [], 0
    numbers = loops.components(len(graph.names), graph.parents, graph.children)
    counts = np.bincount(numbers)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 1]
    parts = []
    for number in order[:MAX_DRAWINGS].tolist():
        tables = np.flatnonzero(numbers == number)
        largest = np.lexsort((tables, -graph.sizes[tables]))[:MAX_TABLES]
        parts.append(Part(np.sort(tables[largest]), len(tables)))
    return parts, len(order)


def skeleton(graph: LakeGraph, part: Part) -> Skeleton:
    n = len(part.tables)
    number = np.full(len(graph.names), -1, dtype=np.int64)
    number[part.tables] = np.arange(n)
    drawn = (number[graph.parents] >= 0) & (number[graph.children] >= 0)
    parents, children = number[graph.parents[drawn]], number[graph.children[drawn]]
    containments = graph.containments[drawn]
    is_whole = containments == 1.0
    holds = np.zeros((n, n), dtype=bool)
    holds[parents[is_whole], children[is_whole]] = True
    group_of, groups = _groups(closure(holds))
    n_groups = len(groups)
    between = np.zeros((n_groups, n_groups), dtype=bool)
    between[group_of[parents[is_whole]], group_of[children[is_whole]]] = True
    np.fill_diagonal(between, False)
    reached = closure(between)
    reduced = reduction(between)
    shares = np.zeros((n_groups, n_groups))
    np.maximum.at(
        shares,
        (group_of[parents[~is_whole]], group_of[children[~is_whole]]),
        containments[~is_whole],
    )
    shares[reached | np.eye(n_groups, dtype=bool)] = 0.0
    some = shares > 0.0
    some &= ~(_product(reached, some))
    levels = _levels(between, some)
    rebuilds = [
        (int(number[parent]), child)
        for child, parent in enumerate(graph.rebuilt_from[part.tables].tolist())
        if parent >= 0 and number[parent] >= 0
    ]
    for parent, child in rebuilds:
        reduced[group_of[parent], group_of[child]] = False  # that line is drawn as the plan's
    partly = _partly(some, shares)
    shown = np.zeros((n, n), dtype=bool)
    shown[tuple(np.array(rebuilds, dtype=np.int64).reshape(-1, 2).T)] = True
    shown |= reduced[np.ix_(group_of, group_of)] | (group_of[:, None] == group_of[None, :])
    shown |= some[np.ix_(group_of, group_of)]
    return Skeleton(
        groups,
        levels,
        [(one, other) for one, other in np.argwhere(reduced).tolist()],
        partly[:MAX_PARTLY_CONTAINED],
        rebuilds,
        int((~shown[parents, children]).sum()),
        max(0, len(partly) - MAX_PARTLY_CONTAINED),
    )


def closure(holds: np.ndarray) -> np.ndarray:
    """Return which nodes are reached from which by one step or more."""
    while True:
        further = holds | _product(holds, holds)
        if (further == holds).all():
            return holds
        holds = further


def reduction(holds: np.ndarray) -> np.ndarray:
    """Return the edges of a graph without cycles that do not follow from other ones."""
    return holds & ~_product(holds, closure(holds))


def _product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the product of two relations; sums of at most 60 ones are exact in 32 bits."""
    return (one.astype(np.float32) @ other.astype(np.float32)) > 0.5


def _groups(reached: np.ndarray) -> tuple[np.ndarray, list[list[int]]]:
    equal = (reached & reached.T) | np.eye(len(reached), dtype=bool)
    first = equal.argmax(axis=1)
    leaders, group_of = np.unique(first, return_inverse=True)
    members: dict[int, list[int]] = defaultdict(list)
    for table, group in enumerate(group_of.tolist()):
        members[group].append(table)
    return group_of, [members[group] for group in range(len(leaders))]


def _levels(between: np.ndarray, some: np.ndarray) -> list[int]:
    """Return the longest path to each group; tables that partly hold each other bring no order."""
    reached = closure(between | some)
    steps = between | (some & ~reached.T)
    levels = np.zeros(len(steps), dtype=np.int64)
    while True:
        further = np.where(steps, levels[:, None] + 1, 0).max(axis=0, initial=0)
        if (further == levels).all():
            return levels.tolist()
        levels = further


def _partly(some: np.ndarray, shares: np.ndarray) -> list[tuple[int, int, bool]]:
    """Return lines for tables that are partly contained, the largest shares first."""
    both = some & some.T
    lines: list[tuple[int, int]] = [
        (one, other) for one, other in np.argwhere(some & ~np.tril(both)).tolist()
    ]
    ordered = sorted(lines, key=lambda line: (-max(shares[line], shares[line[::-1]]), line))
    return [(one, other, bool(both[one, other])) for one, other in ordered]


BOX_WIDTH, BOX_HEIGHT = 224, 44
_GAP, _LINE_GAP, _COLUMN_GAP, _MARGIN = 18, 14, 84, 8
_FRAME_TOP, _FRAME_SIDE, _FRAME_INNER = 24, 10, 10
_ARC, _ARC_STEP, _MAX_ARC = 14, 7, 42


def drawing_of(graph: LakeGraph, part: Part, number: int) -> SimpleNamespace:
    structure = skeleton(graph, part)
    heights = [
        BOX_HEIGHT if len(group) == 1 else _FRAME_TOP + len(group) * (BOX_HEIGHT + _FRAME_INNER)
        for group in structure.groups
    ]
    group_of = {table: at for at, group in enumerate(structure.groups) for table in group}
    level_lines, spans = _level_lines(structure, group_of)
    layout = layered_layout(structure.levels, heights, level_lines, gap=_GAP, line_gap=_LINE_GAP)
    with_arcs = {span.left for span in spans["rebuilt"] if span.line is None}
    geometry = _Places(structure, heights, layout, with_arcs)
    names = [graph.names[table] for table in part.tables.tolist()]
    sizes = graph.sizes[part.tables].tolist()
    removable = (graph.rebuilt_from[part.tables] >= 0).tolist()
    boxes = [
        {
            "x": geometry.corner[table][0],
            "y": geometry.corner[table][1],
            "label": short_name(name),
            "name": name,
            "goes": removable[table],
            "n_bytes": sizes[table],
        }
        for table, name in enumerate(names)
    ]
    leaders, lines = [names[group[0]] for group in structure.groups], []
    for kind in ("whole", "partly", "rebuilt"):
        for span in spans[kind]:
            path, heads = geometry.between(span)
            if span.parent >= 0:
                parent, child = names[span.parent], names[span.child]
            else:
                ends = leaders[span.left], leaders[span.right]
                parent, child = ends if span.to_right else ends[::-1]
            line = {"path": path, "heads": heads, "parent": parent, "child": child}
            lines.append({"kind": kind, "is_mutual": span.is_mutual, **line})
    largest = max(range(len(names)), key=lambda table: (sizes[table], -table))
    return SimpleNamespace(
        number=number,
        name=names[largest],
        n_tables=part.n_tables,
        width=geometry.width,
        height=layout.height + 2 * _MARGIN,
        boxes=boxes,
        frames=geometry.frames,
        lines=lines,
        said=_described(structure, sum(removable)),  # for those who cannot see it
        n_implied=structure.n_implied,
        n_omitted=structure.n_omitted,
    )


def _described(structure: Skeleton, n_removable: int) -> str:
    n_tables = sum(map(len, structure.groups))
    n_equal_groups = sum(len(group) > 1 for group in structure.groups)
    parts = [
        f"{n_tables:,} tables in {many(max(structure.levels) + 1, 'column')}, "
        "each table right of those that hold it",
        f"{many(n_removable, 'table')} can go",
        f"{many(len(structure.rebuilds), 'arrow')} of the plan",
    ]
    further = (
        (structure.whole, "arrow", "for other tables that hold all rows"),
        (structure.partly, "line", "for tables that hold some rows"),
    )
    parts += [f"{many(len(lines), noun)} {what}" for lines, noun, what in further if lines]
    if n_equal_groups:
        parts.append(f"{many(n_equal_groups, 'frame')} around tables of the same rows")
    return f"{'; '.join(parts)}. The lists of this page say the same in words."


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


def _level_lines(
    structure: Skeleton, group_of: Mapping[int, int]
) -> tuple[list[LevelLine], dict[str, list[_Span]]]:
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
    def __init__(
        self, structure: Skeleton, heights: list[int], layout: Layout, with_arcs: set[int]
    ) -> None:
        groups, levels = structure.groups, structure.levels
        frame_widths = [
            BOX_WIDTH + 2 * _FRAME_SIDE + (_MAX_ARC if at in with_arcs else 0)
            for at in range(len(groups))
        ]
        widths = [BOX_WIDTH] * (max(levels) + 1)
        for group, level, frame_width in zip(groups, levels, frame_widths, strict=True):
            if len(group) > 1:
                widths[level] = max(widths[level], frame_width)
        self._levels, self._columns = levels, Columns.of(_MARGIN, widths, _COLUMN_GAP)
        # Arcs between groups of the last level need some space to their right.
        self.width = self._columns.ends[-1] + (_MAX_ARC if structure.partly else 0) + _MARGIN
        self.frames: list[dict[str, int]] = []
        self.corner: dict[int, tuple[int, int]] = {}
        self._group_end: list[int] = []
        self._group_middle = [middle + _MARGIN for middle in layout.middles]
        self._waypoints = [[middle + _MARGIN for middle in line] for line in layout.waypoints]
        for at, (group, level) in enumerate(zip(groups, levels, strict=True)):
            x, y = self._columns.starts[level], self._group_middle[at] - heights[at] // 2
            if len(group) == 1:
                self.corner[group[0]] = x, y
                self._group_end.append(x + BOX_WIDTH)
                continue
            frame = {"width": frame_widths[at], "height": heights[at]}
            self.frames.append({"x": x, "y": y, **frame})
            self._group_end.append(x + frame_widths[at])
            for row, table in enumerate(group):
                down = y + _FRAME_TOP + row * (BOX_HEIGHT + _FRAME_INNER)
                self.corner[table] = x + _FRAME_SIDE, down

    def between(self, span: _Span) -> tuple[str, str]:
        if span.parent >= 0:
            (x, y), (end_x, end_y) = self.corner[span.parent], self.corner[span.child]
            x, arc_x = x + BOX_WIDTH, end_x + BOX_WIDTH
            y, end_y = y + BOX_HEIGHT // 2, end_y + BOX_HEIGHT // 2
        else:
            x, arc_x = self._group_end[span.left], self._group_end[span.right]
            y, end_y = self._group_middle[span.left], self._group_middle[span.right]
            end_x = self._columns.starts[self._levels[span.right]]
        if span.line is None:
            rows = abs(end_y - y) // (BOX_HEIGHT + _FRAME_INNER)
            out = max(x, arc_x) + min(_MAX_ARC, _ARC + _ARC_STEP * rows)
            path, end_x, towards = arc((x, y), (arc_x, end_y), out), arc_x, -1
        else:
            waypoints, level = self._waypoints[span.line], self._levels[span.left]
            path, towards = self._columns.path((x, y), (end_x, end_y), waypoints, level), 1
        heads = arrow_head(end_x, end_y, towards) if span.to_right else ""
        return path, heads + (arrow_head(x, y, -1) if span.to_left else "")
