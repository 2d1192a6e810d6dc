"""A folder of Parquet that one process writes, where Spark would write one of many files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

IN_DRIVER_BYTES = 64 << 20
"""Most bytes of records, of the names of files that are no tables, of a catalog, and of folders of
an index that the driver puts together."""


def fits_in_driver(n_bytes: int) -> bool:
    """Return whether so many bytes are few enough for the driver of a build or an update."""
    return n_bytes <= IN_DRIVER_BYTES


def part_name(number: int = 0) -> str:
    """Return the name of a file in such a folder, as Spark names those that it writes."""
    return f"part-{number:05d}.parquet"


def write_parquet_folder(rows: pa.Table | pa.RecordBatchReader, folder: Path) -> int:
    """Make a folder that holds rows as one file of Parquet.

    Parameters
    ----------
    rows : pa.Table or pa.RecordBatchReader
        Of a reader one batch is held at a time.
    folder : Path
        It must not be there; folders above it are made.

    Returns
    -------
    int
        The number of rows.
    """
    folder.mkdir(parents=True)
    n_rows = 0
    with pq.ParquetWriter(folder / part_name(), rows.schema) as writer:
        for some in (rows,) if isinstance(rows, pa.Table) else rows:
            writer.write(some)
            n_rows += some.num_rows
    return n_rows
