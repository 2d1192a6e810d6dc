"""``pexeso batch``: answer a file of queries."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from pexeso.cli.errors import Failure, Interrupted, command_again
from pexeso.cli.logs import log_json_option, logs_json
from pexeso.cli.options import Asked, search_settings
from pexeso.cli.output.advice import tell_advice
from pexeso.cli.output.output import MAX_NAME, count, is_terminal, plain, talk, write_json_line
from pexeso.cli.spark import spark_options
from pexeso.errors import OutputError
from pexeso.runtime.json_log import log_event

if TYPE_CHECKING:
    from pexeso.index import Index
    from pexeso.search.batch_file import BatchRun

STANDARD = "-"


@click.command()
@click.argument("index", metavar="INDEX")
@click.argument("queries", metavar="QUERIES.jsonl")
@click.option("-o", "--output", default=STANDARD, metavar="ANSWERS.jsonl", help="Where answers go; stdout by default.")
@search_settings
@click.option("--explain", is_flag=True, help="Add the values that match, with their distances and kinds.")
@click.option(
    "--rerank/--no-rerank",
    default=False,
    show_default=True,
    help="Give each result a score, how likely it can be joined, and order by it; or by rows that match alone.",
)
@click.option("--resume", is_flag=True, help="Go on with a file of answers that is there.")
@click.option("--restart", is_flag=True, help="Write a file of answers that is there anew.")
@spark_options
@log_json_option
def batch(
    index: str,
    queries: str,
    output: str,
    asked: Asked,
    explain: bool,
    rerank: bool,
    resume: bool,
    restart: bool,
    master: str | None,
    conf: dict[str, str],
) -> None:
    """Answer many queries, written as JSON lines.

    \b
    Example:
      pexeso batch lake.pexeso queries.jsonl -o answers.jsonl
      pexeso batch lake.pexeso queries.jsonl -o answers.jsonl --resume

    \b
    Lines of QUERIES.jsonl (- reads stdin):
      {"id": "a", "file": "people.csv", "column": "company"}
      {"id": "b", "values": ["Oslo", "Rome"]}

    Answers are JSON lines in the same order: {"id", "query", "options", "results", "stats"}, or {"id", "error"} for a line that
    cannot be used; the others are answered all the same, and the exit code is 1. Files are relative to the current folder.

    With --spark-master the search runs on Spark, in a task for each partition and some of the queries; the answers are the same.

    In Python: pexeso.open_index(INDEX).search_batch(queries).
    """  # noqa: D301  click reads \b
    if resume and restart:
        raise click.UsageError("Give --resume or --restart, not both.")
    if output == STANDARD and (resume or restart):
        raise click.UsageError("--resume and --restart need a file of answers: -o ANSWERS.jsonl.")
    if queries == STANDARD and resume:
        raise click.UsageError("--resume needs a file of queries: what came from stdin is gone.")
    _require_other_file(queries, output)
    lines = _lines(queries)
    from pexeso.search.batch_file import answer_lines, run_batch

    try:
        with _opened(index, asked, master, conf) as (opened, passes):
            tell_advice([opened.search_options(asked.to_options())])
            options = {"explain": explain, "passes": passes, "rerank": rerank, **asked.to_search()}
            if output == STANDARD:
                run = _to_stdout(answer_lines(opened, lines, **options))
            else:
                with query_progress(queries) as progress:
                    run = run_batch(opened, lines, output, resume=resume, restart=restart, progress=progress, **options)
    except KeyboardInterrupt as error:
        raise Interrupted(_how_to_go_on(queries, output)) from error
    _report(run, output)


@contextmanager
def _opened(index: str, asked: Asked, master: str | None, conf: Mapping[str, str]) -> Iterator[tuple[Index, int]]:
    """Open the index here, or for Spark's tasks; give with it how many passes over it run side by side."""
    if master is None:
        if conf:
            raise click.UsageError(
                "--spark-conf is for a search on Spark: give --spark-master too, such as --spark-master local[*]."
            )
        yield asked.open(index), 1
        return
    # What is asked of device and memory is asked of the tasks.
    opened = replace(asked, device="cpu", kernel="auto", memory_budget=None).open(index)
    from pexeso.options import parse_bytes
    from pexeso.search.spark_executor import on_spark, passes_of
    from pexeso.spark.session import spark_session

    budget = None if asked.memory_budget is None else parse_bytes(asked.memory_budget)
    with spark_session(master, conf=conf) as spark:
        searching = on_spark(opened, spark, device=asked.device, kernel=asked.kernel, memory_budget=budget)
        yield searching, passes_of(opened, spark)


def _require_other_file(queries: str, output: str) -> None:
    if os.path.exists(queries) and os.path.exists(output) and os.path.samefile(queries, output):
        raise OutputError(f"'{output}' is the file of queries: choose another name for the answers.")


def _lines(queries: str) -> Iterable[tuple[int, str]]:
    """Return the lines of a batch file; looks at once whether it can be read."""
    from pexeso.search.query import batch_lines

    if queries == STANDARD:
        return ((number, text) for number, text in enumerate(sys.stdin, 1) if text.strip())
    for _ in batch_lines(queries):
        break
    return batch_lines(queries)


def _to_stdout(chunks: Iterable[list[dict[str, object]]]) -> BatchRun:
    from pexeso.search.batch_file import BatchRun

    run = BatchRun()
    for answers in chunks:
        for answer in answers:
            write_json_line(answer)
            run.note(answer)
        sys.stdout.flush()
    return run


@contextmanager
def query_progress(queries: str) -> Iterator[Callable[[BatchRun], None] | None]:
    """Show a bar on stderr, where that is a terminal, for a run over the lines of a batch file; or log how far it is."""
    if logs_json():
        yield lambda run: log_event("answered", lines=run.answered, earlier=run.earlier, failed=run.failed)
        return
    if not is_terminal():
        yield None
        return
    from tqdm import tqdm

    from pexeso.search.query import batch_lines

    total = None if queries == STANDARD else sum(1 for _ in batch_lines(queries))
    with tqdm(desc="answering", unit=" queries", total=total, leave=False) as bar:
        yield lambda run: bar.update(run.answered - bar.n) and None


def _how_to_go_on(queries: str, output: str) -> str:
    if output == STANDARD or queries == STANDARD:
        return f"Interrupted. Run again: {command_again()}"
    again = command_again(add="--resume", drop=("--restart",))
    return f"Interrupted; the answers so far are in '{output}'. Go on: {again}"


def _report(run: BatchRun, output: str) -> None:
    earlier = f", {run.earlier:,} of them in an earlier run" if run.earlier else ""
    talk(f"{count(run.answered, 'line')} answered{earlier}" + ("" if output == STANDARD else f", in '{output}'"))
    if not run.failed:
        return
    for error in run.first_errors:
        talk(f"  {plain(error, MAX_NAME)}")
    n_more = run.failed - len(run.first_errors)
    if n_more:
        talk(f"  and {n_more:,} more, which the answers name")
    raise Failure(f"{run.failed:,} of {count(run.answered, 'line')} could not be used.")
