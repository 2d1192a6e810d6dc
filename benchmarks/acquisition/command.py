"""The command ``python -m benchmarks acquisition``."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import torch

from benchmarks import report
from benchmarks.acquisition import tpce, tpch
from benchmarks.acquisition.market import ABOUT_FILE, Market, read_market, write_market
from benchmarks.acquisition.plan_figures import measured_plans
from benchmarks.machine import describe_machine, pin_threads
from pexeso.errors import PexesoError

Result = dict[str, Any]


@click.group("acquisition")
def acquisition_command() -> None:
    """Measure searches for what to buy from markets of priced tables."""


@acquisition_command.command("plans")
@click.option("--scale", default=tpch.SCALE, show_default=True, help="tpch: of the whole of TPC-H.")
@click.option("--rows", default=tpce.ROWS, show_default=True, help="tpce: of the largest table.")
@click.option("--seed", default=0, show_default=True, help="Of all that is drawn.")
@click.option("--max-seconds", default=60.0, show_default=True, help="Of one search.")
@click.option("--repeats", default=3, show_default=True, help="Of short searches.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where markets stay.")
@click.option("--write", is_flag=True, help="Keep the result in benchmarks/results/acquisition.")
def plans_command(write: bool, folder: Path | None, **options: Any) -> None:
    """Search two markets for plans: the eight tables of TPC-H, and 29 tables of a brokerage.

    Each market is written with its prices, and its queries with the tables that lie between their
    attributes. In one thread.
    """
    pin_threads(1)
    machine = describe_machine(torch.device("cpu"))
    limits = {name: options[name] for name in ("max_seconds", "repeats", "seed")}
    try:
        markets = [measured_plans(market, **limits) for market in _markets(folder, options)]
    except PexesoError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    result = {"machine": machine, "options": options, "markets": markets}
    click.echo(json.dumps(result))
    if write:
        report.write_result(report.RESULTS / "acquisition" / "plans.json", result)


def _markets(folder: Path | None, options: Result) -> Iterator[Market]:
    """Yield both markets, those of the folder if it has them of this size."""
    with tempfile.TemporaryDirectory(prefix="pexeso-benchmark-") as temporary:
        place = Path(temporary) if folder is None else folder
        for module, size in ((tpch, "scale"), (tpce, "rows")):
            market_folder = place / module.NAME
            market_options = {"seed": options["seed"], size: options[size]}
            stored = (market_folder / ABOUT_FILE).is_file() and read_market(market_folder)
            if not stored or stored.options != market_options:
                _make(module.NAME, market_folder, market_options)
            yield read_market(market_folder)


def _make(name: str, folder: Path, options: Result) -> None:
    if name == tpch.NAME:
        about, tables = tpch.ABOUT, tpch.tpch_tables(options["scale"], seed=options["seed"])
    else:
        about, tables = tpce.ABOUT, tpce.tpce_tables(options["rows"], seed=options["seed"])
    folder.mkdir(parents=True, exist_ok=True)
    write_market(folder, about, tables, options=options)
