"""What is computed from a run: a table of metrics, each with a description, a unit, a function and whether less is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.timing import Measured


@dataclass(frozen=True)
class Run:
    """All that is known of one algorithm in one run.

    Attributes
    ----------
    measured : Measured
    answers, right : sequence of mapping, column -> count
        Its answers, and the right ones.
    build_seconds : float
    index_bytes : int
    peak_build_bytes, peak_query_bytes : int or None
    """

    measured: Measured
    answers: Sequence[Mapping[int, int]]
    right: Sequence[Mapping[int, int]]
    build_seconds: float
    index_bytes: int
    peak_build_bytes: int | None
    peak_query_bytes: int | None


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes
    ----------
    description, unit : str
    worst : float
        The worst value there can be: ``inf`` where less is better.
    function : callable
        Run -> number, or None where it cannot be known.
    """

    description: str
    unit: str
    worst: float
    function: Callable[[Run], float | None]


def query_seconds(measured: Measured) -> np.ndarray:
    """Give each query's median over repeats, float64 (queries,)."""
    return np.median(measured.seconds, axis=1)


def _quantile(q: float) -> Callable[[Run], float]:
    return lambda run: float(np.quantile(query_seconds(run.measured), q))


def _mean_work(name: str) -> Callable[[Run], float | None]:
    def mean(run: Run) -> float | None:
        known = [work[name] for work in run.measured.work if name in work]
        return float(np.mean(known)) if known else None

    return mean


def _share(of: Callable[[Run, int], set[int]]) -> Callable[[Run], float]:
    """Give the share of the columns of one side that both sides hold, over all queries; 1 where there is none."""

    def share(run: Run) -> float:
        both = sum(len(answer.keys() & right.keys()) for answer, right in zip(run.answers, run.right, strict=True))
        whole = sum(len(of(run, number)) for number in range(len(run.right)))
        return both / whole if whole else 1.0

    return share


_INFINITE = float("inf")

METRICS: dict[str, Metric] = {
    "median_seconds": Metric("median over queries of a query's median over repeats", "s", _INFINITE, _quantile(0.5)),
    "p10_seconds": Metric("a tenth of the queries are faster", "s", _INFINITE, _quantile(0.1)),
    "p90_seconds": Metric("a tenth of the queries are slower", "s", _INFINITE, _quantile(0.9)),
    "mean_seconds": Metric(
        "mean over queries of a query's median over repeats",
        "s",
        _INFINITE,
        lambda run: float(query_seconds(run.measured).mean()),
    ),
    "median_processor_seconds": Metric(
        "median over queries of a query's median processor time over repeats, all threads together",
        "s",
        _INFINITE,
        lambda run: float(np.median(np.median(run.measured.processor_seconds, axis=1))),
    ),
    "repeat_spread": Metric(
        "median over queries of (slowest - fastest repeat) / median: how noisy the machine was",
        "",
        _INFINITE,
        lambda run: float(np.median(np.ptp(run.measured.seconds, axis=1) / query_seconds(run.measured))),
    ),
    "recall": Metric("share of the right columns found", "", 0.0, _share(lambda run, number: set(run.right[number]))),
    "precision": Metric(
        "share of the columns found that are right", "", 0.0, _share(lambda run, number: set(run.answers[number]))
    ),
    "distances": Metric("distances a query", "", _INFINITE, _mean_work("distances")),
    "vectors_touched": Metric(
        "pairs of a query value and a lake value looked at, a query", "", _INFINITE, _mean_work("vectors_touched")
    ),
    "bytes_read": Metric("bytes of vectors read, a query", "B", _INFINITE, _mean_work("bytes_read")),
    "build_seconds": Metric("time to build, embedding excluded", "s", _INFINITE, lambda run: run.build_seconds),
    "index_bytes": Metric("bytes that are needed to answer", "B", _INFINITE, lambda run: run.index_bytes),
    "peak_build_bytes": Metric(
        "most memory while building, beyond what was held", "B", _INFINITE, lambda run: run.peak_build_bytes
    ),
    "peak_query_bytes": Metric(
        "most memory while answering, beyond what was held", "B", _INFINITE, lambda run: run.peak_query_bytes
    ),
}


def evaluate(run: Run) -> dict[str, object]:
    """Give every metric, and the seconds by phase where the algorithm tells them (medians over queries)."""
    values: dict[str, object] = {name: metric.function(run) for name, metric in METRICS.items()}
    phases = sorted({name for work in run.measured.work for name in work if name.startswith("seconds_")})
    values["phases"] = {
        phase.removeprefix("seconds_"): float(np.median([work.get(phase, 0.0) for work in run.measured.work]))
        for phase in phases
    }
    return values


def ratios(medians: Mapping[str, float], base: str) -> dict[str, float]:
    """Give every other algorithm's median over that of `base`: above 1, `base` is faster. Empty where `base` did not run.

    Examples
    --------
    >>> ratios({"pexeso": 0.5, "brute_gemm": 2.0}, "pexeso")
    {'brute_gemm': 4.0}
    """
    if base not in medians:
        return {}
    return {name: median / medians[base] for name, median in medians.items() if name != base}
