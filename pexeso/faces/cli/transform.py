"""``pexeso transform``: tables whose keys are written differently, joined by a learned program."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

import click

from pexeso.errors import InputError
from pexeso.faces.cli.options import (
    QueryCommand,
    cli_option,
    file_argument,
    reading_option,
    takes,
)
from pexeso.faces.cli.output import (
    MAX_NAME,
    escape_formulas_option,
    html_option,
    output_options,
    plain,
    require_page,
    require_writable,
    table_lines,
    talk,
    write_answer,
    write_page,
    write_table,
)
from pexeso.faces.service.schema import OUTPUT
from pexeso.faces.service.transform import TransformRequest
from pexeso.faces.service.verbs import run
from pexeso.runtime.formatting import percent
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.transform.joins.joined import TransformJoin


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
    help="Write the joined table: a .csv, .parquet, .arrow or .feather file.",
)
@cli_option(
    "--many-to-many",
    is_flag=True,
    help="Write OUT even if keys have several rows in both tables.",
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
            from pexeso.transform.joins.details import require_distinct  # brings numpy

            require_distinct(joined, many_to_one=many_to_one)
        if output is not None and joined.multiplies and not many_to_many:
            joined.table(many_to_one=many_to_one)  # says why it is refused before a file is written

    joined = run(request, check=check)
    write_answer(joined, form, transform_lines)
    if html is not None:
        write_page(iter([joined.to_html() or ""]), html, overwrite=request.overwrite)
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
