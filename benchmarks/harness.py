"""One run: build every algorithm, check all answers, then time the queries in turn."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

import torch

from benchmarks.checking import Difference, compare, difference, normal_form, oracle_answer, oracle_sample
from benchmarks.declared import Algorithm, Candidate
from benchmarks.drawing import SIZE_CLASSES, draw_queries, size_class
from benchmarks.lake import Answer, BenchmarkLake, BenchmarkQuery
from benchmarks.machine import describe_machine, pin_threads
from benchmarks.memory import Peak, peak_memory
from benchmarks.metrics import Run, evaluate, query_seconds, ratios
from benchmarks.timing import Measured, measure_in_turn
from pexeso.errors import InputError

BASE = "pexeso"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """What is asked, how often, and with what.

    Attributes
    ----------
    queries : int
        Query columns.
    max_distance : float
        In [0, 1].
    min_joinability : float
        In (0, 1].
    repeats : int
        Timed repeats of each query, at least 1.
    seed : int
        Of the draws of queries and of checked queries.
    device : str
    threads : int
        At least 1.
    """

    queries: int = 100
    max_distance: float = 0.06
    min_joinability: float = 0.6
    repeats: int = 3
    seed: int = 0
    device: str = "cpu"
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("queries", "repeats", "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1. Got {getattr(self, name)} instead.")
        if not 0 <= self.max_distance <= 1:
            raise InputError(f"max_distance must lie in [0, 1]. Got {self.max_distance} instead.")
        if not 0 < self.min_joinability <= 1:
            raise InputError(f"min_joinability must lie in (0, 1]. Got {self.min_joinability} instead.")


@dataclass
class _Entrant:
    """An algorithm in the run, and what was learnt before the clock."""

    candidate: Candidate
    algorithm: Algorithm
    build_seconds: float
    build_peak: Peak
    query_peak: Peak
    answers: list[dict[int, int]]


def run_benchmark(lake: BenchmarkLake, candidates: Sequence[Candidate], settings: Settings) -> dict[str, object]:
    """Run the candidates on one lake.

    Parameters
    ----------
    lake : BenchmarkLake
    candidates : sequence of Candidate
        Names differ; at least one.
    settings : Settings

    Returns
    -------
    dict
        Plain JSON: ``data``, ``queries``, ``agree``, ``algorithms``, ``ratios_to_pexeso``, and what is needed to read them.
    """
    device = torch.device(settings.device)
    pin_threads(settings.threads)
    queries = draw_queries(
        lake,
        settings.queries,
        max_distance=settings.max_distance,
        min_joinability=settings.min_joinability,
        seed=settings.seed,
    )
    _ = lake.value_columns, lake.fingerprint  # made once, outside of every measurement
    entrants = {each.name: _enter(lake, each, queries, device) for each in candidates}
    exact = [name for name, entrant in entrants.items() if entrant.candidate.exact]
    _log.info("checking against float64")
    truths = {
        number: oracle_answer(lake, queries[number]) for number in oracle_sample(lake, queries, seed=settings.seed)
    }
    answers = {name: entrant.answers for name, entrant in entrants.items()}
    differences = compare(answers, exact, truths, queries)
    _log.info("measuring")
    check = partial(_check_repeat, entrants, queries, differences)
    measured = measure_in_turn(
        {name: entrant.algorithm for name, entrant in entrants.items()}, queries, settings.repeats, check
    )
    right = [truths.get(number, answers[(exact or list(answers))[0]][number]) for number in range(len(queries))]
    metrics = {name: evaluate(_as_run(entrants[name], measured[name], right)) for name in entrants}
    return {
        "data": lake.name,
        "queries": len(queries),
        "agree": not differences,
        "algorithms": metrics,
        "ratios_to_pexeso": _ratios(metrics, "median_seconds"),
        "processor_ratios_to_pexeso": _ratios(metrics, "median_processor_seconds"),
        "by_size": _by_size(queries, measured),
        "checked": {"against_each_other": len(queries) if len(exact) > 1 else 0, "against_float64": len(truths)},
        "differences": [str(each) for each in differences],
        "lake": lake.describe(),
        "query_values": sum(map(len, queries)),
        "columns_found": sum(map(len, right)),
        "settings": asdict(settings),
        "machine": describe_machine(device),
    }


def _enter(
    lake: BenchmarkLake, candidate: Candidate, queries: Sequence[BenchmarkQuery], device: torch.device
) -> _Entrant:
    """Build an algorithm and let it answer every query once: the answers that are checked, and the warm-up."""
    _log.info("building %s", candidate.name)
    algorithm = candidate.adapter(device)
    # Libraries that the adapter's module has just loaded came with their own number of threads.
    pin_threads(torch.get_num_threads())
    with peak_memory(device) as build_peak:
        started = time.perf_counter()
        algorithm.build(lake, candidate.build_arguments)
        build_seconds = time.perf_counter() - started
    algorithm.set_query_arguments(candidate.query_arguments)
    _log.info("answering with %s", candidate.name)
    with peak_memory(device) as query_peak:
        answers = [normal_form(algorithm.query(query)) for query in queries]
    return _Entrant(candidate, algorithm, build_seconds, build_peak, query_peak, answers)


def _check_repeat(
    entrants: dict[str, _Entrant],
    queries: Sequence[BenchmarkQuery],
    differences: list[Difference],
    name: str,
    number: int,
    answer: Answer,
) -> None:
    """Compare a timed answer with the one that was checked."""
    what = difference(normal_form(answer), entrants[name].answers[number])
    if what is not None:
        differences.append(Difference(name, "its own first answer", number, queries[number].name, what))


def _as_run(entrant: _Entrant, measured: Measured, right: Sequence[dict[int, int]]) -> Run:
    return Run(
        measured,
        entrant.answers,
        right,
        entrant.build_seconds,
        entrant.algorithm.index_bytes,
        entrant.build_peak.n_bytes,
        entrant.query_peak.n_bytes,
    )


def _ratios(metrics: dict[str, dict[str, object]], name: str) -> dict[str, float]:
    return ratios({algorithm: float(values[name]) for algorithm, values in metrics.items()}, BASE)


def _by_size(queries: Sequence[BenchmarkQuery], measured: dict[str, Measured]) -> list[dict[str, object]]:
    """Give the medians for each class of query sizes: where an algorithm wins, and where it loses."""
    rows = []
    for number, (least, most) in enumerate(SIZE_CLASSES):
        members = [place for place, query in enumerate(queries) if size_class(len(query)) == number]
        if not members:
            continue
        medians = {name: _median(each, members) for name, each in measured.items()}
        rows.append(
            {
                "values": [least, most],
                "queries": len(members),
                "median_seconds": medians,
                "ratios_to_pexeso": ratios(medians, BASE),
            }
        )
    return rows


def _median(measured: Measured, members: Sequence[int]) -> float:
    seconds = torch.from_numpy(query_seconds(measured)[members])
    return float(torch.quantile(seconds, 0.5))
