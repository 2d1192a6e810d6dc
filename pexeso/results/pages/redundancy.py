"""The page of contained tables: what can go, what holds what as a drawing, and all of it in words.

It is one file that runs and loads nothing; names and statements are texts that the templates
escape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pexeso
from pexeso.results.pages.containment_drawing import BOX_HEIGHT, BOX_WIDTH, Drawing, drawing_of
from pexeso.results.pages.containment_graph import (
    MAX_TABLES,
    LakeGraph,
    connected_parts,
    lake_graph,
)
from pexeso.results.pages.page import MAX_NAME, environment
from pexeso.runtime.formatting import plain
from pexeso.runtime.shown import many

MAX_ROWS = 1000
"""Rows of a table of the page; what is left out is counted there."""

MAX_DERIVED = 5
"""Names of tables that a table holds, in the plan."""

MAX_STATEMENT = 5000
"""Longest statement shown, in characters."""


@dataclass(frozen=True)
class Listed:
    """The first rows of a list, and how many there are."""

    rows: Sequence[Any]
    total: int

    @property
    def n_more(self) -> int:
        """How many are not shown."""
        return self.total - len(self.rows)


@dataclass(frozen=True)
class Summary:
    """The numbers that stand first.

    Attributes
    ----------
    n_tables, n_contained, n_deleted : int
        Tables of the lake; contained whole in another; that can go.
    freed_share, saved_share : float or None
        None where there is nothing of which it would be a share.
    gap : float or None
        How much cheaper a plan could be as a share; None for unknown.
    """

    n_tables: int
    n_contained: int
    n_deleted: int
    lake_bytes: int
    freed_bytes: int
    cost: float
    keep_all_cost: float
    freed_share: float | None
    saved_share: float | None
    optimal: bool
    gap: float | None
    verified: bool


def redundancy_page(report: Mapping[str, Any], *, lake: str) -> str:
    """Return the page of the contained tables of a lake, and of the plan of those that can go.

    Returns
    -------
    str
        One HTML file. Of connected tables the largest 60 are drawn, in 20 drawings at most, and
        lists have 1,000 rows at most; the page says what is left out.
    """
    return (
        environment()
        .get_template("redundancy.html")
        .render(redundancy_shown(report, lake=lake), version=pexeso.__version__)
    )


def redundancy_shown(report: Mapping[str, Any], *, lake: str) -> dict[str, Any]:
    """Return what the template ``redundancy_body.html`` shows of a report, and a title."""
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
        "n_alone": _n_alone(graph),
        "pairs": _listed(_pairs(report["edges"])),
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
        "described": described,
    }


def described(drawing: Drawing) -> str:
    """Return what a drawing shows in a sentence or two, for those who cannot see it."""
    parts = [
        f"{len(drawing.boxes):,} tables in {many(drawing.n_levels, 'column')}, "
        "each table right of those that hold it",
        f"{many(sum(box.goes for box in drawing.boxes), 'table')} can go",
        f"{many(drawing.n_rebuilds, 'arrow')} of the plan",
    ]
    if drawing.n_whole:
        parts.append(f"{many(drawing.n_whole, 'arrow')} for other tables that hold all rows")
    if drawing.n_partly:
        parts.append(f"{many(drawing.n_partly, 'line')} for tables that hold some rows")
    if drawing.n_equal_groups:
        parts.append(f"{many(drawing.n_equal_groups, 'frame')} around tables of the same rows")
    return f"{'; '.join(parts)}. The lists of this page say the same in words."


def _summary(report: Mapping[str, Any]) -> Summary:
    plan = report["plan"]
    lake_bytes = sum(table["bytes"] for table in report["tables"])
    freed, cost, keep_all = plan["freed_bytes"], plan["cost"], plan["keep_all_cost"]
    return Summary(
        len(report["tables"]),
        len({edge["child"] for edge in report["edges"] if edge["containment"] == 1.0}),
        len(plan["delete"]),
        lake_bytes,
        freed,
        cost,
        keep_all,
        freed / lake_bytes if lake_bytes else None,
        (keep_all - cost) / keep_all if keep_all else None,
        plan["optimal"],
        plan["gap"],
        all(deletion["verified"] for deletion in plan["delete"]),
    )


def _pairs(edges: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return pairs with what each is; one of two equal tables is listed once."""
    whole = {(edge["parent"], edge["child"]) for edge in edges if edge["containment"] == 1.0}
    pairs = []
    for edge in sorted(edges, key=lambda edge: (edge["child"], edge["parent"])):
        parent, child = edge["parent"], edge["child"]
        is_whole = (parent, child) in whole
        is_equal = is_whole and (child, parent) in whole
        if is_equal and child < parent:
            continue
        relation = "has the rows of" if is_equal else "is in" if is_whole else "is partly in"
        pairs.append({**edge, "relation": relation})
    return pairs


def _n_alone(graph: LakeGraph) -> int:
    """Return how many tables are in no pair."""
    return len(graph.names) - len({*graph.parents.tolist(), *graph.children.tolist()})


def _listed(rows: Sequence[Any]) -> Listed:
    return Listed(rows[:MAX_ROWS], len(rows))


def _amount(cost: float) -> str:
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.3g}"
