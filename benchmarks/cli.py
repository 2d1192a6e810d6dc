"""The command line of the benchmarks."""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from benchmarks.declared import known_algorithms
from pexeso.errors import InputError, PexesoError

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.harness import Settings
    from benchmarks.source import Source

WRONG_ANSWERS, WRONG_INPUT = 1, 2
DEFAULT_QUERIES = 100

# Commands that other modules bring: name -> (module, attribute). They are imported when they are
# asked for.
ELSEWHERE = {
    "cluster": ("benchmarks.cluster.running", "cluster_command"),
    "acquisition": ("benchmarks.acquisition.command", "acquisition_command"),
    "composite": ("benchmarks.composite.command", "composite_command"),
    "embedding": ("benchmarks.embedding", "embedding_command"),
    "gpu": ("benchmarks.gpu.command", "gpu_command"),
    "redundancy": ("benchmarks.redundancy.command", "redundancy_command"),
    "transform": ("benchmarks.transform.command", "transform_command"),
    "out-of-core": ("benchmarks.out_of_core.command", "out_of_core_command"),
    "effectiveness": ("benchmarks.effectiveness.command", "main"),
    "release": ("benchmarks.release", "release_command"),
    "tables": ("benchmarks.pages", "tables_command"),
}

Result = dict[str, Any]
_log = logging.getLogger("benchmarks")


class _Group(click.Group):
    """A group that also has the commands of `ELSEWHERE` whose modules are there."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        available = [
            name
            for name, (module, _) in ELSEWHERE.items()
            if importlib.util.find_spec(module) is not None
        ]
        return sorted({*super().list_commands(ctx), *available})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in ELSEWHERE and cmd_name in self.list_commands(ctx):
            module, attribute = ELSEWHERE[cmd_name]
            return getattr(importlib.import_module(module), attribute)
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Group)
def main() -> None:
    """Measure pexeso against what could be used instead; every answer is checked."""


_OPTIONS = (
    click.option(
        "--data",
        default="web",
        show_default=True,
        help="Data set: web, demo, random, swdc, open or lwdc.",
    ),
    click.option(
        "--scale", default=1.0, show_default=True, help="Of a synthetic data set, in (0, 1]."
    ),
    click.option(
        "--queries",
        type=int,
        help=f"Query columns, drawn from the lake's own.  [default: {DEFAULT_QUERIES}]",
    ),
    click.option(
        "--batch",
        type=int,
        help="So many query columns in one call, instead of --queries one at a time.",
    ),
    click.option(
        "--max-distance",
        default=0.06,
        show_default=True,
        help="Of two values that match, in [0, 1].",
    ),
    click.option(
        "--min-joinability",
        default=0.6,
        show_default=True,
        help="Of a column that is found, in (0, 1].",
    ),
    click.option("--repeats", default=3, show_default=True, help="Timed repeats of each question."),
    click.option("--seed", default=0, show_default=True, help="Of all draws."),
    click.option(
        "--model",
        default="fasttext",
        show_default=True,
        help="fasttext (trained on the lake) or hashing.",
    ),
    click.option("--dimensions", type=int, help="Of the vectors.  [default: the data set's own]"),
    click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:N."),
    click.option("--threads", type=int, help="For torch, OpenMP and BLAS.  [default: all cores]"),
    click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object."),
)


def _measuring(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command the options of everything that measures."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@main.command()
@click.option(
    "--algorithms",
    default="pexeso,faiss_flat,brute_gemm",
    show_default=True,
    help=f"Comma-separated NAME or NAME:GRID, of {', '.join(known_algorithms())}.",
)
@_measuring
def run(algorithms: str, as_json: bool, **flags: Any) -> None:
    """Run algorithms on a data set; write a result file.

    Exit status: 0, 1 when answers differ, 2 when the run cannot be made.
    """

    def make() -> Result:
        from benchmarks import report

        source, settings, names = _source(flags), _settings(flags), _names(algorithms)
        path = report.result_path(report.RESULTS, source.data, source.variant, names, settings)
        return _measured_run(path, source, names, settings)

    result = _logged(make)
    if not as_json:
        from benchmarks.report import table

        click.echo(table(result))
    _end(result, as_json)


@main.command()
@click.argument("name")
@click.option("--algorithms", help="Instead of those that the sweep declares.")
@_measuring
def sweep(name: str, algorithms: str | None, as_json: bool, **flags: Any) -> None:
    """Vary one thing, as NAME in benchmarks/sweeps.yml declares it; write a result file.

    Sweeps: ablation, ablation_blocks, pivots, pivot-choice, tau, published-tau,
    published-joinability, columns, rows, scale, dimensions.
    Exit status as for run.
    """

    def make() -> Result:
        from benchmarks import report
        from benchmarks.sweeps import known_sweeps

        sweeps = known_sweeps()
        if name not in sweeps:
            raise InputError(f"Sweeps are {', '.join(sweeps)}. Got {name!r} instead.")
        source, settings = _source(flags), _settings(flags)
        names = None if algorithms is None else _names(algorithms)
        path = report.sweep_path(report.RESULTS, source.data, source.variant, name, names, settings)
        return _measured_sweep(path, sweeps[name], source, names, settings)

    result = _logged(make)
    if not as_json:
        from benchmarks.report import sweep_table

        click.echo(sweep_table(result))
    _end(result, as_json)


def _source(flags: Result) -> Source:
    from benchmarks.source import Source

    return Source(flags["data"], flags["model"], flags["dimensions"], flags["seed"], flags["scale"])


def _settings(flags: Result) -> Settings:
    from benchmarks.harness import Settings

    if flags["batch"] is not None and flags["queries"] is not None:
        raise InputError(
            "--batch says how many query columns are asked, all in one call; --queries cannot be "
            "given as well."
        )
    batched = flags["batch"] is not None
    queries = flags["batch"] if batched else flags["queries"]
    return Settings(
        queries=DEFAULT_QUERIES if queries is None else queries,
        max_distance=flags["max_distance"],
        min_joinability=flags["min_joinability"],
        repeats=flags["repeats"],
        seed=flags["seed"],
        device=flags["device"],
        threads=_cores() if flags["threads"] is None else flags["threads"],
        batched=batched,
    )


def _names(algorithms: str) -> list[str]:
    return [name.strip() for name in algorithms.split(",")]


def _measured_run(path: Path, source: Source, names: list[str], settings: Settings) -> Result:
    from benchmarks.declared import load_candidates
    from benchmarks.harness import run_benchmark
    from benchmarks.machine import find_device
    from benchmarks.report import write_result

    candidates = load_candidates(names, find_device(settings.device))
    return write_result(path, run_benchmark(source.load(), candidates, settings))


def _measured_sweep(
    path: Path, declared: Any, source: Source, names: list[str] | None, settings: Settings
) -> Result:
    from benchmarks.report import write_result
    from benchmarks.sweeps import run_sweep

    return write_result(path, run_sweep(declared, source, settings, names))


def _logged(make: Callable[[], Result]) -> Result:
    """Make a result, with the log on stderr; an error of ours is one line and ends the command."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
    _log.setLevel(logging.INFO)
    try:
        return make()
    except PexesoError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(WRONG_INPUT)


def _end(result: Result, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result))
    if not result["agree"]:
        click.echo(f"Answers differ: {result['differences'][0]}", err=True)
        sys.exit(WRONG_ANSWERS)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
