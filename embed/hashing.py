"""An embedder without training: each character n-gram has a random vector of its own, fixed by a seed.

Two words are as close as the share of n-grams they have in common; meaning plays no part. It is deterministic, needs no
corpus and tells misspellings from other words about as well as a model trained on a small lake does.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from embed.subword import SubwordEmbedder
from pexeso.errors import InputError

MIN_N, MAX_N = 2, 4
BUCKETS = 1 << 17


def create(
    dimensions: int = 100, *, seed: int = 0, min_n: int = MIN_N, max_n: int = MAX_N, buckets: int = BUCKETS
) -> SubwordEmbedder:
    """Make the untrained n-gram embedder.

    Parameters
    ----------
    dimensions : int
        Length of the vectors, at least 1. More dimensions bring the random vectors closer to being orthogonal.
    seed : int
        Seed of the table, at least 0. The same seed gives the same bytes on every machine.
    min_n, max_n : int
        Shortest and longest n-gram in characters, the brackets around the word included; 1 <= min_n <= max_n.
    buckets : int
        Rows of the table, at least 1. N-grams that fall into one bucket share a vector.

    Returns
    -------
    SubwordEmbedder
        Of kind ``"hashing"``.

    Raises
    ------
    pexeso.errors.InputError
        If a number is out of its range.

    Examples
    --------
    >>> vectors = create().embed(["reykjavik", "reykjavic", "nairobi"])
    >>> bool(vectors[0] @ vectors[1] > 0.5), bool(vectors[0] @ vectors[2] < 0.3)
    (True, True)
    """
    for name, number, least in (("dimensions", dimensions, 1), ("buckets", buckets, 1), ("seed", seed, 0)):
        if not isinstance(number, int) or number < least:
            raise InputError(
                f"The {name} of a hashing embedder must be a whole number of at least {least}; got {number!r}."
            )
    if not 1 <= min_n <= max_n:
        raise InputError(f"N-gram lengths must satisfy 1 <= min_n <= max_n; got {min_n} and {max_n}.")
    # Philox is defined by its paper bit for bit, and uniform float32 numbers take no library function of the machine.
    generator = np.random.Generator(np.random.Philox(seed))
    rows = generator.random((buckets, dimensions), np.float32) * np.float32(2) - np.float32(1)
    return SubwordEmbedder(
        "hashing",
        rows,
        pa.array([], pa.large_string()),
        np.zeros(dimensions, np.float32),
        min_n=min_n,
        max_n=max_n,
        notes={"seed": seed, "buckets": buckets},
    )
