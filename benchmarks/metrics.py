"""The metrics computed from a run.

Each has a description, a unit, a function, and whether less is better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.timing import Measured

Columns = Mapping[int, int]
"""Column -> count."""


@dataclass(frozen=True)
class Run:
    """All that is known of one algorithm in one run.

    Attributes
    ----------
    measured : Measured
    answers : sequence of mapping, column -> count
        Its answers, one a query column.
    right : sequence of mapping or None
        The right ones; None where nothing exact was run for a query column.
    lake_values : int
        N: vectors in the lake.
    build_seconds : float
    index_bytes : int
    peak_build_bytes, peak_query_bytes : int or None
    """

    measured: Measured
    answers: Sequence[Columns]
    right: Sequence[Columns | None]
    lake_values: int
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
    """Return the seconds per query column, float64.

    They are each query column's median over repeats, or, for a batch, each repeat's share for one
    of its columns.
    """
    if measured.batch is None:
        return np.median(measured.seconds, axis=1)
    return measured.seconds.ravel() / measured.batch


def _columns_a_question(measured: Measured) -> int:
    return measured.batch or 1


def _quantile(q: float) -> Callable[[Run], float]:
    return lambda run: float(np.quantile(query_seconds(run.measured), q))


def _batch_seconds(run: Run) -> float | None:
    return None if run.measured.batch is None else float(np.median(run.measured.seconds))


def _processor_seconds(run: Run) -> float:
    medians = np.median(run.measured.processor_seconds, axis=1)
    return float(np.median(medians)) / _columns_a_question(run.measured)


def _repeat_spread(run: Run) -> float:
    seconds = run.measured.seconds
    return float(np.median(np.ptp(seconds, axis=1) / np.median(seconds, axis=1)))


def _mean_work(name: str) -> Callable[[Run], float | None]:
    def mean(run: Run) -> float | None:
        known = [work[name] for work in run.measured.work if name in work]
        return float(np.mean(known)) / _columns_a_question(run.measured) if known else None

    return mean


def _bytes_per_vector(run: Run) -> float | None:
    n_bytes = _mean_work("bytes_read")(run)
    return None if n_bytes is None or not run.lake_values else n_bytes / run.lake_values


def _build_rate(run: Run) -> float | None:
    return run.lake_values / run.build_seconds if run.build_seconds else None


def _share(of: Callable[[Columns, Columns], Columns]) -> Callable[[Run], float | None]:
    """Return a metric, the share of the columns of one side that both sides hold.

    It runs over all queries with a right answer, and is 1 where these have no columns.
    """

    def share(run: Run) -> float | None:
        known = [
            (answer, right)
            for answer, right in zip(run.answers, run.right, strict=True)
            if right is not None
        ]
        if not known:
            return None
        both = sum(len(answer.keys() & right.keys()) for answer, right in known)
        whole = sum(len(of(answer, right)) for answer, right in known)
        return both / whole if whole else 1.0

    return share


_INFINITE = float("inf")

METRICS: dict[str, Metric] = {
    "median_seconds": Metric(
        "a query column: median over query columns of their medians over repeats; of a batch, "
        "the median repeat over the columns in it",
        "s",
        _INFINITE,
        _quantile(0.5),
    ),
    "p10_seconds": Metric(
        "a tenth of the query columns (of a batch: of its repeats) are faster",
        "s",
        _INFINITE,
        _quantile(0.1),
    ),
    "p90_seconds": Metric(
        "a tenth of the query columns (of a batch: of its repeats) are slower",
        "s",
        _INFINITE,
        _quantile(0.9),
    ),
    "mean_seconds": Metric(
        "mean where median_seconds is the median",
        "s",
        _INFINITE,
        lambda run: float(query_seconds(run.measured).mean()),
    ),
    "batch_seconds": Metric("a whole batch: median over repeats", "s", _INFINITE, _batch_seconds),
    "median_processor_seconds": Metric(
        "as median_seconds, in processor time of all threads together",
        "s",
        _INFINITE,
        _processor_seconds,
    ),
    "repeat_spread": Metric(
        "median over questions of (slowest - fastest repeat) / median: how noisy the machine was",
        "",
        _INFINITE,
        _repeat_spread,
    ),
    "recall": Metric(
        "share of the right columns found", "", 0.0, _share(lambda answer, right: right)
    ),
    "precision": Metric(
        "share of the columns found that are right", "", 0.0, _share(lambda answer, right: answer)
    ),
    "distances": Metric("distances a query column", "", _INFINITE, _mean_work("distances")),
    "vectors_touched": Metric(
        "pairs of a query value and a lake value looked at, a query column",
        "",
        _INFINITE,
        _mean_work("vectors_touched"),
    ),
    "bytes_read": Metric(
        "bytes of vectors read, a query column", "B", _INFINITE, _mean_work("bytes_read")
    ),
    "bytes_per_vector": Metric(
        "bytes_read over the vectors in the lake", "B", _INFINITE, _bytes_per_vector
    ),
    "build_seconds": Metric(
        "time to build, embedding excluded", "s", _INFINITE, lambda run: run.build_seconds
    ),
    "build_vectors_per_second": Metric(
        "vectors of the lake a second of building", "", 0.0, _build_rate
    ),
    "index_bytes": Metric(
        "bytes that are needed to answer", "B", _INFINITE, lambda run: run.index_bytes
    ),
    "peak_build_bytes": Metric(
        "most memory while building, beyond what was held",
        "B",
        _INFINITE,
        lambda run: run.peak_build_bytes,
    ),
    "peak_query_bytes": Metric(
        "most memory while answering, beyond what was held",
        "B",
        _INFINITE,
        lambda run: run.peak_query_bytes,
    ),
}


def evaluate(run: Run) -> dict[str, object]:
    """Return every metric, and the seconds per query column by phase.

    Phases are medians over questions, and are there only where the algorithm reports them.
    """
    values: dict[str, object] = {name: metric.function(run) for name, metric in METRICS.items()}
    work, columns = run.measured.work, _columns_a_question(run.measured)
    phases = sorted({name for stats in work for name in stats if name.startswith("seconds_")})
    values["phases"] = {
        phase.removeprefix("seconds_"): float(np.median([stats.get(phase, 0.0) for stats in work]))
        / columns
        for phase in phases
    }
    return values


def ratios(medians: Mapping[str, float], base: str) -> dict[str, float]:
    """Return every other algorithm's median over that of `base`: above 1, `base` is faster.

    Empty where `base` did not run.

    Examples
    --------
    >>> ratios({"pexeso": 0.5, "brute_gemm": 2.0}, "pexeso")
    {'brute_gemm': 4.0}
    """
    if base not in medians:
        return {}
    return {name: median / medians[base] for name, median in medians.items() if name != base}
