"""Build of an index from a lake of tables, in stages that a later build resumes."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from embed.registry import check_model
from pexeso.build.job import BuildJob, build_bar
from pexeso.build.parts.metadata import described
from pexeso.build.source import LISTING, SKIPPED, Source, source_of
from pexeso.build.spark.java import make_archive_later
from pexeso.build.spark.session import plain_task_errors, spark_session
from pexeso.build.workers import LocalWorkers, SparkWorkers, Workers
from pexeso.errors import InputError, LakeError, MissingPackageError, SparkError
from pexeso.lake.containers.formats import READERS
from pexeso.lake.left_out import groups_in, in_words
from pexeso.options import BuildOptions
from pexeso.runtime.checks import require_choice, require_flag
from pexeso.runtime.extras import lack_of
from pexeso.runtime.progress import with_bar
from pexeso.store.io.location import Location
from pexeso.store.local.writer import BuildWriter
from pexeso.store.manifest import Manifest
from pexeso.store.opening import open_writer

SMALL_LAKE_SETTINGS = {
    # Java's best compiler and its parallel collector cost more than they save in a minute.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
}
"""Spark settings where Java does no more than hand out tasks; the caller's own go before them."""

ENGINES = AUTO, LOCAL, SPARK = ("auto", "local", "spark")

Progress = Callable[[str], None]


@with_bar(build_bar)
def build(
    lake: Any,
    path: str | os.PathLike[str] | Location,
    options: BuildOptions,
    *,
    overwrite: bool = False,
    engine: str = AUTO,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Index a lake; parameters and errors as for `pexeso.build_index`.

    A build that was killed or interrupted is taken up by the next one with the same lake, options
    and path, after the last stage that it finished, unless the lake has changed since.
    """
    require_flag("overwrite", overwrite)
    for model in options.models:
        check_model(model)
    source, options = source_of(lake), options.with_aliases_read()
    request = {
        "lake": source.name,
        "dimensions": options.dimensions,
        "value_vectors": options.value_vectors,
        "readers": READERS,
        **described(options),
    }
    purpose = f"build {json.dumps(request, sort_keys=True)}"
    with (
        open_writer(path, overwrite=overwrite, purpose=purpose) as writer,
        workers_for(source, writer, engine, master, conf) as workers,
    ):
        job = BuildJob(writer, options, workers=workers, progress=progress)
        listing = job.list_tables(source)
        if not listing["tables"]:
            writer.keep = False
            left_out = in_words(groups_in(job.stages.folder("list") / SKIPPED))
            raise LakeError(
                f"There is no table in '{lake}': no name of a file there ends as those of tables "
                f"do, such as .csv, .xlsx, .json, .parquet or .sqlite. Left out: {left_out}."
            )
        job.read(source, job.stages.folder("list") / LISTING, listing["bytes"])
        counts = job.write_catalog(0, job.stages.folder("list") / SKIPPED)
        if not counts["postings"] and "fasttext" in options.models:
            writer.keep = False
            raise LakeError(
                f"{job.no_column(source.name)} The model fasttext is trained on the values of such "
                "columns; another one, such as lexical, needs none."
            )
        written = job.write_parts()
        if not any(part.folders for part in written.values()):
            writer.keep = False
            raise LakeError(job.no_column(source.name))
        facts = {"lake": source.name, "next_column": counts["columns"], "readers": READERS}
        if (aliases := options.normaliser.aliases) is not None:
            facts["aliases"] = aliases.count
        return job.commit({}, written, facts=facts)


def workers_for(
    source: Source | None,
    writer: BuildWriter,
    engine: str,
    master: str | None,
    conf: Mapping[str, Any] | None,
) -> AbstractContextManager[Workers]:
    """Return what runs the tasks of work on an index; what it raises becomes errors of pexeso.

    A master, settings, an active session, or tables of Spark say that the work is for Spark.
    """
    require_choice("engine", engine, ENGINES)
    is_of_spark = source is not None and not source.is_files
    if engine == LOCAL and (master is not None or conf):
        raise InputError(
            "The engine 'local' runs on this machine's processes and takes no master or settings "
            "of Spark: leave them out, or use the engine 'spark'."
        )
    if engine == LOCAL and is_of_spark:
        raise InputError(
            f"The engine 'local' reads files, and '{source.name}' is a table of Spark: use the "
            "engine 'spark', or give the folder of its files."
        )
    on_spark = engine == SPARK or master is not None or bool(conf) or is_of_spark
    if engine == AUTO:
        on_spark |= has_session()
    if not on_spark:
        return _local_workers(writer)
    _require_spark(is_of_spark or master is not None)
    settings = {**({} if is_of_spark else SMALL_LAKE_SETTINGS), **(conf or {})}
    return _spark_workers(writer, master, settings)


def _require_spark(needs_spark: bool) -> None:
    """Refuse to go on without the package of Spark, and say what does without."""
    if importlib.util.find_spec("pyspark") is not None:
        return
    instead = (
        ""
        if needs_spark
        else "build with the engine 'local' (--engine local), which takes all processors of this "
        "machine, and for each about four times the memory of the largest partition or file"
    )
    raise MissingPackageError(lack_of("pyspark", "Spark", instead))


@contextmanager
def _local_workers(writer: BuildWriter) -> Iterator[LocalWorkers]:
    with LocalWorkers() as workers, _plain_errors(writer):
        yield workers


@contextmanager
def _spark_workers(
    writer: BuildWriter, master: str | None, settings: Mapping[str, Any]
) -> Iterator[SparkWorkers]:
    workers = SparkWorkers(partial(spark_session, master, conf=settings))
    try:
        with workers, _plain_errors(writer):
            yield workers
    except SparkError:
        if not workers.has_spark and not writer.resumed:
            writer.keep = False  # it could not be started, and little was done before
        raise
    if workers.has_spark:
        make_archive_later()


def _plain_errors(writer: BuildWriter) -> AbstractContextManager[None]:
    return plain_task_errors(
        f"building '{writer.name}'",
        f"the index '{writer.name}' was not written. Free some space and run the command again, "
        "which goes on with the stages that are finished, or choose another place.",
    )


def has_session() -> bool:
    """Return whether this process has a session of Spark already, or was started by Spark."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # under `spark-submit`
        return True
    if "pyspark.sql" not in sys.modules:
        return False
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None
