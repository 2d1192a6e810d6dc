"""``pexeso keys``: the columns that tell the rows of a table apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pexeso.faces.cli.options import QueryCommand, complete_path, reading_option, takes
from pexeso.faces.cli.output.output import (
    MAX_NAME,
    heading,
    output_options,
    plain,
    table_lines,
    talk,
    warn,
    write_json,
)
from pexeso.faces.cli.standard_input import take_standard_input
from pexeso.faces.service.requests import KeysRequest
from pexeso.faces.service.verbs import run
from pexeso.runtime.formatting import percent
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.composite.candidate_keys import CandidateKey, FoundKeys, Uniqueness


@click.command(cls=QueryCommand)
@click.argument("table", metavar="FILE", callback=take_standard_input, shell_complete=complete_path)
@reading_option()
@output_options("json")
@takes(KeysRequest)
def keys(request: KeysRequest, form: str | None) -> None:
    """Propose keys for a table: columns that tell its rows apart.

    \b
    Example:
      pexeso keys gdp.csv
      pexeso keys gdp.csv --max-columns 4 --json

    Keys have the fewest columns, and none holds a smaller one: "why" shows the best that is left
    without one of its columns (--json: every smaller combination). A key is unique where every row
    has all its values and no two rows have the same; nearly, where that holds for the share of
    --nearly. Rows that repeat another one in all columns are left out. Columns of decimal or
    formatted numbers, spread whole numbers (such as populations), row numbers and free text are
    rarely keys: those with one come last.

    In Python: pexeso.find_keys(FILE).
    """  # noqa: D301  click reads \b
    proposal = run(request)
    if form == "json":
        write_json(proposal.to_dict())
    else:
        click.echo("\n".join(key_lines(proposal)))
        talk(_rows(proposal))
    for note in proposal.notes:
        warn(f"Note: {note}")


def key_lines(proposal: FoundKeys) -> list[str]:
    """Lay out the keys of a table for people."""
    if proposal.reason is not None:
        return [f"No key: {proposal.reason}"]
    rows = [
        (key.spec, key.kind, percent(key.uniqueness), f"{key.missing:,}", _why(key))
        for key in proposal.keys
    ]
    names = ("key", "kind", "unique", "missing", "why")
    header, *lines = table_lines(names, rows, "<<>><", limit=MAX_NAME)
    return [heading(header), *lines]


def _why(key: CandidateKey) -> str:
    """Return what stands against a key, and what is repeated where a column is left out."""
    parts = [f"{column} has {what}" for column, what in key.rarely_keys.items()]
    if key.repeated:
        parts.append(f"{many(key.repeated, 'row')} repeated{_example(key)}")
    parts_less_one = [part for part in key.smaller if len(part.columns) == len(key.columns) - 1]
    if parts_less_one:
        best = max(parts_less_one, key=lambda part: part.distinct)
        (without,) = set(key.columns) - set(best.columns)
        parts.append(f"without {without} {percent(best.uniqueness)}{_example(best)}")
    return "; ".join(parts)


def _example(part: Uniqueness) -> str:
    if not part.example:
        return ""
    return f", such as {', '.join(map(plain, part.example))} in {many(part.example_rows, 'row')}"


def _rows(proposal: FoundKeys) -> str:
    left_out = [
        f"{number:,} {what}"
        for number, what in (
            (proposal.empty_rows, "empty"),
            (proposal.duplicate_rows, "equal to an earlier one in all columns"),
        )
        if number
    ]
    behind = f"; left out: {', '.join(left_out)}" if left_out else ""
    return f"{many(proposal.rows, 'row')}{behind}"
