"""``pexeso index``: build an index of a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pexeso.cli.logs import log_json_option
from pexeso.cli.options import build_settings, complete_path, index_argument, spark_options, takes
from pexeso.cli.output.output import count, human_bytes, talk
from pexeso.cli.output.progress import run_stages
from pexeso.service.requests import BuildRequest

if TYPE_CHECKING:
    from pexeso.diagnostics.info import IndexInfo


@click.command()
@click.argument("lake", metavar="LAKE", shell_complete=complete_path)
@index_argument
@build_settings
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace an index that is there; it serves until the new one is done.",
)
@spark_options
@log_json_option
@takes(BuildRequest)
def index(request: BuildRequest) -> None:
    """Build an index of all tables in a folder.

    \b
    Example:
      pexeso index my_folder lake.pexeso

    LAKE is a folder of CSV, TSV, Parquet and JSON-lines tables, searched through all its
    sub-folders, or one table; or a table or database of Spark's catalog. INDEX is the folder to
    write; it must be absent or empty. Both may be URLs, such as s3://bucket/lake. What cannot be
    read is left out and listed by pexeso info. A build that was interrupted or killed goes on where
    it stopped when the same command is run again.

    In Python: pexeso.build_index(LAKE, INDEX).
    """  # noqa: D301  click reads \b
    talk(summary(*run_stages(request, "was not written, what it held before is as it was")))


def summary(info: IndexInfo, seconds: float) -> str:
    """Say in a few words what was indexed and what was not."""
    left_out = [
        count(sum(reasons.values()), noun)
        for reasons, noun in ((info.files_left_out, "file"), (info.columns_left_out, "column"))
        if reasons
    ]
    more = (
        f"\nLeft out: {' and '.join(left_out)}; 'pexeso info {info.path}' says why."
        if left_out
        else ""
    )
    return (
        f"Indexed {count(info.tables, 'table')}, {count(info.columns_indexed, 'column')} and "
        f"{count(info.values, 'distinct value')} "
        f"into '{info.path}' ({human_bytes(info.bytes)}) in {seconds:.1f} s.{more}"
    )
