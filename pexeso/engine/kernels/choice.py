"""The kernels, by name and by what a machine has."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from functools import cache

import torch

from pexeso.engine.interface import Kernel, KernelChoice
from pexeso.errors import InputError, MissingPackageError

WORTH_LOADING = 1 << 27
"""(Query value, stored value) pairs in all: about a second of tensor operations on one core."""


class AdaptiveKernel(KernelChoice):
    """A choice between two kernels.

    It takes tensor operations at first, and compiled loops as soon as loading them pays.

    Loading takes about a second, in which tensor operations have answered a query on a small lake
    many times over.
    """

    name = "auto"

    def __init__(self, light: Callable[[], Kernel], fast: Callable[[], Kernel]) -> None:
        self._light, self._fast = light, fast
        self._n_pairs = 0
        self._lock = threading.Lock()

    def for_work(self, n_pairs: int) -> Kernel:
        """Return the fast kernel if the work of this process so far justifies loading it.

        The work of this call is included.
        """
        with self._lock:
            self._n_pairs += n_pairs
            return self._fast() if self._n_pairs >= WORTH_LOADING else self._light()


KERNELS = ("auto", "compiled", "torch", "triton", "faiss")

_MANY_ROWS = 1 << 16

_PACKAGES = {"compiled": "numba", "triton": "triton", "faiss": "faiss"}
_DEVICES = {
    "compiled": ("cpu",),
    "torch": ("cpu", "cuda"),
    "triton": ("cuda", "cpu"),
    "faiss": ("cpu", "cuda"),
}


def choose_kernel(name: str, device: torch.device) -> KernelChoice:
    """Return what searches on a device."""
    if name not in KERNELS:
        raise InputError(f"The kernel must be one of {', '.join(KERNELS)}. Got {name!r} instead.")
    if name == "auto" and device.type == "cpu" and _is_there("compiled"):
        return _adaptive()
    if name == "auto":
        name = "triton" if device.type == "cuda" and _is_there("triton") else "torch"
    if device.type not in _DEVICES[name]:
        raise InputError(
            f"The kernel {name} runs on {' and '.join(_DEVICES[name])}. Got the device {device} "
            "instead; use the kernel auto."
        )
    if not _is_there(name):
        raise MissingPackageError(
            f"The kernel {name} needs the package {_PACKAGES[name]}, which is not installed."
        )
    if name == "faiss" and device.type == "cuda" and not _faiss_has_gpu():
        raise MissingPackageError(
            f"The kernel faiss needs the package faiss-gpu on the device {device}. Installed is "
            "faiss for the CPU alone; use the kernel auto, which is faster on a GPU, or the device "
            "cpu."
        )
    return _make(name)


def fastest_order(n_rows: int) -> Callable[[torch.Tensor, int], torch.Tensor]:
    """Return the fastest available implementation of `order_by_splits`.

    It is `pexeso.engine.layout.ordering.order_by_splits`, or its compiled counterpart where that is
    installed and worth loading.
    """
    if n_rows >= _MANY_ROWS and _is_there("compiled"):
        from pexeso.engine.kernels.numba.order import order_by_splits
    else:
        from pexeso.engine.layout.ordering import order_by_splits
    return order_by_splits


def _is_there(name: str) -> bool:
    return name not in _PACKAGES or importlib.util.find_spec(_PACKAGES[name]) is not None


def _faiss_has_gpu() -> bool:
    from pexeso.engine.kernels.faiss_kernel import has_gpu

    return has_gpu()


@cache
def _adaptive() -> AdaptiveKernel:
    return AdaptiveKernel(lambda: _make("torch"), lambda: _make("compiled"))


@cache
def _make(name: str) -> Kernel:
    """Import and make a kernel; the packages it needs are loaded here and no earlier."""
    if name == "compiled":
        from pexeso.engine.kernels.numba.kernel import CompiledKernel as Chosen
    elif name == "triton":
        from pexeso.engine.kernels.triton.kernel import TritonKernel as Chosen
    elif name == "faiss":
        from pexeso.engine.kernels.faiss_kernel import FaissKernel as Chosen
    else:
        from pexeso.engine.kernels.torch_kernel import TorchKernel as Chosen
    return Chosen()
