"""Estimate of the size and cost of the model and the partitions.

It is counted and measured on a sample of the lake's files.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from partition.balance import partition_bytes
from pexeso.build.parts.base import PartEstimate
from pexeso.build.parts.estimation.sample import LakeSample, grown, n_distinct
from pexeso.build.parts.models import entry_bytes, options_for_model
from pexeso.semantic.part.part import stage_of
from pexeso.semantic.part.rates import Costs

TRAINING_MEMORY_FACTOR = 3
"""Memory of training as a multiple of the model."""

BUILD_MEMORY_FACTOR = 4
"""Memory of a task as a multiple of the partition that it builds."""

FIXED_SECONDS: Mapping[str, float] = {"train": 1.0, "embed": 2.0, "partition": 2.4, "index": 2.0}
"""What each stage takes for the smallest lake: its jobs, and starting its worker processes."""

SECONDS_PER_POSTING: Mapping[str, float] = {"train": 2e-6, "partition": 3e-5}
"""What Spark does with each (column, value) pair: shuffles, joins, files; seconds of one core."""

SECONDS_PER_CLUSTERED_VALUE = 30e-6
"""Regions of the codebook and histograms, where there is more than one partition; seconds of one
core."""

SECONDS_PER_BYTE = 1.5e-9
"""Writing partitions, and at the end checksums of the model; seconds of one core."""


@dataclass(frozen=True)
class Measured:
    """What was measured on a sample and scaled to the lake: seconds of one core."""

    train: float
    embed: float
    index: float
    each_partition: float


def estimate(sample: LakeSample, *, model: int = 0) -> PartEstimate:
    """Return what the models and their partitions of a lake take.

    The part of the main model tells of all, the others of nothing.
    """
    if model:
        return PartEstimate({}, 0, 0, {})
    models = range(len(sample.options.models))
    main, *further = estimates = [_of_model(sample, number) for number in models]
    names = (options_for_model(sample.options, number).model for number in models[1:])
    details = [{"model": name, **one.fields} for name, one in zip(names, further, strict=True)]
    seconds: Counter[str] = Counter()
    for one in estimates:
        seconds.update(one.seconds)
    return PartEstimate(
        fields={**main.fields, "further_models": details},
        n_bytes=sum(one.n_bytes for one in estimates),
        memory_bytes=max(one.memory_bytes for one in estimates),
        driver_bytes=max(one.driver_bytes for one in estimates),
        seconds=seconds,
    )


def _of_model(sample: LakeSample, model: int) -> PartEstimate:
    options, sampled = options_for_model(sample.options, model), sample.values("value")
    n_sampled, postings = sum(map(len, sampled)), sample.lake_pairs("value")
    if not n_sampled:  # the lake has what other parts index alone
        fields = dict.fromkeys(("postings", "values", "dimensions", "model_bytes", "partitions"), 0)
        return PartEstimate({**fields, "vector_precision": None}, 0, 0, {})
    values = sample_values = n_distinct(sampled)
    if not sample.exact:
        values, _ = grown(sampled, postings)
    costs = Costs.measure(sampled, values / sample_values, postings / n_sampled, options)
    vectors_bytes = partition_bytes(values, postings, costs.dimensions, entry_bytes(options))
    n_bins = max(options.min_partitions, math.ceil(vectors_bytes / options.partition_bytes))
    columns = round(sample.count("column") * sample.scale)
    partitions = min(options.n_partitions or n_bins, max(1, columns))
    measured = Measured(
        train=costs.train_seconds,
        embed=costs.embed_seconds * values,
        index=costs.index_seconds * values,
        each_partition=costs.partition_seconds,
    )
    seconds = partition_seconds(
        measured,
        postings=postings,
        values=values,
        index_bytes=vectors_bytes,
        model_bytes=costs.model_bytes,
        partitions=partitions,
        cores=sample.cores,
        factor=sample.factor,
    )
    seconds = sample.seconds_of(seconds, FIXED_SECONDS)
    return PartEstimate(
        fields={
            "postings": postings,
            "values": values,
            "dimensions": costs.dimensions,
            "vector_precision": None if options.model == "lexical" else options.vector_precision,
            "model_bytes": costs.model_bytes,
            "partitions": partitions,
        },
        n_bytes=vectors_bytes + costs.model_bytes,
        memory_bytes=BUILD_MEMORY_FACTOR * vectors_bytes // partitions,
        driver_bytes=TRAINING_MEMORY_FACTOR * costs.model_bytes
        if options.model == "fasttext"
        else 0,
        seconds={
            stage_of(stage, model) if stage in FIXED_SECONDS else stage: duration
            for stage, duration in seconds.items()
        },
    )


def partition_seconds(
    measured: Measured,
    *,
    postings: int,
    values: int,
    index_bytes: int,
    model_bytes: int,
    partitions: int,
    cores: int,
    factor: float,
) -> dict[str, float]:
    """Predict the seconds of each stage, and what the model adds to the commit."""
    seconds = {stage: factor * fixed for stage, fixed in FIXED_SECONDS.items()}
    for stage, rate in SECONDS_PER_POSTING.items():
        seconds[stage] += factor * rate * postings / cores
    seconds["train"] += measured.train
    seconds["embed"] += measured.embed / cores
    if partitions > 1:
        seconds["partition"] += factor * SECONDS_PER_CLUSTERED_VALUE * values / cores
    parallel = min(cores, partitions)
    rounds = -(-partitions // parallel)
    seconds["index"] += measured.index / parallel + measured.each_partition * rounds
    seconds["index"] += factor * SECONDS_PER_BYTE * index_bytes / parallel
    return {**seconds, "commit": factor * SECONDS_PER_BYTE * model_bytes}
