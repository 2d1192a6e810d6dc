"""Both engines leave the same bytes: one process, processes of this machine, and Spark."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import psutil
import pytest
from long_runs import long_but

import pexeso
from pexeso.build import job, workers
from pexeso.build.workers import LocalWorkers, Needs, SparkWorkers, run_tasks
from pexeso.errors import BuildError, InputError, LakeError, MissingPackageError, SparkError

PARTS = ("overlap", "containment", "composite", "redundancy")


def bytes_of(index: Path) -> dict[str, bytes]:
    """Return what is in the files of an index but for times, whatever folders they lie in."""
    manifest = json.loads((index / "manifest.json").read_text(encoding="utf-8"))
    folders = [*manifest["catalogs"], manifest["embedder"]]
    folders += [entry for entries in manifest["parts"].values() for entry in entries]
    contents = {}
    for number, folder in enumerate(folders):
        for file in folder["files"]:
            if file["path"] != "report.json":
                content = (index / folder["folder"] / file["path"]).read_bytes()
                contents[f"{number}/{file['path']}"] = content
    return contents


@pytest.fixture
def lake(small_lake, tmp_path):
    folder = tmp_path / "lake"
    shutil.copytree(small_lake, folder)
    rows = "".join(f"Rome,{number % 3},{number}.5\n" for number in range(40))
    (folder / "more.csv").write_text(f"city,n,share\n{rows}", encoding="utf-8")
    return folder


def report_of(index: Path) -> dict:
    [path] = index.glob("catalog*/report.json")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def no_spark(monkeypatch):
    """See that nothing starts Spark."""

    def start(*_, **__):
        raise AssertionError("Spark was started")

    monkeypatch.setattr(job, "has_session", lambda: False)
    monkeypatch.setattr(job, "spark_session", start)
    return monkeypatch


def written_by(engine: str, lake: Path, index: Path, monkeypatch, **options) -> dict[str, bytes]:
    """Build an index; by ``pool`` every task is one of another process."""
    with monkeypatch.context() as patched:
        if engine == "pool":
            patched.setattr(workers, "HERE_BYTES", -1)
            patched.setattr(workers, "LITTLE_BYTES", -1)
        pexeso.build_index(lake, index, engine="spark" if engine == "spark" else "local", **options)
    return bytes_of(index)


OPTIONS = {
    "one partition": {"parts": ("overlap",)},
    "every part": {"parts": PARTS, "n_partitions": 2},
    "vectors": {"model": "hashing", "dimensions": 16, "n_partitions": 2},
}


@pytest.mark.parametrize("name", long_but(["every part"], OPTIONS))
def test_one_process_and_many_leave_the_same_bytes(lake, tmp_path, monkeypatch, name):
    here, pool = (
        written_by(engine, lake, tmp_path / engine, monkeypatch, **OPTIONS[name])
        for engine in ("here", "pool")
    )
    assert here == pool
    reports = [report_of(tmp_path / engine) for engine in ("here", "pool")]
    assert [report["facts"]["master"] for report in reports] == ["none", "none"]
    counts = [
        {stage["stage"]: stage.get("rows_out") for stage in report["stages"]} for report in reports
    ]
    assert counts[0] == counts[1]
    assert counts[0]["read"] > 0


@pytest.mark.parametrize("name", long_but(["every part", "vectors"], OPTIONS))
def test_spark_leaves_the_bytes_of_this_machine(lake, tmp_path, spark, monkeypatch, name):
    aliases = tmp_path / "aliases.csv"
    aliases.write_text("alias,name\nRoma,Rome\n", encoding="utf-8")
    here, there = (
        written_by(engine, lake, tmp_path / engine, monkeypatch, aliases=aliases, **OPTIONS[name])
        for engine in ("here", "spark")
    )
    assert here == there
    assert report_of(tmp_path / "spark")["facts"]["master"] == "local[2]"


def updated(lake: Path, index: Path, engine: str) -> list[dict[str, bytes]]:
    """Do each kind of update to an index of the lake, and return the bytes after each."""
    opened = pexeso.build_index(lake, index, engine=engine)
    (lake / "new.csv").write_text("town,n\nOslo,1\nLima,2\nBern,3\nKyiv,4\nRiga,5\n")
    (lake / "more.csv").write_text("city\nOslo\nLima\nCairo\nRome\nParis\n", encoding="utf-8")
    (lake / "old.zip").write_bytes(b"half of an archive")
    after = []
    for update in (
        opened.append,
        partial(opened.add_parts, PARTS),
        partial(opened.add_model, "hashing", dimensions=8),
        partial(opened.append, delete_missing=True),
        partial(opened.compact, everything=True),
    ):
        update(engine=engine)
        after.append(bytes_of(index))
        (lake / "new.csv").unlink(missing_ok=True)
    return after


@pytest.mark.parametrize("way", long_but(["spark"], ["pool", "spark"]))
def test_updates_leave_the_same_bytes(lake, tmp_path, spark, monkeypatch, way):
    again = tmp_path / "again"
    shutil.copytree(lake, again)
    here = updated(lake, tmp_path / "here", "local")
    shutil.rmtree(lake)
    shutil.copytree(again, lake)
    if way == "pool":
        monkeypatch.setattr(workers, "HERE_BYTES", -1)
        monkeypatch.setattr(workers, "LITTLE_BYTES", -1)
    there = updated(lake, tmp_path / "there", "spark" if way == "spark" else "local")
    assert [len(files) for files in here] == [len(files) for files in there]
    for one, other in zip(here, there, strict=True):
        times = {name for name in one if "tables-" in name}  # files have other times of change
        assert {name: one[name] for name in one if name not in times} == {
            name: other[name] for name in other if name not in times
        }


@pytest.mark.parametrize("setup", [{"master": "local[1]"}, {"conf": {"spark.ui.enabled": "false"}},
                                   {"engine": "spark"}])  # fmt: skip
def test_who_names_spark_gets_spark(lake, tmp_path, no_spark, setup):
    with pytest.raises(AssertionError, match="Spark was started"):
        pexeso.build_index(lake, tmp_path / "index.pexeso", **setup)


def test_a_session_that_is_active_is_used(lake, tmp_path, no_spark):
    no_spark.setattr(job, "has_session", lambda: True)
    with pytest.raises(AssertionError, match="Spark was started"):
        pexeso.build_index(lake, tmp_path / "index.pexeso")
    pexeso.build_index(lake, tmp_path / "index.pexeso", engine="local")


@pytest.mark.parametrize(
    ("lake_name", "setup", "said"),
    [
        (None, {"engine": "local", "master": "local[1]"}, "takes no master or settings of Spark"),
        (None, {"engine": "local", "conf": {"a": "b"}}, "takes no master or settings of Spark"),
        ("sales.orders", {"engine": "local"}, "'spark:sales.orders' is a table of Spark: use the"),
        (None, {"engine": "ray"}, "engine must be one of auto, local, spark. Got 'ray'"),
    ],
)
def test_an_engine_that_cannot_is_refused(lake, tmp_path, monkeypatch, lake_name, setup, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        pexeso.build_index(lake_name or lake, tmp_path / "index.pexeso", **setup)
    assert not (tmp_path / "index.pexeso").exists()


def test_without_the_package_of_spark_the_way_out_is_named(lake, tmp_path, monkeypatch):
    monkeypatch.setattr(job.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"'pexeso\[spark\]', or build with the engine"):
        pexeso.build_index(lake, tmp_path / "index.pexeso", engine="spark")
    with pytest.raises(MissingPackageError, match=r"'pexeso\[spark\]'$"):
        pexeso.build_index(lake, tmp_path / "index.pexeso", master="spark://host:7077")


def test_a_build_that_was_stopped_here_goes_on_on_spark(lake, tmp_path, spark, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(job, "write_folder", stopped)
        with pytest.raises(KeyboardInterrupt):
            pexeso.build_index(lake, tmp_path / "here.pexeso", engine="local")
    pexeso.build_index(lake, tmp_path / "here.pexeso", engine="spark")
    pexeso.build_index(lake, tmp_path / "spark.pexeso", engine="spark")
    assert "read" in report_of(tmp_path / "here.pexeso")["facts"]["taken_up"]
    assert bytes_of(tmp_path / "here.pexeso") == bytes_of(tmp_path / "spark.pexeso")


def stopped(item, attempt, *, fill):
    raise KeyboardInterrupt


def test_a_spark_that_cannot_be_started_leaves_nothing(lake, tmp_path, no_spark):
    def start(*_, **__):
        raise SparkError("no Java")

    no_spark.setattr(job, "spark_session", start)
    with pytest.raises(SparkError, match="no Java"):
        pexeso.build_index(lake, tmp_path / "index.pexeso", engine="spark")
    assert not (tmp_path / "index.pexeso").exists()


def doubled(number, attempt):
    attempt.path("numbers", "one.txt").write_text(str(2 * number), encoding="utf-8")
    time.sleep(0.01 * (number % 3))
    return 2 * number, os.getpid()


def require_doubled(tasks, folder, n):
    results, sums = run_tasks(tasks, doubled, range(n), folder, Needs(alone=True))
    assert [result for result, _ in results] == [2 * number for number in range(n)]
    texts = [(folder / "numbers" / f"{number:05d}-one.txt").read_text() for number in range(n)]
    assert texts == [str(2 * number) for number in range(n)]
    assert not (folder / "attempts").exists()
    assert sums["tasks"] == n
    return {process for _, process in results}


def test_processes_share_the_items_and_keep_their_order(tmp_path):
    with LocalWorkers(2) as tasks:
        processes = require_doubled(tasks, tmp_path, 9)
        assert require_doubled(tasks, tmp_path, 5) <= processes
    assert len(processes) == 2
    assert os.getpid() not in processes
    assert not any(map(psutil.pid_exists, processes))


def test_spark_keeps_the_order_of_items(tmp_path, spark):
    with SparkWorkers(lambda: nullcontext(spark)) as tasks:
        assert os.getpid() not in require_doubled(tasks, tmp_path, 5)
        assert tasks.facts == {"master": "local[2]", "cores": 2}


def fail(number, attempt, *, way):
    attempt.path("numbers", "one.txt").write_text("half", encoding="utf-8")
    if way == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "left":
        os._exit(3)
    raise FAILURES[way]


FAILURES = {
    "own": LakeError("There is no such lake."),
    "other": ValueError("Odd number.\nAnd more."),
    "full": OSError(errno.ENOSPC, "No space left on device"),
    "memory": MemoryError(),
}


@pytest.mark.parametrize(
    ("way", "kind", "said"),
    [
        ("killed", BuildError, "A process of this build was killed by SIGKILL before its task was "
         "done, most often for want of memory. Free some memory, give "),
        ("left", BuildError, "A process of this build ended with exit code 3 before its task was"),
        ("own", LakeError, "There is no such lake."),
        ("other", BuildError, "A task of this build failed: ValueError: Odd number."),
        ("full", OSError, "No space left on device"),
        ("memory", MemoryError, ""),
    ],
)  # fmt: skip
def test_a_task_that_fails_is_one_sentence(tmp_path, way, kind, said):
    with pytest.raises(kind) as caught, LocalWorkers(2) as tasks:
        run_tasks(tasks, partial(fail, way=way), range(2), tmp_path, Needs(alone=True))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "numbers").exists()


ALONE = """
import sys, time
from pathlib import Path
from pexeso.build.workers import LocalWorkers, Needs, run_tasks
from test_engines import sleeping

with LocalWorkers(2) as tasks:
    run_tasks(tasks, sleeping, [sys.argv[1]] * 2, Path(sys.argv[1]), Needs(alone=True))
"""


def sleeping(folder, attempt):
    Path(folder, f"process-{os.getpid()}").touch()
    time.sleep(300)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_process_outlives_the_one_that_started_it(tmp_path, number):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = subprocess.Popen(
        [sys.executable, "-c", ALONE, str(tmp_path)], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        while len(started := list(tmp_path.glob("process-*"))) < 2:
            assert time.monotonic() < deadline
            assert program.poll() is None
            time.sleep(0.05)
        processes = [psutil.Process(int(path.name.partition("-")[2])) for path in started]
        program.send_signal(number)
        program.wait(60)
        _, alive = psutil.wait_procs(processes, timeout=30)
        assert alive == []
    finally:
        program.kill()
        program.wait()


def twice(number, attempt):
    """Leave what an attempt leaves that was given up."""
    other = attempt.folder.with_name("given-up")
    (other / "numbers").mkdir(parents=True, exist_ok=True)
    (other / "numbers" / "one.txt").write_text("wrong", encoding="utf-8")
    return doubled(number, attempt)[0]


def test_attempts_that_were_given_up_are_not_taken_over(tmp_path):
    assert run_tasks(LocalWorkers(1), twice, range(3), tmp_path)[0] == [0, 2, 4]
    left = sorted(path.read_text() for path in tmp_path.rglob("*.txt"))
    assert left == ["0", "2", "4"]


@pytest.mark.parametrize(
    ("free", "needs", "fit"),
    [(None, 10, sys.maxsize), (4 << 30, 1 << 30, 3), (4 << 30, 1 << 40, 1), (1 << 30, 0, None)],
)
def test_as_many_tasks_run_as_memory_has_room_for(monkeypatch, free, needs, fit):
    monkeypatch.setattr(workers, "available_memory", lambda: free)
    fitting = workers._fitting(needs)
    assert fitting == fit if fit is not None else fitting > 1000


def test_what_a_task_needs_follows_from_what_it_reads():
    assert Needs(1000).memory_of_one(10) == 1000
    assert Needs(1000, memory=7).memory_of_one(10) == 7
    assert Needs().memory_of_one(0) == 0
