"""What the query columns of one pass share: their distinct values, and the counting of their matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from pexeso.engine.kernels.interface import Groups, Kernel, Pairs
from pexeso.engine.partition import Partition


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


def vectors_of(vectors: torch.Tensor, queries: Sequence[BatchQuery]) -> tuple[torch.Tensor, list[BatchQuery]]:
    """Keep the vectors of some query columns."""
    used, members = torch.unique(torch.cat([query.members for query in queries]), return_inverse=True)
    parts = torch.split(members, [len(query.members) for query in queries])
    return vectors[used], [replace(query, members=part) for query, part in zip(queries, parts, strict=True)]


class BatchCounter:
    """Counts matches for the query columns of a batch."""

    def __init__(
        self, partition: Partition, kernel: Kernel, queries: Sequence[BatchQuery], place: torch.Tensor
    ) -> None:
        self._partition, self._kernel, self._n_queries = partition, kernel, len(queries)
        members = [place[query.members] for query in queries]
        kept = [(each >= 0) & (query.weights > 0) for each, query in zip(members, queries, strict=True)]
        nothing = torch.zeros(0, dtype=torch.int64)
        sizes = torch.tensor([0, *(int(each.sum()) for each in kept)])
        self._groups = Groups(
            torch.cumsum(sizes, 0).to(partition.device),
            torch.cat([nothing, *(each[some] for each, some in zip(members, kept, strict=True))]).to(partition.device),
            torch.cat([nothing, *(q.weights[some] for q, some in zip(queries, kept, strict=True))]).to(
                partition.device
            ),
            torch.tensor([query.min_count for query in queries], dtype=torch.int64, device=partition.device),
        )

    def count(self, matches: Pairs) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Give each query column's columns, ascending, and their counts."""
        which, column, count = (each.cpu() for each in self._kernel.count_batch(self._partition, matches, self._groups))
        order = torch.from_numpy(np.lexsort((column.numpy(), which.numpy())))
        sizes = torch.bincount(which, minlength=self._n_queries).tolist()
        columns, counts = torch.split(column[order], sizes), torch.split(count[order], sizes)
        return list(zip(columns, counts, strict=True))


def join_pairs(parts: Sequence[Pairs], n_queries: int, partition: Partition) -> Pairs:
    """Put the pairs of consecutive runs of query values together; without any run no query value has a pair."""
    offsets = [torch.zeros(1 if parts else n_queries + 1, dtype=torch.int64, device=partition.device)]
    for part in parts:
        offsets.append(part.offsets[1:] + offsets[-1][-1])
    nothing = torch.zeros(0, dtype=torch.int32, device=partition.device)
    return Pairs(torch.cat(offsets), torch.cat([nothing, *(part.rows for part in parts)]))
