"""The command ``python -m benchmarks cluster``: a build and a batch on a Spark cluster.

The lake is planted, so that it is known which columns join. It is indexed on a standalone cluster
of this machine; query columns are asked in one batch, on the cluster and without it, and every
answer is held against the truth, counts too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import torch

from benchmarks.cluster import lake
from benchmarks.cluster.lake import WIDTH
from benchmarks.cluster.spark_cluster import running_cluster
from benchmarks.machine import describe_machine
from benchmarks.origin import environment_with_this_code
from benchmarks.report import RESULTS, markdown_table, write_result
from pexeso.errors import InputError, PexesoError

DATA = Path(__file__).resolve().parents[1] / "data" / "cluster"
JAVA = {"spark.executor.extraJavaOptions": "-XX:+UseSerialGC"}
"""Executors of one core each collect with one thread."""

MAX_DIFFERENCES = 20
WRONG_ANSWERS, FAILED = 1, 2

Answers = Sequence[Mapping[tuple[str, str], int]]


@dataclass(frozen=True)
class Setup:
    """What a run is asked to do; see the options of the command."""

    columns: int = 10_000
    queries: int = 100
    planted: int = 8
    workers: int = 3
    partitions: int = 4
    executor_memory: str = "1g"
    driver_memory: str = "2g"
    max_distance: float = 0.05
    min_joinability: float = 0.5
    seed: int = 0

    @property
    def name(self) -> str:
        """What tells this run from others, for files."""
        return (
            f"c{self.columns}_q{self.queries}_w{self.workers}_p{self.partitions}"
            f"_j{self.min_joinability:g}_s{self.seed}"
        )

    def lake(self) -> lake.Settings:
        """Return what the lake is made from."""
        return lake.Settings(
            self.columns, self.queries, self.planted, self.min_joinability, self.seed
        )

    def spark(self, url: str) -> list[str]:
        """Return the options for Spark of a program."""
        conf = {
            **JAVA,
            "spark.executor.memory": self.executor_memory,
            "spark.driver.memory": self.driver_memory,
        }
        settings = [f"--spark-conf={name}={value}" for name, value in conf.items()]
        return ["--spark-master", url, *settings]


def run(setup: Setup, data: Path = DATA) -> dict[str, Any]:
    """Measure a build and a batch; the lake stays in `data`, the index is made again."""
    folder = data / f"c{setup.columns}_q{setup.queries}_j{setup.min_joinability:g}_s{setup.seed}"
    known = lake.make_lake(folder, setup.lake(), lambda text: click.echo(text, err=True))
    index = folder / "index"
    shutil.rmtree(index, ignore_errors=True)
    batches = {}
    with running_cluster(setup.workers, memory=setup.executor_memory) as cluster:
        spark = setup.spark(cluster.url)
        options = ["--n-partitions", str(setup.partitions), *spark]
        build_seconds, _ = run_pexeso("index", folder / lake.LAKE, index, *options)
        batches["cluster"] = _batch(setup, folder, "cluster", spark)
    batches["here"] = _batch(setup, folder, "here", [])
    info = json.loads(run_pexeso("info", index, "--json")[1])
    report = json.loads(run_pexeso("info", index, "--report", "--json")[1])
    truth = lake.truth_of(folder)
    wrong = [error for way in batches for error in differences(truth, batches[way][1], way)]
    expected = {"columns_indexed": known["columns"], "postings": known["pairs"]}
    wrong += [
        {"way": "index", "of": name, "expected": number, "found": info[name]}
        for name, number in expected.items()
        if info[name] != number
    ]
    return {
        "asked": asdict(setup),
        "lake": known,
        "index": {
            "tables": info["tables"],
            "columns": info["columns_indexed"],
            "values": sum(part["values"] for part in info["partitions"]),
            "pairs": info["postings"],
            "bytes": info["bytes"],
        },
        "build": {
            "seconds": round(build_seconds, 2),
            "stages": {stage["stage"]: {"seconds": stage["seconds"]} for stage in report["stages"]},
        },
        "batch": {
            way: {"seconds": round(seconds, 2), "answers": sum(map(len, answers))}
            for way, (seconds, answers) in batches.items()
        },
        "agree": not wrong,
        "answers": known["truth"]["answers"],
        "differences": len(wrong),
        "first_differences": wrong[:MAX_DIFFERENCES],
    }


def run_pexeso(*arguments: str | os.PathLike[str]) -> tuple[float, str]:
    """Run ``python -m pexeso``; return its seconds by the clock and what it printed."""
    started = time.perf_counter()
    completed = subprocess.run(
        [sys.executable, "-m", "pexeso", *map(os.fspath, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment_with_this_code(),
    )
    if completed.returncode:
        raise InputError(f"pexeso {arguments[0]} failed and said: {completed.stderr[-2000:]}")
    return time.perf_counter() - started, completed.stdout


def _batch(
    setup: Setup, folder: Path, name: str, spark: Sequence[str]
) -> tuple[float, list[dict[tuple[str, str], int]]]:
    path = folder / f"answers-{name}.jsonl"
    thresholds = [
        f"--max-distance={setup.max_distance}",
        f"--min-joinability={setup.min_joinability}",
    ]
    options = ["-k", "all", "--no-fold-copies", "--no-rerank", "--device", "cpu", *spark]
    queries = folder / lake.QUERIES
    seconds, _ = run_pexeso(
        "batch", folder / "index", queries, "-o", path, "--overwrite", *thresholds, *options
    )
    return seconds, answers_in(path)


def answers_in(path: Path) -> list[dict[tuple[str, str], int]]:
    """Return for each query column how many values match in each column of its answer."""
    with path.open(encoding="utf-8") as stream:
        return [
            {
                (match["table"], match["column"]): match["matched"]
                for match in json.loads(line).get("results", ())
            }
            for line in stream
        ]


def differences(truth: Answers, answers: Answers, way: str) -> list[dict[str, Any]]:
    """Return where answers are not those of the truth, by query column and column.

    Examples
    --------
    >>> truth = [{("t", "a"): 3, ("t", "b"): 2}]
    >>> differences(truth, [{("t", "a"): 3, ("t", "b"): 2}], "here")
    []
    >>> differences(truth, [{("t", "a"): 3}], "here")
    [{'way': 'here', 'query': 0, 'table': 't', 'column': 'b', 'expected': 2, 'found': None}]
    """
    if len(truth) != len(answers):
        return [{"way": way, "expected_lines": len(truth), "found_lines": len(answers)}]
    return [
        {
            "way": way,
            "query": query,
            "table": column[0],
            "column": column[1],
            "expected": expected.get(column),
            "found": answer.get(column),
        }
        for query, (expected, answer) in enumerate(zip(truth, answers, strict=True))
        for column in sorted({*expected, *answer})
        if expected.get(column) != answer.get(column)
    ]


BILLION = {"tables": 10**8, "columns": 10**9, "pairs": 3 * 10**10, "values": 123 * 10**8}
"""What a billion columns like those of `lwdc` are made of."""

BILLION_CORES = 640
GROWTH = {
    "list": "tables",
    "read": "tables",
    "catalog": "columns",
    "train": "values",
    "partition": "pairs",
    "index": "values",
}
"""What the time of a stage grows with."""


def page_table(result: Mapping[str, Any]) -> str:
    """Return the stages of a build, what one more takes of a core, and a billion columns."""
    cores, rows = result["machine"]["cores"], []
    for name, unit in GROWTH.items():
        seconds = result["build"]["stages"][name]["seconds"]
        of_one = seconds * cores / result["index"][unit]
        minutes = of_one * BILLION[unit] / BILLION_CORES / 60
        rows.append([name, f"{seconds:.0f}", unit, f"{of_one * 1e6:,.1f}", f"{minutes:.1f}"])
    rows.append(["whole build", f"{result['build']['seconds']:.0f}", "", "", ""])
    rows += [
        [f"batch, {name}", f"{result['batch'][way]['seconds']:.0f}", "", "", ""]
        for way, name in (("cluster", "on the cluster"), ("here", "in one process"))
    ]
    head = ["stage", "s by the clock", "grows with", "one takes, µs of a core"]
    return markdown_table([*head, f"a billion columns on {BILLION_CORES} cores, minutes"], rows)


@click.command("cluster", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--columns", default=10_000, show_default=True, type=click.IntRange(WIDTH), help="Of the lake."
)
@click.option("--queries", default=100, show_default=True, type=click.IntRange(1))
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
@click.option("--seed", default=0, show_default=True, help="Of all draws.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=DATA,
    help="Where lake and index are kept.  [default: benchmarks/data/cluster]",
)
@click.option("--write", is_flag=True, help="Keep the result in benchmarks/results/cluster.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def cluster_command(data: Path, write: bool, as_json: bool, columns: int, **options: Any) -> None:
    """Index a planted lake on a Spark cluster of this machine, search it, and check all answers.

    Exit status: 0, 1 when an answer differs from the truth, 2 when the run cannot be made.
    """
    if columns % WIDTH:
        raise click.UsageError(f"--columns is a multiple of {WIDTH}. Got {columns}.")
    setup = Setup(columns=columns, **options)
    machine = describe_machine(torch.device("cpu"))
    try:
        result = {**run(setup, data), "machine": machine}
    except (PexesoError, RuntimeError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(FAILED)
    if write:
        write_result(RESULTS / "cluster" / f"{setup.name}.json", result)
    click.echo(json.dumps(result) if as_json else page_table(result))
    if not result["agree"]:
        for difference in result["first_differences"]:
            click.echo(f"Differs: {json.dumps(difference)}", err=True)
        sys.exit(WRONG_ANSWERS)
