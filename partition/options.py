"""What can be asked of the partitioner, checked where it is asked."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass

from partition.balance import Limits, fixed_limits, size_limits
from partition.clustering import METHODS, method_named
from partition.codebook import MAX_CODES
from pexeso.errors import InputError


@dataclass(frozen=True)
class PlanOptions:
    """How a lake's columns are to be divided into partitions.

    Attributes
    ----------
    dimensions : int
        Of the vectors.
    n_partitions : int or None
        So many partitions (or one a column where there are fewer columns). Exactly one of this and `partition_bytes` is
        given.
    partition_bytes : int or None
        No partition larger than so many bytes, by the estimate of :func:`partition.balance.partition_bytes`.
    method : str, default "jensen-shannon"
        A name in :data:`partition.clustering.METHODS`.
    n_codes : int, default 256
        Regions of the histograms, 1 to 256.
    max_iterations : int, default 20
        Most passes of k-means over the columns, at least 1.
    seed : int, default 0
        0 to 2**63 - 1.
    max_imbalance : float, default 2.0
        With `n_partitions`: largest size of a partition as a multiple of the mean, at least 1.1.

    Raises
    ------
    InputError
        If one of them is out of range.

    Examples
    --------
    >>> PlanOptions(dimensions=100, n_partitions=8).method
    'jensen-shannon'
    """

    dimensions: int
    n_partitions: int | None = None
    partition_bytes: int | None = None
    method: str = next(iter(METHODS))
    n_codes: int = MAX_CODES
    max_iterations: int = 20
    seed: int = 0
    max_imbalance: float = 2.0

    def __post_init__(self) -> None:
        if (self.n_partitions is None) == (self.partition_bytes is None):
            raise InputError(
                "Exactly one of n_partitions and partition_bytes must be given. "
                f"Got n_partitions={self.n_partitions!r} and partition_bytes={self.partition_bytes!r}."
            )
        method_named(self.method)
        _check_whole("dimensions", self.dimensions, 1)
        _check_whole("n_codes", self.n_codes, 1, MAX_CODES)
        _check_whole("max_iterations", self.max_iterations, 1)
        _check_whole("seed", self.seed, 0, 2**63 - 1)
        if self.n_partitions is not None:
            _check_whole("n_partitions", self.n_partitions, 1, 2**31 - 1)
        else:
            _check_whole("partition_bytes", self.partition_bytes, 1)
        imbalance = self.max_imbalance
        if (
            isinstance(imbalance, bool)
            or not isinstance(imbalance, numbers.Real)
            or not (math.isfinite(imbalance) and imbalance >= 1.1)
        ):
            raise InputError(f"max_imbalance must be a number of at least 1.1. Got {imbalance!r}.")

    def limits(self, n_columns: int, total_bytes: int) -> Limits:
        """Turn the wish into limits for a lake of `n_columns` columns and `total_bytes` bytes."""
        if self.n_partitions is not None:
            return fixed_limits(self.n_partitions, n_columns, total_bytes, max_imbalance=self.max_imbalance)
        return size_limits(self.partition_bytes, n_columns, total_bytes)


def _check_whole(name: str, value: object, low: int, high: int | None = None) -> None:
    allowed = f"from {low} to {high}" if high is not None else f"of at least {low}"
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        raise InputError(f"{name} must be a whole number {allowed}. Got {value!r}.")
