"""Generated lakes on disk, one folder each, named by the fingerprint of all inputs.

Arrays are ``.npy`` files, and the rest is JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.lake import BenchmarkLake

FORMAT = 1
ARRAYS = ("vectors", "column_offsets", "column_values", "value_rows", "column_rows")
_DESCRIPTION = "lake.json"


class NumberedColumns(Sequence[str]):
    """Names for columns that have none, made when they are asked for."""

    def __init__(self, n_columns: int) -> None:
        self._numbers = range(n_columns)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, position: int | slice) -> str | list[str]:
        numbers = self._numbers[position]
        return (
            [f"column {number}" for number in numbers]
            if isinstance(position, slice)
            else f"column {numbers}"
        )


def key_of(content: Mapping[str, object]) -> str:
    """Return a folder name for everything that a lake is made from, as plain JSON."""
    text = json.dumps({"format": FORMAT, **content}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def file_digest(path: Path) -> str:
    """Return the BLAKE2b-128 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def load_or_make(folder: Path, make: Callable[[], BenchmarkLake]) -> BenchmarkLake:
    """Read the lake in `folder`, or make it and store it there."""

    def write(unfinished: Path) -> dict[str, object]:
        lake = make()
        for name in ARRAYS:
            np.save(unfinished / f"{name}.npy", getattr(lake, name))
        return {"name": lake.name, "columns": list(lake.columns), "facts": lake.facts}

    return load_or_write(folder, write)


def load_or_write(
    folder: Path, write: Callable[[Path], dict[str, object]], *, mapped: bool = False
) -> BenchmarkLake:
    """Read the lake in `folder`, or let `write` put its arrays there."""
    if not (folder / _DESCRIPTION).is_file():
        _keep(folder, write)
    description = json.loads((folder / _DESCRIPTION).read_text(encoding="utf-8"))
    if isinstance(description["columns"], int):
        description["columns"] = NumberedColumns(description["columns"])
    arrays = {
        name: np.load(folder / f"{name}.npy", mmap_mode="c" if mapped else None) for name in ARRAYS
    }
    return BenchmarkLake(**arrays, **description)


def _keep(folder: Path, write: Callable[[Path], dict[str, object]]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=folder.parent))
    try:
        description = write(unfinished)
        (unfinished / _DESCRIPTION).write_text(json.dumps(description), encoding="utf-8")
        os.replace(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
