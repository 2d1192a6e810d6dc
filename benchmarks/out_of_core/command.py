"""The command that searches a lake larger than its memory budget."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from benchmarks.out_of_core.running import Settings, run_out_of_core
from benchmarks.report import RESULTS, write_result
from pexeso.errors import PexesoError
from pexeso.options import parse_bytes


@click.command("out-of-core")
@click.option(
    "--data",
    default="lwdc",
    show_default=True,
    help="Calibrated lake (swdc, open or lwdc); with --dimensions one of tables (web or demo).",
)
@click.option("--scale", default=0.05, show_default=True, help="Of a calibrated lake, in (0, 1].")
@click.option("--dimensions", type=int, help="Of the hashed vectors of a lake of tables.")
@click.option(
    "--methods",
    default="jensen-shannon",
    show_default=True,
    help="Comma-separated ways to make partitions.",
)
@click.option("--partitions", default=16, show_default=True, help="Of each index.")
@click.option(
    "--queries", default=50, show_default=True, help="Query columns, drawn from the lake's own."
)
@click.option("--repeats", default=3, show_default=True, help="Timed repeats of each question.")
@click.option(
    "--cold", default=10, show_default=True, help="Query columns asked with nothing in memory."
)
@click.option(
    "--checked", default=2, show_default=True, help="Query columns searched by brute force too."
)
@click.option("--one", is_flag=True, help="Search the lake as one partition in memory too.")
@click.option("--rows", default=1.0, show_default=True, help="Share of each column's values.")
@click.option("--published", is_flag=True, help="Index with the published pivots and grid.")
@click.option(
    "--memory/--no-memory",
    default=True,
    show_default=True,
    help="Hold the first index in memory too, where it fits.",
)
@click.option("--budget", default="1GiB", show_default=True, help="Memory budget of the searches.")
@click.option("--threads", type=int, help="For torch, OpenMP and BLAS.  [default: all cores]")
@click.option("--seed", default=0, show_default=True, help="Of all draws.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def out_of_core_command(
    methods: str, budget: str, threads: int | None, as_json: bool, **options: Any
) -> None:
    """Search a lake on disk under a memory budget.

    The search is compared with one in memory and with other partitions.

    Lake and indexes are kept in benchmarks/data, 1.3 times the vectors each. Exit status: 0, 1 when
    answers differ, 2 when the run cannot be made.
    """
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
    logging.getLogger("benchmarks").setLevel(logging.INFO)
    try:
        settings = Settings(
            **options,
            methods=tuple(name.strip() for name in methods.split(",")),
            memory_budget=parse_bytes(budget),
            threads=threads or len(os.sched_getaffinity(0)),
        )
        result = run_out_of_core(settings)
    except PexesoError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    write_result(result_path(RESULTS, settings), result)
    click.echo(json.dumps(result) if as_json else table(result))
    if not result["agree"]:
        click.echo(f"Answers differ: {result['differences'][0]}", err=True)
        sys.exit(1)


def result_path(results: Path, settings: Settings) -> Path:
    """Return the file of a run; its name holds what was asked for.

    Examples
    --------
    >>> result_path(Path("r"), Settings(methods=("jensen-shannon", "random"), one=True)).as_posix()
    'r/lwdc/out-of-core_0.05_jensen-shannon+random+one_p16_q50_d0.06_j0.6_r3_s0_t1.json'
    """
    names = "+".join([*settings.methods, *(["one"] if settings.one else [])])
    parameters = (
        f"p{settings.partitions}_q{settings.queries}_d{settings.max_distance:g}_j{settings.min_joinability:g}_r{settings.repeats}"
        f"_s{settings.seed}_t{settings.threads}"
    )
    return results / settings.data / f"out-of-core_{settings.lake_name}_{names}_{parameters}.json"


def table(result: Mapping[str, Any]) -> str:
    """Return a result as text."""
    lake, settings, base = result["lake"], result["settings"], result["settings"]["methods"][0]
    scale = f" at the scale {settings['scale']:g}" if settings["dimensions"] is None else ""
    lines = [
        f"{lake['name']}{scale}: {lake['values']:,} values of "
        f"{lake['dimensions']} dimensions in {lake['columns']:,} columns",
        f"{settings['partitions']} partitions, {settings['queries']} query columns, budget "
        f"{settings['memory_budget'] / 2**30:g} GiB; "
        f"{result['own_peak_bytes'] / 1e6:.0f} MB of own memory; load "
        f"{result['machine']['load'][0]}",
        "",
        f"{'':26}{'median':>10}{'ratio':>8}{'read':>10}{'of vectors':>12}{'skipped':>9}",
    ]
    for name, row in result["summary"].items():
        if name == "cold":
            continue
        lines.append(
            f"{name:26}{row['median_seconds'] * 1e3:>7.1f} "
            f"ms{row[f'ratio_to_{base}']:>7.2f}x{row['median_bytes_read'] / 1e6:>7.1f} MB"
            f"{row['median_share_of_vector_bytes']:>12.2%}{row['mean_partitions_skipped']:>9.1f}"
        )
    if "cold" in result["summary"]:
        cold = result["summary"]["cold"]
        lines.append(
            f"nothing in memory before: {cold['median_seconds']:.2f} s, "
            f"{cold['median_disk_bytes'] / 1e6:.1f} MB from the disk "
            f"({cold['median_share_of_vector_bytes']:.2%} of the vectors, "
            f"{cold['median_disk_bytes_to_bytes_read']:.1f} times what was looked at)"
        )
    return "\n".join([*lines, "", "All answers agree." if result["agree"] else "Answers differ."])
