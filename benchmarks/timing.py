"""Wall time of queries, algorithms taken in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from benchmarks.declared import Algorithm
from benchmarks.lake import Answer, BenchmarkQuery


@dataclass
class Measured:
    """What the timed queries of one algorithm gave.

    Attributes
    ----------
    seconds : float64 (queries, repeats)
        Wall time.
    processor_seconds : float64 (queries, repeats)
        Processor time of all threads: what the wall time would be on an idle machine, for one thread on the CPU.
    work : list of dict
        Each query's counters, of its last repeat; seconds by phase are medians over repeats.
    """

    seconds: np.ndarray
    processor_seconds: np.ndarray
    work: list[dict[str, float]] = field(default_factory=list)


def measure_in_turn(
    algorithms: Mapping[str, Algorithm],
    queries: Sequence[BenchmarkQuery],
    repeats: int,
    check: Callable[[str, int, Answer], None],
) -> dict[str, Measured]:
    """Time every query on every algorithm, `repeats` times.

    Within a query the algorithms take turns (A B C, next repeat B C A, ...), so that a load that comes and goes on the machine, and
    what the one before left in the caches, meet all of them alike. `check` is called after the clock has stopped.
    """
    names = list(algorithms)
    # (wall or processor, queries, repeats)
    seconds = {name: np.zeros((2, len(queries), repeats)) for name in names}
    work: dict[str, list[list[dict[str, float]]]] = {name: [[] for _ in queries] for name in names}
    for repeat in range(repeats):
        start = repeat % len(names)
        for number, query in enumerate(queries):
            for name in names[start:] + names[:start]:
                algorithm = algorithms[name]
                elapsed, answer = timed(algorithm, query)
                seconds[name][:, number, repeat] = elapsed
                work[name][number].append(algorithm.work)
                check(name, number, answer)
    return {name: Measured(*seconds[name], [_merge(repeated) for repeated in work[name]]) for name in names}


def timed(algorithm: Algorithm, query: BenchmarkQuery) -> tuple[tuple[float, float], Answer]:
    """Answer a query; give the wall and processor seconds it took, and the answer, which is on the host when the clocks are read."""
    _synchronise(algorithm.device)
    wall, processor = time.perf_counter(), time.process_time()
    answer = algorithm.query(query)
    _synchronise(algorithm.device)
    return (time.perf_counter() - wall, time.process_time() - processor), answer


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _merge(repeated: Sequence[dict[str, float]]) -> dict[str, float]:
    """Counters do not differ between repeats; seconds do."""
    last = repeated[-1]
    return {
        name: float(np.median([work[name] for work in repeated])) if name.startswith("seconds_") else value
        for name, value in last.items()
    }
