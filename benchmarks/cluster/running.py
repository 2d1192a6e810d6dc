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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.cluster import lake
from benchmarks.cluster.lake import WIDTH
from benchmarks.cluster.spark_cluster import running_cluster
from benchmarks.commands import COUNT, benchmark, setting
from benchmarks.origin import environment_with_this_code
from benchmarks.report import markdown_table
from pexeso.errors import InputError, PexesoError

DATA = Path(__file__).resolve().parents[1] / "data" / "cluster"
JAVA = {"spark.executor.extraJavaOptions": "-XX:+UseSerialGC"}
"""Executors of one core each collect with one thread."""

MAX_DIFFERENCES = 20

Answers = Sequence[Mapping[tuple[str, str], int]]


@dataclass(frozen=True)
class Setup:
    columns: int = setting(10_000, "Of the lake.")
    queries: int = setting(100, type=COUNT)
    planted: int = setting(8, "Columns that share values with a query column.")
    workers: int = setting(3, "Of one core each.", type=COUNT)
    partitions: int = setting(4, "Of the index.", type=COUNT)
    executor_memory: str = setting("1g", "Of the Java of each worker.")
    driver_memory: str = setting("2g", "Of the Java of the driver.")
    max_distance: float = setting(0.05)
    min_joinability: float = setting(0.5)
    seed: int = setting(0, "Of all draws.")

    def __post_init__(self) -> None:
        if self.columns < WIDTH or self.columns % WIDTH:
            raise InputError(f"columns must be a multiple of {WIDTH}. Got {self.columns} instead.")

    @property
    def name(self) -> str:
        """What tells this run from others, for files."""
        return (
            f"c{self.columns}_q{self.queries}_w{self.workers}_p{self.partitions}"
            f"_j{self.min_joinability:g}_s{self.seed}"
        )

    def lake(self) -> lake.Settings:
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
        "differences": wrong[:MAX_DIFFERENCES],
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
    """Return where answers are not those of the truth, by query column and column."""
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


@benchmark("cluster", Setup, page_table)
def cluster_command(setup: Setup) -> Iterator[tuple[str, dict[str, Any]]]:
    """Index a planted lake on a Spark cluster of this machine, search it, and check all answers."""
    try:
        yield f"cluster/{setup.name}", run(setup)
    except RuntimeError as error:
        raise PexesoError(str(error)) from error
