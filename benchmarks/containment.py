"""Benchmark of containment search against its alternatives, with every answer checked.

It runs on drawn lakes of any size and on real lakes.

Recall, precision and times for each threshold and each way: our index as it chooses, by posting
lists (the prefix filter) and by bands; with ``--datasketch`` the MinHashLSHEnsemble of datasketch,
where that is installed (pip install datasketch==2.0.0), and with ``--equal-recall`` that asked for
lower thresholds, where it finds as much. All get tokens as hashes, so that none hashes texts, and
each query is asked of all ways in turn. What is verified is compared with a linear scan, for all
queries or some.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.containment_equal import foreseen_recalls, lowered, upper_sizes
from benchmarks.containment_lists import hashed_ensemble
from benchmarks.containment_sets import DATA, ContainmentLake, draw_lake, right_answer, scan, scores
from benchmarks.containment_ways import Datasketch, Way, index_bytes, measure, way_of
from benchmarks.machine import describe_machine
from benchmarks.report import write_result
from pexeso.sets.containment.ensemble import Ensemble
from pexeso.sets.containment.options import EnsembleOptions

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
LOWER = (0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.0)
DEPTH = 8


def run(lake: ContainmentLake, flags: argparse.Namespace) -> dict[str, Any]:
    """Build, check and measure one lake."""
    begin = time.perf_counter()
    index = hashed_ensemble(lake.tokens, lake.offsets)
    result: dict[str, Any] = {
        "sets": len(lake),
        "tokens": len(lake.tokens),
        "queries": len(lake.queries),
        "build_seconds": time.perf_counter() - begin,
        "bytes": index_bytes(index),
    }
    result["checked_by_scan"] = check(index, lake, flags.checked)
    ways = {"pexeso": way_of(index, lake, "auto"), "lists": way_of(index, lake, "lists")}
    ways["bands"] = way_of(index, lake, "bands")
    truths = {
        threshold: [
            np.sort(ways["lists"](number, threshold)[0]) for number in range(len(lake.queries))
        ]
        for threshold in flags.thresholds
    }
    for threshold in flags.thresholds:
        routes = Counter(index.search(query, threshold).route for query in lake.queries)
        result[f"{threshold}"] = {
            "routes": dict(routes),
            **summed(ways, lake, threshold, truths[threshold]),
        }
    if flags.datasketch:
        del ways
        result["datasketch"] = beside_datasketch(index, lake, truths, flags)
    return result


def check(index: Ensemble, lake: ContainmentLake, n: int) -> dict[str, Any]:
    """Compare verified answers with a linear scan at all thresholds, and stop at a wrong one.

    Answers are checked by lists and by bands.
    """
    seconds = []
    for number in range(min(n, len(lake.queries))):
        begin = time.perf_counter()
        counts = scan(lake, lake.queries[number])
        seconds.append(time.perf_counter() - begin)
        for threshold in THRESHOLDS:
            right = right_answer(lake, number, counts, threshold)
            for route in ("auto", "lists", "bands"):
                answer = index.search(
                    lake.queries[number], threshold, route=route, exclude=[lake.own[number]]
                )
                whole = route == "bands" or np.array_equal(np.sort(answer.sets), right)
                if not (
                    whole
                    and np.isin(answer.sets, right).all()
                    and (answer.overlaps == counts[answer.sets]).all()
                ):
                    raise SystemExit(
                        f"query {number} at {threshold} by {route}: the answer is not that of a "
                        "scan"
                    )
    return {
        "queries": len(seconds),
        "median_scan_seconds": float(np.median(seconds)) if seconds else None,
    }


def summed(
    ways: dict[str, Way], lake: ContainmentLake, threshold: float, truth: list[np.ndarray]
) -> dict[str, Any]:
    """Measure all ways at a threshold and summarise times, recall and precision.

    Ratios are the seconds of each way over those of the first way, query by query.
    """
    measured = measure(ways, lake, threshold)
    first = np.array(next(iter(measured.values()))["seconds"])
    result = {}
    for name, one in measured.items():
        seconds = np.array(one["seconds"])
        low, middle, high = np.quantile(seconds / first, [0.25, 0.5, 0.75]).round(3).tolist()
        hits = sum(
            len(np.intersect1d(a, right)) for a, right in zip(one["answers"], truth, strict=True)
        )
        result[name] = {
            "median_seconds": float(np.median(seconds)),
            "p90_seconds": float(np.quantile(seconds, 0.9)),
            "times_the_first": {"quartile": low, "median": middle, "upper_quartile": high},
            **scores(lake, one["answers"], truth),
            "precision_of_candidates": hits / max(one["candidates"], 1),
        }
        say(name, threshold, result[name])
    return result


def beside_datasketch(
    index: Ensemble,
    lake: ContainmentLake,
    truths: dict[float, list[np.ndarray]],
    flags: argparse.Namespace,
) -> dict[str, Any] | str:
    """Measure pexeso and datasketch query by query in turn.

    datasketch is queried at the same threshold, or at one where it finds as much.
    """
    options = EnsembleOptions(permutations=flags.permutations)
    builds = {
        "pexeso_build_seconds": EnsembleOptions(),
        "pexeso_build_seconds_with_as_many_functions": options,
    }
    try:
        rival = Datasketch(lake, flags.permutations, flags.partitions, flags.depth)
    except ImportError:
        print(
            "datasketch is left out: it is not installed (pip install datasketch==2.0.0).",
            file=sys.stderr,
            flush=True,
        )
        return "not installed"
    result: dict[str, Any] = {
        name: [build_seconds(lake, one) for _ in range(flags.builds)]
        for name, one in builds.items()
    }
    result |= rival.facts
    print(f"{result}", file=sys.stderr, flush=True)
    cutoffs = {threshold: threshold for threshold in flags.thresholds}
    if flags.equal_recall:
        result["foreseen_recalls"] = foreseen = foresee(lake, truths, flags)
        cutoffs = {
            threshold: lowered(foreseen[threshold], flags.equal_recall) for threshold in cutoffs
        }
    for cutoff in sorted(set(cutoffs.values()), reverse=True):
        ask, facts = rival.built(cutoff)
        print(f"datasketch {cutoff}: {facts}", file=sys.stderr, flush=True)
        for threshold in [one for one in cutoffs if cutoffs[one] == cutoff]:
            ways = {
                "pexeso": way_of(index, lake, "auto"),
                "datasketch": ask,
            }
            one = {
                "its_threshold": cutoff,
                **facts,
                **summed(ways, lake, threshold, truths[threshold]),
            }
            result[f"{threshold}"] = one
            if flags.equal_recall and one["datasketch"]["recall"] not in (
                None,
                foreseen[threshold][cutoff],
            ):
                raise SystemExit(f"datasketch at {cutoff} does not find what was foreseen of it")
        del ask, ways
    return result


def build_seconds(lake: ContainmentLake, options: EnsembleOptions) -> float:
    """Time a whole build of ours."""
    begin = time.perf_counter()
    hashed_ensemble(lake.tokens, lake.offsets, options)
    return time.perf_counter() - begin


def foresee(
    lake: ContainmentLake, truths: dict[float, list[np.ndarray]], flags: argparse.Namespace
) -> dict[float, dict[float, float]]:
    """Predict the recall of datasketch by intended threshold and by its own."""
    uppers = upper_sizes(lake, flags.partitions)
    return {
        threshold: foreseen_recalls(
            lake,
            truths[threshold],
            uppers,
            (flags.permutations, flags.depth),
            [threshold, *flags.lower],
        )
        for threshold in flags.thresholds
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print JSON; give the exit status."""
    flags = _parser().parse_args(arguments)
    torch.set_num_threads(1)
    small = draw_lake("planted", 1000, 4, flags.seed)
    for route in ("lists", "bands"):  # loops are compiled, or loaded, before the clock
        hashed_ensemble(small.tokens, small.offsets).search(small.queries[0], 0.5, route=route)
    result: dict[str, Any] = {"machine": describe_machine(torch.device("cpu")), "data": flags.data}
    result |= run(draw_lake(flags.data, flags.sets, flags.queries, flags.seed), flags)
    print(json.dumps(result, indent=1), flush=True)
    if flags.out is not None:
        write_result(flags.out, result)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.containment", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--data", choices=DATA, default="planted")
    parser.add_argument(
        "--sets", type=int, default=10_000, help="sets of a drawn lake (default 10000)"
    )
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--out", type=Path, help="a file for the result")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--thresholds", type=_numbers, default=THRESHOLDS, help="with commas between"
    )
    parser.add_argument(
        "--checked",
        type=int,
        default=100,
        help="queries whose answers are compared with a linear scan",
    )
    parser.add_argument("--datasketch", action="store_true", help="measure datasketch too")
    parser.add_argument(
        "--permutations", type=int, default=128, help="of datasketch (its default: 128)"
    )
    parser.add_argument(
        "--partitions", type=int, default=16, help="of datasketch (its default: 16)"
    )
    parser.add_argument(
        "--depth", type=int, default=DEPTH, help="of datasketch, its m (default: 8)"
    )
    parser.add_argument(
        "--equal-recall",
        type=float,
        help="ask datasketch for the highest of its thresholds at which it has this recall of "
        "the answers, or for that with the most",
    )
    parser.add_argument(
        "--lower", type=_numbers, default=LOWER, help="its thresholds to choose from, besides ours"
    )
    parser.add_argument(
        "--builds",
        type=int,
        default=1,
        help="of ours that are timed beside datasketch (default: 1)",
    )
    return parser


def _numbers(text: str) -> list[float]:
    return [float(one) for one in text.split(",")]


def _counts(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


def say(name: str, threshold: float, one: dict[str, Any]) -> None:
    """Print the numbers of a way."""
    numbers = ", ".join(
        f"{key} {value:.4g}" for key, value in one.items() if isinstance(value, float)
    )
    print(f"{name} {threshold}: {numbers}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
