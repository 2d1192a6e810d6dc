"""A query column on the host, for a search on another device."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from pexeso.engine.interface import Query
from pexeso.engine.layout.maps import MAX_DIMENSIONS
from pexeso.engine.layout.unit_vectors import check_vectors

if TYPE_CHECKING:
    from pexeso.engine.layout.partition import Partition


SURELY_UNIT = 2.0**-11
"""Of a squared length summed in float32, which is off by ``2**-10`` at most: the length is then off
by less than three quarters of what the check allows."""


class UnmappedQuery(Query):
    """The values of a query column, which go to a partition's device when they are asked for.

    A kernel that maps values by itself takes them from the host, all in one copy: bringing them
    over and mapping them by tensor operations takes longer than all the rest of a small search. It
    also checks that they have unit length; whatever else looks at them asks for `real` before.

    Parameters
    ----------
    vectors : float32 array (n, d)
        Of unit length.
    weights : int64 array (n,)
        At least 1.

    Attributes
    ----------
    on_host : vectors and weights
        As given: a step on a small array takes a fifth of the time that it takes on a tensor.
    """

    def __init__(
        self, partition: Partition, vectors: np.ndarray, weights: np.ndarray, total: int
    ) -> None:
        # Set as one sets what is frozen.
        self.__dict__.update(on_host=(vectors, weights), total=total, _partition=partition)

    def real(self) -> UnmappedQuery:
        """Leave out zero vectors and values that never occur."""
        vectors, weights = self.on_host
        rows = real_rows(vectors, weights)
        if len(rows) == len(vectors):
            return self
        return UnmappedQuery(self._partition, vectors[rows], weights[rows], self.total)

    def __len__(self) -> int:
        return len(self.on_host[1])

    @cached_property
    def vectors(self) -> torch.Tensor:
        """The vectors, on the partition's device."""
        return torch.from_numpy(self.on_host[0]).to(self._partition.device)

    @cached_property
    def weights(self) -> torch.Tensor:
        """The weights, on the partition's device."""
        return torch.from_numpy(self.on_host[1]).to(self._partition.device)

    @cached_property
    def mapped(self) -> torch.Tensor:
        """The mapped vectors, on the partition's device."""
        return self._partition.map.map(self.vectors)


def real_rows(vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return which values can match something, int64; refuse vectors that are not of unit length.

    A full check is done only where something may be wrong or zero: of a few values its steps take
    longer than all that they compute.
    """
    if vectors.ndim == 2 and vectors.dtype == np.float32 and vectors.shape[1] <= MAX_DIMENSIONS:
        squares = np.einsum("ij,ij->i", vectors, vectors)
        if (np.abs(squares - 1.0) < SURELY_UNIT).all() and (weights > 0).all():
            return np.arange(len(vectors))
    real = check_vectors(vectors).numpy()
    return real[weights[real] > 0]
