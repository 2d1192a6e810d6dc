"""Brute force by one fused CUDA kernel that multiplies, compares and writes only the pairs."""

from __future__ import annotations

import math

import torch

from benchmarks.algorithms.brute_triton.kernel import INTERPRETED, PairFinder, aligned
from benchmarks.declared import Arguments
from benchmarks.lake import BenchmarkLake
from benchmarks.matching import (
    TENSOR_CORE_TERMS,
    Pairs,
    decide_candidates,
    no_pairs,
    product_error,
    product_limits,
    rounded_product_error,
    rounding_loss,
)
from benchmarks.rivals import PairRival, one_of, only
from pexeso.engine.arrays import as_tensor
from pexeso.errors import DeviceError

PRECISIONS = {"float16": torch.float16, "float32": torch.float32}


class BruteTriton(PairRival):
    """All inner products, as `brute_gemm` makes them, in a kernel that keeps them in registers.

    Build argument: ``precision`` of the products, ``float16`` (default: half the bytes of float32,
    and tensor cores) or ``float32``. Pairs they cannot decide are decided in float32, then by the
    defining distance, on the device.

    Triton's interpreter (``TRITON_INTERPRET=1``) runs it on the CPU, for tests.
    """

    def build(self, lake: BenchmarkLake, arguments: Arguments) -> None:
        """Copy the vectors to the device, rounded too."""
        only(arguments, ("precision",), "build", "brute_triton")
        precision = arguments.get("precision", "float16")
        one_of(precision, tuple(PRECISIONS), "precision", "brute_triton")
        self._check_device()
        self.take_postings(lake)
        self._vectors = as_tensor(lake.vectors, self.device).contiguous()
        self._operand = self._vectors.to(PRECISIONS[precision])
        self._rounds = precision != "float32"
        self._loss = rounding_loss(self._vectors, self._operand) if self._rounds else 0.0
        squares = torch.cat(
            [part.double().square().sum(1) for part in torch.split(self._vectors, 1 << 16)]
        )
        self._smallest, self._largest = (
            (float(squares.min()), float(squares.max())) if len(squares) else (1.0, 1.0)
        )
        self._operand = aligned(self._operand)
        self._finder = PairFinder(self._operand)
        self.index_bytes += self._vectors.nbytes + (self._operand.nbytes if self._rounds else 0)

    def _check_device(self) -> None:
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise DeviceError(
                "brute_triton needs a CUDA GPU, and torch finds none here. On the CPU use "
                "brute_gemm."
            )
        if self.device.type != "cuda" and not INTERPRETED:
            raise DeviceError(
                f"brute_triton runs on cuda. Got the device {self.device} instead; on the CPU "
                "use brute_gemm."
            )

    def match(self, vectors: torch.Tensor, tau: float) -> Pairs:
        n_pairs = len(vectors) * len(self._vectors)
        self.work = {
            "distances": n_pairs,
            "vectors_touched": n_pairs,
            "bytes_read": self._operand.nbytes,
        }
        if not n_pairs:
            return no_pairs(self.device)
        operand = vectors.to(self._operand.dtype)
        low, high = self._limits(vectors, operand, tau)
        queries, values, products = self._finder.find(operand, low)
        sure = products >= high[queries]
        again = decide_candidates(queries[~sure], values[~sure], vectors, self._vectors, tau)
        self.work["decided_again"] = len(sure) - int(sure.sum())
        return torch.cat([queries[sure], again[0]]), torch.cat([values[sure], again[1]])

    def _limits(
        self, vectors: torch.Tensor, operand: torch.Tensor, tau: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        squares = vectors.double().square().sum(1)
        largest, dimensions = math.sqrt(max(self._largest, float(squares.max()))), vectors.shape[1]
        error = (
            rounded_product_error(
                TENSOR_CORE_TERMS * dimensions, largest, rounding_loss(vectors, operand), self._loss
            )
            if self._rounds
            else product_error(dimensions, largest)
        )
        return product_limits(squares, self._smallest, self._largest, tau, error)
