"""The command ``python -m benchmarks.start``: what small builds and first answers wait for.

A build of the demo lake, in its own process and on Spark, beside the start of Spark with one
trivial job; and a search of its index beside the start of Python and of numba. Each is a new
process; they are measured in turn, and the median over rounds is told, of wall time and of
processor time, that of Java and of Spark's workers included.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.origin import ROOT, environment_with_this_code
from benchmarks.report import RESULTS, write_result
from pexeso.build.spark.class_archive import archive_path
from pexeso.build.spark.java import find_java

LAKE = ROOT / "examples" / "lake"
QUERY = ROOT / "examples" / "my_suppliers.csv"

SESSION = """
from pexeso.build.build import SMALL_LAKE_SETTINGS
from pexeso.build.spark.session import spark_session

def same(batches):
    yield from batches

with spark_session(conf=SMALL_LAKE_SETTINGS) as spark:
    print(spark.range(0, 2, 1, 2).mapInArrow(same, "id long").collect())
"""
"""A session with the settings of small builds, and one job that does nothing."""

RATIOS = {
    "index_over_session": ("index", "session"),
    "index_on_spark_over_session": ("index_on_spark", "session"),
    "search_over_numba": ("search", "numba"),
}


def programs(folder: Path, lake: Path) -> dict[str, list[str]]:
    """Return the commands to measure, by name; the index that is searched is made by the other."""
    index, pexeso = str(folder / "lake.pexeso"), ["-m", "pexeso"]
    commands = {
        "session": ["-c", SESSION],
        "index": [*pexeso, "index", str(lake), index, "--overwrite"],
        "index_on_spark": [
            *(*pexeso, "index", str(lake), str(folder / "spark.pexeso"), "--overwrite"),
            *("--spark-master", "local[*]"),
        ],
        "search": [*pexeso, "search", index, f"{QUERY}:supplier"],
        "version": [*pexeso, "--version"],
        "numba": ["-c", "import numba"],
        "python": ["-c", "pass"],
    }
    return {name: [sys.executable, *arguments] for name, arguments in commands.items()}


def seconds_of(command: Sequence[str]) -> tuple[float, float]:
    """Run a command; return its wall time, and the processor time of it and all it waited for."""
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment_with_this_code()
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise click.ClickException(
                f"{' '.join(command[1:4])} ended with code {process.returncode}: "
                f"{output.read().decode(errors='replace').strip()}"
            )
    return wall, used.ru_utime + used.ru_stime


def measured(commands: dict[str, list[str]], rounds: int) -> dict[str, Any]:
    """Run all commands in turn, once unmeasured; return medians, and medians of ratios."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            seconds = seconds_of(command)
            if number:
                times[name].append(seconds)
    result: dict[str, Any] = {
        name: {
            "wall_seconds": round(statistics.median(wall for wall, _ in seconds), 3),
            "processor_seconds": round(statistics.median(used for _, used in seconds), 3),
        }
        for name, seconds in times.items()
    }
    for name, (one, other) in RATIOS.items():
        if one in times and other in times:
            pairs = list(zip(times[one], times[other], strict=True))
            result[name] = {
                kind: round(statistics.median(a[at] / b[at] for a, b in pairs), 2)
                for at, kind in enumerate(("wall", "processor"))
            }
    return result


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--rounds", default=5, show_default=True, type=click.IntRange(1), help="Measured rounds."
)
@click.option("--lake", default=LAKE, type=click.Path(exists=True, path_type=Path), help="A lake.")
@click.option("--only", help="Some commands, such as numba,python.")
@click.option("--write", is_flag=True, help="Keep the result in benchmarks/results.")
def main(rounds: int, lake: Path, only: str | None, write: bool) -> None:
    """Measure how long new processes take to build and search the index of a small lake."""
    folder = Path(tempfile.mkdtemp(prefix="pexeso-start-"))
    try:
        commands = programs(folder, lake)
        chosen = only.split(",") if only else list(commands)
        if unknown := sorted(set(chosen) - set(commands)):
            raise click.BadParameter(
                f"known are {', '.join(commands)}. Got {', '.join(unknown)}.", param_hint="--only"
            )
        result = measured({name: commands[name] for name in chosen}, rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name, numbers in result.items():
        click.echo(f"{name}: {json.dumps(numbers)}")
    if write:
        import torch

        from benchmarks.machine import describe_machine

        archive = archive_path(find_java())
        result |= {
            "rounds": rounds,
            "class_archive": archive is not None and archive.is_file(),
            "machine": describe_machine(torch.device("cpu")),
        }
        write_result(RESULTS / "start.json", result)


if __name__ == "__main__":
    main()
