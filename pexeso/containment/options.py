"""What an index for containment search is built with."""

from __future__ import annotations

from dataclasses import dataclass

from pexeso.containment.minhash import MAX_PERMUTATIONS
from pexeso.errors import InputError

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
        How many partitions there are, n: at least 1; fewer where there are not so many sizes. One is plain MinHash LSH.
    partitioning : str
        "optimal": the least false positives; "equal": about as many sets in each.
    seed : int
        Of the hash functions, 0 to 2**63 - 1.
    tables : bool
        Whether to make tables for look-ups. Without them an index takes a third of the room, and a search reads every signature.
    keep_tokens : bool
        Whether to make posting lists of hashed tokens, the exact way to search, where no other lists are given.

    Raises
    ------
    InputError
        A value is not one of those allowed.
    """

    permutations: int = 256
    max_rows: int = 8
    partitions: int = 32
    partitioning: str = "optimal"
    seed: int = 1
    tables: bool = True
    keep_tokens: bool = True

    def __post_init__(self) -> None:
        for name, least, most in (
            ("permutations", 1, MAX_PERMUTATIONS),
            ("max_rows", 1, MAX_ROWS),
            ("partitions", 1, 1 << 20),
            ("seed", 0, (1 << 63) - 1),
        ):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise InputError(
                    f"The option '{name}' must be a whole number from {least:,} to {most:,}. Got {value!r}."
                )
        if self.partitioning not in PARTITIONINGS:
            raise InputError(
                f"The option 'partitioning' must be one of {', '.join(PARTITIONINGS)}. Got {self.partitioning!r}."
            )
        for name in ("tables", "keep_tokens"):
            if type(getattr(self, name)) is not bool:
                raise InputError(f"The option '{name}' must be True or False. Got {getattr(self, name)!r}.")
