"""Tests that answers are the same on every machine.

The code that libraries choose for a processor and its layout of a partition do not matter.

A part of the demo lake is asked under one setting; in `make test-all` under all of them, compiled
loops included, and the whole demo lake is indexed and asked by commands under each.
"""

import json
import os
import sys
from functools import cache
from pathlib import Path

import answers_worker
import pytest
import torch
from long_runs import long_but
from processes import ran

from pexeso.engine import maps
from pexeso.engine.maps import choose_axes

WORKER = Path(__file__).with_name("answers_worker.py")
ROOT = WORKER.parent.parent.parent
OLD = {
    "OPENBLAS_CORETYPE": "Prescott",
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "MKL_CBWR": "COMPATIBLE",
    "OMP_NUM_THREADS": "1",
    "PEXESO_LOOPS": "portable",
}
SETTINGS = {
    "old kernels": OLD,
    "two threads": {
        "OMP_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "2",
        "MKL_NUM_THREADS": "2",
    },
    "avx2": {
        "OPENBLAS_CORETYPE": "Haswell",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
    "zen": {
        "OPENBLAS_CORETYPE": "Zen",
        "MKL_CBWR": "COMPATIBLE",
    },
    "no simd in numpy": {
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 X86_V3 AVX512_SKX AVX512F AVX2 FMA3",
    },
}
SHORT = ("old kernels",)
CORES = {"old kernels": "local[1]", "avx2": "local[16]"}
COMMANDS = (
    ("info",),
    ("search", "examples/my_autographs.csv:signed_by", "--auto"),
    ("search", "examples/my_suppliers.csv:supplier", "--min-precision", "0.99"),
    ("search", "examples/my_suppliers.csv:supplier", "--explain"),
    ("explain", "examples/my_autographs.csv:signed_by", "science/scientists.csv:name", "--auto"),
    ("search", "examples/my_suppliers.csv:supplier", "--method", "overlap"),
    ("search", "examples/my_suppliers.csv:supplier", "--method", "containment"),
)
TIMED = ("seconds", "cores", "created", "path", "bytes", "report", "committed", "work", "stats")


def environment(setting: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **setting}


demo_lake = cache(answers_worker.demo_lake)


@cache
def usual() -> str:
    return json.dumps(answers_worker.answers(*demo_lake()), sort_keys=True)


@pytest.mark.parametrize("name", long_but(SHORT, SETTINGS))
def test_answers_are_the_same_bits_under_other_kernels(name, tmp_path):
    done = ran([sys.executable, str(WORKER)], env=environment(SETTINGS[name]))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(usual())


def turned(
    vectors: torch.Tensor, n_axes: int, *, seed: int = 0, among: torch.Tensor | None = None
) -> torch.Tensor:
    """Return arbitrary axes, as a library may for eigenvectors of one eigenvalue, or worse."""
    drawn = torch.randn(
        vectors.shape[1], n_axes, generator=torch.Generator().manual_seed(7), dtype=torch.float64
    )
    return torch.linalg.qr(drawn)[0].T.contiguous()


def signs_turned(
    vectors: torch.Tensor, n_axes: int, *, seed: int = 0, among: torch.Tensor | None = None
) -> torch.Tensor:
    """Principal axes, every second one turned round, each some last bits off."""
    axes = choose_axes(vectors, n_axes, seed=seed, among=among)
    signs = torch.where(torch.arange(len(axes)) % 2 == 0, -1.0, 1.0)[:, None].double()
    noise = torch.randn(axes.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return axes * signs * (1 + 1e-15 * noise)


@pytest.mark.parametrize(
    "choose",
    long_but([turned], [turned, signs_turned]),
    ids=lambda function: function.__name__,
)
def test_answers_do_not_hang_on_the_axes_that_lay_rows_out(choose, monkeypatch):
    lake, values = demo_lake()
    before = lake.store(answers_worker.OPTIONS)
    monkeypatch.setattr(maps, "choose_axes", choose)
    after = lake.store(answers_worker.OPTIONS)
    rows = [store.array(0, "vectors").tobytes() for store in (before, after)]
    assert rows[0] != rows[1], "the rows must be laid out anew, or nothing is tried"
    assert json.dumps(answers_worker.answers(lake, values), sort_keys=True) == usual()


def without_times(answer: object) -> object:
    if isinstance(answer, dict):
        return {key: without_times(value) for key, value in answer.items() if key not in TIMED}
    return [without_times(part) for part in answer] if isinstance(answer, list) else answer


def outputs_of(name: str, folder: Path) -> dict[str, object]:
    """Index the demo lake and ask it, all by commands under one setting."""
    variables = environment(SETTINGS.get(name, {}))
    index = folder / "lake.pexeso"

    def run(*arguments: str) -> str:
        done = ran([sys.executable, "-m", "pexeso", *arguments], cwd=ROOT, env=variables)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    run(
        "index",
        "examples/lake",
        str(index),
        "--spark-master",
        CORES.get(name, "local[2]"),
        "--include",
        "containment",
    )
    outputs = {}
    for command, *arguments in COMMANDS:
        outputs[" ".join([command, *arguments])] = without_times(
            json.loads(run(command, str(index), *arguments, "--json"))
        )
    return outputs


@pytest.mark.long
def test_commands_on_the_demo_lake_answer_alike_under_every_setting(tmp_path):
    expected = outputs_of("as it is", tmp_path / "usual")
    for name in SETTINGS:
        assert outputs_of(name, tmp_path / name.replace(" ", "_")) == expected, name
