"""Processor time and memory of trees of processes, as Linux counts them in ``/proc``.

Processes come and go: Java starts Python, which forks. What a process took is known while it
lives, and its parent is charged with it when it waits for it; a sample each second sees both.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")

Key = tuple[int, int]
"""A process: its number and when it was started, since numbers are used again."""


@dataclass(frozen=True)
class Reading:
    """What the system says about a process.

    Attributes
    ----------
    key : Key
    parent : int
        The number of its parent.
    own : float
        Seconds of the processor.
    waited : float
        The same of children that have ended and that it has waited for, and of theirs.
    """

    key: Key
    parent: int
    own: float
    waited: float


def read_processes(folder: Path = Path("/proc")) -> dict[int, Reading]:
    """Return all processes of the machine by their numbers."""
    readings = {}
    for entry in folder.iterdir():
        if entry.name.isdecimal():
            try:
                text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:  # it has ended
                continue
            readings[int(entry.name)] = read_stat(text)
    return readings


def read_stat(text: str) -> Reading:
    """Read the line that the kernel has for a process.

    Examples
    --------
    >>> fields = ["S", 1, *[0] * 9, 200, 100, 1000, 0, *[0] * 4, 77]
    >>> read_stat("12 (a (b) c) " + " ".join(map(str, fields))).key
    (12, 77)
    """
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    user, system, waited_user, waited_system = map(int, fields[11:15])
    key = int(head.split(" ", 1)[0]), int(fields[19])
    return Reading(
        key, int(fields[1]), (user + system) / _TICK, (waited_user + waited_system) / _TICK
    )


def memory_of(pid: int, folder: Path = Path("/proc")) -> int:
    """Return the bytes of a process, its part of those that it shares; 0 where it has ended."""
    try:
        for line in (folder / str(pid) / "smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


@dataclass
class _Process:
    reading: Reading
    sample: int
    gone: float = 0.0
    children: list[Key] = field(default_factory=list)


class Tree:
    """The processes below one that was started, those included that have ended or been orphaned.

    Parameters
    ----------
    root : int
        The number of a process that runs.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._known: dict[Key, _Process] = {}
        self._top: Key | None = None
        self._samples = 0

    def update(self, readings: Mapping[int, Reading]) -> list[int]:
        """Take a sample; return the numbers of the processes that run."""
        self._samples += 1
        if self._top is None and self._root in readings:
            self._top = readings[self._root].key
            self._known[self._top] = _Process(readings[self._root], self._samples)
        below = defaultdict(list)
        for reading in readings.values():
            below[reading.parent].append(reading)
        # Those known go on to belong to it when their parent has ended.
        waiting = [reading for reading in readings.values() if reading.key in self._known]
        charged, alive = {}, set()
        while waiting:
            reading = waiting.pop()
            if reading.key in charged:
                continue
            alive.add(reading.key[0])
            process = self._known.setdefault(reading.key, _Process(reading, self._samples))
            charged[reading.key] = reading.waited - process.reading.waited
            process.reading, process.sample = reading, self._samples
            for child in below[reading.key[0]]:
                if child.key not in self._known:
                    self._known[child.key] = _Process(child, self._samples, child.waited)
                    process.children.append(child.key)
                waiting.append(child)
        for key, seconds in charged.items():
            self._charge(self._known[key], seconds)
        return sorted(alive)

    def _charge(self, process: _Process, seconds: float) -> None:
        """Charge a process with its children that have ended since the last sample.

        With what the system charged it with, which knows their last moments; or with what was seen
        of them, where they ended without its waiting. Those that they left behind are its own now.
        """
        ended, living = 0.0, []
        for child in process.children:
            spent, left = self._settled(child)
            ended += spent
            living += left
        process.children = living
        process.gone += max(seconds, ended)

    def _settled(self, key: Key) -> tuple[float, list[Key]]:
        process = self._known[key]
        if process.sample == self._samples:
            return 0.0, [key]
        spent, living = process.reading.own + process.gone, []
        for child in process.children:
            more, left = self._settled(child)
            spent += more
            living += left
        return spent, living

    def end(self, seconds: float) -> None:
        """Note what the system charged for the root and all it waited for, after the last sample.

        Parameters
        ----------
        seconds : float
            As `os.wait4` tells when the root has ended.
        """
        if self._top is not None:
            process = self._known[self._top]
            known = process.reading.own + process.reading.waited
            self._charge(process, max(0.0, seconds - known))

    @property
    def seconds(self) -> float:
        """Seconds of the processor up to the last sample, by all that were ever seen."""
        return 0.0 if self._top is None else self._of(self._top)

    def _of(self, key: Key) -> float:
        process = self._known[key]
        return process.reading.own + process.gone + sum(map(self._of, process.children))


class Meter:
    """Samples trees of processes in a thread, until it is stopped; memory at every other sample.

    Parameters
    ----------
    roots : mapping of str to int
        The number of the process at the top of each.
    folders : mapping of str to Path
        Whose bytes are counted at every tenth sample.
    interval : float
        Seconds from one sample to the next.
    """

    def __init__(
        self,
        roots: Mapping[str, int],
        folders: Mapping[str, Path] | None = None,
        interval: float = 1.0,
    ) -> None:
        self.trees = {name: Tree(pid) for name, pid in roots.items()}
        self.peak_bytes = dict.fromkeys(roots, 0)
        self.peak_of_all = 0  # at one moment
        self.folders = dict(folders or {})
        self.peak_disk = dict.fromkeys(self.folders, 0)
        self.own_seconds = 0.0
        self._interval = interval
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._before = dict.fromkeys(roots, 0.0)
        self._before = self.sample()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def sample(self, *, memory: bool = True) -> dict[str, float]:
        """Take a sample now; return seconds of the processor since the start, by tree."""
        with self._lock:
            begun = time.thread_time()
            readings = read_processes()
            of_all = 0
            for name, tree in self.trees.items():
                alive = tree.update(readings)
                if memory:
                    used = sum(map(memory_of, alive))
                    self.peak_bytes[name] = max(self.peak_bytes[name], used)
                    of_all += used
            self.peak_of_all = max(self.peak_of_all, of_all)
            self.own_seconds += time.thread_time() - begun
            return self.seconds()

    def look_at_folders(self) -> None:
        """Count the bytes of the folders now."""
        begun = time.thread_time()
        for name, folder in self.folders.items():
            used = sum(bytes_below(folder, str).values())
            self.peak_disk[name] = max(self.peak_disk[name], used)
        self.own_seconds += time.thread_time() - begun

    def seconds(self) -> dict[str, float]:
        """Return seconds of the processor since the start, by tree, at the last sample."""
        return {name: tree.seconds - self._before[name] for name, tree in self.trees.items()}

    def stop(self) -> None:
        """Take no more samples."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stopped.wait(self._interval):
            number += 1
            self.sample(memory=number % 2 == 0)  # the dearest of it
            if number % 10 == 0:
                self.look_at_folders()


@contextmanager
def metered(
    roots: Mapping[str, int], folders: Mapping[str, Path] | None = None, interval: float = 1.0
) -> Iterator[Meter]:
    """Yield a meter that runs within the block."""
    meter = Meter(roots, folders, interval)
    try:
        yield meter
    finally:
        meter.stop()


def bytes_below(folder: Path, kind: Callable[[Path], str]) -> dict[str, int]:
    """Return the bytes on disk below a folder by kind of file; files may go meanwhile.

    Parameters
    ----------
    folder : Path
    kind : callable
        From the path below the folder to a name.
    """
    sizes: dict[str, int] = defaultdict(int)
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            try:
                sizes[kind(path.relative_to(folder))] += path.stat().st_size
            except OSError:
                continue
    return dict(sizes)
