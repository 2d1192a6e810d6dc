"""Measured queries on an index on disk.

Each gives seconds, work, bytes read from the disk, and the process's own memory.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from benchmarks.lake import BenchmarkQuery
from benchmarks.memory import give_back, number_in, resident_bytes
from benchmarks.out_of_core.stores import drop_cached
from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.options import SearchOptions
from pexeso.results.query import Hit
from pexeso.semantic.executor import search_store
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.store.local.reader import Store

_SAMPLE_SECONDS = 0.002
_CPU = torch.device("cpu")


@dataclass(frozen=True)
class AskedColumn:
    """A query column in the form that `pexeso.semantic.executor.search_store` takes."""

    query: BenchmarkQuery
    values: pa.StringArray
    judged: None = None

    @property
    def vectors(self) -> torch.Tensor:
        return self.query.vectors

    def counted(self, joinability_of: str) -> np.ndarray:
        """Return the rows of each value, which every way counts here."""
        return self.query.weights.numpy()

    def total(self, options: SearchOptions) -> int:
        return self.query.total


def asked_column(query: BenchmarkQuery) -> AskedColumn:
    """Name the values of a query column by their bytes, so that equal ones are told to be equal."""
    return AskedColumn(query, pa.array([row.tobytes().hex() for row in query.vectors.numpy()]))


def open_scan(
    store: Store, options: PartitionLayoutOptions, memory_budget: int | None = None
) -> PartitionLoader:
    """Open an index on the CPU."""
    # The one that every large search uses: a change of kernels half-way would tell in what is
    # counted.
    return PartitionLoader(
        store, DenseSpace(options), _CPU, memory_budget, choose_kernel("compiled", _CPU)
    )


def ask(
    scan: PartitionLoader, column: AskedColumn, options: SearchOptions
) -> tuple[list[Hit], dict[str, Any], float]:
    """Ask one question; give what was found, the work, and the seconds."""
    started = time.perf_counter()
    [(hits, stats)] = search_store(scan, [column], [options])
    return hits, stats.to_dict(), time.perf_counter() - started


def ask_cold(
    store: Store,
    grid: PartitionLayoutOptions,
    column: AskedColumn,
    options: SearchOptions,
    memory_budget: int | None,
) -> dict[str, Any]:
    """Ask one question of an index of which nothing is in memory; tell what the disk gave."""
    gc.collect()  # what other searches have mapped stays in memory
    drop_cached(store)
    scan = open_scan(store, grid, memory_budget)
    before = bytes_from_disk()
    hits, work, seconds = ask(scan, column, options)
    return {
        "found": answer_of(hits),
        "seconds": seconds,
        "disk_bytes": bytes_from_disk() - before,
        "bytes_read": work["bytes_read"],
    }


def answer_of(hits: list[Hit]) -> list[tuple[int, int]]:
    """Return columns and counts in the order found."""
    return [(hit.column_id, hit.matched) for hit in hits]


def bytes_from_disk() -> int:
    """Return the bytes that this process has had read from a disk, as Linux counts them."""
    return number_in(Path("/proc/self/io"), "read_bytes")


def own_bytes() -> int:
    """Return the memory that is this process's own and no mapped file's."""
    return resident_bytes("RssAnon")


class OwnPeak:
    """Most bytes of the process's own beyond those before."""

    n_bytes: int = 0


@contextmanager
def own_peak() -> Iterator[OwnPeak]:
    """Measure the process's own memory every two milliseconds while the block runs."""
    give_back()
    peak, before, stop = OwnPeak(), own_bytes(), threading.Event()

    def watch() -> None:
        while not stop.wait(_SAMPLE_SECONDS):
            peak.n_bytes = max(peak.n_bytes, own_bytes() - before)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        stop.set()
        watcher.join()
        peak.n_bytes = max(peak.n_bytes, own_bytes() - before)
