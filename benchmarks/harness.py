"""One run: build every algorithm, check all answers, then time the queries in turn."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from benchmarks.checking import (
    Difference,
    compare,
    difference,
    normal_form,
    oracle_answer,
    oracle_sample,
)
from benchmarks.declared import Algorithm, Candidate
from benchmarks.drawing import SIZE_CLASSES, draw_queries, size_class
from benchmarks.lake import Answer, BenchmarkLake, BenchmarkQuery
from benchmarks.machine import describe_machine, find_device, pin_threads
from benchmarks.memory import Peak, peak_memory
from benchmarks.metrics import Run, evaluate, query_seconds, ratios
from benchmarks.timing import Measured, measure_in_turn

BASE = "pexeso"
_log = logging.getLogger(__name__)

Columns = dict[int, int]


@dataclass(frozen=True)
class Settings:
    """What is asked, how often, and with what."""

    queries: int = 100
    max_distance: float = 0.06
    min_joinability: float = 0.6
    repeats: int = 3
    seed: int = 0
    device: str = "cpu"
    threads: int = 1
    batched: bool = False


@dataclass
class Built:
    """An algorithm with its index, and what building it took."""

    candidate: Candidate
    algorithm: Algorithm
    seconds: float
    peak: Peak


def run_benchmark(
    lake: BenchmarkLake, candidates: Sequence[Candidate], settings: Settings
) -> dict[str, Any]:
    """Run the candidates on one lake: `build_all`, then `measure`."""
    queries = draw_for(lake, settings)  # what cannot be drawn is told before anything is built
    return measure(lake, build_all(lake, candidates, settings), settings, queries)


def build_all(
    lake: BenchmarkLake, candidates: Sequence[Candidate], settings: Settings
) -> list[Built]:
    """Build the index of every candidate."""
    device = find_device(settings.device)
    pin_threads(settings.threads)
    _ = lake.value_columns  # made once, outside of every measurement
    built: list[Built] = []
    for candidate in candidates:
        same = next((other for other in built if _is_built_alike(other.candidate, candidate)), None)
        build = same or _build(lake, candidate, device)
        algorithm = copy.copy(build.algorithm)
        algorithm.set_query_arguments(**candidate.query_arguments)
        built.append(Built(candidate, algorithm, build.seconds, build.peak))
    return built


def _is_built_alike(one: Candidate, other: Candidate) -> bool:
    return one.adapter is other.adapter and one.build_arguments == other.build_arguments


def measure(
    lake: BenchmarkLake,
    built: Sequence[Built],
    settings: Settings,
    queries: Sequence[BenchmarkQuery] | None = None,
) -> dict[str, Any]:
    """Check the answers of what was built, then time it."""
    pin_threads(settings.threads)
    if queries is None:
        queries = draw_for(lake, settings)
    algorithms = {build.candidate.name: build.algorithm for build in built}
    answered = {build.candidate.name: _answer(build, queries, settings.batched) for build in built}
    exact = [build.candidate.name for build in built if build.candidate.exact]
    _log.info("checking against float64")
    sample = oracle_sample(lake, queries, seed=settings.seed)
    truths = {number: oracle_answer(lake, queries[number]) for number in sample}
    answers = {name: given for name, (given, _) in answered.items()}
    differences = compare(answers, exact, truths, queries)
    _log.info("measuring")
    if settings.batched:
        check = partial(_check_batch, answers, queries, differences)
        measured = measure_in_turn(algorithms, [queries], settings.repeats, check, batched=True)
    else:
        check = partial(_check_repeat, answers, queries, differences)
        measured = measure_in_turn(algorithms, queries, settings.repeats, check)
    right = [
        truths.get(number, answers[exact[0]][number] if exact else None)
        for number in range(len(queries))
    ]
    metrics: dict[str, dict[str, object]] = {}
    for build in built:
        candidate, algorithm = build.candidate, build.algorithm
        given, peak = answered[candidate.name]
        run = Run(
            measured[candidate.name],
            given,
            right,
            build.seconds,
            algorithm.index_bytes,
            build.peak.n_bytes,
            peak.n_bytes,
        )
        metrics[candidate.name] = {
            **evaluate(run),
            "exact": candidate.exact,
            "arguments": {**candidate.build_arguments, **candidate.query_arguments},
            "chosen": algorithm.chosen,
        }
    medians = {name: float(values["median_seconds"]) for name, values in metrics.items()}
    return {
        "data": lake.name,
        "queries": len(queries),
        "agree": not differences,
        "algorithms": metrics,
        "ratios_to_pexeso": ratios(medians, BASE),
        "batch": len(queries) if settings.batched else None,
        "by_size": [] if settings.batched else _by_size(queries, measured),
        "checked": {
            "against_each_other": len(queries) if len(exact) > 1 else 0,
            "against_float64": len(truths),
        },
        "differences": [str(mismatch) for mismatch in differences],
        "lake": lake.describe(),
        "query_values": sum(map(len, queries)),
        "columns_found": sum(len(answer) for answer in right if answer is not None),
        "settings": asdict(settings),
        "machine": describe_machine(find_device(settings.device)),
    }


def draw_for(lake: BenchmarkLake, settings: Settings) -> list[BenchmarkQuery]:
    """Draw the query columns that the settings ask for."""
    return draw_queries(
        lake,
        settings.queries,
        max_distance=settings.max_distance,
        min_joinability=settings.min_joinability,
        seed=settings.seed,
    )


def _build(lake: BenchmarkLake, candidate: Candidate, device: torch.device) -> Built:
    _log.info("building %s", candidate.name)
    algorithm = candidate.adapter(device)
    # Libraries that the adapter's module has just loaded came with their own number of threads.
    pin_threads(torch.get_num_threads())
    with peak_memory(device) as peak:
        started = time.perf_counter()
        algorithm.build(lake, **candidate.build_arguments)
        seconds = time.perf_counter() - started
    return Built(candidate, algorithm, seconds, peak)


def _answer(
    built: Built, queries: Sequence[BenchmarkQuery], batched: bool
) -> tuple[list[Columns], Peak]:
    """Let an algorithm answer every query once: the answers that are checked, and the warm-up."""
    _log.info("answering with %s", built.candidate.name)
    with peak_memory(built.algorithm.device) as peak:
        if batched:
            answers = _as_many(built.algorithm.query_batch(queries), queries, built.candidate.name)
        else:
            answers = [built.algorithm.query(query) for query in queries]
    return [normal_form(answer) for answer in answers], peak


def _as_many(answers: list[Answer], queries: Sequence[BenchmarkQuery], name: str) -> list[Answer]:
    if len(answers) != len(queries):
        raise ValueError(
            f"{name} gave {len(answers)} answers to a batch of {len(queries)} query columns."
        )
    return answers


def _check_repeat(
    first: Mapping[str, Sequence[Columns]],
    queries: Sequence[BenchmarkQuery],
    differences: list[Difference],
    name: str,
    number: int,
    answer: Answer,
) -> None:
    """Compare a timed answer with the one that was checked."""
    what = difference(normal_form(answer), first[name][number])
    if what is not None:
        differences.append(
            Difference(name, "its own first answer", number, queries[number].name, what)
        )


def _check_batch(
    first: Mapping[str, Sequence[Columns]],
    queries: Sequence[BenchmarkQuery],
    differences: list[Difference],
    name: str,
    _: int,
    answers: list[Answer],
) -> None:
    for number, answer in enumerate(_as_many(answers, queries, name)):
        _check_repeat(first, queries, differences, name, number, answer)


def _by_size(
    queries: Sequence[BenchmarkQuery], measured: dict[str, Measured]
) -> list[dict[str, object]]:
    """Return the median times for each class of query sizes."""
    rows = []
    for number, (smallest, largest) in enumerate(SIZE_CLASSES):
        members = [
            position for position, query in enumerate(queries) if size_class(len(query)) == number
        ]
        if not members:
            continue
        medians = {name: _median(measurement, members) for name, measurement in measured.items()}
        rows.append(
            {
                "values": [smallest, largest],
                "queries": len(members),
                "median_seconds": medians,
                "ratios_to_pexeso": ratios(medians, BASE),
            }
        )
    return rows


def _median(measured: Measured, members: Sequence[int]) -> float:
    seconds = torch.from_numpy(query_seconds(measured)[members])
    return float(torch.quantile(seconds, 0.5))
