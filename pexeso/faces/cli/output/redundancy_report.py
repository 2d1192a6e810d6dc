"""Contained tables and the plan of what can go, laid out for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pexeso.faces.cli.output.output import MAX_NAME, human_bytes, plain, table_lines
from pexeso.runtime.formatting import percent
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.redundancy.plans.redundancy import Redundancy

MAX_LINES = 20
"""Of pairs and of deletions; JSON has all."""


def redundancy_lines(redundancy: Redundancy) -> list[str]:
    """Lay out what was found and what can go."""
    lines = [_summary(redundancy)]
    lines += _contained(redundancy)
    lines += _deletions(redundancy)
    lines += [
        f"{plain(table, MAX_NAME)} stays: {plain(reason, MAX_NAME)}"
        for table, reason in redundancy.refuted.items()
    ]
    return lines


def stages_line(redundancy: Redundancy) -> str:
    """Tell what each stage left, and what it took."""
    parts = [
        f"{stage.name} {stage.seconds:.1f} s"
        + (f" ({stage.edges:,})" if stage.name != "read" else "")
        for stage in redundancy.stages
    ]
    return f"Stages, with the pairs that each left, and the tables of the plan: {', '.join(parts)}"


def _summary(redundancy: Redundancy) -> str:
    whole = {edge.child for edge in redundancy.edges if edge.containment == 1.0}
    tables = len(redundancy.containments.tables)
    if not whole:
        return f"None of {many(tables, 'table')} is contained whole in another."
    plan = redundancy.plan
    lake = sum(table.n_bytes for table in redundancy.containments.tables)
    freed = sum(deletion.bytes for deletion in plan.delete)
    text = (
        f"{len(whole):,} of {many(tables, 'table')} "
        f"{'is' if len(whole) == 1 else 'are'} contained whole in another; "
    )
    if not plan.delete:
        return f"{text}none can go at less cost than keeping it."
    saved = (plan.keep_all_cost - plan.cost) / plan.keep_all_cost  # above 0: tables go that cost
    share = f" ({percent(freed / lake)} of {human_bytes(lake)})" if lake else ""
    best = "" if plan.optimal else f"; a better plan may save {percent(plan.gap or 0)} more"
    return (
        f"{text}{len(plan.delete):,} can go: {human_bytes(freed)}{share}, which saves "
        f"{percent(saved)} of what keeping all costs{best}."
    )


def _contained(redundancy: Redundancy) -> list[str]:
    if not redundancy.edges:
        return []
    equal = {(edge.parent, edge.child) for edge in redundancy.edges}
    rows = []
    for edge in redundancy.edges:
        both = (edge.child, edge.parent) in equal and edge.containment == 1.0
        if both and edge.child < edge.parent:
            continue  # told from the other side
        what = "has the rows of" if both else "is in" if edge.containment == 1.0 else "is partly in"
        rows.append((edge.child, what, edge.parent, percent(edge.containment), f"{edge.rows:,}"))
    names = ("table", "", "table", "contained", "rows")
    lines = ["", *table_lines(names, rows[:MAX_LINES], "<<<>>", limit=MAX_NAME)]
    if len(rows) > MAX_LINES:
        lines.append(f"and {many(len(rows) - MAX_LINES, 'more pair')} (--json lists all)")
    return lines


def _deletions(redundancy: Redundancy) -> list[str]:
    deletions = redundancy.plan.delete
    if not deletions:
        return []
    rows = [
        (
            deletion.table,
            human_bytes(deletion.bytes),
            deletion.parent,
            "" if deletion.seconds is None else f"{deletion.seconds:.1f} s",
            f"{len(deletion.derived):,}" if deletion.derived else "",
            deletion.sql,
        )
        for deletion in sorted(deletions, key=lambda deletion: (-deletion.bytes, deletion.table))
    ]
    names = ("can go", "size", "rebuilt from", "in about", "holds tables", "statement")
    lines = ["", *table_lines(names, rows[:MAX_LINES], "<><>><", limit=MAX_NAME)]
    if len(rows) > MAX_LINES:
        lines.append(f"and {many(len(rows) - MAX_LINES, 'more table')} (--json lists all)")
    return lines
