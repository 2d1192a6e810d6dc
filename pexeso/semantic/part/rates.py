"""Costs of training, embedding and indexing per value.

They are measured on values of a sample, on this machine.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from embed.checking import require_unit_or_zero
from embed.corpus import MAX_TOKENS, CorpusCounts, count_corpus, write_corpus
from embed.fasttext import TrainingOptions, train
from embed.half import with_precision
from embed.protocol import Embedder
from embed.registry import create_embedder
from pexeso.engine.building.building import build_partition
from pexeso.engine.building.map_choice import resolve_options
from pexeso.engine.layout.options import PartitionLayoutOptions
from pexeso.errors import EmbedderError
from pexeso.options import BuildOptions

TIMED_VALUES = 20_000
"""Most values that are embedded and indexed to measure how fast that goes."""

TIMED_TOKENS = 100_000
"""About so many words times passes are trained on, and then some times as many, to tell what a word
takes from what a larger table takes."""


@dataclass(frozen=True)
class Costs:
    """Rates measured on the sample, in seconds.

    They are the total training time, the time of embedding and of indexing per value, and the time
    per partition whatever its size.
    """

    dimensions: int
    model_bytes: int
    train_seconds: float
    embed_seconds: float
    index_seconds: float
    partition_seconds: float

    @classmethod
    def measure(
        cls, sample: Sequence[pa.Array], more_words: float, more_pairs: float, options: BuildOptions
    ) -> Costs:
        """Measure on the values of some files.

        Parameters
        ----------
        sample : sequence of pyarrow.StringArray
            For each file its values, those of all its columns one after the other.
        more_words, more_pairs : float
            How many times more distinct values, and (column, value) pairs, the lake has.
        """
        with tempfile.TemporaryDirectory(prefix="pexeso-estimate-") as folder, _one_thread():
            embedder, train_seconds, rows = _model(
                sample, more_words, more_pairs, options, Path(folder)
            )
            embedder = with_precision(embedder, options.vector_precision)
            saved = Path(folder, "model")
            saved.mkdir()
            embedder.save(saved)
            model_bytes = round(
                rows * sum(path.stat().st_size for path in saved.rglob("*") if path.is_file())
            )
            timed = _TimedValues.draw(sample)
            embedder.embed(timed.values)  # what is loaded on first use is loaded now
            started = time.perf_counter()
            vectors = np.ascontiguousarray(embedder.embed(timed.values), dtype=np.float32)
            require_unit_or_zero(timed.values, vectors)
            embed_seconds = time.perf_counter() - started
        index_seconds, partition_seconds = timed.index(
            vectors, PartitionLayoutOptions(**options.grid())
        )
        share = 1 / len(timed.values)
        return cls(
            embedder.dimensions,
            model_bytes,
            train_seconds,
            embed_seconds * share,
            index_seconds * share,
            partition_seconds,
        )


@dataclass(frozen=True)
class _TimedValues:
    """Distinct values of the sample, and its files as if each were one column of these."""

    values: pa.Array
    column_offsets: np.ndarray
    column_values: np.ndarray

    @classmethod
    def draw(cls, sample: Sequence[pa.Array]) -> _TimedValues:
        values = pa.chunked_array(sample, pa.string()).unique().slice(0, TIMED_VALUES)
        positions = [
            pc.drop_null(pc.index_in(file_values.unique(), values)).to_numpy()
            for file_values in sample
        ]
        offsets = np.concatenate([[0], np.cumsum([len(members) for members in positions])])
        return cls(values, offsets.astype(np.int64), np.concatenate(positions).astype(np.int64))

    def index(self, vectors: np.ndarray, options: PartitionLayoutOptions) -> tuple[float, float]:
        """Return the seconds of building a partition of these values, and of choosing its map."""
        arguments = (vectors, self.column_offsets, self.column_values)
        chosen = options
        # On first use code is compiled or loaded; each process of a build does that too, but once.
        for _ in range(2):
            started = time.perf_counter()
            chosen, _ = resolve_options(*arguments, options)
            resolved = time.perf_counter()
            build_partition(*arguments, chosen)
            built = time.perf_counter()
        return built - resolved, resolved - started


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch use one thread, as a task does."""
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
    """Create the model, and return it with its predicted training time and growth factor.

    The time is the seconds that training on the lake takes. The factor is how many times larger the
    lake's model will be.
    """
    if options.model != "fasttext":
        return (
            create_embedder(options.model, dimensions=options.dimensions, seed=options.seed),
            0.0,
            1.0,
        )
    corpus = folder / "corpus.txt"
    groups = np.repeat(np.arange(len(sample)), [len(values) for values in sample])
    pairs = pa.table({"group": groups, "value": pa.chunked_array(sample, pa.string())})
    started = time.perf_counter()
    write_corpus([pairs], corpus)
    counts = count_corpus(corpus)
    corpus_seconds = time.perf_counter() - started
    real = (
        TrainingOptions()
        if options.dimensions is None
        else TrainingOptions(dimensions=options.dimensions)
    )
    n_tokens, n_words = (
        min(MAX_TOKENS, round(counts.n_tokens * more_pairs)),
        round(counts.n_words * more_words),
    )
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
    """Return the options of a short training and a longer one, of whole passes over the sample."""
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
    """A timed training: its seconds, its words times passes, and the rows of its table."""

    seconds: float
    words: int
    rows: int


def training_seconds(short: TimedRun, long: TimedRun, *, words: int, rows: int) -> float:
    """Predict the seconds of a training from its words and the rows of its table.

    The prediction is a constant per word plus a constant per row.

    Parameters
    ----------
    short, long : TimedRun
        Tables of about the same size.
    words, rows : int
        Of the training to be predicted.

    Returns
    -------
    float
        Where the two runs cannot be told apart, all is taken to be for the words of the longer one.
    """
    if long.words <= short.words or long.seconds <= short.seconds:
        return long.seconds * words / max(1, long.words)
    each_word = (long.seconds - short.seconds) / (long.words - short.words)
    each_row = max(0.0, long.seconds - each_word * long.words) / max(1, long.rows)
    return each_word * words + each_row * rows
