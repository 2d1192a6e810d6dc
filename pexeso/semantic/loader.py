"""The partitions of a store on the device that a search names."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from pexeso.build.opening import choose_device
from pexeso.build.parts.metadata import stored_space
from pexeso.errors import InputError
from pexeso.runtime.formatting import format_bytes
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.store.local.reader import Store

if TYPE_CHECKING:
    import torch

MIN_CPU_BUDGET = 140 << 20
"""What a search on the CPU takes where it holds few pairs at a time, in bytes."""

_DRIVERS = ("/dev/nvidiactl", "/dev/dxg")
"""Without any of these files Linux has no CUDA device."""


def loader_of(store: Store, device: str, memory_budget: int | None, kernel: str) -> PartitionLoader:
    """Return the partitions of a store on a device."""
    space = stored_space(store.manifest)
    if space.has_kernels:
        from pexeso.engine.kernels.choice import choose_kernel

        where = choose_device(device)
        if where.type == "cpu":
            _check_budget_of_the_cpu(memory_budget)
        return PartitionLoader(store, space, where, memory_budget, choose_kernel(kernel, where))
    where = _device_of_letters(device, kernel)
    on_cpu = where is None or where.type == "cpu"
    if on_cpu and memory_budget is not None:
        raise InputError(
            "memory_budget bounds what a search takes on a GPU, and the pairs of vectors that one "
            "on the CPU holds; this search compares spellings on the CPU, where it bounds nothing. "
            "Leave it out."
        )
    space = replace(space, device=where)
    return PartitionLoader(store, space, None if on_cpu else where, memory_budget, None)


def _check_budget_of_the_cpu(memory_budget: int | None) -> None:
    """Refuse a budget that a search on the CPU cannot keep."""
    if memory_budget is not None and memory_budget < MIN_CPU_BUDGET:
        raise InputError(
            f"memory_budget must be at least {format_bytes(MIN_CPU_BUDGET)} on the CPU, which a "
            f"search takes with few pairs at a time. Got {format_bytes(memory_budget)}."
        )


def _device_of_letters(device: str, kernel: str) -> torch.device | None:
    """Return the device on which torch searches a lexical index; None: compiled loops do it.

    On the CPU these are the faster, and need no torch, which takes longer to load than most
    searches take.
    """
    if kernel in ("auto", "compiled") and (
        device == "cpu" or (device == "auto" and not any(map(os.path.exists, _DRIVERS)))
    ):
        return None
    from pexeso.engine.kernels.choice import choose_kernel

    where = choose_device(device)
    choose_kernel(kernel, where)
    if kernel in ("triton", "faiss"):
        raise InputError(
            "An index of the model 'lexical' is searched by the kernels compiled, on the CPU, and "
            f"torch. Got {kernel!r}: take one of these, or auto."
        )
    return None if where.type == "cpu" and kernel != "torch" else where
