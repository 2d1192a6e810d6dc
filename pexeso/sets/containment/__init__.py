"""Containment search: the sets that hold at least a given share of a query's tokens.

This is LSH Ensemble (E. Zhu, "Search and Join Algorithms for Tables in Data Lakes", PhD thesis,
University of Toronto, 2019, chapter 2; first published at VLDB 2016), with equations as numbered in
the docstrings:

============  ======================================================================================
`hashing`     tokens as 64-bit numbers; MinHash signatures, and estimated similarity
`bands`       containment and Jaccard similarity (E3 to E5), the probability of a candidate (E1,
              E12); partitions with the least false positives (E8, E9); bands and rows for a
              threshold, so that a recall is kept; dynamic LSH: one index for every setting
`ensemble`    the index: build, search by lists, the exact way, or by bands, whichever is expected
              to be faster, verification, and its files
============  ======================================================================================

By bands the recall is a promise about chance: hash functions are drawn by the seed, once for an
index. By lists nothing is missed. The precision after verification is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pexeso.errors import InputError

FEW_SETS = 1 << 16  # Sets that 16 bits can name

# What says how the sets of a folder are searched for containment, and in which version.
DOCUMENT = "containment.json"

LISTS_ALONE = 3  # The version of a document beside which there are no bands

MAX_PERMUTATIONS, MAX_ROWS = 4096, 64


@dataclass(frozen=True)
class EnsembleOptions:
    """Options of a build."""

    permutations: int = 256  # Hash functions of a signature, m: 1 to 4096
    max_rows: int = 8  # The most rows of a band, 1 to 64
    # How many partitions there are, n: at least 1; fewer where there are not so many sizes. One is
    # plain MinHash LSH.
    partitions: int = 32
    seed: int = 1  # Of the hash functions, 0 to 2**63 - 1

    def __post_init__(self) -> None:
        for name, low, high in (
            ("permutations", 1, MAX_PERMUTATIONS),
            ("max_rows", 1, MAX_ROWS),
            ("partitions", 1, 1 << 20),
            ("seed", 0, (1 << 63) - 1),
        ):
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise InputError(
                    f"The option '{name}' must be a whole number from {low:,} to {high:,}. Got "
                    f"{value!r}."
                )


def tokens_needed(size: int, threshold: float) -> int:
    """Return the least number of tokens that a set must share with a query; at least 1."""
    # Rounded first: 0.55 * 100 is a little more than 55, which must not ask for 56.
    return max(1, math.ceil(threshold * size - 1e-9))
