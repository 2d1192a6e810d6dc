"""``pexeso redundancy``: tables that are contained in others, and the plan of what can go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pexeso.faces.cli.errors import Failure
from pexeso.faces.cli.options import WithVerbs, command, path_argument, takes
from pexeso.faces.cli.output import (
    MAX_NAME,
    html_option,
    human_bytes,
    output_options,
    plain,
    require_page,
    stage_progress,
    table_lines,
    talk,
    warn,
    write_answer,
    write_page,
)
from pexeso.faces.service.redundancy import (
    ApplyPlanRequest,
    RedundancyRequest,
    UndoPlanRequest,
    VerifyPlanRequest,
)
from pexeso.faces.service.verbs import run
from pexeso.runtime.formatting import many, percent

if TYPE_CHECKING:
    from pexeso.redundancy.plan import Applied
    from pexeso.redundancy.search import Redundancy


# Of pairs and of deletions; JSON has all.
MAX_LINES = 20


def redundancy_lines(redundancy: Redundancy) -> list[str]:
    lines = [_summary(redundancy)]
    lines += _contained(redundancy)
    lines += _deletions(redundancy)
    lines += [
        f"{plain(table, MAX_NAME)} stays: {plain(reason, MAX_NAME)}"
        for table, reason in redundancy.refuted.items()
    ]
    return lines


def stages_line(redundancy: Redundancy) -> str:
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
    verb = "is" if len(whole) == 1 else "are"
    if not all(edge.exact for edge in redundancy.edges):
        verb = "may be"
    text = f"{len(whole):,} of {many(tables, 'table')} {verb} contained whole in another; "
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
    from pexeso.results.pages.redundancy import related

    if not redundancy.edges:
        return []
    rows = [
        (
            *(pair[name] for name in ("child", "relation", "parent")),
            percent(pair["containment"]),
            f"{pair['rows']:,}",
        )
        for pair in related(redundancy.rows())
    ]
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


@command("redundancy")
@path_argument("lake", metavar="INDEX|LAKE")
@html_option
@output_options("json")
@takes(
    RedundancyRequest, without=("row_count_gate", "case_sensitive", "sample_rows", "work_folder")
)
def find(request: RedundancyRequest, html: str | None, form: str | None) -> None:
    """Find tables that other tables contain, and plan which can go.

    \b
    Example:
      pexeso redundancy my_folder
      pexeso redundancy my_folder --plan plan.json
      pexeso redundancy huge_folder --method sampled
      pexeso redundancy apply plan.json --yes

    Compares all rows on the columns of the smaller table; the order of rows and columns does not
    matter. INDEX is an index with the part redundancy (pexeso index --include redundancy). LAKE is
    a folder of CSV, Parquet and JSON lines, or a table or database of Spark's catalog; a folder is
    read once, on Spark. A table can go if a statement rebuilds it from a table that stays, and that
    costs less than keeping it. This command moves and deletes nothing.

    --method sampled is for a folder that is too large to be read whole. It misses no contained
    table, and may list some that are not contained. Tables that can go are compared whole first.

    In Python: pexeso.find_redundancy(LAKE).
    """  # noqa: D301  click reads \b
    if html is not None:
        require_page(html, overwrite=request.overwrite)
    from pexeso.redundancy.search import STAGES

    with stage_progress(STAGES) as progress:
        result = run(request, progress=progress)
    write_answer(result, form, redundancy_lines)
    if form != "json":
        talk(stages_line(result))
    for omission in result.left_out[:_SHOWN]:
        warn(f"Left out: {plain(omission.table, MAX_NAME)}: {plain(omission.reason, MAX_NAME)}")
    if len(result.left_out) > _SHOWN:
        warn(f"Left out: {many(len(result.left_out) - _SHOWN, 'more table')} (--json lists all)")
    if request.plan is not None:
        n_tables = many(len(result.plan.delete), "table")
        talk(f"Plan: '{request.plan}', which sets {n_tables} aside when it is applied")
    if html is not None:
        from pexeso.results.pages.redundancy import redundancy_page

        page = redundancy_page(result.to_dict(), lake=result.containments.lake)
        write_page([page], html, overwrite=request.overwrite)


_SHOWN = 10


@command("verify")
@path_argument("plan", metavar="PLAN")
@output_options("json")
@takes(VerifyPlanRequest)
def verify(request: VerifyPlanRequest, form: str | None) -> None:
    """Compare a plan with the lake as it is now.

    \b
    Example:
      pexeso redundancy verify plan.json

    Compares the tables and their parents with those that the plan was made for, then runs each
    statement and compares all its rows with those of the table. The exit code is 1 if a table
    differs from the plan.

    In Python: pexeso.verify_plan(PLAN).
    """  # noqa: D301  click reads \b
    check = run(request)
    ok = f"ok: {many(len(check.right), 'table')}"
    write_answer(check, form, lambda check: [ok, *_refusals(check.wrong)])
    if check.wrong:
        raise Failure(
            f"{many(len(check.wrong), 'table')} of the plan would not be moved. Make the plan "
            "again."
        )


@command("apply")
@path_argument("plan", metavar="PLAN")
@output_options("json")
@takes(ApplyPlanRequest, without=("compare_rows", "expires_days"))
def apply(request: ApplyPlanRequest, form: str | None) -> None:
    """Move the tables of a plan to a holding folder; none is deleted.

    \b
    Example:
      pexeso redundancy apply plan.json
      pexeso redundancy apply plan.json --yes

    A table stays if it or its parent has changed since the plan was made. The holding folder lists
    the tables that were set aside, each with its parent, the statement that rebuilds it and the day
    on which it expires. To resume an interrupted call, repeat it. The exit code is 1 if a table
    could not be moved.

    In Python: pexeso.apply_plan(PLAN).
    """  # noqa: D301  click reads \b
    _report(run(request), form, "set aside", yes=request.yes)


@command("undo")
@path_argument("source", metavar="PLAN|HOLDING")
@click.argument("tables", metavar="[TABLE...]", nargs=-1)
@output_options("json")
@takes(UndoPlanRequest, without=("tables",))
def undo(request: UndoPlanRequest, form: str | None) -> None:
    """Bring tables back that were set aside.

    \b
    Example:
      pexeso redundancy undo plan.json --yes
      pexeso redundancy undo my_folder.holding sales/2019.csv --yes

    Without TABLE all tables come back, under their old names. A table whose name is now taken stays
    in the holding folder, and the exit code is 1.

    In Python: pexeso.undo_plan(PLAN).
    """  # noqa: D301  click reads \b
    _report(run(request), form, "brought back", yes=request.yes)


redundancy = WithVerbs("redundancy", find, verify, apply, undo)


def _report(applied: Applied, form: str | None, verb: str, *, yes: bool) -> None:
    waiting = "not moved" if yes else f"would be {verb}"
    write_answer(
        applied,
        form,
        lambda applied: [
            *(f"{verb}: {plain(name, MAX_NAME)}" for name in applied.moved),
            *(f"{verb} earlier: {plain(name, MAX_NAME)}" for name in applied.already),
            *_refusals(applied.refused),
            *(f"{waiting}: {plain(name, MAX_NAME)}" for name in applied.waiting),
        ],
    )
    for name in applied.kept:
        talk(
            f"The original of '{plain(name, MAX_NAME)}' is kept until a later call: a program may "
            "still write to it."
        )
    if not yes:
        talk(
            f"Nothing was moved. With --yes {many(len(applied.waiting), 'table')} would be {verb}; "
            f"the holding folder is '{applied.holding}'."
        )
        return
    talk(
        f"{many(len(applied.moved) + len(applied.already), 'table')} {verb}; the holding folder is "
        f"'{applied.holding}'."
    )
    if applied.stopped is not None:
        raise Failure(applied.stopped)
    if applied.refused:
        raise Failure(f"{many(len(applied.refused), 'table')} could not be {verb}.")


def _refusals(refused: Any) -> list[str]:
    rows = [("stays:", refusal.table, refusal.reason) for refusal in refused]
    return table_lines(("", "", ""), rows, "<<<", limit=MAX_NAME)
