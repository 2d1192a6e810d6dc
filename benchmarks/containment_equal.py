"""The lower threshold at which MinHashLSHEnsemble of datasketch finds a share of the answers.

It is computed from arrays before any of its indexes is built.

Its own choice of bands and rows misses answers, and two searches are only compared where they find
as much. So it is asked for a lower threshold than is meant, which finds more of the answers and
more of what is none. Whether it finds a set depends on nothing but both signatures, the sizes and
its settings; so the recall at any threshold, with any number of functions, takes the signatures of
the answers alone, and no index of gigabytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.containment_sets import ContainmentLake, scores
from benchmarks.containment_ways import signed_by_arrays


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
    """Return the recall that datasketch has of the right answers, at each of its thresholds."""
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
