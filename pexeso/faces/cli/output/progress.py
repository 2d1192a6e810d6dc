"""Progress bars on stderr, where that is a terminal, and long work that shows one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from pexeso.faces.cli.errors import Interrupted, command_again
from pexeso.faces.cli.logs import logs_json
from pexeso.faces.cli.output.output import is_terminal
from pexeso.faces.service.bases import IndexRequest
from pexeso.faces.service.verbs import run
from pexeso.runtime.json_log import log_event
from pexeso.runtime.progress import (
    CountedProgress,
    StageProgress,
    bar,
    counted_bar,
    reported_steps,
    stage_bar,
)

_A_MOMENT = 1.0
"""Seconds."""


@contextmanager
def counted_progress(title: str, **unit: Any) -> Iterator[CountedProgress | None]:
    """Show a bar for work that reports how much is done and how much there is."""
    with counted_bar(title, **unit) if is_terminal() else nullcontext() as report:
        yield report


@contextmanager
def stage_progress(stages: Sequence[str] | None = None) -> Iterator[StageProgress | None]:
    """Show which stage is under way: of those named, or of a build or an update."""
    if not is_terminal():
        yield None
        return
    if stages is None:
        from pexeso.build.job import stage_names

        stages = stage_names()
    with stage_bar(stages) as report:
        yield report


@contextmanager
def search_progress() -> Iterator[None]:
    """Show how far a search is that takes longer than a moment."""
    shown = "{desc} {percentage:3.0f} %{bar:20} {elapsed}<{remaining}"
    with (
        counted_progress("searching", bar_format=shown, delay=_A_MOMENT) as report,
        reported_steps(report),
    ):
        yield


@contextmanager
def query_progress(queries: str) -> Iterator[Callable[[Any], None] | None]:
    """Show a bar for a run over the lines of a batch file, or ``-``; or log how far it is."""
    if logs_json():
        yield lambda run: log_event(
            "answered", lines=run.answered, earlier=run.earlier, failed=run.failed
        )
        return
    if not is_terminal():
        yield None
        return
    with bar(desc="answering", unit=" queries") as shown:
        if queries != "-":
            from pexeso.results.query import batch_lines

            shown.total = sum(1 for _ in batch_lines(queries))
        yield lambda run: shown.update(run.answered - shown.n) and None


def run_stages(request: IndexRequest, unfinished: str = "is as it was") -> tuple[Any, float]:
    """Run a build or an update with a bar of its stages.

    Returns the response and the seconds it took.

    After Ctrl-C it says how the index was left, in the words of `unfinished`, and how to go on.
    """
    started = time.perf_counter()
    try:
        with stage_progress() as progress:
            return run(request, progress=progress), time.perf_counter() - started
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"Interrupted: '{request.index}' {unfinished}, and what is finished is kept for the "
            "next run. "
            f"Go on: {command_again()}"
        ) from error
