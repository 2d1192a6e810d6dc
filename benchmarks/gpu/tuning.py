"""The fastest configuration of the fused kernel on a device, looked for within some seconds."""

from __future__ import annotations

import time
from dataclasses import asdict

import torch
from triton.errors import TritonError

from benchmarks.algorithms.brute_triton.kernel import Configuration, PairFinder, configurations
from benchmarks.gpu.timing import device_seconds, wait_for

SAMPLE = 1 << 21
"""Values that configurations are compared on: more than the cache of a GPU holds."""

REPEATS = 3


def tune(
    values: torch.Tensor, queries: torch.Tensor, limits: torch.Tensor, seconds: float
) -> dict[str, object]:
    """Time the configurations that there is time for on some of the values, the first one always.

    One that does not compile or does not fit on the device is left out, with the reason.

    Parameters
    ----------
    values : float16 (N, w)
    queries : float16 (n, w)
    limits : float32 (n,)
    seconds : float
        Compilation is included. No configuration is begun after them.

    Returns
    -------
    dict
        ``best``, a `Configuration` or None where none runs, and ``tried``, plain JSON.
    """
    device, sample = values.device, values[:SAMPLE]
    best: tuple[float, Configuration] | None = None
    tried: list[dict[str, object]] = []
    started = time.perf_counter()
    for configuration in configurations(len(queries), values.dtype):
        if tried and time.perf_counter() - started > seconds:
            break
        try:
            finder = PairFinder(sample, configuration)
            prepared = finder.prepare(queries, limits)
            finder.launch(prepared)
            wait_for(device)
            took = device_seconds(lambda f=finder, p=prepared: f.launch(p), device, REPEATS)
        except (TritonError, RuntimeError) as error:
            tried.append({**asdict(configuration), "failed": str(error).strip()[:200]})
            continue
        tried.append({**asdict(configuration), "seconds": took})
        if best is None or took < best[0]:
            best = took, configuration
    return {"best": best and best[1], "tried": tried, "values": len(sample)}
