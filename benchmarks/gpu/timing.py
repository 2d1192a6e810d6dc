"""Seconds on any device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch


def wait_for(device: torch.device) -> None:
    """Wait until a device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def wall_seconds(work: Callable[[], object], device: torch.device) -> float:
    """Return the wall-clock seconds of some work, from an idle device to an idle device."""
    wait_for(device)
    started = time.perf_counter()
    work()
    wait_for(device)
    return time.perf_counter() - started


def device_seconds(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Return the median seconds of some work.

    They are measured by events on CUDA, so that launching is not counted, and by the clock on the
    CPU.
    """
    if device.type != "cuda":
        return statistics.median(wall_seconds(work, device) for _ in range(repeats))
    seconds = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) / 1000.0)
    return statistics.median(seconds)


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return median, mean, and the bounds of the fastest and the slowest tenth.

    Examples
    --------
    >>> spread([1.0, 2.0, 6.0])["median_seconds"], spread([1.0, 2.0, 6.0])["mean_seconds"]
    (2.0, 3.0)
    """
    low, middle, high = (float(each) for each in np.quantile(np.array(seconds), (0.1, 0.5, 0.9)))
    return {
        "median_seconds": middle,
        "mean_seconds": float(np.mean(seconds)),
        "p10_seconds": low,
        "p90_seconds": high,
        "max_seconds": float(np.max(seconds)),
    }
