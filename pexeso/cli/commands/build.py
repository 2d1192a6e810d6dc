"""``pexeso index``: build an index of a lake."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING

import click

from pexeso.cli.errors import Interrupted, command_again
from pexeso.cli.logs import log_json_option
from pexeso.cli.options import build_settings
from pexeso.cli.output.output import count, human_bytes, is_terminal, talk
from pexeso.cli.spark import spark_options

if TYPE_CHECKING:
    from pexeso.diagnostics.info import IndexInfo
    from pexeso.options import BuildOptions


@click.command()
@click.argument("lake", metavar="LAKE")
@click.argument("index", metavar="INDEX")
@build_settings
@click.option("--overwrite", is_flag=True, help="Replace an index that is there; it serves until the new one is done.")
@spark_options
@log_json_option
def index(
    lake: str, index: str, options: BuildOptions, overwrite: bool, master: str | None, conf: dict[str, str]
) -> None:
    """Build an index of all tables in a folder.

    \b
    Example:
      pexeso index my_folder lake.pexeso

    LAKE is a folder of CSV, TSV, Parquet and JSON-lines tables, searched through all its sub-folders, or one table; or a
    table or database of Spark's catalog. INDEX is the folder to write; it must be absent or empty. Both may be URLs, such
    as s3://bucket/lake. What cannot be read is left out and listed by pexeso info. A build that was interrupted or killed
    goes on where it stopped when the same command is run again.

    In Python: pexeso.build_index(LAKE, INDEX).
    """  # noqa: D301  click reads \b
    started = time.perf_counter()
    try:
        from pexeso.index import build_index

        with stage_progress() as progress:
            built = build_index(
                lake,
                index,
                overwrite=overwrite,
                master=master,
                conf=conf,
                progress=progress,
                **{each.name: getattr(options, each.name) for each in fields(options)},
            )
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"Interrupted: '{index}' was not written, what it held before is as it was, and what is finished is kept for the next run. "
            f"Go on: {command_again()}"
        ) from error
    talk(summary(built.info(), time.perf_counter() - started))


def summary(info: IndexInfo, seconds: float) -> str:
    """Say in a few words what was indexed and what was not."""
    left_out = [
        count(sum(reasons.values()), noun)
        for reasons, noun in ((info.files_left_out, "file"), (info.columns_left_out, "column"))
        if reasons
    ]
    more = f"\nLeft out: {' and '.join(left_out)}; 'pexeso info {info.path}' says why." if left_out else ""
    return (
        f"Indexed {count(info.tables, 'table')}, {count(info.columns_indexed, 'column')} and {count(info.values, 'distinct value')} "
        f"into '{info.path}' ({human_bytes(info.bytes)}) in {seconds:.1f} s.{more}"
    )


@contextmanager
def stage_progress() -> Iterator[Callable[[str], None] | None]:
    """Show on stderr, where that is a terminal, which stage of a build or an update is under way."""
    if not is_terminal():
        yield None
        return
    from tqdm import tqdm

    from pexeso.build.job import stage_names

    stages = stage_names()
    with tqdm(total=len(stages), leave=False, bar_format="{desc:<12}{bar:20} {n_fmt}/{total_fmt} {elapsed}") as bar:

        def report(stage: str) -> None:
            bar.set_description_str(stage, refresh=False)
            bar.n = stages.index(stage)
            bar.refresh()

        yield report
