"""Files read in a process of their own, by libraries that a damaged file can bring down.

Such a library may end its whole process, or never end, or take all memory. The process that reads
has limits on memory and processor time, and what it gives comes back as one Arrow stream. It is
kept for the next file; one that ended is replaced.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.readers.table import FileSource, ReadingBudget
from pexeso.runtime.extras import lack_of
from pexeso.runtime.system import OUT_OF_TIME, ended_in_time, limit_process

ROWS_A_BATCH = 1 << 16
_BASE_BYTES, _BYTES_A_BYTE = 2 << 30, 64
# After a larger file the process ends, and its memory with it.
_KEPT_BYTES = 16 << 20
# Other pools reserve GBs; DuckDB gives points of time in the time zone of the machine.
_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "TZ": "UTC"}
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from pexeso.lake.typed import sandbox; sandbox.main()"
)

Answer = tuple[dict[str, Any], pa.Table | None]


class InnerTable(NamedTuple):
    """A table inside a file that may hold several, and why it cannot be read: a clause."""

    name: str
    reason: str | None = None


class TypedTable(NamedTuple):
    """A table with the types of its file, and sentences on how it was read."""

    rows: pa.Table
    notes: list[str]


@contextlib.contextmanager
def _as_stored(source: FileSource, path: Path) -> Iterator[tuple[str, int]]:
    yield os.fspath(path), source.budget().n_bytes


@dataclass(frozen=True)
class SandboxedFormat:
    """A format whose files are read in the process, by the function `answer(request)` of a module.

    A request has a `path`, `bounds` and the name of a `table`. Answered are the table and its
    `notes`; without a name `tables`, each with the reason why it cannot be read. Memory: the table,
    at most `max_bytes` of the source, here and in the process that reads.
    """

    module: str
    # From a file to the path that is read, and its bytes unpacked. The process may take 2 GiB of
    # address space and 64 bytes more for each of these.
    prepared: Callable[[FileSource, Path], contextlib.AbstractContextManager[tuple[str, int]]] = (
        _as_stored
    )

    def tables_in(self, source: FileSource) -> list[InnerTable]:
        answer, _ = self._answer(source, {})
        return [InnerTable(*entry) for entry in answer["tables"]]

    def read(self, source: FileSource, name: str) -> TypedTable:
        answer, table = self._answer(source, {"table": name})
        if table is None:
            raise TableReadError(f"{source.shown} holds no table.")
        return TypedTable(table, answer.get("notes", []))

    def _answer(self, source: FileSource, request: dict[str, Any]) -> Answer:
        with source.local_path() as file, self.prepared(source, file) as (path, n_bytes):
            return ask(self.module, {"path": path, **request}, source.budget(), n_bytes)


def ask(module: str, request: dict[str, Any], budget: ReadingBudget, n_bytes: int) -> Answer:
    """Return what `answer(request)` of a module gives for a file that unpacks to `n_bytes`."""
    limits = {"bytes": _BASE_BYTES + _BYTES_A_BYTE * n_bytes, "seconds": budget.max_seconds}
    request = {"bounds": bounds(budget), **request}
    message = {"limits": limits, "module": module, "request": request}
    answered = _reader.ask(message, is_last=n_bytes > _KEPT_BYTES)
    if answered == OUT_OF_TIME:
        raise budget.out_of_time()
    if isinstance(answered, int):
        raise TableReadError(
            f"{budget.shown} cannot be read: it is damaged, or its cells take more than "
            f"{limits['bytes']:,} bytes of memory."
        )
    head, rest = answered
    answer = json.loads(head)
    if (error := answer.pop("error", None)) is not None:
        raise TableReadError(error.replace("{shown}", budget.shown))
    return answer, pa.ipc.open_stream(rest).read_all() if rest else None


def require_package(package: str) -> None:
    """Refuse a file whose format is read by a package that is not installed."""
    if find_spec(package) is None:
        raise TableReadError(f"{lack_of(package, '{shown}')}.")


def bounds(budget: ReadingBudget) -> dict[str, int]:
    return {"n_bytes": budget.n_bytes, "max_bytes": budget.max_bytes}


def budget_of(request: dict[str, Any]) -> ReadingBudget:
    return ReadingBudget("{shown}", **request["bounds"])


def gathered(
    pieces: Iterable[pa.RecordBatch], schema: pa.Schema, budget: ReadingBudget
) -> pa.Table:
    batches, n_bytes, n_rows = [], 0, 0
    for batch in pieces:
        n_bytes, n_rows = n_bytes + batch.nbytes, n_rows + batch.num_rows
        check_table(budget, n_bytes, n_rows, len(schema))
        batches.append(batch)
    return pa.Table.from_batches(batches, schema)


def check_table(budget: ReadingBudget, n_bytes: int, n_rows: int, n_columns: int) -> None:
    budget.check_cells(n_rows, n_columns)
    budget.check_unpacked_columns(n_bytes)


class _Reader:
    """The process that reads, started when it is first needed; one request at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def ask(self, message: dict[str, Any], *, is_last: bool) -> tuple[bytes, bytes] | int:
        """Return both parts of the answer, or the number that the process ended with."""
        with self._lock:
            process = self._running()
            with ended_in_time(process, message["limits"]["seconds"]) as is_over:
                answered = self._answer(process, message)
            if answered is None:
                number = self.end()
                return OUT_OF_TIME if is_over.is_set() else number
            if is_last:
                self.end()
            return answered

    def _answer(
        self, process: subprocess.Popen[bytes], message: dict[str, Any]
    ) -> tuple[bytes, bytes] | None:
        """Return both parts of the answer; None where the process ended meanwhile."""
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            sizes = list(map(int, process.stdout.readline().split()))
            parts = [process.stdout.read(size) for size in sizes]
        except (OSError, ValueError):
            return None
        except BaseException:  # of this thread: the answer would be taken for the next one's
            process.kill()
            self.end()
            raise
        if len(parts) != 2 or list(map(len, parts)) != sizes:
            return None
        return parts[0], parts[1]

    def end(self) -> int:
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return 0
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what was not written yet cannot be
                stream.close()
        return process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        # A process that was forked has the pipes of another's reader.
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self.end()
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ENVIRONMENT},
            )
            self._owner = os.getpid()
        return self._process


_reader = _Reader()
atexit.register(_reader.end)


def main() -> None:
    """Answer the requests on standard input, a line each: the process that reads."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing that a library prints comes between
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks ends this process
    for line in sys.stdin.buffer:
        message = json.loads(line)
        limit_process(message["limits"]["bytes"], message["limits"]["seconds"])
        try:
            answer, table = importlib.import_module(message["module"]).answer(message["request"])
        except TableReadError as error:
            answer, table = {"error": str(error)}, None
        _write(output, answer, table)
        del answer, table


def _write(output: BinaryIO, answer: dict[str, Any], table: pa.Table | None) -> None:
    head = json.dumps(answer).encode()
    stream = pa.BufferOutputStream()
    if table is not None:
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table, max_chunksize=ROWS_A_BATCH)
    rest = stream.getvalue()
    output.write(f"{len(head)} {rest.size}\n".encode() + head)
    output.write(rest)
    output.flush()
