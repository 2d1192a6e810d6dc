"""A folder of Parquet that one process writes, where Spark would write one of many files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write_parquet_folder(rows: pa.Table, folder: Path) -> int:
    """Make a folder that holds rows as one file of Parquet.

    Parameters
    ----------
    rows : pa.Table
    folder : Path
        It must not be there, but the folder in which it is to be.

    Returns
    -------
    int
        The number of rows.
    """
    folder.mkdir()
    pq.write_table(rows, folder / "part-00000.parquet")
    return rows.num_rows
