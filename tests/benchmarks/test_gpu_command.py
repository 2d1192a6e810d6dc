"""Tests of the command for a GPU machine, run on the CPU at a small scale."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from long_runs import EVERYTHING
from processes import ran

from benchmarks.checking import normal_form
from benchmarks.datasets.calibrated import calibrated_model, plan_lake
from benchmarks.gpu import brute, checks, command, fitting, published
from benchmarks.gpu.brute import ProductFinder, run_brute_force
from benchmarks.gpu.dataset import measure_rivals, run_data_set
from benchmarks.gpu.fitting import fitting_scale
from benchmarks.gpu.lakes import ResidentLake, Run, Wanted, cut_plan, make_lake
from benchmarks.gpu.measure import joined, search
from benchmarks.gpu.neighbours import lack_of, pairs_by_neighbours
from benchmarks.gpu.page import run_text
from benchmarks.gpu.published import run_published
from benchmarks.gpu.timing import Clock
from pexeso.engine.dense.oracle import oracle_pairs
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.kernels.torch_kernel import TorchKernel
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.stats import SearchStats

ROOT = Path(__file__).resolve().parent.parent.parent
CPU = torch.device("cpu")
CEILINGS = {
    "copy_bytes_per_second": 1e9,
    "read_bytes_per_second": 1e9,
    "product_flop_per_second": 1e9,
}
OPTIONS = PartitionLayoutOptions(map="projection", n_axes=7)


class WrongKernel(TorchKernel):
    """Forgets the columns it finds."""

    def count(self, query, pairs, counts):
        counts = super().count(query, pairs, counts)
        counts.touched = counts.touched[:0]
        return counts


@pytest.fixture(autouse=True)
def little_reserve(monkeypatch):
    """These lakes are small, and so may be what other processes leave of the memory."""
    for module in (fitting, published):
        monkeypatch.setattr(module, "RESERVE_BYTES", 1 << 28)


@pytest.fixture
def few_checks(monkeypatch):
    monkeypatch.setattr(checks, "CASES", checks.CASES[3:4])


def run_program(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return ran(
        [sys.executable, "-c", program], cwd=ROOT, variables={"OMP_NUM_THREADS": "1", **environment}
    )


def test_the_command_runs_where_only_its_own_packages_are(tmp_path):
    # The lake of open data is made and searched as that of web tables is.
    data = ["swdc", "open", "words"] if EVERYTHING else ["swdc", "words"]
    program = f"""
import importlib.abc, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {{"pyspark", "py4j", "fasttext", "faiss", "pandas", \
"sklearn", "scipy", "tqdm", "yaml", "matplotlib",
                                       "threadpoolctl", "pytest"}}:
            raise ModuleNotFoundError(f"refused: {{name}}", name=name)

sys.meta_path.insert(0, Refuse())
import benchmarks.gpu.fused_kernel
from benchmarks.cli import main
from benchmarks.gpu import checks, fitting, published
fitting.RESERVE_BYTES = published.RESERVE_BYTES = 1 << 28
checks.CASES = checks.CASES[3:4]
main(["gpu", "--device", "cpu", "--data", {",".join(data)!r}, "--scale", "0.0005", "--budget", \
"5m", "--preset", "published", "--queries", "5", "--batch", "6", "--json", \
"--output", {str(tmp_path)!r}])
"""
    done = run_program(program)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for start in (
        "device: cpu",
        "correct: 1 cases",
        'ceilings: {"copy',
        "| `swdc` | one at a time | ",
        "| `swdc` | in a batch of 6, each | ",
        "| `swdc` | as published, 4,300 values | ",
        "paper: swdc: mean of 12.8 s",
        '{"data": "words"',
    ):
        assert any(line.startswith(start) for line in lines), start
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("cpu-")
    assert path.name.endswith("_published.json")
    written, whole = json.loads(path.read_text(encoding="utf-8")), json.loads(lines[-1])
    assert written.pop("origin")
    assert written == whole
    assert [data_set["data"] for data_set in whole["data"]] == data
    assert whole["data"][-1]["columns_found"] >= 20
    swdc = whole["data"][0]
    assert swdc["lake"]["values"] == 4300
    typical = swdc["typical"]
    assert [batch["queries"] for batch in typical["batches"]] == [1, 6]
    assert {round(size / 16.7) for size in typical["values_of_each"]} == {1}
    assert typical["checked"] == typical["single"]["queries"] == 5
    ways = {"fused", "fused_kernel", "fused_kernel_in_a_batch", "float32", "bfloat16", "float16"}
    assert {one["part"] for one in whole["left_out"]} >= {"kernel faiss", "swdc: faiss"}
    assert typical["brute"].keys() == typical["ratios"].keys() == ways
    (published,) = swdc["published"]
    assert published["lake"]["values"] == 4300
    assert "cell_codes" in published["lake"]["bytes_by_array"]
    assert published["pivots"] == published["checked"] == 5
    for figures in (
        typical["single"],
        typical["batches"][-1],
        *typical["brute"].values(),
        published["single"],
        published["brute"]["fused_kernel"],
    ):
        assert figures["share_of_roofline"] > 0
    assert published["single"]["host_share"] is typical["single"]["host_share"] is None


@pytest.mark.long
@pytest.mark.slow
def test_every_part_runs_on_a_simulated_gpu(tmp_path):
    program = f"""
import simulated_gpu
from benchmarks.cli import main
from benchmarks.gpu import ceilings, checks, command, dataset, fitting, published
from benchmarks.gpu import index, out_of_core
fitting.RESERVE_BYTES = published.RESERVE_BYTES = 1 << 28
dataset._SPARE_BYTES = 1 << 26
ceilings._PRODUCT_SIZE["cuda"], ceilings._COPY_BYTES["cuda"] = 256, 64 << 20
command.KERNELS["cuda"] = ("torch",)
checks.CASES = checks.CASES[3:4]
index.N_QUERIES, out_of_core.N_BATCH = 1, 2
index.REPEATS = out_of_core.REPEATS = out_of_core.VALUES_OF_A_PART = 1
out_of_core.PARTS = 6
main(["gpu", "--scale", "0.0005", "--budget", "60m", "--preset", "published", "--queries", "5",
      "--data", "swdc,index,out-of-core,words", "--batch", "6", "--output", {str(tmp_path)!r}])
"""
    done = run_program(program, PYTHONPATH=str(ROOT / "tests"), TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = tmp_path.iterdir()
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["failed"] == []
    assert [part["data"] for part in written["data"]] == [
        "swdc", "index, default", "index, published", "out-of-core", "words"
    ]  # fmt: skip
    assert written["data"][0]["published"][0]["checked"] == 5
    assert written["data"][3]["agree"]


def test_a_wrong_kernel_ends_the_command(few_checks, monkeypatch, tmp_path):
    monkeypatch.setattr(checks, "kernel_of", lambda name, device: WrongKernel())
    done = run_command("--device", "cpu", "--data", "swdc", "--output", str(tmp_path))
    assert done.exit_code == 1
    error = done.stderr
    assert "kernel torch, 16 dimensions, euclidean, projection, blocks" in error
    assert "is missing" in error
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_answer_on_a_data_set_is_found(monkeypatch):
    wanted = Wanted(OPTIONS, queries=5, batch=5)
    monkeypatch.setattr("benchmarks.gpu.dataset.choose_kernel", lambda name, device: WrongKernel())
    with pytest.raises(checks.WrongAnswerError, match="swdc"):
        run_data_set("swdc", run_of(Clock(300), 0.001, wanted), 1e6)


def test_what_was_measured_before_memory_ran_out_is_kept(monkeypatch):
    monkeypatch.setattr("benchmarks.gpu.dataset.run_brute_force", run_out)
    clock, wanted = Clock(300), Wanted(OPTIONS, queries=3, batch=3)
    result = run_data_set("swdc", run_of(clock, wanted=wanted), 1e6)
    assert list(result["typical"]) == ["values_of_each", "single", "batches"]
    assert clock.left_out[-1]["part"] == "the rest of swdc"
    machine = {"device": "cpu", "packages": {"torch": "2"}}
    facts = {"machine": machine, "checks": [], "ceilings": {}, "left_out": [], "seconds": 1.0}
    facts["paper_seconds"] = {}
    lines = run_text({**facts, "data": [result]}).splitlines()
    assert any(line.startswith("| `swdc` | one at a time | ") for line in lines)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA GPU")
def test_a_device_that_is_not_there_is_refused(tmp_path):
    done = run_command("--output", str(tmp_path))
    assert done.exit_code == 2
    assert "The device cuda was asked for" in done.stderr


def test_a_scale_that_leaves_too_few_columns_is_raised(monkeypatch):
    monkeypatch.setattr("benchmarks.gpu.dataset.make_lake", run_out)
    clock = Clock(300)
    run_data_set("open", run_of(clock), 1e6)
    assert clock.left_out[0] == {
        "part": "open at scale 0.0005",
        "reason": "too few columns; run at 0.000925926",
    }


def run_out(*given):
    raise torch.OutOfMemoryError("no room for the test")


def run_command(*arguments: str) -> Result:
    return CliRunner().invoke(command.gpu_command, list(arguments))


def run_of(clock: Clock, scale: float = 0.0005, wanted: Wanted | None = None) -> Run:
    return Run(wanted or Wanted(OPTIONS), scale, CPU, ("torch",), CEILINGS, clock)


def test_lakes_as_published_grow_while_there_is_time(monkeypatch):
    monkeypatch.setattr(published, "FIRST_VALUES", 1000)
    clock = Clock(300)
    runs = run_published("swdc", run_of(clock), 300.0)
    assert [run["lake"]["values"] for run in runs] == [1000, 4300]
    assert all(run["checked"] == 5 and run["ratios"]["fused"] > 0 for run in runs)
    assert len({run["levels"] for run in runs}) == 1
    assert clock.left_out == []
    runs = run_published("swdc", run_of(clock), clock.elapsed + 1e-3)
    assert [run["lake"]["values"] for run in runs] == [1000]
    assert clock.left_out[0]["part"] == "swdc as published, 4,300 values"
    assert run_published("swdc", run_of(clock), clock.elapsed - 1.0) == []


def test_a_wrong_answer_of_the_layout_as_published_is_found(monkeypatch):
    measure = published.measure_single

    def without_the_last(*arguments):
        figures, answers = measure(*arguments)
        return figures, [(columns[:-1], counts[:-1]) for columns, counts in answers]

    monkeypatch.setattr(published, "measure_single", without_the_last)
    with pytest.raises(checks.WrongAnswerError, match="swdc as published, 4,300 values"):
        run_published("swdc", run_of(Clock(300)), 300.0)


def test_a_grid_without_memory_is_left_out(monkeypatch):
    monkeypatch.setattr(published, "free_bytes", lambda device: 1000)
    clock = Clock(300)
    assert run_published("swdc", run_of(clock), 300.0) == []
    assert "GB of memory" in clock.left_out[0]["reason"]


def test_partitions_hold_the_whole_plan():
    plan = plan_lake(calibrated_model("swdc"), 0.002, 3)
    parts = list(cut_plan(plan, 4))
    assert len(parts) == 4
    assert torch.equal(torch.cat([part.original_sizes for part in parts]), plan.original_sizes)
    assert sorted(torch.cat([part.sizes for part in parts]).tolist()) == sorted(plan.sizes.tolist())
    assert len({part.seed for part in parts}) == 4
    for part in parts:
        assert int(part.source.min()) >= 0
        assert int(part.source.max()) < len(part.original_sizes)
        assert bool((part.sizes <= part.original_sizes[part.source.long()]).all())


@pytest.mark.parametrize("partition_values", [10**9, 1500])
def test_searches_of_a_resident_lake_give_what_brute_force_gives(partition_values):
    wanted = Wanted(OPTIONS, queries=12, batch=12, partition_values=partition_values)
    lake = ResidentLake(calibrated_model("swdc"), 0.0005, CPU)
    make_lake(lake, wanted, Clock(300))
    assert (len(lake.parts) == 1) == (partition_values > 10**8)
    assert lake.n_values == 4300
    kernel = choose_kernel("torch", CPU)
    answers = run_brute_force(lake, lake.queries, None).answers
    for query, own, right in zip(lake.queries, lake.columns, answers, strict=False):
        answer = normal_form(joined(lake, search(lake, query, kernel, SearchStats())))
        assert answer == normal_form(right)
        assert answer[own] == query.total


def small_lake() -> ResidentLake:
    lake = ResidentLake(calibrated_model("swdc"), 0.0005, CPU)
    make_lake(lake, Wanted(OPTIONS, queries=3, batch=3), Clock(300))
    return lake


def test_products_of_torch_must_give_the_right_answers():
    lake = small_lake()
    answers = run_brute_force(lake, lake.queries, None).answers
    figures = measure_rivals(lake, lake.queries, answers, Clock(300))
    neighbours = [] if lack_of(CPU) else ["faiss"]
    assert list(figures) == ["float32", "bfloat16", "float16", *neighbours]
    assert all(speed["queries"] == 3 and speed["median_seconds"] > 0 for speed in figures.values())
    columns, counts = answers[1]
    wrong = [answers[0], (columns, counts + 1), answers[2]]
    with pytest.raises(checks.WrongAnswerError, match="swdc, products in float32, column of"):
        measure_rivals(lake, lake.queries, wrong, Clock(300))


def test_products_without_room_are_left_out(monkeypatch):
    lake = small_lake()
    answers = run_brute_force(lake, lake.queries, None).answers
    monkeypatch.setattr("benchmarks.gpu.dataset.free_bytes", lambda device: 4 << 30)
    clock = Clock(300)
    assert list(measure_rivals(lake, lake.queries, answers, clock)) == ["float32"]
    assert clock.left_out[0]["part"] == "swdc: products in bfloat16"


def test_neighbours_of_others_must_give_the_right_answers():
    """Two neighbours at a time, of distances that are off by as much as TF32 may cost."""
    lake = small_lake()
    (part,) = lake.parts
    vectors, query = part.partition.vectors, lake.queries[0]

    def nearest(queries, count):
        squares = torch.cdist(queries, vectors).square()
        off = torch.rand(squares.shape, generator=torch.Generator().manual_seed(0)) - 0.5
        squares, rows = torch.topk(squares + off * 2.0**-9, count, largest=False)
        return squares, rows

    given = pairs_by_neighbours(nearest, vectors, query.vectors, query.tau)
    right = oracle_pairs(query.vectors, vectors, query.tau)[:2]
    pairs = [{tuple(pair) for pair in torch.stack(part, 1).tolist()} for part in (given, right)]
    assert pairs[0] == pairs[1]
    assert len(pairs[0]) >= len(query)


def test_a_part_that_fails_is_named_and_the_others_go_on(few_checks, monkeypatch, tmp_path):
    def fail(*arguments):
        raise RuntimeError("CUDA error: out of luck")

    monkeypatch.setattr(command, "run_out_of_core", fail)
    options = ("--device", "cpu", "--scale", "0.0005", "--output", str(tmp_path))
    done = run_command(*options, "--data", "out-of-core,words")
    assert done.exit_code == 2
    assert "left out: out-of-core: it failed: CUDA error: out of luck" in done.output
    (path,) = tmp_path.iterdir()
    result = json.loads(path.read_text(encoding="utf-8"))
    assert result["failed"] == ["out-of-core"]
    assert [part["data"] for part in result["data"]] == ["words"]


def test_zeros_behind_vectors_change_no_pair():
    lake = small_lake()
    vectors, query = lake.parts[0].partition.vectors, lake.queries[0]
    matches = []
    for width in (50, 64):
        piece = brute._Piece(0, vectors, brute.padded(vectors, width, torch.float32))
        rounded = piece.round(query.vectors)
        assert rounded.shape[1] == piece.rounded.shape[1] == width
        low, high = piece.limits(query.vectors, rounded, query.tau)
        match = brute._Match(
            ProductFinder(piece.rounded), piece, query.vectors, rounded, low, high, query.tau
        )
        matches.append({tuple(pair) for pair in torch.stack(match(), 1).tolist()})
    assert matches[0] == matches[1]
    assert len(matches[0]) >= len(query)


def test_what_does_not_fit_is_made_smaller_or_left_out():
    model = calibrated_model("open")
    assert fitting_scale(model, 1.0, 16, 75_000_000, 40 * 10**9) == 1.0
    assert fitting_scale(model, 1.0, 16, 75_000_000, 20 * 10**9) == 0.5
    assert fitting_scale(model, 1.0, 16, 75_000_000, 10**9) is None
