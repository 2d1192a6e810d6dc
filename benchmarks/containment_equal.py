"""At which lower threshold MinHashLSHEnsemble of datasketch finds a share of the answers, told by arrays before any of its indexes is built.

Its own choice of bands and rows misses answers, and two searches are only compared where they find as much. So it is asked for a lower threshold than is
meant, which finds more of the answers and more of what is none. Whether it finds a set depends on nothing but both signatures, the sizes and its settings; so
the recall at any threshold, with any number of functions, takes the signatures of the answers alone, and no index of gigabytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.containment_sets import ContainmentLake, scores
from benchmarks.containment_ways import signed_by_arrays


def upper_sizes(lake: ContainmentLake, partitions: int) -> np.ndarray:
    """Give the largest size of each of datasketch's partitions: int64, ascending. They do not depend on the threshold.

    Its dynamic programming takes Python steps in proportion to the square of the number of distinct sizes, a minute for 3,000.
    """
    from datasketch.lshensemble_partition import optimal_partitions

    sizes, counts = np.unique(np.diff(lake.offsets), return_counts=True)
    filled = sizes > 0
    return np.array([upper for _, upper in optimal_partitions(sizes[filled], counts[filled], partitions)], np.int64)


def foreseen_recalls(
    lake: ContainmentLake,
    truth: list[np.ndarray],
    uppers: np.ndarray,
    settings: tuple[int, int],
    thresholds: Sequence[float],
) -> dict[float, float]:
    """Tell the recall that datasketch has of the right answers, at each of its thresholds.

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
    signed = signed_by_arrays(empty, _lake_of([lake.tokens[lake.offsets[n] : lake.offsets[n + 1]] for n in rows]))
    asked = signed_by_arrays(empty, _lake_of(lake.queries))
    sizes = np.diff(lake.offsets)
    result = {}
    for threshold in thresholds:
        chooser = MinHashLSHEnsemble(threshold, num_perm=settings[0], num_part=1, m=settings[1])
        answers = []
        for query, values, right in zip(lake.queries, asked, truth, strict=True):
            upper = uppers[np.searchsorted(uppers, sizes[right])]
            found = np.zeros(len(right), bool)
            for one in np.unique(upper):
                bands, depth = chooser._get_optimal_param(one, len(query))
                part = signed[np.searchsorted(rows, right[upper == one]), : bands * depth]
                equal = part == values[: bands * depth]
                found[upper == one] = equal.reshape(-1, bands, depth).all(2).any(1)
            answers.append(right[found])
        recall = scores(lake, answers, truth)["recall"]
        result[threshold] = 1.0 if recall is None else recall
    return result


def lowered(recalls: dict[float, float], least: float) -> float:
    """Choose the highest threshold with a recall that is enough, or the highest of those with the most; they must not be empty."""
    enough = [threshold for threshold, recall in recalls.items() if recall >= least]
    return max(enough) if enough else max(recalls, key=lambda threshold: (recalls[threshold], threshold))


def _lake_of(sets: Sequence[np.ndarray]) -> ContainmentLake:
    ends = np.cumsum([len(one) for one in sets], dtype=np.int64)
    tokens = np.concatenate(sets) if len(sets) else np.empty(0, np.uint64)
    return ContainmentLake(tokens, np.concatenate([[0], ends]).astype(np.int64), [], [])
