"""Where a result comes from: which code, version, command line and date, and how long it took.

`benchmarks.report.write_result` adds it to every result. Which code a result rests on is declared
in ``results.yml`` (`benchmarks.declared_results`).
"""

from __future__ import annotations

import datetime
import hashlib
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from benchmarks.canonical import canonical_text

ROOT = Path(__file__).resolve().parent.parent

MACHINE = ("processor", "cores", "memory_gib", "device")
"""What must be equal of two machines for their seconds to compare."""

_STARTED = time.monotonic()
_CODE = ("pexeso", "embed", "partition", "benchmarks", "examples")
_KINDS = (".py", ".yml", ".json", ".js", ".css", ".html")
_NO_CODE = ("benchmarks/results/", "benchmarks/data/", "examples/lake/", "pexeso/demo/lake/")


def read_code(root: Path = ROOT) -> dict[str, bytes]:
    """Return the contents of all files of code by their names below the root."""
    paths = (path for folder in _CODE for path in (root / folder).rglob("*"))
    code = {path.relative_to(root).as_posix(): path for path in paths if path.suffix in _KINDS}
    return {name: code[name].read_bytes() for name in code if not name.startswith(_NO_CODE)}


LOADED = read_code()
"""The code that this process runs, as it was at the start: files may change in a long run."""


def environment_with_this_code() -> dict[str, str]:
    """Return this process's environment, where Python finds this repository's code first."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


def files_of(paths: Sequence[str], code: Mapping[str, bytes]) -> list[str]:
    """Return the names of the files that paths name: files, folders and patterns.

    What begins with ``!`` takes files out again; the last that names a file decides.

    Examples
    --------
    >>> code = {"a/b/c.py": b"", "a/d.py": b"", "ab.py": b"", "b1.py": b""}
    >>> files_of(["a", "b*.py"], code)
    ['a/b/c.py', 'a/d.py', 'b1.py']
    >>> files_of(["a", "!a/b"], code), files_of(["a", "!a/b", "a/b/c.py"], code)
    (['a/d.py'], ['a/b/c.py', 'a/d.py'])
    """
    return sorted(name for name in code if _is_named(name, paths))


def _is_named(name: str, paths: Sequence[str]) -> bool:
    for path in reversed(paths):
        pattern = path.removeprefix("!")
        if name.startswith(f"{pattern}/") or fnmatchcase(name, pattern):
            return pattern == path
    return False


def code_digest(paths: Sequence[str], code: Mapping[str, bytes] = LOADED) -> str:
    """Return the BLAKE2b-64 of some of the code, in hexadecimal.

    It covers the names of the files and what the computer reads of them. Neither comments,
    docstrings and names of local variables nor commits and dates matter: the same code has the same
    digest in any checkout.

    Examples
    --------
    >>> paths = ["pexeso/engine/metrics.py"]
    >>> named = code_digest(paths, {"pexeso/engine/metrics.py": b"unit = 1  # of what"})
    >>> named == code_digest(paths, {"pexeso/engine/metrics.py": b"unit = 1"})
    True
    >>> named == code_digest(paths, {"pexeso/engine/metrics.py": b"unit = 2"})
    False
    """
    digest = hashlib.blake2b(digest_size=8)
    for name in files_of(paths, code):
        content = code[name]
        if name.endswith(".py"):
            content = canonical_text(content.decode()).encode()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def origin_of(paths: Sequence[str] | None) -> dict[str, Any]:
    """Return what a result that this process makes now has to say about where it comes from.

    Parameters
    ----------
    paths : sequence of str, optional
        The code it rests on; none where nothing is declared for it: then its digest is null, and
        it counts as stale.
    """
    import pexeso

    return {
        "code": None if paths is None else code_digest(paths),
        "version": pexeso.__version__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - _STARTED, 1),
        "command": command_line(sys.argv),
    }


def command_line(arguments: Sequence[str]) -> str:
    """Return the command line of a process, as it is typed in the root of the repository.

    Examples
    --------
    >>> command_line([str(ROOT / "benchmarks" / "__main__.py"), "run", "--data", "demo"])
    'python -m benchmarks run --data demo'
    >>> command_line([str(ROOT / "benchmarks" / "start.py"), "--write"])
    'python -m benchmarks.start --write'
    >>> command_line([str(ROOT / "examples" / "enrich.py"), str(ROOT / "work")])
    'python examples/enrich.py work'
    """
    program = Path(arguments[0]).resolve()
    prefix = f"{ROOT}/"
    rest = [text.removeprefix(prefix) for text in arguments[1:]]
    if not program.is_relative_to(ROOT):
        return shlex.join([program.name, *rest])
    name = program.relative_to(ROOT).with_suffix("").as_posix()
    if name.startswith("benchmarks/"):
        module = name.removesuffix("/__main__").replace("/", ".")
        return shlex.join(["python", "-m", module, *rest])
    return shlex.join(["python", f"{name}{program.suffix}", *rest])


def why_not_again(
    result: Mapping[str, Any], machine: Mapping[str, Any], code: str | None
) -> str | None:
    """Return why a finished result does not stand for a run made here and now; None where it does.

    Parameters
    ----------
    result : mapping
        With ``machine`` and ``origin`` as they were.
    machine : mapping
        What `benchmarks.machine.describe_machine` gives here.
    code : str
        What `code_digest` gives now.

    Examples
    --------
    >>> here = {"processor": "A", "cores": 2, "memory_gib": 8, "device": "cpu"}
    >>> why_not_again({"machine": {**here, "cores": 4}, "origin": {"code": "12"}}, here, "12")
    'it was measured on another machine (cores: 4, here 2)'
    >>> why_not_again({"machine": here, "origin": {"code": "12"}}, here, "34")
    'the code that it rests on has changed since'
    """
    old_machine = result.get("machine", {})
    for name in MACHINE:
        if old_machine.get(name) != machine[name]:
            return (
                f"it was measured on another machine ({name}: {old_machine.get(name, 'unknown')}, "
                f"here {machine[name]})"
            )
    return why_stale(result, code)


def why_stale(result: Mapping[str, Any], code: str | None) -> str | None:
    """Return why a result is not one of the present code; None where it is.

    Examples
    --------
    >>> why_stale({"agree": True}, "34")
    'made before results named their code'
    >>> why_stale({"origin": {"code": "34"}}, "34")
    """
    origin = result.get("origin")
    if origin is None:
        return "made before results named their code"
    if code is None or origin["code"] != code:
        return "the code that it rests on has changed since"
    return None
