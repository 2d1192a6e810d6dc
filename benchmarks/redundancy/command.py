"""The command ``python -m benchmarks redundancy``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import torch

from benchmarks.machine import describe_machine
from benchmarks.redundancy.measuring import LAKES, measured_lake
from benchmarks.redundancy.solving import against_exhaustive, solver_times
from benchmarks.report import RESULTS, write_result
from pexeso.errors import PexesoError

PLANS = "plans"


@click.command("redundancy", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", metavar="[LAKES]", nargs=-1)
@click.option("--repeats", default=3, show_default=True, help="Of each way, in turn.")
@click.option("--rows", default=10, show_default=True, help="Sampled of each table (paper: t).")
@click.option("--graphs", default=1000, show_default=True, help="Small ones for exhaustive search.")
@click.option("--seed", default=0, show_default=True, help="Of lakes, samples and graphs.")
@click.option("--kept", metavar="FOLDER", help="Where drawn lakes stay for the next run.")
@click.option("--write", is_flag=True, help="Keep the result in benchmarks/results.")
def redundancy_command(
    names: tuple[str, ...],
    repeats: int,
    rows: int,
    graphs: int,
    seed: int,
    kept: str | None,
    write: bool,
) -> None:
    """Search LAKES for contained tables, all rows compared and as published; time the plans.

    What is found is held against full comparison. LAKES are containment, baseball,
    fivethirtyeight, derived-24MB, derived-240MB, derived-324MB, derived-2.4GB, and plans, which is
    the solver alone; all of them by default, each in a process of its own.
    """
    if len(names) != 1:
        for name in names or (*LAKES, PLANS):
            options = {"repeats": repeats, "rows": rows, "graphs": graphs, "seed": seed}
            arguments = [f"--{option}={value}" for option, value in options.items()]
            arguments += [] if kept is None else [f"--kept={kept}"]
            command = [sys.executable, "-m", "benchmarks", "redundancy", name, *arguments]
            subprocess.run([*command, *(["--write"] if write else [])], check=True)
        return
    [name] = names
    machine = describe_machine(torch.device("cpu"))
    try:
        result = (
            {
                "exhaustive": against_exhaustive(graphs, seed),
                "solver": solver_times(repeats, seed),
            }
            if name == PLANS
            else _lake(name, seed, repeats, rows, kept)
        )
    except PexesoError as error:
        raise click.ClickException(str(error)) from error
    click.echo(json.dumps({"lake": name, **result}))
    if write:
        path = RESULTS / "redundancy" / f"{name}.json"
        write_result(path, {"machine": machine, "seed": seed, **result})


def _lake(name: str, seed: int, repeats: int, rows: int, folder: str | None) -> dict[str, Any]:
    from pexeso.build.build import SMALL_LAKE_SETTINGS
    from pexeso.build.spark.session import spark_session

    with spark_session(None, conf=SMALL_LAKE_SETTINGS) as spark:
        return measured_lake(
            spark, name, seed=seed, repeats=repeats, rows=rows, kept=folder and Path(folder)
        )
