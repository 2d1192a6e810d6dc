"""Peak memory of a step, as the operating system counts it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Peak:
    """Bytes that a step needed beyond what was held before it; None where they cannot be known."""

    n_bytes: int | None = None


@contextmanager
def peak_memory(device: torch.device) -> Iterator[Peak]:
    """Measure the peak memory within the block."""
    peak = Peak()
    before = _start(device)
    yield peak
    if before is not None:
        after = (
            torch.cuda.max_memory_allocated(device) if device.type == "cuda" else _resident("VmHWM")
        )
        peak.n_bytes = max(0, after - before)


def _start(device: torch.device) -> int | None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device)
    give_back()
    try:
        _CLEAR.write_text(
            "5", encoding="ascii"
        )  # sets the high-water mark back to what is resident now
        return _resident("VmRSS")
    except OSError:
        return None


def give_back() -> None:
    """Make the C library return the memory that earlier steps freed."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc
    if trim is not None:
        trim(0)


def _resident(name: str) -> int:
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{_STATUS} has no {name}")
