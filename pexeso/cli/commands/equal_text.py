"""``pexeso overlap`` and ``pexeso contain``: columns that share values with a column, as equal texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pexeso.cli.commands.equal_text_build import build_containment, build_overlap
from pexeso.cli.groups import WithBuild
from pexeso.cli.output.output import (
    MAX_NAME,
    count,
    output_options,
    table_lines,
    talk,
    write_csv,
    write_json,
    write_json_line,
)
from pexeso.cli.output.report import ALL_PAIRS, PairsCount, milliseconds, percent
from pexeso.cli.query_columns import read_queries
from pexeso.options import DEFAULT_MIN_CONTAINMENT, DEFAULT_OVERLAP_COLUMNS
from pexeso.runtime.formatting import plain

if TYPE_CHECKING:
    from pexeso.token_search.results import EqualTextMatch, EqualTextResult

Command = TypeVar("Command", bound=Callable[..., Any])

VALUES_OPTION = "--values"
"""The option by which more shared values are shown."""

_INDENT = "    "
_SHARED = (
    click.option("--exclude-self", is_flag=True, help="Leave out the table that the query column is read from."),
    click.option("--explain", is_flag=True, help="Show the values that both columns have."),
    click.option(
        "--values",
        "n_values",
        type=PairsCount(),
        default=5,
        metavar="N|all",
        show_default=True,
        help="With --explain in a table: so many values of each column; JSON and CSV have all.",
    ),
    click.option(
        "--all-columns",
        "every_column",
        is_flag=True,
        help="Search with each column of FILE in turn, those of numbers too.",
    ),
    output_options("json", "jsonl", "csv"),
)


def _shared_options(command: Command) -> Command:
    for option in reversed(_SHARED):
        command = option(command)
    return command


@click.command()
@click.argument("index", metavar="INDEX")
@click.argument("query", metavar="FILE:COLUMN")
@click.option(
    "-k",
    "--top-k",
    "k",
    type=int,
    default=DEFAULT_OVERLAP_COLUMNS,
    metavar="N",
    show_default=True,
    help="So many columns.",
)
@_shared_options
def find_overlap(
    index: str,
    query: str,
    k: int,
    exclude_self: bool,
    explain: bool,
    n_values: float,
    every_column: bool,
    form: str | None,
) -> None:
    """Find the lake columns that share most values with one of yours.

    \b
    Example:
      pexeso overlap lake.pexeso orders.csv:customer_id -k 20
      pexeso overlap lake.pexeso orders.csv:#3 --explain
      pexeso overlap build lake.pexeso

    Values are compared as texts, so columns of numbers and codes join as well as words do: 1, "1" and 1.0 are equal, "01" is
    another, and case counts. The answer is exact. The index needs its part for this: from pexeso index --with overlap, or from pexeso overlap build INDEX,
    which adds it to an index that is there.

    In Python: pexeso.open_index(INDEX).overlap(values).
    """  # noqa: D301  click reads \b
    from pexeso.token_search.opening import open_token_sets

    opened = open_token_sets(index)
    queries = read_queries(query, every_column, numbers=True)
    found = [opened.overlap(each, k=k, exclude_self=exclude_self) for each in queries]
    write_equal_text(found, form or "table", every_column, n_values if explain else 0, with_values=explain)


@click.command()
@click.argument("index", metavar="INDEX")
@click.argument("query", metavar="FILE:COLUMN")
@click.option(
    "--min-containment",
    type=float,
    default=DEFAULT_MIN_CONTAINMENT,
    metavar="0..1",
    show_default=True,
    help="Smallest share of your distinct values that a column must have.",
)
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Count the values of every candidate, so that nothing is found wrongly; or estimate from signatures.",
)
@click.option("-k", "--top-k", "k", type=int, metavar="N", help="Only the N best columns.")
@_shared_options
def find_containing(
    index: str,
    query: str,
    min_containment: float,
    verify: bool,
    k: int | None,
    exclude_self: bool,
    explain: bool,
    n_values: float,
    every_column: bool,
    form: str | None,
) -> None:
    """Find the lake columns that contain the values of one of yours.

    \b
    Example:
      pexeso contain lake.pexeso orders.csv:customer_id --min-containment 0.7
      pexeso contain lake.pexeso orders.csv:customer_id --min-containment 1 --explain
      pexeso contain build lake.pexeso

    A column is found where it has a given share of your distinct values, compared as in pexeso overlap. With --verify nothing is
    found wrongly, and a column right at the threshold is missed with a probability of at most 0.02. The index needs its part
    for this: from pexeso index --with containment, or from pexeso contain build INDEX, which adds it to an index that is there.

    In Python: pexeso.open_index(INDEX).contain(values).
    """  # noqa: D301  click reads \b
    from pexeso.token_search.opening import open_token_sets

    opened = open_token_sets(index)
    asked = {"min_containment": min_containment, "verify": verify, "k": k, "exclude_self": exclude_self}
    found = [opened.contain(each, **asked) for each in read_queries(query, every_column, numbers=True)]
    write_equal_text(found, form or "table", every_column, n_values if explain else 0, with_values=explain)


overlap = WithBuild("overlap", find_overlap, build_overlap)
contain = WithBuild("contain", find_containing, build_containment)


def write_equal_text(
    results: Sequence[EqualTextResult],
    form: str,
    name_queries: bool,
    n_values: float,
    *,
    with_values: bool,
    option: str = VALUES_OPTION,
) -> None:
    """Write results to stdout in one of the forms, and what the searches did to stderr.

    Parameters
    ----------
    results
        One for each query column; all asked alike.
    form
        ``table``, ``json``, ``jsonl`` or ``csv``.
    name_queries
        Say which query column a result is of, as there may be many.
    n_values
        In a table: so many shared values of each column.
    with_values
        In the other forms: with all shared values.
    option
        By which more of them are shown in a table.
    """
    if form == "csv":
        _write_csv(results, with_values, name_queries)
    for position, result in enumerate(results):
        if form == "json":
            (write_json_line if name_queries else write_json)(result.to_dict(explain=with_values))
        elif form == "jsonl":
            named = {"query_column": result.query["column"]} if name_queries else {}
            for row in result.to_dict(explain=with_values)["results"]:
                write_json_line({**named, **row})
        elif form == "table":
            if name_queries:
                click.echo(f"{'' if position == 0 else chr(10)}{plain(result.query['column'])}")
            _write_table(result, n_values, option)
    for result in results:
        talk(_stats_line(result, name_queries))


def _write_csv(results: Sequence[EqualTextResult], with_values: bool, name_queries: bool) -> None:
    columns = (*(("query_column",) if name_queries else ()), *results[0].fields, *(("value",) if with_values else ()))

    def rows(result: EqualTextResult) -> Any:
        for row, match in zip(result.rows(), result, strict=True):
            facts = (*((result.query["column"],) if name_queries else ()), *row.values())
            for value in match.shared() if with_values else ():
                yield (*facts, value)
            if not with_values:
                yield facts

    write_csv(columns, (row for result in results for row in rows(result)))


def _write_table(result: EqualTextResult, n_values: float, option: str) -> None:
    if not len(result):
        talk(_found_nothing(result))
        return
    asked = result.query["values"]
    rows = [(*_shares(match, asked), f"{match.size:,}", match.table, match.column) for match in result]
    header, *lines = table_lines(("containment", "overlap", "values", "table", "column"), rows, ">>><<", most=MAX_NAME)
    below = [value_lines(match.shared(), n_values, option) if n_values else [] for match in result]
    click.echo("\n".join([header, *explained_lines(lines, below)]))


def _shares(match: EqualTextMatch, asked: int) -> tuple[str, str]:
    """Write containment, with ~ before an estimate, and the overlap as a fraction of the query's values."""
    if match.estimated:
        return f"~{percent(match.containment)}", ""
    return percent(match.containment), f"{match.overlap:,}/{asked:,}"


def explained_lines(lines: Sequence[str], below: Sequence[Sequence[str]]) -> list[str]:
    """Put below each line what explains it, and a blank line between two that are explained.

    Examples
    --------
    >>> explained_lines(["a", "b"], [["  x"], []]), explained_lines(["a", "b"], [[], []])
    (['a', '  x', '', 'b'], ['a', 'b'])
    """
    apart = any(below)
    shown = [each for line, more in zip(lines, below, strict=True) for each in (line, *more, *([""] if apart else []))]
    return shown[:-1] if apart else shown


def value_lines(values: Sequence[str], n_values: float, option: str = VALUES_OPTION) -> list[str]:
    """Lay out shared values, and say how many more there are.

    Examples
    --------
    >>> value_lines(["7", "8", "9"], 2)
    ['    7', '    8', '    and 1 more value (--values all)']
    """
    shown = values if n_values == ALL_PAIRS else values[: int(n_values)]
    lines = [f"{_INDENT}{plain(value)}" for value in shown]
    n_more = len(values) - len(shown)
    return [*lines, f"{_INDENT}and {count(n_more, 'more value')} ({option} all)"] if n_more else lines


def _found_nothing(result: EqualTextResult) -> str:
    values = result.query["values"]
    if not values:
        return "The query column has no value: there is nothing to look for."
    least = result.options.get("min_containment")
    asked = "the one value" if values == 1 else f"the {count(values, 'value')}"
    if least is None:
        return f"No column has {'' if values == 1 else 'any of '}{asked}. pexeso search looks for other spellings too."
    return f"No column has {percent(least)} of {asked}. Try a smaller --min-containment, or pexeso search for other spellings."


def _stats_line(result: EqualTextResult, name: bool) -> str:
    of = f"{plain(result.query['column'])}: " if name else ""
    return f"{of}{count(len(result), 'column')} in {milliseconds(result.stats['seconds'])} ms"
