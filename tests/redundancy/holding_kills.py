"""Moves of tables killed at every step and at random instants.

    python tests/redundancy/holding_kills.py [KILLS] [--seed N] [--every-step]

A forked child applies a plan to a small lake, or undoes it, within one file system or to one that
says it is another, and is killed (SIGKILL): by itself just before or after a call that changes
files or syncs them, also in the middle of a write, or by its parent at a random instant. Then each
table must be whole in exactly one place, the same call or the opposite one must finish, and undo
must give the lake byte for byte. One summary line goes to stdout; the exit code is 1 where anything
else happened.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [path for path in (str(HERE), str(HERE.parents[1])) if path not in sys.path]

from holding_lakes import GONE, Bytes, contents, held_tables, part_of, plan_of, shown, write_lake  # noqa: E402

from pexeso.redundancy import table_files as moving  # noqa: E402
from pexeso.redundancy.holding import apply_plan, undo_plan  # noqa: E402
from pexeso.redundancy.holding_folder import JOURNAL  # noqa: E402
from pexeso.redundancy.plan import Applied  # noqa: E402

KILLS, SEED = 200, 20_261_123
STEPS = ("rename", "replace", "mkdir", "rmdir", "unlink", "fsync", "ftruncate", "fchown")
PIECE = 700
OPERATIONS = [(name, elsewhere) for name in ("apply", "undo") for elsewhere in (False, True)]


@dataclass(frozen=True)
class Kill:
    """One kill: of what, where the tables were then, and what went wrong."""

    operation: str
    killed: bool
    in_lake: int
    in_holding: int
    failure: str = ""


class Steps:
    """Counts the calls that change files, and ends the process at one of them."""

    def __init__(self, last: int | None = None, *, after: bool = False) -> None:
        self.count, self._last, self._after = 0, last, after

    def counted(self, call: Callable) -> Callable:
        def step(*given, **options):
            self.count += 1
            if self.count == self._last and not self._after:
                os.kill(os.getpid(), signal.SIGKILL)
            number = self.count
            try:
                return call(*given, **options)
            finally:
                if number == self._last:
                    os.kill(os.getpid(), signal.SIGKILL)

        return step

    def install(self, elsewhere: Path | None) -> None:
        """Count in this process, for good; what lies in `elsewhere` is on another file system."""
        for name in STEPS:
            setattr(os, name, self.counted(getattr(os, name)))
        write, send = os.write, os.sendfile
        os.write = self.counted(lambda file, data: write(file, data[:PIECE]))
        os.sendfile = self.counted(
            lambda out, into, offset, count: send(out, into, offset, min(count, PIECE))
        )
        moving._rename_over_nothing = self.counted(renaming(elsewhere))


def renaming(elsewhere: Path | None) -> Callable[[Path, Path], None]:
    """Return the rename of a machine where a folder may lie on a file system of its own."""
    real = moving._rename_over_nothing

    def rename(source: Path, target: Path) -> None:
        if elsewhere is not None and (
            source.is_relative_to(elsewhere) != target.is_relative_to(elsewhere)
        ):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(source), None, str(target))
        real(source, target)

    return rename


class KillTest:
    """Kills moves and looks at what they leave.

    Parameters
    ----------
    folder : Path
        An empty one.
    """

    def __init__(self, folder: Path) -> None:
        self.lake, self.holding = folder / "lake", folder / "lake.holding"
        self.folder = folder
        write_lake(self.lake)
        self.plan = plan_of(self.lake)
        self.before = contents(self.lake)
        # What each operation starts from, copied so that the snapshots of files stay the same.
        shutil.copytree(self.lake, folder / "whole")
        self._measure()

    def _measure(self) -> None:
        self.steps: dict[tuple[str, bool], int] = {}
        self.seconds: dict[tuple[str, bool], float] = {}
        for operation in OPERATIONS:
            self.start(operation[0])
            reading, writing = os.pipe()
            started = time.perf_counter()

            def child(operation=operation, writing=writing) -> None:
                steps = Steps()
                steps.install(self.holding if operation[1] else None)
                self.operate(operation[0])
                with open(writing, "w", closefd=False) as pipe:
                    pipe.write(str(steps.count))

            status = forked(child)
            self.seconds[operation] = time.perf_counter() - started
            self.steps[operation] = int(os.read(reading, 99)) if status == 0 else 0
            os.close(reading)
            os.close(writing)

    def start(self, name: str) -> None:
        """Make the lake as it was, or its tables set aside."""
        for path in (self.lake, self.holding):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.folder / "whole", self.lake)
        if name == "undo":
            apply_plan(self.plan)

    def operate(self, name: str) -> Applied:
        return apply_plan(self.plan) if name == "apply" else undo_plan(self.holding)

    def at_step(self, operation: tuple[str, bool], step: int, *, after: bool) -> Kill:
        """Kill an operation at one of its steps."""

        def child() -> None:
            Steps(step, after=after).install(self.holding if operation[1] else None)
            self.operate(operation[0])

        return self._killed(operation, child, None, turned=after)

    def after_seconds(self, operation: tuple[str, bool], seconds: float) -> Kill:
        """Kill an operation at an instant."""

        def child() -> None:
            moving._rename_over_nothing = renaming(self.holding if operation[1] else None)
            self.operate(operation[0])

        return self._killed(operation, child, seconds)

    def _killed(
        self,
        operation: tuple[str, bool],
        child: Callable,
        seconds: float | None,
        *,
        turned: bool = False,
    ) -> Kill:
        self.start(operation[0])
        status = forked(child, seconds)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        name = f"{operation[0]} {'elsewhere' if operation[1] else 'here'}"
        places: Counter[str] = Counter()
        try:
            if not killed and status != 0:
                raise RuntimeError(f"the child ended with {status}")
            places = self.places()
            self._finish(operation, turned=turned)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            return Kill(name, killed, places["lake"], places["holding"], failure)
        return Kill(name, killed, places["lake"], places["holding"])

    def places(self) -> Counter[str]:
        """Return how many tables are in the lake and how many are held.

        Raises
        ------
        RuntimeError
            One is not whole there, something else has changed, or one is counted twice or not.
        """
        there, stored = shown(self.lake), contents(self.holding / "tables")
        held = (
            [entry.table for entry in held_tables(self.holding)]
            if (self.holding / JOURNAL).exists()
            else []
        )
        counts: Counter[str] = Counter()
        for table in GONE:
            wanted = part_of(self.before, table)
            in_lake, in_holding = part_of(there, table), part_of(stored, table)
            is_held = (self.holding / "tables" / table).exists() and not in_lake
            if in_lake not in ({}, wanted) or (in_holding not in ({}, wanted)):
                raise RuntimeError(f"{table} is not whole")
            if bool(in_lake) == is_held or is_held != (table in held):
                raise RuntimeError(f"{table} is in the lake: {bool(in_lake)}, held: {is_held}")
            counts["lake" if in_lake else "holding"] += 1
        _require_same("what stays", self._staying(there), self._staying(self.before))
        return counts

    def _staying(self, files: Bytes) -> Bytes:
        gone = {name for table in GONE for name in part_of(files, table)}
        return {name: data for name, data in files.items() if name not in gone}

    def _finish(self, operation: tuple[str, bool], *, turned: bool) -> None:
        """Run the operation again, or turned into the other one, then undo it."""
        original = moving._rename_over_nothing
        moving._rename_over_nothing = renaming(self.holding if operation[1] else None)
        try:
            if (operation[0] == "apply") != turned or not (self.holding / JOURNAL).exists():
                _require_clean(self.operate("apply"))
                if self.places()["holding"] != len(GONE):
                    raise RuntimeError("the call run again left tables in the lake")
                _require_same("the lake", contents(self.lake), self._staying(self.before))
                _require_copies_gone(self.holding)
            _require_clean(self.operate("undo"))
        finally:
            moving._rename_over_nothing = original
        _require_same("the lake", contents(self.lake), self.before)
        _require_copies_gone(self.holding)
        if contents(self.holding / "tables") or held_tables(self.holding):
            raise RuntimeError("undo left tables in the holding folder")


def scratch() -> tempfile.TemporaryDirectory[str]:
    """Make a folder in memory, or among temporary files.

    Moves sync whatever they write. A kill of a process leaves the same with and without it, so that
    a disk would only make every step slow.
    """
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK | os.X_OK) else None
    return tempfile.TemporaryDirectory(prefix="pexeso-holding-", dir=place)


def kills(n: int, seed: int = SEED) -> list[Kill]:
    """Kill `n` times, half of them at steps and half at instants."""
    drawn = random.Random(seed)
    outcomes = []
    with scratch() as folder:
        test = KillTest(Path(folder))
        for number in range(n):
            operation = OPERATIONS[number // 2 % len(OPERATIONS)]
            if number % 2:
                seconds = drawn.uniform(0, 1.1 * test.seconds[operation])
                outcomes.append(test.after_seconds(operation, seconds))
            else:
                step = drawn.randint(1, test.steps[operation])
                outcomes.append(test.at_step(operation, step, after=drawn.random() < 0.5))
    return outcomes


def kills_at_every_step() -> Iterator[Kill]:
    """Kill once before and once after every step, one at a time as they are asked for."""
    with scratch() as folder:
        test = KillTest(Path(folder))
        for operation in OPERATIONS:
            for step in range(1, test.steps[operation] + 1):
                for after in (False, True):
                    yield test.at_step(operation, step, after=after)


def summary(kills: list[Kill], seconds: float) -> str:
    """Say in one line how all kills ended."""
    between = sum(bool(kill.in_lake and kill.in_holding) for kill in kills)
    by_operation = Counter(kill.operation for kill in kills)
    return (
        f"{len(kills):,} calls "
        f"({', '.join(f'{count} {name}' for name, count in sorted(by_operation.items()))}), "
        f"{sum(kill.killed for kill in kills):,} killed before their end, {between:,} with tables "
        f"in both folders, {sum(bool(kill.failure) for kill in kills)} failures; {seconds:,.0f} s"
    )


def forked(run: Callable[[], None], seconds: float | None = None) -> int:
    """Run in a child, kill it after some seconds, and return how it ended."""
    process = os.fork()
    if process == 0:
        try:
            run()
        except BaseException as error:
            os._exit(9 if isinstance(error, Exception) else 8)
        os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
    return os.waitpid(process, 0)[1]


def _require_same(what: str, actual: Bytes, wanted: Bytes) -> None:
    if actual != wanted:
        changed = sorted(
            name for name in actual.keys() | wanted.keys() if actual.get(name) != wanted.get(name)
        )
        raise RuntimeError(f"{what} differs in {changed}")


def _require_clean(done: Applied) -> None:
    if done.refused or done.stopped or done.waiting:
        raise RuntimeError(f"the call run again: {done}")


def _require_copies_gone(holding: Path) -> None:
    if left := contents(holding / "copies"):
        raise RuntimeError(f"copies are left: {sorted(left)}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill moves of tables.")
    parser.add_argument("kills", nargs="?", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--every-step", action="store_true")
    flags = parser.parse_args()
    started = time.perf_counter()
    outcomes = list(kills_at_every_step()) if flags.every_step else kills(flags.kills, flags.seed)
    for kill in outcomes:
        if kill.failure:
            print(kill, file=sys.stderr)  # noqa: T201
    print(summary(outcomes, time.perf_counter() - started))  # noqa: T201
    return int(not outcomes or any(kill.failure for kill in outcomes))


if __name__ == "__main__":
    sys.exit(main())
