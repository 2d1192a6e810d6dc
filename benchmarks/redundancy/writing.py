"""Tables written as Parquet or CSV."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from pexeso.errors import InputError

FORMATS = ("parquet", "csv")


def write_table(
    folder: Path,
    name: str,
    table: pa.Table,
    *,
    file_format: str = "parquet",
    n_files: int = 1,
    codec: str = "snappy",
    row_group: int = 1 << 20,
) -> Path:
    """Write a table as one file, or as a folder of files, and return which."""
    if file_format not in FORMATS:
        raise InputError(f"Tables are written as {' or '.join(FORMATS)}. Got {file_format!r}.")
    if n_files < 1:
        raise InputError(f"A table has at least one file. Got {n_files}.")
    path = folder / (name if n_files > 1 else f"{name}.{file_format}")
    (path if n_files > 1 else folder).mkdir(parents=True, exist_ok=True)
    bounds = [table.num_rows * part // n_files for part in range(n_files + 1)]
    for part, (begin, end) in enumerate(pairwise(bounds)):
        file = path / f"part-{part}.{file_format}" if n_files > 1 else path
        rows = table.slice(begin, end - begin)
        if file_format == "parquet":
            pq.write_table(rows, file, compression=codec, row_group_size=row_group)
        else:
            pc_csv.write_csv(rows, file)
    return path
