"""Containment search on a synthetic lake of heavy-tailed sizes, beside datasketch's MinHashLSHEnsemble where that is installed.

The lake: vocabularies with sizes of a Pareto distribution with shape 0.8, 30 to 20,000 tokens; each set a random share of one of them. For half of the queries
supersets of 2, 5 and 20 times their size are planted. The truth is counted on all sets.

Both sides get tokens as numbers, so that neither hashes texts. One index of ours serves all thresholds; datasketch has one for each threshold, and its
signatures are made once. Its answers are candidates; ours are verified, and the time for that is in ours.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import psutil
import torch

from benchmarks.machine import describe_machine
from pexeso.containment.ensemble import Ensemble
from pexeso.containment.exact import overlaps
from pexeso.containment.options import EnsembleOptions

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
RATIOS = (2, 5, 20)
LEAST, MOST, SETS_A_VOCABULARY = 30, 20_000, 50


class SyntheticLake:
    """Sets and queries of hashed tokens.

    Parameters
    ----------
    n_sets : int
        At least 1,000.
    n_queries : int
        Half of them have planted supersets, half are drawn like the sets.
    seed : int

    Attributes
    ----------
    tokens : uint64 (t,)
    offsets : int64 (n_sets + 1,)
    queries : list of uint64 arrays of 10 to 1,000 tokens
    """

    def __init__(self, n_sets: int, n_queries: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        sizes = np.minimum(MOST, LEAST * (1 + rng.pareto(0.8, max(1, n_sets // SETS_A_VOCABULARY)))).astype(int)
        words = [rng.integers(0, 1 << 63, size, dtype=np.uint64) for size in sizes]

        def draw() -> np.ndarray:
            one = words[rng.integers(len(words))]
            kept = one[rng.random(len(one)) < rng.random()]
            return kept if len(kept) else one[:1]

        planted = [rng.integers(0, 1 << 63, rng.integers(10, 300), dtype=np.uint64) for _ in range(n_queries // 2)]
        sets = [
            np.concatenate([query, rng.integers(0, 1 << 63, (ratio - 1) * len(query), dtype=np.uint64)])
            for query in planted
            for ratio in RATIOS
        ]
        sets += [draw() for _ in range(n_sets - len(sets))]
        self.offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
        self.tokens = np.concatenate(sets)
        while len(planted) < n_queries:
            query = draw()
            if 10 <= len(query) <= 1000:
                planted.append(query)
        self.queries = [np.unique(query) for query in planted]


def truths(index: Ensemble, queries: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Count every set: ids of those that contain at least half of each query, and their containments."""
    found = []
    for query in queries:
        counts = overlaps(*index.tokens, np.arange(len(index)), query, max(1, -(-len(query) // 2)))
        found.append((index.sets[counts > 0], counts[counts > 0] / len(query)))
    return found


def scores(answers: list[set[int]], truth: list[tuple[np.ndarray, np.ndarray]], threshold: float) -> dict[str, float]:
    """Give recall and precision, means over queries that have an answer, or got one; of planted supersets too, by ratio."""
    recalls, precisions, planted = [], [], {ratio: [] for ratio in RATIOS}
    for number, (answer, (ids, containments)) in enumerate(zip(answers, truth, strict=True)):
        right = set(ids[containments >= threshold - 1e-9].tolist())
        recalls += [len(answer & right) / len(right)] if right else []
        precisions += [len(answer & right) / len(answer)] if answer else []
        if number < len(answers) // 2:
            for place, ratio in enumerate(RATIOS):
                planted[ratio].append(number * len(RATIOS) + place in answer)
    mean = {f"recall_{ratio}x": float(np.mean(hits)) for ratio, hits in planted.items()}
    return {
        "recall": float(np.mean(recalls)),
        "precision": float(np.mean(precisions)) if precisions else None,
        **mean,
    }


def run_ours(lake: SyntheticLake) -> tuple[dict[str, Any], Ensemble]:
    """Build, and tell what it takes."""
    begin = time.perf_counter()
    index = Ensemble.build(lake.tokens, lake.offsets, EnsembleOptions())
    result = {"build_seconds": time.perf_counter() - begin}
    tables, tokens = index.tables, index.tokens
    result["signature_and_table_bytes"] = index.signatures.nbytes + tables.values.nbytes + tables.sets.nbytes
    result["token_bytes"] = tokens[0].nbytes + tokens[1].nbytes
    result["posting_bytes"] = index.postings.halves.nbytes + index.postings.sets.nbytes
    return result, index


def search_ours(
    index: Ensemble, lake: SyntheticLake, truth: list[tuple[np.ndarray, np.ndarray]], threshold: float
) -> dict[str, Any]:
    """Search with verification, each query once before the clock; precision is given of the candidates too."""
    answers, seconds, candidates = [], [], 0
    for query in lake.queries:
        index.search(query, threshold)
        begin = time.perf_counter()
        found = index.search(query, threshold)
        seconds.append(time.perf_counter() - begin)
        answers.append(set(found.sets.tolist()))
        candidates += found.n_candidates
    found = sum(len(answer) for answer in answers)
    return {
        **_times(seconds),
        **scores(answers, truth, threshold),
        "precision_of_candidates": found / max(candidates, 1),
    }


def run_datasketch(
    lake: SyntheticLake,
    truth: list[tuple[np.ndarray, np.ndarray]],
    thresholds: Sequence[float],
    permutations: int,
    partitions: int,
) -> dict[str, Any]:
    """Build and search an index for each threshold, each query once before the clock. Raises ImportError where datasketch is not installed."""
    from datasketch import MinHash, MinHashLSHEnsemble

    def signed(tokens: np.ndarray) -> Any:
        made = empty.copy()
        made.update_batch((tokens & np.uint64(0xFFFFFFFF)).tolist())
        return made

    empty = MinHash(num_perm=permutations, hashfunc=int)
    begin, held = time.perf_counter(), _held_bytes()
    entries = []
    for number in range(len(lake.offsets) - 1):
        tokens = lake.tokens[lake.offsets[number] : lake.offsets[number + 1]]
        entries.append((number, signed(tokens), len(tokens)))
    result: dict[str, Any] = {"signature_seconds": time.perf_counter() - begin, "signature_bytes": _held_bytes() - held}
    for threshold in thresholds:
        begin, held = time.perf_counter(), _held_bytes()
        index = MinHashLSHEnsemble(threshold=threshold, num_perm=permutations, num_part=partitions)
        index.index(entries)
        one = {"index_seconds": time.perf_counter() - begin, "index_bytes": _held_bytes() - held}
        answers, seconds = [], []
        for query in lake.queries:
            set(index.query(signed(query), len(query)))
            begin = time.perf_counter()
            answers.append(set(index.query(signed(query), len(query))))
            seconds.append(time.perf_counter() - begin)
        result[f"{threshold}"] = {**one, **_times(seconds), **scores(answers, truth, threshold)}
        del index
        gc.collect()
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw a lake, measure both sides, print JSON; give the exit status."""
    asked = _parser().parse_args(arguments)
    torch.set_num_threads(1)
    small = SyntheticLake(1000, 4, asked.seed)
    run_ours(small)[1].search(small.queries[0], 0.5)  # loops are compiled, or loaded, before the clock
    lake = SyntheticLake(asked.sets, asked.queries, asked.seed)
    result: dict[str, Any] = {
        "machine": describe_machine(torch.device("cpu")),
        "sets": asked.sets,
        "tokens": len(lake.tokens),
        "queries": asked.queries,
    }
    ours, index = run_ours(lake)
    truth = truths(index, lake.queries)
    for threshold in THRESHOLDS:
        ours[f"{threshold}"] = search_ours(index, lake, truth, threshold)
        _say("pexeso", threshold, ours[f"{threshold}"])
    result["pexeso"] = ours
    print(f"pexeso: built in {ours['build_seconds']:.1f} s", file=sys.stderr, flush=True)
    del index
    try:
        theirs = run_datasketch(lake, truth, asked.thresholds, asked.permutations, asked.partitions)
    except ImportError:
        print(
            "datasketch is left out: it is not installed (pip install datasketch==2.0.0).", file=sys.stderr, flush=True
        )
    else:
        result["datasketch"] = {"permutations": asked.permutations, "partitions": asked.partitions, **theirs}
        print(f"datasketch: signed in {theirs['signature_seconds']:.1f} s", file=sys.stderr, flush=True)
        for threshold in asked.thresholds:
            _say("datasketch", threshold, theirs[f"{threshold}"])
    print(json.dumps(result, indent=1), flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.containment", description=__doc__.splitlines()[0])
    made.add_argument("--sets", type=int, default=10_000, help="sets of the lake (default 10000)")
    made.add_argument(
        "--queries", type=int, default=100, help="queries, half of them with planted supersets (default 100)"
    )
    made.add_argument("--seed", type=int, default=0)
    made.add_argument(
        "--thresholds", type=_numbers, default=THRESHOLDS, help="those of datasketch, with commas between"
    )
    made.add_argument("--permutations", type=int, default=128, help="of datasketch (its default: 128)")
    made.add_argument("--partitions", type=int, default=16, help="of datasketch (its default: 16)")
    return made


def _numbers(text: str) -> list[float]:
    return [float(one) for one in text.split(",")]


def _times(seconds: list[float]) -> dict[str, float]:
    return {"median_seconds": float(np.median(seconds)), "p90_seconds": float(np.quantile(seconds, 0.9))}


def _held_bytes() -> int:
    gc.collect()
    return psutil.Process().memory_info().rss


def _say(name: str, threshold: float, one: dict[str, Any]) -> None:
    numbers = ", ".join(f"{key} {value:.4g}" for key, value in one.items() if value is not None)
    print(f"{name} {threshold}: {numbers}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
