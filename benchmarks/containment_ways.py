"""The ways that the benchmark of containment search measures beside each other."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import psutil

from benchmarks.containment_sets import ContainmentLake
from pexeso.sets.containment.ensemble import Ensemble

Way = Callable[[int, float], tuple[np.ndarray, int]]
"""Takes the number of a query and a threshold; gives the ids found and a count.

The count says how many candidates were looked at for them.
"""


def way_of(index: Ensemble, lake: ContainmentLake, route: str, *, verify: bool = True) -> Way:
    """Search an index by a route."""

    def ask(number: int, threshold: float) -> tuple[np.ndarray, int]:
        excluded = [] if lake.own[number] < 0 else [lake.own[number]]
        answer = index.search(
            lake.queries[number], threshold, route=route, exclude=excluded, verify=verify
        )
        return answer.sets, answer.n_candidates

    return ask


def index_bytes(index: Ensemble) -> dict[str, int]:
    """Return what an index takes."""
    tables = index.tables
    signed = index.signatures.nbytes + tables.values.nbytes + tables.sets.nbytes
    return {"signatures_and_tables": signed, "lists": index.lists.n_bytes}


class Datasketch:
    """MinHashLSHEnsemble of datasketch over hashed tokens.

    Its signatures are made once, and an index for each threshold.
    """

    def __init__(
        self, lake: ContainmentLake, permutations: int, partitions: int, depth: int
    ) -> None:
        from datasketch import LeanMinHash, MinHash

        self._lake, self._settings = (
            lake,
            {"num_perm": permutations, "num_part": partitions, "m": depth},
        )
        self._empty = MinHash(num_perm=permutations, hashfunc=int)
        ends = list(zip(lake.offsets[:-1].tolist(), lake.offsets[1:].tolist(), strict=True))
        filled = [number for number, (first, end) in enumerate(ends) if end > first]
        begin, held = time.perf_counter(), _held_bytes()
        gc.disable()  # a collection looks at every object of a large index again, and finds nothing
        minhashes = [
            LeanMinHash(signed_by_itself(self._empty, lake.tokens[slice(*ends[number])]))
            for number in filled
        ]
        self._entries = [
            (number, one, ends[number][1] - ends[number][0])
            for number, one in zip(filled, minhashes, strict=True)
        ]
        gc.enable()
        self.facts = {
            **self._settings,
            "signature_seconds": time.perf_counter() - begin,
            "signature_bytes": _held_bytes() - held,
        }

    def built(self, threshold: float) -> tuple[Way, dict[str, float]]:
        """Index for a threshold, and tell what that takes."""
        from datasketch import MinHashLSHEnsemble

        begin, held = time.perf_counter(), _held_bytes()
        gc.disable()
        index = MinHashLSHEnsemble(threshold=threshold, **self._settings)
        index.index(self._entries)
        gc.enable()
        facts = {"index_seconds": time.perf_counter() - begin, "index_bytes": _held_bytes() - held}

        return asking(index, self._empty, self._lake), facts


def asking(index: Any, empty: Any, lake: ContainmentLake) -> Way:
    """Ask a MinHashLSHEnsemble, at the threshold that it was made for."""

    def ask(number: int, _: float) -> tuple[np.ndarray, int]:
        query = lake.queries[number]
        ids = np.array(list(set(index.query(signed_by_itself(empty, query), len(query)))), np.int64)
        return ids[ids != lake.own[number]], len(ids)

    return ask


def signed_by_itself(empty: Any, tokens: np.ndarray) -> Any:
    """Sign tokens with datasketch's MinHash, like an empty one."""
    signature = empty.copy()
    signature.update_batch((tokens & np.uint64(0xFFFFFFFF)).tolist())
    return signature


def signed_by_arrays(empty: Any, lake: ContainmentLake) -> np.ndarray:
    """Return the hash values of datasketch's MinHash for all sets, uint32 (n, m).

    The sets must not be empty. The values follow its 32-bit scheme.

    A token's lower half goes through the finaliser of MurmurHash3, then through ``a * h + b`` for
    each function.
    """
    mixed = lake.tokens.astype(np.uint32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        mixed ^= mixed >> np.uint32(shift)
        mixed *= np.uint32(factor)
    values = np.empty((len(lake), len(empty.permutations[0])), np.uint32)
    if not len(lake):
        return values
    for column, (factor, summand) in enumerate(zip(*empty.permutations, strict=True)):
        values[:, column] = np.minimum.reduceat(mixed * factor + summand, lake.offsets[:-1])
    return values


def measure(
    ways: dict[str, Way], lake: ContainmentLake, threshold: float, slow: Sequence[str] = ()
) -> dict[str, dict]:
    """Run each query in all ways in turn; return answers, candidates and seconds of each way.

    Each way except those in `slow` runs once before it is timed.

    Whose turn is first goes round, since the first one after a slow way finds the processor's
    caches full of other things.
    """
    results = {name: {"answers": [], "candidates": 0, "seconds": []} for name in ways}
    turns = list(ways.items())
    for number in range(len(lake.queries)):
        turns = turns[1:] + turns[:1]
        for name, ask in turns:
            if name not in slow:
                ask(number, threshold)
            begin = time.perf_counter()
            answer, n_candidates = ask(number, threshold)
            results[name]["seconds"].append(time.perf_counter() - begin)
            results[name]["answers"].append(answer)
            results[name]["candidates"] += n_candidates
    return results


def _held_bytes() -> int:
    gc.collect()
    return psutil.Process().memory_info().rss
