"""What every embedder promises, whatever model is behind it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from pexeso.errors import EmbedderError

Values = pa.Array | pa.ChunkedArray | Sequence[str | None]
"""What may be embedded: an Arrow string array, or any sequence of strings and None."""


@runtime_checkable
class Embedder(Protocol):
    """A fixed function from values to unit vectors.

    Attributes
    ----------
    kind : str
        The sort of model: ``"lexical"``, ``"hashing"``, ``"fasttext"``, ``"fasttext-mean"`` (whose
        values are the mean of their words), ``"glove"`` or ``"sentence"``.
    dimensions : int
        Length of every vector.
    fingerprint : str
        Hexadecimal digest of everything that decides a vector: kind, options and arrays. Two
        embedders with the same fingerprint give the same vectors; one changed byte of a model gives
        another fingerprint.
    """

    @property
    def kind(self) -> str:
        """The sort of model."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""

    @property
    def fingerprint(self) -> str:
        """Digest of everything that decides a vector."""

    def embed(self, values: Values) -> np.ndarray:
        """Embed values, each on its own.

        Parameters
        ----------
        values : pyarrow string array of length n, or sequence of n strings
            Already normalised values. Null, empty and unknown values are allowed.

        Returns
        -------
        numpy.ndarray of shape (n, dimensions), float32
            Row i belongs to value i: a unit vector, or all zeros where nothing is known about the
            value. A row depends on its value and the model alone, not on the other values of the
            call.
        """

    def save(self, folder: str | Path) -> None:
        """Write the model as plain files into a folder that is new or empty.

        :func:`embed.load_embedder` reads it.

        Raises
        ------
        pexeso.errors.OutputError
            If the folder is not empty or cannot be written.
        """


_LENGTH_ERROR = 1e-3
_SHOWN_CHARACTERS = 60


def require_unit_or_zero(values: pa.Array, vectors: np.ndarray) -> None:
    """Refuse vectors with NaN or infinite entries, and those neither zero nor of length 1."""
    # In float64 no square of a float32 number vanishes or overflows.
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    # Written so that NaN, which compares false with everything, is refused.
    wrong = np.flatnonzero(~((np.abs(lengths - 1.0) <= _LENGTH_ERROR) | (lengths == 0)))
    if not len(wrong):
        return
    value, length = values[int(wrong[0])].as_py(), lengths[wrong[0]]
    if value is not None and len(value) > _SHOWN_CHARACTERS:
        value = value[: _SHOWN_CHARACTERS - 1] + "…"
    reason = (
        f"of length {length:g}, neither 0 nor 1" if np.isfinite(length) else "that is not finite"
    )
    raise EmbedderError(
        f"The model gave the value {value!r} a vector {reason} ({len(wrong):,} of "
        f"{len(values):,} values have such): use another model, or restore its files."
    )
