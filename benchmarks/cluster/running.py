"""The run: a lake, a cluster, an index, a batch of queries in two ways, and the truth."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.cluster import lake
from benchmarks.cluster.arithmetic import constants_of, scaled
from benchmarks.cluster.processes import bytes_below
from benchmarks.cluster.programs import Ran, pexeso_json, run_pexeso
from benchmarks.cluster.spark_cluster import Cluster, running_cluster

DATA = Path(__file__).resolve().parents[1] / "data" / "cluster"
JAVA = {"spark.executor.extraJavaOptions": "-XX:+UseSerialGC"}
"""Executors of one core each collect with one thread."""

MAX_DIFFERENCES = 20
"""Differences that a result names; all are counted."""

Answers = Sequence[Mapping[tuple[str, str], int]]
Difference = dict[str, Any]


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
    conf: tuple[str, ...] = ()

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
        settings = [*(f"{name}={value}" for name, value in conf.items()), *self.conf]
        return ["--spark-master", url, *(f"--spark-conf={setting}" for setting in settings)]


def run(
    setup: Setup,
    data: Path,
    tell: Callable[[str], None],
    small: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Measure a build and a batch on a cluster of this machine; return the result.

    Parameters
    ----------
    setup : Setup
    data : Path
        The lake is kept here for another run; so is the index, which a run makes anew.
    tell : callable
        Is told how far it is.
    small : mapping, optional
        The result of a smaller lake; see `benchmarks.cluster.arithmetic.constants_of`.
    """
    folder = data / f"c{setup.columns}_q{setup.queries}_j{setup.min_joinability:g}_s{setup.seed}"
    tell("the lake")
    known = lake.make_lake(folder, setup.lake(), tell)
    index = folder / "index"
    shutil.rmtree(index, ignore_errors=True)
    tell(f"a cluster of {setup.workers} workers")
    with running_cluster(setup.workers, memory=setup.executor_memory) as cluster:
        build = _build(setup, folder, index, cluster, tell)
        tell("the batch, on the cluster")
        cluster_answers, ran_there = _batch(setup, folder, "there", cluster)
    tell("the batch, in one process")
    local_answers, ran_here = _batch(setup, folder, "here", None)
    batches = {"cluster": (ran_there, cluster_answers), "here": (ran_here, local_answers)}
    return _result(setup, folder, known, build, batches, small)


def _build(
    setup: Setup, folder: Path, index: Path, cluster: Cluster, tell: Callable[[str], None]
) -> Ran:
    options = ["--n-partitions", str(setup.partitions), "--log-json", *setup.spark(cluster.url)]
    return run_pexeso(
        ["index", folder / lake.LAKE, index, *options],
        folder / "index.log",
        cluster=cluster,
        scratch=index / ".building",
        tell=tell,
    )


def _batch(
    setup: Setup, folder: Path, name: str, cluster: Cluster | None
) -> tuple[list[dict[tuple[str, str], int]], Ran]:
    path = folder / f"answers-{name}.jsonl"
    command = ["batch", folder / "index", folder / lake.QUERIES, "-o", path, "--overwrite"]
    thresholds = [
        f"--max-distance={setup.max_distance}",
        f"--min-joinability={setup.min_joinability}",
    ]
    every = ["-k", "all", "--no-fold-copies", "--no-rerank", "--device", "cpu", "--log-json"]
    spark = [] if cluster is None else setup.spark(cluster.url)
    ran = run_pexeso(
        [*command, *thresholds, *every, *spark], folder / f"batch-{name}.log", cluster=cluster
    )
    return answers_in(path), ran


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


def differences(truth: Answers, answers: Answers, way: str) -> list[Difference]:
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


def kind_of_file(path: Path) -> str:
    """Return which kind of file of an index one is: its name without its numbers.

    Examples
    --------
    >>> kind_of_file(Path("partitions/00003/texts.arrow"))
    'partitions/texts.arrow'
    >>> kind_of_file(Path("catalog/columns-00000.parquet"))
    'catalog/columns.parquet'
    """
    parts = [re.sub(r"[-.]?\d{3,}", "", part) for part in path.parts]
    return "/".join(filter(None, parts))


def _result(
    setup: Setup,
    folder: Path,
    known: dict[str, Any],
    build: Ran,
    batches: Mapping[str, tuple[Ran, Answers]],
    small: Mapping[str, Any] | None,
) -> dict[str, Any]:
    info = pexeso_json("info", folder / "index")
    report = pexeso_json("info", folder / "index", "--report")
    truth = lake.truth_of(folder)
    wrong = [mismatch for way in batches for mismatch in differences(truth, batches[way][1], way)]
    expected = {"columns_indexed": known["columns"], "postings": known["pairs"]}
    wrong += [
        {"way": "index", "of": name, "expected": number, "found": info[name]}
        for name, number in expected.items()
        if info[name] != number
    ]
    counts = {
        "tables": info["tables"],
        "columns": info["columns_indexed"],
        "values": sum(part["values"] for part in info["partitions"]),
        "pairs": info["postings"],
    }
    result = {
        "asked": {**asdict(setup), "conf": list(setup.conf)},
        "lake": known,
        "index": {
            **counts,
            "bytes": info["bytes"],
            "bytes_by_kind": dict(sorted(bytes_below(folder / "index", kind_of_file).items())),
        },
        "build": {**build.to_dict(), "stages": _stages(build, report["stages"])},
        "batch": {
            way: {**ran.to_dict(), "answers": sum(map(len, answers))}
            for way, (ran, answers) in batches.items()
        },
        "agree": not wrong,
        "answers": known["truth"]["answers"],
        "differences": len(wrong),
        "first_differences": wrong[:MAX_DIFFERENCES],
    }
    return result | arithmetic(result, small)


def arithmetic(result: Mapping[str, Any], small: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what one table, column, value or pair took, and what a billion columns take."""
    constants = constants_of(_figures(result), None if small is None else _figures(small))
    counts = _figures(result)["counts"]
    alike = {name: round(number * 1e9 / counts["columns"]) for name, number in counts.items()}
    return {
        "constants": {
            "less_those_of_columns": None if small is None else small["index"]["columns"],
            **constants,
        },
        "a_billion_columns": {
            "as_in_the_docs": scaled(constants),
            "like_this_lake": scaled(constants, alike),
        },
    }


def _figures(result: Mapping[str, Any]) -> dict[str, Any]:
    index, build = result["index"], result["build"]
    return {
        "stages": build["stages"],
        "counts": {name: index[name] for name in ("tables", "columns", "values", "pairs")},
        "index_bytes": index["bytes_by_kind"],
        "scratch_bytes": sum(build["peak_disk_bytes"].values()),
    }


def _stages(build: Ran, reported: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return by stage what was metered, and what the index itself reports under ``reported``."""
    reports = {report["stage"]: report for report in reported}
    stages: dict[str, dict[str, Any]] = {}
    for name, seconds in build.stages.items():
        stages[name] = {key: round(value, 2) for key, value in seconds.items()}
        if name in reports:
            details = {key: value for key, value in reports[name].items() if key != "stage"}
            stages[name]["reported"] = details
        if name in build.scratch:
            stages[name]["scratch_bytes"] = build.scratch[name]
    return stages
