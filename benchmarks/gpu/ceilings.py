"""What the device can do at most, measured: bytes moved, bytes read, products."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch

from benchmarks.gpu.timing import device_seconds

REPEATS = 7
_COPY_BYTES = {"cuda": 4 << 30, "cpu": 64 << 20}
_PRODUCT_SIZE = {"cuda": 8192, "cpu": 256}
PRODUCT_DTYPES = {"cuda": torch.float16, "cpu": torch.float32}
"""In which brute force is fastest."""


def measure_ceilings(device: torch.device) -> dict[str, float]:
    """Measure copy, read and product rates; medians of seven."""
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
    size, dtype = _PRODUCT_SIZE[device.type], PRODUCT_DTYPES[device.type]
    left, right = (torch.randn((size, size), device=device).to(dtype) for _ in range(2))
    product = torch.empty((size, size), dtype=dtype, device=device)
    multiplied = _seconds(lambda: torch.mm(left, right, out=product), device)
    return {
        "copy_bytes_per_second": 2 * source.nbytes / copied,
        "read_bytes_per_second": source.nbytes / read,
        "product_flop_per_second": 2 * size**3 / multiplied,
        "copied_bytes": source.nbytes,
        "product_size": size,
    }


def roofline(
    n_bytes: float, flop: float, seconds: float, ceilings: Mapping[str, float]
) -> dict[str, object]:
    """Return the seconds that a device needs at least for some bytes and products."""
    read = n_bytes / ceilings["read_bytes_per_second"]
    multiplied = flop / ceilings["product_flop_per_second"]
    floor = max(read, multiplied)
    return {
        "roofline_seconds": floor,
        "roofline_bound": "bytes" if read >= multiplied else "products",
        "share_of_roofline": floor / seconds,
    }


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    for _ in range(2):
        work()
    return device_seconds(work, device, REPEATS)
