"""What an index for containment search is built with."""

from __future__ import annotations

from dataclasses import dataclass

from pexeso.errors import InputError

FEW_SETS = 1 << 16
"""Sets that 16 bits can name."""

DOCUMENT = "containment.json"
"""What says how the sets of a folder are searched for containment, and in which version."""

LISTS_ALONE = 3
"""The version of a document beside which there are no bands."""

MAX_PERMUTATIONS = 4096
PARTITIONINGS = ("optimal", "equal")
MAX_ROWS = 64


@dataclass(frozen=True)
class EnsembleOptions:
    """Options of a build.

    Attributes
    ----------
    permutations : int
        Hash functions of a signature, m: 1 to 4096.
    max_rows : int
        The most rows of a band, 1 to 64.
    partitions : int
        How many partitions there are, n: at least 1; fewer where there are not so many sizes. One
        is plain MinHash LSH.
    partitioning : str
        "optimal": the least false positives; "equal": about as many sets in each.
    seed : int
        Of the hash functions, 0 to 2**63 - 1.
    """

    permutations: int = 256
    max_rows: int = 8
    partitions: int = 32
    partitioning: str = "optimal"
    seed: int = 1

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
        if self.partitioning not in PARTITIONINGS:
            raise InputError(
                f"The option 'partitioning' must be one of {', '.join(PARTITIONINGS)}. Got "
                f"{self.partitioning!r}."
            )
