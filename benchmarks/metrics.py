"""The metrics computed from a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.timing import Measured

Columns = Mapping[int, int]
"""Column -> count."""


@dataclass(frozen=True)
class Run:
    """All that is known of one algorithm in one run."""

    measured: Measured
    answers: Sequence[Columns]
    right: Sequence[Columns | None]
    build_seconds: float
    index_bytes: int
    peak_build_bytes: int | None
    peak_query_bytes: int | None


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


def _share(of: Callable[[Columns, Columns], Columns]) -> Callable[[Run], float | None]:
    """Return a metric, the share of the columns of one side that both sides hold."""

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


METRICS: dict[str, Callable[[Run], float | None]] = {
    "median_seconds": _quantile(0.5),
    "p90_seconds": _quantile(0.9),
    "median_processor_seconds": _processor_seconds,
    "repeat_spread": _repeat_spread,
    "recall": _share(lambda answer, right: right),
    "precision": _share(lambda answer, right: answer),
    "distances": _mean_work("distances"),
    "vectors_touched": _mean_work("vectors_touched"),
    "bytes_read": _mean_work("bytes_read"),
    "build_seconds": lambda run: run.build_seconds,
    "index_bytes": lambda run: run.index_bytes,
    "peak_build_bytes": lambda run: run.peak_build_bytes,
    "peak_query_bytes": lambda run: run.peak_query_bytes,
}
"""The figures of an algorithm; the README says what each means."""


def evaluate(run: Run) -> dict[str, object]:
    """Return every metric, and the seconds per query column by phase."""
    values: dict[str, object] = {name: metric(run) for name, metric in METRICS.items()}
    work, columns = run.measured.work, _columns_a_question(run.measured)
    phases = sorted({name for stats in work for name in stats if name.startswith("seconds_")})
    values["phases"] = {
        phase.removeprefix("seconds_"): float(np.median([stats.get(phase, 0.0) for stats in work]))
        / columns
        for phase in phases
    }
    return values


def ratios(medians: Mapping[str, float], base: str) -> dict[str, float]:
    """Return every other algorithm's median over that of `base`: above 1, `base` is faster."""
    if base not in medians:
        return {}
    return {name: median / medians[base] for name, median in medians.items() if name != base}
