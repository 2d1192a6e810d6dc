"""Made lakes on disk: one folder each, arrays as ``.npy`` and the rest as JSON, named by the fingerprint of all that went in."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.lake import BenchmarkLake

FORMAT = 1
ARRAYS = ("vectors", "column_offsets", "column_values", "value_rows", "column_rows")
_DESCRIPTION = "lake.json"


def key_of(content: Mapping[str, object]) -> str:
    """Give a folder name for everything that a lake is made from, as plain JSON."""
    text = json.dumps({"format": FORMAT, **content}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def file_digest(path: Path) -> str:
    """Give the BLAKE2b-128 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def load_or_make(folder: Path, make: Callable[[], BenchmarkLake]) -> BenchmarkLake:
    """Read the lake in `folder`; where there is none make it, and keep it there whole or not at all."""
    if not (folder / _DESCRIPTION).is_file():
        _write(folder, make())
    description = json.loads((folder / _DESCRIPTION).read_text(encoding="utf-8"))
    arrays = {name: np.load(folder / f"{name}.npy") for name in ARRAYS}
    return BenchmarkLake(**arrays, **description)


def _write(folder: Path, lake: BenchmarkLake) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=folder.parent))
    try:
        for name in ARRAYS:
            np.save(unfinished / f"{name}.npy", getattr(lake, name))
        description = {"name": lake.name, "columns": list(lake.columns), "facts": lake.facts}
        (unfinished / _DESCRIPTION).write_text(json.dumps(description), encoding="utf-8")
        os.replace(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
