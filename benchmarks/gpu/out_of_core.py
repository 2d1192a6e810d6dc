"""Searches of a lake that does not fit on the device: what is copied a second, and what it takes.

The lake is in the host's memory: a few partitions that differ, again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import torch

from benchmarks.gpu.building import build_tensors
from benchmarks.gpu.checks import WrongAnswerError
from benchmarks.gpu.timing import Clock, device_seconds, seconds_to_answer
from benchmarks.lake import BenchmarkQuery
from benchmarks.out_of_core.asking import AskedColumn, asked_column
from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.vector_space import BYTES_A_PAIR, MAX_PAIRS
from pexeso.options import SearchOptions
from pexeso.semantic.executor import search_store
from pexeso.semantic.partition_loader import CHECK_BYTES, PartitionLoader, copied_bytes

N_DISTINCT = 2
"""Partitions that differ, at most; the others hold the same arrays."""

COLUMN_VALUES = 50
LIKE_COLUMNS = 4
N_BATCH = 100
REPEATS = 3
PARTS, VALUES_OF_A_PART = 36, 7_500_000
SHARE_ON_DEVICE = 1 / 3
"""Of the lake's bytes, that a search may take for partitions."""

OPTIONS = PartitionLayoutOptions(map="projection", n_axes=16)
SEARCH_OPTIONS = SearchOptions(max_distance=0.06, min_joinability=0.5)

DIMENSIONS = 50

OUT_OF_CORE = "out-of-core"
_CEILING_BYTES = {"cuda": 1 << 30, "cpu": 16 << 20}
_SPREAD = 0.02
_BATCH_SECONDS = 15.0


class MemoryStore:
    """Partitions in memory, as `pexeso.store.local.reader.Store` gives those of files."""

    def __init__(self, arrays: Sequence[dict[str, np.ndarray]], n_partitions: int) -> None:
        self.path, self.n_partitions, self.bytes_read = Path("memory"), n_partitions, 0
        self._arrays = list(arrays)
        names = [pa.array(np.arange(_n_columns(part))).cast(pa.string()) for part in arrays]
        self._names = names

    def partition(self, number: int) -> dict[str, np.ndarray]:
        arrays = self._arrays[number % len(self._arrays)]
        self.bytes_read += sum(array.nbytes for array in arrays.values())
        return dict(arrays)

    def array(self, number: int, name: str) -> np.ndarray:
        """Return the numbers of the columns: no two of the lake have the same."""
        n_columns = _n_columns(self._arrays[number % len(self._arrays)])
        return np.arange(n_columns) + (number << 32)

    def texts(self, number: int, name: str) -> pa.Array:
        return self._names[number % len(self._arrays)]

    def deleted_mask(self, number: int) -> None:
        """No column is deleted."""

    def partition_entry(self, number: int) -> SimpleNamespace:
        """Return the sizes of the files of a partition, if they were files."""
        arrays = self._arrays[number % len(self._arrays)]
        return SimpleNamespace(
            files=[
                SimpleNamespace(path=f"{name}.npy", n_bytes=array.nbytes + 128)
                for name, array in arrays.items()
            ]
        )


def run_out_of_core(device: torch.device, clock: Clock, scale: float) -> dict[str, object]:
    """Search a lake three times as large as what it may take of the device."""
    n_values = PARTS * round(max(VALUES_OF_A_PART * scale, 400.0))
    measured = measure_out_of_core(device, clock, n_values, DIMENSIONS, PARTS)
    if not measured["agree"]:
        raise WrongAnswerError("A wrong answer: out of core: not those of resident partitions.")
    return {"data": OUT_OF_CORE, **measured}


def measure_out_of_core(
    device: torch.device,
    clock: Clock,
    n_values: int,
    dimensions: int,
    n_partitions: int,
    share: float = SHARE_ON_DEVICE,
) -> dict[str, object]:
    """Search a lake in the host's memory, of which a share has room on the device at a time."""
    arrays = [
        _arrays(device, n_values // n_partitions, dimensions, seed)
        for seed in range(min(N_DISTINCT, n_partitions))
    ]
    clock.say(f"out of core: {len(arrays)} partitions of {n_values // n_partitions:,} values built")
    queries = _queries(arrays)
    store, distinct = MemoryStore(arrays, n_partitions), MemoryStore(arrays, len(arrays))
    lake_bytes = (
        n_partitions
        // len(arrays)
        * sum(copied_bytes(distinct, number) for number in range(len(arrays)))
    )
    scan = _loader(store, device, int(share * lake_bytes))
    result: dict[str, object] = {
        "values": n_values,
        "dimensions": dimensions,
        "partitions": n_partitions,
        "room_bytes": int(share * lake_bytes),
        "lake_bytes": lake_bytes,
        "partitions_kept": len(scan.kept_numbers),
        "copies_ahead": scan.copies_ahead,
        **_ceilings(device),
    }
    resident = _loader(distinct, device, 1 << 62)
    right = [_counts_of(answer, n_partitions, len(arrays)) for answer in _search(resident, queries)]
    del resident
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    agree = _counts_of(_search(scan, queries[:1])[0]) == right[0]  # compiles, and copies what stays
    copied, seconds = [], []
    for _ in range(REPEATS):
        before = store.bytes_read
        seconds.append(seconds_to_answer(partial(_search, scan, queries[:1]), device))
        copied.append(store.bytes_read - before)
    one = float(np.median(seconds))
    result["copied_bytes"], result["one_seconds"] = max(copied), one
    rate = max(copied) / one
    result["copied_bytes_per_second"] = rate
    result["share_of_link"] = rate / result["pinned_copy_bytes_per_second"]
    clock.say(f"out of core: {rate / 1e9:.1f} GB/s, {result['share_of_link']:.0%} of the link")
    result["batch"], result["batch_seconds"] = len(queries), None
    if clock.enough("out of core: a batch", _BATCH_SECONDS):
        answers: list[list] = []
        before = store.bytes_read
        result["batch_seconds"] = seconds_to_answer(
            lambda: answers.extend(_search(scan, queries)), device
        )
        result["batch_copied_bytes"] = store.bytes_read - before
        agree &= [_counts_of(answer) for answer in answers] == right
    result["columns_found"], result["agree"] = sum(map(len, right)), bool(agree)
    if device.type == "cuda":
        result["peak_device_bytes"] = torch.cuda.max_memory_reserved(device)
    return result


def _n_columns(arrays: dict[str, np.ndarray]) -> int:
    return len(arrays["column_values_offsets"]) - 1


def _arrays(
    device: torch.device, n_values: int, dimensions: int, seed: int
) -> dict[str, np.ndarray]:
    """Build a partition on the device; columns are alike in fours."""
    n_columns = n_values // COLUMN_VALUES // LIKE_COLUMNS * LIKE_COLUMNS
    n_centres = n_columns // LIKE_COLUMNS * COLUMN_VALUES
    generator = torch.Generator(device).manual_seed(seed)
    draw = partial(torch.randn, device=device, generator=generator)
    centres = torch.nn.functional.normalize(draw((n_centres, dimensions)))
    vectors = torch.empty((n_columns * COLUMN_VALUES, dimensions), device=device)
    for piece in vectors.split(n_centres):
        noise = draw((n_centres, dimensions)) * (_SPREAD / dimensions**0.5)
        piece.copy_(torch.nn.functional.normalize(centres + noise))
    del centres, noise
    offsets = torch.arange(n_columns + 1, device=device) * COLUMN_VALUES
    rows = torch.arange(len(vectors), device=device)
    tensors, _ = build_tensors(vectors, offsets, rows, OPTIONS)
    return {name: tensor.numpy(force=True) for name, tensor in tensors.items()}


def _queries(parts: Sequence[dict[str, np.ndarray]]) -> list[AskedColumn]:
    """Take columns of every partition, in turn."""
    queries = []
    n_queries = min(N_BATCH, _n_columns(parts[0]))
    for turn, column in enumerate(np.linspace(0, _n_columns(parts[0]) - 1, n_queries).astype(int)):
        arrays = parts[turn % len(parts)]
        begin, end = arrays["column_values_offsets"][column : column + 2]
        rows = arrays["column_values_members"][begin:end].astype(np.int64)
        vectors = torch.from_numpy(arrays["vectors"][rows])
        ones = torch.ones(len(rows), dtype=torch.int64)
        query = BenchmarkQuery(f"column {column}", vectors, ones, len(rows), 0.0, 1)
        queries.append(asked_column(query))
    return queries


def _loader(store: MemoryStore, device: torch.device, room_bytes: int) -> PartitionLoader:
    """Return what searches with a budget that has so much room for partitions."""
    kernel = choose_kernel("torch" if device.type == "cpu" else "auto", device)
    budget = kernel.working_bytes + MAX_PAIRS * BYTES_A_PAIR + CHECK_BYTES + room_bytes
    loader = PartitionLoader(store, DenseSpace(OPTIONS), device, budget, kernel)
    loader.on_cpu = False  # also where the CPU stands for a device
    return loader


def _search(scan: PartitionLoader, queries: Sequence[AskedColumn]) -> list[list]:
    return [hits for hits, _ in search_store(scan, queries, [SEARCH_OPTIONS] * len(queries))]


def _counts_of(hits: list, n_partitions: int = 1, n_distinct: int = 1) -> set[tuple[int, int, int]]:
    """Return partition, column and count of hits, of each partition that holds the same arrays."""
    return {
        (number, hit.column_id & 0xFFFFFFFF, hit.matched)
        for hit in hits
        for number in (
            range(hit.partition, n_partitions, n_distinct) if n_partitions > 1 else (hit.partition,)
        )
    }


def _ceilings(device: torch.device) -> dict[str, float]:
    n_bytes, on_cuda = _CEILING_BYTES[device.type], device.type == "cuda"
    pinned = torch.empty(n_bytes, dtype=torch.uint8, pin_memory=on_cuda)
    target = torch.empty(n_bytes, dtype=torch.uint8, device=device)
    copy = partial(target.copy_, pinned, non_blocking=on_cuda)
    copy()
    return {"pinned_copy_bytes_per_second": n_bytes / device_seconds(copy, device, 7)}
