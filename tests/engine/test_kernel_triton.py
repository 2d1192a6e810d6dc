"""Tests of the Triton kernel: brute force, compilation for a Hopper GPU, and requirements."""

import math
import os
import sys
from pathlib import Path

import pytest
import torch
from long_runs import long_but
from processes import ran

from pexeso.engine.metrics import tree_sum
from pexeso.errors import DeviceError

pytest.importorskip("triton", reason="the package triton is not installed")

HERE = Path(__file__).resolve().parent


RUNS = {
    "programs": (
        "1",
        "triton_in_interpreter.py",
        "tests/engine/triton_grids_in_interpreter.py",
    ),
    "answers": ("1", "test_engine_invariance.py", "-k", "triton and (64 or grid)"),
    "pairs": (
        "1",
        "test_engine_kernels.py",
        "-k",
        "triton and (true_pairs or batch_of_zero or left_for_the_next)",
    ),
    "machine code": ("0", "triton_for_hopper.py"),
    "copies to a simulated GPU": (
        "1",
        "../semantic/test_partitions_on_a_device.py",
        *("-p", "simulated_gpu", "-m", "gpu", "-k", "torch and GPU-2"),
    ),
    "recorded on a simulated GPU": ("1", "test_kernel_recorded.py", "-p", "simulated_gpu"),
}
"""What runs in a process of its own.

For each run: whether in Triton's interpreter, the file, and which of its tests or which other file.
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", long_but(["programs", "copies to a simulated GPU"], RUNS))
def test_in_a_process_of_its_own(name):
    """Triton decides when it is imported whether its interpreter runs."""
    interpreted, file, *chosen = RUNS[name]
    environment = {**os.environ, "TRITON_INTERPRET": interpreted, "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(HERE.parent)
    quick = ["-p", "quick_interpreter"] if interpreted == "1" else []
    options = ["-q", "-x", "-p", "no:cacheprovider", *quick]
    command = [sys.executable, "-m", "pytest", *options, str(HERE / file), *chosen]
    done = ran(command, cwd=HERE.parent.parent, env=environment)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.parametrize("dims", [1, 2, 3, 7, 16, 50, 100, 300, 1000])
def test_neighbours_add_up_as_the_defining_tree_does(dims):
    from pexeso.engine.kernels.triton.search import tree_places

    places = torch.from_numpy(tree_places(dims)).long()
    terms = (
        torch.rand((20, dims), generator=torch.Generator().manual_seed(dims), dtype=torch.float64)
        ** 9
    )
    laid_out = torch.where(places >= 0, terms[:, places.clamp(min=0)], 0.0)
    while laid_out.shape[1] > 1:
        laid_out = laid_out.reshape(20, -1, 2).sum(2)
    assert torch.equal(laid_out[:, 0], tree_sum(terms))


@pytest.mark.parametrize(
    "tau", [0.0, 5e-324, 1e-200, 1e-160, 1e-30, 1e-8, 0.1, 0.12, 1.0, math.sqrt(2.0), 2.0]
)
def test_the_largest_square_is_the_last_whose_root_is_within_tau(tau):
    from pexeso.engine.metrics import largest_square

    square = largest_square(tau)
    assert math.sqrt(square) <= tau < math.sqrt(math.nextafter(square, math.inf))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA GPU")
@pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter runs the programs anywhere"
)
def test_it_is_refused_where_there_is_no_gpu():
    from pexeso.engine.kernels.choice import choose_kernel

    with pytest.raises(
        DeviceError, match="The kernel triton needs a CUDA GPU, and torch finds none"
    ):
        choose_kernel("triton", torch.device("cpu"))
