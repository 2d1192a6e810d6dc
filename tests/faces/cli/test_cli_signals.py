"""Signals end a command as Ctrl-C does; what a killed one leaves, the next one clears."""

import os
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest
from long_runs import long_but
from processes import ran

from pexeso.build.diagnostics.info import last_report
from pexeso.faces.cli.errors import Interrupted, Stopped
from pexeso.index import open_index

WAIT_SECONDS = 300
SIGNALS = long_but([signal.SIGTERM], [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])

OPTIONS = (
    *("--model", "hashing", "--dimensions", "64"),
    *("--spark-master", "local[1]", "--spark-conf", "spark.driver.memory=700m"),
)


@pytest.fixture
def start(tmp_path):
    """Return a function that starts the command line in a process.

    Temporary files go to a folder of the test.
    """
    started = []
    (tmp_path / "temporary").mkdir()

    def run(*arguments, **options):
        environment = {
            **os.environ,
            "TMPDIR": str(tmp_path / "temporary"),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "pexeso", *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def wait_for(process, condition):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_a_build_that_is_stopped_leaves_nothing_and_goes_on(
    start, run, spark, small_lake, tmp_path, monkeypatch, number
):
    shutil.copytree(small_lake, tmp_path / "lake")
    build = start("index", "lake", "lake.pexeso", *OPTIONS)
    wait_for(build, (tmp_path / "lake.pexeso" / ".building" / "scratch" / "read.json").exists)
    started = psutil.Process(build.pid).children(recursive=True)
    assert any("java" in process.name() for process in started)
    build.send_signal(number)
    _, said = build.communicate(timeout=WAIT_SECONDS)
    _, alive = psutil.wait_procs(started, timeout=60)
    assert alive == []
    left = [path.name for path in (tmp_path / "temporary").glob("pexeso-spark-*")]
    if number == signal.SIGKILL:
        assert len(left) == 1
        again = start("index", "lake", "lake.pexeso", *OPTIONS)  # the next Spark clears it
        _, said = again.communicate(timeout=WAIT_SECONDS)
        assert again.returncode == 0, said
        assert list((tmp_path / "temporary").glob("pexeso-spark-*")) == []
    else:
        assert (build.returncode, left) == (128 + number, []), said
        assert said.splitlines()[-1].startswith("Interrupted: 'lake.pexeso' was not written, ")
        assert "Traceback" not in said
        monkeypatch.chdir(tmp_path)
        again = run("index", "lake", "lake.pexeso", *OPTIONS)
        assert again.exit_code == 0, again.output
    assert "read" in last_report(open_index(tmp_path / "lake.pexeso").store).facts["taken_up"]


def test_a_signal_that_was_to_be_ignored_is_ignored(start, tmp_path):
    process = start(
        *("batch", "none.pexeso", "-"),
        stdin=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    process.send_signal(signal.SIGHUP)
    process.communicate("", timeout=WAIT_SECONDS)
    assert process.returncode == 1


IN_A_CALLBACK = """
import ctypes, os, sys, time
from pexeso.faces.cli.errors import stop_by_signals

@ctypes.CFUNCTYPE(None)
def called_by_c():
    os.kill(os.getpid(), int(sys.argv[1]))
    time.sleep(1)

stop_by_signals()
try:
    called_by_c()
    time.sleep(60)
    print("went on")
except KeyboardInterrupt as stopped:
    print(getattr(stopped, "number", 2))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_while_c_calls_python_is_not_lost(number):
    command = [sys.executable, "-c", IN_A_CALLBACK, str(int(number))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = ran(command, timeout=120, env=environment)
    assert (done.stdout, done.stderr) == (f"{int(number)}\n", "")


def test_the_exit_code_is_that_of_the_signal():
    def code(cause):
        error = Interrupted("Interrupted.")
        error.__cause__ = cause
        return error.exit_code

    assert [
        code(KeyboardInterrupt()),
        code(Stopped(signal.SIGTERM)),
        code(Stopped(signal.SIGHUP)),
    ] == [130, 143, 129]
