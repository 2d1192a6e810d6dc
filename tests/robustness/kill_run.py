"""The program of ``make kill-test``: builds and updates killed at 200 random moments.

Each kill must leave an index as it was or as it is to be.

    python tests/robustness/kill_run.py [--short] [--kills N] [--seed N] [--only OPERATION]

A child process does an operation on a copy of a prepared index and is killed (SIGKILL), alone or
with all processes that it started. Then the index must open, pass its check and answer as before or
as after the operation; a first build may have left no index. The operation is run again, at once,
which must finish, answer as after, and leave nothing behind. Progress goes to stderr, one summary
line to stdout; the exit code is 1 where anything else happened.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil

HERE = Path(__file__).resolve().parent
sys.path[:0] = [path for path in (str(HERE),) if path not in sys.path]

from kill_operations import (  # noqa: E402
    INDEX,
    OPERATIONS,
    PREPARED,
    Answers,
    answers,
    quiet_environment,
    start_state,
    write_lakes,
)

from pexeso.build.job import SMALL_LAKE_SETTINGS  # noqa: E402

KILLS, SHORT_KILLS = 200, 7
SEED = 20_250_101
SHARES = {
    "build": 0.2,
    "overwrite": 0.13,
    "append": 0.2,
    "delete": 0.15,
    "compact": 0.12,
    "add": 0.1,
    "add model": 0.1,
}
AFTER_ITS_END = 1.1
CONF = {**SMALL_LAKE_SETTINGS, "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}


@dataclass(frozen=True)
class Kill:
    """One kill, and what came of it."""

    operation: str
    outcome: str
    failure: str = ""


class Child:
    """A process that is ready to do an operation, and does it when told."""

    def __init__(self, operation: str, folder: Path, place: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "kill_run.py"), "--child", operation, folder, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=quiet_environment(),
            start_new_session=True,
        )

    def go(self) -> None:
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def wait(self) -> None:
        """Wait for its end."""
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            pipe.close()

    def kill(self, *, with_descendants: bool) -> None:
        """Kill it, and perhaps what it started; what it started must end by itself otherwise."""
        family = []
        if with_descendants:
            family += psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.wait()

    def expect(self, word: str) -> None:
        """Wait for a line that it is to print.

        Raises
        ------
        RuntimeError
            It printed something else, or ended.
        """
        line = self.process.stdout.readline().strip()
        if line != word:
            raise RuntimeError(f"The child said {line!r} where {word!r} was expected.")


def be_child(operation: str, folder: Path, place: Path) -> None:
    """Get ready, wait to be told, and do the operation."""
    import pexeso.build.updates  # noqa: F401  what the operation imports should be there before it is timed

    chosen = OPERATIONS[operation]
    with _session() if chosen.with_spark else contextlib.nullcontext():
        print("ready", flush=True)  # noqa: T201
        sys.stdin.readline()
        chosen.run(folder, place / INDEX)
        print("done", flush=True)  # noqa: T201


def _session() -> contextlib.AbstractContextManager:
    from pexeso.build.spark.session import spark_session

    return spark_session("local[2]", conf=CONF)


def _seconds_of(operation: str, folder: Path, place: Path) -> float:
    """Return the seconds that an operation takes in a process like those to be killed.

    It takes longer there than here, where everything is warm.
    """
    child = Child(operation, folder, place)
    child.expect("ready")
    started = time.perf_counter()
    child.go()
    child.expect("done")
    seconds = time.perf_counter() - started
    child.wait()
    return seconds


class KillTest:
    """Kills operations and looks at what they leave.

    Parameters
    ----------
    folder : Path
        For lakes and indexes.
    operations : list of str
        In the order in which they are killed.
    seed : int
    """

    def __init__(self, folder: Path, operations: list[str], seed: int) -> None:
        self.folder, self.operations, self._random = folder, operations, random.Random(seed)
        self._before: dict[str, Answers] = {"": None}
        self._after: dict[str, Answers] = {}
        self._seconds: dict[str, float] = {}
        write_lakes(folder)
        for name in sorted(set(operations)):
            self._prepare(OPERATIONS[name].before)
            path = start_state(folder, OPERATIONS[name].before, folder / "after")
            self._seconds[name] = _seconds_of(name, folder, folder / "after")
            self._after[name] = answers(path)

    def _prepare(self, name: str) -> None:
        """Make the index that an operation starts from and its bases, unless they exist."""
        if name in self._before:
            return
        base, operation = PREPARED[name]
        self._prepare(base)
        path = start_state(self.folder, base, self.folder / name)
        OPERATIONS[operation].run(self.folder, path)
        self._before[name] = answers(path)

    def run(self):
        """Kill each operation once; yields a `Kill` each."""
        places = [self.folder / f"trial{number % 2}" for number in range(len(self.operations))]
        child = self._start(self.operations[0], places[0])
        for number, (operation, place) in enumerate(zip(self.operations, places, strict=True)):
            child.expect("ready")
            child.go()
            # At any instant of the operation, and at times just after it.
            time.sleep(self._random.uniform(0, AFTER_ITS_END * self._seconds[operation]))
            child.kill(with_descendants=self._random.random() < 0.5)
            if number + 1 < len(self.operations):  # gets ready while this one is looked at
                child = self._start(self.operations[number + 1], places[number + 1])
            yield self._look(operation, place / INDEX)

    def _start(self, operation: str, place: Path) -> Child:
        start_state(self.folder, OPERATIONS[operation].before, place)
        return Child(operation, self.folder, place)

    def _look(self, operation: str, path: Path) -> Kill:
        from pexeso.store.local.writer import tidy

        before, after = self._before[OPERATIONS[operation].before], self._after[operation]
        start = self.folder / OPERATIONS[operation].before / INDEX
        committed = self._generation(path) > self._generation(start)
        try:
            hits = answers(path)
            if hits not in (before, after):
                return Kill(
                    operation, "failed", f"answers {hits} are neither those before nor those after"
                )
            resumed = (path / ".building" / "scratch").is_dir() and any(
                (path / ".building" / "scratch").glob("*.json")
            )
            OPERATIONS[operation].run(self.folder, path)
            if answers(path) != after:
                return Kill(
                    operation, "failed", f"after a rerun it answers {answers(path)}, not {after}"
                )
            gc.collect()  # what was opened to look at it is closed
            tidy(path)
            left = sorted(set(os.listdir(path)) & {".building", "retired"})
            if left:
                return Kill(operation, "failed", f"after a rerun {left} are left")
        except Exception as error:
            logging.exception("An operation failed.")
            return Kill(operation, "failed", f"{type(error).__name__}: {error}")
        return Kill(operation, "as after" if committed else "taken up" if resumed else "as before")

    def _generation(self, path: Path) -> int:
        from pexeso.errors import StoredIndexError
        from pexeso.store.local.reader import open_store

        try:
            return open_store(path).manifest.generation
        except StoredIndexError:
            return 0


def choose_operations(n_kills: int, only: str | None, seed: int) -> list[str]:
    """Return each operation its share of the kills, in random order; each at least once."""
    if only is not None:
        return [only] * n_kills
    counts = {name: max(1, round(share * n_kills)) for name, share in SHARES.items()}
    chosen = [name for name, count in counts.items() for _ in range(count)]
    random.Random(seed).shuffle(chosen)
    return chosen[:n_kills]


def summary(kills: list[Kill], seconds: float) -> str:
    """Say in one line how all kills ended."""
    counts = Counter(kill.outcome for kill in kills)
    by_operation = Counter(kill.operation for kill in kills)
    return (
        f"{len(kills):,} kills "
        f"({', '.join(f'{count} {name}' for name, count in sorted(by_operation.items()))}), "
        f"{counts['failed']} failures: "
        f"{counts['as before']} as before, {counts['taken up']} as before and taken up by the "
        f"rerun, {counts['as after']} committed; {seconds:,.0f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill builds and updates of an index.")
    parser.add_argument(
        "--short", action="store_true", help=f"{SHORT_KILLS} kills instead of {KILLS}"
    )
    parser.add_argument("--kills", type=int)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", choices=sorted(OPERATIONS))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        operation, folder, place = options.child
        be_child(operation, Path(folder), Path(place))
        return 0
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    n_kills = options.kills or (SHORT_KILLS if options.short else KILLS)
    started, kills = time.perf_counter(), []
    with tempfile.TemporaryDirectory(prefix="pexeso-kill-") as folder, _session():
        test = KillTest(
            Path(folder), choose_operations(n_kills, options.only, options.seed), options.seed
        )
        for kill in test.run():
            kills.append(kill)
            line = f"{len(kills)} of {n_kills}: {kill.operation} {kill.outcome} {kill.failure}"
            print(line, file=sys.stderr, flush=True)  # noqa: T201
    print(summary(kills, time.perf_counter() - started))  # noqa: T201
    return int(any(kill.failure for kill in kills))


if __name__ == "__main__":
    sys.exit(main())
