"""``pexeso join``: your table with the matching rows of a table of the lake."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

import click

from pexeso import __version__
from pexeso.errors import InputError, OutputError
from pexeso.faces.cli.errors import Failure
from pexeso.faces.cli.options import (
    GroupedCommand,
    QueryCommand,
    cli_option,
    file_argument,
    index_argument,
    path_argument,
    query_argument,
    reading_option,
    takes,
)
from pexeso.faces.cli.output import (
    MAX_NAME,
    escape_formulas_option,
    html_option,
    output_options,
    plain,
    report_advice,
    report_column,
    require_page,
    require_writable,
    search_progress,
    table_lines,
    talk,
    warn,
    write_answer,
    write_page,
    write_table,
)
from pexeso.faces.cli.two_files import index_of_second, names_two_files
from pexeso.faces.service.requests import JoinRequest, VerifyRequest
from pexeso.faces.service.schema import OUTPUT
from pexeso.faces.service.transform import TransformRequest
from pexeso.faces.service.verbs import run
from pexeso.joins.exports.openlineage import DataSet, JoinMade, append_events
from pexeso.lake.rows import table_path
from pexeso.runtime.formatting import figure, many, percent

if TYPE_CHECKING:
    from pexeso.contracts import JoinChecks
    from pexeso.faces.service.bases import JoinResponse
    from pexeso.transform.joins.joined import TransformJoin


PRODUCER = f"pkg:pypi/pexeso@{__version__}"


def _made(request: JoinRequest, response: JoinResponse, output: str) -> JoinMade:
    from pexeso.build.visible import open_visible

    lake = str(open_visible(request.index).manifest.facts["lake"])
    query = _query(response.query.get("file"))
    lake_table = _lake_table(lake, response.match.table)
    joined, columns = response.joined, {}
    for name in joined.table.column_names:
        if name in joined.added:
            columns[name] = [(lake_table, source) for source in joined.added[name]]
        else:
            columns[name] = [(query, name)]
    return JoinMade(query, lake_table, DataSet.of(output), columns, PRODUCER)


def _lake_table(lake: str, table: str) -> DataSet:
    if not os.path.isabs(lake) and "://" not in lake:
        return DataSet.of(table, within=lake)
    path, member = table_path(lake, table)  # the lake itself, where it is one file
    return DataSet.of(f"{path}{member or ''}")


def _query(file: str | None) -> DataSet:
    # The path of standard input names another table in each run.
    if file is None:
        return DataSet.in_memory("values")
    return DataSet.in_memory("stdin") if file == "/dev/stdin" else DataSet.of(file)


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
    help="Write a .csv, .xlsx, .parquet, .arrow or .feather file; without it CSV goes to stdout.",
)
@cli_option(
    "--conflicts", group=OUTPUT, metavar="FILE", help="Write every conflict to a .csv file."
)
@cli_option(
    "--lineage",
    group=OUTPUT,
    metavar="FILE",
    help="Append OpenLineage events of the join, with the source of each column, to a file of JSON "
    "lines.",
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
    """Add the matching rows of a table of the lake to your table.

    \b
    Example:
      pexeso join lake.pexeso people.csv:company business/firms.csv:name -o joined.csv
      pexeso join lake.pexeso people.csv:company firms.csv:name --values one-to-one --type inner
      pexeso join lake.pexeso people.csv:company firms.csv:name --aggregate staff=sum
      pexeso join lake.pexeso people.csv:name mails.csv:address --transform
      pexeso join people.csv:company firms.csv:name

    The join keeps every row of FILE, in order. It repeats a row that several rows of the lake match
    (--aggregate keeps it one), and leaves cells empty where none does (--type inner drops the row).
    The columns match_value and match_distance say what each row was joined with. Without
    TABLE:COLUMN the join takes the column that pexeso search lists first. Cells keep the form that
    they have in both tables, those of CSV and JSON as text; mean, sum, min and max read the numbers
    in them.

    Two files are joined without an index: pexeso join FILE:COLUMN FILE:COLUMN indexes the second
    in a temporary folder. If it is stopped, repeat it: with -o it continues.

    FILE:COLUMN,COLUMN is a key of several columns. It is joined with TABLE:COLUMN,COLUMN, or, for
    TABLE alone, with the columns that match most keys. Keys match if they are equal, ignoring case
    and white space: pexeso join lake.pexeso games.csv:year,city
    sport/summer_olympics.csv:year,city.

    --transform joins keys that are written in different forms, such as names and e-mail addresses.
    It learns a program from the two tables, as pexeso transform does; for TABLE alone it finds the
    columns too.

    A line on stderr reports where the join had to choose: between several rows, between equally
    near values, or because two rows need the same value of the lake.

    In Python: pexeso.open_index(INDEX).search(values)[0].join(table), for a key
    .search_composite(table, columns)[0].join(table), and for a program
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
    if request.transform and names_two_files(request):
        raise click.UsageError(
            "--transform joins with a table of an index. Two files are joined by a learned rule by "
            "pexeso transform FILE:COLUMN FILE:COLUMN."
        )
    with index_of_second(request, output) as request:
        with search_progress():
            response = run(request)
        if response.transformed is None:
            report_column(request, response)
        else:
            _report_programs(response.transformed)
        if response.advised is not None:
            report_advice([response.advised])
        write_table(response.joined.table, output, overwrite=overwrite)
        _write_more(request, response, started, output, conflicts, lineage, overwrite=overwrite)
        _report_join(request, response, output, conflicts)


def _write_more(
    request: JoinRequest,
    response: JoinResponse,
    started: datetime,
    output: str | None,
    conflicts: str | None,
    lineage: str | None,
    *,
    overwrite: bool,
) -> None:
    """Write what there is to say of a join that was written."""
    try:
        if lineage is not None and output is not None:
            made = _made(request, response, output)
            append_events(lineage, made.events(started, datetime.now(UTC)))
        if conflicts is not None:
            write_table(response.joined.report.conflicts, conflicts, overwrite=overwrite)
    except OutputError as error:
        if output is None:
            raise
        raise OutputError(f"{error} The joined table is whole, in '{output}'.") from error


def _report_programs(joined: TransformJoin) -> None:
    """Print to stderr by which programs rows were joined, or why there is none."""
    for number, words in enumerate(joined.programs, 1):
        talk(f"Program {number}: {plain(words, MAX_NAME)}")
    if joined.tried is not None:
        talk(f"No program: {plain(joined.tried, MAX_SENTENCE)}.")


def _report_join(
    request: JoinRequest, response: JoinResponse, output: str | None, conflicts: str | None
) -> None:
    match, report = response.match, response.joined.report
    joined = ""
    if (report.matched_rows, report.rows) != (match.matched, match.total):
        joined = f", {report.matched_rows:,} of {many(report.rows, 'row')} joined"
    without_match = report.rows - report.matched_rows if request.how == "left" else 0
    n_rows, fan_out = report.joined_rows - without_match, ""
    if n_rows > report.matched_rows:
        fan_out = f", {figure(n_rows / report.matched_rows)} for each row that matches"
    where = "" if output is None else f", in '{output}'"
    column = plain(f"{match.table}:{match.column}", MAX_NAME)
    talk(
        f"Joined with {column}: {percent(match.joinability)} of the "
        f"{match.joinability_of} match ({match.matched:,} of {match.total:,}){joined}; "
        f"{many(report.joined_rows, 'row')}{fan_out}{where}"
    )
    for line in report.lines():
        warn(plain(line, MAX_NAME))
    if conflicts is not None and report.counts:
        talk(f"Every conflict, one row for each value that takes part, is in '{conflicts}'.")
    elif conflicts is not None:
        talk(f"There was no conflict: '{conflicts}' has only a header.")


@click.command(cls=GroupedCommand)
@path_argument("path", metavar="JOINS")
@click.argument("left", metavar="[FILE:COLUMN", required=False)
@click.argument("right", metavar="FILE:COLUMN]", required=False)
@output_options("json")
@takes(VerifyRequest)
def verify(request: VerifyRequest, form: str | None) -> None:
    """Check that declared joins still hold.

    \b
    Example:
      pexeso verify joins.toml orders.csv:city cities.csv:name
      pexeso verify joins.toml

    With two columns, adds their join to the TOML file JOINS, with what it makes now as bounds:
    min_share of the values that match, the relation of the rows, and max_rows_per_value. An entry
    may also have max_distance, rules and aliases. Tables are in the folder of the file or below it.

    With JOINS alone, makes all its joins again. The exit code is 1 if one breaks a bound, and 2 if
    the file is not as it must be.

    In Python: pexeso.verify(JOINS), pexeso.record_join(JOINS, LEFT, RIGHT).
    """  # noqa: D301  click reads \b
    checks = run(request)
    write_answer(checks, form, verified_lines)
    if request.left is not None:
        talk(f"Recorded in '{request.path}'.")
    elif checks.broken:
        raise Failure(f"{len(checks.broken):,} of {many(len(checks.joins), 'join')} broken.")


def verified_lines(checks: JoinChecks) -> Iterator[str]:
    for check in checks.joins:
        state = "broken" if check.broken else "ok"
        yield plain(f"{state:6}  {check.name}: {check.change()}", MAX_NAME)
        missing = check.missing() if check.broken else None
        for clause in (*check.broken, *([] if missing is None else [missing])):
            yield f"        {plain(clause, MAX_NAME)}"


_SHOWN = 3
# Rows of a rule that is said to be learned from few.
_FEW_ROWS = 10
# Characters of an expression that are shown.
_LONGEST = 1000


@click.command(cls=QueryCommand)
@file_argument("source")
@file_argument("target")
@cli_option(
    "-o",
    "--output",
    group=OUTPUT,
    metavar="OUT",
    help="Write the joined table: a .csv, .xlsx, .parquet, .arrow or .feather file.",
)
@cli_option(
    "--many-to-many",
    is_flag=True,
    help="Write OUT even if keys repeat in both tables, or make over ten times the rows.",
)
@cli_option(
    "--many-to-one",
    is_flag=True,
    help="Write OUT even if the rule makes one key from several values.",
)
@html_option
@reading_option(of="SOURCE", and_target=True)
@escape_formulas_option
@output_options("json")
@takes(TransformRequest, without=("max_programs", "seed"))
def transform(
    request: TransformRequest,
    output: str | None,
    html: str | None,
    many_to_many: bool,
    many_to_one: bool,
    form: str | None,
) -> None:
    """Join two tables by a learned rule that rewrites keys.

    \b
    Example:
      pexeso transform people.csv:name mails.csv:address
      pexeso transform people.csv mails.csv -o joined.csv --save rule.json
      pexeso transform more_people.csv:name mails.csv:address --program rule.json

    SOURCE and TARGET are FILE or FILE:COLUMN, or INDEX:TABLE:COLUMN for a table of the lake.
    FILE:COLUMN,COLUMN is a key of several columns. Without columns, pexeso finds those that join
    best.

    The rule cuts one key into pieces, changes their case and puts them together until they make the
    other key: "Obama, Barack(1961-)" becomes "Barack Obama". It is shown in words and as SQL
    (--json: Python too). Equal keys are joined first, then keys by one program after another, each
    learned from the rows that the others left, then nearly equal keys. A program is kept only if
    random letters would hardly join as many keys.

    In Python: pexeso.learn_transformation(FILE, FILE).
    """  # noqa: D301  click reads \b
    if output is not None:
        require_writable(output, overwrite=request.overwrite, option="OUT")
    if html is not None:
        require_page(html, overwrite=request.overwrite)
    _require_different(output, html, request.save)

    def check(joined: TransformJoin) -> None:
        if output is not None:
            from pexeso.transform.joins.details import require_distinct, require_moderate

            require_distinct(joined, many_to_one=many_to_one)
            require_moderate(joined, "left", many_to_many=many_to_many)

    joined = run(request, check=check)
    write_answer(joined, form, transform_lines)
    if html is not None:
        write_page([joined.to_html() or ""], html, overwrite=request.overwrite)
    if output is not None:
        table = joined.table(many_to_many=many_to_many, many_to_one=many_to_one)
        write_table(table, output, overwrite=request.overwrite)
        talk(f"Joined: '{output}'")
    if request.save is not None:
        talk(f"Program: '{request.save}'")


def transform_lines(joined: TransformJoin) -> list[str]:
    counts = joined.n_rows
    ways = ", ".join(
        f"{counts[kind]:,} {how}"
        for kind, how in (("equal", "equal"), ("program", "by program"), ("fuzzy", "nearly equal"))
        if counts[kind]
    )
    names = joined.reading.texts.names
    columns = ",".join(names[at] for at in joined.rule.columns)
    reading, keyed = joined.reading.file or "", joined.keyed.file or ""
    n_rows = sum(counts.values())
    lines = [
        f"{_file(reading)}:{plain(columns, MAX_NAME)} is joined with "
        f"{_file(keyed)}:{plain(joined.key_column, MAX_NAME)}",
        f"Rows of {_file(reading)} joined: {n_rows - counts['none']:,} of {n_rows:,}"
        f"{f' ({ways})' if ways else ''}",
    ]
    repeated = "; some keys have several rows in both tables, which -o refuses"
    lines.append(
        f"Keys joined by equal values or a program: {percent(joined.coverage)}"
        f"{f'; {joined.cardinality}' if joined.cardinality != 'none' else ''}"
        f"{repeated if joined.multiplies else ''}"
    )
    if joined.collapse is not None:
        lines.append(f"{joined.collapse}, which -o refuses without --many-to-one.")
    if joined.shared_keys is not None:
        shared = plain(joined.shared_keys, _LONGEST)
        lines.append(f"{shared}: look whether these are the same.")
    if joined.tried is not None:
        return [*lines, f"No program: {plain(joined.tried, _LONGEST)}."]
    if joined.refused is not None:
        refused = plain(joined.refused, _LONGEST)
        lines.append(f"Left alone: {refused}. --accept-rule joins these too.")
    for number, words in enumerate(joined.programs, 1):
        n_rows = many(int((joined.program_numbers == number).sum()), "row")
        lines.append(f"Program {number} ({n_rows}): {plain(words, _LONGEST)}")
    lines += [*_trust(joined), "", *_examples(joined)]
    sql = joined.sql() or ""
    if len(sql) <= _LONGEST:
        lines += ["", "SQL:", *(plain(line, _LONGEST) for line in sql.split("\n"))]
    return lines


def _trust(joined: TransformJoin) -> list[str]:
    """Return how far a rule can be trusted that was learned now."""
    n_rows = joined.n_rows["program"]
    if joined.rule.patterns or joined.held_out is None:
        return []
    right, n_held_out = joined.held_out
    few = f"; {n_rows} rows are few, and other rules may fit them too"
    return [
        f"Rules learned without them write {right} of {n_held_out} held-out keys right"
        f"{few if n_rows <= _FEW_ROWS else ''}."
    ]


def _require_different(*paths: str | None) -> None:
    named = [os.path.abspath(path) for path in paths if path is not None]
    if len(set(named)) < len(named):
        raise InputError("OUT, --html and --save name the same file. Give each its own.")


def _file(spec: str) -> str:
    from pexeso.transform.joins.sides import file_name

    return plain(file_name(spec) or "", MAX_NAME)


def _examples(joined: TransformJoin) -> list[str]:
    rows = list(islice((pair for pair in joined.pairs if pair[2] != "equal"), _SHOWN))
    if not rows:
        return ["No row was joined by a program."]
    cells = [(_one(left), _one(right), kind) for left, right, kind in rows]
    return table_lines(("source", "target", "joined"), cells, "<<<", limit=MAX_NAME)


def _one(value: str | tuple[str, ...]) -> str:
    return plain(value if isinstance(value, str) else ", ".join(map(str, value)), MAX_NAME)
