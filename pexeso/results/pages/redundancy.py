"""The page of contained tables: what can go, what holds what as a drawing, and all of it in words.

It is one file that runs and loads nothing; names and statements are texts that the templates
escape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pexeso.results.pages.containment import (
    BOX_HEIGHT,
    BOX_WIDTH,
    MAX_TABLES,
    connected_parts,
    drawing_of,
    lake_graph,
)
from pexeso.results.pages.page import MAX_NAME, rendered
from pexeso.runtime.formatting import plain

MAX_ROWS = 1000
"""Rows of a table of the page; what is left out is counted there."""

MAX_DERIVED = 5
"""Names of tables that a table holds, in the plan."""

MAX_STATEMENT = 5000
"""Longest statement shown, in characters."""


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


def _listed(rows: Sequence[Any]) -> dict[str, Any]:
    first = rows[:MAX_ROWS]
    return {"rows": first, "total": len(rows), "n_more": len(rows) - len(first)}


def _amount(cost: float) -> str:
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.3g}"
