"""Pairs within a radius by nearest neighbours of faiss, which searches no radius on a GPU.

`FaissKernel` compares by faiss what the boxes of an index leave; `neighbours_of` is brute force.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from benchmarks.matching import Pairs as DecidedPairs
from benchmarks.matching import decide_candidates
from pexeso.engine.kernel import Kernel, Pairs, Query, merge_by_query
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.kernels.torch_kernel import Descent, TorchKernel
from pexeso.engine.metrics import product_band
from pexeso.engine.stats import SearchStats

if TYPE_CHECKING:
    import faiss

FAISS = "faiss"

FIRST_NEIGHBOURS = 16
MAX_NEIGHBOURS = 2048
"""The most that faiss finds on a GPU."""

_PAIRS_AT_ONCE = 1 << 24
"""Neighbours asked for, or products made, together: 12 bytes each."""

Nearest = Callable[[torch.Tensor, int], tuple[torch.Tensor, torch.Tensor]]
"""From query values, float32 (n, d), and a number of neighbours k to their squared distances,
float32 (n, k) and ascending, and their rows, int64 (n, k)."""


def pairs_within(
    nearest: Nearest,
    queries: torch.Tensor,
    vectors: torch.Tensor,
    limit: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return all (query value, row) pairs up to a squared distance.

    Of the query values whose last neighbour lies within the limit twice as many neighbours are
    asked for, and so on up to `MAX_NEIGHBOURS`. Those that have more are multiplied with all rows.
    """
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
    waiting = torch.arange(len(queries) if len(vectors) else 0, device=queries.device)
    n_neighbours = min(FIRST_NEIGHBOURS, MAX_NEIGHBOURS, len(vectors))
    while len(waiting):
        unfinished = []
        for part in torch.split(waiting, max(1, _PAIRS_AT_ONCE // n_neighbours)):
            squares, rows = nearest(queries[part], n_neighbours)
            within = squares <= limit
            more = within[:, -1] if n_neighbours < len(vectors) else torch.zeros_like(within[:, 0])
            query, rank = torch.nonzero(within & ~more[:, None], as_tuple=True)
            pairs.append((part[query], rows[query, rank]))
            unfinished.append(part[more])
        waiting = torch.cat(unfinished)
        if n_neighbours == MAX_NEIGHBOURS:
            break
        n_neighbours = min(2 * n_neighbours, MAX_NEIGHBOURS, len(vectors))
    if len(waiting):
        pairs += _pairs_by_products(queries, vectors, waiting, limit)
    if not pairs:
        return waiting, waiting
    query, row = (torch.cat(tensors) for tensors in zip(*pairs, strict=True))
    return query, row


def _pairs_by_products(
    queries: torch.Tensor, vectors: torch.Tensor, chosen: torch.Tensor, limit: float
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Compare some query values with every row."""
    pairs = []
    for part in torch.split(chosen, 1 << 12):
        ours = queries[part]
        own = ours.square().sum(1)
        step = max(1, _PAIRS_AT_ONCE // len(part))
        for begin in range(0, len(vectors), step):
            rows = vectors[begin : begin + step]
            squares = torch.addmm(own[:, None] + rows.square().sum(1), ours, rows.T, alpha=-2.0)
            query, row = torch.nonzero(squares <= limit, as_tuple=True)
            pairs.append((part[query], row + begin))
    return pairs


_SCRATCH_BYTES = 256 << 20
"""What faiss keeps on a GPU for itself, for each thread that searches."""

_of_thread = threading.local()


def _nearest(
    index: faiss.Index, queries: torch.Tensor, count: int
) -> tuple[torch.Tensor, torch.Tensor]:
    result = index.search(np.ascontiguousarray(queries.numpy(force=True)), count)
    squares, positions = (torch.from_numpy(part).to(queries.device) for part in result)
    return squares, positions


def _flat_index(dimensions: int, device: torch.device) -> faiss.Index:
    import faiss

    if device.type == "cpu":
        return faiss.IndexFlatL2(dimensions)
    # faiss allows no two threads to use the same resources.
    if not hasattr(_of_thread, "resources"):
        _of_thread.resources = faiss.StandardGpuResources()
        _of_thread.resources.setTempMemory(_SCRATCH_BYTES)
    config = faiss.GpuIndexFlatConfig()
    config.device = torch.cuda.current_device() if device.index is None else device.index
    return faiss.GpuIndexFlatL2(_of_thread.resources, dimensions, config)


def kernel_of(name: str, device: torch.device) -> Kernel:
    return FaissKernel() if name == FAISS else choose_kernel(name, device)


def lack_of(device: torch.device) -> str | None:
    """Return why faiss cannot be asked on a device; None where it can."""
    try:
        import faiss
    except ImportError as error:
        return f"it cannot be used here: {error}"
    if device.type != "cpu" and not hasattr(faiss, "StandardGpuResources"):
        return "it is installed for the CPU alone"
    return None


_TF32_ROUNDOFF = 2.0**-10
"""Of the shortest format in which float32 products are made on a GPU."""


def _limit_in_tf32(tau: float) -> float:
    """Return tau squared, and what products in TF32 could cost.

    That is twice the error of rounding operands of unit length, and a little more for the sums.
    """
    return tau * tau + 2.0 * (2.0 * _TF32_ROUNDOFF + 2.0**-18) * 1.01


def pairs_by_neighbours(
    nearest: Nearest, vectors: torch.Tensor, ours: torch.Tensor, tau: float
) -> DecidedPairs:
    """Return the pairs at most tau apart among those that nearest neighbours give."""
    limit = _limit_in_tf32(tau)
    return decide_candidates(*pairs_within(nearest, ours, vectors, limit), ours, vectors, tau)


def neighbours_of(vectors: torch.Tensor) -> Nearest:
    """Return what finds the nearest of some vectors."""
    index = _flat_index(vectors.shape[1], vectors.device)
    # On the host a piece at a time.
    for part in torch.split(vectors, 1 << 20):
        index.add(part.numpy(force=True))
    return partial(_nearest, index)


_ELEMENTS_AT_ONCE = 1 << 23
"""Vector elements that are gathered and searched together: 32 MiB, and as much in faiss."""


class FaissKernel(TorchKernel):
    """Kernel that compares whole vectors with faiss.

    Blocks that survive for any query value are searched for all of them. What faiss finds within
    the wider limit of its own rounding is a candidate, and is decided as by `TorchKernel`.
    """

    name = FAISS

    def candidates(self, query: Query, max_pairs: int, stats: SearchStats) -> Pairs | None:
        partition = query.partition
        alive = torch.zeros(len(partition.blocks), dtype=torch.bool, device=partition.device)
        for _, blocks in Descent(query, stats).surviving_blocks():
            alive[blocks] = True
        parts: list[tuple[torch.Tensor, torch.Tensor]] = []
        n_found, size = 0, partition.blocks.size
        # Were every pair found, each would take four times as much on the way as it does in the
        # end.
        n_rows = min(_ELEMENTS_AT_ONCE // partition.dimensions, max_pairs // (4 * len(query) or 1))
        for blocks in torch.split(torch.nonzero(alive)[:, 0], max(1, n_rows // size)):
            rows = (blocks[:, None] * size + torch.arange(size, device=blocks.device)).flatten()
            rows = rows[rows < partition.n_values]
            vectors = partition.vectors_of(rows)
            stats.vectors_touched += len(rows) * len(query)
            stats.bytes_read += len(rows) * partition.vector_bytes
            search = _SEARCHES[partition.device.type]
            queries, positions = search(query.vectors, vectors, query.threshold.tau)
            parts.append((queries.int(), rows[positions].int()))
            n_found += len(positions)
            if n_found > max_pairs:
                return None
        stats.candidates += n_found
        return merge_by_query(parts, len(query), partition.device)


def _pairs_in_range(
    queries: torch.Tensor, vectors: torch.Tensor, tau: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Search a range, which faiss does on the CPU alone."""
    import faiss

    index = faiss.IndexFlatL2(vectors.shape[1])
    index.add(vectors.numpy())
    # Square differences and products alike stay within this limit (see `product_band`), and faiss
    # leaves out what lies at the radius itself.
    limit = product_band(tau, vectors.shape[1]).possibly
    radius = float(np.nextafter(np.float32(limit), np.float32(np.inf)))
    offsets, _, positions = index.range_search(np.ascontiguousarray(queries.numpy()), radius)
    sizes = torch.from_numpy(np.diff(offsets.astype(np.int64)))
    return torch.repeat_interleave(torch.arange(len(queries)), sizes), torch.from_numpy(positions)


def _pairs_of_neighbours(
    queries: torch.Tensor, vectors: torch.Tensor, tau: float
) -> tuple[torch.Tensor, torch.Tensor]:
    return pairs_within(neighbours_of(vectors), queries, vectors, _limit_in_tf32(tau))


_SEARCHES = {"cpu": _pairs_in_range, "cuda": _pairs_of_neighbours}
