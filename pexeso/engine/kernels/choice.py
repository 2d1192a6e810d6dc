"""Which kernel searches on a device; the packages that it needs are imported when it is chosen."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache

import torch

from pexeso.engine import blocks
from pexeso.engine.kernel import Kernel
from pexeso.errors import InputError
from pexeso.runtime.extras import require

KERNELS = ("auto", "compiled", "torch", "triton")

_DEVICES = {"compiled": ("cpu",), "torch": ("cpu", "cuda"), "triton": ("cuda", "cpu")}


def choose_kernel(name: str, device: torch.device) -> Kernel:
    """Return what searches on a device; the packages that it needs are imported here."""
    if name not in KERNELS:
        raise InputError(f"The kernel must be one of {', '.join(KERNELS)}. Got {name!r} instead.")
    has_triton = importlib.util.find_spec("triton") is not None
    if name == "auto":
        on_cuda = "triton" if has_triton else "torch"
        name = {"cpu": "compiled", "cuda": on_cuda}.get(device.type, "torch")
    if device.type not in _DEVICES[name]:
        raise InputError(
            f"The kernel {name} runs on {' and '.join(_DEVICES[name])}. Got the device {device} "
            "instead; use the kernel auto."
        )
    if name == "triton":
        require("triton", "The kernel triton")
    return _make(name)


def fastest_order(mapped: torch.Tensor) -> Callable[[torch.Tensor, int], torch.Tensor]:
    """Return `order_by_splits`, which on the CPU has a compiled counterpart."""
    if mapped.device.type != "cpu":
        return blocks.order_by_splits
    from pexeso.engine.kernels.compiled import order_by_splits

    return order_by_splits


@cache
def _make(name: str) -> Kernel:
    if name == "compiled":
        from pexeso.engine.kernels.compiled import CompiledKernel as Chosen
    elif name == "triton":
        from pexeso.engine.kernels.triton.kernel import TritonKernel as Chosen
    else:
        from pexeso.engine.kernels.torch_kernel import TorchKernel as Chosen
    return Chosen()
