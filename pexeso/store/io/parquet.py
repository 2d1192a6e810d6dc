"""Folders of Parquet files, as tasks and Spark write them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pexeso.store.io.location import require_utf8


def parquet_files(folder: Path) -> list[Path]:
    """Return the files of Parquet in a folder, those that Spark wrote included, in one order."""
    return sorted(folder.glob("[!._]*.parquet"))


def n_bytes_of(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def n_rows_of(paths: Iterable[Path]) -> int:
    return sum(pq.read_metadata(path).num_rows for path in paths)


def write_parquet_folder(rows: pa.Table, folder: Path) -> None:
    """Make a new folder that holds rows as one file of Parquet."""
    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "part-00000.parquet")


def spark_path(path: str | os.PathLike[str]) -> str:
    """Return what Spark calls a file or folder of this machine.

    Spark takes every character as it is: nothing is percent-encoded. It is for writing: Spark's
    readers take ``* ? [ ] { }`` for patterns.
    """
    absolute = str(Path(path).absolute())
    if ".." in Path(absolute).parts:
        # Hadoop would take the name before it away, even that of a link
        absolute = os.path.realpath(absolute)
    require_utf8(absolute)
    return f"file://{absolute}"
