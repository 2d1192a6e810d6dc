"""The faiss kernel: boxes rule blocks out, and a flat range search covers the blocks left."""

from __future__ import annotations

import faiss
import numpy as np
import torch

from pexeso.engine.interface import Pairs, Query, Threshold, merge_by_query
from pexeso.engine.kernels.torch_kernel import Descent, TorchKernel
from pexeso.engine.layout.partition import Partition
from pexeso.engine.precision import product_band
from pexeso.engine.stats import SearchStats

ELEMENTS_AT_ONCE = 1 << 23
"""Vector elements that are gathered and searched together: 32 MiB, and as much in faiss."""

_LEAST_ROWS = 256


class FaissKernel(TorchKernel):
    """Kernel that compares whole vectors with faiss.

    Mapped coordinates play no part beyond the boxes. faiss supports Euclidean distances only.

    Blocks that survive for any query value are searched for all of them. What faiss finds within
    the wider limit of its own rounding is a candidate, and is decided as by `TorchKernel`. Other
    metrics go the way of `TorchKernel` altogether.
    """

    name = "faiss"

    def candidates(
        self,
        partition: Partition,
        query: Query,
        threshold: Threshold,
        max_pairs: int,
        stats: SearchStats,
    ) -> Pairs | None:
        """Find the surviving blocks, then search them."""
        if partition.metric.name not in ("euclidean", "angular"):
            return super().candidates(partition, query, threshold, max_pairs, stats)
        # Square differences and products alike stay within this limit (see `product_band`).
        limit = product_band(threshold.tau, partition.dimensions).possibly
        alive = torch.zeros(len(partition.blocks), dtype=torch.bool)
        for _, blocks in Descent(partition, query, threshold, stats).surviving_blocks():
            alive[blocks] = True
        parts: list[tuple[torch.Tensor, torch.Tensor]] = []
        n_found = 0
        # Were every pair found, each would take four times as much on the way as it does in the
        # end.
        n_rows = min(
            ELEMENTS_AT_ONCE // partition.dimensions, max_pairs // (4 * max(1, len(query)))
        )
        chunk_size = max(1, max(n_rows, _LEAST_ROWS) // partition.blocks.size)
        for blocks in torch.split(torch.nonzero(alive)[:, 0], chunk_size):
            parts.append(_range_search(partition, query, blocks, limit, stats))
            n_found += len(parts[-1][0])
            if n_found > max_pairs:
                return None
        stats.candidates += n_found
        return merge_by_query(parts, len(query), partition.device)


def _range_search(
    partition: Partition, query: Query, blocks: torch.Tensor, limit: float, stats: SearchStats
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (query value, row) pairs of some blocks within a squared distance."""
    size = partition.blocks.size
    rows = (blocks[:, None] * size + torch.arange(size)).flatten()
    rows = rows[rows < partition.n_values]
    index = faiss.IndexFlatL2(partition.dimensions)
    index.add(partition.vectors_of(rows).numpy())
    stats.vectors_touched += len(rows) * len(query)
    stats.bytes_read += len(rows) * partition.vector_bytes
    # faiss leaves out what lies at the radius itself.
    radius = float(np.nextafter(np.float32(limit), np.float32(np.inf)))
    offsets, _, positions = index.range_search(np.ascontiguousarray(query.vectors.numpy()), radius)
    sizes = torch.from_numpy(np.diff(offsets.astype(np.int64)))
    queries = torch.repeat_interleave(torch.arange(len(query), dtype=torch.int32), sizes)
    return queries, rows[torch.from_numpy(positions)].int()
