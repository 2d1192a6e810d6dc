"""The command ``python -m benchmarks install``: what an installation takes, until its first answer.

A wheel of this checkout is built, with the compiling of its loops, and installed into a virtual
environment of its own, for the core and for each extra that is named. Then the installed program
answers for the first time, from an empty home. What pip downloads depends on its cache, which is
told apart by `--no-cache`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.commands import benchmark, setting
from benchmarks.origin import ROOT

CORE = "core"
INSTALLER = {"pip", "setuptools", "wheel"}
"""Packages of an environment that nothing was installed into."""


def run(command: list[str], folder: Path, home: Path | None = None) -> float:
    """Run a command in a folder and return its seconds; with an empty home of its own if given."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    if home is not None:
        environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise click.ClickException(
            f"{' '.join(command[:6])} ended with code {done.returncode}: {done.stderr.strip()}"
        )
    return time.perf_counter() - started


def build_wheel(folder: Path) -> tuple[Path, float]:
    """Build a wheel of the committed files and return its path and the seconds."""
    source, wheels = folder / "source", folder / "wheels"
    run(["git", "clone", "--quiet", str(ROOT), str(source)], folder)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(wheels), "."]
    seconds = run(command, source)
    (wheel,) = wheels.iterdir()
    return wheel, seconds


def installed(wheel: Path, extra: str, folder: Path, *, cached: bool) -> dict[str, Any]:
    """Install a wheel, with an extra, and measure it and its first answer."""
    environment, home = folder / extra, folder / f"home-{extra}"
    home.mkdir()
    venv.create(environment, with_pip=False)
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    before = bytes_in(environment)
    requirement = str(wheel) if extra == CORE else f"pexeso[{extra}] @ {wheel.as_uri()}"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    seconds = run([*pip, *([] if cached else ["--no-cache-dir"]), requirement], folder)
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "list", "--format=json"],
        capture_output=True,
        text=True,
        check=True,
    )
    packages = sorted(entry["name"] for entry in json.loads(listed.stdout))
    megabytes = (bytes_in(environment) - before) / 1e6
    answers = [run([str(python), "-m", "pexeso", "demo"], folder, home) for _ in range(2)]
    return {
        "install_seconds": round(seconds, 1),
        "megabytes": round(megabytes),
        "packages": [name for name in packages if name not in INSTALLER],
        "first_demo_seconds": round(answers[0], 2),
        "second_demo_seconds": round(answers[1], 2),
    }


def bytes_in(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


@dataclass(frozen=True)
class Installation:
    extras: tuple[str, ...] = setting((), nargs=-1)
    cache: bool = setting(True, "Let pip take packages from its cache.")


@benchmark("install", Installation)
def install_command(request: Installation) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure an installation of the core, and of EXTRAS such as vectors or spark."""
    with tempfile.TemporaryDirectory(prefix="pexeso-install-") as name:
        folder = Path(name)
        wheel, seconds = build_wheel(folder)
        megabytes = round(wheel.stat().st_size / 1e6, 1)
        result: dict[str, Any] = {"wheel": {"seconds": round(seconds, 1), "megabytes": megabytes}}
        for extra in (CORE, *request.extras):
            result[extra] = installed(wheel, extra, folder, cached=request.cache)
    yield "install", result
