"""Runs of the program ``pexeso`` in processes of their own, metered to their last child."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.cluster.processes import Meter, bytes_below, metered
from benchmarks.cluster.spark_cluster import Cluster
from benchmarks.origin import environment_with_this_code
from pexeso.errors import InputError

DRIVER, MASTER = "driver", "master"
START, BETWEEN = "start", "between"
_END_SECONDS = 30


@dataclass
class Ran:
    """What a program took.

    Attributes
    ----------
    seconds : float
        Wall time, until the executors of the cluster have ended too.
    processor_seconds : dict of str to float
        By tree: ``driver``, ``master``, ``worker0`` ...
    peak_bytes : dict of str to int
        The same for memory; ``together`` at one moment.
    stages : dict of str to dict
        By stage: wall ``seconds``, and ``processor_seconds`` of the driver and of the workers.
    disk : dict of str to int
        Largest bytes of the folders that were watched: ``scratch``, what the stages of a build
        leave; ``spark``, what Spark keeps on disk.
    scratch : dict of str to dict
        By stage, what lay in the folder of the build when it had ended: bytes by the stage that
        left them; ``new`` is the index itself.
    meter_seconds : float
        Seconds of the processor that measuring took, in this process.
    """

    seconds: float = 0.0
    processor_seconds: dict[str, float] = field(default_factory=dict)
    peak_bytes: dict[str, int] = field(default_factory=dict)
    stages: dict[str, dict[str, float]] = field(default_factory=dict)
    disk: dict[str, int] = field(default_factory=dict)
    scratch: dict[str, dict[str, int]] = field(default_factory=dict)
    meter_seconds: float = 0.0

    @property
    def processor(self) -> float:
        """Seconds of the processor of all trees."""
        return sum(self.processor_seconds.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return {
            "seconds": round(self.seconds, 2),
            "processor_seconds": {
                "all": round(self.processor, 2),
                **{name: round(value, 2) for name, value in self.processor_seconds.items()},
            },
            "peak_bytes": self.peak_bytes,
            "peak_disk_bytes": self.disk,
            "meter_processor_seconds": round(self.meter_seconds, 2),
        }


class _Stages:
    """Divides wall and processor time among the stages that a program tells of."""

    def __init__(self, meter: Meter) -> None:
        self.seconds_by_stage: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._meter, self._name = meter, START
        self._since, self._before = time.perf_counter(), meter.seconds()

    def begin(self, name: str) -> None:
        """Charge what was taken since the last call to what was going on."""
        now, seconds = time.perf_counter(), self._meter.sample(memory=False)
        totals = self.seconds_by_stage[self._name]
        totals["seconds"] += now - self._since
        for tree, value in seconds.items():
            whose = "workers" if tree.startswith("worker") else tree
            totals[f"{whose}_processor_seconds"] += value - self._before[tree]
            totals["processor_seconds"] += value - self._before[tree]
        self._name, self._since, self._before = name, now, seconds


def run_pexeso(
    arguments: Sequence[str | os.PathLike[str]],
    log: Path,
    *,
    cluster: Cluster | None = None,
    scratch: Path | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Ran:
    """Run ``python -m pexeso``, and end whatever it started when this is interrupted.

    Parameters
    ----------
    arguments : sequence
        With ``--log-json``, so that stages are known.
    log : Path
        Gets what the program says.
    cluster : Cluster, optional
        Metered too.
    scratch : Path, optional
        Where a build works: what its stages leave is in ``scratch`` there, the index in ``new``.
    tell : callable
        Is told of each stage.

    Raises
    ------
    InputError
        The program failed; the message ends with what it said.
    """
    roots: dict[str, int] = {}
    folders: dict[str, Path] = {} if scratch is None else {"scratch": scratch / "scratch"}
    if cluster is not None:
        roots[MASTER] = cluster.master.pid
        roots |= {f"worker{n}": worker.pid for n, worker in enumerate(cluster.workers)}
        folders["spark"] = cluster.folder
    started = time.perf_counter()
    with log.open("w", encoding="utf-8") as stream:
        process = _started(arguments, stream)
        try:
            with metered({DRIVER: process.pid, **roots}, folders) as meter:
                return _metered_run(process, meter, started, stream, cluster, scratch, tell)
        finally:
            end_tree(process)


def _started(arguments: Sequence[str | os.PathLike[str]], log: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pexeso", *map(os.fspath, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={
            **environment_with_this_code(),
            "PEXESO_CLASS_ARCHIVE": "0",  # a process that writes one would be metered too
        },
        start_new_session=True,
    )


def _metered_run(
    process: subprocess.Popen[str],
    meter: Meter,
    started: float,
    log: Any,
    cluster: Cluster | None,
    scratch: Path | None,
    tell: Callable[[str], None],
) -> Ran:
    ran, stages, lines = Ran(), _Stages(meter), []
    for line in process.stderr or ():
        log.write(line)
        lines = [*lines[-20:], line]
        event = _event(line)
        if event.get("event") == "stage":
            tell(f"stage {event['stage']}")
            stages.begin(event["stage"])
        elif event.get("event") == "stage finished":
            stages.begin(BETWEEN)
            if scratch is not None:
                ran.scratch[event["stage"]] = bytes_below(scratch, _stage_of)
                meter.look_at_folders()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise InputError(
            f"pexeso ended with the exit status {process.returncode} and said:\n{''.join(lines)}"
        )
    meter.sample(memory=False)
    meter.trees[DRIVER].end(usage.ru_utime + usage.ru_stime)
    _wait_for_executors(cluster)
    ran.seconds = time.perf_counter() - started
    stages.begin(BETWEEN)
    ran.processor_seconds = meter.seconds()
    ran.peak_bytes = {**meter.peak_bytes, "together": meter.peak_of_all}
    ran.stages = {name: dict(totals) for name, totals in stages.seconds_by_stage.items()}
    ran.disk = meter.peak_disk
    ran.meter_seconds = meter.own_seconds
    return ran


def _event(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _stage_of(path: Path) -> str:
    """Return the stage that left a file, or the kind of one that no stage has to itself."""
    inner = path.parts[1:] if path.parts[0] == "scratch" and len(path.parts) > 1 else path.parts
    return inner[0].split(".")[0]


def _wait_for_executors(cluster: Cluster | None) -> None:
    deadline = time.monotonic() + _END_SECONDS
    while cluster is not None and cluster.executors() and time.monotonic() < deadline:
        time.sleep(0.1)


def end_tree(process: subprocess.Popen[str]) -> None:
    """End a program and all that it started; it may tidy up first."""
    family = []
    if process.returncode is None and process.poll() is None:
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for child in family:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(family, timeout=_END_SECONDS)
    if process.stderr is not None:
        process.stderr.close()


def pexeso_json(*arguments: str | os.PathLike[str]) -> Any:
    """Run ``python -m pexeso`` with ``--json``, and return what it prints."""
    completed = subprocess.run(
        [sys.executable, "-m", "pexeso", *map(os.fspath, arguments), "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=environment_with_this_code(),
    )
    if completed.returncode:
        raise InputError(f"pexeso {arguments[0]} failed and said: {completed.stderr[-2000:]}")
    return json.loads(completed.stdout)
