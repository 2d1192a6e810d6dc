"""``pexeso overlap`` and ``pexeso contain``: columns that share values with a column, as equal texts."""

from __future__ import annotations

import click

from pexeso.cli.commands.update import build_containment, build_overlap
from pexeso.cli.groups import WithBuild
from pexeso.cli.options import index_argument, query_argument, takes, with_options
from pexeso.cli.output.output import output_options, tell_column
from pexeso.cli.output.report import EQUAL, PairsCount, tell_work, write_results
from pexeso.options import DEFAULT_MIN_CONTAINMENT, DEFAULT_OVERLAP_COLUMNS
from pexeso.service.requests import ContainRequest, OverlapRequest
from pexeso.service.verbs import run

_shared_options = with_options(
    click.option("--exclude-self", is_flag=True, help="Leave out the table that the query column is read from."),
    click.option("--explain", is_flag=True, help="Show the values that both columns have."),
    click.option(
        "--values",
        "n_shown",
        type=PairsCount(),
        default=5,
        metavar="N|all",
        show_default=True,
        help="With --explain in a table: so many values of each column; JSON and CSV have all.",
    ),
    click.option(
        "--all-columns",
        is_flag=True,
        help="Search with each column of FILE in turn, those of numbers too.",
    ),
    output_options("json", "jsonl", "csv"),
)


@click.command()
@index_argument
@query_argument
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
@takes(OverlapRequest)
def find_overlap(request: OverlapRequest, n_shown: float, form: str | None) -> None:
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
    _write(request, n_shown, form)


@click.command()
@index_argument
@query_argument
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
@takes(ContainRequest)
def find_containing(request: ContainRequest, n_shown: float, form: str | None) -> None:
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
    _write(request, n_shown, form)


def _write(request: OverlapRequest | ContainRequest, n_shown: float, form: str | None) -> None:
    results, many = run(request).results, request.all_columns
    tell_column(request, results[0])
    write_results(EQUAL, results, form, n_shown, explain=request.explain, name_queries=many, option="--values")
    tell_work(EQUAL, results, name_queries=many)


overlap = WithBuild("overlap", find_overlap, build_overlap)
contain = WithBuild("contain", find_containing, build_containment)
