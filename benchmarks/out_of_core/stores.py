"""A lake in arrays, written as an index of several partitions.

It can also be held in memory for comparison.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.lake import BenchmarkLake
from benchmarks.out_of_core.grouping import values_of
from pexeso.engine.dense.building import build_partition
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.store.arrays import write_arrays, write_texts
from pexeso.store.files import filling, write_document
from pexeso.store.local.reader import Store, open_store
from pexeso.store.local.writer import IndexWriter

_log = logging.getLogger(__name__)


def write_store(
    path: Path, lake: BenchmarkLake, partitions: np.ndarray, options: PartitionLayoutOptions
) -> Store:
    """Write an index that can be searched, without texts of values and without a model."""
    with IndexWriter(path) as writer:
        entries = []
        for number in range(int(partitions.max()) + 1):
            columns = np.flatnonzero(partitions == number)
            arrays = _arrays(lake, columns, options)
            _log.info(
                "partition %d: %d values, %d columns", number, len(arrays["vectors"]), len(columns)
            )
            folder = writer.partition_folder(number)
            with filling(folder) as target:
                files = write_arrays(target, arrays)
                names = pa.array([f"table {column:09d}" for column in columns.tolist()])
                files.append(write_texts(target / "tables.arrow", names))
                files.append(
                    write_texts(target / "labels.arrow", pa.array(["column"] * len(columns)))
                )
            entries.append(
                writer.seal_folder(folder, {"values": len(arrays["vectors"])}, known=files)
            )
            del arrays
        write_document(writer.embedder_folder / "none.json", {})
        write_document(writer.catalog_folder / "none.json", {})
        writer.commit(
            written_by="pexeso benchmarks",
            catalogs=[writer.seal_folder(writer.catalog_folder)],
            embedder=writer.seal_folder(writer.embedder_folder),
            parts={"semantic": entries},
        )
    return open_store(path)


def _arrays(
    lake: BenchmarkLake, columns: np.ndarray, options: PartitionLayoutOptions
) -> dict[str, np.ndarray]:
    values = values_of(lake, columns)
    rows, local = np.unique(values, return_inverse=True)
    offsets = np.concatenate([[0], np.cumsum(np.diff(lake.column_offsets)[columns])])
    arrays, _ = build_partition(
        np.ascontiguousarray(lake.vectors[rows]), offsets, local.astype(np.int64), options
    )
    return {**arrays, "column_ids": columns}


@dataclass(frozen=True)
class StoreInMemory(Store):
    """An index whose partitions are copied into ordinary memory when they are first opened."""

    def partition(self, number: int) -> dict[str, np.ndarray]:
        return {name: np.array(array) for name, array in super().partition(number).items()}


def drop_cached(store: Store) -> None:
    """Make the system drop the cached pages of a store's files."""
    for entry in store.manifest.partitions:
        for file in entry.files:
            descriptor = os.open(store.path / entry.folder / file.path, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def vector_bytes(store: Store) -> int:
    """Return the bytes of all vectors."""
    return sum(
        file.n_bytes
        for entry in store.manifest.partitions
        for file in entry.files
        if file.path == "vectors.npy"
    )
