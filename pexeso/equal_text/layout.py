"""The stages that build token sets: sets divided among shards, then each shard built by the task that owns it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pexeso.containment.options import EnsembleOptions
from pexeso.equal_text.building import SETS, TOKENS, write_shards
from pexeso.lake.record_schema import SCHEMA
from pexeso.source import spark_schema
from pexeso.store.manifest import FolderEntry
from pexeso.store.target import entry_from_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pexeso.report import TaskMeter
    from pexeso.stages import Facts
    from pexeso.steps import Steps

DIVIDE, WRITE = TOKEN_STAGES = ("divide", "tokens")
"""The stages of a build or an update in which sets are divided among shards, and these written; as given to `progress`."""

PAIR_BYTES = 64
"""Bytes that a (column, token) pair counts for when sets are divided: about twice what it takes on the disk, a third of what building takes."""

_WRITTEN = "shards.parquet"


def sets_of_tokens(steps: Steps) -> tuple[DataFrame, DataFrame]:
    """Give the sets and the tokens that the reading stage has left."""
    return tuple(  # type: ignore[return-value]
        _records(steps, kind).select(*columns)
        for kind, columns in (("set", ("table", "position", "label")), ("token", ("table", "position", "value")))
    )


def _records(steps: Steps, kind: str) -> DataFrame:
    # With a schema, since a lake without any set leaves no file of that kind.
    found = steps.spark.read.schema(spark_schema(SCHEMA)).parquet((steps.stages.folder("read") / "records").as_uri())
    return found.where(f"record = '{kind}'")


def write_token_sets(
    steps: Steps, sets: DataFrame, tokens: DataFrame, *, first: int, parts: tuple[str, ...] | None = None
) -> list[FolderEntry]:
    """Divide sets among shards, and build each.

    Parameters
    ----------
    steps
    sets : DataFrame
        ``table, position, label``.
    tokens : DataFrame
        ``table, position, value``: each token of a set once.
    first : int
        How many partitions this build writes; shards are numbered after them.
    parts
        See `pexeso.options.PARTS`; by default those of the build's options.

    Returns
    -------
    list of FolderEntry
        In the order of the shards; none where there is no set.
    """
    parts = steps.options.parts if parts is None else parts
    laid_out = steps.stage(DIVIDE, lambda folder, meter: _lay_out(steps, sets, tokens, parts, folder))
    n_shards, writer = laid_out["shards"], steps.writer
    if not n_shards:
        return []

    def work(folder: Path, meter: TaskMeter) -> Facts:
        write = partial(
            write_shards,
            placed=str(steps.stages.folder(DIVIDE)),
            targets=[writer.partition_target(first + number) for number in range(n_shards)],
            parts=parts,
        )
        numbers = steps.spark.range(0, n_shards, 1, n_shards)
        found = numbers.mapInArrow(meter.measured(write), "number long, entry string")
        pq.write_table(found.toArrow().sort_by("number"), folder / _WRITTEN)
        return {}

    if steps.stages.finished(WRITE) and not writer.has_partitions(_written(steps)):
        steps.stages.forget(WRITE)
    steps.stage(WRITE, work)
    return [writer.seal_partition(entry) for entry in _written(steps)]


def _lay_out(steps: Steps, sets: DataFrame, tokens: DataFrame, parts: tuple[str, ...], folder: Path) -> Facts:
    from pyspark.sql import functions as sql

    n_shards = shards_needed(sets.count(), tokens.count(), parts, steps.options.partition_bytes)
    for name, frame in ((SETS, sets), (TOKENS, tokens)) if n_shards else ():
        shard = sql.pmod(sql.xxhash64("table", "position"), sql.lit(n_shards)).cast("int")
        placed = frame.withColumn("shard", shard).repartition(n_shards, "shard")
        placed.write.partitionBy("shard").parquet((folder / name).as_uri())
    return {"shards": _without_gaps(folder) if n_shards else 0}


def _without_gaps(folder: Path) -> int:
    """Give the shards that have a set the numbers from 0 on, and say how many they are: small lakes may leave some empty."""
    there = sorted((folder / SETS).glob("shard=*"), key=lambda path: int(path.name.partition("=")[2]))
    for number, path in enumerate(there):
        for kind in (SETS, TOKENS):
            (folder / kind / path.name).rename(folder / kind / f"shard={number}")
    return len(there)


def shards_needed(n_sets: int, n_pairs: int, parts: tuple[str, ...], partition_bytes: int) -> int:
    """Tell how many shards take what there is, each of about `partition_bytes`.

    Examples
    --------
    >>> shards_needed(1000, 50_000, ("overlap",), 1 << 20), shards_needed(0, 0, ("overlap",), 1 << 20)
    (4, 0)
    """
    # A signature, and in the tables a value and a set for each of its places.
    of_a_set = 12 * EnsembleOptions().permutations if "containment" in parts else 0
    return -(-(n_pairs * PAIR_BYTES + n_sets * of_a_set) // partition_bytes)


def _written(steps: Steps) -> list[FolderEntry]:
    found: pa.Table = pq.read_table(steps.stages.folder(WRITE) / _WRITTEN)
    return [entry_from_json(text) for text in found["entry"].to_pylist()]
