"""The whole of `Index.search` on a device and on the host, for an index that is there already."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pexeso
from benchmarks.gpu.checks import WrongAnswerError
from benchmarks.gpu.timing import Clock
from benchmarks.timing import timed_call
from pexeso.store.texts import take_texts

N_QUERIES, REPEATS = 60, 3
MIN_VALUES, MAX_VALUES = 5, 100
"""Distinct values of a query column."""

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "all above .3": {"min_joinability": 0.3, "k": "all"},
    "not re-ranked": {"rerank": False},
}


def measure_index(folder: Path, devices: Sequence[str], clock: Clock) -> dict[str, object]:
    """Ask an index its own columns, one at a time and in a batch, on several devices."""
    indexes = {device: pexeso.open_index(folder, device=device) for device in devices}
    first = indexes[devices[0]]
    queries = query_columns(first)
    right: dict[str, list[object]] = {}
    figures: dict[str, dict[str, float]] = {}
    for device, index in indexes.items():
        figures[device] = {}
        for mode, options in MODES.items():
            answers = [_plain(index.search(query, **options)) for query in queries]
            if right.setdefault(mode, answers) != answers:
                raise WrongAnswerError(
                    f"A wrong answer: {folder.name}, {mode}, on {device}: not those of {devices[0]}"
                )
            seconds = [_fastest(partial(index.search, query, **options)) for query in queries]
            figures[device][mode] = statistics.median(seconds)
        index.search_batch(queries)
        batch = _fastest(partial(index.search_batch, queries))
        figures[device]["a batch, a column"] = batch / len(queries)
        clock.say(f"index {folder.name} on {device}: {json.dumps(figures[device])}")
    info = first.info()
    return {
        "data": f"index {folder.name}",
        "columns": info.columns_indexed,
        "queries": len(queries),
        "values_of_each": [len(query) for query in queries],
        "median_seconds": figures,
    }


def query_columns(
    index: pexeso.Index, n_queries: int = N_QUERIES, seed: int = 0
) -> list[list[str]]:
    """Draw columns of the index itself, as the texts that stand in the lake."""
    rng, queries = np.random.default_rng(seed), []
    for number in range(index.store.n_partitions):
        offsets = index.store.array(number, "column_values_offsets")
        rows = index.store.array(number, "posting_texts")
        texts = index.store.texts(number, "texts")
        sizes = np.diff(offsets)
        columns = np.flatnonzero((sizes >= MIN_VALUES) & (sizes <= MAX_VALUES))
        for column in rng.permutation(columns)[:n_queries]:
            chosen = rows[offsets[column] : offsets[column + 1]]
            queries.append(take_texts(texts, chosen).to_pylist())
    return [queries[number] for number in rng.permutation(len(queries))[:n_queries]]


def _plain(matches: Any) -> object:
    return [(match.table, match.column, match.matched, match.joinability) for match in matches]


def _fastest(work: Callable[[], object]) -> float:
    return min(timed_call(work)[0] for _ in range(REPEATS))
