"""Drawings of plans of purchases, in whole pixels for an SVG: joins of tables, and prices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from pexeso.results.pages.layered_layout import NAME_CELLS, LevelLine, layered_layout, short_name
from pexeso.results.pages.page import MAX_NAME, rendered
from pexeso.runtime.formatting import figure, plain

BOX_WIDTH = 224
# Columns in a box; how many more there are is written there.
MAX_COLUMNS = 12

_GAP, _MARGIN, _HEAD, _ROW = 26, 8, 48, 18
_CURVE, _LABEL = 44, 168
_ROLE_CELLS, _LABEL_CELLS = 20, 24

CHART_WIDTH, CHART_HEIGHT = 320, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 22, 44
_NEAR = 16


def path_drawing(plan: Mapping[str, Any], *, priced: bool) -> SimpleNamespace:
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
    boxes = [
        SimpleNamespace(
            x=x[at],
            y=middle[at] - heights[at] // 2,
            height=heights[at],
            label=short_name(name),
            name=name,
            note=_paid(columns[name], is_own=name in own_tables, priced=priced),
            is_own=name in own_tables,
            columns=lists[at],
        )
        for at, name in enumerate(names)
    ]
    drawn = [
        _line(join, (x[left] + BOX_WIDTH, middle[left]), (x[right], middle[right]))
        for join, left, right in (
            (join, number[join["left"]], number[join["right"]]) for join in joins
        )
    ]
    width, height = max(x) + BOX_WIDTH + _MARGIN, layout.height + 2 * _MARGIN
    return SimpleNamespace(width=width, height=height, boxes=boxes, lines=drawn)


def _columns(
    table: str, names: Sequence[str], roles: Mapping[tuple[str, str], str]
) -> list[dict[str, str]]:
    """Return the first columns of a table, with what the request says of each ("" for a key)."""
    # What is asked for comes first, so that it is never among those left out.
    ordered = sorted(names, key=lambda name: ((table, name) not in roles, name))
    shown = []
    for name in ordered[:MAX_COLUMNS]:
        role = roles.get((table, name), "")
        label = short_name(name, _ROLE_CELLS if role else NAME_CELLS)
        shown.append({"label": label, "name": name, "role": role})
    if n_more := len(names) - len(shown):
        more = {"label": f"and {n_more:,} more", "name": f"{n_more:,} more columns", "role": ""}
        shown.append(more)
    return shown


def _paid(table: Mapping[str, Any], *, is_own: bool, priced: bool) -> str:
    if is_own:
        return "yours"
    return f"price {table['price']:,.6g}" if priced else "of the lake"


def _line(join: Mapping[str, Any], start: tuple[int, int], end: tuple[int, int]) -> Any:
    (x, y), (end_x, end_y) = start, end
    turn, half = end_x - _LABEL, (end_x - _LABEL - x) // 2
    path = f"M{x} {y}C{x + half} {y} {turn - half} {end_y} {turn} {end_y}H{end_x}"
    pairs = list(zip(join["left_columns"], join["right_columns"], strict=True))
    text = ", ".join(one if one == other else f"{one} = {other}" for one, other in pairs)
    note = f"{join['relation']}, weight {join['informativeness']:.3f}"
    return SimpleNamespace(
        path=path,
        x=turn + _LABEL // 2,
        y=end_y,
        label=short_name(text, _LABEL_CELLS),
        note=note,
        name=text,
    )


def price_chart(
    plans: Sequence[Mapping[str, Any]], budget: float | None, unit: str
) -> SimpleNamespace | None:
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

    points: list[SimpleNamespace] = []
    for number, plan in enumerate(plans, 1):
        x, y = x_of(plan["price"]), y_of(plan["correlation"])
        is_near = any(
            abs(point.x - x) < _NEAR and abs(point.label_y - (y - 9)) < _NEAR for point in points
        )
        text = f"Plan {number}: {figure(plan['correlation'])} {unit}, price {plan['price']:,.6g}"
        label_y = y + 18 if is_near else y - 9
        points.append(SimpleNamespace(number=number, x=x, y=y, label_y=label_y, said=text))
    return SimpleNamespace(
        points=points,
        x_ticks=[(x_of(step), f"{step:,.6g}") for step in x_steps],
        y_ticks=[(y_of(step), f"{step:,.6g}") for step in y_steps],
        left=_LEFT,
        right=right,
        top=_TOP,
        bottom=bottom,
        budget_x=x_of(budget) if budget is not None and budget <= x_steps[-1] else None,
    )


def _steps(largest: float) -> list[float]:
    """Return round numbers from 0 to at least `largest`, three to six of them."""
    if largest <= 0:
        return [0.0, 1.0]
    scale = 10.0 ** math.floor(math.log10(largest / 4))
    step = next(scale * factor for factor in (1, 2, 5, 10) if 4 * scale * factor >= largest)
    return [step * number for number in range(math.ceil(largest / step - 1e-9) + 1)]


# Plans shown in full; the others are counted.
MAX_PLANS = 50

# Longest statement shown, in characters.
MAX_STATEMENT = 20_000

BEST_SEEN = {
    "price": "The least price of a plan that keeps all other bounds",
    "informativeness": "The least informativeness of a plan that keeps all other bounds",
    "quality": "The highest quality of a plan that keeps all other bounds",
    "tables": "The fewest tables of a plan that keeps all other bounds",
    "fan_out": "The least rows of one key of a plan that keeps all other bounds",
}


def acquisition_page(report: Mapping[str, Any]) -> str:
    return rendered("acquisition.html", acquisition_shown(report))


def acquisition_shown(report: Mapping[str, Any]) -> dict[str, Any]:
    plans, options = report["plans"][:MAX_PLANS], report["options"]
    priced = options.get("prices") != "free"
    return {
        "title": _title(report["query"]),
        "query": report["query"],
        "options": options,
        "unit": report["unit"],
        "stats": report["stats"],
        "reason": report.get("reason"),
        "best_seen": best_seen_lines(report.get("best_seen", {})),
        "cards": [
            {**plan, "number": number, "drawing": path_drawing(plan, priced=priced)}
            for number, plan in enumerate(plans, 1)
        ],
        "n_more": report["n_more"] + len(report["plans"]) - len(plans),
        "chart": price_chart(plans, options.get("budget"), report["unit"]) if priced else None,
        "chart_width": CHART_WIDTH,
        "chart_height": CHART_HEIGHT,
        "box_width": BOX_WIDTH,
        "priced": priced,
        "amount": _amount,
        "statement": lambda text: plain(text, MAX_STATEMENT),
        "described": described,
    }


def best_seen_lines(best_seen: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return what the bounds would have to be for a plan, each with its number."""
    seen = [(text, best_seen.get(name)) for name, text in BEST_SEEN.items()]
    return [(text, f"{number:.6g}") for text, number in seen if number is not None]


def acquisition_table(report: Mapping[str, Any]) -> str:
    shown = {"report": report, "most": 20, "amount": _amount}
    return rendered("acquisition_notebook.html", shown)


def described(drawing: SimpleNamespace) -> str:
    if not drawing.lines:
        return f"One table, {plain(drawing.boxes[0].name, MAX_NAME)}."
    joined = "; ".join(
        f"{plain(box.name, MAX_NAME)} by {plain(line.name, MAX_NAME)}"
        for box, line in zip(drawing.boxes[1:], drawing.lines, strict=True)
    )
    return f"From {plain(drawing.boxes[0].name, MAX_NAME)} are joined: {joined}."


def _title(query: Mapping[str, Any]) -> str:
    have = ", ".join(query["have"])
    if not have:
        return plain(f"Ways to get {', '.join(query['want'])}", MAX_NAME)
    return plain(f"Columns that explain {have}", MAX_NAME)


def _amount(number: float) -> str:
    return f"{number:,.6g}"
