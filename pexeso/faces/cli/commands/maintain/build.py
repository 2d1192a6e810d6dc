"""``pexeso index``: build an index of a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pexeso.faces.cli.options import (
    column_types_option,
    command,
    complete_path,
    index_argument,
    takes,
)
from pexeso.faces.cli.output.build_report import left_out_lines
from pexeso.faces.cli.output.output import human_bytes, output_options, talk, write_json
from pexeso.faces.cli.output.progress import run_stages
from pexeso.faces.service.index_requests import BuildRequest
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.build.diagnostics.info import IndexInfo


@command()
@click.argument("lake", metavar="LAKE", shell_complete=complete_path)
@index_argument
@output_options("json")
@column_types_option
@takes(BuildRequest, without=("n_pivots", "n_partitions", "seed"))
def index(request: BuildRequest, form: str | None) -> None:
    """Build an index of all tables in a folder.

    \b
    Example:
      pexeso index my_folder lake.pexeso

    LAKE is a folder of tables (CSV, Excel, SQLite, JSON, Parquet ...), searched through all its
    sub-folders, or one table; or a table or database of Spark's catalog. INDEX is the folder to
    write; it must be absent or empty. Both may be URLs, such as s3://bucket/lake. What cannot be
    read is left out and counted by reason; pexeso info INDEX --left-out lists it. A build that was
    interrupted or killed goes on where it stopped when the same command is run again.

    In Python: pexeso.build_index(LAKE, INDEX).
    """  # noqa: D301  click reads \b
    info, seconds = run_stages(request, "was not written, what it held before is as it was")
    if form == "json":
        write_json(info.to_dict())
    talk(summary(info, seconds))


def summary(info: IndexInfo, seconds: float) -> str:
    """Return in a few words what was indexed and what was not, and why."""
    return "\n".join((_indexed(info, seconds), *left_out_lines(info.left_out, info.path)))


def _indexed(info: IndexInfo, seconds: float) -> str:
    return (
        f"Indexed {many(info.tables, 'table')}, {many(info.columns_indexed, 'column')} and "
        f"{many(info.values, 'distinct value')} "
        f"into '{info.path}' ({human_bytes(info.bytes)}) in {seconds:.1f} s."
    )
