"""The default on the CPU: tensor operations at first, compiled loops as soon as loading them pays.

Loading compiled code takes a second, in which tensor operations have answered a query on a small lake many times over. So a
process starts with those, and changes over once it has been asked for more work than loading is worth.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pexeso.engine.interface import Kernel, KernelChoice

WORTH_LOADING = 1 << 27
"""(Query value, stored value) pairs in all: about a second of tensor operations on one core."""


class AdaptiveKernel(KernelChoice):
    """A choice between two kernels.

    Parameters
    ----------
    light, fast : callable
        Give the kernels; the second is called when it is first needed.
    """

    name = "auto"

    def __init__(self, light: Callable[[], Kernel], fast: Callable[[], Kernel]) -> None:
        self._light, self._fast = light, fast
        self._asked = 0
        self._lock = threading.Lock()

    def for_work(self, n_pairs: int) -> Kernel:
        """Return the fast kernel when the work of this process so far, with this, is worth loading it."""
        with self._lock:
            self._asked += n_pairs
            return self._fast() if self._asked >= WORTH_LOADING else self._light()
