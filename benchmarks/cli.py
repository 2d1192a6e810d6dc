"""The command line of the benchmarks."""

from __future__ import annotations

import json
import logging
import os
import sys

import click

from benchmarks.declared import known_algorithms
from pexeso.errors import PexesoError

WRONG_ANSWERS, WRONG_INPUT = 1, 2


@click.group()
def main() -> None:
    """Measure pexeso against what could be used instead; every answer is checked."""


@main.command()
@click.option("--data", default="web", show_default=True, help="Data set: web, demo or random.")
@click.option(
    "--algorithms",
    default="pexeso,faiss_flat,brute_gemm",
    show_default=True,
    help=f"Comma-separated NAME or NAME:GRID, of {', '.join(known_algorithms())}.",
)
@click.option("--queries", default=100, show_default=True, help="Query columns, drawn from the lake's own.")
@click.option("--max-distance", default=0.06, show_default=True, help="Of two values that match, in [0, 1].")
@click.option("--min-joinability", default=0.6, show_default=True, help="Of a column that is found, in (0, 1].")
@click.option("--repeats", default=3, show_default=True, help="Timed repeats of each query.")
@click.option("--seed", default=0, show_default=True, help="Of all draws.")
@click.option("--model", default="fasttext", show_default=True, help="fasttext (trained on the lake) or hashing.")
@click.option("--dimensions", default=100, show_default=True, help="Of the vectors.")
@click.option("--device", default="cpu", show_default=True, help="cpu or cuda.")
@click.option("--threads", default=None, type=int, help="For torch, OpenMP and BLAS.  [default: all cores]")
@click.option("--force", is_flag=True, help="Measure again where a result is there already.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def run(
    data: str,
    algorithms: str,
    queries: int,
    max_distance: float,
    min_joinability: float,
    repeats: int,
    seed: int,
    model: str,
    dimensions: int,
    device: str,
    threads: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Run algorithms on a data set, or show the result of the same run if there is one.

    Exit status: 0, 1 when answers differ, 2 when the run cannot be made.
    """
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
    logging.getLogger("benchmarks").setLevel(logging.INFO)
    try:
        result = _result(
            data,
            [name.strip() for name in algorithms.split(",")],
            {
                "queries": queries,
                "max_distance": max_distance,
                "min_joinability": min_joinability,
                "repeats": repeats,
                "seed": seed,
                "device": device,
                "threads": threads or _cores(),
            },
            model,
            dimensions,
            force,
        )
    except PexesoError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(WRONG_INPUT)
    if as_json:
        click.echo(json.dumps(result))
    else:
        from benchmarks.report import table

        click.echo(table(result))
    if not result["agree"]:
        click.echo(f"Answers differ: {result['differences'][0]}", err=True)
        sys.exit(WRONG_ANSWERS)


def _result(
    data: str, algorithms: list[str], options: dict[str, object], model: str, dimensions: int, force: bool
) -> dict[str, object]:
    import torch

    from benchmarks.datasets import data_set
    from benchmarks.declared import load_candidates
    from benchmarks.harness import Settings, run_benchmark
    from benchmarks.report import RESULTS, read_result, result_path, write_result

    settings = Settings(**options)
    source = data_set(data, model=model, dimensions=dimensions, seed=settings.seed)
    variant = f"{model}-{dimensions}d" if data != "random" else f"{dimensions}d"
    path = result_path(RESULTS, data, variant, algorithms, settings)
    found = None if force else read_result(path)
    if found is not None:
        logging.getLogger(__name__).info("this run is finished; --force measures again")
        return found
    candidates = load_candidates(algorithms, torch.device(settings.device))
    result = run_benchmark(source.load(), candidates, settings)
    write_result(path, result)
    return result


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
