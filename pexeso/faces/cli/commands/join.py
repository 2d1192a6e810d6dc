"""``pexeso join``: a table of yours with the rows of a found one added."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from pexeso.errors import InputError, OutputError
from pexeso.faces.cli.options import (
    QueryCommand,
    cli_option,
    index_argument,
    query_argument,
    takes,
)
from pexeso.faces.cli.output.advice import tell_advice
from pexeso.faces.cli.output.output import (
    MAX_NAME,
    escape_formulas_option,
    plain,
    talk,
    tell_column,
    warn,
)
from pexeso.faces.cli.output.report import percent
from pexeso.faces.cli.output.tables import require_writable, write_table
from pexeso.faces.service.by_verb.lineage import write_lineage
from pexeso.faces.service.requests import JoinRequest
from pexeso.faces.service.schema import OUTPUT
from pexeso.faces.service.verbs import run
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.composite.lake.table_pair import JoinedKeys
    from pexeso.joins.report import JoinReport
    from pexeso.results.matches import Match
    from pexeso.transform.joins.joined import TransformJoin

MAX_SENTENCE = 1000


@click.command(cls=QueryCommand)
@index_argument
@query_argument
@click.argument("lake_column", metavar="[TABLE:COLUMN]", required=False)
@cli_option(
    "-o",
    "--output",
    group=OUTPUT,
    metavar="OUT",
    help="A .csv, .parquet, .arrow or .feather file; without it CSV goes to stdout.",
)
@cli_option(
    "--conflicts", group=OUTPUT, metavar="FILE", help="Write every conflict to a .csv file."
)
@cli_option(
    "--lineage",
    group=OUTPUT,
    metavar="FILE",
    help="Append OpenLineage events of the join, with the columns that each column comes from, to "
    "a file of JSON lines.",
)
@cli_option("--overwrite", is_flag=True, group=OUTPUT, help="Replace existing files.")
@escape_formulas_option
@takes(JoinRequest, without=("device", "memory_budget", "ignore_missing"))
def join(
    request: JoinRequest,
    output: str | None,
    conflicts: str | None,
    lineage: str | None,
    overwrite: bool,
) -> None:
    """Add to a table of yours the matching rows of one of the lake.

    \b
    Example:
      pexeso join lake.pexeso people.csv:company business/firms.csv:name -o joined.csv
      pexeso join lake.pexeso people.csv:company firms.csv:name --values one-to-one --type inner
      pexeso join lake.pexeso people.csv:company firms.csv:name --aggregate staff=sum
      pexeso join lake.pexeso people.csv:name mails.csv:address --transform

    Every row of FILE is kept, in order; it is repeated where several rows of the lake match
    (--aggregate keeps it one), and has empty cells where none does (--type inner drops it). The
    columns match_value and match_distance say what it was joined with. Without TABLE:COLUMN that
    column is taken which pexeso search lists first. Cells stay as they stand in both tables, those
    of CSV and JSON as text; mean, sum, min and max read the numbers in them.

    FILE:COLUMN,COLUMN is a key of several columns, and TABLE:COLUMN,COLUMN what it is joined with,
    or TABLE for the columns that match most keys: rows are joined whose keys are equal but for case
    and white space, as in pexeso join lake.pexeso games.csv:year,city
    sport/summer_olympics.csv:year,city.

    --transform joins keys that are written in different forms, such as names and e-mail addresses,
    by a program that is learned from the two tables, as pexeso transform does; TABLE alone lets
    the columns be found.

    Where the join had to choose, a line on stderr says so: a value of the lake wanted twice,
    several equally near, several rows.

    In Python: pexeso.open_index(INDEX).search(values)[0].join(table), by a key
    .search_composite(table, columns)[0].join(table), and by a program
    pexeso.learn_transformation(FILE, "INDEX:TABLE:COLUMN").join().
    """  # noqa: D301  click reads \b
    if output is not None:
        require_writable(output, overwrite=overwrite, option="OUT")
    if conflicts is not None:
        require_writable(conflicts, overwrite=overwrite, option="--conflicts", formats=(".csv",))
        if output is not None and os.path.abspath(output) == os.path.abspath(conflicts):
            raise InputError(
                f"OUT and --conflicts name the same file: {output!r}. Give each its own."
            )
    if lineage is not None and output is None:
        raise click.UsageError("--lineage names the file that the join goes to: add -o OUT.")
    started = datetime.now(UTC)
    response = run(request)
    if response.transformed is None:
        tell_column(request, response)
    else:
        _tell_programs(response.transformed)
    if response.advised is not None:
        tell_advice([response.advised])
    write_table(response.joined.table, output, overwrite=overwrite)
    try:
        if lineage is not None and output is not None:
            write_lineage(lineage, request, response, output, started, datetime.now(UTC))
        if conflicts is not None:
            write_table(response.joined.report.conflicts, conflicts, overwrite=overwrite)
    except OutputError as error:
        if output is None:
            raise
        raise OutputError(f"{error} The joined table is whole, in '{output}'.") from error
    _tell(response.match, response.joined.report, output, conflicts)


def _tell_programs(joined: TransformJoin) -> None:
    """Print to stderr by which programs rows were joined, or why there is none."""
    for number, words in enumerate(joined.programs, 1):
        talk(f"Program {number}: {plain(words, MAX_NAME)}")
    if joined.tried is not None:
        talk(f"No program: {plain(joined.tried, MAX_SENTENCE)}.")


def _tell(
    match: Match | JoinedKeys, report: JoinReport, output: str | None, conflicts: str | None
) -> None:
    """Say on stderr what was joined, and where the join had to choose."""
    joined = ""
    if (report.matched_rows, report.rows) != (match.matched, match.total):
        joined = f", {report.matched_rows:,} of {many(report.rows, 'row')} joined"
    where = "" if output is None else f", in '{output}'"
    talk(
        f"Joined with {match.table}:{match.column}: {percent(match.joinability)} of the "
        f"{match.joinability_of} match ({match.matched:,} of {match.total:,}){joined}; "
        f"{many(report.joined_rows, 'row')}{where}"
    )
    for line in report.lines():
        warn(plain(line, MAX_NAME))
    if conflicts is not None and report.counts:
        talk(f"Every conflict, one row for each value that takes part, is in '{conflicts}'.")
    elif conflicts is not None:
        talk(f"There was no conflict: '{conflicts}' has a header alone.")
