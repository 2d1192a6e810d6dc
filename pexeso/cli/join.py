"""``pexeso join``: a table of yours with the rows of a found one added."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pexeso.cli.explain import split_lake_column
from pexeso.cli.files import require_free, written_whole
from pexeso.cli.options import Asked, distance_settings
from pexeso.cli.output import count, talk
from pexeso.cli.report import percent
from pexeso.cli.search import read_queries
from pexeso.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from pexeso.index import Index
    from pexeso.queries import QueryColumn
    from pexeso.results import Match

SUFFIXES = (".csv", ".parquet")


@click.command()
@click.argument("index", metavar="INDEX")
@click.argument("query", metavar="FILE:COLUMN")
@click.argument("lake_column", metavar="[TABLE:COLUMN]", required=False)
@click.option("-o", "--output", metavar="OUT", help="A .csv or .parquet file; without it CSV goes to stdout.")
@distance_settings
@click.option(
    "--values",
    type=click.Choice(("nearest", "all")),
    default="nearest",
    show_default=True,
    help="Join the nearest value of the lake, or all that match.",
)
@click.option("--overwrite", is_flag=True, help="Replace a file OUT that is there.")
def join(
    index: str,
    query: str,
    lake_column: str | None,
    output: str | None,
    asked: Asked,
    values: str,
    overwrite: bool,
) -> None:
    """Add to a table of yours the matching rows of one of the lake.

    \b
    Example:
      pexeso join lake.pexeso people.csv:company business/firms.csv:name -o joined.csv

    Every row of FILE is kept, in order; it is repeated where several rows of the lake match, and has empty cells where none does. The
    columns match_value and match_distance say what it was joined with. Without TABLE:COLUMN the best column is taken.

    In Python: pexeso.open_index(INDEX).search(values)[0].join(table).
    """  # noqa: D301  click reads \b
    if output is not None:
        if not output.lower().endswith(SUFFIXES):
            raise InputError(f"OUT must end in {' or '.join(SUFFIXES)}. Got {output!r} instead.")
        require_free(Path(output), overwrite=overwrite)
    wanted = None if lake_column is None else split_lake_column(lake_column)
    (column,) = read_queries(query, every_column=False)
    opened = asked.open(index)
    match = (
        _best(opened, column, asked) if wanted is None else opened.explain(column, *wanted, **asked.to_search()).match
    )
    frame, position = _table(column)
    joined = match.join(frame, position, values=values)
    if output is None:
        click.echo(joined.to_csv(index=False), nl=False)
    else:
        with written_whole(output, overwrite=overwrite) as temporary:
            _write(joined, temporary, parquet=output.lower().endswith(".parquet"))
    where = "" if output is None else f", in '{output}'"
    talk(
        f"Joined with {match.table}:{match.column}: {percent(match.joinability)} of the rows match "
        f"({match.matched:,} of {match.total:,}); {count(len(joined), 'row')}{where}"
    )


def _best(index: Index, column: QueryColumn, asked: Asked) -> Match:
    found = index.search(column, **{**asked.to_search(), "k": 1, "exclude_self": True})
    if not len(found):
        raise InputError(
            f"No column of the lake has a value within distance {found.options.max_distance:g} of '{column.column}'. Try a larger --max-distance."
        )
    return found[0]


def _table(column: QueryColumn) -> tuple[pd.DataFrame, int]:
    """Read the whole table of a query column, every cell as text; names that repeat are replaced by ``#position``."""
    import pandas as pd

    from pexeso.lake.columns import label_columns
    from pexeso.lake.reader import read_table

    table = read_table(str(column.file))
    labels = label_columns(table.names)
    frame = pd.DataFrame({label: values.to_pandas() for label, values in zip(labels, table.columns, strict=True)})
    return frame, labels.index(str(column.column))


def _write(frame: pd.DataFrame, path: Path, *, parquet: bool) -> None:
    if parquet:
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False)
