"""What the device can do at most, measured: bytes moved, bytes read, products."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from benchmarks.gpu.timing import device_seconds

REPEATS = 7
_COPY_BYTES = {"cuda": 4 << 30, "cpu": 64 << 20}
_PRODUCT_SIZE = {"cuda": 8192, "cpu": 256}


def measure_ceilings(device: torch.device) -> dict[str, float]:
    """Measure copy, read and product rates; medians of seven.

    Returns
    -------
    dict
        ``copy_bytes_per_second`` (read and written), ``read_bytes_per_second`` (the best of two
        sums over float16 numbers), and ``product_flop_per_second`` of two square float16 matrices
        of random numbers, 8,192 wide (256 on the CPU).
    """
    n_bytes = _COPY_BYTES[device.type]
    if device.type == "cuda":
        n_bytes = min(n_bytes, torch.cuda.mem_get_info(device)[0] // 4)
    source = torch.rand(n_bytes // 4, device=device).view(torch.float16).nan_to_num_(0.0, 0.0, 0.0)
    copied = _seconds(partial(torch.empty_like(source).copy_, source), device)
    singles = source.view(torch.float32)
    read = min(
        _seconds(lambda: source.sum(dtype=torch.float32), device),
        _seconds(lambda: singles.sum(), device),
    )
    size = _PRODUCT_SIZE[device.type]
    left, right = (torch.randn((size, size), device=device).half() for _ in range(2))
    product = torch.empty((size, size), dtype=torch.float16, device=device)
    multiplied = _seconds(lambda: torch.mm(left, right, out=product), device)
    return {
        "copy_bytes_per_second": 2 * source.nbytes / copied,
        "read_bytes_per_second": source.nbytes / read,
        "product_flop_per_second": 2 * size**3 / multiplied,
        "copied_bytes": source.nbytes,
        "product_size": size,
    }


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    for _ in range(2):
        work()
    return device_seconds(work, device, REPEATS)
