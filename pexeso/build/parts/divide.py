"""Division of records among shards, folders that are built by one task each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pexeso.store.io.location import spark_path
from pexeso.store.io.parquet_folder import write_parquet_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_one_shard(rows: Mapping[str, pa.Table | pa.RecordBatchReader], folder: Path) -> int:
    """Do what `divide` does, of rows that this process reads and that one shard takes."""
    counts = [write_parquet_folder(some, folder / name / "shard=0") for name, some in rows.items()]
    return min(counts[0], 1)


def divide(frames: Mapping[str, DataFrame], by: Sequence[str], n_shards: int, folder: Path) -> int:
    """Write frames so that each shard's rows are together, and return the number of shards.

    Parameters
    ----------
    n_shards : int
        At most so many, 0 for none.
    """
    from pyspark.sql import functions as sql

    for name, frame in frames.items() if n_shards else ():
        shard = sql.pmod(sql.xxhash64(*by), sql.lit(n_shards)).cast("int")
        placed = frame.withColumn("shard", shard).repartition(n_shards, "shard")
        placed.write.partitionBy("shard").parquet(spark_path(folder / name))
    return _without_gaps(folder, list(frames)) if n_shards else 0


def _without_gaps(folder: Path, names: Sequence[str]) -> int:
    """Renumber the shards that have rows from 0 without gaps, and return their number.

    Small lakes may leave some shards empty.
    """
    shards = sorted(
        (folder / names[0]).glob("shard=*"), key=lambda path: int(path.name.partition("=")[2])
    )
    for number, path in enumerate(shards):
        for name in names:
            (folder / name / path.name).rename(folder / name / f"shard={number}")
    return len(shards)
