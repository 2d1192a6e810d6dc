"""Rows of small folders of an index that a compaction copies in the driver.

A job of Spark's, and each shuffle of one, costs tenths of a second however few rows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from pexeso.build.parts.base import Batches
from pexeso.store.io.parquet_folder import fits_in_driver
from pexeso.store.manifest import FolderEntry


def folders_fit(entries: Iterable[FolderEntry]) -> bool:
    """Return whether the driver can go through all rows of some folders."""
    return fits_in_driver(sum(entry.n_bytes for entry in entries))


def rows_of_folders(
    numbers: Sequence[int], read: Callable[[Batches], Batches], schema: pa.Schema
) -> pa.RecordBatchReader:
    """Read what `pexeso.build.job.BuildJob.read_folders` reads, in this process."""
    batch = pa.RecordBatch.from_pydict({"number": pa.array(numbers, pa.int64())})
    return pa.RecordBatchReader.from_batches(schema, read(iter([batch])))
