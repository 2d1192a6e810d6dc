"""Estimate of the size and cost of models and their partitions, measured on a sample."""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.corpus import MAX_TOKENS, CorpusCounts, count_corpus, write_corpus
from embed.protocol import Embedder, require_unit_or_zero
from embed.registry import create_embedder
from embed.stored import with_precision
from partition.balance import partition_bytes
from pexeso.build.parts.base import PartEstimate
from pexeso.build.parts.metadata import entry_bytes, options_for_model, sparse_vectors
from pexeso.build.parts.sample import LakeSample, grown, n_distinct
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.sparse import partition as sparse
from pexeso.errors import EmbedderError
from pexeso.options import BuildOptions
from pexeso.semantic.part import stage_of

if TYPE_CHECKING:
    from embed.fasttext import TrainingOptions

TIMED_VALUES = 20_000
"""Most values that are embedded and indexed to measure how fast that goes."""

TIMED_TOKENS = 100_000
"""Words times passes that are trained on, then some times as many: the difference is what a word
takes, apart from what a larger table takes."""


@dataclass(frozen=True)
class Costs:
    """Rates measured on the values of some files of a lake, in seconds.

    `sample` has for each file its values, those of all its columns one after the other. The lake
    has `more_words` times as many distinct values and `more_pairs` as many (column, value) pairs.
    """

    dimensions: int
    model_bytes: int
    train_seconds: float
    embed_seconds: float  # of each value
    index_seconds: float  # of each value
    partition_seconds: float  # of each partition, whatever its size

    @classmethod
    def measure(
        cls, sample: Sequence[pa.Array], more_words: float, more_pairs: float, options: BuildOptions
    ) -> Costs:
        values = pa.chunked_array(sample, pa.string()).unique().slice(0, TIMED_VALUES)
        is_lexical = options.model == "lexical"
        threads = nullcontext() if is_lexical else _one_thread()
        with tempfile.TemporaryDirectory(prefix="pexeso-estimate-") as folder, threads:
            embedder, train_seconds, rows = _model(
                sample, more_words, more_pairs, options, Path(folder)
            )
            embedder = with_precision(embedder, options.vector_precision)
            saved = Path(folder, "model")
            saved.mkdir()
            embedder.save(saved)
            files = [path for path in saved.rglob("*") if path.is_file()]
            model_bytes = round(rows * sum(path.stat().st_size for path in files))
            embed = partial(sparse_vectors if is_lexical else _vectors, embedder, values)
            embed()  # what is loaded on first use is loaded now
            started = time.perf_counter()
            vectors = embed()
            embed_seconds = time.perf_counter() - started
        # The files as if each were one column of these values.
        positions = [
            pc.drop_null(pc.index_in(file_values.unique(), values)).to_numpy()
            for file_values in sample
        ]
        offsets = np.cumsum([0, *map(len, positions)]).astype(np.int64)
        columns = (offsets, np.concatenate(positions).astype(np.int64))
        # On first use code is loaded; each process of a build does that too, but once.
        for _ in range(2):
            started = time.perf_counter()
            if is_lexical:
                resolved = started
                sparse.build_partition(vectors, *columns)
            else:
                resolved = _build_dense(vectors, columns, options)
            built = time.perf_counter()
        return cls(
            embedder.dimensions,
            model_bytes,
            train_seconds,
            embed_seconds / len(values),
            (built - resolved) / len(values),
            resolved - started,
        )


def _vectors(embedder: Embedder, values: pa.Array) -> np.ndarray:
    vectors = np.ascontiguousarray(embedder.embed(values), dtype=np.float32)
    require_unit_or_zero(values, vectors)
    return vectors


def _build_dense(
    vectors: np.ndarray, columns: tuple[np.ndarray, np.ndarray], options: BuildOptions
) -> float:
    """Build a partition, and return when its layout was chosen."""
    from pexeso.engine.dense.building import build_partition, resolve_options

    chosen, _ = resolve_options(vectors, *columns, PartitionLayoutOptions(**options.grid()))
    resolved = time.perf_counter()
    build_partition(vectors, *columns, chosen)
    return resolved


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch, where it is installed, use one thread, as a task does."""
    try:
        import torch
    except ModuleNotFoundError:
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _model(
    sample: Sequence[pa.Array],
    more_words: float,
    more_pairs: float,
    options: BuildOptions,
    folder: Path,
) -> tuple[Embedder, float, float]:
    """Return the model, seconds of training on the lake, and how many times larger it becomes."""
    if options.model != "fasttext":
        embedder = create_embedder(options.model, dimensions=options.dimensions, seed=options.seed)
        return embedder, 0.0, 1.0
    from embed.fasttext import TrainingOptions, train

    corpus = folder / "corpus.txt"
    groups = np.repeat(np.arange(len(sample)), [len(values) for values in sample])
    pairs = pa.table({"group": groups, "value": pa.chunked_array(sample, pa.string())})
    started = time.perf_counter()
    write_corpus([pairs], corpus)
    counts = count_corpus(corpus)
    corpus_seconds = time.perf_counter() - started
    dimensions = {} if options.dimensions is None else {"dimensions": options.dimensions}
    real = TrainingOptions(**dimensions)
    n_tokens = min(MAX_TOKENS, round(counts.n_tokens * more_pairs))
    n_words = round(counts.n_words * more_words)
    grown = replace(counts, n_tokens=n_tokens, n_words=n_words)
    real_rows = grown.n_words + real.buckets(grown)
    runs = []
    for timed in _timed_options(real, counts):
        started = time.perf_counter()
        try:
            embedder = train(corpus, timed)
        except EmbedderError as error:
            raise EmbedderError(f"No model could be trained on the sample: {error}") from error
        words = timed.max_epochs * counts.n_tokens
        runs.append(
            TimedRun(time.perf_counter() - started, words, counts.n_words + timed.buckets(counts))
        )
    seconds = training_seconds(*runs, words=real.epochs(grown) * grown.n_tokens, rows=real_rows)
    return (
        embedder,
        seconds + corpus_seconds * min(more_pairs, n_tokens / counts.n_tokens),
        real_rows / runs[-1].rows,
    )


def _timed_options(real: TrainingOptions, counts: CorpusCounts) -> list[TrainingOptions]:
    short = max(1, TIMED_TOKENS // max(1, counts.n_tokens))
    long = short * (4 if short * counts.n_tokens < 4 * TIMED_TOKENS else 2)
    return [
        replace(
            real,
            min_epochs=epochs,
            max_epochs=epochs,
            token_budget=epochs * max(1, counts.n_tokens),
        )
        for epochs in (short, long)
    ]


class TimedRun(NamedTuple):
    seconds: float
    words: int
    rows: int


def training_seconds(short: TimedRun, long: TimedRun, *, words: int, rows: int) -> float:
    """Predict the seconds of a training: a constant per word plus one per row of its table.

    The two runs have tables of about the same size. Where they do not differ, all is taken
    to be for the words of the longer one.
    """
    if long.words <= short.words or long.seconds <= short.seconds:
        return long.seconds * words / max(1, long.words)
    each_word = (long.seconds - short.seconds) / (long.words - short.words)
    each_row = max(0.0, long.seconds - each_word * long.words) / max(1, long.rows)
    return each_word * words + each_row * rows


TRAINING_MEMORY_FACTOR = 3
"""Memory of training as a multiple of the model."""

BUILD_MEMORY_FACTOR = 4
"""Memory of a task as a multiple of the partition that it builds."""

FIXED_SECONDS: Mapping[str, float] = {"train": 0.1, "embed": 1.0, "partition": 0.1, "index": 0.1}
"""What each stage takes for the smallest lake; that of vectors starts processes."""

SECONDS_PER_POSTING: Mapping[str, float] = {"train": 2e-6, "partition": 1e-6}
"""What is done with each (column, value) pair: shuffles, joins, files; seconds of one core."""

SECONDS_PER_CLUSTERED_VALUE = 30e-6
"""Regions of the codebook and histograms, where there is more than one partition; seconds of one
core."""

SECONDS_PER_BYTE = 1.5e-9
"""Writing partitions, and at the end checksums of the model; seconds of one core."""


def estimate(sample: LakeSample, *, model: int = 0) -> PartEstimate:
    """Return what all models and their partitions take; the part of the main model reports it."""
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
        n_tasks=max(one.n_tasks for one in estimates),
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
    seconds = partition_seconds(
        costs,
        postings=postings,
        values=values,
        index_bytes=vectors_bytes,
        partitions=partitions,
        cores=sample.cores,
        factor=sample.factor,
    )
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
        n_tasks=partitions,
        seconds={
            stage_of(stage, model) if stage in FIXED_SECONDS else stage: duration
            for stage, duration in seconds.items()
        },
    )


def partition_seconds(
    costs: Costs,
    *,
    postings: int,
    values: int,
    index_bytes: int,
    partitions: int,
    cores: int,
    factor: float,
) -> dict[str, float]:
    seconds = {stage: factor * fixed for stage, fixed in FIXED_SECONDS.items()}
    for stage, rate in SECONDS_PER_POSTING.items():
        seconds[stage] += factor * rate * postings / cores
    seconds["train"] += costs.train_seconds
    seconds["embed"] += costs.embed_seconds * values / cores
    if partitions > 1:
        seconds["partition"] += factor * SECONDS_PER_CLUSTERED_VALUE * values / cores
    parallel = min(cores, partitions)
    rounds = -(-partitions // parallel)
    seconds["index"] += costs.index_seconds * values / parallel + costs.partition_seconds * rounds
    seconds["index"] += factor * SECONDS_PER_BYTE * index_bytes / parallel
    return {**seconds, "commit": factor * SECONDS_PER_BYTE * costs.model_bytes}
