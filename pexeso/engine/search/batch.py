"""Shared state of the query columns of one pass.

These are their distinct values, and the counting of their matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from pexeso.engine.interface import Groups, Kernel, Pairs
from pexeso.engine.layout.partition import Partition
from pexeso.engine.vector_space import BatchColumn

BatchQuery = BatchColumn


def vectors_of(
    vectors: torch.Tensor, queries: Sequence[BatchQuery]
) -> tuple[torch.Tensor, list[BatchQuery]]:
    """Keep the vectors of some query columns."""
    used, members = np.unique(_joined(queries, "members"), return_inverse=True)
    ends = np.cumsum([len(query.members) for query in queries])[:-1]
    return vectors[torch.from_numpy(used)], [
        replace(query, members=part)
        for query, part in zip(queries, np.split(members, ends), strict=True)
    ]


def _joined(queries: Sequence[BatchQuery], name: str) -> np.ndarray:
    """Return an array of all query columns one after the other, int64."""
    return np.concatenate([np.zeros(0, np.int64), *(getattr(query, name) for query in queries)])


class BatchCounter:
    """Counts matches for the query columns of a batch."""

    def __init__(
        self,
        partition: Partition,
        kernel: Kernel,
        queries: Sequence[BatchQuery],
        position: np.ndarray,
    ) -> None:
        self._partition, self._kernel, self._n_queries = partition, kernel, len(queries)
        sizes = np.array([len(query.members) for query in queries], np.int64)
        members, weights = (_joined(queries, name) for name in ("members", "weights"))
        members = position[members]
        mask = (members >= 0) & (weights > 0)
        ends = np.concatenate([[0], np.cumsum(mask)])[np.concatenate([[0], np.cumsum(sizes)])]
        needed = np.array([query.min_count for query in queries], np.int64)
        weights = weights[mask]
        # What is counted fits in half the bytes, unless rows are counted by the milliard.
        self._is_short = int(weights.sum()) < 1 << 31 and partition.n_columns < 1 << 31
        self._groups = Groups(
            *(
                torch.from_numpy(array).to(partition.device)
                for array in (ends, members[mask], weights, needed)
            )
        )

    def count(self, matches: Pairs) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return each query column's columns, ascending, and their counts, int64."""
        which, column, count = self._kernel.count_batch(self._partition, matches, self._groups)
        if which.device.type == "cpu":
            order = order_by_numpy(which, column)
        else:
            order = order_by_keys(which, column, self._partition.n_columns)
        sizes = torch.bincount(which, minlength=self._n_queries)
        dtype = torch.int32 if self._is_short else torch.int64
        columns, counts = to_host(torch.stack([column[order], count[order]]).to(dtype)).numpy()
        ends = np.cumsum(sizes.numpy(force=True)).tolist()
        return [
            (columns[begin:end], counts[begin:end])
            for begin, end in zip([0, *ends], ends, strict=False)
        ]


def to_host(numbers: torch.Tensor) -> torch.Tensor:
    """Return whole numbers on the CPU, int64.

    From a device they come through memory that it writes to by itself, at ten times the speed.
    """
    if numbers.device.type != "cuda":
        return numbers.cpu().long()
    staging = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
    staging.copy_(numbers, non_blocking=True)
    torch.cuda.current_stream(numbers.device).synchronize()
    return staging.to(torch.int64, copy=True)


def order_by_numpy(which: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
    """Return the order by query column, then column, of int64 tensors on the CPU.

    numpy sorts them several times as fast as torch.
    """
    return torch.from_numpy(np.lexsort((column.numpy(), which.numpy())))


def order_by_keys(which: torch.Tensor, column: torch.Tensor, n_columns: int) -> torch.Tensor:
    """Return the order of `order_by_numpy`, computed on the device of the tensors.

    A thousand query columns may have millions of answers.
    """
    return torch.argsort(which * n_columns + column)


def join_pairs(parts: Sequence[Pairs], n_queries: int, partition: Partition) -> Pairs:
    """Concatenate the pairs of consecutive runs of query values.

    Without any run no query value has a pair.
    """
    offsets = [
        torch.zeros(1 if parts else n_queries + 1, dtype=torch.int64, device=partition.device)
    ]
    for part in parts:
        offsets.append(part.offsets[1:] + offsets[-1][-1])
    nothing = torch.zeros(0, dtype=torch.int32, device=partition.device)
    return Pairs(torch.cat(offsets), torch.cat([nothing, *(part.rows for part in parts)]))
