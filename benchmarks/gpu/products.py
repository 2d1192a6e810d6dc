"""Brute force by torch's own matrix products on the same device, in several precisions.

These methods need no kernel of pexeso.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import torch

from benchmarks.algorithms.brute_gemm.scan import PRECISIONS, ProductScan
from benchmarks.counting import count_columns
from benchmarks.gpu.checks import WrongAnswerError
from benchmarks.gpu.fitting import free_bytes
from benchmarks.gpu.lakes import ResidentLake
from benchmarks.gpu.timing import spread, wall_seconds
from benchmarks.lake import Answer, BenchmarkQuery

REPEATS = 3
BLOCKS = {"cuda": (1 << 28, 1 << 30), "cpu": (1 << 20,)}
"""Products held at a time: each is tried, and the fastest counts. Fewer are slower: of ``2**24``,
``2**26`` and ``2**28`` the last was the fastest in every precision."""

_SPARE_BYTES = 4 << 30
"""What a scan takes beside its copy of the vectors."""


def measure_products(
    lake: ResidentLake, queries: Sequence[BenchmarkQuery], answers: Sequence[Answer]
) -> Mapping[str, dict[str, object]]:
    """Measure query columns of a lake of one partition by matrix products.

    Pairs are found and decided from query values that are on the device.

    Parameters
    ----------
    lake : ResidentLake
    queries : sequence of BenchmarkQuery
        At least one.
    answers : sequence of Answer
        Right ones.

    Returns
    -------
    mapping
        Precision -> figures. Those for whose copy of the vectors there is no room are left out.

    Raises
    ------
    WrongAnswerError
        When an answer is not the right one.
    """
    vectors, figures = lake.parts[0].partition.vectors, {}
    for name, precision in PRECISIONS.items():
        copied = 0 if precision == torch.float32 else vectors.nbytes // 2
        if copied + _SPARE_BYTES > free_bytes(lake.device):
            continue
        ways = {
            block: _ask(lake, queries, answers, name, block) for block in BLOCKS[lake.device.type]
        }
        best = min(ways, key=lambda block, ways=ways: ways[block]["median_seconds"])
        figures[name] = {"block_products": best, "queries": len(queries), **ways[best]}
    return figures


def _ask(
    lake: ResidentLake,
    queries: Sequence[BenchmarkQuery],
    answers: Sequence[Answer],
    name: str,
    block: int,
) -> dict[str, float]:
    """Return the seconds of one precision and block size, the fastest of a few per query column."""
    (part,) = lake.parts
    scan = ProductScan(part.partition.vectors, precision=PRECISIONS[name], block_products=block)
    seconds = []
    for query, right in zip(queries, answers, strict=True):
        work = partial(scan.pairs, query.vectors.to(lake.device), query.tau)
        answer = count_columns(
            *work(), query, part.partition.value_columns, part.partition.n_columns
        )
        if not all(torch.equal(*pair) for pair in zip(answer, right, strict=True)):
            raise WrongAnswerError(
                f"A wrong answer: {lake.model.name}, products in {name}, {query.name}."
            )
        seconds.append(min(wall_seconds(work, lake.device) for _ in range(REPEATS)))
    return spread(seconds)
