"""Files read in a process of their own, by libraries that a damaged file can bring down.

Such a library may end its whole process, or never end, or take all memory. The process that reads
has limits on memory and processor time, and what it gives comes back as one Arrow stream.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from typing import Any, BinaryIO

import pyarrow as pa

from pexeso.errors import TableReadError

_ROWS_A_BATCH = 1 << 16
_BASE_BYTES = 2 << 30
_BYTES_A_BYTE = 64
_BASE_SECONDS = 60
_BYTES_A_SECOND = 1 << 20
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from pexeso.lake.typed import apart; apart.main(sys.argv[2])"
)


def read_apart(
    shown: str, module: str, request: dict[str, Any], *, n_bytes: int
) -> tuple[dict[str, Any], pa.Table | None]:
    """Have a function `answer(request)` of a module called in a process of its own.

    Parameters
    ----------
    shown : str
        The file's name in messages.
    module : str
        One of this package. Its `answer` returns what goes through JSON, and a table or None. What
        it raises as `TableReadError` is raised here, with `shown` in place of ``{shown}``.
    request : dict
        What goes through JSON.
    n_bytes : int
        Size of what is read, unpacked. The process may take 2 GiB of address space and 64 bytes
        more for each of these, and a minute of processor time and a second more for each MiB.

    Raises
    ------
    TableReadError
        The file cannot be read, or the process ended before it was.
    """
    limits = {
        "bytes": _BASE_BYTES + _BYTES_A_BYTE * n_bytes,
        "seconds": _BASE_SECONDS + n_bytes // _BYTES_A_SECOND,
    }
    command = [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path), module]
    done = subprocess.run(
        command,
        input=json.dumps({"limits": limits, "request": request}).encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},  # others reserve gigabytes
        check=False,
    )
    if done.returncode == -signal.SIGXCPU:
        raise TableReadError(
            f"{shown} cannot be read: after {limits['seconds']:,} seconds of work there was no end."
        )
    if done.returncode != 0 or not done.stdout:
        raise TableReadError(
            f"{shown} cannot be read: it is damaged, or its cells take more than "
            f"{limits['bytes']:,} bytes of memory."
        )
    end = done.stdout.index(b"\n") + 1
    answer = json.loads(done.stdout[:end])
    rest = pa.py_buffer(done.stdout).slice(end)
    if (error := answer.pop("error", None)) is not None:
        raise TableReadError(error.replace("{shown}", shown))
    return answer, pa.ipc.open_stream(rest).read_all() if rest.size else None


def batches(table: pa.Table) -> Iterable[list[pa.Array]]:
    """Yield the rows of a table as `TypedTable` has them, without copying."""
    for batch in table.to_batches(max_chunksize=_ROWS_A_BATCH):
        yield batch.columns


def main(module: str) -> None:
    """Answer the one request on standard input: the other side of `read_apart`."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing that a library prints comes between
    asked = json.load(sys.stdin)
    _limit(asked["limits"])
    try:
        found, table = importlib.import_module(module).answer(asked["request"])
    except TableReadError as error:
        found, table = {"error": str(error)}, None
    _write(output, found, table)


def _write(output: BinaryIO, found: dict[str, Any], table: pa.Table | None) -> None:
    with output:
        output.write(json.dumps(found).encode() + b"\n")
        if table is not None:
            with pa.ipc.new_stream(output, table.schema) as writer:
                writer.write_table(table, max_chunksize=_ROWS_A_BATCH)


def _limit(limits: dict[str, int]) -> None:
    """Limit memory and time of this process, as far as the system can."""
    import resource

    for what, number in (
        (resource.RLIMIT_AS, limits["bytes"]),
        (resource.RLIMIT_CPU, limits["seconds"]),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
        try:
            resource.setrlimit(what, (wanted, hard))
        except (OSError, ValueError):  # some systems know no limit on memory
            continue
