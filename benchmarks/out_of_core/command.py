"""The command that searches a lake larger than its memory budget."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.commands import COUNT, SHARE, benchmark, refuse_unknown, setting
from benchmarks.cutting import cut_rows
from benchmarks.datasets import CACHE, Source
from benchmarks.drawing import draw_queries
from benchmarks.lake import BenchmarkLake
from benchmarks.machine import describe_machine, find_device, pin_threads
from benchmarks.out_of_core.asking import (
    AskedColumn,
    answer_of,
    ask,
    ask_cold,
    asked_column,
    open_scan,
    own_peak,
)
from benchmarks.out_of_core.grouping import METHODS, group_columns
from benchmarks.out_of_core.stores import StoreInMemory, vector_bytes, write_store
from benchmarks.report import markdown_table
from benchmarks.result_tables import duration, lake_of
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.options import SearchOptions, parse_bytes
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.store.local.reader import Store, open_store

GRID = PartitionLayoutOptions(map="projection", n_axes=15)
"""What the choice by cost takes on these lakes; fixed, so that all indexes have the same."""

PUBLISHED = PartitionLayoutOptions(map="pivots", cells="grid", n_pivots=3, n_levels=4)
"""What the paper takes for web tables."""

ONE, MEMORY = "one partition in memory", "in memory"
_log = logging.getLogger("benchmarks")


@dataclass(frozen=True)
class Settings:
    data: str = setting("lwdc", "A calibrated lake; with --dimensions one of tables.")
    scale: float = setting(0.05, "Of a calibrated lake.", type=SHARE)
    methods: tuple[str, ...] = setting(("jensen-shannon",), "Ways to make partitions.")
    partitions: int = setting(16, "Of each index.", type=COUNT)
    queries: int = setting(50, "Query columns, drawn from the lake's own.", type=COUNT)
    repeats: int = setting(3, "Timed repeats of each question.", type=COUNT)
    cold: int = setting(10, "Query columns asked with nothing in memory.")
    checked: int = setting(2, "Query columns searched by brute force too.")
    one: bool = setting(False, "Search the lake as one partition in memory too.")
    max_distance: float = setting(0.06)
    min_joinability: float = setting(0.6)
    budget: str = setting("1GiB", "Memory budget of the searches.")
    threads: int = setting(1, "For torch, OpenMP and BLAS.", type=COUNT)
    seed: int = setting(0, "Of all draws.")
    rows: float = setting(1.0, "Share of each column's values.", type=SHARE)
    published: bool = setting(False, "Index with the published pivots and grid.")
    memory: bool = setting(True, "Hold the first index in memory too, where it fits.")
    dimensions: int | None = setting(None, "Of hashed vectors of a lake of tables.", type=int)

    def __post_init__(self) -> None:
        refuse_unknown("Methods", self.methods, METHODS)

    @property
    def memory_budget(self) -> int:
        return parse_bytes(self.budget)

    @property
    def layout(self) -> PartitionLayoutOptions:
        return PUBLISHED if self.published else GRID

    @property
    def lake_name(self) -> str:
        """What tells the partitions of one lake from those of another, such as ``0.05-rows0.5``."""
        lake = f"{self.scale:g}" if self.dimensions is None else f"hashing-{self.dimensions}d"
        rows = "" if self.rows == 1 else f"-rows{self.rows:g}"
        return f"{lake}{rows}{'-published' if self.published else ''}"

    def lake(self, folder: Path) -> BenchmarkLake:
        """Make the whole lake, or read it from a folder."""
        scale = self.scale if self.dimensions is None else 1.0
        source = Source(self.data, "hashing", self.dimensions, self.seed, scale)
        return source.data_set(folder).load()


def run_out_of_core(settings: Settings, folder: Path = CACHE) -> dict[str, Any]:
    """Make the indexes where they are missing, ask everything, and compare all answers."""
    whole = settings.lake(folder)
    lake = cut_rows(whole, settings.rows, settings.seed)
    layout = settings.layout
    stores = {
        name: _store(lake, name, settings, folder / "out-of-core") for name in settings.methods
    }
    if settings.one:
        stores[ONE] = _store(lake, ONE, settings, folder / "out-of-core")
    pin_threads(settings.threads)
    columns = [asked_column(query) for query in draw_queries(whole, **_asked_for(settings))]
    options = SearchOptions(
        max_distance=settings.max_distance, min_joinability=settings.min_joinability
    )
    first = stores[settings.methods[0]]
    cold = [
        ask_cold(first, layout, column, options, settings.memory_budget)
        for column in columns[: settings.cold]
    ]
    scans = {
        name: open_scan(stores[name], layout, settings.memory_budget) for name in settings.methods
    }
    with own_peak() as peak:
        answers = [ask(scans[settings.methods[0]], column, options)[0] for column in columns]
    right = [answer_of(hits) for hits in answers]
    differences = [f"cold, query {n}" for n, run in enumerate(cold) if run.pop("found") != right[n]]
    differences += _by_force(scans[settings.methods[0]], columns, right, settings)
    if settings.memory:
        scans[MEMORY] = open_scan(StoreInMemory(first.path, first.manifest), layout)
    if settings.one:
        scans[ONE] = open_scan(StoreInMemory(stores[ONE].path, stores[ONE].manifest), layout)
    measured = _ask_in_turn(scans, columns, options, settings.repeats, right, differences)
    return {
        "agree": not differences,
        "differences": differences,
        "settings": {**asdict(settings), "methods": list(settings.methods)},
        "lake": {
            "name": lake.name,
            "values": lake.n_values,
            "columns": lake.n_columns,
            "dimensions": lake.dimensions,
        },
        "query_values": [len(column.values) for column in columns],
        "columns_found": sum(map(len, right)),
        "own_peak_bytes": peak.n_bytes,
        "indexes": {name: _described(store) for name, store in stores.items()},
        "warm": measured,
        "cold": cold,
        "summary": summarise(
            measured, cold, {name: vector_bytes(store) for name, store in stores.items()}, settings
        ),
        "machine": describe_machine(find_device("cpu")),
    }


def _asked_for(settings: Settings) -> dict[str, Any]:
    names = {"max_distance", "min_joinability", "seed"}
    return {"n_queries": settings.queries, **{name: getattr(settings, name) for name in names}}


def _store(lake: BenchmarkLake, method: str, settings: Settings, folder: Path) -> Store:
    """Open an index that an earlier run left, or make it."""
    name = f"{settings.data}-{settings.lake_name}-{settings.partitions}-{method.replace(' ', '-')}"
    if not (folder / name / "manifest.json").is_file():
        shutil.rmtree(folder / name, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        _log.info("building %s", name)
        alone = np.zeros(lake.n_columns, np.int64)
        grouped = (
            alone
            if method == ONE
            else group_columns(lake, method, settings.partitions, seed=settings.seed)
        )
        write_store(folder / name, lake, grouped, settings.layout)
    return open_store(folder / name)


def _described(store: Store) -> dict[str, Any]:
    values = [entry.facts["values"] for entry in store.manifest.partitions]
    return {"values": values, "vector_bytes": vector_bytes(store), "bytes": store.manifest.n_bytes}


def _by_force(
    scan: PartitionLoader, columns: Sequence[AskedColumn], right: list, settings: Settings
) -> list[str]:
    """Search for the smallest query columns by brute force in float64."""
    force = SearchOptions(
        max_distance=settings.max_distance, min_joinability=settings.min_joinability, exact=True
    )
    smallest = np.argsort([len(column.values) for column in columns], kind="stable")[
        : settings.checked
    ]
    return [
        f"brute force, query {number}"
        for number in smallest.tolist()
        if answer_of(ask(scan, columns[number], force)[0]) != right[number]
    ]


def _ask_in_turn(
    scans: Mapping[str, PartitionLoader],
    columns: Sequence[AskedColumn],
    options: SearchOptions,
    repeats: int,
    right: Sequence[list[tuple[int, int]]],
    differences: list[str],
) -> dict[str, list[dict[str, Any]]]:
    """Search all indexes in turn for each query, and return medians of the repeats."""
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in scans}
    names = list(scans)
    for number, column in enumerate(columns):
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for repeat in range(repeats + 1):
            for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
                hits, work, elapsed = ask(scans[name], column, options)
                if answer_of(hits) != right[number]:
                    differences.append(f"{name}, query {number}")
                seconds[name].append(elapsed)
                if repeat == repeats:
                    counters = {
                        key: work[key] for key in ("bytes_read", "partitions", "partitions_skipped")
                    }
                    # The first time pages are mapped, and processor caches are cold.
                    measured[name].append(
                        {"seconds": float(np.median(seconds[name][1:])), **counters}
                    )
    return measured


def summarise(
    warm: Mapping[str, Sequence[Mapping[str, Any]]],
    cold: Sequence[Mapping[str, Any]],
    n_bytes: Mapping[str, int],
    settings: Settings,
) -> dict[str, Any]:
    """Return the main figures of a run, as medians over the query columns."""
    base = settings.methods[0]
    seconds = {name: np.array([row["seconds"] for row in rows]) for name, rows in warm.items()}
    summary: dict[str, Any] = {}
    for name, rows in warm.items():
        read = np.array([row["bytes_read"] for row in rows], dtype=float)
        summary[name] = {
            "median_seconds": float(np.median(seconds[name])),
            f"ratio_to_{base}": float(np.median(seconds[name] / seconds[base])),
            "median_bytes_read": float(np.median(read)),
            "median_share_of_vector_bytes": float(np.median(read))
            / n_bytes.get(name, n_bytes[base]),
            "mean_partitions_skipped": float(np.mean([row["partitions_skipped"] for row in rows])),
        }
    if cold:
        disk, elapsed = (
            np.array([row[name] for row in cold], dtype=float) for name in ("disk_bytes", "seconds")
        )
        summary["cold"] = {
            "queries": len(cold),
            "median_seconds": float(np.median(elapsed)),
            "median_disk_bytes": float(np.median(disk)),
            "median_share_of_vector_bytes": float(np.median(disk)) / n_bytes[base],
            "median_disk_bytes_to_bytes_read": float(
                np.median(disk / [row["bytes_read"] for row in cold])
            ),
        }
    return summary


def result_name(settings: Settings) -> str:
    """Return the name of the file of a run, which holds what was asked for.

    Examples
    --------
    >>> result_name(Settings(methods=("jensen-shannon", "random"), one=True))
    'lwdc/out-of-core_0.05_jensen-shannon+random+one_p16_q50_d0.06_j0.6_r3_s0_t1'
    """
    names = "+".join([*settings.methods, *(["one"] if settings.one else [])])
    parameters = (
        f"p{settings.partitions}_q{settings.queries}_d{settings.max_distance:g}_j{settings.min_joinability:g}_r{settings.repeats}"
        f"_s{settings.seed}_t{settings.threads}"
    )
    return f"{settings.data}/out-of-core_{settings.lake_name}_{names}_{parameters}"


def table(result: Mapping[str, Any]) -> str:
    """Return a result as text."""
    base = result["settings"]["methods"][0]
    rows = [
        [
            name,
            duration(figures["median_seconds"]),
            f"{figures[f'ratio_to_{base}']:.2f}",
            f"{figures['median_bytes_read'] / 1e6:.1f} MB",
            f"{figures['median_share_of_vector_bytes']:.2%}",
            f"{figures['mean_partitions_skipped']:.1f}",
        ]
        for name, figures in result["summary"].items()
        if name != "cold"
    ]
    head = ("index", "median", "ratio", "looked at", "of the vectors", "partitions skipped")
    cold = json.dumps(result["summary"].get("cold", {}))
    return f"{lake_of(result)}\n\n{markdown_table(head, rows)}\n\nnothing in memory: {cold}"


@benchmark("out-of-core", Settings, table)
def out_of_core_command(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """Search a lake on disk under a memory budget.

    The search is compared with one in memory and with other partitions. Lake and indexes are kept
    in benchmarks/data, 1.3 times the vectors each.
    """
    yield result_name(settings), run_out_of_core(settings)
