"""However a test run ends, no process of it is left."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest
from long_runs import long_but

TESTS = Path(__file__).resolve().parent.parent
WAIT_SECONDS = 120
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")

# Interrupted, xdist waits twice for workers that are interrupted too: ten seconds each by itself.
CONFTEST = """
    from process_watch import watch_over_this_process
    from xdist.workermanage import NodeManager

    NodeManager.EXIT_TIMEOUT = 1

    def pytest_configure():
        watch_over_this_process()
"""
SLEEPERS = """
    import subprocess, sys, time

    def hold(name):
        # Like Spark's master: in a session of its own, with a child, and nobody's \
pipe to listen to.
        program = "import subprocess, sys, time; subprocess.Popen(['sleep', '600']); \
open(sys.argv[1], 'w'); time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", program, name], \
stdin=subprocess.DEVNULL, start_new_session=True)
        time.sleep(600)

    def test_one():
        hold("one")

    def test_two():
        hold("two")
"""
CLUSTER = """
    import time
    from pathlib import Path
    from benchmarks.cluster.spark_cluster import running_cluster

    def test_a_cluster():
        with running_cluster(1, memory="600m"):
            Path("one").touch()
            time.sleep(600)
"""


@pytest.fixture
def start(tmp_path):
    """Return a function that starts pytest on a program in a process group of its own.

    The processes that it leaves are killed.
    """
    runs = []

    def run(program, *arguments, until):
        (tmp_path / "conftest.py").write_text(textwrap.dedent(CONFTEST))
        (tmp_path / "test_it.py").write_text(textwrap.dedent(program))
        paths = [str(TESTS), str(TESTS.parent)]
        process = subprocess.Popen(
            [*PYTEST, *arguments, "test_it.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HERE": str(tmp_path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            # Tests that run in the background are started with the signal ignored, and so would be
            # what they start.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        runs.append(process)
        deadline = time.monotonic() + WAIT_SECONDS
        while not all((tmp_path / name).exists() for name in until):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return process

    yield run
    for process in runs:
        process.kill()
        process.wait()
    for process in of_the_run(tmp_path):
        process.kill()


def of_the_run(folder):
    """Return all processes of the run, its watchers included.

    They are those that were started with the folder in their environment.
    """
    processes = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HERE") == str(folder):
                processes.append(process)
        except psutil.Error:
            continue
    return processes


def require_none(folder):
    deadline = time.monotonic() + WAIT_SECONDS
    while left := of_the_run(folder):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


@pytest.mark.parametrize("workers", long_but([2], [0, 2]))
@pytest.mark.parametrize(
    "number",
    long_but([signal.SIGTERM, signal.SIGKILL], [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]),
)
def test_no_process_is_left_by_a_run_that_is_stopped(start, tmp_path, number, workers):
    process = start(SLEEPERS, "-n", str(workers), until=["one", "two"] if workers else ["one"])
    assert len(of_the_run(tmp_path)) >= 3 * max(1, workers)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # what a terminal does: the whole group gets it
    else:
        process.send_signal(number)
    process.wait(WAIT_SECONDS)
    require_none(tmp_path)


def test_no_process_is_left_by_a_worker_that_is_killed(start, tmp_path):
    process = start(SLEEPERS, "-n", "2", until=["one", "two"])
    workers = psutil.Process(process.pid).children()
    assert len(workers) == 2
    before = {member.pid for member in of_the_run(tmp_path) if "sleep" in member.name()}
    assert len(before) == 2
    workers[0].kill()
    deadline = time.monotonic() + WAIT_SECONDS
    while len(before & {member.pid for member in of_the_run(tmp_path)}) > 1:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.kill()
    process.wait()
    require_none(tmp_path)


@pytest.mark.long
def test_no_cluster_is_left_by_a_killed_run(start, tmp_path):
    process = start(CLUSTER, until=["one"])
    assert sum("java" in member.name() for member in of_the_run(tmp_path)) == 2
    process.kill()
    process.wait()
    require_none(tmp_path)
