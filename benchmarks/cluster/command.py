"""The command ``python -m benchmarks cluster``: a build and a batch on a Spark cluster."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from benchmarks.cluster.lake import WIDTH
from benchmarks.cluster.running import DATA, Setup, run
from benchmarks.report import RESULTS, write_result
from pexeso.errors import PexesoError

WRONG_ANSWERS, FAILED = 1, 2


@click.command("cluster", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--columns", default=10_000, show_default=True, type=click.IntRange(WIDTH), help="Of the lake."
)
@click.option("--queries", default=100, show_default=True, type=click.IntRange(1))
@click.option(
    "--planted",
    default=8,
    show_default=True,
    type=click.IntRange(1),
    help="Columns for each query column that share a known part of its values.",
)
@click.option(
    "--workers", default=3, show_default=True, type=click.IntRange(1), help="Of one core each."
)
@click.option(
    "--partitions", default=4, show_default=True, type=click.IntRange(1), help="Of the index."
)
@click.option(
    "--executor-memory", default="1g", show_default=True, help="Of the Java of each worker."
)
@click.option("--driver-memory", default="2g", show_default=True, help="Of the Java of the driver.")
@click.option("--max-distance", default=0.05, show_default=True, help="Of two values that match.")
@click.option("--min-joinability", default=0.5, show_default=True, help="Of a column that joins.")
@click.option("--seed", default=0, show_default=True, help="Of all draws.")
@click.option("--spark-conf", "conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=DATA,
    help="Where lake and index are kept.  [default: benchmarks/data/cluster]",
)
@click.option(
    "--less",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A result of a smaller lake, so that what every build takes is not scaled.",
)
@click.option("--write", is_flag=True, help="Keep the result in benchmarks/results/cluster.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def cluster_command(
    data: Path, less: Path | None, write: bool, as_json: bool, columns: int, **options: Any
) -> None:
    """Index a made-up lake on a Spark cluster of this machine, search it, and check all answers.

    The lake is of tables of 50 columns, made by rule, so that it is known which columns join.
    Master and workers are processes of this machine, the driver another. 100 query columns are
    asked in one batch, on the cluster and without it.

    Exit status: 0, 1 when an answer differs from the truth, 2 when the run cannot be made.
    """
    import torch

    from benchmarks.machine import describe_machine

    if columns % WIDTH:
        raise click.UsageError(f"--columns is a multiple of {WIDTH}. Got {columns}.")
    small = None if less is None else json.loads(less.read_text(encoding="utf-8"))
    if small is not None and small["index"]["columns"] >= columns:
        raise click.UsageError(f"The lake of --less has fewer than {columns:,} columns.")
    wish = Setup(columns=columns, **options)
    started = time.monotonic()

    def tell(text: str) -> None:
        click.echo(f"{time.monotonic() - started:7.0f} s  {text}", err=True)

    machine = describe_machine(torch.device("cpu"))
    try:
        with ended_by_sigterm():
            result = run(wish, data, tell, small)
    except (PexesoError, RuntimeError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(FAILED)
    result["machine"] = machine
    if write:
        write_result(RESULTS / "cluster" / f"{wish.name}.json", result)
    click.echo(json.dumps(result) if as_json else table(result))
    if not result["agree"]:
        for difference in result["first_differences"]:
            click.echo(f"Differs: {json.dumps(difference)}", err=True)
        sys.exit(WRONG_ANSWERS)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does: so that no process is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def table(result: Mapping[str, Any]) -> str:
    """Return a result as text."""
    lake, index, build = result["lake"], result["index"], result["build"]
    lines = [
        f"{lake['columns']:,} columns in {lake['tables']:,} tables, {lake['pairs']:,} pairs, "
        f"{lake['values']:,} values; {lake['bytes'] / 1e6:,.0f} MB",
        f"index: {index['bytes'] / 1e6:,.0f} MB, {index['values']:,} values in its partitions",
        "",
        f"{'':14}{'wall s':>10}{'processor s':>13}{'of the driver':>15}{'tasks':>8}{'out MB':>9}",
    ]
    for name, stage in build["stages"].items():
        reported = stage.get("reported", {})
        lines.append(
            f"{name:14}{stage['seconds']:>10.1f}{stage['processor_seconds']:>13.1f}"
            f"{stage['driver_processor_seconds']:>15.1f}{reported.get('tasks', ''):>8}"
            f"{_mb(reported.get('bytes_out')):>9}"
        )
    for name, ran in {
        "build": build,
        **{f"batch {way}": ran for way, ran in result["batch"].items()},
    }.items():
        seconds = ran["processor_seconds"]
        lines.append(
            f"{name:14}{ran['seconds']:>10.1f}{seconds['all']:>13.1f}{seconds['driver']:>15.1f}"
        )
    peaks = ", ".join(f"{name} {size / 1e6:,.0f}" for name, size in build["peak_bytes"].items())
    disk = ", ".join(f"{name} {size / 1e6:,.0f}" for name, size in build["peak_disk_bytes"].items())
    lines += ["", f"peak memory of the build, MB: {peaks}", f"largest on disk, MB: {disk}"]
    for name, totals in result["a_billion_columns"].items():
        assumed = totals["assumed"]
        lines.append(
            f"a billion columns {name.replace('_', ' ')}, {assumed['cores']} cores: tasks "
            f"{totals['minutes_of_tasks']:,.0f} min, driver at most "
            f"{totals['minutes_of_driver']:,.0f} min, index {totals['index_bytes'] / 1e12:.2f} TB, "
            f"beside it {totals['scratch_bytes'] / 1e12:.2f} TB"
        )
    agree = "all as in the truth" if result["agree"] else f"{result['differences']} DIFFER"
    lines += ["", f"{result['answers']:,} answers, on the cluster and without it: {agree}"]
    return "\n".join(lines)


def _mb(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:,.1f}"
