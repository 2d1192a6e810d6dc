"""What a build did, for people: its stages, and what it left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pexeso.faces.cli.output.output import MAX_NAME, human_bytes, plain, table_lines
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.build.diagnostics.reason_listing import ReasonListing
    from pexeso.build.report import BuildReport, StageReport
    from pexeso.lake.left_out.groups import ReasonGroup

MAX_GROUPS = 8
"""Groups of files, and as many of columns, that a build names."""

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


def group_lines(groups: Sequence[ReasonGroup], limit: int) -> list[str]:
    """Lay out groups of what was left out, or of notes: how many, why, and examples.

    At most `limit` groups of tables and as many of columns; what is in the others is counted.
    """
    rows = []
    for kind in dict.fromkeys(group.kind for group in groups):
        of_kind = [group for group in groups if group.kind == kind]
        # One more group takes no more room than the line that would count it.
        n_shown = limit if len(of_kind) > limit + 1 else len(of_kind)
        reasons = [(group, f"{group.reason} ({group.named()})") for group in of_kind[:n_shown]]
        if rest := of_kind[n_shown:]:
            others = replace(rest[0], count=sum(group.count for group in rest))
            reasons.append((others, f"for {many(len(rest), 'other reason')}"))
        rows += [(*group.counted().split(" ", 1), text) for group, text in reasons]
    return [f"  {line}" for line in table_lines(("",) * 3, rows, "><<", limit=MAX_NAME)]


def left_out_lines(groups: Sequence[ReasonGroup], path: object) -> list[str]:
    """Lay out what a build or an append left out, and say which command lists all of it."""
    if not groups:
        return []
    return [
        f"Left out: {total(groups)}",
        *group_lines(groups, MAX_GROUPS),
        f"'pexeso info {plain(str(path), MAX_NAME)} --left-out' lists each with its reason.",
    ]


def total(groups: Sequence[ReasonGroup]) -> str:
    """Write how many are in groups together, such as ``2 files and 5 columns``."""
    of_kind: dict[str, ReasonGroup] = {}
    for group in groups:
        before = of_kind.get(group.kind)
        of_kind[group.kind] = replace(group, count=group.count + (before.count if before else 0))
    return " and ".join(group.counted() for group in of_kind.values()) or "nothing"


def listing_lines(listing: ReasonListing) -> Iterator[str]:
    """Yield a line for each row of a listing, those of a group below a line about it.

    What all rows of a group have in common stands in that line alone: a row has what differs.
    """
    noun = "table" if listing.is_of_notes else None
    last = None
    for row in listing:
        group = row.group
        if group is not last:
            if last is not None:
                yield ""
            yield f"{group.counted(noun)}: {plain(group.detail or group.reason, MAX_NAME)}"
            last = group
        difference = _own_words(row.reason, group)
        yield f"  {plain(row.name, MAX_NAME)}{'  ' * bool(difference)}{plain(difference, MAX_NAME)}"


def _own_words(reason: str, group: ReasonGroup) -> str:
    """Return what a reason says that the line about its group does not."""
    words = reason
    if group.detail is not None:
        # The same words, but for numbers, of which none holds a comma and a blank.
        clauses = zip(reason.split(", "), group.detail.split(", "), strict=True)
        words = ", ".join(clause for clause, common in clauses if clause != common)
    return words.removeprefix(f"{group.reason}: ")


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
