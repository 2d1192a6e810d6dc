"""``pexeso graph`` and ``pexeso export``: all columns of a lake that join, and files for others."""

from __future__ import annotations

import time
from functools import partial
from itertools import islice
from typing import Any

import click

from pexeso.faces.cli.options import command, index_argument, takes
from pexeso.faces.cli.output import (
    MAX_NAME,
    counted_progress,
    escapes_formulas,
    heading,
    output_options,
    plain,
    table_lines,
    talk,
    write_csv,
    write_data,
    write_json_with_rows,
)
from pexeso.faces.service.graph import ExportRequest, GraphRequest, graph_document
from pexeso.faces.service.verbs import run
from pexeso.joins.exports.files import EDGES, FORMATS
from pexeso.joins.graph.graphs import EdgeStream
from pexeso.runtime.formatting import many, percent

# Edges that a table shows; the others are counted.
MAX_SHOWN = 50


@command()
@index_argument
@output_options("json", "csv")
@takes(GraphRequest, without=("device", "memory_budget"))
def graph(request: GraphRequest, form: str | None) -> None:
    """Find all pairs of columns of the lake that join, in one pass.

    \b
    Example:
      pexeso graph lake.pexeso
      pexeso graph lake.pexeso -o joins.parquet
      pexeso graph lake.pexeso --min-joinability 0.9 --fold-copies -o joins.mmd
      pexeso graph lake.pexeso --method semantic -o joins.graphml

    An edge leads from a column to a column of another table that has its values, and has the share
    of its distinct values that match there. The other direction is a separate edge. The edges of a
    column are those that a search with it finds. Only the index is read, and only the edges of one
    batch of columns are in memory, so a file may be larger than memory.

    .jsonl, .csv and .parquet files have a row for each edge, .mmd is a Mermaid flowchart of the 500
    strongest edges, .graphml is for Gephi, yEd, Cytoscape and networkx, .html is a map of the
    tables.

    In Python: pexeso.open_index(INDEX).graph().
    """  # noqa: D301  click reads \b
    if request.output is not None and form is not None:
        raise click.UsageError(f"-o FILE chooses the format by its name: leave --{form} out.")
    if request.output is not None and escapes_formulas():
        raise click.UsageError(
            "--escape-formulas goes with --csv: files of -o have the names as they are. Write "
            "--csv >FILE."
        )
    started = time.perf_counter()
    with counted_progress("comparing", unit=" columns") as progress:
        if request.output is not None:
            _report_written(run(request, progress=progress), started)
            return
        counts = run(request, progress=progress, take=partial(_print, form=form))
    _report(counts, started)


@command()
@click.argument("format", type=click.Choice(list(FORMATS)))
@index_argument
@takes(ExportRequest, without=("device", "memory_budget"))
def export(request: ExportRequest) -> None:
    """Write the joins of a lake for a catalogue or another tool.

    \b
    Example:
      pexeso export dbt lake.pexeso -o models
      pexeso export openmetadata lake.pexeso -o joins.jsonl --namespace files.default.lake
      pexeso export graphml lake.pexeso -o joins.graphml

    dbt: relationships tests for columns whose values are all in another one, with the measures.
    openmetadata: the joins of each table, one a line. mermaid and graphml: as pexeso graph -o. For
    OpenLineage, pexeso join --lineage writes an event for each join.

    In Python: pexeso.open_index(INDEX).graph().write(FILE).
    """  # noqa: D301  click reads \b
    started = time.perf_counter()
    with counted_progress("comparing", unit=" columns") as progress:
        _report_written(run(request, progress=progress), started)


def _print(stream: EdgeStream, *, form: str | None) -> dict[str, Any]:
    if form == "csv":
        write_csv(EDGES.names, (list(row.values()) for row in stream.rows()))
    elif form == "json":
        document, rows = graph_document(stream)
        write_json_with_rows(document, "edges", rows)
    else:
        _print_table(stream)
    return stream.summary()


def _print_table(stream: EdgeStream) -> None:
    rows = stream.rows()
    shown = [
        [
            f"{row['left_table']}:{row['left_column']}",
            f"{row['right_table']}:{row['right_column']}",
            percent(row["joinability"]),
            f"{row['matched']:,} of {row['total']:,}",
        ]
        for row in islice(rows, MAX_SHOWN)
    ]
    n_more = sum(1 for _ in rows)
    if not shown:
        return
    header, *lines = table_lines(["column", "has its values", "share", "values"], shown, "<<>>")
    write_data("".join(f"{line}\n" for line in (heading(header), *lines)))
    if n_more:
        write_data(f"{many(n_more, 'more edge')} (-o FILE or --json has all)\n")


def _report_written(written: Any, started: float) -> None:
    _report(written.counts, started, f", in '{plain(written.path, MAX_NAME)}'")


def _report(counts: dict[str, Any], started: float, where: str = "") -> None:
    method, n_copies, n_cut = counts["options"]["method"], counts["copies"], counts["cut"]
    folded = f", {n_copies:,} {'copy' if n_copies == 1 else 'copies'} folded" if n_copies else ""
    talk(
        f"{many(counts['edges'], 'edge')} between {many(counts['columns'], 'column')}{folded}, "
        f"by {method}{where}, in {time.perf_counter() - started:.1f} s"
    )
    if n_cut:
        more = f"{'has' if n_cut == 1 else 'have'} more than {counts['options']['k']}"
        talk(f"{many(n_cut, 'column')} {more} (-k all shows them).")
