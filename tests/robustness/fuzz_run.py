"""The program of ``make fuzz-test``: 100,000 bad inputs to everything that reads.

These are files of all formats, statements, plans and programs, requests, and holding folders. Each
input runs in a process that is watched, in a folder that it may not leave.

    python tests/robustness/fuzz_run.py [--short] [--inputs N] [--seed N] [--index PATH]
    [--only TARGET] [--keep FOLDER]

Half of each target's inputs are made by hypothesis, which knows what inputs look like, the others
by atheris, which learns from the branches that they reach. Progress goes to stderr, one summary
line to stdout; the exit code is 1 where an input ended in anything but an error of ours, took more
than 20 seconds or 1 GiB, or read or changed what lies outside its folder. Such inputs stay in the
folder named at the end; with ``--keep`` one of your own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psutil

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE)]

from fuzz_targets import TARGETS  # noqa: E402

INPUTS, SHORT_INPUTS = 100_000, 2_000
SEED = 20_250_101
HYPOTHESIS_SHARE = 0.5
MOST_A_PROCESS = 2_500
MEMORY_LIMIT_MB = 2048
SILENT_SECONDS = 60
STARTING_SECONDS = 300
"""What a process takes at most to load what it tries, on a machine with other work."""

_POLL_SECONDS = 0.2


@dataclass
class Outcome:
    """What one process, or all of them, found."""

    inputs: int = 0
    refused: int = 0
    exceptions: int = 0
    hangs: int = 0
    out_of_memory: int = 0
    peak_bytes: int = 0
    sentences: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        for name in ("inputs", "refused", "exceptions", "hangs", "out_of_memory"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)
        self.sentences += other.sentences

    @property
    def failed(self) -> bool:
        return bool(self.exceptions or self.hangs or self.out_of_memory)

    def __str__(self) -> str:
        memory = f", {self.out_of_memory} out of memory" if self.out_of_memory else ""
        return (
            f"{self.inputs:,} inputs, {self.exceptions} uncaught exceptions, {self.hangs} "
            f"hangs{memory}, "
            f"peak {self.peak_bytes / 1e6:.0f} MB"
        )


@dataclass(frozen=True)
class Job:
    engine: str
    target: str
    n_inputs: int
    seed: int


def jobs_of(
    n_inputs: int, seed: int, engines: tuple[str, ...], only: Collection[str] = TARGETS
) -> Iterator[Job]:
    """Distribute the inputs over targets, engines and processes.

    Together they are at least as many as requested, where no target is left out.
    """
    for target in TARGETS.values():
        if target.name not in only:
            continue
        left = -(-n_inputs * target.share // 1000)
        by_engine = {engine: left // len(engines) for engine in engines}
        by_engine[engines[-1]] += left - sum(by_engine.values())
        for engine, total in by_engine.items():
            for number, begin in enumerate(range(0, total, MOST_A_PROCESS)):
                yield Job(engine, target.name, min(MOST_A_PROCESS, total - begin), seed + number)


def run_job(job: Job, folder: Path, index: str | None) -> Outcome:
    """Run one process to its end, or end it where an input hangs or takes too much memory."""
    place = folder / f"{job.target}-{job.engine}-{job.seed}"
    place.mkdir(parents=True)
    command = [sys.executable, str(HERE / "fuzz_worker.py"), job.engine, job.target]
    command += [str(job.n_inputs), str(job.seed)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(place)}
    with open(place / "stdout", "wb") as out, open(place / "stderr", "wb") as err:
        arguments = [*command, str(place), index or ""]
        process = subprocess.Popen(arguments, stdout=out, stderr=err, env=environment, cwd=place)
        ended, peak = _watch(process, place / "now")
    outcome = _outcome_of(job, place, ended, process.returncode)
    outcome.peak_bytes = max(outcome.peak_bytes, peak)
    if not outcome.failed:
        shutil.rmtree(place)
    return outcome


def _watch(process: subprocess.Popen, now: Path) -> tuple[str, int]:
    """Wait for the end of a process; return its cause and the peak memory observed."""
    seen, peak, begun = psutil.Process(process.pid), 0, time.monotonic()
    while True:
        try:
            process.wait(_POLL_SECONDS)
            return "itself", peak
        except subprocess.TimeoutExpired:
            pass
        try:
            peak = max(peak, seen.memory_info().rss)
        except psutil.Error:
            continue
        changed = now.stat().st_mtime if now.exists() else 0.0
        allowed = SILENT_SECONDS if changed else STARTING_SECONDS
        silent = min(time.monotonic() - begun, time.time() - changed)
        reason = "memory" if peak > MEMORY_LIMIT_MB << 20 else "hang" if silent > allowed else None
        if reason:
            process.kill()
            process.wait()
            return reason, peak


def _outcome_of(job: Job, place: Path, ended: str, code: int | None) -> Outcome:
    where = f"{job.target} by {job.engine}, seed {job.seed}, in {place}"
    lines = (place / "stdout").read_text(errors="replace").splitlines()
    if ended == "itself" and lines and lines[-1].startswith("{"):
        report = json.loads(lines[-1])
        sentences = [f"{kind}: {text} ({where})" for kind, text in report["findings"].items()]
        hangs = sum(kind.startswith("HangError") for kind in report["findings"])
        return Outcome(
            report["inputs"],
            report["refused"],
            len(sentences) - hangs,
            hangs,
            0,
            report["peak_bytes"],
            sentences,
        )
    kind = {"itself": f"died with code {code}", "memory": "took too much memory", "hang": "hung"}[
        ended
    ]
    names = " ".join(path.name for path in place.glob("killed-*"))
    if "timeout-" in names:
        ended = "hang"
    last = (place / "stderr").read_text(errors="replace")[-400:]
    return Outcome(
        exceptions=ended == "itself",
        hangs=ended == "hang",
        out_of_memory=ended == "memory",
        sentences=[f"{kind} ({where}; its last input is the file 'now'): {last}"],
    )


def run_all(
    n_inputs: int,
    *,
    seed: int = SEED,
    index: str | None = None,
    folder: Path,
    n_jobs: int,
    engines: tuple[str, ...],
    only: Collection[str] = TARGETS,
) -> Outcome:
    """Run all targets; tells progress on stderr."""
    jobs, total, begun = list(jobs_of(n_inputs, seed, engines, only)), Outcome(), time.monotonic()
    with ThreadPoolExecutor(n_jobs) as pool:
        for job, outcome in zip(
            jobs, pool.map(lambda job: run_job(job, folder, index), jobs), strict=True
        ):
            total.add(outcome)
            mark = " FAILED" if outcome.failed else ""
            line = (
                f"{time.monotonic() - begun:6.0f} s  {total.inputs:>8,}  {job.target} by "
                f"{job.engine}{mark}"
            )
            print(line, file=sys.stderr, flush=True)  # noqa: T201
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz everything that reads.")
    parser.add_argument(
        "--short", action="store_true", help=f"{SHORT_INPUTS:,} inputs instead of {INPUTS:,}"
    )
    parser.add_argument("--inputs", type=int)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--index", help="the index that the command line is tried on; without it one is built"
    )
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--engine", choices=("both", "hypothesis", "atheris"), default="both")
    parser.add_argument("--only", action="append", choices=TARGETS, help="one target, not all")
    parser.add_argument("--keep", help="where what failed is kept; a temporary folder by default")
    options = parser.parse_args()
    n_inputs = options.inputs or (SHORT_INPUTS if options.short else INPUTS)
    engines = ("hypothesis", "atheris") if options.engine == "both" else (options.engine,)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # moves sync what they write
    folder = Path(options.keep or tempfile.mkdtemp(prefix="pexeso-fuzz-", dir=memory))
    index = options.index
    if index is None:
        from small_index import build_small_index

        index = str(build_small_index(folder / "small"))
    total = run_all(
        n_inputs,
        seed=options.seed,
        index=index,
        folder=folder,
        n_jobs=options.jobs,
        engines=engines,
        only=options.only or TARGETS,
    )
    for sentence in total.sentences:
        print(sentence, file=sys.stderr)  # noqa: T201
    print(total)  # noqa: T201
    if not total.failed and not options.keep:
        shutil.rmtree(folder)
    return int(total.failed)


if __name__ == "__main__":
    sys.exit(main())
