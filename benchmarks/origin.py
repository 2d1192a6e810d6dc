"""Where a result comes from: which machine and which code.

A finished run is shown again only where both are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

CODE = (("pexeso/engine", "*.py"), ("benchmarks", "*.py"), ("benchmarks/algorithms", "*.yml"))
"""Folders and the names of files in them, at any depth, that a measurement depends on.

The grids stand in YAML, so these count too.
"""

MACHINE = ("processor", "cores", "memory_gib", "device")
"""What must be equal of two machines for their seconds to compare."""


def code_digest(root: Path = ROOT, code: Sequence[tuple[str, str]] = CODE) -> str:
    """Return the BLAKE2b-64 of the engine and the benchmarks, or other code, in hexadecimal.

    It covers the names and contents of the files.

    It depends on neither commits nor dates: the same code has the same digest in any checkout.
    """
    digest = hashlib.blake2b(digest_size=8)
    files = sorted({path for folder, pattern in code for path in (root / folder).rglob(pattern)})
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def why_not_again(result: Mapping[str, Any], machine: Mapping[str, Any], code: str) -> str | None:
    """Return why a finished result does not stand for a run made here and now; None where it does.

    Parameters
    ----------
    result : mapping
        With ``machine`` and ``code`` as they were.
    machine : mapping
        What `benchmarks.machine.describe_machine` gives here.
    code : str
        What `code_digest` gives now.

    Examples
    --------
    >>> here = {"processor": "A", "cores": 2, "memory_gib": 8, "device": "cpu"}
    >>> why_not_again({"machine": {**here, "cores": 4}, "code": "12"}, here, "12")
    'it was measured on another machine (cores: 4, here 2)'
    >>> why_not_again({"machine": here, "code": "12"}, here, "34")
    'the engine or the benchmarks have changed since'
    """
    there = result.get("machine", {})
    for name in MACHINE:
        if there.get(name) != machine[name]:
            return (
                f"it was measured on another machine ({name}: {there.get(name, 'unknown')}, "
                f"here {machine[name]})"
            )
    if result.get("code") != code:
        return "the engine or the benchmarks have changed since"
    return None


LOADED_CODE = code_digest()
"""The digest of the code that this process runs.

It is taken when the process starts, since files may change during a long run.
"""
