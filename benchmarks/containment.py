"""Benchmark of containment search against its alternatives, with every answer checked.

Recall, precision and times for each threshold and each way: our index as it chooses, by posting
lists (the prefix filter) and by bands; with ``--datasketch`` the MinHashLSHEnsemble of datasketch,
where that is installed (pip install datasketch==2.0.0), and with ``--equal-recall`` that asked for
lower thresholds, where it finds as much. datasketch gets tokens as hashes, pexeso texts; each query
is asked of all ways in turn. What is verified is compared with a linear scan.
"""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
import psutil

from benchmarks.commands import benchmark, setting
from benchmarks.containment_sets import DATA, ContainmentLake, draw_lake, right_answer, scan, scores
from benchmarks.machine import pin_threads
from benchmarks.timing import timed_call
from pexeso.sets.containment.ensemble import CsrLists, Ensemble
from pexeso.sets.overlap.index import build_index

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
LOWER = (0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.0)
"""Thresholds that datasketch may be asked for in place of a higher one."""

RIVAL_SETTINGS = {"num_perm": 128, "num_part": 16, "m": 8}
"""datasketch's own defaults, with the number of partitions that its paper recommends."""

ROUTES = {"pexeso": "auto", "lists": "lists", "bands": "bands"}

Way = Callable[[int, float], tuple[np.ndarray, int]]
"""From the number of a query and a threshold to the ids found, and how many were looked at."""


@dataclass(frozen=True)
class Request:
    """What is asked of a lake."""

    data: str = setting("power", type=click.Choice(DATA))
    sets: int = setting(10_000, "Of a drawn lake.")
    queries: int = setting(100, "Query sets.")
    thresholds: tuple[float, ...] = setting(THRESHOLDS)
    checked: int = setting(100, "Queries compared with a scan.")
    datasketch: bool = setting(False, "Measure datasketch too.")
    equal_recall: float | None = setting(
        None, "Ask datasketch for the highest of its thresholds with this recall.", type=float
    )
    seed: int = setting(0, "Of the lake and the queries.")


def ensemble_of(lake: ContainmentLake) -> Ensemble:
    """Build the index of a lake: posting lists, and signatures over them."""
    owners = np.repeat(np.arange(len(lake)), np.diff(lake.offsets))
    lists = CsrLists(build_index(owners, lake.texts))
    return Ensemble.build(lake.tokens, lake.offsets, lists)


def way_of(index: Ensemble, lake: ContainmentLake, route: str) -> Way:
    """Search an index by a route."""

    def ask(number: int, threshold: float) -> tuple[np.ndarray, int]:
        own = lake.own[number]
        answer = index.search(
            lake.queries[number],
            threshold,
            route=route,
            exclude=np.array([] if own < 0 else [own], np.int64),
        )
        return answer.sets, answer.n_candidates

    return ask


class Datasketch:
    """MinHashLSHEnsemble of datasketch: signatures are made once, an index for each threshold."""

    def __init__(self, lake: ContainmentLake) -> None:
        from datasketch import LeanMinHash, MinHash

        self._lake = lake
        self._empty = MinHash(num_perm=RIVAL_SETTINGS["num_perm"], hashfunc=int)
        sizes, held = np.diff(lake.offsets), _held_bytes()
        sets = np.split(lake.tokens, lake.offsets[1:-1])
        seconds, minhashes = _uncollected(
            lambda: [LeanMinHash(self._signed(tokens)) for tokens in sets]
        )
        self._entries = list(zip(range(len(lake)), minhashes, sizes.tolist(), strict=True))
        self.facts = {
            **RIVAL_SETTINGS,
            "signature_seconds": seconds,
            "signature_bytes": _held_bytes() - held,
        }

    def built(self, threshold: float) -> tuple[Way, dict[str, float]]:
        """Index for a threshold; return the way to ask it, and what the index takes."""
        from datasketch import MinHashLSHEnsemble

        held = _held_bytes()
        index = MinHashLSHEnsemble(threshold=threshold, **RIVAL_SETTINGS)
        seconds, _ = _uncollected(lambda: index.index(self._entries))

        def ask(number: int, _: float) -> tuple[np.ndarray, int]:
            query = self._lake.hashed_queries[number]
            hits = list(set(index.query(self._signed(query), len(query))))
            ids = np.array(hits, np.int64)
            return ids[ids != self._lake.own[number]], len(ids)

        return ask, {"index_seconds": seconds, "index_bytes": _held_bytes() - held}

    def _signed(self, tokens: np.ndarray) -> Any:
        signature = self._empty.copy()
        signature.update_batch((tokens & np.uint64(0xFFFFFFFF)).tolist())
        return signature


def _uncollected(work: Callable[[], Any]) -> tuple[float, Any]:
    """Time work without collections, which look at every object of a large index in vain."""
    gc.disable()
    try:
        return timed_call(work)
    finally:
        gc.enable()


def _held_bytes() -> int:
    gc.collect()
    return psutil.Process().memory_info().rss


def run(lake: ContainmentLake, request: Request) -> dict[str, Any]:
    """Build, check and measure one lake."""
    seconds, index = timed_call(ensemble_of, lake)
    result: dict[str, Any] = {
        "sets": len(lake),
        "tokens": len(lake.tokens),
        "queries": len(lake.queries),
        "build_seconds": seconds,
        "checked_by_scan": check(index, lake, request.checked),
    }
    ways = {name: way_of(index, lake, route) for name, route in ROUTES.items()}
    truths = {
        threshold: [
            np.sort(ways["lists"](number, threshold)[0]) for number in range(len(lake.queries))
        ]
        for threshold in request.thresholds
    }
    for threshold, truth in truths.items():
        routes = Counter(index.search(query, threshold).route for query in lake.queries)
        measured = summed(ways, lake, threshold, truth)
        result[f"{threshold}"] = {"routes": dict(routes), **measured}
    if request.datasketch:
        result["datasketch"] = beside_datasketch(ways["pexeso"], lake, truths, request.equal_recall)
    return result


def check(index: Ensemble, lake: ContainmentLake, n: int) -> int:
    """Compare verified answers with a linear scan at all thresholds, and stop at a wrong one."""
    numbers = range(min(n, len(lake.queries)))
    for number in numbers:
        counts, query = scan(lake, number), lake.queries[number]
        for threshold in THRESHOLDS:
            right = right_answer(lake, number, counts, threshold)
            for route in ROUTES.values():
                own = np.array([lake.own[number]])
                answer = index.search(query, threshold, route=route, exclude=own)
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
    return len(numbers)


def summed(
    ways: dict[str, Way], lake: ContainmentLake, threshold: float, truth: list[np.ndarray]
) -> dict[str, Any]:
    """Ask each query of all ways in turn; summarise times, recall and precision.

    Ratios are the seconds of each way over those of the first way, query by query. Each way is
    asked once before it is timed.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    answers: dict[str, list[np.ndarray]] = {name: [] for name in ways}
    candidates: Counter[str] = Counter()
    turns = list(ways.items())
    for number in range(len(lake.queries)):
        # The first one after a slow way finds the caches full of other things.
        turns = turns[1:] + turns[:1]
        for name, ask in turns:
            ask(number, threshold)
            elapsed, (answer, n_candidates) = timed_call(ask, number, threshold)
            seconds[name].append(elapsed)
            answers[name].append(answer)
            candidates[name] += n_candidates
    first = np.array(next(iter(seconds.values())))
    result = {}
    for name, elapsed in seconds.items():
        low, middle, high = np.quantile(elapsed / first, [0.25, 0.5, 0.75]).round(3).tolist()
        hits = sum(
            len(np.intersect1d(answer, right))
            for answer, right in zip(answers[name], truth, strict=True)
        )
        result[name] = {
            "median_seconds": float(np.median(elapsed)),
            "p90_seconds": float(np.quantile(elapsed, 0.9)),
            "times_the_first": {"quartile": low, "median": middle, "upper_quartile": high},
            **scores(lake, answers[name], truth),
            "precision_of_candidates": hits / max(candidates[name], 1),
        }
        click.echo(f"{name} {threshold}: {json.dumps(result[name])}", err=True)
    return result


def beside_datasketch(
    ours: Way,
    lake: ContainmentLake,
    truths: dict[float, list[np.ndarray]],
    equal_recall: float | None,
) -> dict[str, Any] | str:
    """Measure pexeso and datasketch query by query in turn."""
    try:
        rival = Datasketch(lake)
    except ImportError:
        click.echo(
            "datasketch is left out: it is not installed (pip install datasketch==2.0.0).", err=True
        )
        return "not installed"
    result: dict[str, Any] = dict(rival.facts)
    chosen = {threshold: threshold for threshold in truths}
    if equal_recall is not None:
        chosen, result["recalls"] = lowered(rival, lake, truths, equal_recall)
    for cutoff in sorted(set(chosen.values()), reverse=True):
        ask, facts = rival.built(cutoff)
        for threshold in (one for one in truths if chosen[one] == cutoff):
            measured = summed(
                {"pexeso": ours, "datasketch": ask}, lake, threshold, truths[threshold]
            )
            result[f"{threshold}"] = {"its_threshold": cutoff, **facts, **measured}
    return result


def lowered(
    rival: Datasketch,
    lake: ContainmentLake,
    truths: dict[float, list[np.ndarray]],
    min_recall: float,
) -> tuple[dict[float, float], dict[float, dict[float, float]]]:
    """Return for each threshold the highest one at which datasketch finds enough, or the most."""
    recalls: dict[float, dict[float, float]] = {threshold: {} for threshold in truths}
    for cutoff in sorted({*truths, *LOWER}, reverse=True):
        waiting = [
            threshold
            for threshold, tried in recalls.items()
            if cutoff <= threshold and max(tried.values(), default=0.0) < min_recall
        ]
        if not waiting:
            continue
        ask, _ = rival.built(cutoff)
        answers = [ask(number, cutoff)[0] for number in range(len(lake.queries))]
        for threshold in waiting:
            recall = scores(lake, answers, truths[threshold])["recall"]
            recalls[threshold][cutoff] = 1.0 if recall is None else recall
    chosen = {
        threshold: max(tried, key=lambda cutoff, tried=tried: (tried[cutoff], cutoff))
        for threshold, tried in recalls.items()
    }
    return chosen, recalls


@benchmark("containment", Request)
def main(request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure containment search on drawn lakes of any size and on real lakes."""
    pin_threads(1)
    lake = draw_lake(request.data, request.sets, request.queries, request.seed)
    drawn = f"-{request.sets}" if request.data == "power" else ""
    yield f"containment/{request.data}{drawn}", {"data": request.data, **run(lake, request)}
