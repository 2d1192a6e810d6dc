"""Compilation of every Triton program for a Hopper GPU, on a machine without one.

`test_kernel_triton` runs this file in a process of its own.

Triton's interpreter takes programs that its compiler refuses. Here the searches run as they would
on CUDA, up to the launches: what would be launched is compiled, with the types and constants of the
real arguments, down to machine code.
"""

import itertools

import numpy as np
import pytest
import torch
import triton.runtime.jit as jit
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from pexeso.engine.dense.building import build_partition
from pexeso.engine.dense.search import BatchQuery, Goal, search_batch_partition, search_partition
from pexeso.engine.kernels.triton import kernel as triton_kernel
from pexeso.engine.kernels.triton import lists
from pexeso.engine.kernels.triton import search as walk
from pexeso.engine.maps import ProjectionMap
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats

PROGRAMS = {
    "walk_level",
    "test_rows",
    "multiply_tiles",
    "decide_rows",
    "group_matches",
    "add_weights",
    "take_counts",
    "prepare_values",
}
GROUPED = {"walk_pairs", "count_blocks", "group_pairs", "test_blocks"}
"""Under a projection."""


class Hopper:
    """As much of a driver as compiling needs."""

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """Compiled programs by name, filled as they would be launched."""
    made: dict[str, list[object]] = {}
    run = jit.JITFunction.run

    def compile_only(self, *arguments, grid, warmup, **options):
        program = run(self, *arguments, grid=grid, warmup=True, **options)
        made.setdefault(self.fn.__name__, []).append(program)

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jit.JITFunction, "run", compile_only)
    monkeypatch.setattr(triton_kernel, "INTERPRETED", True)
    monkeypatch.setattr(lists, "INTERPRETED", True)
    # The process ends with this file, and with it this driver.
    driver.set_active(Hopper())
    return made


@pytest.mark.parametrize(
    ("map_name", "cells", "dims"),
    [("projection", "blocks", 50), ("pivots", "blocks", 300), ("pivots", "grid", 50)],
)
def test_programs_compile_for_hopper(compiled, monkeypatch, map_name, cells, dims):
    monkeypatch.setattr(walk, "DENSE_UNITS", 0)
    options = PartitionLayoutOptions(
        map=map_name,
        cells=cells,
        n_axes=15 if cells == "grid" or map_name == "projection" else None,
    )
    vectors = np.random.default_rng(0).normal(size=(2000, dims))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    arrays, _ = build_partition(vectors, np.arange(0, 2001, 50), np.arange(2000), options)
    partition, kernel = Partition.from_arrays(arrays, options), triton_kernel.TritonKernel()
    for n, accepts in itertools.product((10, 1100), (False, True)):
        # Where blocks may match whole, products of codes take no part.
        monkeypatch.setattr(ProjectionMap, "may_accept", lambda *_, accepts=accepts: accepts)
        query, ones = torch.from_numpy(vectors[:n]), torch.ones(n, dtype=torch.int64)
        search_partition(partition, query, ones, n, Goal(0.06), SearchStats(), kernel=kernel)
        batch = [BatchQuery(torch.arange(n), ones, 1)]
        search_batch_partition(partition, query, batch, 0.06, SearchStats(), kernel=kernel)
    assert set(compiled) == PROGRAMS | (GROUPED if map_name == "projection" else set())
    for name, programs in compiled.items():
        assert all(program.asm["cubin"] for program in programs)
        products = [("wgmma" in program.asm["ptx"]) for program in programs]
        assert all(products) == any(products) == (name == "multiply_tiles")
        matrix_units = [("mma.sync" in program.asm["ptx"]) for program in programs]
        assert all(matrix_units) == any(matrix_units) == (name == "test_blocks")
