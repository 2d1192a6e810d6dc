"""A query column on the host, for a search on another device."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from pexeso.engine.interface import Query

if TYPE_CHECKING:
    from pexeso.engine.layout.partition import Partition


class UnmappedQuery(Query):
    """The values of a query column, which go to a partition's device when they are asked for.

    A kernel that maps values by itself takes them from the host, all in one copy: bringing them
    over and mapping them by tensor operations takes longer than all the rest of a small search.

    Parameters
    ----------
    vectors : float32 array (n, d)
        Of unit length.
    weights : int64 array (n,)
        At least 1.
    total : int
        |Q|.

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
