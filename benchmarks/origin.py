"""Where a result comes from: commit, version, date and command line."""

from __future__ import annotations

import datetime
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def environment_with_this_code() -> dict[str, str]:
    """Return this process's environment, where Python finds this repository's code first."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


def result_origin() -> dict[str, Any]:
    """Return what a result made by this process says about where it comes from."""
    import pexeso

    return {
        "commit": current_commit(),
        "version": pexeso.__version__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command_line(sys.argv),
    }


def current_commit(root: Path = ROOT) -> str | None:
    """Return the commit of the checkout, with ``+`` where tracked files differ from it."""
    if not (root / ".git").exists():
        return None
    commit = _git_output(root, "rev-parse", "--short=12", "HEAD")
    changes = _git_output(root, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}+" if commit and changes else commit or None


def _git_output(root: Path, *arguments: str) -> str:
    try:
        process = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""


def command_line(arguments: Sequence[str]) -> str:
    """Return the command line of a process, as it is typed in the root of the repository.

    Examples
    --------
    >>> command_line([str(ROOT / "benchmarks" / "__main__.py"), "run", "--data", "demo"])
    'python -m benchmarks run --data demo'
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
