"""Many query columns as one: the values that stand in several of them, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.lake import BenchmarkQuery
from pexeso.engine.arrays import offsets_of
from pexeso.errors import InputError


@dataclass(frozen=True)
class QueryBatch:
    """Query columns of one threshold.

    Attributes
    ----------
    vectors : float32 (n, d)
        The distinct values of all columns.
    rows : int64 (offsets[-1],)
        Row in `vectors` of each value of each column.
    offsets : int64 (queries + 1,)
        Where each column's values stand in `rows`.
    weights : int64 (offsets[-1],)
        Table rows with each value.
    needed : int64 (queries,)
    """

    vectors: torch.Tensor
    rows: torch.Tensor
    offsets: torch.Tensor
    weights: torch.Tensor
    needed: torch.Tensor
    tau: float


def make_batch(queries: Sequence[BenchmarkQuery]) -> QueryBatch:
    thresholds = {query.tau for query in queries}
    if len(thresholds) != 1:
        raise InputError(
            f"A batch holds query columns of one threshold, at least one. Got {len(queries)} "
            f"with {len(thresholds)} thresholds."
        )
    vectors, rows = distinct_rows(torch.cat([query.vectors for query in queries]))
    return QueryBatch(
        vectors,
        rows,
        offsets_of(torch.tensor([len(query) for query in queries])),
        torch.cat([query.weights for query in queries]),
        torch.tensor([query.needed for query in queries]),
        thresholds.pop(),
    )


def distinct_rows(vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows that differ in a bit, and for each row the number of its like."""
    array = np.ascontiguousarray(vectors.numpy())
    as_bytes = array.view(f"V{array.shape[1] * array.itemsize}")[:, 0]
    _, first, like = np.unique(as_bytes, return_index=True, return_inverse=True)
    return torch.from_numpy(array[first]), torch.from_numpy(like)
