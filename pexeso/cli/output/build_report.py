"""The report of a build for people: a line for each stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pexeso.cli.output.output import human_bytes, table_lines

if TYPE_CHECKING:
    from pexeso.build.report import BuildReport, StageReport

_COLUMNS = (
    "stage",
    "seconds",
    "rows in",
    "rows out",
    "bytes in",
    "bytes out",
    "tasks",
    "slowest",
    "skew",
)


def report_lines(report: BuildReport) -> list[str]:
    """Lay out what the stages of a build did: a header, a line for each stage, and their sum."""
    rows = [_row(stage) for stage in report.stages]
    total = ("all", f"{report.seconds:,.1f}", *[""] * (len(_COLUMNS) - 2))
    return table_lines(_COLUMNS, [*rows, total], "<" + ">" * (len(_COLUMNS) - 1))


def _row(stage: StageReport) -> tuple[str, ...]:
    counts = [_or_nothing(number, "{:,}") for number in (stage.rows_in, stage.rows_out)]
    sizes = [
        "" if number is None else human_bytes(number)
        for number in (stage.bytes_in, stage.bytes_out)
    ]
    return (
        stage.stage,
        f"{stage.seconds:,.1f}",
        *counts,
        *sizes,
        _or_nothing(stage.tasks, "{:,}"),
        _or_nothing(stage.slowest_seconds, "{:,.2f} s"),
        _or_nothing(stage.skew, "{:.1f}"),
    )


def _or_nothing(number: float | None, form: str) -> str:
    return "" if number is None else form.format(number)
