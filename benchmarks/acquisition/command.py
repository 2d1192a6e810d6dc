"""The command ``python -m benchmarks acquisition``."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import torch

from benchmarks import report
from benchmarks.acquisition import tpce, tpch
from benchmarks.acquisition.making import measured_market
from benchmarks.acquisition.market import ABOUT_FILE, Market, read_market
from benchmarks.acquisition.plan_figures import measured_plans
from benchmarks.machine import describe_machine, pin_threads
from benchmarks.redundancy.writing import FORMATS
from pexeso.errors import InputError, PexesoError

PLANS = "plans"
PARTS = (tpch.NAME, tpce.NAME, PLANS)

Result = dict[str, Any]


@click.command("acquisition", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("parts", metavar="[PARTS]", nargs=-1)
@click.option("--scale", default=tpch.SCALE, show_default=True, help="tpch: of the whole of TPC-H.")
@click.option("--rows", default=tpce.ROWS, show_default=True, help="tpce: of the largest table.")
@click.option("--seed", default=0, show_default=True, help="Of all that is drawn.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    show_default=True,
    help="Of the tables of markets.",
)
@click.option("--max-seconds", default=60.0, show_default=True, help="plans: of one search.")
@click.option("--repeats", default=3, show_default=True, help="plans: of short searches.")
@click.option("--folder", metavar="FOLDER", help="Where markets stay.")
@click.option("--write", is_flag=True, help="Keep results in benchmarks/results/acquisition.")
def acquisition_command(parts: tuple[str, ...], write: bool, seed: int, **options: Any) -> None:
    """Make markets of priced tables, and measure what is acquired from them.

    PARTS, all by default: tpch (the eight tables of TPC-H, by tpchgen-cli), tpce (29 tables of a
    brokerage), plans (searches for what to buy in both). Each market is written with its prices,
    and its queries with the tables that lie between their attributes. In one thread.
    """
    pin_threads(1)
    machine = describe_machine(torch.device("cpu"))
    try:
        for part in parts or PARTS:
            if part not in PARTS:
                raise InputError(f"Parts are {', '.join(PARTS)}. Got {part!r} instead.")
            conditions = {
                "machine": machine,
                "seed": seed,
                # Where things lay is of no interest, and of one machine.
                "options": {name: value for name, value in options.items() if name != "folder"},
            }
            result = {"part": part, **conditions, **_of(part, seed, options)()}
            click.echo(json.dumps(result))
            if write:
                report.write_result(report.RESULTS / "acquisition" / f"{part}.json", result)
    except PexesoError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)


def _of(part: str, seed: int, options: Result) -> Callable[[], Result]:
    """Return what measures a part."""
    folder = None if options["folder"] is None else Path(options["folder"])
    settings: Result = {"folder": folder, "file_format": options["file_format"], "seed": seed}
    known: dict[str, Callable[[], Result]] = {
        tpch.NAME: lambda: _made(tpch.NAME, options, settings),
        tpce.NAME: lambda: _made(tpce.NAME, options, settings),
        PLANS: lambda: {
            "markets": [
                measured_plans(
                    market,
                    max_seconds=options["max_seconds"],
                    repeats=options["repeats"],
                    seed=seed,
                )
                for market in _markets(options, settings)
            ]
        },
    }
    return known[part]


def _made(name: str, options: Result, settings: Result) -> Result:
    """Make a market and tell about it."""
    if name == tpch.NAME:
        tables, size = tpch.tpch_tables(options["scale"], seed=settings["seed"]), "scale"
    else:
        tables, size = tpce.tpce_tables(options["rows"], seed=settings["seed"]), "rows"
    about = tpch.ABOUT if name == tpch.NAME else tpce.ABOUT
    return measured_market(about, tables, size={size: options[size]}, **settings)


def _markets(options: Result, settings: Result) -> Iterator[Market]:
    """Yield both markets, those of the folder if it has them of this size."""
    with tempfile.TemporaryDirectory(prefix="pexeso-benchmark-") as temporary:
        folder = Path(temporary) if settings["folder"] is None else settings["folder"]
        for name, size in ((tpch.NAME, "scale"), (tpce.NAME, "rows")):
            market_options = {"seed": settings["seed"], size: options[size]}
            stored_market = (folder / name / ABOUT_FILE).is_file() and read_market(folder / name)
            if stored_market and stored_market.options == market_options:
                yield stored_market
                continue
            _made(name, options, {**settings, "folder": folder})
            yield read_market(folder / name)
