"""The lower threshold at which MinHashLSHEnsemble of datasketch finds a share of the answers.

It is computed from arrays before any of its indexes is built.

Its own choice of bands and rows misses answers, and two searches are only compared where they find
as much. So it is asked for a lower threshold than is meant, which finds more of the answers and
more of what is none. Whether it finds a set depends on nothing but both signatures, the sizes and
its settings; so the recall at any threshold, with any number of functions, takes the signatures of
the answers alone, and no index of gigabytes.

Where such an index does not fit, one with only the buckets that the queries ask for gives the same
answers, sooner if anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.containment_sets import ContainmentLake, scores
from benchmarks.containment_ways import Way, asking, signed_by_arrays, signed_by_itself
from pexeso.runtime.jit import loop

_ROWS = 1 << 14


def upper_sizes(lake: ContainmentLake, partitions: int) -> np.ndarray:
    """Return the largest size of each of datasketch's partitions: int64, ascending.

    They do not depend on the threshold.

    Its dynamic programming takes Python steps in proportion to the square of the number of distinct
    sizes, a minute for 3,000.
    """
    from datasketch.lshensemble_partition import optimal_partitions

    sizes, counts = np.unique(np.diff(lake.offsets), return_counts=True)
    filled = sizes > 0
    return np.array(
        [upper for _, upper in optimal_partitions(sizes[filled], counts[filled], partitions)],
        np.int64,
    )


def foreseen_recalls(
    lake: ContainmentLake,
    truth: list[np.ndarray],
    uppers: np.ndarray,
    settings: tuple[int, int],
    thresholds: Sequence[float],
) -> dict[float, float]:
    """Return the recall that datasketch has of the right answers, at each of its thresholds.

    Parameters
    ----------
    lake : ContainmentLake
    truth : list of int arrays
        The right answers of each query, at the threshold that is meant.
    uppers : int64 array
        Of `upper_sizes`.
    settings : (int, int)
        Its ``num_perm`` and ``m``.
    thresholds : sequence of float
        Its own, in 0..1.

    Returns
    -------
    dict[float, float]
        Means over the queries that have an answer; 1 where none has.
    """
    from datasketch import MinHash, MinHashLSHEnsemble

    empty = MinHash(num_perm=settings[0], hashfunc=int)
    rows = np.unique(np.concatenate(truth)).astype(np.int64)
    signed = signed_by_arrays(
        empty, _lake_of([lake.tokens[lake.offsets[n] : lake.offsets[n + 1]] for n in rows])
    )
    signatures = signed_by_arrays(empty, _lake_of(lake.queries))
    sizes = np.diff(lake.offsets)
    result = {}
    for threshold in thresholds:
        chooser = MinHashLSHEnsemble(threshold, num_perm=settings[0], num_part=1, m=settings[1])
        answers = []
        for query, values, right in zip(lake.queries, signatures, truth, strict=True):
            upper = uppers[np.searchsorted(uppers, sizes[right])]
            hits = np.zeros(len(right), bool)
            for one in np.unique(upper):
                bands, depth = chooser._get_optimal_param(one, len(query))
                part = signed[np.searchsorted(rows, right[upper == one]), : bands * depth]
                equal = part == values[: bands * depth]
                hits[upper == one] = equal.reshape(-1, bands, depth).all(2).any(1)
            answers.append(right[hits])
        recall = scores(lake, answers, truth)["recall"]
        result[threshold] = 1.0 if recall is None else recall
    return result


class ThinDatasketch:
    """MinHashLSHEnsemble of datasketch with only the buckets that the queries of a lake use.

    Every bucket that is there is whole, so the answers are those of the whole index, by the same
    steps. No query is slower for it: its dictionaries are smaller. What a build takes is not told
    by this. Memory: signatures of `_ROWS` sets at a time, and some 80 bytes for each set in a
    bucket.

    Parameters
    ----------
    lake : ContainmentLake
    permutations, partitions, depth : int
        Its ``num_perm``, ``num_part`` and ``m``.

    Raises
    ------
    ImportError
        datasketch is not installed.
    """

    def __init__(
        self, lake: ContainmentLake, permutations: int, partitions: int, depth: int
    ) -> None:
        from datasketch import MinHash

        self.facts = {"num_perm": permutations, "num_part": partitions, "m": depth, "thin": True}
        self._lake, self._depth, self._empty = (
            lake,
            depth,
            MinHash(num_perm=permutations, hashfunc=int),
        )
        self._uppers = upper_sizes(lake, partitions)

    def built(self, threshold: float) -> tuple[Way, dict[str, float]]:
        """Fill the buckets for a threshold; gives the way to ask, and no facts."""
        from datasketch import MinHashLSHEnsemble

        lake, uppers, functions = self._lake, self._uppers, len(self._empty)
        index = MinHashLSHEnsemble(
            threshold, num_perm=functions, num_part=len(uppers), m=self._depth
        )
        index.uppers = uppers.tolist()
        signatures = [signed_by_itself(self._empty, query).hashvalues for query in lake.queries]
        sizes = np.diff(lake.offsets)
        partitions = np.where(sizes > 0, np.searchsorted(uppers, sizes), -1)
        factors, summands = (np.asarray(one, np.uint32) for one in self._empty.permutations)
        for part, upper in enumerate(index.uppers):
            members = np.flatnonzero(partitions == part)
            for first in range(0, len(members), _ROWS):
                rows = members[first : first + _ROWS]
                signed = np.full((len(rows), functions), 0xFFFFFFFF, np.uint32)
                _sign(signed, lake.tokens, lake.offsets, rows, factors, summands)
                for query, values in zip(lake.queries, signatures, strict=True):
                    bands, depth = (int(one) for one in index._get_optimal_param(upper, len(query)))
                    _fill(index.indexes[part][depth], rows, signed, values, bands, depth)
        return asking(index, self._empty, lake), {}


def _fill(
    tables: Any, rows: np.ndarray, signed: np.ndarray, values: np.ndarray, bands: int, depth: int
) -> None:
    """Put sets into the buckets that a query asks for."""
    equal = signed[:, : bands * depth] == values[: bands * depth].astype(np.uint32)
    if depth > 1:
        equal = equal.reshape(-1, bands, depth).all(2)
    if not equal.any():
        return
    at, band = np.divmod(np.flatnonzero(equal), bands)
    order = np.argsort(band, kind="stable")
    numbers, starts = np.unique(band[order], return_index=True)
    for number, sets in zip(numbers.tolist(), np.split(rows[at[order]], starts[1:]), strict=True):
        bucket = tables._H(values[number * depth : (number + 1) * depth])
        tables.hashtables[number].insert(bucket, *sets.tolist())


@loop
def _sign(signatures, tokens, offsets, rows, factors, summands):  # type: ignore[no-untyped-def]
    """Lower signatures by the tokens of some rows; the same as `signed_by_arrays`, set by set."""
    for position in range(len(rows)):
        one = signatures[position]
        for at in range(offsets[rows[position]], offsets[rows[position] + 1]):
            mixed = np.uint32(tokens[at])
            mixed = np.uint32((mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B))
            mixed = np.uint32((mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35))
            mixed = np.uint32(mixed ^ (mixed >> np.uint32(16)))
            for number in range(len(factors)):
                value = np.uint32(mixed * factors[number] + summands[number])
                one[number] = min(one[number], value)


def lowered(recalls: dict[float, float], min_recall: float) -> float:
    """Choose the highest threshold with enough recall, or else the best one.

    Without enough recall it is the highest of the thresholds with the most recall. `recalls` must
    not be empty.
    """
    enough = [threshold for threshold, recall in recalls.items() if recall >= min_recall]
    return (
        max(enough)
        if enough
        else max(recalls, key=lambda threshold: (recalls[threshold], threshold))
    )


def _lake_of(sets: Sequence[np.ndarray]) -> ContainmentLake:
    ends = np.cumsum([len(one) for one in sets], dtype=np.int64)
    tokens = np.concatenate(sets) if len(sets) else np.empty(0, np.uint64)
    return ContainmentLake(tokens, np.concatenate([[0], ends]).astype(np.int64), [], [])
