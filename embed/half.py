"""Vectors in half precision: rounded by the model itself, so that they are stored as float16.

Rounding belongs to the model, not to the file: a value of the lake and one of a query get the same
vector, equal texts are at distance 0, and every search, every oracle and every estimate sees the
numbers that are stored. So nothing depends on where or when vectors were rounded.

What rounding changes, at most: an entry ``x`` is moved by ``2**-11 |x|``, or by ``2**-25`` where it
is small, so a vector of length L by ``2**-11 L + sqrt(d) 2**-25``, and by the triangle inequality a
distance of two vectors by twice that: for unit vectors of up to 4,096 dimensions, by less than
0.0005 of the largest distance there is, 2 (under the angular metric, which compares chords, this is
said of the chord). The Manhattan distance has the same bound, as ``|v|_1 <= sqrt(d)
|v|_2`` and the largest distance is ``2 sqrt(d)``. Only a pair that is no farther than this from
`max_distance` can match with one precision and not with the other.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np

from embed import stored
from embed.protocol import Embedder, Values
from pexeso.errors import InputError

HALF, SINGLE = PRECISIONS = ("half", "single")
"""Of vectors: entries of 16 or of 32 bits."""

ENTRY_BYTES = {HALF: 2, SINGLE: 4}


class HalfPrecision:
    """An embedder whose vectors have entries that float16 holds."""

    precision = HALF

    def __init__(self, whole: Embedder) -> None:
        self.whole = whole

    @property
    def kind(self) -> str:
        """The sort of model: that of `whole`."""
        return self.whole.kind

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self.whole.dimensions

    @cached_property
    def fingerprint(self) -> str:
        """Digest of everything that decides a vector: `whole`, and that it is rounded."""
        return blake2b(f"{HALF} {self.whole.fingerprint}".encode(), digest_size=32).hexdigest()

    def embed(self, values: Values) -> np.ndarray:
        """Embed values as `whole` does, and round each entry to float16.

        Returns
        -------
        numpy.ndarray of shape (n, dimensions), float32
            Of length 1 to within ``2**-10.9``, or zeros.
        """
        return in_half(self.whole.embed(values))

    def save(self, folder: str | Path) -> None:
        """Write the model; `embed.load_embedder` gives it back with its precision."""
        self.whole.save(folder)
        stored.set_precision(Path(folder), HALF)


def in_half(vectors: np.ndarray) -> np.ndarray:
    """Round each entry to the nearest float16 number, a tie to the even one; float32.

    Examples
    --------
    >>> in_half(np.array([[0.1, 0.5]], np.float32)).tolist()
    [[0.0999755859375, 0.5]]
    """
    with np.errstate(over="ignore"):  # what is infinite then is refused where vectors are checked
        return vectors.astype(np.float16).astype(np.float32)


def with_precision(embedder: Embedder, precision: str) -> Embedder:
    """Return an embedder that gives vectors of a precision.

    One without vectors of its own (``"lexical"``), and one that rounds already, stays as it is.
    """
    check_precision(precision)
    is_dense = embedder.kind != "lexical" and not isinstance(embedder, HalfPrecision)
    return HalfPrecision(embedder) if precision == HALF and is_dense else embedder


def check_precision(precision: object) -> None:
    """Refuse what is not one of `PRECISIONS`."""
    if precision not in PRECISIONS:
        raise InputError(
            f"vector_precision must be one of {', '.join(PRECISIONS)}. Got {precision!r} instead."
        )
