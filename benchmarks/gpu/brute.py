"""Brute force on the same device, piece by piece.

It is the reference for the answers and the time of searches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from benchmarks.batching import QueryBatch
from benchmarks.counting import count_columns
from benchmarks.gpu.fitting import free_bytes
from benchmarks.gpu.lakes import ResidentLake
from benchmarks.gpu.timing import device_seconds, wall_seconds
from benchmarks.lake import Answer, BenchmarkQuery
from benchmarks.matching import (
    TENSOR_CORE_TERMS,
    Pairs,
    decide_candidates,
    product_limits,
    rounded_product_error,
    rounding_loss,
)

if TYPE_CHECKING:
    from benchmarks.gpu.fused_kernel import Configuration, Tuner

REPEATS, SCANS = 3, 5
_PIECE_BYTES = 12 << 30
_PRODUCTS_AT_ONCE = 1 << 24
_BATCH_RATE = 1e14
"""Products and sums a second that are counted on.

By it the finder says how much of a batch there is time for.
"""


class ProductFinder:
    """Finder of pairs with a large inner product by tensor operations."""

    def __init__(self, values: torch.Tensor) -> None:
        self._values = values

    def find(
        self, queries: torch.Tensor, limits: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the query rows, value rows and products of pairs that reach their limit."""
        step = max(1, _PRODUCTS_AT_ONCE // max(1, len(queries)))
        blocks = []
        for begin in range(0, len(self._values), step):
            products = self._values[begin : begin + step] @ queries.T
            value, query = torch.nonzero(products >= limits, as_tuple=True)
            blocks.append((query, value + begin, products[value, query]))
        rows, members, products = (torch.cat(part) for part in zip(*blocks, strict=True))
        return rows, members, products

    def prepare(
        self, queries: torch.Tensor, limits: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return queries, limits

    def launch(self, prepared: tuple[torch.Tensor, torch.Tensor]) -> None:
        queries, limits = prepared
        step = max(1, _PRODUCTS_AT_ONCE // max(1, len(queries)))
        for part in torch.split(self._values, step):
            (part @ queries.T >= limits).sum()


@dataclass
class BruteResult:
    """What brute force took and found.

    Attributes
    ----------
    seconds, kernel_seconds : list of float
        Of each query column: pairs found and decided; the pass over the vectors alone.
    """

    seconds: list[float]
    kernel_seconds: list[float]
    answers: list[Answer]
    values: int
    batch_seconds: float | None = None
    batch_share: float = 0.0
    batch_values: int = 0
    batch_queries: int = 0


@dataclass
class _Piece:
    first_row: int
    vectors: torch.Tensor
    rounded: torch.Tensor
    bounds: tuple[float, float, float] = field(init=False)

    def __post_init__(self) -> None:
        # Largest loss by rounding, smallest and largest squared length, in float64.
        smallest, largest = math.inf, 0.0
        for part in torch.split(self.vectors, max(1, (1 << 24) // self.vectors.shape[1])):
            squares = part.double().square_().sum(1)
            smallest, largest = (
                min(smallest, float(squares.min())),
                max(largest, float(squares.max())),
            )
        self.bounds = (
            rounding_loss(self.vectors, self.rounded[:, : self.vectors.shape[1]]),
            smallest,
            largest,
        )

    def round(self, queries: torch.Tensor) -> torch.Tensor:
        """Round query values as the vectors are rounded, with as many zeros behind them."""
        return padded(queries.to(self.rounded.dtype), self.rounded.shape[1])

    def limits(
        self, queries: torch.Tensor, rounded: torch.Tensor, tau: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the products below which no pair matches, and from which on every pair does."""
        loss, smallest, largest = self.bounds
        squares = queries.double().square_().sum(1)
        query_loss = rounding_loss(queries, rounded[:, : queries.shape[1]])
        longest = math.sqrt(max(largest, float(squares.max())))
        error = rounded_product_error(
            TENSOR_CORE_TERMS * rounded.shape[1], longest, query_loss, loss
        )
        return product_limits(squares, smallest, largest, tau, error)


def run_brute_force(
    lake: ResidentLake,
    queries: Sequence[BenchmarkQuery],
    batch: QueryBatch | None,
    tuner: Tuner | None = None,
) -> BruteResult:
    """Compare all values with those of some query columns, and count.

    The vectors in float16 (on the CPU float32) are made of a piece at a time, which is not timed,
    since they need not fit beside the lake; times of pieces add up.
    """
    device, n = lake.device, len(queries)
    on_device = [query.vectors.to(device) for query in queries]
    result = BruteResult([0.0] * n, [0.0] * n, [], sum(map(len, queries)))
    nothing = torch.zeros(0, dtype=torch.int64)
    answers: list[list[Answer]] = [[(nothing, nothing)] for _ in range(n)]
    sample = None if batch is None else batch.vectors[: _values_in_time(lake, batch)].to(device)
    batch_seconds = 0.0
    for part in lake.parts:
        pairs: list[list[Pairs]] = [[] for _ in range(n)]
        for piece in _pieces(part.partition.vectors):
            finders = _Finders(piece.rounded, tuner)
            for number, (query, vectors) in enumerate(zip(queries, on_device, strict=True)):
                rounded = piece.round(vectors)
                low, high = piece.limits(vectors, rounded, query.tau)
                finder = finders.finder(rounded, low)
                work = _Match(finder, piece, vectors, rounded, low, high, query.tau)
                pairs[number].append(work())
                result.seconds[number] += min(wall_seconds(work, device) for _ in range(REPEATS))
                result.kernel_seconds[number] += device_seconds(work.scan, device, SCANS)
            if sample is not None:
                rounded = piece.round(sample)
                low, high = piece.limits(sample, rounded, batch.tau)
                finder = finders.finder(rounded, low)
                work = _Match(finder, piece, sample, rounded, low, high, batch.tau)
                work.scan()
                batch_seconds += device_seconds(work.scan, device, 1)
            # The next piece takes their room; the last work holds them too.
            del finder, finders, piece, work
        for number, query in enumerate(queries):
            rows, values = (torch.cat(tensors) for tensors in zip(*pairs[number], strict=True))
            columns, counts = count_columns(
                rows, values, query, part.partition.value_columns, part.partition.n_columns
            )
            answers[number].append((columns + part.first_column, counts))
    result.answers = [
        tuple(torch.cat(tensors) for tensors in zip(*of_query, strict=True)) for of_query in answers
    ]
    if sample is not None and len(sample):
        result.batch_values, result.batch_queries = len(batch.vectors), len(batch.needed)
        result.batch_share = len(sample) / len(batch.vectors)
        result.batch_seconds = batch_seconds / result.batch_share / len(batch.needed)
    return result


@dataclass
class _Match:
    finder: object
    piece: _Piece
    queries: torch.Tensor
    rounded: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    tau: float

    def __call__(self) -> Pairs:
        """Find pairs, and decide those that products leave open."""
        queries, values, products = self.finder.find(self.rounded, self.low)
        sure = products >= self.high[queries]
        again = decide_candidates(
            queries[~sure], values[~sure], self.queries, self.piece.vectors, self.tau
        )
        rows = torch.cat([values[sure], again[1]]) + self.piece.first_row
        return torch.cat([queries[sure], again[0]]), rows

    def __post_init__(self) -> None:
        self._prepared = self.finder.prepare(self.rounded, self.low)

    def scan(self) -> None:
        """Pass over the vectors, without waiting for the pairs."""
        self.finder.launch(self._prepared)


class _Finders:
    """What finds pairs in a piece, for every number of query values."""

    def __init__(self, values: torch.Tensor, tuner: Tuner | None) -> None:
        self._values, self._tuner = values, tuner
        self._finders: dict[object, object] = {}

    def finder(self, queries: torch.Tensor, limits: torch.Tensor) -> object:
        best = None if self._tuner is None else self._tuner.best(self._values, queries, limits)
        if best not in self._finders:
            self._finders[best] = self._make(best)
        return self._finders[best]

    def _make(self, configuration: Configuration | None) -> object:
        if configuration is None:
            return ProductFinder(self._values)
        from benchmarks.gpu.fused_kernel import PairFinder

        return PairFinder(self._values, configuration)


def _pieces(vectors: torch.Tensor) -> Iterator[_Piece]:
    """Cut vectors so that their copies in float16 take half of what is free at most."""
    short = torch.float16 if vectors.device.type == "cuda" else torch.float32
    room = min(_PIECE_BYTES, free_bytes(vectors.device) // 2)
    # What the fused kernel loads are rows of a multiple of 16 bytes.
    width = -(-vectors.shape[1] // 8) * 8 if vectors.device.type == "cuda" else vectors.shape[1]
    step = max(1, room // (width * 2))
    for begin in range(0, len(vectors), step):
        part = vectors[begin : begin + step]
        yield _Piece(begin, part, padded(part, width, short))


def padded(vectors: torch.Tensor, width: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return vectors with zeros behind them up to a width: no product changes."""
    if vectors.shape[1] == width:
        return vectors.to(dtype or vectors.dtype)
    wide = torch.zeros((len(vectors), width), dtype=dtype or vectors.dtype, device=vectors.device)
    wide[:, : vectors.shape[1]] = vectors
    return wide


def _values_in_time(lake: ResidentLake, batch: QueryBatch) -> int:
    """Return the number of values of a batch that brute force can compare in three seconds."""
    rate = _BATCH_RATE if lake.device.type == "cuda" else _BATCH_RATE / 1e4
    flop = 2.0 * lake.n_values * lake.model.dimensions
    return max(1, min(len(batch.vectors), int(3.0 * rate / flop)))
