"""Brute force by what others provide on the same device: torch's products, faiss and cuVS.

These methods need no kernel of pexeso. Each answers the question of a radius exactly.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch

from benchmarks.algorithms.brute_gemm.scan import PRECISIONS, ProductScan
from benchmarks.counting import count_columns
from benchmarks.gpu.checks import WrongAnswerError
from benchmarks.gpu.fitting import free_bytes
from benchmarks.gpu.lakes import ResidentLake
from benchmarks.gpu.timing import Clock, spread, wall_seconds
from benchmarks.lake import Answer, BenchmarkQuery
from benchmarks.matching import Pairs, decide_candidates
from pexeso.engine.kernels.faiss_kernel import Nearest, pairs_within

REPEATS = 3
BLOCKS = {"cuda": (1 << 28, 1 << 30), "cpu": (1 << 20,)}
"""Products held at a time: each is tried, and the fastest counts. Fewer are slower: of ``2**24``,
``2**26`` and ``2**28`` the last was the fastest in every precision."""

_SPARE_BYTES = 4 << 30
"""What a scan takes beside its copy of the vectors."""

_TF32_ROUNDOFF = 2.0**-10
"""Of the shortest format in which float32 products are made on a GPU."""

Search = Callable[[torch.Tensor, float], Pairs]


def measure_rivals(
    lake: ResidentLake, queries: Sequence[BenchmarkQuery], answers: Sequence[Answer], clock: Clock
) -> Mapping[str, dict[str, object]]:
    """Measure query columns of a lake of one partition by everything that is installed.

    Pairs are found and decided from query values that are on the device.
    """
    vectors, figures = lake.parts[0].partition.vectors, {}
    for name, precision in PRECISIONS.items():
        copied = 0 if precision == torch.float32 else vectors.nbytes // 2
        if copied + _SPARE_BYTES > free_bytes(lake.device):
            clock.leave_out(f"{lake.model.name}: products in {name}", "there is no memory for them")
            continue
        ways = {}
        for block in BLOCKS[lake.device.type]:
            scan = ProductScan(vectors, precision=precision, block_products=block)
            ways[block] = _ask(lake, queries, answers, f"products in {name}", scan.pairs)
            del scan
        best = min(ways, key=lambda block, ways=ways: ways[block]["median_seconds"])
        figures[name] = {"block_products": best, "queries": len(queries), **ways[best]}
    for name, (module, make) in NEIGHBOURS.items() if lake.device.type == "cuda" else ():
        part = f"{lake.model.name}: {name}"
        if importlib.util.find_spec(module) is None:
            clock.leave_out(part, "it is not installed")
            continue
        if vectors.nbytes + _SPARE_BYTES > free_bytes(lake.device):
            clock.leave_out(part, "there is no memory for its copy of the vectors")
            continue
        try:
            nearest = make(vectors)
        except (AttributeError, ImportError) as error:
            clock.leave_out(part, f"it cannot be used here: {error}")
            continue
        search = partial(pairs_by_neighbours, nearest, vectors)
        figures[name] = {
            "queries": len(queries),
            **_ask(lake, queries, answers, name, search),
        }
        del nearest, search
    return figures


def pairs_by_neighbours(
    nearest: Nearest, vectors: torch.Tensor, ours: torch.Tensor, tau: float
) -> Pairs:
    """Return the pairs at most tau apart among those that nearest neighbours give.

    The radius is wider by what products in TF32 could cost: twice the error of rounding operands
    of unit length, and a little more for the sums.

    Parameters
    ----------
    nearest : callable
        See `pexeso.engine.kernels.faiss_kernel.Nearest`; of `vectors`.
    vectors : float32 (N, d)
    ours : float32 (n, d)
    tau : float
    """
    limit = tau * tau + 2.0 * (2.0 * _TF32_ROUNDOFF + 2.0**-18) * 1.01
    return decide_candidates(*pairs_within(nearest, ours, vectors, limit), ours, vectors, tau)


def _faiss(vectors: torch.Tensor) -> Nearest:
    import faiss

    index = faiss.GpuIndexFlatL2(faiss.StandardGpuResources(), vectors.shape[1])
    # On the host a piece at a time.
    for part in torch.split(vectors, 1 << 20):
        index.add(part.numpy(force=True))

    def nearest(queries: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        squares, rows = index.search(queries.numpy(force=True), count)
        return (torch.from_numpy(part).to(queries.device) for part in (squares, rows))

    return nearest


def _cuvs(vectors: torch.Tensor) -> Nearest:
    from cuvs.neighbors import brute_force

    index = brute_force.build(vectors, metric="sqeuclidean")

    def nearest(queries: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        squares, rows = brute_force.search(index, queries.contiguous(), count)
        squares, rows = (torch.as_tensor(part, device=queries.device) for part in (squares, rows))
        return squares, rows.long()

    return nearest


NEIGHBOURS: Mapping[str, tuple[str, Callable[[torch.Tensor], Nearest]]] = {
    "faiss-gpu": ("faiss", _faiss),
    "cuvs": ("cuvs", _cuvs),
}
"""Name -> module, and what makes an index of vectors on a GPU."""


def _ask(
    lake: ResidentLake,
    queries: Sequence[BenchmarkQuery],
    answers: Sequence[Answer],
    name: str,
    search: Search,
) -> dict[str, float]:
    """Return the seconds of a way of searching, the fastest of a few per query column."""
    (part,) = lake.parts
    seconds = []
    for query, right in zip(queries, answers, strict=True):
        work = partial(search, query.vectors.to(lake.device), query.tau)
        answer = count_columns(
            *work(), query, part.partition.value_columns, part.partition.n_columns
        )
        if not all(torch.equal(*pair) for pair in zip(answer, right, strict=True)):
            raise WrongAnswerError(f"A wrong answer: {lake.model.name}, {name}, {query.name}.")
        seconds.append(min(wall_seconds(work, lake.device) for _ in range(REPEATS)))
    return spread(seconds)
