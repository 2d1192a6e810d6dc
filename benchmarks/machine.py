"""What the numbers were measured on, and how many threads were allowed."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path

import torch

from pexeso.errors import DeviceError, InputError

_PACKAGES = ("torch", "numpy", "faiss-cpu", "scikit-learn")


def find_device(name: str) -> torch.device:
    """Return the device of that name."""
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (number and not (kind == "cuda" and number.isdecimal())):
        raise InputError(f"The device must be cpu, cuda or cuda:N. Got {name!r} instead.")
    if kind == "cpu":
        return torch.device("cpu")
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= n_devices:
        finding = f"torch finds {n_devices} CUDA GPUs" if n_devices else "torch finds no CUDA GPU"
        raise DeviceError(
            f"The device {name} was asked for, and {finding} here. Use --device cpu, or a torch "
            "with CUDA on a machine with a GPU."
        )
    return torch.device(name)


def pin_threads(n_threads: int) -> None:
    """Set the number of threads of torch and of every loaded OpenMP and BLAS library."""
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(n_threads)
    threadpool_limits(n_threads)
    torch.set_float32_matmul_precision("highest")


def describe_machine(device: torch.device) -> dict[str, object]:
    """Return processor, cores, memory, load, packages, threads and date as plain JSON."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_gib": _memory_gib(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": versions,
        "threads": {"torch": torch.get_num_threads(), **_pools()},
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _pools() -> dict[str, int]:
    """Return the threads of each OpenMP and BLAS library; nothing where that cannot be told."""
    try:
        from threadpoolctl import threadpool_info
    except ModuleNotFoundError:
        return {}
    return {
        f"{pool['internal_api']} ({Path(pool['filepath']).name})": pool["num_threads"]
        for pool in threadpool_info()
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gib() -> int:
    """Return the memory of the machine, rounded to the nearest GiB."""
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
