"""``pexeso redundancy``: tables that are contained in others, and what is done about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pexeso.faces.cli.errors import Failure
from pexeso.faces.cli.groups import WithVerbs
from pexeso.faces.cli.options import command, complete_path, takes
from pexeso.faces.cli.output.output import (
    MAX_NAME,
    output_options,
    plain,
    table_lines,
    talk,
    warn,
    write_json,
)
from pexeso.faces.cli.output.pages import html_option, require_page, write_page
from pexeso.faces.cli.output.progress import stage_progress
from pexeso.faces.cli.output.redundancy_report import redundancy_lines, stages_line
from pexeso.faces.service.by_verb.redundancy import (
    ApplyPlanRequest,
    RedundancyRequest,
    UndoPlanRequest,
    VerifyPlanRequest,
)
from pexeso.faces.service.verbs import run
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.redundancy.plans.set_aside.outcome import Applied


@command("redundancy")
@click.argument("lake", metavar="INDEX|LAKE", shell_complete=complete_path)
@html_option
@output_options("json")
@takes(RedundancyRequest, without=("row_count_gate", "case_sensitive", "work_folder"))
def find(request: RedundancyRequest, html: str | None, form: str | None) -> None:
    """Find tables that others contain whole, and plan what can go.

    \b
    Example:
      pexeso redundancy my_folder
      pexeso redundancy my_folder --plan plan.json
      pexeso redundancy apply plan.json --yes

    All rows are compared, on the columns of the smaller table, in whatever order rows and columns
    are. INDEX is an index with the part redundancy (pexeso index --include redundancy), LAKE a
    folder of CSV, Parquet and JSON lines, or a table or database of Spark's catalog; a folder is
    read once, on Spark. A table can go where a statement rebuilds it from one that stays, and that
    costs less than keeping it. Nothing is moved or deleted here.

    In Python: pexeso.find_redundancy(LAKE).
    """  # noqa: D301  click reads \b
    if html is not None:
        require_page(html, overwrite=request.overwrite)
    from pexeso.redundancy.plans.redundancy import STAGES

    with stage_progress(STAGES) as progress:
        result = run(request, progress=progress)
    if form == "json":
        write_json(result.to_dict())
    else:
        click.echo("\n".join(redundancy_lines(result)))
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
        write_page(iter([page]), html, overwrite=request.overwrite)


_SHOWN = 10


@command("verify")
@click.argument("plan", metavar="PLAN", shell_complete=complete_path)
@output_options("json")
@takes(VerifyPlanRequest)
def verify(request: VerifyPlanRequest, form: str | None) -> None:
    """Compare a plan with the lake as it is now.

    \b
    Example:
      pexeso redundancy verify plan.json

    Compares the contents of the tables and of their parents with those that the plan was made for,
    then runs each statement and compares all its rows with those of the table. The exit code is 1
    if a table differs from the plan.

    In Python: pexeso.verify_plan(PLAN).
    """  # noqa: D301  click reads \b
    check = run(request)
    if form == "json":
        write_json(check.to_dict())
    else:
        click.echo(f"ok: {many(len(check.right), 'table')}")
        for line in _refusals(check.wrong):
            click.echo(line)
    if check.wrong:
        raise Failure(
            f"{many(len(check.wrong), 'table')} of the plan would not be moved. Make the plan "
            "again."
        )


@command("apply")
@click.argument("plan", metavar="PLAN", shell_complete=complete_path)
@output_options("json")
@takes(ApplyPlanRequest)
def apply(request: ApplyPlanRequest, form: str | None) -> None:
    """Move the tables of a plan to a holding folder; none is deleted.

    \b
    Example:
      pexeso redundancy apply plan.json
      pexeso redundancy apply plan.json --yes

    A table that has changed since the plan was made stays, and so does one whose parent has. What
    was set aside is listed in the holding folder, each table with its parent, the statement that
    rebuilds it and the day from which it counts as expired. A call that was interrupted or killed
    goes on when it is repeated. Ends with exit code 1 where a table could not be moved.

    In Python: pexeso.apply_plan(PLAN).
    """  # noqa: D301  click reads \b
    _tell(run(request), form, "set aside", yes=request.yes)


@command("undo")
@click.argument("source", metavar="PLAN|HOLDING", shell_complete=complete_path)
@output_options("json")
@takes(UndoPlanRequest)
def undo(request: UndoPlanRequest, form: str | None) -> None:
    """Bring tables back that were set aside.

    \b
    Example:
      pexeso redundancy undo plan.json --yes
      pexeso redundancy undo my_folder.holding --only sales/2019.csv --yes

    Tables come back under the names that they had. One whose name another table has taken stays in
    the holding folder, and the exit code is 1.

    In Python: pexeso.undo_plan(PLAN).
    """  # noqa: D301  click reads \b
    _tell(run(request), form, "brought back", yes=request.yes)


redundancy = WithVerbs("redundancy", find, verify, apply, undo)


def _tell(applied: Applied, form: str | None, verb: str, *, yes: bool) -> None:
    if form == "json":
        write_json(applied.to_dict())
    else:
        for name in applied.moved:
            click.echo(f"{verb}: {plain(name, MAX_NAME)}")
        for name in applied.already:
            click.echo(f"{verb} earlier: {plain(name, MAX_NAME)}")
        for line in _refusals(applied.refused):
            click.echo(line)
        for name in applied.waiting:
            click.echo(f"{'not moved' if yes else f'would be {verb}'}: {plain(name, MAX_NAME)}")
    for name in applied.kept:
        talk(
            f"The original of '{plain(name, MAX_NAME)}' is kept until a later call, for nothing "
            "says whether a program still writes to it."
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
