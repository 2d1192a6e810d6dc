"""The command ``python -m benchmarks engines``: builds by this machine's processes and by Spark.

The lakes are made of drawn words. Each build runs as the command does, in a process of its own; its
memory is that of all its processes together, looked at ten times a second.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import psutil

from benchmarks.commands import benchmark, setting
from benchmarks.token_sets import syllable_words
from pexeso.errors import PexesoError

LOOKS_PER_SECOND = 10
PARTS = "overlap"
ENGINES = {
    "local": ("--engine", "local"),
    "spark": ("--engine", "spark", "--spark-master", "local[2]"),
}


def make_lake(folder: Path, n_bytes: int, seed: int = 0) -> int:
    """Write tables of names, places, dates, codes and numbers, and return how many there are."""
    generator = np.random.default_rng(seed)
    vocabulary = np.char.capitalize(syllable_words(np.arange(50_000) * 7 + 11))
    n_files = written = 0
    while written < n_bytes:
        table = _table(vocabulary, generator)
        path = folder / f"{n_files // 100:03d}" / f"table-{n_files:05d}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(table, encoding="utf-8")
        n_files, written = n_files + 1, written + len(table)
    return n_files


def _table(vocabulary: np.ndarray, generator: np.random.Generator) -> str:
    n_rows = max(5, int(generator.lognormal(7.3, 0.7)))
    # Some words are in many tables, most in few.
    places = (len(vocabulary) * generator.random((n_rows, 5)) ** 3).astype(np.int64)
    numbers = generator.integers(0, 1_000_000, n_rows)
    days = np.datetime64("2000-01-01") + generator.integers(0, 9000, n_rows)
    lines = ["id,name,town,address,product,ordered,amount"]
    for drawn, number, day in zip(vocabulary[places], numbers, days, strict=True):
        first, last, town, street, product = drawn
        lines.append(
            f"K{number:06d},{first} {last},{town},{street} Street {number % 200},{product},{day},"
            f"{number / 100:.2f}"
        )
    return "\n".join(lines) + "\n"


def _memory(process: psutil.Popen) -> tuple[int, int]:
    """Return the resident bytes of a process and those it started, and their share of memory."""
    resident = share = 0
    try:
        processes = [process, *process.children(recursive=True)]
    except psutil.Error:
        return 0, 0
    for one in processes:
        try:
            resident += one.memory_info().rss
            share += one.memory_full_info().pss
        except psutil.Error:
            continue
    return resident, share


def measured(command: list[str]) -> dict[str, Any]:
    """Run a command and return its seconds, those of its processors, and its highest memory."""
    started, before, peaks = time.perf_counter(), os.times(), (0, 0)
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        peaks = tuple(map(max, peaks, _memory(process)))
        time.sleep(1 / LOOKS_PER_SECOND)
    seconds, after = time.perf_counter() - started, os.times()
    if process.returncode:
        raise PexesoError(process.stderr.read())
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    return {
        "seconds": round(seconds, 2),
        "processor_seconds": round(used, 2),
        "peak_resident_bytes": peaks[0],
        "peak_bytes": peaks[1],
    }


def digest(index: Path) -> str:
    """Return a digest of the bytes of an index but for what tells of the time of its build."""
    manifest = json.loads((index / "manifest.json").read_text(encoding="utf-8"))
    folders = [*manifest["catalogs"], manifest["embedder"]]
    folders += [entry for entries in manifest["parts"].values() for entry in entries]
    total = hashlib.sha256()
    for folder in folders:
        for file in folder["files"]:
            if file["path"] != "report.json":
                total.update((index / folder["folder"] / file["path"]).read_bytes())
    return total.hexdigest()[:16]


@dataclass(frozen=True)
class Builds:
    megabytes: tuple[float, ...] = setting((1.0, 8.0, 64.0, 284.0), "Sizes of lakes.")
    engines: tuple[str, ...] = setting(tuple(ENGINES), "Engines that build.")


@benchmark("engines", Builds)
def engines_command(builds: Builds) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure builds by this machine's processes and by Spark; both must write the same index."""
    results: list[dict[str, Any]] = []
    differences = []
    for size in builds.megabytes:
        with TemporaryDirectory(prefix="pexeso-benchmark-") as name:
            lake = Path(name) / "lake"
            n_files, digests = make_lake(lake, int(size * 1e6)), set()
            for engine in builds.engines:
                index = Path(name) / engine
                command = [sys.executable, "-m", "pexeso", "index", str(lake), str(index)]
                command += ["--include", PARTS, *ENGINES[engine]]
                result = {"megabytes": size, "files": n_files, "engine": engine}
                results.append(result | measured(command))
                click.echo(json.dumps(results[-1]), err=True)
                digests.add(digest(index))
            if len(digests) > 1:
                differences.append(f"the indexes of {size:g} MB")
    yield "engines", {"parts": PARTS, "results": results, "differences": differences}
