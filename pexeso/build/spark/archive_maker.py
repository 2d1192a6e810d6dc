"""Writing of the archive of Spark's classes, in a process of its own; see `class_archive`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pexeso.build.spark import session
from pexeso.build.spark.class_archive import JAVA_OPTIONS, RETRY_SECONDS, archive_path
from pexeso.build.spark.java import find_java

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_PATIENCE_SECONDS = 600

MAX_ARCHIVES = 3
"""Most archives that are kept, 190 MB each: one for each installation of Spark or Java."""


def make_archive() -> Path | None:
    """Start Spark once and let Java write the archive of its classes when it ends.

    Returns
    -------
    Path or None
        None where Java wrote none.
    """
    path = archive_path(find_java())
    if path is None:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in (*path.parent.glob("*.part"), *path.parent.glob("*.tried")):
        if time.time() - left.stat().st_mtime > RETRY_SECONDS:
            left.unlink(missing_ok=True)
    attempt = path.with_suffix(f".{os.getpid()}.part")
    # Java writes it after Spark has stopped.
    session.STOP_SECONDS = _PATIENCE_SECONDS
    # The compilers and collectors of small builds; those of others can use the classes too.
    options = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ArchiveClassesAtExit={attempt}"
    try:
        with session.spark_session("local[2]", conf={JAVA_OPTIONS: options}) as spark:
            _use_what_builds_use(spark)
        if not attempt.is_file():
            return None
        attempt.chmod(0o600)
        os.replace(attempt, path)
    finally:
        attempt.unlink(missing_ok=True)
    _remove_unused(path)
    return path


def _remove_unused(new_archive: Path) -> None:
    """Remove all archives but the one just made and those of other environments used last.

    Two environments with a Spark of their own would otherwise remove each other's in turn.
    """

    def last_use(path: Path) -> float:
        status = path.stat()
        return max(status.st_atime, status.st_mtime)

    others = (path for path in new_archive.parent.glob("*.jsa") if path != new_archive)
    for unused in sorted(others, key=last_use, reverse=True)[MAX_ARCHIVES - 1 :]:
        unused.unlink(missing_ok=True)


def _use_what_builds_use(spark: SparkSession) -> None:
    """Do a little of what builds do, so that the classes for it are loaded."""
    import tempfile

    from pyspark.sql import Observation
    from pyspark.sql import functions as sql

    def texts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            numbers = batch.column(0).to_pylist()
            columns: dict[str, Any] = {
                "kind": [f"kind {number % 2}" for number in numbers],
                "number": numbers,
                "text": [f"text {number % 5}" for number in numbers],
            }
            yield pa.RecordBatch.from_pydict(columns)

    with tempfile.TemporaryDirectory(prefix="pexeso-spark-") as folder:
        frame = spark.range(0, 20, 1, 2).mapInArrow(texts, "kind string, number long, text string")
        frame.write.partitionBy("kind").parquet(f"{folder}/kinds")
        read = spark.read.schema("kind string, number long, text string").parquet(f"{folder}/kinds")
        rows = Observation()
        joined = read.where("kind = 'kind 0'").join(read.select("number"), "number")
        observed = joined.observe(rows, sql.count(sql.lit(1)).alias("n"))
        observed.write.parquet(f"{folder}/joined")
        read.select("text").distinct().write.parquet(f"{folder}/distinct")
        read.repartition("text").sortWithinPartitions("number").groupBy("text").agg(
            sql.count("*"), sql.sum("number")
        ).toArrow()


if __name__ == "__main__":
    os.nice(19)
    make_archive()
