"""How long each stage of a build takes: what every build takes, however small, and what grows with the lake.

The figures are seconds of a machine on which :func:`machine_factor` is 1. It is measured where and when an estimate is made,
so that a slower machine, or one that others use too, has longer estimates. What depends on the lake's own tables and values
(reading, training, embedding, indexing) is measured on a sample of them (`pexeso.estimate`); the constants here are for what
Spark does around it.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pexeso.part_costs import NO_PARTS, PartsEstimate

STAGES = ("start", "list", "read", "catalog", "train", "embed", "partition", "index", "divide", "tokens", "commit")
"""The stages of a build as a build reports them, after ``start``, in which Java and Spark start."""

PART_STAGES = ("divide", "tokens")
"""Those of parts for equal text, in builds that make such parts."""

FIXED_SECONDS: Mapping[str, float] = {
    "start": 7.5,
    "list": 0.1,
    "read": 7.0,
    "catalog": 5.0,
    "train": 1.0,
    "embed": 2.0,
    "partition": 2.4,
    "index": 2.0,
    "divide": 0.7,
    "tokens": 0.1,
    "commit": 0.7,
}
"""What each stage takes for the smallest lake: its jobs, and starting its worker processes."""

SECONDS_PER_POSTING: Mapping[str, float] = {"catalog": 6e-6, "train": 2e-6, "partition": 3e-5}
"""What Spark does with each (column, value) pair: shuffles, joins, files; seconds of one core."""

SECONDS_PER_TOKEN_PAIR: Mapping[str, float] = {"read": 2e-6, "divide": 4.5e-6, "tokens": 1e-6}
"""What each (column, token) pair costs: passing it on, laying it out for its shard, and the lists; seconds of one core."""

SECONDS_OF_TOKENS_IN_READ = 0.5
"""What two more kinds of records cost the reading stage, however few there are."""

SIGNING_SECONDS, SECONDS_PER_SIGNED_PAIR, SECONDS_PER_SIGNED_SET = 0.1, 0.15e-6, 20e-6
"""What containment adds to ``tokens``: loading its loops, hashing each pair, and putting each set into the tables; seconds of one core."""

SECONDS_PER_TABLE = 3e-3
"""What passing on one table's records costs beside reading it; seconds of one core."""

SECONDS_PER_CLUSTERED_VALUE = 30e-6
"""Regions of the codebook and histograms, where there is more than one partition; seconds of one core."""

SECONDS_PER_BYTE: Mapping[str, float] = {"index": 1.5e-9, "commit": 1.5e-9}
"""Writing partitions, and checksums of the model and the catalog; seconds of one core."""

_TEXT = b"".join(f"{number * 7919 % 10007} join lake table column {number}\n".encode() for number in range(8192))
_ROUNDS = 48
_REFERENCE_SECONDS = 0.115


@dataclass(frozen=True)
class Measured:
    """What was measured on a sample and scaled to the lake: seconds of one core.

    Attributes
    ----------
    read, embed : float
    train : float
        Of the whole machine: training takes all cores by itself.
    index : float
        Of all partitions together, but for what each takes however small it is.
    each_partition : float
    """

    read: float
    train: float
    embed: float
    index: float
    each_partition: float


def machine_factor(cores: int) -> float:
    """Measure how much longer than on the machine of the constants work takes here and now, on all cores at once.

    Takes about a tenth of a second where nothing else runs.

    Parameters
    ----------
    cores : int
        Threads that work side by side.

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


def stage_seconds(
    measured: Measured,
    *,
    tables: int,
    postings: int,
    values: int,
    index_bytes: int,
    model_bytes: int,
    partitions: int,
    cores: int,
    factor: float,
    equal_text: PartsEstimate = NO_PARTS,
) -> dict[str, float]:
    """Predict the seconds of each stage.

    Parameters
    ----------
    measured : Measured
        On this machine, at this load.
    tables, postings, values : int
        Tables, (column, value) pairs, and distinct values.
    index_bytes, model_bytes : int
        On disk; the index without the model.
    partitions, cores : int
    factor : float
        As `machine_factor` gives it.
    equal_text : PartsEstimate
        The parts for equal text.

    Returns
    -------
    dict of str to float
        For each of `STAGES`; without `PART_STAGES` where there are no such parts.

    Examples
    --------
    >>> nothing = dict(tables=0, postings=0, values=0, index_bytes=0, model_bytes=0, partitions=1, cores=2, factor=2.0)
    >>> stage_seconds(Measured(0, 0, 0, 0, 0), **nothing)["start"] == 2 * FIXED_SECONDS["start"]
    True
    """
    without = () if equal_text.parts else PART_STAGES
    seconds = {stage: factor * FIXED_SECONDS[stage] for stage in STAGES if stage not in without}
    for stage, each in SECONDS_PER_POSTING.items():
        seconds[stage] += factor * each * postings / cores
    seconds["read"] += (measured.read + factor * SECONDS_PER_TABLE * tables) / cores
    seconds["train"] += measured.train
    seconds["embed"] += measured.embed / cores
    if partitions > 1:
        seconds["partition"] += factor * SECONDS_PER_CLUSTERED_VALUE * values / cores
    at_once = min(cores, partitions)
    rounds = -(-partitions // at_once)
    seconds["index"] += measured.index / at_once + measured.each_partition * rounds
    seconds["index"] += factor * SECONDS_PER_BYTE["index"] * index_bytes / at_once
    seconds["commit"] += factor * SECONDS_PER_BYTE["commit"] * model_bytes
    for stage, more in _part_seconds(equal_text, cores).items():
        seconds[stage] += factor * more
    return seconds


def _part_seconds(equal_text: PartsEstimate, cores: int) -> dict[str, float]:
    """Give what parts for equal text add to stages beside the fixed seconds; a shard is built by one core."""
    if not equal_text.parts:
        return {}
    at_once = {"tokens": max(1, min(cores, equal_text.shards))}
    more = {
        stage: each * equal_text.pairs / at_once.get(stage, cores) for stage, each in SECONDS_PER_TOKEN_PAIR.items()
    }
    more["read"] += SECONDS_OF_TOKENS_IN_READ
    if "containment" in equal_text.parts:
        signing = SECONDS_PER_SIGNED_PAIR * equal_text.pairs + SECONDS_PER_SIGNED_SET * equal_text.columns
        more["tokens"] += SIGNING_SECONDS + signing / at_once["tokens"]
    return more
