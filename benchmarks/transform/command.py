"""The command ``python -m benchmarks transform``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click
import pyarrow as pa
import torch

from benchmarks import report
from benchmarks.machine import describe_machine, pin_threads
from pexeso.errors import InputError, PexesoError

PARTS = ("cases", "restraint", "planted")

Result = dict[str, Any]


@click.command("transform", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("parts", metavar="[PARTS]", nargs=-1)
@click.option("--only", default="", help="cases: those whose name holds this text.")
@click.option("--methods", help="cases: some of the methods, with commas.  [default: all]")
@click.option("--pairs", default=200, show_default=True, help="restraint: pairs of a draw.")
@click.option("--draws", default=3, show_default=True, help="restraint: draws of pairs.")
@click.option(
    "--rows", default=10_000, show_default=True, help="planted: rows of a table, at most."
)
@click.option("--share", default=0.5, show_default=True, help="planted: keys with a partner.")
@click.option("--repeats", default=3, show_default=True, help="planted: timed repeats.")
@click.option("--seed", default=0, show_default=True, help="Of samples and drawn tables.")
@click.option("--json", "as_json", is_flag=True, help="Print each result as one JSON object.")
@click.option("--write", is_flag=True, help="Keep results in benchmarks/results/transform.")
def transform_command(
    parts: tuple[str, ...],
    as_json: bool,
    write: bool,
    seed: int,
    **options: Any,
) -> None:
    """Join tables whose keys are written differently, in one thread.

    PARTS, all by default: cases (the shared pairs of tables, against rivals),
    restraint (tables with other spellings, and columns that are not related), planted (drawn
    tables whose rule is known). Seconds are processor time.
    """
    pin_threads(1)
    pa.set_cpu_count(1)
    machine = describe_machine(torch.device("cpu"))
    try:
        for part in parts or PARTS:
            if part not in PARTS:
                raise InputError(f"Parts are {', '.join(PARTS)}. Got {part!r} instead.")
            measure, shown = _of(part, seed, options)
            conditions = {
                "machine": machine,
                "seed": seed,
                "options": options,
            }
            result = {"part": part, **conditions, **measure()}
            click.echo(json.dumps(result) if as_json else shown(result))
            if write:
                report.write_result(report.RESULTS / "transform" / f"{part}.json", result)
    except PexesoError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)


def _of(
    part: str, seed: int, options: Result
) -> tuple[Callable[[], Result], Callable[[Result], str]]:
    """Return what measures a part, and what shows its result."""
    from benchmarks.transform import tables
    from benchmarks.transform.planted import measured_planted
    from benchmarks.transform.quality import METHODS, measured_cases
    from benchmarks.transform.restraint import measured_restraint

    methods = _some("Methods", options["methods"], METHODS)
    rows, repeats = options["rows"], options["repeats"]
    known: dict[str, tuple[Callable[[], Result], Callable[[Result], str]]] = {
        "cases": (
            lambda: measured_cases(seed=seed, only=options["only"], methods=methods),
            tables.means_table,
        ),
        "restraint": (
            lambda: measured_restraint(
                seed=seed, n_pairs=options["pairs"], n_draws=options["draws"]
            ),
            tables.restraint_tables,
        ),
        "planted": (
            lambda: measured_planted(
                seed=seed, max_rows=rows, share=options["share"], repeats=repeats
            ),
            tables.planted_page_table,
        ),
    }
    return known[part]


def _some(what: str, text: str | None, known: Sequence[str]) -> tuple[str, ...]:
    names = tuple(known) if text is None else tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in known:
            raise InputError(f"{what} are {', '.join(known)}. Got {name!r} instead.")
    return names
