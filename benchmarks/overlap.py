"""Benchmark of top-k overlap search, on real lakes and on power-law lakes.

It measures JOSIE, MergeList, ProbeSet, the planner and SetSimilaritySearch.

Queries are sets of the lake, which are not to find themselves; every way gets token numbers.
SetSimilaritySearch (pip install SetSimilaritySearch==1.0.1) is told the k-th overlap, since it
knows thresholds only. Answers of some queries are held against brute force, those of all others
against MergeList.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.commands import benchmark, setting
from benchmarks.datasets.tables import WEB_LAKES
from benchmarks.machine import pin_threads
from benchmarks.overlap_published import probe_set, published_josie
from benchmarks.timing import timed_call
from benchmarks.token_sets import token_sets
from pexeso.sets.overlap.index import (
    OverlapIndex,
    Overlaps,
    build_index,
    open_index,
    query_of_tokens,
    save_index,
)
from pexeso.sets.overlap.josie import josie
from pexeso.sets.overlap.planner import Planner, merge_list

# The ways to answer an overlap query that the benchmark measures, with one interface.
#
# Each takes a query's token numbers and returns (id, overlap) pairs.

Way = Callable[[np.ndarray, int, int], Overlaps]
"""From token numbers, the set not to be found, and k."""


def ways_of(index: OverlapIndex, planner: Planner, *, slow: bool) -> dict[str, Way]:
    """Return our own ways over an index; MergeList is the first."""

    def of(search: Callable[..., Overlaps]) -> Way:
        return lambda tokens, own_set, k: search(
            index, query_of_tokens(index, tokens), k, exclude=[own_set]
        )

    ways = {"MergeList": of(merge_list), "JOSIE": of(josie), "planner": of(planner.search)}
    return ways | (
        {"JOSIE, published": of(published_josie), "ProbeSet": of(probe_set)} if slow else {}
    )


def brute_force(index: OverlapIndex, tokens: np.ndarray, own: int, k: int) -> list[tuple[int, int]]:
    """Count the tokens of every set: the k best (id, overlap), equal overlaps by id. O(pairs)."""
    in_query = np.zeros(index.n_tokens, np.int8)
    in_query[tokens] = 1
    overlaps = np.add.reduceat(in_query[index.set_tokens], index.set_offsets[:-1], dtype=np.int64)
    overlaps[own] = 0
    best = np.argsort(-overlaps, kind="stable")[:k]
    return [(int(index.ids[row]), int(overlaps[row])) for row in best if overlaps[row]]


def set_similarity_search(
    index: OverlapIndex,
) -> Callable[[np.ndarray, int], list[tuple[int, float]]]:
    """Build SetSimilaritySearch over the same sets, and return its search function."""
    from SetSimilaritySearch import SearchIndex

    sets = [
        part.tolist()
        for part in np.split(np.asarray(index.set_tokens), np.asarray(index.set_offsets)[1:-1])
    ]
    search_index = SearchIndex(sets, similarity_func_name="containment", similarity_threshold=0.5)

    def search(tokens: np.ndarray, at_least: int) -> list[tuple[int, float]]:
        # Its index is the same for all thresholds of containment. A little less, as its thresholds
        # are rounded down.
        search_index.similarity_threshold = (at_least - 1e-6) / len(tokens)
        return search_index.query(tokens.tolist())

    return search


SIZES = (10, 1000)
"""Tokens of a query."""

SLOW_UP_TO, RIVAL_UP_TO = 20_000, 110_000


@dataclass(frozen=True)
class Request:
    """What is asked of a lake."""

    data: tuple[str, ...] = setting(
        (*WEB_LAKES, "10000"), "Real lakes, and sizes of power-law lakes."
    )
    queries: int = setting(40, "Query sets.")
    checked: int = setting(5, "Of them held against brute force.")
    k: int = setting(10, "Sets that are found.")
    seed: int = setting(0, "Of lakes and queries.")


def built(name: str, folder: Path, seed: int) -> dict[str, Any]:
    """Build and save the index of a lake, and return time and sizes."""
    sets = token_sets(name, seed)
    seconds, index = timed_call(build_index, sets.set_ids, sets.tokens)
    folder.mkdir(parents=True)
    return {
        "sets": index.n_sets,
        "tokens": index.n_tokens,
        "pairs": len(index.list_sets),
        "longest_list": int(np.diff(index.token_offsets).max()),
        "build_seconds": seconds,
        "index_bytes": sum(entry.n_bytes for entry in save_index(index, folder)),
    }


def queries_of(index: OverlapIndex, n: int, seed: int) -> list[tuple[int, np.ndarray]]:
    """Draw sets of a size: their numbers and tokens."""
    lengths = np.diff(index.set_offsets)
    rows = np.flatnonzero((lengths >= SIZES[0]) & (lengths <= SIZES[1]))
    rows = np.random.default_rng(seed).permutation(rows)[:n]
    return [(row, index.suffix(row, 0).astype(np.int64)) for row in rows.tolist()]


def measured(index: OverlapIndex, request: Request) -> dict[str, Any]:
    """Measure all ways in turn, and check their answers."""
    queries = queries_of(index, request.queries, request.seed)
    ways = ways_of(index, Planner.measured(index), slow=index.n_sets <= SLOW_UP_TO)
    rows, reads, right = measure(index, ways, queries, request.k, request.checked)
    rival = rival_of(index)
    if rival is not None:
        rows["SetSimilaritySearch"] = [
            timed_call(rival, tokens, pairs[-1][1] if pairs else 1)[0]
            for (_, tokens), pairs in zip(queries, right, strict=True)
        ]
    summaries = {name: summary(rows[name], rows["MergeList"], reads.get(name)) for name in rows}
    for name, one in summaries.items():
        click.echo(f"  {name}: {one}", err=True)
    return {
        "queries": len(queries),
        "median_tokens": float(np.median([len(query) for _, query in queries])),
        f"k={request.k}": summaries,
    }


def measure(
    index: OverlapIndex,
    ways: dict[str, Way],
    queries: list[tuple[int, np.ndarray]],
    k: int,
    checked: int,
) -> tuple[dict[str, list[float]], dict[str, list[Any]], list[list[tuple[int, int]]]]:
    """Ask every way each query, twice, and take the second time; stop where an answer is wrong."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    reads: dict[str, list[Any]] = {name: [] for name in ways}
    right = []
    for number, (own_set, tokens) in enumerate(queries):
        right.append(
            merge_list(index, query_of_tokens(index, tokens), k, exclude=[own_set]).pairs()
        )
        if number < checked:
            require_equal(right[-1], brute_force(index, tokens, own_set, k), "brute force")
        order = list(ways)[number % len(ways) :] + list(ways)[: number % len(ways)]
        for name in order:
            ways[name](tokens, own_set, k)
            took, answer = timed_call(ways[name], tokens, own_set, k)
            require_equal(answer.pairs(), right[-1], name)
            seconds[name].append(took)
            reads[name].append(answer.reads)
    return seconds, reads, right


def rival_of(index: OverlapIndex) -> Callable[..., Any] | None:
    """Build SetSimilaritySearch, unless it is not there or the lake is too large for it."""
    if index.n_sets > RIVAL_UP_TO:
        return None
    try:
        return set_similarity_search(index)
    except ImportError:
        click.echo(
            "SetSimilaritySearch is left out: it is not installed (pip install "
            "SetSimilaritySearch==1.0.1).",
            err=True,
        )
        return None


def require_equal(answer: list[Any], right: list[Any], name: str) -> None:
    """Stop the run where an answer is wrong."""
    if answer != right:
        raise SystemExit(f"{name}: the answer {answer[:5]}... is not {right[:5]}...")


def summary(seconds: list[float], of_first: list[float], reads: list[Any] | None) -> dict[str, Any]:
    """Return times, ratios to the first way query by query, and means of what was read."""
    result: dict[str, Any] = {
        "median_ms": float(1e3 * np.median(seconds)),
        "times_merge_list": np.quantile(np.array(seconds) / of_first, [0.25, 0.5, 0.75])
        .round(3)
        .tolist(),
    }
    if reads:
        result |= {
            name: float(np.mean([getattr(one, name) for one in reads]))
            for name in ("lists", "sets", "n_bytes")
        }
    return result


@benchmark("overlap", Request)
def main(request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure the ways to the sets that share most tokens with a query."""
    pin_threads(1)
    result: dict[str, Any] = {}
    for name in request.data:
        with tempfile.TemporaryDirectory(prefix="pexeso-benchmark-") as parent:
            folder = Path(parent) / name
            result[name] = built(name, folder, request.seed)
            click.echo(f"{name}: {result[name]}", err=True)
            result[name][f"{SIZES}"] = measured(open_index(folder), request)
    yield f"overlap/{'+'.join(request.data)}", result
