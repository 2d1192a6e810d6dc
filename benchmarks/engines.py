"""Builds of one lake by both engines, this machine's processes and Spark: seconds and memory.

    python -m benchmarks engines --megabytes 1,8,64,284 --output benchmarks/results/engines.json

The lakes are made of drawn words. Each build runs as the command does, in a process of its own; its
memory is that of all its processes together, looked at ten times a second.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import psutil
import torch

from benchmarks.machine import describe_machine

LOOKS_PER_SECOND = 10
SYLLABLES = [
    "ba",
    "be",
    "bi",
    "bo",
    "da",
    "de",
    "di",
    "do",
    "ka",
    "ke",
    "ki",
    "ko",
    "la",
    "le",
    "li",
    "lo",
    "ma",
    "me",
    "mi",
    "mo",
    "na",
    "ne",
    "ni",
    "no",
]
PARTS = "overlap"


def words(n: int, generator: np.random.Generator) -> np.ndarray:
    """Draw words of two to five syllables."""
    lengths = generator.integers(2, 6, n)
    drawn = generator.integers(0, len(SYLLABLES), (n, 5))
    return np.array(
        [
            "".join(SYLLABLES[place] for place in row[:length]).capitalize()
            for row, length in zip(drawn, lengths, strict=True)
        ]
    )


def make_lake(folder: Path, n_bytes: int, seed: int = 0) -> int:
    """Write tables of names, places, dates, codes and numbers, and return how many there are."""
    generator = np.random.default_rng(seed)
    vocabulary = words(50_000, generator)
    folder.mkdir(parents=True)
    n_files = written = 0
    while written < n_bytes:
        table = _table(vocabulary, generator)
        path = folder / f"{n_files // 100:03d}" / f"table-{n_files:05d}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(table, encoding="utf-8")
        n_files, written = n_files + 1, written + len(table)
    return n_files


def _table(vocabulary: np.ndarray, generator: np.random.Generator) -> str:
    n_rows = max(5, int(generator.lognormal(7.3, 0.7)))
    # Some words are in many tables, most in few.
    places = (len(vocabulary) * generator.random((n_rows, 5)) ** 3).astype(np.int64)
    first, last, town, street, product = vocabulary[places].T
    numbers = generator.integers(0, 1_000_000, n_rows)
    days = np.datetime64("2000-01-01") + generator.integers(0, 9000, n_rows)
    lines = ["id,name,town,address,product,ordered,amount"]
    for row in range(n_rows):
        lines.append(
            f"K{numbers[row]:06d},{first[row]} {last[row]},{town[row]},"
            f"{street[row]} Street {numbers[row] % 200},{product[row]},{days[row]},"
            f"{numbers[row] / 100:.2f}"
        )
    return "\n".join(lines) + "\n"


def _processes(process: psutil.Popen) -> Iterator[psutil.Process]:
    yield process
    try:
        yield from process.children(recursive=True)
    except psutil.Error:
        return


def _memory(process: psutil.Popen) -> tuple[int, int]:
    """Return the resident bytes of a process and those it started, and their share of memory."""
    resident = share = 0
    for one in _processes(process):
        try:
            resident += one.memory_info().rss
            share += one.memory_full_info().pss
        except psutil.Error:
            continue
    return resident, share


def measured(command: list[str]) -> dict[str, Any]:
    """Run a command and return its seconds, those of its processors, and its highest memory."""
    started, peak_resident, peak_share = time.perf_counter(), 0, 0
    before = os.times()
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        resident, share = _memory(process)
        peak_resident, peak_share = max(peak_resident, resident), max(peak_share, share)
        time.sleep(1 / LOOKS_PER_SECOND)
    seconds, after = time.perf_counter() - started, os.times()
    if process.returncode:
        raise click.ClickException(process.stderr.read())
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    return {
        "seconds": round(seconds, 2),
        "processor_seconds": round(used, 2),
        "peak_resident_bytes": peak_resident,
        "peak_bytes": peak_share,
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


ENGINES = {
    "local": ("--engine", "local"),
    "spark": ("--engine", "spark", "--spark-master", "local[2]"),
}


@click.command("engines")
@click.option("--megabytes", default="1,8,64,284", show_default=True, help="Sizes of lakes.")
@click.option("--engines", default=",".join(ENGINES), show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="A JSON file to write.")
def engines_command(megabytes: str, engines: str, output: Path | None) -> None:
    """Measure builds by this machine's processes and by Spark."""
    results = []
    for size in map(float, megabytes.split(",")):
        with TemporaryDirectory() as name:
            lake = Path(name) / "lake"
            n_files = make_lake(lake, int(size * 1e6))
            digests = set()
            for engine in engines.split(","):
                index = Path(name) / "index"
                command = [sys.executable, "-m", "pexeso", "index", str(lake), str(index)]
                command += ["--include", PARTS, *ENGINES[engine]]
                result = {"megabytes": size, "files": n_files, "engine": engine}
                results.append(result | measured(command))
                click.echo(json.dumps(results[-1]))
                digests.add(digest(index))
                shutil.rmtree(index)
            if len(digests) > 1:
                raise click.ClickException("the engines wrote different indexes")
    if output is not None:
        document = {
            "machine": describe_machine(torch.device("cpu")),
            "parts": PARTS,
            "results": results,
        }
        output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
