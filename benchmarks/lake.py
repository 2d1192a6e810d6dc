"""What every algorithm is given: a lake as arrays, and query columns as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from pexeso.engine.arrays import Csr, csr_from_pairs, transpose
from pexeso.engine.options import Metric

METRIC = Metric("euclidean")
"""All runs compare unit vectors by their Euclidean distance; angles order pairs alike."""


@dataclass(frozen=True)
class BenchmarkLake:
    """A lake as arrays: the distinct values' vectors, and which columns hold which values.

    Values that the model knows nothing about (zero vectors) are dropped when the lake is made: they
    match nothing. Columns stay, and ``column_rows`` still counts the rows of such values.

    Attributes
    ----------
    vectors : float32 (N, d)
        Unit vectors.
    column_offsets : int64 (C + 1,)
    column_values : int64 (column_offsets[-1],)
        Distinct rows of `vectors` for each column (CSR).
    value_rows : int64 (column_offsets[-1],)
        Rows of the table that hold each value of a column, at least 1.
    column_rows : int64 (C,)
        Rows of each column with a value, those without a vector included.
    """

    name: str
    vectors: np.ndarray
    column_offsets: np.ndarray
    column_values: np.ndarray
    value_rows: np.ndarray
    column_rows: np.ndarray
    columns: Sequence[str]
    facts: dict[str, object]

    @property
    def n_values(self) -> int:
        return len(self.vectors)

    @property
    def n_columns(self) -> int:
        return len(self.column_offsets) - 1

    @property
    def dimensions(self) -> int:
        return self.vectors.shape[1]

    @cached_property
    def column_csr(self) -> Csr:
        sizes = torch.from_numpy(np.diff(self.column_offsets))
        columns = torch.repeat_interleave(torch.arange(self.n_columns), sizes)
        return csr_from_pairs(columns, torch.from_numpy(self.column_values), self.n_columns)

    @cached_property
    def value_columns(self) -> Csr:
        """Columns of each value: what every algorithm counts with."""
        return transpose(self.column_csr, self.n_values)

    @cached_property
    def fingerprint(self) -> str:
        """Return the BLAKE2b-64 over all arrays, in hexadecimal."""
        digest = hashlib.blake2b(digest_size=8)
        for array in (
            self.vectors,
            self.column_offsets,
            self.column_values,
            self.value_rows,
            self.column_rows,
        ):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def describe(self) -> dict[str, object]:
        """Return the lake's size and origin as plain JSON."""
        return {
            "name": self.name,
            "columns": self.n_columns,
            "values": self.n_values,
            "dimensions": self.dimensions,
            "postings": len(self.column_values),
            "fingerprint": self.fingerprint,
            **self.facts,
        }


@dataclass(frozen=True)
class BenchmarkQuery:
    """A query column and what is asked about it.

    Attributes
    ----------
    vectors : float32 (n, d)
        The distinct values with a vector.
    weights : int64 (n,)
        Rows of each.
    """

    name: str
    vectors: torch.Tensor
    weights: torch.Tensor
    total: int
    max_distance: float
    needed: int

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def tau(self) -> float:
        return METRIC.threshold(self.max_distance)


Answer = tuple[torch.Tensor, torch.Tensor]
"""Column numbers, ascending, and the matching query rows of each: int64 (r,) both, on the CPU."""
