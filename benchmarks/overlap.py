"""Benchmark of top-k overlap search.

It measures JOSIE, MergeList, ProbeSet, the planner and SetSimilaritySearch, on real lakes and on a
power-law lake.

Queries are sets of the lake, which are not to find themselves; every way gets token numbers.
SetSimilaritySearch (pip install SetSimilaritySearch==1.0.1) is told the k-th overlap, since it
knows thresholds only. MergeList counts by compiled loops, as it does in a process that has searched
for a while. Answers of some queries are held against brute force, those of all others against
MergeList.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.machine import describe_machine
from benchmarks.overlap_lake import power_law_lake
from benchmarks.overlap_ways import (
    Way,
    brute_force,
    set_similarity_search,
    ways_of,
)
from benchmarks.report import write_result
from benchmarks.token_sets import lake_sets, texts_of
from pexeso.runtime.jit import use_loops
from pexeso.sets.overlap.batched import BatchedMergeList
from pexeso.sets.overlap.index.saving import open_index, save_index
from pexeso.sets.overlap.index.sets import OverlapIndex, build_index
from pexeso.sets.overlap.merge import merge_list
from pexeso.sets.overlap.planner import Planner
from pexeso.sets.overlap.query import query_of_tokens

REAL = ("fivethirtyeight", "pudding", "wikitables")
KS = (1, 5, 10, 20, 100)
SIZES = ((10, 1000), (50, 3000))
SLOW_UP_TO, RIVAL_UP_TO = 20_000, 110_000


def built(name: str, folder: Path, seed: int) -> dict[str, Any]:
    """Build and save the index of a lake unless it is there, and return time and sizes.

    A `name` that is a number of sets stands for a power-law lake, any other for a real lake.
    """
    if folder.exists():
        return json.loads(folder.with_suffix(".json").read_text(encoding="utf-8"))
    if name in REAL:
        lake = lake_sets(name)
        ids, tokens = lake.set_ids, lake.tokens
    else:
        offsets, numbers = power_law_lake(int(name), seed=seed)
        ids, tokens = np.repeat(np.arange(int(name)), np.diff(offsets)), texts_of(numbers)
    begin = time.perf_counter()
    index = build_index(ids, tokens)
    seconds = time.perf_counter() - begin
    folder.mkdir(parents=True)
    n_bytes = sum(entry.n_bytes for entry in save_index(index, folder))
    facts = {
        "sets": index.n_sets,
        "tokens": index.n_tokens,
        "pairs": len(index.list_sets),
        "longest_list": int(np.diff(index.token_offsets).max()),
        "build_seconds": seconds,
        "index_bytes": n_bytes,
    }
    folder.with_suffix(".json").write_text(json.dumps(facts), encoding="utf-8")
    return facts


def queries_of(
    index: OverlapIndex, n: int, sizes: tuple[int, int], seed: int
) -> list[tuple[int, np.ndarray]]:
    """Draw sets of a size: their numbers and tokens."""
    lengths = np.diff(index.set_offsets)
    rows = np.flatnonzero((lengths >= sizes[0]) & (lengths <= sizes[1]))
    rows = np.random.default_rng(seed).permutation(rows)[:n]
    return [(row, index.suffix(row, 0).astype(np.int64)) for row in rows.tolist()]


def in_memory(
    index: OverlapIndex, options: argparse.Namespace, sizes: tuple[int, int]
) -> dict[str, Any]:
    """Measure all ways for each k, in turn, and check their answers."""
    queries = queries_of(index, options.queries, sizes, options.seed)
    ways = ways_of(index, Planner.measured(index), slow=index.n_sets <= SLOW_UP_TO)
    batched, rival = BatchedMergeList(index), rival_of(index)
    result: dict[str, Any] = {
        "queries": len(queries),
        "median_tokens": float(np.median([len(q) for _, q in queries])),
    }
    for k in options.k:
        rows, reads, right = measure(index, ways, queries, k, options.checked)
        if rival is not None:
            rows["SetSimilaritySearch"] = [timed(rival, *ask)[0] for ask in floors(queries, right)]
        prepared = [query_of_tokens(index, tokens) for _, tokens in queries]
        seconds, together = timed(
            batched.search, prepared, k, exclude=[[own_set] for own_set, _ in queries]
        )
        require_equal([answer.pairs() for answer in together], right, "batched")
        rows["batched"] = [seconds / len(queries)] * len(queries)
        result[f"k={k}"] = {
            name: summary(rows[name], rows["MergeList"], reads.get(name)) for name in rows
        }
        result[f"k={k}"]["planner"] |= regret(rows)
        for name, one in result[f"k={k}"].items():
            print(f"  {sizes} k={k} {name}: {one}", file=sys.stderr, flush=True)
    return result


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
            require_equal([right[-1]], [brute_force(index, tokens, own_set, k)], "brute force")
        order = list(ways)[number % len(ways) :] + list(ways)[: number % len(ways)]
        for name in order:
            ways[name](tokens, own_set, k)
            took, answer = timed(ways[name], tokens, own_set, k)
            require_equal([answer.pairs()], [right[-1]], name)
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
        print(
            "SetSimilaritySearch is left out: it is not installed (pip install "
            "SetSimilaritySearch==1.0.1).",
            file=sys.stderr,
        )
        return None


def floors(
    queries: list[tuple[int, np.ndarray]], right: list[list[tuple[int, int]]]
) -> list[tuple[np.ndarray, int]]:
    """Return the tokens of each query and the k-th overlap, or the last one."""
    return [
        (tokens, pairs[-1][1] if pairs else 1)
        for (_, tokens), pairs in zip(queries, right, strict=True)
    ]


def require_equal(answers: list[Any], right: list[Any], name: str) -> None:
    """Stop the run where an answer is wrong."""
    for one, other in zip(answers, right, strict=True):
        if one != other:
            raise SystemExit(f"{name}: the answer {one[:5]}... is not {other[:5]}...")


def regret(rows: dict[str, list[float]]) -> dict[str, float]:
    """Return the cost of choices between JOSIE and MergeList.

    It is the planner's time over that of the better one, all queries together, and the same for
    always using one.
    """
    best = float(np.minimum(rows["JOSIE"], rows["MergeList"]).sum())
    return {
        f"{name}_over_the_better": sum(rows[name]) / best
        for name in ("planner", "JOSIE", "MergeList")
    }


def summary(seconds: list[float], of_first: list[float], reads: list[Any] | None) -> dict[str, Any]:
    """Return times, ratios to the first way query by query, and means of what was read."""
    result: dict[str, Any] = {
        "median_ms": float(1e3 * np.median(seconds)),
        "times_merge_list": quartiles(np.array(seconds) / np.array(of_first)),
    }
    if reads:
        result |= {
            name: float(np.mean([getattr(one, name) for one in reads]))
            for name in ("lists", "sets", "n_bytes")
        }
    return result


def quartiles(ratios: np.ndarray) -> list[float]:
    """Return the quartiles, rounded."""
    return np.quantile(ratios, [0.25, 0.5, 0.75]).round(3).tolist()


def timed(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    """Return the seconds that a call takes, and what it gives."""
    begin = time.perf_counter()
    answer = call(*arguments, **options)
    return time.perf_counter() - begin, answer


def main(arguments: Sequence[str] | None = None) -> int:
    """Build each lake, measure, print JSON; give the exit status."""
    options = parser().parse_args(arguments)
    torch.set_num_threads(1)
    use_loops()
    result: dict[str, Any] = {
        "machine": describe_machine(torch.device("cpu")),
        "arguments": _arguments(options),
    }
    for name in options.data:
        parent = options.folder or Path(tempfile.mkdtemp())
        folder = parent / f"{name}-{options.seed}"
        try:
            result[name] = built(name, folder, options.seed)
            print(f"{name}: {result[name]}", file=sys.stderr, flush=True)
            for sizes in SIZES if name not in REAL else SIZES[:1]:
                result[name][f"{sizes}"] = in_memory(open_index(folder), options, sizes)
        finally:
            if options.folder is None:
                shutil.rmtree(parent)
    text = json.dumps(result, indent=1, default=str)
    print(text, flush=True)
    if options.out is not None:
        write_result(options.out, json.loads(text))
    return 0


def parser() -> argparse.ArgumentParser:
    """Make the parser of the command."""
    argument_parser = argparse.ArgumentParser(
        prog="python -m benchmarks.overlap", description=__doc__.splitlines()[0]
    )
    argument_parser.add_argument(
        "--data", type=lambda text: text.split(","), default=[*REAL, "10000", "100000", "1000000"],
        help="real lakes, and sizes of power-law lakes, with commas between",
    )  # fmt: skip
    argument_parser.add_argument(
        "--queries", type=int, default=40, help="queries of each range of sizes (default 40)"
    )
    argument_parser.add_argument(
        "--checked", type=int, default=5, help="of them held against brute force (default 5)"
    )
    argument_parser.add_argument(
        "--k",
        type=_numbers,
        default=list(KS),
        help="values of k",
    )
    argument_parser.add_argument(
        "--folder",
        type=Path,
        help="where indexes are kept, and found again (default: they are not)",
    )
    argument_parser.add_argument("--out", type=Path, help="a file for the results")
    argument_parser.add_argument("--seed", type=int, default=0)
    return argument_parser


def _arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return what was asked for, but for places of this machine."""
    return {name: value for name, value in vars(options).items() if name not in ("folder", "out")}


def _numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",") if one]


if __name__ == "__main__":
    sys.exit(main())
