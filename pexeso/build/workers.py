"""What runs the tasks of a build: processes of this machine, or Spark.

A task is a function of an item and an `Attempt`, of an importable module, so that either can send
it to a process. It reads files that earlier tasks left, writes files to the folder of its attempt,
and returns a small result. Nothing else passes between tasks, so that a build is described once
and leaves the same bytes whoever runs it.

A process of this machine is an interpreter that receives tasks on its input. It imports nothing of
the program that started it, and ends when that program does, however it ends.

Each attempt at a stage of a build writes to a folder of its own, and a small document names that
folder once everything in it is on the disk. So a task of a driver that died, which may go on
writing for a while, cannot spoil what a later attempt wrote; and whenever a build ends, a stage is
finished or it is not. A build that was interrupted resumes after its finished stages.
"""

from __future__ import annotations

import math
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from pexeso.errors import BuildError, IndexCorruptError, PexesoError
from pexeso.runtime.formatting import first_line
from pexeso.runtime.progress import advance, begin_steps, checkpoint, log_event
from pexeso.runtime.system import available_memory, available_processors, signals
from pexeso.runtime.threads import LARGE_BYTES, freeze_imports, release_unused, take_one_thread
from pexeso.store.files import read_document, remove_tree, replace_document, sync_tree

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


Facts = dict[str, Any]


class Stages:
    """The stages of one build, in its scratch folder."""

    def __init__(
        self,
        scratch: Path,
        progress: Callable[[str], None] | None = None,
        on_finished: Callable[[], None] | None = None,
    ) -> None:
        self.scratch = scratch
        self.names: list[str] = []
        self.resumed: list[str] = []
        self._tell = progress or (lambda stage: None)
        self._on_finished = on_finished or (lambda: None)

    def run(self, stage: str, work: Callable[[Path], Facts | None]) -> Facts:
        """Do a stage, unless it is finished, and return its facts with the ``seconds`` it took."""
        self._tell(stage)
        log_event("stage", stage=stage)
        self.names.append(stage)
        earlier_facts = self.finished(stage)
        if earlier_facts is not None:
            log_event("stage finished earlier", stage=stage)
            self.resumed.append(stage)
            self._on_finished()
            return earlier_facts
        self._clear(stage)
        attempt = self.scratch / f"{stage}.{secrets.token_hex(6)}"
        attempt.mkdir()
        started = time.perf_counter()
        facts = work(attempt) or {}
        sync_tree(attempt)
        facts = {**facts, "seconds": round(time.perf_counter() - started, 3)}
        replace_document(self._marker(stage), {"folder": attempt.name, "facts": facts})
        log_event(
            "stage finished",
            **{**facts.get("report", {}), "stage": stage, "seconds": facts["seconds"]},
        )
        self._on_finished()
        return facts

    def finished(self, stage: str) -> Facts | None:
        document = self._document(stage)
        return None if document is None else document["facts"]

    def all_finished(self) -> dict[str, Facts]:
        stages = [path.stem for path in sorted(self.scratch.glob("*.json"))]
        return {stage: facts for stage in stages if (facts := self.finished(stage)) is not None}

    def folder(self, stage: str) -> Path:
        document = self._document(stage)
        if document is None:
            raise IndexCorruptError(
                f"The stage {stage} of the build in '{self.scratch}' is not finished."
            )
        return self.scratch / document["folder"]

    def forget(self, stage: str) -> None:
        self._marker(stage).unlink(missing_ok=True)
        self._clear(stage)

    def _document(self, stage: str) -> dict[str, Any] | None:
        path = self._marker(stage)
        if not path.is_file():
            return None
        document = read_document(path)
        folder = self.scratch / document["folder"]
        return document if folder.parent == self.scratch and folder.is_dir() else None

    def _marker(self, stage: str) -> Path:
        return self.scratch / f"{stage}.json"

    def _clear(self, stage: str) -> None:
        for path in self.scratch.glob(f"{stage}.*"):
            remove_tree(path)


# Seconds of tasks are kept in classes this factor wide: the median is known to 2.5 %.
_STEP = 1.05

_MIN_SECONDS = 1e-3
SUMS = ("tasks", "rows_in", "rows_out", "bytes_in", "bytes_out", "task_seconds")


def empty_sums() -> dict[str, Any]:
    return {**dict.fromkeys(SUMS, 0), "slowest": 0.0, "classes": {}}


def added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    sums = {name: one[name] + other[name] for name in SUMS}
    classes = dict(Counter(one["classes"]) + Counter(other["classes"]))
    return {**sums, "slowest": max(one["slowest"], other["slowest"]), "classes": classes}


def class_of(seconds: float) -> int:
    return round(math.log(max(seconds, _MIN_SECONDS), _STEP))


def median(classes: Mapping[int, int]) -> float:
    """Return the median of tasks that are counted by class: the lower one of two in the middle."""
    middle = (sum(classes.values()) + 1) // 2
    for key in sorted(classes):
        middle -= classes[key]
        if middle <= 0:
            return _STEP**key
    return 0.0


def sums_of_task(counted: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return the sums of one task: the rows and bytes that it counted, and its seconds."""
    classes = {class_of(seconds): 1}
    one = {"tasks": 1, "task_seconds": seconds, "slowest": seconds, "classes": classes}
    return {**counted, **one}


Task = Callable[[Any, "Attempt"], Any]

# Most bytes that this process reads itself: about what it does in the time in which the processes
# of a pool start; and where they have been started, in that in which tasks are sent to them.
HERE_BYTES, LITTLE_BYTES = 8 << 20, 1 << 20

# Memory of a task as a multiple of the compressed files that it reads, and the share of the free
# memory that tasks take together: as many run at a time as fit.
MEMORY_FACTOR, SHARE_OF_MEMORY = 10, 0.75

_ATTEMPTS = "attempts"
_END_SECONDS = 5
_LENGTH_BYTES = 8


def _packed(message: Any) -> bytes:
    """Return what one process of a build sends to another, over pipes that no one else has.

    Tasks are functions with stores, catalogs and models in their arguments. They are read by the
    processes that this program has started alone, and never from a file.
    """
    return bytes(ForkingPickler.dumps(message))


def _write(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(len(message).to_bytes(_LENGTH_BYTES, "little") + message)
    pipe.flush()


def _read(pipe: IO[bytes]) -> Iterator[bytes]:
    """Yield the messages that come in, until the other process closes the pipe."""
    with suppress(OSError, ValueError):
        while len(length := pipe.read(_LENGTH_BYTES)) == _LENGTH_BYTES:
            n_bytes = int.from_bytes(length, "little")
            if len(message := pipe.read(n_bytes)) < n_bytes:
                return
            yield message


class Attempt:
    """One attempt at a task: its folder, of which files are taken over, and its measures."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sums = empty_sums()
        self._started = time.perf_counter()

    def path(self, kind: str, name: str) -> Path:
        path = self.folder / kind / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def count(self, rows: pa.RecordBatch | pa.Table, side: str) -> None:
        """Count rows that came ``in`` or went ``out``."""
        self._sums[f"rows_{side}"] += rows.num_rows
        self._sums[f"bytes_{side}"] += rows.nbytes

    def counted(self, batches: Iterator[pa.RecordBatch], side: str) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.count(batch, side)
            yield batch

    def sums(self) -> Facts:
        return sums_of_task(self._sums, time.perf_counter() - self._started)


@dataclass(frozen=True)
class Needs:
    """What the tasks of a run need."""

    n_bytes: int = 0  # What all of them read, on the disk
    alone: bool = False  # Whether they need a process of their own, with one thread
    # Bytes of memory of the largest task; by default `MEMORY_FACTOR` times what one reads.
    memory: int | None = None

    def memory_of_one(self, n_tasks: int) -> int:
        if self.memory is not None:
            return self.memory
        return MEMORY_FACTOR * self.n_bytes // max(1, n_tasks)


class Workers(Protocol):
    """What runs the tasks of a build or an update, to be used in a `with` block."""

    cores: int  # Tasks that run at a time
    facts: Facts  # What reports say of where the tasks ran: ``master`` and ``cores``

    def run(self, task: Task, items: Sequence[Any], folder: Path, needs: Needs) -> Runs:
        """Run a task for every item, and return for each its result, folder and sums."""


Runs = list[tuple[Any, Path, Facts]]


def run_attempt(task: Task, item: Any, folder: Path) -> tuple[Any, Path, Facts]:
    attempt = Attempt(folder / secrets.token_hex(8))
    return task(item, attempt), attempt.folder, attempt.sums()


def run_tasks(
    workers: Workers, task: Task, items: Sequence[Any], folder: Path, needs: Needs = Needs()
) -> tuple[list[Any], Facts]:
    """Run a task for every item, and take over what the attempts that count have written.

    A file ``KIND/NAME`` of an attempt becomes ``KIND/00007-NAME`` in `folder`, by the number of
    its item. What an attempt writes that was given up or began twice stays aside. What the tasks
    measured is added up.
    """
    attempts = folder / _ATTEMPTS
    results, sums = [], empty_sums()
    for number, (result, written, measured) in enumerate(workers.run(task, items, attempts, needs)):
        results.append(result)
        sums = added(sums, measured)
        for path in sorted(written.glob("*/*")):
            target = folder / path.parent.name / f"{number:05d}-{path.name}"
            target.parent.mkdir(exist_ok=True)
            os.replace(path, target)
    remove_tree(attempts)
    return results, sums


class LocalWorkers:
    """Processes of this machine, started where there is more to do than this one does sooner."""

    def __init__(self, cores: int | None = None) -> None:
        self.cores = cores or available_processors()
        self._processes: list[_Process] = []
        self._answers = SimpleQueue[tuple[_Process, bytes | None]]()

    @property
    def facts(self) -> Facts:
        return {"master": "none", "cores": max(1, len(self._processes))}

    def __enter__(self) -> LocalWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.stop()
        for process in self._processes:
            process.join()
        self._processes = []

    def run(self, task: Task, items: Sequence[Any], folder: Path, needs: Needs) -> Runs:
        if not needs.alone and needs.n_bytes <= (LITTLE_BYTES if self._processes else HERE_BYTES):
            begin_steps(len(items))
            return [_counted(run_attempt(task, item, folder)) for item in items]
        n_processes = min(self.cores, len(items), _fitting(needs.memory_of_one(len(items))))
        while len(self._processes) < n_processes:
            self._processes.append(_Process(self._answers))
        return self._run_there(task, items, folder, self._processes[:n_processes])

    def _run_there(
        self, task: Task, items: Sequence[Any], folder: Path, idle: list[_Process]
    ) -> Runs:
        sent = _packed((task, folder))
        waiting, runs = deque(enumerate(items)), dict[int, tuple[Any, Path, Facts]]()
        at_work: dict[_Process, int] = {}
        for process in idle:
            process.send(sent)
        begin_steps(len(items))
        while len(runs) < len(items):
            checkpoint()
            while idle and waiting:
                process, (number, item) = idle.pop(), waiting.popleft()
                process.send(_packed((item,)))
                at_work[process] = number
            with suppress(Empty):
                # Not for ever: on Windows no key interrupts a thread that waits.
                process, answer = self._answers.get(timeout=1)
                if process in at_work:
                    runs[at_work.pop(process)] = _counted(process.result(answer))
                    idle.append(process)
        return [runs[number] for number in range(len(items))]


def _counted(run: tuple[Any, Path, Facts]) -> tuple[Any, Path, Facts]:
    advance(1)
    return run


def _fitting(memory: int) -> int:
    """Return how many tasks of so many bytes fit in the free memory, 1 at least."""
    free = available_memory()
    return sys.maxsize if free is None else max(1, int(SHARE_OF_MEMORY * free) // max(1, memory))


class _Process:
    """An interpreter that runs tasks, and the pipes to it."""

    def __init__(self, answers: SimpleQueue[tuple[_Process, bytes | None]]) -> None:
        import_path = os.pathsep.join(map(os.path.abspath, sys.path))
        self._process = subprocess.Popen(
            [
                sys.executable,
                *subprocess._args_from_interpreter_flags(),
                "-P",
                "-c",
                "from pexeso.build.workers import serve; serve()",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **_ENVIRONMENT, "PYTHONPATH": import_path},
        )
        self._listener = threading.Thread(target=self._listen, args=(answers,), daemon=True)
        self._listener.start()

    def _listen(self, answers: SimpleQueue[tuple[_Process, bytes | None]]) -> None:
        for message in _read(cast(IO[bytes], self._process.stdout)):
            answers.put((self, message))
        answers.put((self, None))

    def send(self, message: bytes) -> None:
        try:
            _write(cast(IO[bytes], self._process.stdin), message)
        except OSError as error:
            raise self._ended() from error

    def result(self, answer: bytes | None) -> tuple[Any, Path, Facts]:
        """Return what a task has given, or raise what it has raised; None: the process ended."""
        if answer is None:
            raise self._ended()
        done, result = ForkingPickler.loads(answer)
        if done:
            return result
        raise result

    def _ended(self) -> BuildError:
        """Return what the end of the process means, before its work was done."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        code = self._process.returncode
        number = -code if code is not None and code < 0 else None
        how = f"ended with exit code {code}"
        if number in {known.value for known in signal.Signals}:
            how = f"was killed by {signal.Signals(number).name}"
        cause = ", most often for want of memory" if number in signals("SIGKILL") else ""
        return BuildError(
            f"A process of this build {how} before its task was done{cause}. Free some memory, "
            "give fewer processors to the command ('taskset -c 0 pexeso ...'), which runs a task "
            "on each, or use a machine with more."
        )

    def stop(self) -> None:
        self._process.kill()

    def join(self) -> None:
        self._process.wait()
        self._listener.join()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what was to be sent goes nowhere
                cast(IO[bytes], pipe).close()


# Processes run side by side already: a pool of threads inside each would only make them wait.
# Of arrays that were dropped glibc keeps as much as is held, but none of those larger than this.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(4 << 20),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}


def serve() -> None:
    """Run tasks that come in until the input is closed: what a worker process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it ends it
    for number in signals("SIGTERM", "SIGHUP"):
        signal.signal(number, signal.SIG_DFL)
    take_one_thread()
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What is printed, or read, by a library is no message.
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nothing, descriptor)
    messages: deque[bytes] = deque()
    arrived = threading.Semaphore(0)

    def listen() -> None:
        # A thread of its own notices at once that the input is closed, also within a task.
        for message in _read(source):
            messages.append(message)
            arrived.release()
        os._exit(1)

    threading.Thread(target=listen, name="pexeso-listen", daemon=True).start()
    task, folder = None, None
    while True:
        arrived.acquire()
        message = ForkingPickler.loads(messages.popleft())
        if len(message) == 2:
            task, folder = message
            continue
        _write(sink, _answer(task, message[0], folder))
        freeze_imports()
        release_unused(LARGE_BYTES)


def _answer(task: Task, item: Any, folder: Path) -> bytes:
    try:
        return _packed((True, run_attempt(task, item, folder)))
    except (PexesoError, OSError, MemoryError) as error:
        return _packed((False, error))
    except Exception as error:
        summary = f"{type(error).__name__}: {first_line(error)}"
        failed = BuildError(f"A task of this build failed: {summary.rstrip('.')}.")
        failed.add_note(traceback.format_exc())
        return _packed((False, failed))


class SparkWorkers(ExitStack):
    """Tasks of Spark, whose session is started by the first of them."""

    def __init__(self, session: Callable[[], AbstractContextManager[SparkSession]]) -> None:
        super().__init__()
        self._session = session
        self._spark: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        """The session, started where it was not."""
        if self._spark is None:
            self._spark = self.enter_context(self._session())
        return self._spark

    @property
    def has_spark(self) -> bool:
        return self._spark is not None

    @property
    def cores(self) -> int:
        return self.spark.sparkContext.defaultParallelism

    @property
    def facts(self) -> Facts:
        return {"master": self.spark.sparkContext.master, "cores": self.cores}

    def run(self, task: Task, items: Sequence[Any], folder: Path, needs: Needs) -> Runs:
        import pyarrow as pa

        shared = self.spark.sparkContext.broadcast([_packed(item) for item in items])

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    run = run_attempt(task, ForkingPickler.loads(shared.value[number]), folder)
                    rows = {"number": [number], "run": [_packed(run)]}
                    yield pa.RecordBatch.from_pydict(rows)
            freeze_imports()

        numbers = self.spark.range(0, len(items), 1, max(1, len(items)))
        runs = numbers.mapInArrow(work, "number long, run binary").toArrow().sort_by("number")
        shared.destroy()
        return [ForkingPickler.loads(run) for run in runs["run"].to_pylist()]
