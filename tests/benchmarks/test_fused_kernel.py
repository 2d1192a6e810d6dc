"""Tests of the fused kernel of brute force: its machine code, its choices, and its answers."""

import os
import sys
from pathlib import Path

import pytest
from processes import ran

pytest.importorskip("triton", reason="the package triton is not installed")

ROOT = Path(__file__).resolve().parent.parent.parent

COMPILED = """
import sys
import torch
import triton.runtime.jit as jit
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from benchmarks.gpu.fused_kernel import PairFinder, configurations

class Hopper:
    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)
    def get_current_device(self):
        return 0
    def get_current_stream(self, device=None):
        return 0

made = []
run = jit.JITFunction.run

def compile_only(self, *arguments, grid, warmup, **options):
    made.append((self.fn.__name__, run(self, *arguments, grid=grid, warmup=True, **options)))

jit.JITFunction.run = compile_only
driver.set_active(Hopper())
precision = getattr(torch, sys.argv[1])
for n_queries, width in ((12, 50), (17, 50), (300, 300)):
    choices = configurations(n_queries, precision)
    assert len(set(choices)) == len(choices) > 0
    for choice in choices:
        finder = PairFinder(torch.ones((1000, width), dtype=precision), choice)
        queries = torch.ones((n_queries, width), dtype=precision)
        finder.launch(finder.prepare(queries, torch.ones(n_queries)))
        (tiles, first), (pairs, second) = made
        made.clear()
        assert (tiles, pairs) == ("_tiles_above_kernel", "_pairs_of_tiles_kernel")
        for program in (first, second):
            assert program.asm["cubin"]
            assert "cp.async.bulk.tensor" in program.asm["ptx"]
            assert ("wgmma" in program.asm["ptx"]) == (precision == torch.float16)
            # What a multiprocessor has for one program, less what the system keeps.
            assert program.metadata.shared <= 227 << 10, choice
        assert first.metadata.shared * choice.programs <= 227 << 10, choice
print("compiles")
"""

ANSWERS = """
import torch
from benchmarks.gpu import fused_kernel
from benchmarks.gpu.fused_kernel import Configuration, PairFinder, Tuner

generator = torch.Generator().manual_seed(0)
values = torch.nn.functional.normalize(torch.randn((300, 70), generator=generator), dim=1)
values[100:140] = values[100]
values[5] = 0
queries = torch.cat([values[95:115], values[:3] * 0.9, torch.zeros((1, 70))])
tiles = [None, Configuration(256, 32, 32, 4, 2, 1), Configuration(64, 16, 64, 4, 2, 3)]
for precision in (torch.float16, torch.float32):
    ours, theirs = queries.to(precision), values.to(precision)
    products = ours.float() @ theirs.float().T
    for low in (0.7, -0.1, -2.0):
        limits = torch.full((len(queries),), low)
        limits[3] = float("inf")
        close = (products - limits[:, None]).abs() < 1e-5
        right = products >= limits[:, None]
        for choice in tiles if precision == torch.float16 else tiles[:1]:
            finder = PairFinder(theirs, choice)
            for capacity, most in ((1 << 20, 1 << 26), (3, 2000)) if low < 0 else ((3, 1 << 26),):
                fused_kernel.MOST_PAIRS = most
                finder._allocate(capacity)
                rows, members, given = finder.find(ours, limits)
                found = torch.zeros_like(right)
                found[rows, members] = True
                assert len(rows) == int(found.sum())
                assert not ((found != right) & ~close).any(), (precision, low, choice, capacity)
                assert torch.allclose(given, products[rows, members], atol=1e-4)
    assert len(PairFinder(theirs[:0]).find(ours, limits)[0]) == 0
    assert len(PairFinder(theirs).find(ours[:0], limits[:0])[0]) == 0

from benchmarks.checking import normal_form
from benchmarks.datasets.calibrated import calibrated_model
from benchmarks.gpu.brute import run_brute_force
from benchmarks.gpu.lakes import ResidentLake, Wanted, make_lake
from benchmarks.gpu.timing import Clock
from pexeso.engine.options import PartitionLayoutOptions

lake = ResidentLake(calibrated_model("swdc"), 0.0002, torch.device("cpu"))
options = PartitionLayoutOptions(map="projection", n_axes=7)
make_lake(lake, Wanted(options, queries=3, batch=3), Clock(300))
right = [normal_form(answer) for answer in run_brute_force(lake, lake.queries, None).answers]
tuner = Tuner(0.0)
for _ in range(2):
    given = run_brute_force(lake, lake.queries, None, tuner)
    assert [normal_form(answer) for answer in given.answers] == right
    assert min(given.kernel_seconds) > 0
widths = [found["best"]["queries"] for found in tuner.tried]
assert 1 <= len(set(widths)) == len(widths) <= 2

def failing(*given):
    raise RuntimeError("no program for the test")

fused_kernel._seconds = failing
tuner = Tuner(60.0)
given = run_brute_force(lake, lake.queries, None, tuner)
assert [normal_form(answer) for answer in given.answers] == right
assert tuner.tried[0]["best"] is None
assert tuner.tried[0]["configurations"][0]["failed"] == "no program for the test"
print("agrees")
"""


def run(program: str, *arguments: str, interpreted: bool, cache: Path) -> str:
    environment = {
        **os.environ,
        "TRITON_INTERPRET": "1" if interpreted else "0",
        "TRITON_CACHE_DIR": str(cache),
        "OMP_NUM_THREADS": "1",
    }
    done = ran(
        [sys.executable, "-W", "error", "-c", program, *arguments], cwd=ROOT, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float16", "float32"])
def test_the_fused_kernel_compiles_for_hopper(precision, tmp_path):
    assert run(COMPILED, precision, interpreted=False, cache=tmp_path) == "compiles"


def test_the_fused_kernel_finds_what_a_product_finds(tmp_path):
    assert run(ANSWERS, interpreted=True, cache=tmp_path) == "agrees"
