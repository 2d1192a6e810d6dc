"""Results of searches for columns that join after a program, for people and as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pexeso.faces.cli.output.output import MAX_NAME
from pexeso.faces.cli.output.report import INDENT, Layout, Table, milliseconds, transformed_lines
from pexeso.runtime.formatting import percent, plain
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.transform.search.results import TransformMatch, TransformSearchResult

MAX_PROGRAM = 60
"""Characters of a program in a table."""


def _transformed_table(result: TransformSearchResult) -> Table:
    rows = [
        (
            percent(match.joinability),
            f"{match.matched:,}/{match.total:,}",
            match.table,
            match.column,
            _short(match.program),
        )
        for match in result
    ]
    return ("joinability", "joined", "table", "column", "program"), rows, ">><<<"


def _short(program: str) -> str:
    return program if len(program) <= MAX_PROGRAM else f"{program[: MAX_PROGRAM - 1]}…"


def _transformed_why(match: TransformMatch, n_shown: int) -> list[str]:
    """Return the whole program, whose values it reads, and values that are joined by it."""
    whose = "yours" if match.direction == "source to target" else "theirs"
    program = f"{INDENT}reads {whose}: {plain(match.program, MAX_NAME)}"
    return [program, *transformed_lines(match, n_shown)]


def _nothing_transformed(result: TransformSearchResult) -> str:
    if not result.query["values"]:
        return "The query column has no value: there is nothing to look for."
    return (
        f"No program joins a column with yours: {_learned_from(result)} shared enough rare pieces "
        "of text to learn from. pexeso search looks for similar values, --method overlap for "
        "equal ones, and pexeso transform learns from columns of numbers and from several columns."
    )


def _learned_from(result: TransformSearchResult) -> str:
    """Return how many columns programs were learned from, and which ones there were."""
    columns = many(result.stats["columns"], "column")
    return f"{result.stats['candidates']:,} of {columns} of text and dates"


TRANSFORMED = Layout(
    _transformed_table,
    _transformed_why,
    _nothing_transformed,
    lambda result, waited: (
        f" in {milliseconds(result.stats['seconds'] if waited is None else waited)} ms, learned "
        f"from {_learned_from(result)}; columns of numbers are not compared"
    ),
    ("query_value", "lake_value", "joined"),
    lambda match: match.pairs(),
)
