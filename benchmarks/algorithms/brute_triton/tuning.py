"""The fastest configuration of the fused kernel on a device, looked for within some seconds."""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial

import torch
from triton.errors import TritonError

from benchmarks.algorithms.brute_triton.kernel import Configuration, PairFinder, configurations
from benchmarks.gpu.timing import device_seconds, wait_for

SAMPLE = 1 << 21
"""Values that configurations are compared on: more than the cache of a GPU holds."""

REPEATS = 3


class Tuner:
    """Looks for configurations once for each length of a vector and each width of a tile."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._best: dict[tuple[int, int], Configuration | None] = {}
        self.tried: list[dict[str, object]] = []

    def best(
        self, values: torch.Tensor, queries: torch.Tensor, limits: torch.Tensor
    ) -> Configuration | None:
        """Return the fastest configuration on some of the values, or None where none runs."""
        choices = configurations(len(queries), values.dtype)
        key = values.shape[1], min(choice.queries for choice in choices)
        if key not in self._best:
            self._best[key] = self._compare(choices, values[:SAMPLE], queries, limits)
        return self._best[key]

    def _compare(
        self,
        choices: list[Configuration],
        values: torch.Tensor,
        queries: torch.Tensor,
        limits: torch.Tensor,
    ) -> Configuration | None:
        best: tuple[float, Configuration] | None = None
        times: list[dict[str, object]] = []
        started = time.perf_counter()
        for choice in choices:
            if times and time.perf_counter() - started > self._seconds:
                break
            try:
                seconds = _seconds(choice, values, queries, limits)
            except (TritonError, RuntimeError) as error:
                times.append({**asdict(choice), "failed": str(error).strip()[:200]})
                continue
            times.append({**asdict(choice), "seconds": seconds})
            if best is None or seconds < best[0]:
                best = seconds, choice
        self.tried.append(
            {
                "values": len(values),
                "width": values.shape[1],
                "queries": len(queries),
                "configurations": times,
                "best": best and asdict(best[1]),
                "took_seconds": time.perf_counter() - started,
            }
        )
        return best and best[1]


def _seconds(
    choice: Configuration, values: torch.Tensor, queries: torch.Tensor, limits: torch.Tensor
) -> float:
    """Return what a configuration takes; the first launch, which compiles, is not counted."""
    finder = PairFinder(values, choice)
    launch = partial(finder.launch, finder.prepare(queries, limits))
    launch()
    wait_for(values.device)
    return device_seconds(launch, values.device, REPEATS)
