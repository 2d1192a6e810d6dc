"""Durations of the stages that all parts of an index share.

They consist of the fixed time of every build and of the time that grows with the lake.

The figures are seconds of a machine on which :func:`machine_factor` is 1. It is measured where and
when an estimate is made, so that a slower machine, or one that others use too, has longer
estimates. What depends on the lake's own tables is measured on a sample of them; the constants here
are for what Spark does around it.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

FIXED_SECONDS: Mapping[str, float] = {
    "start": 7.5,
    "list": 0.1,
    "read": 7.0,
    "catalog": 5.0,
    "commit": 0.7,
}
"""What each shared stage takes for the smallest lake, after ``start``, in which Java and Spark
start: its jobs, and starting its worker processes."""

SECONDS_PER_POSTING = 6e-6
"""What the catalog does with each (column, value) pair: shuffles, joins, files; seconds of one
core."""

SECONDS_PER_TABLE = 3e-3
"""What passing on one table's records costs beside reading it; seconds of one core."""

_TEXT = b"".join(
    f"{number * 7919 % 10007} join lake table column {number}\n".encode() for number in range(8192)
)
_ROUNDS = 48
_REFERENCE_SECONDS = 0.115


def machine_factor(cores: int) -> float:
    """Measure how much slower work is here and now than on the machine of the constants.

    All cores are measured together.

    Takes about a tenth of a second where nothing else runs.

    Returns
    -------
    float
        Above 0; the shortest of three times counts.
    """

    def work(_: int) -> None:
        for _ in range(_ROUNDS):
            zlib.compress(_TEXT, 6)  # lets other threads run

    shortest = float("inf")
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(3):
            started = time.perf_counter()
            list(pool.map(work, range(cores)))
            shortest = min(shortest, time.perf_counter() - started)
    return shortest / _REFERENCE_SECONDS


def shared_seconds(
    *, read: float, tables: int, postings: int, cores: int, factor: float
) -> dict[str, float]:
    """Predict the seconds of each shared stage."""
    seconds = {stage: factor * fixed for stage, fixed in FIXED_SECONDS.items()}
    seconds["read"] += (read + factor * SECONDS_PER_TABLE * tables) / cores
    seconds["catalog"] += factor * SECONDS_PER_POSTING * postings / cores
    return seconds
