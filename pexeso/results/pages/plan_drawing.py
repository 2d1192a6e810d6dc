"""Drawings of plans of purchases, in whole pixels for an SVG: joins of tables, and prices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pexeso.results.pages.containment_drawing import NAME_CELLS, short_name
from pexeso.results.pages.layered_layout import LevelLine, layered_layout
from pexeso.runtime.formatting import figure

BOX_WIDTH = 224
MAX_COLUMNS = 12
"""Columns in a box; how many more there are is told there."""

_GAP, _MARGIN, _HEAD, _ROW = 26, 8, 48, 18
_CURVE, _LABEL = 44, 168
_ROLE_CELLS, _LABEL_CELLS = 20, 24

CHART_WIDTH, CHART_HEIGHT = 320, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 22, 44
_NEAR = 16


@dataclass(frozen=True)
class BoxColumn:
    """A line in the box of a table: a column, and what the request says of it ("" for a key)."""

    label: str
    name: str
    role: str


@dataclass(frozen=True)
class TableBox:
    """A table: its corner, height, name, price in words, and the columns that a plan has of it."""

    x: int
    y: int
    height: int
    label: str
    name: str
    note: str
    is_own: bool
    columns: tuple[BoxColumn, ...]


@dataclass(frozen=True)
class JoinLine:
    """A join: the path of its line, and where and what is written above and below it."""

    path: str
    x: int
    y: int
    label: str
    note: str
    name: str


@dataclass(frozen=True)
class PathDrawing:
    """The tables of a plan and their joins, the first table at the left."""

    width: int
    height: int
    boxes: tuple[TableBox, ...]
    lines: tuple[JoinLine, ...]


def path_drawing(plan: Mapping[str, Any], *, priced: bool) -> PathDrawing:
    """Draw a plan: each table right of the one that it is joined to."""
    joins = plan["path"]
    own_tables = {table["table"] for table in plan["own_tables"]}
    columns = {table["table"]: table for table in (*plan["own_tables"], *plan["tables"])}
    first = joins[0]["left"] if joins else next(iter(columns))
    names = [first, *(join["right"] for join in joins)]
    number = {name: at for at, name in enumerate(names)}
    levels = [0]
    for join in joins:
        levels.append(levels[number[join["left"]]] + 1)
    role = {(column["table"], column["column"]): "wanted" for column in plan["want"]}
    role |= {(column["table"], column["column"]): "explained" for column in plan["have"]}
    lists = [_columns(name, columns[name]["columns"], role) for name in names]
    heights = [_HEAD + _ROW * len(box_columns) + _ROW % 2 for box_columns in lists]
    lines = [
        LevelLine(number[join["left"]], number[join["right"]], at) for at, join in enumerate(joins)
    ]
    layout = layered_layout(levels, heights, lines, gap=_GAP, line_gap=_GAP)
    x = [_MARGIN + level * (BOX_WIDTH + _CURVE + _LABEL) for level in levels]
    middle = [y + _MARGIN for y in layout.middles]
    boxes = tuple(
        TableBox(
            x[at],
            middle[at] - heights[at] // 2,
            heights[at],
            short_name(name),
            name,
            _paid(columns[name], is_own=name in own_tables, priced=priced),
            name in own_tables,
            lists[at],
        )
        for at, name in enumerate(names)
    )
    drawn = tuple(
        _line(join, (x[left] + BOX_WIDTH, middle[left]), (x[right], middle[right]))
        for join, left, right in (
            (join, number[join["left"]], number[join["right"]]) for join in joins
        )
    )
    width = max(x) + BOX_WIDTH + _MARGIN
    return PathDrawing(width, layout.height + 2 * _MARGIN, boxes, drawn)


def _columns(
    table: str, names: Sequence[str], role: Mapping[tuple[str, str], str]
) -> tuple[BoxColumn, ...]:
    # What is asked for comes first, so that it is never among those left out.
    ordered = sorted(names, key=lambda name: ((table, name) not in role, name))
    shown = [
        BoxColumn(short_name(name, _ROLE_CELLS if column_role else NAME_CELLS), name, column_role)
        for name, column_role in (
            (name, role.get((table, name), "")) for name in ordered[:MAX_COLUMNS]
        )
    ]
    n_more = len(names) - len(shown)
    if n_more:
        shown.append(BoxColumn(f"and {n_more:,} more", f"{n_more:,} more columns", ""))
    return tuple(shown)


def _paid(table: Mapping[str, Any], *, is_own: bool, priced: bool) -> str:
    if is_own:
        return "yours"
    return f"price {table['price']:,.6g}" if priced else "of the lake"


def _line(join: Mapping[str, Any], start: tuple[int, int], end: tuple[int, int]) -> JoinLine:
    (x, y), (end_x, end_y) = start, end
    turn, half = end_x - _LABEL, (end_x - _LABEL - x) // 2
    path = f"M{x} {y}C{x + half} {y} {turn - half} {end_y} {turn} {end_y}H{end_x}"
    pairs = list(zip(join["left_columns"], join["right_columns"], strict=True))
    text = ", ".join(one if one == other else f"{one} = {other}" for one, other in pairs)
    note = f"{join['relation']}, weight {join['informativeness']:.3f}"
    return JoinLine(path, turn + _LABEL // 2, end_y, short_name(text, _LABEL_CELLS), note, text)


@dataclass(frozen=True)
class ChartPoint:
    """A plan in the chart: its number, place, and where its number is written."""

    number: int
    x: int
    y: int
    label_y: int
    said: str


@dataclass(frozen=True)
class PriceChart:
    """Prices against correlations: points, and ticks with their places and labels."""

    points: tuple[ChartPoint, ...]
    x_ticks: tuple[tuple[int, str], ...]
    y_ticks: tuple[tuple[int, str], ...]
    left: int
    right: int
    top: int
    bottom: int
    budget_x: int | None


def price_chart(
    plans: Sequence[Mapping[str, Any]], budget: float | None, unit: str
) -> PriceChart | None:
    """Draw the correlation of plans over their price; None where all cost the same."""
    prices = [plan["price"] for plan in plans]
    if len(set(prices)) < 2:
        return None
    x_steps = _steps(max(prices))
    y_steps = _steps(max(plan["correlation"] for plan in plans))
    right, bottom = CHART_WIDTH - _RIGHT, CHART_HEIGHT - _BOTTOM

    def x_of(price: float) -> int:
        return _LEFT + round((right - _LEFT) * price / x_steps[-1])

    def y_of(correlation: float) -> int:
        return bottom - round((bottom - _TOP) * correlation / y_steps[-1])

    points: list[ChartPoint] = []
    for number, plan in enumerate(plans, 1):
        x, y = x_of(plan["price"]), y_of(plan["correlation"])
        is_near = any(
            abs(point.x - x) < _NEAR and abs(point.label_y - (y - 9)) < _NEAR for point in points
        )
        text = f"Plan {number}: {figure(plan['correlation'])} {unit}, price {plan['price']:,.6g}"
        points.append(ChartPoint(number, x, y, y + 18 if is_near else y - 9, text))
    return PriceChart(
        tuple(points),
        tuple((x_of(step), f"{step:,.6g}") for step in x_steps),
        tuple((y_of(step), f"{step:,.6g}") for step in y_steps),
        _LEFT,
        right,
        _TOP,
        bottom,
        x_of(budget) if budget is not None and budget <= x_steps[-1] else None,
    )


def _steps(largest: float) -> list[float]:
    """Return round numbers from 0 to at least `largest`, three to six of them.

    Examples
    --------
    >>> _steps(7.3), _steps(0.0)
    ([0.0, 2.0, 4.0, 6.0, 8.0], [0.0, 1.0])
    """
    if largest <= 0:
        return [0.0, 1.0]
    scale = 10.0 ** math.floor(math.log10(largest / 4))
    step = next(scale * factor for factor in (1, 2, 5, 10) if 4 * scale * factor >= largest)
    return [step * number for number in range(math.ceil(largest / step - 1e-9) + 1)]
