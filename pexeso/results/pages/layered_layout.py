"""Layered drawing of a graph without cycles: order and heights of its nodes, in whole numbers.

The method is Sugiyama's: nodes have levels, lines that pass a level have a waypoint there, each
level is ordered by the mean position of neighbours, and heights follow from the order. Nothing is
computed in floating point, so that a drawing is the same on every machine.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from pexeso.runtime.formatting import cells_of, plain

# Letters of a name in a box, those of East Asia counted twice.
NAME_CELLS = 28

_HEAD = 9

# Rounds in which levels are ordered, each from left to right and back.
SWEEPS = 8

_ALIGNMENTS = 6
# Means are compared in these parts: a whole number of them for up to 16 neighbours.
_FRACTION = 720_720


@dataclass(frozen=True)
class LevelLine:
    left: int
    right: int
    bundle: int


@dataclass(frozen=True)
class Layout:
    middles: tuple[int, ...]
    waypoints: tuple[tuple[int, ...], ...]
    height: int


def layered_layout(
    levels: Sequence[int],
    heights: Sequence[int],
    lines: Sequence[LevelLine],
    *,
    gap: int,
    line_gap: int,
) -> Layout:
    """Place the nodes of a graph whose levels are known, so that few lines cross.

    The heights of nodes are even; nodes of a level keep the order given unless lines cross less
    otherwise. `gap` is between nodes of a level, `line_gap` between a node and a line that passes,
    or two lines.
    """
    level_of, height_of = list(levels), list(heights)
    waypoint_of: dict[tuple[int, int], int] = {}
    chains = []
    for line in lines:
        chain = [line.left]
        for level in range(levels[line.left] + 1, levels[line.right]):
            key = line.bundle, level
            if key not in waypoint_of:
                waypoint_of[key] = len(level_of)
                level_of.append(level)
                height_of.append(0)
            chain.append(waypoint_of[key])
        chains.append([*chain, line.right])
    before: list[list[int]] = [[] for _ in level_of]
    after: list[list[int]] = [[] for _ in level_of]
    for left, right in sorted({step for chain in chains for step in pairwise(chain)}):
        after[left].append(right)
        before[right].append(left)
    order: list[list[int]] = [[] for _ in range(max(level_of, default=-1) + 1)]
    for node, level in enumerate(level_of):
        order[level].append(node)
    order = _with_few_crossings(order, before, after)
    gaps = [[_gap(height_of, step, gap, line_gap) for step in pairwise(level)] for level in order]
    middle = _middles(order, before, after, height_of, gaps)
    top = min((middle[node] - height_of[node] // 2 for node in range(len(middle))), default=0)
    bottom = max((middle[node] + height_of[node] // 2 for node in range(len(middle))), default=0)
    return Layout(
        tuple(middle[node] - top for node in range(len(levels))),
        tuple(tuple(middle[node] - top for node in chain[1:-1]) for chain in chains),
        bottom - top,
    )


def crossings(order: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> int:
    n_crossings = 0
    for upper, lower in pairwise(order):
        position = {node: at for at, node in enumerate(lower)}
        passed: list[int] = []
        for node in upper:
            ends = [position[successor] for successor in after[node]]
            n_crossings += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return n_crossings


def _with_few_crossings(
    order: list[list[int]], before: list[list[int]], after: list[list[int]]
) -> list[list[int]]:
    best, fewest = order, crossings(order, after)
    for _ in range(SWEEPS):
        if not fewest:
            break
        order = _swept(order, before)
        order = _swept(order[::-1], after)[::-1]
        n_crossings = crossings(order, after)
        if n_crossings < fewest:
            best, fewest = order, n_crossings
    return best


def _swept(order: list[list[int]], neighbours: list[list[int]]) -> list[list[int]]:
    """Order each level by the means of the one before it; nodes without neighbours stay."""
    swept: list[list[int]] = []
    position: dict[int, int] = {}
    for level in order:
        keys = {}
        for at, node in enumerate(level):
            near = [position[neighbour] for neighbour in neighbours[node]]
            keys[node] = (sum(near) * _FRACTION // len(near) if near else at * _FRACTION, at)
        swept.append(sorted(level, key=keys.__getitem__))
        position |= {node: at for at, node in enumerate(swept[-1])}
    return swept


def _gap(height_of: list[int], step: tuple[int, int], gap: int, line_gap: int) -> int:
    one, other = (height_of[node] for node in step)
    return one // 2 + other // 2 + (gap if one and other else line_gap)


def _middles(
    order: list[list[int]],
    before: list[list[int]],
    after: list[list[int]],
    height_of: list[int],
    gaps: list[list[int]],
) -> list[int]:
    middle = [0] * len(height_of)
    for level, between in zip(order, gaps, strict=True):
        for node, at in zip(level, accumulate(between, initial=0), strict=False):
            middle[node] = at
    for round_ in range(_ALIGNMENTS):
        forward = round_ % 2 == 0
        neighbours = before if forward else after
        levels = list(zip(order, gaps, strict=True))
        for level, between in levels if forward else reversed(levels):
            targets = [
                sum(middle[neighbour] for neighbour in near) // len(near) if near else middle[node]
                for node, near in ((node, neighbours[node]) for node in level)
            ]
            for node, at in zip(level, _spread(targets, between), strict=True):
                middle[node] = at
    return middle


def _spread(targets: list[int], gaps: list[int]) -> list[int]:
    """Return positions in this order, at least `gaps` apart, near `targets`.

    Targets too near each other, or in the wrong order, are moved together (the method of
    adjacent violators).
    """
    offsets = list(accumulate(gaps, initial=0))
    blocks: list[tuple[int, int]] = []  # sums and numbers of places
    for target, offset in zip(targets, offsets, strict=False):
        total, n = target - offset, 1
        while blocks and blocks[-1][0] * n > total * blocks[-1][1]:
            more, n_more = blocks.pop()
            total, n = total + more, n + n_more
        blocks.append((total, n))
    positions = [total // n for total, n in blocks for _ in range(n)]
    return [position + offset for position, offset in zip(positions, offsets, strict=False)]


@dataclass(frozen=True)
class Columns:
    """The columns of boxes of a drawing, one a level: where each begins and ends."""

    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, left: int, widths: Sequence[int], gap: int) -> Columns:
        starts = list(accumulate((width + gap for width in widths), initial=left))
        return cls(starts, [start + width for start, width in zip(starts, widths, strict=False)])

    def path(
        self, start: tuple[int, int], end: tuple[int, int], waypoints: Iterable[int], level: int
    ) -> str:
        x, y = start
        path = [f"M{x} {y}"]
        if x < self.ends[level]:
            x = self.ends[level]
            path.append(f"H{x}")
        for waypoint in waypoints:
            level += 1
            path += [curve(x, y, self.starts[level], waypoint), f"H{self.ends[level]}"]
            x, y = self.ends[level], waypoint
        last = self.starts[level + 1]
        path.append(curve(x, y, last, end[1]))
        if last < end[0]:
            path.append(f"H{end[0]}")
        return "".join(path)


def curve(x: int, y: int, end_x: int, end_y: int) -> str:
    """Return the part of a path that leads level out of one point and level into another."""
    half = (end_x - x) // 2
    return f"C{x + half} {y} {end_x - half} {end_y} {end_x} {end_y}"


def arc(start: tuple[int, int], end: tuple[int, int], out: int) -> str:
    return f"M{start[0]} {start[1]}C{out} {start[1]} {out} {end[1]} {end[0]} {end[1]}"


def arrow_head(x: int, y: int, direction: int) -> str:
    """Return an arrow head that points to the right (1) or left (-1)."""
    back = x - direction * _HEAD
    return f"M{x} {y}L{back} {y - _HEAD // 2}V{y + _HEAD // 2}Z"


def short_name(name: str, max_cells: int = NAME_CELLS) -> str:
    """Return a name that fits a box: of a long one the middle is left out."""
    name = plain(name, 10 * NAME_CELLS) if len(name) <= 10 * NAME_CELLS else _safe_ends(name)
    cells = [cells_of(letter) for letter in name]
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


def _safe_ends(name: str) -> str:
    """Return the two ends of a long name, so that the time does not grow with its length."""
    half = 5 * NAME_CELLS
    return f"{plain(name[:half], half)}…{plain(name[-half:], half)}"
