"""Checks of vectors together with their values, so that an error can name the value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pexeso.errors import EmbedderError

_LENGTH_ERROR = 1e-3
_SHOWN_CHARACTERS = 60


def require_unit_or_zero(values: pa.Array, vectors: np.ndarray) -> None:
    """Refuse vectors with NaN or infinite entries, and those that are neither zero nor of length 1.

    Parameters
    ----------
    values : pyarrow string array of length n
    vectors : numpy.ndarray of shape (n, dimensions), float32
        What a model gave for them.
    """
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
