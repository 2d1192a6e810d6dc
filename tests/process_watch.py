"""A watcher that ends all processes of a test run, however the run ends.

This includes runs in which pytest is killed and cannot clean up.

All processes that tests start inherit one environment variable. A watcher in a session of its own
waits for the end of pytest, and kills whatever still carries the variable: masters, workers, Java,
programs under test, workers of xdist.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil

VARIABLE = "PEXESO_TEST_RUN"
LOOK_SECONDS = 0.2


def watch_over_this_process() -> None:
    """Mark what this process starts from now on, and have it killed when this process has ended."""
    command = [sys.executable, __file__, str(os.getpid())]
    # A run within a run, such as a worker of xdist, is a part of the outer one.
    mark = f"{os.environ.get(VARIABLE, '')}/{os.getpid()}-{time.time_ns()}"
    # Standard streams would be held open beyond the end of the run.
    null = subprocess.DEVNULL
    subprocess.run(
        [*command, mark], stdin=null, stdout=null, stderr=null, start_new_session=True, check=True
    )
    os.environ[VARIABLE] = mark


def marked(mark: str) -> list[psutil.Process]:
    """Return the processes of a run, without this one."""
    processes = []
    for process in psutil.process_iter():
        try:
            value = process.environ().get(VARIABLE, "")
        except (psutil.Error, OSError):
            continue
        if f"{value}/".startswith(f"{mark}/") and process.pid != os.getpid():
            processes.append(process)
    return processes


def _has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def main(pid: int, mark: str) -> None:
    """Wait for the end of a process, then kill all of its run; some may start others meanwhile."""
    while not _has_ended(pid):
        time.sleep(LOOK_SECONDS)
    while processes := [process for process in marked(mark) if not _has_ended(process.pid)]:
        for process in processes:
            try:
                process.kill()
            except psutil.Error:
                continue
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    if os.fork():  # so that the watcher is nobody's child, and pytest goes on
        os._exit(0)
    main(int(sys.argv[1]), sys.argv[2])
