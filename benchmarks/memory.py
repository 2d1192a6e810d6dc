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
        on_cuda = device.type == "cuda"
        after = torch.cuda.max_memory_allocated(device) if on_cuda else resident_bytes("VmHWM")
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
        return resident_bytes("VmRSS")
    except OSError:
        return None


def give_back() -> None:
    """Make the C library return the memory that earlier steps freed."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc
    if trim is not None:
        trim(0)


def resident_bytes(name: str) -> int:
    """Return a size of this process as Linux counts it: ``VmHWM``, ``VmRSS`` or ``RssAnon``."""
    return number_in(_STATUS, name) * 1024


def number_in(path: Path, name: str) -> int:
    """Return a number of a file of Linux whose lines are names and numbers."""
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise OSError(f"{path} has no {name}")
