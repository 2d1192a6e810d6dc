"""Output of commands: tables, JSON, CSV and files on stdout, messages and progress on stderr."""

from __future__ import annotations

import inspect
import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from pexeso.errors import InputError
from pexeso.faces.cli.errors import Interrupted, command_again
from pexeso.faces.cli.options import Command, cli_option, command, takes, with_options
from pexeso.faces.cli.streams import styled
from pexeso.faces.service.bases import (
    CsvOptions,
    QueryRequest,
    Request,
    json_line,
    json_pieces,
    json_text,
)
from pexeso.faces.service.schema import OUTPUT, defaults_of, facts_of, help_text, hints_of
from pexeso.faces.service.verbs import run
from pexeso.lake.frames.writing import WRITERS, csv_text, without_formula, write_file
from pexeso.options import SearchOptions
from pexeso.results.query import batch_lines
from pexeso.runtime.formatting import MAX_CELL, cells_of, csv_row, either, human_bytes, plain
from pexeso.runtime.progress import (
    CountedProgress,
    MessageLines,
    StageProgress,
    bar,
    counted_bar,
    log_event,
    logging_to,
    reported_steps,
    stage_bar,
)
from pexeso.semantic.thresholds.advice import Advice
from pexeso.store.io.temporary import require_free, written_whole

# Characters of names, paths and sentences, which one may want to copy.
MAX_NAME = 1000

_FORMULAS, _LOGS_JSON = "pexeso.escape_formulas", "pexeso.log_json"

_HELP = {"json": "Print one JSON document.", "csv": "Print CSV with a header."}


def output_options(*forms: str) -> Callable[[Command], Command]:
    """Add ``--json`` and ``--csv`` as the parameter `form`; without it, print text."""

    def decorate(command: Command) -> Command:
        for form in reversed(forms):
            command = cli_option(
                f"--{form}", "form", flag_value=form, default=None, group=OUTPUT, help=_HELP[form]
            )(command)
        return escape_formulas_option(command) if "csv" in forms else command

    return decorate


def escape_formulas_option(command: Command) -> Command:
    """Add ``--escape-formulas``, which all that the command writes as CSV then follows."""

    def remember(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        context.find_root().meta[_FORMULAS] = value

    return cli_option(
        "--escape-formulas",
        is_flag=True,
        group=OUTPUT,
        expert=True,
        expose_value=False,
        callback=remember,
        help=help_text(CsvOptions, "escape_formulas"),
    )(command)


def log_json_option(command: Command) -> Command:
    """Add ``--log-json``: while the command runs, stderr has JSON lines only.

    A line is ``{"time", "event", ...}``, and errors are reported in the same form. A command line
    that is not understood is reported in plain words, since it is not known then what was meant.
    """

    def start(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if not value or context.resilient_parsing:
            return
        root, stream = context.find_root(), sys.stderr
        logs = logging_to(stream)
        logs.__enter__()
        root.call_on_close(lambda: logs.__exit__(None, None, None))
        # Stays to the end of the process: an error is reported after the command has ended.
        sys.stderr = MessageLines(stream)
        root.meta[_LOGS_JSON] = True

    return click.option(
        "--log-json",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=start,
        help="Write log events to stderr as JSON lines; suppress other output there.",
    )(command)


def escapes_formulas() -> bool:
    return _has(_FORMULAS)


def logs_json() -> bool:
    return _has(_LOGS_JSON)


def _has(flag: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().meta.get(flag))


def write_data(text: str) -> None:
    """Write a text to stdout unchanged: click would remove escape sequences from a file."""
    click.echo(text, nl=False, color=True)


def talk(message: str) -> None:
    click.echo(message, err=True)


def warn(message: str) -> None:
    """Write a line on stderr that one should not pass over: yellow on a terminal."""
    talk(styled(message, err=True, fg="yellow"))


def heading(line: str) -> str:
    return styled(line, bold=True)


def report_column(request: QueryRequest, result: Any) -> None:
    """Name the column that was taken, where the request named a file alone."""
    if request.column is None and not getattr(request, "all_columns", False):
        talk(f"No column was named: searching with {result.query['column']!r}.")


def write_answer(
    response: Any, form: str | None, lines: Callable[[Any], Iterable[str]] = lambda response: ()
) -> None:
    if form == "json":
        write_json(response.to_dict())
        return
    for line in lines(response):
        click.echo(line)


def verb_command(
    name: str, kind: type[Request], lines: Callable[[Any], Iterable[str]]
) -> click.Command:
    """Return the command of a verb: its request's options, and its response as lines or JSON.

    Fields without an option are its arguments; the docstring of the request is its help.
    """

    def answer(request: Request, form: str | None) -> None:
        write_answer(run(request), form, lines)

    defaults = defaults_of(kind)
    arguments = [
        click.argument(field, required=field not in defaults, metavar=field.upper())
        for field, hint in hints_of(kind).items()
        if field in kind.__struct_fields__ and not facts_of(hint)
    ]
    options = with_options(*arguments, output_options("json"))
    description = inspect.cleandoc(str(kind.__doc__))
    return command(name, help=description)(options(takes(kind)(answer)))


def write_json(document: Any) -> None:
    """Write a document on stdout: its outer object, and the lists in it, one entry a line."""
    write_data(f"{json_text(document)}\n")


def write_json_with_rows(document: dict[str, Any], name: str, rows: Iterable[Any]) -> None:
    """Write a document on stdout as `write_json` does, and in it, last, a list of any length."""
    for piece in json_pieces(document, name, rows):
        write_data(piece)


def write_json_line(document: Any) -> None:
    write_data(f"{json_line(document)}\n")


def write_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    escape = escapes_formulas()
    for row in itertools.chain((columns,), rows):
        write_data(csv_row(map(without_formula, row) if escape else row))


def write_table(table: pa.Table, path: str | None, *, overwrite: bool) -> None:
    """Write a table to a file, whole or not at all; without a path as CSV on stdout."""
    if path is None:
        write_data(csv_text(table, escape_formulas=escapes_formulas()))
        return
    write_file(table, path, overwrite=overwrite, escape_formulas=escapes_formulas())


def require_writable(
    path: str, *, overwrite: bool, option: str, formats: tuple[str, ...] = tuple(WRITERS)
) -> None:
    """Refuse a file that cannot be written: its ending, its folder, or it exists already."""
    if not path.lower().endswith(formats):
        raise InputError(f"{option} must end in {either(formats)}. Got {path!r} instead.")
    require_free(path, overwrite=overwrite)


def table_lines(
    columns: Sequence[str], rows: Sequence[Sequence[str]], align: str, *, limit: int = MAX_CELL
) -> list[str]:
    """Lay out a table for people: the header, unless its names are empty, and a line for each row.

    `align` has ``<`` or ``>`` for each column; a cell has `limit` characters at most.
    """
    shown = [[plain(cell, limit) for cell in row] for row in (columns, *rows)]
    # A longer cell is shown in full and moves what follows it in its own row, not in all others.
    widths = [
        max((width for width in map(display_width, cells) if width <= MAX_CELL), default=0)
        for cells in zip(*shown, strict=True)
    ]
    lines = [
        "  ".join(
            _pad(cell, width, side) for cell, width, side in zip(row, widths, align, strict=True)
        ).rstrip()
        for row in shown
    ]
    return lines if any(columns) else lines[1:]


def display_width(text: str) -> int:
    """Count the terminal cells of a text: a wide letter takes two, a mark on a letter none."""
    return len(text) if text.isascii() else sum(map(cells_of, text))


def _pad(text: str, width: int, side: str) -> str:
    space = " " * max(0, width - display_width(text))
    return text + space if side == "<" else space + text


def report_advice(options: Iterable[SearchOptions]) -> None:
    """Write on stderr which thresholds were chosen and why, once for each pair of thresholds."""
    reported: set[tuple[float, float | None]] = set()
    for settings in options:
        chosen = (settings.max_distance, settings.min_joinability)
        if settings.advice is not None and chosen not in reported:
            again = reported and settings.advice.min_joinability is not None
            talk(
                f"Chosen for a column of few values: {thresholds(*chosen)}"
                if again
                else advice_line(settings.advice, settings.min_joinability)
            )
            reported.add(chosen)


def advice_line(advice: Advice, min_joinability: float | None) -> str:
    """Write the thresholds chosen, and why, on a line."""
    chosen = None if advice.min_joinability is None else min_joinability
    line = f"Chosen: {thresholds(advice.max_distance, chosen)}: {advice.why}"
    if chosen is None or chosen <= (advice.min_joinability or 0):
        return line
    return f"{line} Of a column of so few values more must match: fewer could be chance."


def thresholds(max_distance: float, min_joinability: float | None) -> str:
    share = "" if min_joinability is None else f" --min-joinability {min_joinability:.4g}"
    return f"--max-distance {max_distance:g}{share}"


html_option = cli_option(
    "--html",
    group=OUTPUT,
    metavar="PAGE",
    help="Also write a page for the browser: one file, which loads nothing else.",
)


def page_options(command: Command) -> Command:
    """Add ``--html`` and ``--overwrite``, as the parameters `html` and `overwrite`."""
    overwrite = cli_option(
        "--overwrite",
        is_flag=True,
        group=OUTPUT,
        help="With --html: replace an existing file PAGE.",
    )
    return html_option(overwrite(command))


def require_page(html: str | None, *, overwrite: bool) -> None:
    """Refuse, before any work is done, a page that could not be written in the end."""
    if html is None:
        if overwrite:
            raise click.UsageError("--overwrite is for the file of --html, and none was named.")
        return
    if not html:
        raise click.UsageError("--html needs the name of a file, such as --html report.html.")
    require_free(html, overwrite=overwrite)


def write_page(pieces: Iterable[str], html: str, *, overwrite: bool) -> None:
    """Write a page piece by piece to its file, completely or not at all, and report where it is."""
    with (
        written_whole(html, overwrite=overwrite) as temporary,
        temporary.open("w", encoding="utf-8") as stream,
    ):
        stream.writelines(pieces)
    talk(f"Page for the browser: '{html}' ({human_bytes(Path(html).stat().st_size)})")


@contextmanager
def counted_progress(title: str, **unit: Any) -> Iterator[CountedProgress | None]:
    """Show a bar for work that reports how much is done and how much there is."""
    with counted_bar(title, **unit) if sys.stderr.isatty() else nullcontext() as report:
        yield report


@contextmanager
def stage_progress(stages: Sequence[str] | None = None) -> Iterator[StageProgress | None]:
    """Show which stage is under way: of those named, or of a build or an update."""
    if not sys.stderr.isatty():
        yield None
        return
    if stages is None:
        from pexeso.build.job import stage_names

        stages = stage_names()
    with stage_bar(stages) as report:
        yield report


@contextmanager
def search_progress() -> Iterator[None]:
    shown = "{desc} {percentage:3.0f} %{bar:20} {elapsed}<{remaining}"
    with (
        counted_progress("searching", bar_format=shown, delay=1.0) as report,
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
    if not sys.stderr.isatty():
        yield None
        return
    with bar(desc="answering", unit=" queries") as shown:
        if queries != "-":
            shown.total = sum(1 for _ in batch_lines(queries))
        yield lambda run: shown.update(run.answered - shown.n) and None


def run_stages(request: Request, index: str, unfinished: str = "is as it was") -> tuple[Any, float]:
    """Run a build or an update with a bar; return the response and the seconds that it took."""
    started = time.perf_counter()
    try:
        with stage_progress() as progress:
            return run(request, progress=progress), time.perf_counter() - started
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"Interrupted: '{index}' {unfinished}, and what is finished is kept for the next run. "
            f"Go on: {command_again()}"
        ) from error
