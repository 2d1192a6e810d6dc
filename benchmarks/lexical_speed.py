"""The command ``python -m benchmarks lexical-speed``: searches of lexical indexes, and products.

Searches of a lexical partition beside a blocked float32 product of as many vectors of 256 numbers,
which is what finding the same pairs among dense vectors takes at least. Both are measured in turn,
the fastest of `REPEATS`; what is told is their ratio. Times are processor time in one thread, and
time waited in several. Of made-up lakes of several sizes searches alone are measured: how they
grow.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from benchmarks.commands import benchmark, setting
from benchmarks.machine import pin_threads
from benchmarks.report import markdown_table
from benchmarks.timing import timed_call
from pexeso.engine.sparse.partition import SparsePartition, build_partition
from pexeso.engine.sparse.sparse_space import SparseSpace
from pexeso.engine.sparse.vectors import LetterSpace, SparseVectors
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import BatchColumn, Goal
from pexeso.index import open_index

DISTANCES = (0.06, 0.2, 0.4, 0.5, 0.6)
DIMENSIONS, REPEATS = 256, 3
N_LONE, N_BATCH = 100, 1000
"""Query columns that are asked one after the other, and together."""

N_PLANTED = 40
"""Query columns that are asked of a made-up lake."""

WORDS_OF_ONE, GROWTH = 4.94, 0.82
"""n values of the web lakes have ``WORDS_OF_ONE * n ** GROWTH`` different words: 3,308 in 3,002
values of 1 % of the columns, 24,218 in 30,541 of 10 %, 145,114 in all 281,151."""

MIN_JOINABILITY = 0.5
_LONE_BLOCK, _BATCH_BLOCK = 8192, 2048
_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]


def partition_of(index: Path) -> SparsePartition:
    """Return the one partition of a lexical index."""
    store = open_index(index).store
    return SparsePartition.from_arrays(
        store.partition(0), LetterSpace(**store.manifest.facts["letters"])
    )


def planted_partition(n_values: int, seed: int = 0) -> SparsePartition:
    """Return values of one to four words of a made-up language, each once, in columns of 20."""
    rng = np.random.default_rng(seed)
    n_words = round(WORDS_OF_ONE * n_values**GROWTH)
    syllables = rng.integers(0, len(_SYLLABLES), (n_words, 5))
    syllables[np.arange(5)[None, :] >= rng.integers(2, 6, n_words)[:, None]] = -1
    pieces = np.array([*_SYLLABLES, ""])
    words = np.unique(
        np.char.add(
            np.char.add(np.char.add(pieces[syllables[:, 0]], pieces[syllables[:, 1]]),
                        np.char.add(pieces[syllables[:, 2]], pieces[syllables[:, 3]])),
            pieces[syllables[:, 4]],
        )
    )  # fmt: skip
    text = np.frombuffer("".join(words).encode(), np.uint8)
    starts = np.concatenate([[0], np.cumsum(np.char.str_len(words))])
    sizes = rng.integers(1, 5, n_values)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    alike = rng.integers(0, len(words), offsets[-1])
    popular = rng.permutation(len(words))[np.minimum(rng.zipf(1.3, offsets[-1]), len(words)) - 1]
    members = np.where(rng.random(offsets[-1]) < 0.5, alike, popular)
    frequency = np.bincount(members, minlength=len(words))
    weights = 1.0 + np.log(n_values / np.maximum(frequency, 1))
    row = np.repeat(np.arange(n_values), sizes)
    members = members[np.lexsort((members, row))]
    # Each value once, in the order in which they were drawn.
    table = np.full((n_values, 4), -1)
    table[row, np.arange(len(row)) - offsets[row]] = members
    order = np.lexsort(table.T)
    again = (table[order[1:]] == table[order[:-1]]).all(1)
    table = table[np.sort(order[np.append(True, ~again)])]
    members, offsets = table[table >= 0], np.append(0, np.cumsum((table >= 0).sum(1)))
    n_values = len(table)
    space = LetterSpace(0.05)
    vectors = SparseVectors.from_words(space, text, starts, weights, offsets, members)
    columns = np.arange(0, n_values + 1, 20)
    arrays, _ = build_partition(vectors[: columns[-1]], columns, np.arange(columns[-1]))
    return SparsePartition.from_arrays(arrays, space)


def measured(
    partition: SparsePartition, distances: tuple[float, ...], n_threads: int
) -> list[dict[str, Any]]:
    """Measure lone searches and a batch at each distance, beside products."""
    pin_threads(n_threads)
    clock = time.process_time if n_threads == 1 else time.perf_counter
    space, rng = SparseSpace(partition.space), np.random.default_rng(1)
    sizes = np.diff(partition.column_lists.offsets)
    usable = np.flatnonzero(sizes >= 5)
    chosen = rng.choice(usable, min(len(usable), N_BATCH), replace=False)
    stored = torch.from_numpy(
        rng.standard_normal((partition.n_values, DIMENSIONS), dtype=np.float32)
    )
    alone = [partition.column_lists[column] for column in chosen[:N_LONE].tolist()]
    rows = []
    n_lone, n_batch = int(sizes[chosen[:N_LONE]].sum()), int(sizes[chosen].sum())
    for distance in distances:
        goal = Goal(distance)
        times = [
            (
                timed_call(_multiply, stored, 20, _LONE_BLOCK, clock=clock)[0] / 20,
                timed_call(ask_alone, space, partition, alone, distance, clock=clock)[0] / n_lone,
                timed_call(_multiply, stored, 1024, _BATCH_BLOCK, clock=clock)[0] / 1024,
                timed_call(_ask_together, space, partition, chosen, goal, clock=clock)[0] / n_batch,
            )
            for _ in range(REPEATS)
        ]
        product, lone, together, batch = np.min(times, 0)
        rows.append(
            {
                "max_distance": distance,
                "microseconds_a_value": round(lone * 1e6),
                "microseconds_a_value_in_a_batch": round(batch * 1e6),
                "product_over_search": round(product / lone, 2),
                "product_over_search_in_a_batch": round(together / batch, 2),
            }
        )
        click.echo(json.dumps(rows[-1]), err=True)
    return rows


def measured_alone(
    partition: SparsePartition, distances: tuple[float, ...]
) -> list[dict[str, Any]]:
    """Measure lone searches at each distance, in one thread."""
    pin_threads(1)
    space, rng = SparseSpace(partition.space), np.random.default_rng(1)
    chosen = rng.choice(partition.n_columns, min(partition.n_columns, N_PLANTED), replace=False)
    columns = [partition.column_lists[column] for column in chosen.tolist()]
    n_values = sum(map(len, columns))
    rows = []
    for distance in distances:
        times = [
            timed_call(ask_alone, space, partition, columns, distance, clock=time.process_time)[0]
            for _ in range(REPEATS)
        ]
        rows.append(
            {
                "max_distance": distance,
                "microseconds_a_value": round(min(times) / n_values * 1e6),
            }
        )
        click.echo(json.dumps(rows[-1]), err=True)
    return rows


def ask_alone(
    space: SparseSpace, partition: SparsePartition, columns: Sequence[np.ndarray], distance: float
) -> None:
    """Search with columns of stored values, one after the other, at `MIN_JOINABILITY`."""
    for members in columns:
        vectors, n = partition.vectors.take(members), len(members)
        goal = Goal(distance, max(1, int(np.ceil(MIN_JOINABILITY * n))))
        space.search(partition, vectors, np.ones(n, np.int64), n, goal, SearchStats(), max_pairs=1)


def _ask_together(
    space: SparseSpace, partition: SparsePartition, columns: np.ndarray, goal: Goal
) -> None:
    owner, position = partition.column_lists.of(columns)
    rows, members = np.unique(partition.column_lists.members[position], return_inverse=True)
    queries = [
        BatchColumn(values, np.ones(len(values), np.int64), max(1, int(np.ceil(len(values) / 2))))
        for values in np.split(members, np.flatnonzero(np.diff(owner)) + 1)
    ]
    space.search_batch(
        partition, partition.vectors.take(rows), queries, goal, SearchStats(), max_pairs=1
    )


def _multiply(stored: torch.Tensor, n_queries: int, block: int) -> None:
    queries = stored[:n_queries].clone()
    for begin in range(0, len(stored), block):
        (stored[begin : begin + block] @ queries.T > 1e9).nonzero()


def tables_of(result: Mapping[str, Any]) -> str:
    """Return a stored result as tables of Markdown."""
    tables = []
    for n_threads, rows in result["index"]["threads"].items():
        head = [f"`max_distance`, threads: {n_threads}", "one value of a lone column"]
        head += ["the product takes", "one value in a batch", "the product takes"]
        cells = [
            [
                row["max_distance"],
                f"{row['microseconds_a_value']} µs",
                f"{row['product_over_search']:.1f}x",
                f"{row['microseconds_a_value_in_a_batch']} µs",
                f"{row['product_over_search_in_a_batch']:.1f}x",
            ]
            for row in rows
        ]
        tables.append(markdown_table(head, cells))
    lakes = result["planted"].values()
    sizes = [f"{lake['values']:,} values, {lake['words']:,} words" for lake in lakes]
    grown = [
        [rows[0]["max_distance"], *(f"{row['microseconds_a_value']:,} µs" for row in rows)]
        for rows in zip(*(lake["measured"] for lake in lakes), strict=True)
    ]
    return "\n\n".join([*tables, markdown_table(["`max_distance`", *sizes], grown)])


@dataclass(frozen=True)
class Request:
    index: str = setting("", "An index of one partition.", type=click.Path())
    threads: tuple[int, ...] = setting((1,), "Numbers of threads.")
    planted: tuple[int, ...] = setting((1_000_000, 10_000_000), "Values of made-up lakes.")


@benchmark("lexical-speed", Request, tables_of)
def main(request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure searches of a lexical index of one partition, and of made-up lakes."""
    result: dict[str, Any] = {"index": {"threads": {}}, "planted": {}}
    if request.index:
        partition = partition_of(Path(request.index))
        result["index"] = {
            "values": partition.n_values,
            "words": partition.n_words,
            "threads": {
                number: measured(partition, DISTANCES, number) for number in request.threads
            },
        }
    for n_values in request.planted:
        partition = planted_partition(n_values)
        click.echo(f"{partition.n_values:,} values, {partition.n_words:,} words", err=True)
        result["planted"][n_values] = {
            "values": partition.n_values,
            "words": partition.n_words,
            "measured": measured_alone(partition, (0.06, 0.2, 0.4)),
        }
    yield "lexical/speed", result
