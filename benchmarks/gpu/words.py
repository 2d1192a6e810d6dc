"""The space of bags of words on a device, whose answers must be those of loops on the host."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import torch

from benchmarks.gpu.checks import WrongAnswerError
from benchmarks.gpu.timing import Clock, spread, wall_seconds
from embed.words import split_words
from pexeso.engine.sparse.partition import SparsePartition, build_partition
from pexeso.engine.sparse.sparse_space import SparseSpace
from pexeso.engine.sparse.vectors import LetterSpace, SparseVectors
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import MAX_PAIRS, ColumnCounts, Goal
from pexeso.runtime.buffers import string_buffers

WORDS = "words"
N_VALUES, N_QUERIES, VALUES_OF_A_COLUMN = 200_000, 20, 17
MAX_DISTANCE, MIN_JOINABILITY = 0.35, 0.6
REPEATS = 3

_SYLLABLES = ("ra", "ko", "mi", "sen", "tal", "bo", "dur", "wes", "lin", "pa", "gor", "eth", "ny")
_WORDS = 20_000
_LETTERS = LetterSpace(0.1)


def measure_words(
    device: torch.device, clock: Clock, n_values: int = N_VALUES
) -> dict[str, object]:
    """Search values of a language of made-up words, a letter missing in every third one."""
    rng = np.random.default_rng(0)
    values, offsets, members = words_of_lake(rng, n_values)
    arrays, _ = build_partition(_vectors(values), offsets, members)
    on_host = SparsePartition.from_arrays(arrays, _LETTERS)
    on_device = replace(on_host, device=device)
    long = np.flatnonzero(np.diff(offsets) >= VALUES_OF_A_COLUMN)
    queries = [
        _vectors(
            _misspelt([values[row] for row in members[offsets[column] :][:VALUES_OF_A_COLUMN]])
        )
        for column in rng.choice(long, N_QUERIES)
    ]
    answers, seconds = {}, {}
    for name, partition in (("host", on_host), ("device", on_device)):
        work = [partial(_search, partition, query) for query in queries]
        started = time.perf_counter()
        answers[name] = [search() for search in work]
        first = time.perf_counter() - started
        seconds[name] = spread(
            [min(wall_seconds(search, device) for _ in range(REPEATS)) for search in work]
        ) | {"first_pass_seconds": first}
    for number, (answer, right) in enumerate(zip(answers["device"], answers["host"], strict=True)):
        if not all(np.array_equal(*pair) for pair in zip(answer, right, strict=True)):
            raise WrongAnswerError(
                f"A wrong answer: bags of words, query column {number}: not that of the host."
            )
    clock.say(
        f"bags of words, {len(values):,} values: {seconds['device']['median_seconds'] * 1e3:.2f} "
        f"ms a query column on the device, {seconds['host']['median_seconds'] * 1e3:.2f} ms on "
        "the host"
    )
    return {
        "data": WORDS,
        "values": len(values),
        "words": on_host.n_words,
        "columns": len(offsets) - 1,
        "queries": N_QUERIES,
        "values_of_each": VALUES_OF_A_COLUMN,
        "max_distance": MAX_DISTANCE,
        "columns_found": sum(len(columns) for columns, _ in answers["host"]),
        **seconds,
    }


def words_of_lake(
    rng: np.random.Generator, n_values: int
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return distinct values, and columns of them: popular values are in many."""
    lengths = rng.integers(1, 5, _WORDS)
    words = ["".join(rng.choice(_SYLLABLES, length)) for length in lengths]
    popular = np.minimum(rng.zipf(1.3, 4 * n_values), len(words)) - 1
    lengths = rng.integers(1, 5, n_values)
    begins = rng.integers(0, len(popular) - 5, n_values)
    values = sorted(
        {
            " ".join(words[number] for number in popular[begin : begin + length])
            for begin, length in zip(begins, lengths, strict=True)
        }
    )
    sizes = rng.integers(1, 2 * VALUES_OF_A_COLUMN, max(20, len(values) // VALUES_OF_A_COLUMN))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return values, offsets, rng.integers(0, len(values), offsets[-1])


def _misspelt(values: list[str]) -> list[str]:
    """Take a letter out of the middle of every third value."""
    return [
        value if number % 3 else value[: len(value) // 2] + value[len(value) // 2 + 1 :]
        for number, value in enumerate(values)
    ]


def _vectors(values: list[str]) -> SparseVectors:
    """Return values as bags of words, each word with the weight of its letters."""
    index = split_words(pa.array(values, pa.large_string()))
    text, starts = string_buffers(index.words)
    begin = int(starts[0])
    weights = 0.25 + np.diff(starts).astype(np.float32) % 17 / 16
    return SparseVectors.from_words(
        _LETTERS,
        np.ascontiguousarray(text[begin : int(starts[-1])]),
        starts - begin,
        weights,
        index.offsets,
        index.word_ids,
    )


def _search(partition: SparsePartition, vectors: SparseVectors) -> ColumnCounts:
    ones = np.ones(len(vectors), np.int64)
    goal = Goal(MAX_DISTANCE, max(1, int(MIN_JOINABILITY * len(vectors))))
    return SparseSpace(_LETTERS, partition.device).search(
        partition, vectors, ones, len(vectors), goal, SearchStats(), max_pairs=MAX_PAIRS
    )
