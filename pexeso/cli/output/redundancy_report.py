"""Contained tables and the plan of what can go, laid out for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pexeso.cli.output.output import MAX_NAME, human_bytes, plain, table_lines
from pexeso.runtime.formatting import percent
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.cleanup.redundancy import Redundancy

MAX_LINES = 20
"""Of pairs and of deletions; JSON has all."""


def redundancy_lines(found: Redundancy) -> list[str]:
    """Lay out what was found and what can go."""
    lines = [_summary(found)]
    lines += _contained(found)
    lines += _deletions(found)
    lines += [
        f"{plain(table, MAX_NAME)} stays: {plain(reason, MAX_NAME)}"
        for table, reason in found.refuted.items()
    ]
    return lines


def stages_line(found: Redundancy) -> str:
    """Tell what each stage left, and what it took."""
    parts = [
        f"{each.name} {each.seconds:.1f} s" + (f" ({each.edges:,})" if each.name != "read" else "")
        for each in found.stages
    ]
    return f"Stages, with the pairs that each left, and the tables of the plan: {', '.join(parts)}"


def _summary(found: Redundancy) -> str:
    whole = {each.child for each in found.edges if each.containment == 1.0}
    tables = len(found.found.tables)
    if not whole:
        return f"None of {many(tables, 'table')} is contained whole in another."
    plan = found.plan
    lake = sum(each.n_bytes for each in found.found.tables)
    freed = sum(each.bytes for each in plan.delete)
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


def _contained(found: Redundancy) -> list[str]:
    if not found.edges:
        return []
    equal = {(each.parent, each.child) for each in found.edges}
    rows = []
    for each in found.edges:
        both = (each.child, each.parent) in equal and each.containment == 1.0
        if both and each.child < each.parent:
            continue  # told from the other side
        what = "has the rows of" if both else "is in" if each.containment == 1.0 else "is partly in"
        rows.append((each.child, what, each.parent, percent(each.containment), f"{each.rows:,}"))
    names = ("table", "", "table", "contained", "rows")
    lines = ["", *table_lines(names, rows[:MAX_LINES], "<<<>>", most=MAX_NAME)]
    if len(rows) > MAX_LINES:
        lines.append(f"and {many(len(rows) - MAX_LINES, 'more pair')} (--json lists all)")
    return lines


def _deletions(found: Redundancy) -> list[str]:
    deletions = found.plan.delete
    if not deletions:
        return []
    rows = [
        (
            each.table,
            human_bytes(each.bytes),
            each.parent,
            "" if each.seconds is None else f"{each.seconds:.1f} s",
            f"{len(each.derived):,}" if each.derived else "",
            each.sql,
        )
        for each in sorted(deletions, key=lambda each: (-each.bytes, each.table))
    ]
    names = ("can go", "size", "rebuilt from", "in about", "holds tables", "statement")
    lines = ["", *table_lines(names, rows[:MAX_LINES], "<><>><", most=MAX_NAME)]
    if len(rows) > MAX_LINES:
        lines.append(f"and {many(len(rows) - MAX_LINES, 'more table')} (--json lists all)")
    return lines
