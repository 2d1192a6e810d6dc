"""The command ``python -m benchmarks composite``."""

from __future__ import annotations

import json
from typing import Any

import click
import torch

from benchmarks.composite.lakes import LAKES, N_ROWS, POWER_LAW, SCALE, load_lake, table_names
from benchmarks.composite.measuring import choice, filter_measures, first_columns, probing
from benchmarks.composite.queries import drawn_questions, known_questions
from benchmarks.machine import describe_machine, pin_threads
from benchmarks.report import RESULTS, write_result
from pexeso.errors import PexesoError

N_PROBES = 10_000_000

WITH_PAIRS = "wikitables"
"""The lake of which keys are known that join other tables, as those of the paper's queries do."""


@click.command("composite", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("lakes", nargs=-1)
@click.option("--queries", default=100, show_default=True, help="For each number of columns.")
@click.option("--scale", default=SCALE, show_default=True, help="Of TPC-H.")
@click.option("--rows", default=N_ROWS, show_default=True, help="Of the power-law lake.")
@click.option("--seed", default=11, show_default=True, help="Of the keys that are drawn.")
@click.option("--write", is_flag=True, help="Keep the result in benchmarks/results.")
def composite_command(
    lakes: tuple[str, ...], queries: int, scale: float, rows: int, seed: int, write: bool
) -> None:
    """Measure searches by composite keys, in LAKES: names, or folders of tables.

    Keys of two and three columns are drawn from the tables of each lake and searched there by every
    filter of rows in turn, in processor time of one thread. All answers must be equal.
    """
    pin_threads(1)
    machine = describe_machine(torch.device("cpu"))
    for name in lakes or LAKES:
        try:
            result = measured(name, queries, scale, rows, seed)
        except PexesoError as error:
            raise click.ClickException(str(error)) from error
        click.echo(json.dumps({"lake": name, **result}))
        if write:
            path = RESULTS / "composite" / f"{name}.json"
            write_result(path, {"machine": machine, "seed": seed, **result})


def measured(name: str, queries: int, scale: float, n_rows: int, seed: int) -> dict[str, Any]:
    """Return all measures of a lake."""
    rows = load_lake(name, scale=scale, n_rows=n_rows)
    result: dict[str, Any] = {
        "tables": rows.n_tables,
        "rows": rows.n_rows,
        "cells": len(rows.cells),
        "values": len(rows.values),
    }
    for m in (2, 3):
        questions = drawn_questions(rows, m, queries, seed=seed)
        measures = {
            "choice": choice(rows, questions),
            "filters": filter_measures(rows, questions),
            "entries": first_columns(rows, questions),
        }
        if name == POWER_LAW:
            measures["probing"] = probing(rows, questions, N_PROBES)
        result[f"{m} columns"] = measures
    if name == WITH_PAIRS:
        questions = known_questions(rows, table_names(name), queries, seed=seed)
        result["known pairs"] = {"filters": filter_measures(rows, questions)}
    return result
