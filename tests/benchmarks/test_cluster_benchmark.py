"""The benchmark of a cluster: its meter, its arithmetic, its verdict, and one small run."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import psutil
import pytest
from click.testing import CliRunner

from benchmarks import report
from benchmarks.cli import main
from benchmarks.cluster import command, running
from benchmarks.cluster.arithmetic import A_BILLION, constants_of, scaled
from benchmarks.cluster.processes import Reading, Tree, memory_of, metered, read_processes
from benchmarks.cluster.programs import end_tree, run_pexeso
from benchmarks.cluster.running import Setup, answers_in, arithmetic, differences, kind_of_file
from benchmarks.declared_results import known_results
from pexeso.errors import InputError

ROOT = Path(__file__).resolve().parents[2]

# Works for 0.3 s; its child for 0.4 s; a child of that, which nobody waits for, for 0.5 s.
FAMILY = """
import os, subprocess, sys, time

def work(seconds):
    while time.process_time() < seconds:
        pass

done = __file__ + ".done"
if len(sys.argv) == 1:
    work(0.3)
    subprocess.run([sys.executable, __file__, "child"], check=True)
    while not os.path.exists(done):  # however busy the machine is
        time.sleep(0.02)
    time.sleep(0.6)
else:
    work(0.4)
    if os.fork() == 0:
        work(0.5)  # the time of a new process begins at nothing
        open(done, "w").close()
        time.sleep(1.0)
        os._exit(0)
    time.sleep(0.2)
"""


def test_a_meter_counts_children_and_those_that_were_left_behind(tmp_path):
    program = tmp_path / "family.py"
    program.write_text(FAMILY)
    process = subprocess.Popen([sys.executable, str(program)])
    with metered({"it": process.pid}, interval=0.05) as meter:
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        waited = usage.ru_utime + usage.ru_stime
        meter.sample()
        meter.trees["it"].end(waited)
    assert waited < 1.1  # what the system charges lacks the one that was left behind
    assert waited + 0.35 < meter.seconds()["it"] < waited + 0.6
    assert meter.peak_bytes["it"] > 5_000_000


def reading(pid, parent, own, waited=0.0):
    return {pid: Reading((pid, 0), parent, own, waited)}


def test_a_child_that_ended_counts_as_what_its_parent_was_charged():
    tree = Tree(1)
    tree.update(reading(1, 0, 1.0) | reading(2, 1, 2.0))
    assert tree.seconds == 3.0
    tree.update(reading(1, 0, 1.0, 2.5))  # it worked on for half a second before it ended
    assert tree.seconds == 3.5
    tree.update(reading(1, 0, 1.0, 2.75))  # one that no sample saw
    assert tree.seconds == 3.75


def test_a_child_that_nobody_waits_for_counts_as_what_was_seen():
    tree = Tree(1)
    tree.update(reading(1, 0, 1.0) | reading(2, 1, 2.0) | reading(3, 2, 4.0))
    tree.update(reading(1, 0, 1.0, 2.0) | reading(3, 99, 5.0))
    assert tree.seconds == 8.0
    tree.update(reading(1, 0, 1.0, 2.0))
    assert tree.seconds == 8.0
    tree.update(reading(1, 0, 1.5, 2.0) | reading(3, 1, 0.25))  # its number is used again
    assert tree.seconds == 8.5


def test_processes_and_memory_are_those_of_the_system():
    own = psutil.Process()
    process = read_processes()[own.pid]
    assert process.parent == own.ppid()
    times = own.cpu_times()
    assert process.own == pytest.approx(times.user + times.system, abs=0.5)
    assert memory_of(own.pid) == pytest.approx(own.memory_full_info().pss, rel=0.1)
    assert memory_of(2**22 + 1) == 0


def build_of(n, fixed):
    """Return what a build of n tables took, at 2 s a table, 3 ms a pair, and something fixed."""
    stages = {
        "read": {"processor_seconds": fixed + 2.0 * n, "driver_processor_seconds": fixed},
        "partition": {"processor_seconds": fixed + 0.3 * n, "driver_processor_seconds": 0.1 * n},
        "between": {"processor_seconds": 1000.0, "driver_processor_seconds": 1000.0},
    }
    return {
        "stages": stages,
        "counts": {"tables": n, "columns": 10 * n, "values": 50 * n, "pairs": 100 * n},
        "index_bytes": {
            "partitions/texts.arrow": 1000 * n,
            "partitions/column_values_members.npy": 800 * n,
            "catalog/columns.parquet": 70 * n,
            "embedder/words.arrow": 12345,
        },
        "scratch_bytes": 4000 * n,
    }


def test_constants_are_what_one_more_takes():
    alone, less = (
        constants_of(build_of(100, 50.0)),
        constants_of(build_of(100, 50.0), build_of(10, 50.0)),
    )
    assert alone["seconds"]["read"] == {"of": "tables", "each": 2.5, "driver": 0.5}
    assert less["seconds"]["read"] == {"of": "tables", "each": 2.0, "driver": 0.0}
    assert less["seconds"]["partition"]["each"] == pytest.approx(0.003)
    assert less["seconds"]["partition"]["driver"] == pytest.approx(0.001)
    assert "between" not in alone["seconds"]
    assert alone["bytes"] == {
        "per_value": 20.0, "per_pair": 8.0, "per_column": 7.0, "scratch_per_pair": 40.0
    }  # fmt: skip
    assert less["bytes"] == alone["bytes"]


def test_a_billion_columns_are_products():
    estimate = scaled(constants_of(build_of(100, 50.0), build_of(10, 50.0)))
    assert estimate["assumed"] == {**A_BILLION, "workers": 40, "cores": 640}
    read, partition = estimate["stages"]["read"], estimate["stages"]["partition"]
    assert read["core_seconds"] == pytest.approx(2 * 100e6)
    assert read["minutes"] == pytest.approx(2 * 100e6 / 640 / 60, abs=0.01)
    assert partition["core_seconds"] == pytest.approx(0.003 * 30e9)
    assert partition["driver_minutes"] == pytest.approx(0.001 * 30e9 / 60, abs=0.01)
    assert estimate["core_seconds"] == pytest.approx(2 * 100e6 + 0.003 * 30e9)
    assert estimate["index_bytes"] == 20 * 12_300_000_000 + 8 * 30_000_000_000 + 7 * 1_000_000_000
    assert estimate["scratch_bytes"] == 40 * 30_000_000_000


def test_every_kind_of_difference_is_named():
    truth = [{("t", "a"): 3, ("t", "b"): 2}, {}, {("u", "a"): 1}]
    assert differences(truth, truth, "here") == []
    answers = [{("t", "a"): 4}, {("t", "c"): 1}, {("u", "a"): 1}]
    reported = [
        (difference["query"], difference["column"], difference["expected"], difference["found"])
        for difference in differences(truth, answers, "here")
    ]
    assert reported == [(0, "a", 3, 4), (0, "b", 2, None), (1, "c", None, 1)]
    assert differences(truth, truth[:2], "here") == [
        {"way": "here", "expected_lines": 3, "found_lines": 2}
    ]


def test_answers_are_read_and_a_refused_query_has_none(tmp_path):
    lines = [
        {"id": 0, "results": [{"table": "t", "column": "a", "matched": 2, "total": 4}]},
        {"id": 1, "error": "no values"},
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert answers_in(path) == [{("t", "a"): 2}, {}]


def test_files_of_all_partitions_are_one_kind():
    names = ["partitions/00000/texts.arrow", "partitions/00012/texts.arrow", "manifest.json"]
    assert {kind_of_file(Path(name)) for name in names} == {
        "partitions/texts.arrow",
        "manifest.json",
    }


def test_a_program_that_fails_is_told_with_what_it_said(tmp_path):
    with pytest.raises(InputError, match=r"exit status 1 and said:\s.*nowhere"):
        run_pexeso(["info", tmp_path / "nowhere"], tmp_path / "log")


def test_a_program_is_ended_with_its_children(tmp_path):
    program = "import subprocess, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (children := psutil.Process(process.pid).children()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    end_tree(process)
    assert process.returncode == -signal.SIGTERM
    assert not children[0].is_running()


def test_sigterm_ends_a_run_as_an_exception_does():
    with pytest.raises(SystemExit) as ended, command.ended_by_sigterm():
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 128 + signal.SIGTERM


def result_of(columns, agree=True):
    """Return a result as a run makes it, of a lake of some columns."""
    build = build_of(columns // 10, 50.0)
    ran = {
        "seconds": 9.0,
        "processor_seconds": {"all": 12.0, "driver": 3.0},
        "peak_bytes": {"driver": 10**9, "together": 2 * 10**9},
        "peak_disk_bytes": {"scratch": build["scratch_bytes"]},
    }
    stages = {name: {"seconds": 1.0, **stage} for name, stage in build["stages"].items()}
    counts = build["counts"]
    result = {
        "lake": {
            "columns": columns,
            "tables": counts["tables"],
            "pairs": 1,
            "values": 1,
            "bytes": 1,
        },
        "index": {**counts, "bytes": 10**6, "bytes_by_kind": build["index_bytes"]},
        "build": {**ran, "stages": stages},
        "batch": {"cluster": ran, "here": ran},
        "agree": agree,
        "answers": 7,
        "differences": 0 if agree else 1,
        "first_differences": [] if agree else [{"way": "here", "query": 3}],
    }
    return result | arithmetic(result, None)


def test_the_smaller_lake_of_a_result_is_taken_off():
    figures = arithmetic(result_of(1000), result_of(100))
    assert figures["constants"]["less_those_of_columns"] == 100
    assert figures["constants"]["seconds"]["read"]["each"] == 2.0
    alike = figures["a_billion_columns"]["like_this_lake"]["assumed"]
    assert alike["tables"] == 100_000_000
    assert alike["pairs"] == 10_000_000_000


@pytest.mark.parametrize(("agree", "status"), [(True, 0), (False, 1)])
def test_the_command_tells_and_keeps_a_result(agree, status, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "run", lambda *given: result_of(100, agree))
    done = CliRunner().invoke(main, ["cluster", "--columns", "100", "--write"])
    assert done.exit_code == status, done.output
    assert ("all as in the truth" in done.output) == agree
    assert ('Differs: {"way": "here", "query": 3}' in done.output) != agree
    kept = json.loads((tmp_path / "cluster" / f"{Setup(columns=100).name}.json").read_text())
    assert {"origin", "machine", "a_billion_columns"} <= kept.keys()


def test_what_is_declared_is_what_the_commands_write():
    declared = [entry for entry in known_results() if entry.name == "cluster" and entry.commands]
    assert len(declared) == 2
    for entry in declared:
        (line,) = entry.commands
        name, *arguments = shlex.split(line.removeprefix("python -m benchmarks "))
        known = command.cluster_command.make_context(
            name, [word for word in arguments if not word.endswith(".json") and word != "--less"]
        ).params
        fields = {key: known[key] for key in ("columns", "queries", "workers", "partitions")}
        assert entry.holds(Path("cluster", f"{Setup(**fields).name}.json"))


@pytest.mark.parametrize(
    ("arguments", "said"), [(["--columns", "120"], "multiple of 50"), (["--workers", "0"], "0")]
)
def test_what_cannot_be_made_is_refused(arguments, said):
    done = CliRunner().invoke(main, ["cluster", *arguments])
    assert done.exit_code == click.UsageError.exit_code
    assert said in done.output


@pytest.mark.spark
@pytest.mark.long
def test_a_small_run_agrees_and_leaves_no_process(tmp_path):
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    setup = Setup(
        columns=500,
        queries=20,
        workers=1,
        partitions=1,
        executor_memory="600m",
        driver_memory="700m",
        conf=("spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",),
    )
    result = running.run(setup, tmp_path, lambda text: None)
    assert result["agree"], result["first_differences"]
    assert result["answers"] > 60
    assert {way: batch["answers"] for way, batch in result["batch"].items()} == {
        "cluster": result["answers"],
        "here": result["answers"],
    }
    assert {"start", "read", "index"} <= result["build"]["stages"].keys()
    assert result["build"]["processor_seconds"]["worker0"] > 1
    assert result["build"]["stages"]["read"]["reported"]["tasks"] >= 1
    assert result["build"]["peak_bytes"]["worker0"] > 10**8
    after = {process.pid for process in psutil.Process().children(recursive=True)}
    assert after <= before
