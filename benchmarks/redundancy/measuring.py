"""What the searches for contained tables take and find, held against full comparison."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from benchmarks.datasets.tables import shared_archive, unpack
from benchmarks.redundancy.coded import coded_containment
from benchmarks.redundancy.synthetic import LARGE, MEDIUM, SMALL, synthetic_lake
from pexeso.errors import InputError
from pexeso.redundancy.containments import ContainmentOptions, Containments, Stage, containments_of
from pexeso.redundancy.lake_reading import list_lake, read_lake
from pexeso.redundancy.sampled import sampled_containments
from pexeso.redundancy.search import Redundancy, find_redundancy
from pexeso.store.io.temporary import temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_containments(spark: SparkSession, lake: str | Path, **options: Any) -> Containments:
    """Compare all rows of the tables of a lake."""
    chosen = ContainmentOptions(**options)
    with temporary_folder("pexeso-redundancy-") as folder:
        started = time.perf_counter()
        read = read_lake(spark, lake, folder)
        seconds = time.perf_counter() - started
        return containments_of(spark, read, chosen, read_seconds=seconds)


def find_by_samples(spark: SparkSession | None, lake: str | Path, **options: Any) -> Containments:
    return sampled_containments(spark, list_lake(lake), ContainmentOptions(), **options)


DERIVED = {
    "derived-24MB": (SMALL, 60, 10),
    "derived-240MB": (MEDIUM, 60, 10),
    "derived-324MB": (324_000_000, 295, 32),
    "derived-2.4GB": (LARGE, 60, 10),
}
"""Bytes, tables and roots. The third has the size of the paper's Table Union lake."""

SHARED_LAKES = {
    "containment": "versions",
    "baseball": "tables",
    "fivethirtyeight": "tables",
}

LAKES = (*SHARED_LAKES, *DERIVED)


@contextmanager
def lake_folder(name: str, seed: int) -> Iterator[Path]:
    """Yield the folder of a lake for as long as the block lasts."""
    with TemporaryDirectory(prefix="pexeso-redundancy-") as temporary:
        folder = Path(temporary) / "lake"
        if name in DERIVED:
            n_bytes, n_tables, n_roots = DERIVED[name]
            sizes = {"n_bytes": n_bytes, "n_tables": n_tables, "n_roots": n_roots}
            # In a process of its own, so that its memory does not count as the search's.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                process.submit(synthetic_lake, folder, **sizes, seed=seed).result()
        elif name in SHARED_LAKES:
            folder = unpack(shared_archive(name, SHARED_LAKES[name]), folder)
        else:
            raise InputError(f"Lakes are {', '.join(LAKES)}. Got {name!r}.")
        yield folder


def measured_lake(
    spark: SparkSession,
    name: str,
    *,
    seed: int = 0,
    repeats: int = 3,
    rows: int = 10,
) -> dict[str, Any]:
    """Search a lake in all ways in turn, and compare what they find with the truth."""
    with TemporaryDirectory() as warm:
        synthetic_lake(Path(warm), n_bytes=50_000, n_tables=6, n_roots=2)  # what Spark does once
        find_containments(spark, warm)
        find_redundancy(warm)
        find_by_samples(spark, warm)
    with lake_folder(name, seed) as folder:
        ways: dict[str, Callable[[], Any]] = {
            "exact": lambda: find_containments(spark, folder),
            "plan": lambda: find_redundancy(folder),
            "published": lambda: find_by_samples(spark, folder, sample_rows=rows, seed=seed),
        }
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        stages: dict[str, list[tuple[Stage, ...]]] = {way: [] for way in ways}
        answers: dict[str, Any] = {}
        for _ in range(repeats):
            for way, search in ways.items():
                started = time.perf_counter()
                answers[way] = search()
                seconds[way].append(time.perf_counter() - started)
                stages[way].append(answers[way].stages)
        n_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        started = time.perf_counter()
        truth = coded_containment(folder)
        result: dict[str, Any] = {
            "tables": len(answers["exact"].tables),
            "bytes": n_bytes,
            "rows": sum(table.n_rows for table in answers["exact"].tables),
            "contained": len(truth),
            "full_comparison_seconds": time.perf_counter() - started,
        }
        for way in ways:
            pairs = _pairs(answers[way])
            result[way] = {
                "seconds": seconds[way],
                "median_seconds": median(seconds[way]),
                "stages": _stages(stages[way], len(truth)),
                "precision": len(pairs & truth) / len(pairs) if pairs else 1.0,
                "recall": len(pairs & truth) / len(truth) if truth else 1.0,
            }
        result["plan"] |= _plan(answers["plan"])
        return result


def _pairs(answer: Any) -> set[tuple[str, str]]:
    return {(edge.parent, edge.child) for edge in answer.edges}


def _stages(runs: list[tuple[Stage, ...]], n_true: int) -> list[dict[str, Any]]:
    """Return of each stage the pairs it left, how many of them are wrong, and its median time."""
    return [
        {
            **asdict(stage),
            "seconds": median(run[at].seconds for run in runs),
            **({} if stage.name in ("read", "plan") else {"wrong": stage.edges - n_true}),
        }
        for at, stage in enumerate(runs[0])
    ]


def _plan(redundancy: Redundancy) -> dict[str, Any]:
    plan = redundancy.plan
    return {
        "deleted": len(plan.delete),
        "freed_bytes": sum(deletion.bytes for deletion in plan.delete),
        "saving": 1 - plan.cost / plan.keep_all_cost if plan.keep_all_cost else 0.0,
        "optimal": plan.optimal,
    }
