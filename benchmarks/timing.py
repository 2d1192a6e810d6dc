"""Wall time of questions, with the algorithms measured in turn.

A question is one query column, or a batch of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch

from benchmarks.declared import Algorithm

Answered = TypeVar("Answered")

QUIET_SECONDS = 0.05
"""Pause before each question.

OpenMP's threads keep a core busy for a while after their last step (libgomp: 300,000 turns of a
loop, some 16 ms), waiting for the next; so long the algorithm whose turn comes would be measured on
the cores that the one before has left it.
"""


@dataclass
class Measured:
    """What the timed questions to one algorithm gave.

    Attributes
    ----------
    seconds : float64 (questions, repeats)
        Wall time.
    processor_seconds : float64 (questions, repeats)
        Processor time of all threads: what the wall time would be on an idle machine, for one
        thread on the CPU.
    work : list of dict
        Each question's counters, of its last repeat; seconds by phase are medians over repeats.
    """

    seconds: np.ndarray
    processor_seconds: np.ndarray
    work: list[dict[str, float]] = field(default_factory=list)
    batch: int | None = None


def timed_call(
    call: Callable[..., Answered],
    *arguments: Any,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, Answered]:
    """Return the seconds that a call takes, and its answer."""
    started = clock()
    answer = call(*arguments)
    return clock() - started, answer


def measure_in_turn(
    algorithms: Mapping[str, Algorithm],
    questions: Sequence[Any],
    repeats: int,
    check: Callable[[str, int, Any], None],
    *,
    batched: bool = False,
) -> dict[str, Measured]:
    """Time every question on every algorithm, `repeats` times."""
    names = list(algorithms)
    # (wall or processor, questions, repeats)
    seconds = {name: np.zeros((2, len(questions), repeats)) for name in names}
    work: dict[str, list[list[dict[str, float]]]] = {
        name: [[] for _ in questions] for name in names
    }
    for repeat in range(repeats):
        start = repeat % len(names)
        for number, question in enumerate(questions):
            for name in names[start:] + names[:start]:
                algorithm = algorithms[name]
                elapsed, answer = timed(algorithm, question, batched)
                seconds[name][:, number, repeat] = elapsed
                work[name][number].append(algorithm.work)
                check(name, number, answer)
    batch = len(questions[0]) if batched else None
    return {
        name: Measured(*seconds[name], [_merge(repeated) for repeated in work[name]], batch)
        for name in names
    }


def timed(
    algorithm: Algorithm, question: Any, batched: bool = False
) -> tuple[tuple[float, float], Any]:
    """Run a question; return its wall and processor seconds, and the answer."""
    ask = algorithm.query_batch if batched else algorithm.query
    wait_for(algorithm.device)
    time.sleep(QUIET_SECONDS)
    wall, processor = time.perf_counter(), time.process_time()
    answer = ask(question)
    wait_for(algorithm.device)
    return (time.perf_counter() - wall, time.process_time() - processor), answer


def wait_for(device: torch.device) -> None:
    """Wait until a device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _merge(repeated: Sequence[dict[str, float]]) -> dict[str, float]:
    """Counters do not differ between repeats; seconds do."""
    last = repeated[-1]
    return {
        name: float(np.median([work[name] for work in repeated]))
        if name.startswith("seconds_")
        else value
        for name, value in last.items()
    }
