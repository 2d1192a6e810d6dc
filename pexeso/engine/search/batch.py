"""Shared state of the query columns of one pass.

These are their distinct values, and the counting of their matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from pexeso.engine.arrays import offsets_of
from pexeso.engine.interface import Groups, Kernel, Pairs
from pexeso.engine.layout.partition import Partition


@dataclass(frozen=True)
class BatchQuery:
    """One query column of a batch.

    Attributes
    ----------
    members : int64 (m,)
        Its distinct values, rows of the batch's vectors.
    weights : int64 (m,)
        How often each occurs.
    min_count : int
        Matches a column needs, at least 1.
    """

    members: torch.Tensor
    weights: torch.Tensor
    min_count: int


def vectors_of(
    vectors: torch.Tensor, queries: Sequence[BatchQuery]
) -> tuple[torch.Tensor, list[BatchQuery]]:
    """Keep the vectors of some query columns."""
    used, members = torch.unique(
        torch.cat([query.members for query in queries]), return_inverse=True
    )
    parts = torch.split(members, [len(query.members) for query in queries])
    return vectors[used], [
        replace(query, members=part) for query, part in zip(queries, parts, strict=True)
    ]


class BatchCounter:
    """Counts matches for the query columns of a batch."""

    def __init__(
        self,
        partition: Partition,
        kernel: Kernel,
        queries: Sequence[BatchQuery],
        position: torch.Tensor,
    ) -> None:
        self._partition, self._kernel, self._n_queries = partition, kernel, len(queries)
        sizes = torch.tensor([0, *(len(query.members) for query in queries)])
        nothing = torch.zeros(0, dtype=torch.int64)
        members = position[torch.cat([nothing, *(query.members for query in queries)])]
        weights = torch.cat([nothing, *(query.weights for query in queries)])
        mask = (members >= 0) & (weights > 0)
        offsets = offsets_of(mask.long())[torch.cumsum(sizes, 0)]
        needed = torch.tensor([query.min_count for query in queries], dtype=torch.int64)
        self._groups = Groups(
            *(
                tensor.to(partition.device)
                for tensor in (offsets, members[mask], weights[mask], needed)
            )
        )

    def count(self, matches: Pairs) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return each query column's columns, ascending, and their counts."""
        which, column, count = self._kernel.count_batch(self._partition, matches, self._groups)
        sizes = torch.bincount(which, minlength=self._n_queries).tolist()
        on_cpu = which.device.type == "cpu"
        order = (
            order_by_numpy(which, column)
            if on_cpu
            else order_by_keys(which, column, self._partition.n_columns)
        )
        columns, counts = (torch.split(tensor[order].cpu(), sizes) for tensor in (column, count))
        return list(zip(columns, counts, strict=True))


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
