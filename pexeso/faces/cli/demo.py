"""``pexeso demo``: index the lake that comes with the package, and search it twice."""

from __future__ import annotations

import os
import shlex
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click
import pyarrow.compute as pc

import pexeso
from pexeso.errors import TableReadError
from pexeso.faces.cli.errors import Failure
from pexeso.faces.cli.options import command, path_argument
from pexeso.lake.containers.reader import read_table
from pexeso.results.query import read_query

LAKE, SUPPLIERS, AUTOGRAPHS = "lake", "my_suppliers.csv", "my_autographs.csv"

_NEXT = """\
Your turn:
  pexeso index YOUR_FOLDER my.pexeso          any folder of tables: CSV, Excel, SQLite, JSON ...
  pexeso search my.pexeso TABLE.csv:COLUMN    the columns that yours can be joined with
  pexeso join my.pexeso TABLE.csv:COLUMN -o joined.csv"""


@command()
@path_argument("keep", metavar="[INDEX]", required=False)
def demo(keep: str | None) -> None:
    """Index the demo lake and search it twice, showing what matches.

    \b
    Example:
      pexeso demo
      pexeso demo demo.pexeso

    The demo lake comes with the package. The command prints each command that it runs. INDEX is a
    folder to keep the index in; by default it is temporary.
    """  # noqa: D301  click reads \b
    demo_data = demo_folder()
    with ExitStack() as stack:
        index = keep or os.path.join(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="pexeso-demo-")), "demo.pexeso"
        )
        click.echo(
            f"{LAKE}/ holds some hundred small tables from many sources. First, an index of it:"
        )
        run("index", str(demo_data / LAKE), index)

        suppliers = str(demo_data / SUPPLIERS)
        click.echo(
            "\nYour table lists suppliers. Which tables of the lake have them too? The "
            "most similar come first, each with its first matching values:"
        )
        run("search", index, f"{suppliers}:supplier", "--explain", "--pairs", "3")

        autographs = str(demo_data / AUTOGRAPHS)
        n_rows, n_equal = equal_cells(demo_data / LAKE, demo_data / AUTOGRAPHS, "signed_by")
        click.echo(
            "\nAnother lists autographs. Some names are reversed, some misspelt. A join by equal "
            f"values would find {n_equal} of {n_rows} names. A join by similar values:"
        )
        run("search", index, f"{autographs}:signed_by", "-k", "2", "--explain", "--pairs", "8")
    click.echo(f"\n{_NEXT}")
    if keep is None:
        click.echo("\nThe index of this demo was temporary; pexeso demo INDEX keeps it.")


def demo_folder() -> Path:
    """Return the folder of the demo lake, relative if it lies below the current folder."""
    folder = Path(pexeso.__file__).resolve().parent / "demo"
    if not (folder / LAKE).is_dir():
        raise Failure(
            f"The demo lake is not where the package has it, in {folder}. Install pexeso again, "
            "or index your own folder: pexeso index FOLDER my.pexeso."
        )
    current_folder = Path.cwd()
    return folder.relative_to(current_folder) if folder.is_relative_to(current_folder) else folder


def run(*arguments: str) -> None:
    click.echo(f"$ {shlex.join(('pexeso', *arguments))}")
    click.get_current_context().find_root().command.main(
        args=list(arguments), prog_name="pexeso", standalone_mode=False
    )


def equal_cells(lake: Path, file: Path, column: str) -> tuple[int, int]:
    """Count the rows of a column, and those whose exact text occurs in a cell of the lake."""
    from pexeso.lake.files import find_tables

    values = read_query(file, column).values
    hits = pc.is_in(values, value_set=values.slice(0, 0))
    for table in find_tables(lake)[0]:
        try:
            cells = read_table(table.path).columns
        except TableReadError:
            continue  # some files of the demo lake are broken on purpose
        for lake_column in cells:
            hits = pc.or_(hits, pc.is_in(values, value_set=lake_column, skip_nulls=True))
    return len(values), pc.sum(hits).as_py()
