"""``pexeso batch``: answer a file of queries."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from pexeso.errors import QueryError
from pexeso.faces.cli.errors import Failure, Interrupted, command_again
from pexeso.faces.cli.options import (
    cli_option,
    command,
    complete_path,
    index_argument,
    reading_option,
    takes,
)
from pexeso.faces.cli.output.advice import tell_advice
from pexeso.faces.cli.output.output import MAX_NAME, plain, talk, write_json_line
from pexeso.faces.cli.output.progress import query_progress
from pexeso.faces.service.requests import BatchRequest
from pexeso.faces.service.schema import OUTPUT
from pexeso.faces.service.verbs import run
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.semantic.batch_file import BatchRun, NumberedLine

STANDARD = "-"


def _file(context: click.Context, option: click.Parameter, name: str) -> str | None:
    return None if name == STANDARD else name


@command()
@index_argument
@click.argument("queries", metavar="QUERIES.jsonl", shell_complete=complete_path)
@cli_option(
    "-o",
    "--output",
    default=STANDARD,
    callback=_file,
    group=OUTPUT,
    metavar="ANSWERS.jsonl",
    help="Where answers go; stdout by default.",
)
@reading_option(of="each file that is named")
@takes(BatchRequest, without=("ignore_missing",))
def batch(request: BatchRequest) -> None:
    """Answer many queries, written as JSON lines.

    \b
    Example:
      pexeso batch lake.pexeso queries.jsonl -o answers.jsonl
      pexeso batch lake.pexeso queries.jsonl -o answers.jsonl --resume

    \b
    Lines of QUERIES.jsonl (- reads stdin):
      {"id": "a", "file": "people.csv", "column": "company"}
      {"id": "b", "values": ["Oslo", "Rome"]}
      {"file": "old.csv", "column": "city", "delimiter": ";", "skip_rows": 1}

    Answers are JSON lines in the same order: {"id", "of", "query", "options", "results", "stats"},
    or {"id", "of", "error"} for a line that cannot be used; the others are answered all the same,
    and the exit code is 1. Files are relative to the current folder.

    With --spark-master the search runs on Spark, in a task for each partition and some of the
    queries; the answers are the same.

    In Python: pexeso.open_index(INDEX).search_batch(queries).
    """  # noqa: D301  click reads \b
    queries, output, live = request.queries, request.output, {}
    if queries == STANDARD:
        if request.resume:
            raise click.UsageError(
                "--resume needs a file of queries: what came from stdin is gone."
            )
        live["lines"] = _from_standard_input()
    live["begin"] = lambda options: tell_advice([options])
    try:
        if output is None:
            response = run(request, write=_write, **live)
        else:
            with query_progress(queries) as progress:
                response = run(request, progress=progress, **live)
    except KeyboardInterrupt as error:
        raise Interrupted(_how_to_go_on(queries, output)) from error
    _report(response.run, output)


def _from_standard_input() -> Iterator[NumberedLine]:
    from pexeso.results.query import lines_of

    if sys.stdin is None:
        raise QueryError(
            "Standard input is closed. Pipe JSON lines into the command, or name a file."
        )
    return lines_of(sys.stdin.buffer, "The batch on standard input")


def _write(answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        write_json_line(answer)
    sys.stdout.flush()


def _how_to_go_on(queries: str, output: str | None) -> str:
    if output is None or queries == STANDARD:
        return f"Interrupted. Run again: {command_again()}"
    again = command_again(add="--resume", drop=("--overwrite",))
    return f"Interrupted; the answers so far are in '{output}'. Go on: {again}"


def _report(run: BatchRun, output: str | None) -> None:
    earlier = f", {run.earlier:,} of them in an earlier run" if run.earlier else ""
    talk(
        f"{many(run.answered, 'line')} answered{earlier}"
        + ("" if output is None else f", in '{output}'")
    )
    if not run.failed:
        return
    for error in run.first_errors:
        talk(f"  {plain(error, MAX_NAME)}")
    n_more = run.failed - len(run.first_errors)
    if n_more:
        talk(f"  and {n_more:,} more, which the answers name")
    raise Failure(f"{run.failed:,} of {many(run.answered, 'line')} could not be used.")
