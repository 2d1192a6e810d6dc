"""Many query columns as one: the values that stand in several of them, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.lake import BenchmarkQuery
from pexeso.engine.arrays import offsets_of
from pexeso.errors import InputError

_ROWS_AT_ONCE = 1 << 16


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
    """Return the rows that differ in a bit, and for each row the number of its like.

    Rows are told apart by a 64-bit sum of their words times fixed odd numbers; that equal sums mean
    equal rows is checked, and where it is not so the rows' bytes are sorted instead.
    """
    array = np.ascontiguousarray(vectors.numpy())
    words = array.view(np.uint32)
    _, first, like = np.unique(_sums(words), return_index=True, return_inverse=True)
    if not _same(words, first, like):
        rows = words.view([("row", np.void, words.shape[1] * 4)])[:, 0]["row"]
        _, first, like = np.unique(rows, return_index=True, return_inverse=True)
    return torch.from_numpy(array[first]), torch.from_numpy(like.astype(np.int64))


def _sums(words: np.ndarray) -> np.ndarray:
    factors = np.random.default_rng(0).integers(
        0, 2**64, words.shape[1], dtype=np.uint64
    ) | np.uint64(1)
    sums = np.empty(len(words), dtype=np.uint64)
    for begin in range(0, len(words), _ROWS_AT_ONCE):
        sums[begin : begin + _ROWS_AT_ONCE] = (
            words[begin : begin + _ROWS_AT_ONCE].astype(np.uint64) @ factors
        )
    return sums


def _same(words: np.ndarray, first: np.ndarray, like: np.ndarray) -> bool:
    return all(
        np.array_equal(
            words[first[like[begin : begin + _ROWS_AT_ONCE]]], words[begin : begin + _ROWS_AT_ONCE]
        )
        for begin in range(0, len(words), _ROWS_AT_ONCE)
    )
