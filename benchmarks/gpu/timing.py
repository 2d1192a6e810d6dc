"""Seconds on any device, and the time that a run may take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch

from benchmarks.timing import timed_call, wait_for

_AHEAD_BYTES = 1 << 30


def wall_seconds(work: Callable[[], object], device: torch.device) -> float:
    """Return the wall-clock seconds of some work, from an idle device to an idle device."""
    wait_for(device)
    started = time.perf_counter()
    work()
    wait_for(device)
    return time.perf_counter() - started


def seconds_to_answer(work: Callable[[], object], device: torch.device) -> float:
    """Return the wall-clock seconds of work that brings an answer to the host, from an idle device.

    The answer has been waited for, so that nothing is left to wait for.
    """
    wait_for(device)
    return timed_call(work)[0]


def device_seconds(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Return the median seconds of some work.

    They are measured by events on CUDA, behind other work that takes the device longer than
    launching takes the host, and that leaves nothing of ours in the cache. On the CPU they are
    measured by the clock.
    """
    if device.type != "cuda":
        return statistics.median(wall_seconds(work, device) for _ in range(repeats))
    ahead = torch.empty(_AHEAD_BYTES, dtype=torch.int8, device=device)
    seconds = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        ahead.zero_()
        begin.record()
        work()
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) / 1000.0)
    return statistics.median(seconds)


def busy_seconds(work: Callable[[], object], device: torch.device) -> float | None:
    """Return the seconds for which a CUDA device is busy with some work, by torch's profiler."""
    if device.type != "cuda":
        return None
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        work()
        wait_for(device)
    busy = sum(event.self_device_time_total for event in profile.key_averages())
    return busy / 1e6 or None


def host_share(
    works: Sequence[Callable[[], object]], seconds: Sequence[float], device: torch.device
) -> dict[str, float | None]:
    """Return the median seconds for which the device is busy, and the host's share of the time."""
    busy = [busy_seconds(work, device) for work in works]
    if None in busy:
        return {"busy_seconds": None, "host_share": None}
    shares = [1.0 - part / whole for part, whole in zip(busy, seconds, strict=True)]
    return {
        "busy_seconds": statistics.median(busy),
        "host_share": max(0.0, statistics.median(shares)),
    }


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return median, mean, and the bounds of the fastest and the slowest tenth."""
    low, middle, high = (
        float(quantile) for quantile in np.quantile(np.array(seconds), (0.1, 0.5, 0.9))
    )
    return {
        "median_seconds": middle,
        "mean_seconds": float(np.mean(seconds)),
        "p10_seconds": low,
        "p90_seconds": high,
        "max_seconds": float(np.max(seconds)),
    }


class Clock:
    """Counts the seconds from when it is made."""

    def __init__(self, seconds: float) -> None:
        self._started, self._seconds = time.perf_counter(), seconds
        self.reserved = 0.0
        self.left_out: list[dict[str, str]] = []

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._started

    @property
    def left(self) -> float:
        """Seconds that are left; below 0 when the time is over."""
        return self._seconds - self.reserved - self.elapsed

    def enough(self, part: str, needed: float) -> bool:
        """Return whether a part fits in the remaining time."""
        if needed <= self.left:
            return True
        self.leave_out(
            part, f"would take about {needed:.0f} s, {max(0.0, self.left):.0f} s are left"
        )
        return False

    def leave_out(self, part: str, reason: str) -> None:
        self.left_out.append({"part": part, "reason": reason})
        self.say(f"left out: {part}: {reason}")

    def say(self, what: str) -> None:
        """Print a line at once, so that a run that is cut short still tells."""
        print(f"[{self.elapsed:6.1f} s] {what}", flush=True)
