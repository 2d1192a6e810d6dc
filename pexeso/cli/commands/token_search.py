"""``pexeso overlap`` and ``pexeso contain``: columns that share exact values with a column."""

from __future__ import annotations

from functools import partial

import click

from pexeso.cli.commands.maintain.update import build_containment, build_overlap
from pexeso.cli.groups import WithVerbs
from pexeso.cli.options import (
    field_option,
    fold_copies_option,
    index_argument,
    query_argument,
    takes,
    top_k_option,
    with_options,
)
from pexeso.cli.output.output import output_options, tell_column
from pexeso.cli.output.report import EQUAL, shown_option, tell_work, write_results
from pexeso.cli.standard_input import QueryCommand
from pexeso.options import DEFAULT_COLUMNS
from pexeso.service.requests import ContainRequest, OverlapRequest
from pexeso.service.verbs import run

_of_overlap, _of_containment = (
    partial(field_option, OverlapRequest),
    partial(field_option, ContainRequest),
)
_shared_options = with_options(
    fold_copies_option(OverlapRequest),
    _of_overlap("exclude_self", "Leave out the table that the query column is read from."),
    _of_overlap("explain", "Show the values that both columns have."),
    shown_option(
        "--values",
        "With --explain in a table: so many values of each column; JSON and CSV have all.",
    ),
    _of_overlap("all_columns", "Search with each column of FILE in turn, those of numbers too."),
    output_options("json", "jsonl", "csv"),
)


@click.command(cls=QueryCommand)
@index_argument
@query_argument
@top_k_option(
    OverlapRequest,
    f"The N best columns; all: every column that shares a value.  [default: {DEFAULT_COLUMNS}]",
)
@_shared_options
@takes(OverlapRequest)
def find_overlap(request: OverlapRequest, n_shown: int, form: str | None) -> None:
    """Find the lake columns that share most values with one of yours.

    \b
    Example:
      pexeso overlap lake.pexeso orders.csv:customer_id -k 5
      pexeso overlap lake.pexeso orders.csv:#3 --explain
      pexeso overlap build lake.pexeso

    Values are compared as texts, so columns of numbers and codes join as well as words do: 1, "1"
    and 1.0 are equal, "01" is another, and case counts. The answer is exact. The index needs its
    part for this: from pexeso index --include overlap, or from pexeso overlap build INDEX, which
    adds it to an index that is there.

    In Python: pexeso.open_index(INDEX).overlap(values).
    """  # noqa: D301  click reads \b
    _write(request, n_shown, form)


@click.command(cls=QueryCommand)
@index_argument
@query_argument
@_of_containment(
    "min_containment",
    "Smallest share of your distinct values that a column must have.",
    metavar="0..1",
)
@_of_containment(
    "verify",
    "Of an index with bands: count the values of every candidate, so that nothing is found "
    "wrongly; or estimate from signatures.",
)
@top_k_option(
    ContainRequest,
    f"The N best columns; all: every column that has enough.  [default: {DEFAULT_COLUMNS}]",
)
@_shared_options
@takes(ContainRequest)
def find_containing(request: ContainRequest, n_shown: int, form: str | None) -> None:
    """Find the lake columns that contain the values of one of yours.

    \b
    Example:
      pexeso contain lake.pexeso orders.csv:customer_id --min-containment 0.7
      pexeso contain lake.pexeso orders.csv:customer_id --min-containment 1 --explain
      pexeso contain build lake.pexeso

    A column is found where it has a given share of your distinct values, compared as in pexeso
    overlap. The answer is exact; of an index with bands (--include bands) a column right at the
    threshold may be missed, with a probability of at most 0.02. The index needs its part for this:
    from pexeso index --include containment, or from pexeso contain build INDEX, which adds it to an
    index that is there.

    In Python: pexeso.open_index(INDEX).contain(values).
    """  # noqa: D301  click reads \b
    _write(request, n_shown, form)


def _write(request: OverlapRequest | ContainRequest, n_shown: int, form: str | None) -> None:
    results, many = run(request).results, request.all_columns
    tell_column(request, results[0])
    write_results(
        EQUAL, results, form, n_shown, explain=request.explain, name_queries=many, option="--values"
    )
    tell_work(EQUAL, results, name_queries=many)


overlap = WithVerbs("overlap", find_overlap, build_overlap)
contain = WithVerbs("contain", find_containing, build_containment)
