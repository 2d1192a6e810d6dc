"""The whole of `Index.search` on a device and on the host, on indexes of a lake of made-up words.

Both layouts are asked, the default one and the one as published; a model of word vectors is made
up with the lake, so that nothing is trained.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

import pexeso
from benchmarks.gpu.checks import WrongAnswerError
from benchmarks.gpu.timing import Clock
from benchmarks.gpu.words import words_of_lake
from benchmarks.timing import timed_call
from pexeso.store.arrays import take_texts

INDEX = "index"
N_VALUES = 500_000
"""Values that are drawn, of which some 115,000 differ and are in a column."""

DIMENSIONS, COLUMNS_OF_A_TABLE = 50, 16
N_QUERIES, N_EXACT, REPEATS = 60, 5, 3
MIN_VALUES, MAX_VALUES = 5, 100
"""Distinct values of a query column."""

LAYOUTS: dict[str, dict[str, Any]] = {"default": {}, "published": {"preset": "published"}}
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "all above .3": {"min_joinability": 0.3, "k": "all"},
    "not re-ranked": {"rerank": False},
}


def measure_indexes(
    devices: Sequence[str], clock: Clock, n_values: int = N_VALUES
) -> list[dict[str, object]]:
    """Build indexes of a made-up lake, and ask them their own columns on several devices."""
    with tempfile.TemporaryDirectory() as folder:
        lake, model = Path(folder, "lake"), Path(folder, "words.txt")
        write_lake(lake, model, n_values)
        results = []
        for layout, options in LAYOUTS.items():
            path = Path(folder, f"{layout}.pexeso")
            seconds, _ = timed_call(
                partial(pexeso.build_index, lake, path, model=str(model), **options)
            )
            clock.say(f"index, {layout}: built in {seconds:.0f} s")
            results.append({"data": f"{INDEX}, {layout}", **measure_index(path, devices, clock)})
    return results


def write_lake(lake: Path, model: Path, n_values: int) -> None:
    """Write tables of made-up words, and a vector for each word as GloVe's files have them."""
    rng = np.random.default_rng(0)
    values, offsets, members = words_of_lake(rng, n_values)
    lake.mkdir()
    n_columns = len(offsets) - 1
    for begin in range(0, n_columns, COLUMNS_OF_A_TABLE):
        columns = range(begin, min(begin + COLUMNS_OF_A_TABLE, n_columns))
        parts = [[values[row] for row in members[offsets[at] : offsets[at + 1]]] for at in columns]
        n_rows = max(map(len, parts))
        table = pa.table(
            {
                f"name {number}": part + [None] * (n_rows - len(part))
                for number, part in enumerate(parts)
            }
        )
        csv.write_csv(table, lake / f"table_{begin // COLUMNS_OF_A_TABLE:04}.csv")
    words = sorted({word for value in values for word in value.split(" ")})
    vectors = rng.normal(size=(len(words), DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with model.open("w") as file:
        for word, vector in zip(words, vectors, strict=True):
            print(word, *(f"{entry:.5f}" for entry in vector), file=file)


def measure_index(folder: Path, devices: Sequence[str], clock: Clock) -> dict[str, object]:
    """Ask an index its own columns, one at a time and in a batch, on several devices."""
    indexes = {device: pexeso.open_index(folder, device=device) for device in devices}
    first = indexes[devices[0]]
    queries = query_columns(first)
    for query in queries[:N_EXACT]:
        if _plain(first.search(query, exact=True)) != _plain(first.search(query)):
            raise WrongAnswerError(f"A wrong answer: {folder.name}: not that of brute force.")
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
        seconds = figures[device]["default"]
        clock.say(f"{folder.name} on {device}: Index.search {seconds * 1e3:.2f} ms")
    info = first.info()
    return {
        "columns": info.columns_indexed,
        "values": first.store.manifest.facts["values"],
        "partitions": first.store.n_partitions,
        "as_published": info.as_published,
        "queries": len(queries),
        "values_of_each": [len(query) for query in queries],
        "columns_found": sum(map(len, right["default"])),
        "median_seconds": figures,
    }


def query_columns(index: pexeso.Index, seed: int = 0) -> list[list[str]]:
    """Draw columns of the index itself, as the texts that stand in the lake."""
    rng, queries = np.random.default_rng(seed), []
    for number in range(index.store.n_partitions):
        offsets = index.store.array(number, "column_values_offsets")
        rows = index.store.array(number, "posting_texts")
        texts = index.store.texts(number, "texts")
        sizes = np.diff(offsets)
        columns = np.flatnonzero((sizes >= MIN_VALUES) & (sizes <= MAX_VALUES))
        for column in rng.permutation(columns)[:N_QUERIES]:
            chosen = rows[offsets[column] : offsets[column + 1]]
            queries.append(take_texts(texts, chosen).to_pylist())
    return [queries[number] for number in rng.permutation(len(queries))[:N_QUERIES]]


def _plain(matches: Any) -> list[object]:
    return [(match.table, match.column, match.matched, match.joinability) for match in matches]


def _fastest(work: Callable[[], object]) -> float:
    return min(timed_call(work)[0] for _ in range(REPEATS))
