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
from collections.abc import Iterable
from typing import Any, BinaryIO

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.readers.budget import ReadingBudget
from pexeso.lake.readers.file_source import FileSource
from pexeso.lake.typed.table import TypedTable

_ROWS_A_BATCH = 1 << 16
_BASE_BYTES = 2 << 30
_BYTES_A_BYTE = 64
_KEPT_BYTES = 16 << 20
"""After a larger file the process ends, and its memory with it."""

_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "TZ": "UTC"}
"""Other pools reserve GBs; DuckDB gives points of time in the time zone of the machine."""

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from pexeso.lake.typed import apart; apart.main()"
)


def read_apart(
    budget: ReadingBudget, module: str, request: dict[str, Any], *, n_bytes: int
) -> tuple[dict[str, Any], pa.Table | None]:
    """Have a function `answer(request)` of a module called in a process of its own.

    Parameters
    ----------
    n_bytes : int
        Size of what is read, unpacked. The process may take 2 GiB of address space and 64 bytes
        more for each of these.
    """
    limits = {
        "bytes": _BASE_BYTES + _BYTES_A_BYTE * n_bytes,
        "seconds": budget.max_seconds,
    }
    answered = _reader.ask(
        {"limits": limits, "module": module, "request": request}, is_last=n_bytes > _KEPT_BYTES
    )
    if answered == -signal.SIGXCPU:
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


def read_file_apart(source: FileSource, module: str) -> TypedTable:
    """Read a file of one table by a module's `answer`, asked for `path` and its `bounds`.

    Memory: the table, at most `max_bytes` of the source, here and in the process that reads.
    """
    with source.local_path() as path:
        budget = source.budget()
        request = {"path": os.fspath(path), "bounds": bounds(budget)}
        _, table = read_apart(budget, module, request, n_bytes=budget.n_bytes)
    if table is None:
        raise TableReadError(f"{source.shown} holds no table.")
    return TypedTable(table.column_names, table.schema.types, batches(table))


def bounds(budget: ReadingBudget) -> dict[str, int]:
    """Return what `budget_of` makes the same budget of, for a request."""
    return {"n_bytes": budget.n_bytes, "max_bytes": budget.max_bytes}


def budget_of(request: dict[str, Any]) -> ReadingBudget:
    """Return the budget of a request, for an `answer`."""
    return ReadingBudget("{shown}", **request["bounds"])


def gathered(
    pieces: Iterable[pa.RecordBatch], schema: pa.Schema, budget: ReadingBudget
) -> pa.Table:
    """Put batches together, for an `answer`."""
    record_batches, n_bytes, n_rows = [], 0, 0
    for batch in pieces:
        n_bytes, n_rows = n_bytes + batch.nbytes, n_rows + batch.num_rows
        check_table(budget, n_bytes, n_rows, len(schema))
        record_batches.append(batch)
    return pa.Table.from_batches(record_batches, schema)


def check_table(budget: ReadingBudget, n_bytes: int, n_rows: int, n_columns: int) -> None:
    """Raise `TableReadError` where columns in memory come to more than the budget has."""
    budget.check_cells(n_rows, n_columns)
    budget.check_unpacked_columns(n_bytes)


def batches(table: pa.Table) -> Iterable[list[pa.Array]]:
    """Yield the rows of a table as `TypedTable` has them, without copying."""
    for batch in table.to_batches(max_chunksize=_ROWS_A_BATCH):
        yield batch.columns


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
            try:
                process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()
                sizes = process.stdout.readline().split()
                parts = [process.stdout.read(int(size)) for size in sizes]
                if len(parts) == 2 and [len(part) for part in parts] == [int(n) for n in sizes]:
                    if is_last:
                        self.end()
                    return parts[0], parts[1]
            except (OSError, ValueError):  # it ended meanwhile
                pass
            except BaseException:  # of this thread: the answer would be taken for the next one's
                process.kill()
                self.end()
                raise
            return self.end()

    def end(self) -> int:
        """End the process, and return the number that it ended with."""
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
            command = [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path)]
            self._process = subprocess.Popen(
                command,
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
    """Answer the requests on standard input, a line each: the other side of `read_apart`."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing that a library prints comes between
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks ends this process
    for line in sys.stdin.buffer:
        message = json.loads(line)
        _limit(message["limits"])
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
            writer.write_table(table, max_chunksize=_ROWS_A_BATCH)
    rest = stream.getvalue()
    output.write(f"{len(head)} {rest.size}\n".encode() + head)
    output.write(rest)
    output.flush()


def _limit(limits: dict[str, int]) -> None:
    """Limit memory and further time of this process, as far as the system can."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = limits["seconds"] + int(used.ru_utime + used.ru_stime) + 1
    for what, number in (
        (resource.RLIMIT_AS, limits["bytes"]),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        soft_limit = number if hard == resource.RLIM_INFINITY else min(number, hard)
        try:
            resource.setrlimit(what, (soft_limit, hard))
        except (OSError, ValueError):  # some systems know no limit on memory
            continue
