"""``pexeso join``: a table of yours with the rows of a found one added."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from pexeso.cli.name_lists import name_list, read_names_or_none
from pexeso.cli.options import (
    distance_settings,
    field_option,
    index_argument,
    query_argument,
    takes,
)
from pexeso.cli.output.advice import tell_advice
from pexeso.cli.output.output import (
    MAX_NAME,
    escape_formulas_option,
    plain,
    talk,
    tell_column,
    warn,
)
from pexeso.cli.output.report import percent
from pexeso.cli.output.tables import require_writable, write_table
from pexeso.cli.standard_input import QueryCommand
from pexeso.errors import InputError, OutputError
from pexeso.join.options import AGGREGATIONS, HOW, OTHERS, PROVENANCE, VALUES
from pexeso.runtime.shown import many
from pexeso.service.by_verb.lineage import write_lineage
from pexeso.service.requests import JoinRequest
from pexeso.service.verbs import run

if TYPE_CHECKING:
    from pexeso.composite_search.table_pair import JoinedKeys
    from pexeso.join.report import JoinReport
    from pexeso.results import Match
    from pexeso.transform_join.joined import TransformJoin

MAX_SENTENCE = 1000

_of_join = partial(field_option, JoinRequest)


@click.command(cls=QueryCommand)
@index_argument
@query_argument
@click.argument("lake_column", metavar="[TABLE:COLUMN]", required=False)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    help="A .csv, .parquet, .arrow or .feather file; without it CSV goes to stdout.",
)
@_of_join(
    "values",
    "Join the nearest value of the lake; none of them twice, as many as possible; or all that "
    "match.",
    type=click.Choice(VALUES),
)
@_of_join(
    "how", "left keeps rows without a match, inner drops them.", "--type", type=click.Choice(HOW)
)
@_of_join(
    "aggregate",
    f"Keep each row one where several rows of the lake match: {', '.join(AGGREGATIONS)}. "
    "For a column of the lake's table, or for all that are not named (first). Can be repeated.",
    multiple=True,
    callback=lambda context, option, texts: read_ways(texts),
    metavar="[COLUMN=]WAY",
)
@_of_join(
    "suffix",
    "Put behind names of the lake's table that are taken.  [default: they become TABLE:COLUMN]",
    metavar="TEXT",
)
@_of_join(
    "provenance",
    "Which of the columns match_table, match_column, match_value and match_distance are added: "
    f"{', '.join(PROVENANCE)}.",
    metavar="NAME,...|none",
    **name_list(JoinRequest.provenance, read_names_or_none),
)
@_of_join(
    "many_to_many",
    "Allow a join that makes more than ten rows of each of yours on average; without it only joins "
    "of at most 5,000 rows do.",
)
@_of_join(
    "transform",
    "Join by a rule that is learned from the two tables and rewrites the key of one.",
)
@_of_join(
    "program",
    "With --transform: use programs that pexeso transform --save wrote, instead of learning.",
    metavar="FILE",
)
@_of_join("many_to_one", "With --transform: allow a rule that makes one key of several values.")
@click.option("--conflicts", metavar="FILE", help="Write every conflict to a .csv file.")
@click.option(
    "--lineage",
    metavar="FILE",
    help="Append OpenLineage events of the join, with the columns that each column comes from, to "
    "a file of JSON lines.",
)
@click.option("--overwrite", is_flag=True, help="Replace files that are there.")
@escape_formulas_option
@distance_settings
@takes(JoinRequest)
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


def read_ways(texts: tuple[str, ...]) -> dict[str, str] | None:
    """Read what ``--aggregate`` was given.

    Examples
    --------
    >>> read_ways(("list", "staff=sum")), read_ways(())
    ({'*': 'list', 'staff': 'sum'}, None)
    """
    ways: dict[str, str] = {}
    for text in texts:
        column, equals, way = text.rpartition("=")
        column = column if equals else OTHERS
        if way not in AGGREGATIONS:
            raise InputError(
                f"--aggregate takes COLUMN=WAY or WAY, a way of {', '.join(AGGREGATIONS)}. Got "
                f"{text!r}."
            )
        if column in ways:
            what = "all other columns" if column == OTHERS else repr(column)
            raise InputError(f"--aggregate was given twice for {what}: {ways[column]} and {way}.")
        ways[column] = way
    return ways or None


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
