"""Checks that vectors have unit length, or length zero."""

from __future__ import annotations

import numpy as np
import torch

from pexeso.engine.layout.maps import MAX_DIMENSIONS
from pexeso.errors import InputError

_LENGTH_ERROR = 1e-3


def check_vectors(vectors: np.ndarray) -> torch.Tensor:
    """Raise if a vector is not finite or not of unit length; return the nonzero ones, int64.

    The nonzero vectors are returned by number. Zero vectors are allowed.
    """
    if vectors.ndim != 2 or vectors.dtype != np.float32:
        raise InputError(
            f"Vectors must be a float32 array of two axes. Got {vectors.dtype} of shape "
            f"{vectors.shape} instead."
        )
    if vectors.shape[1] > MAX_DIMENSIONS:
        raise InputError(
            f"Vectors must have at most {MAX_DIMENSIONS:,} dimensions. Got {vectors.shape[1]:,} "
            "instead."
        )
    # In float64 no square of a float32 number vanishes or overflows, so that only zero vectors have
    # length 0.
    lengths = torch.from_numpy(np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64)))
    _refuse_lengths(lengths)
    return torch.nonzero(lengths)[:, 0]


def check_tensors(vectors: torch.Tensor) -> torch.Tensor:
    """Do as `check_vectors` where the vectors are, on any device."""
    _refuse_shape(vectors)
    lengths = torch.cat([_lengths(part) for part in torch.split(vectors, _rows_at_once(vectors))])
    _refuse_lengths(lengths)
    return torch.nonzero(lengths)[:, 0]


def _refuse_shape(vectors: torch.Tensor) -> None:
    if vectors.dim() != 2 or vectors.dtype != torch.float32 or vectors.shape[1] > MAX_DIMENSIONS:
        raise InputError(
            f"Vectors must be a float32 tensor of two axes, of at most {MAX_DIMENSIONS:,} "
            "dimensions. "
            f"Got {vectors.dtype} of shape {tuple(vectors.shape)} instead."
        )


def _refuse_lengths(lengths: torch.Tensor) -> None:
    """Refuse vectors that are neither zero nor of unit length."""
    wrong = ~((lengths - 1.0).abs() <= _LENGTH_ERROR) & (lengths != 0)
    if bool(wrong.any()):
        row = int(torch.nonzero(wrong)[0, 0])
        raise InputError(
            f"Vectors must be of unit length or zero. Got length {float(lengths[row])} at row "
            f"{row} "
            f"({int(wrong.sum())} of {len(lengths)} rows are wrong); "
            "divide each vector by its length, and leave out those with NaN or infinite entries."
        )


def _lengths(rows: torch.Tensor) -> torch.Tensor:
    # In float64 no square of a float32 number vanishes or overflows, so that only zero vectors have
    # length 0.
    return rows.double().square_().sum(1).sqrt_()


def _rows_at_once(vectors: torch.Tensor) -> int:
    """Rows of 128 MiB in float64."""
    return max(1, (1 << 24) // max(1, vectors.shape[1]))
