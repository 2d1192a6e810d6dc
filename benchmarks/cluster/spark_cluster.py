"""A standalone Spark cluster on this machine, on loopback.

The master and each worker are Java processes of their own.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

from pexeso.build.spark.java import find_java

START_SECONDS = 120
"""The longest wait for a process to say that it is ready: 3 s on a quiet machine."""

_MASTER_READY = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_READY = re.compile(r"Successfully registered with master")


@dataclass(frozen=True)
class Cluster:
    url: str
    workers: list[subprocess.Popen[bytes]]
    master: subprocess.Popen[bytes]
    folder: Path

    def kill_worker(self, place: int) -> None:
        """Kill a worker and its executors without notice, as if the machine were lost."""
        processes = [
            psutil.Process(self.workers[place].pid),
            *psutil.Process(self.workers[place].pid).children(True),
        ]
        for process in processes:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self.workers[place].wait()


@contextmanager
def running_cluster(n_workers: int = 2, *, memory: str = "1g") -> Iterator[Cluster]:
    """Start a master and workers on free ports of 127.0.0.1; leave no process behind."""
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="pexeso-cluster-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            master, log = _start("master.Master", ["--port", "0"], folder / "master", folder)
            started.append(master)
            url = _wait_for(_MASTER_READY, master, log).group(1)
            workers = []
            for number in range(n_workers):
                worker_folder = folder / f"worker{number}"
                arguments = ["--port", "0", "--cores", "1", "--memory", memory]
                arguments += ["--work-dir", str(worker_folder), url]
                workers.append(_start("worker.Worker", arguments, worker_folder, folder))
                started.append(workers[-1][0])
            for process, log in workers:
                _wait_for(_WORKER_READY, process, log)
            yield Cluster(url, [process for process, _ in workers], master, folder)
        finally:
            _end(started)


def _start(
    kind: str, arguments: list[str], work_folder: Path, folder: Path
) -> tuple[subprocess.Popen[bytes], Path]:
    work_folder.mkdir()
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_LOCAL_DIRS": str(work_folder),
        "SPARK_LOG_DIR": str(work_folder),
    }
    environment.pop("JAVA_HOME", None)
    java_home = find_java().home(folder)
    if java_home is not None:
        environment["JAVA_HOME"] = str(java_home)
    log = work_folder / "log"
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--webui-port", "0", *arguments],
            cwd=work_folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    return process, log


def _wait_for(
    pattern: re.Pattern[str], process: subprocess.Popen[bytes], log: Path
) -> re.Match[str]:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        text = log.read_text(encoding="utf-8", errors="replace")
        match = pattern.search(text)
        if match is not None:
            return match
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(
        f"a process of the cluster did not start:\n{log.read_text(errors='replace')[-4000:]}"
    )


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kill every process that was started, and all that these started."""
    family = []
    for process in processes:
        if process.poll() is None:
            family += [
                psutil.Process(process.pid),
                *psutil.Process(process.pid).children(recursive=True),
            ]
    for member in family:
        try:
            member.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
    for process in processes:
        process.wait()
    psutil.wait_procs(family, timeout=30)
