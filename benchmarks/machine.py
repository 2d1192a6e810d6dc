"""What the numbers were measured on, and how many threads were allowed."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path

import torch
from threadpoolctl import threadpool_info, threadpool_limits

_PACKAGES = ("torch", "numpy", "faiss-cpu", "scikit-learn")


def pin_threads(n_threads: int) -> None:
    """Give torch, and every OpenMP and BLAS library that is loaded by now, so many threads; float32 products stay float32."""
    torch.set_num_threads(n_threads)
    threadpool_limits(n_threads)
    torch.set_float32_matmul_precision("highest")


def describe_machine(device: torch.device) -> dict[str, object]:
    """Give processor, cores, load, packages, threads and date as plain JSON."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    pools = {
        f"{pool['internal_api']} ({Path(pool['filepath']).name})": pool["num_threads"] for pool in threadpool_info()
    }
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": versions,
        "threads": {"torch": torch.get_num_threads(), **pools},
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
