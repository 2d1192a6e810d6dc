"""Build of an index from a lake of tables, in stages.

A later build resumes from the stages that an interrupted one has finished.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from embed.registry import check_model
from pexeso.build import tasks
from pexeso.build.job import BuildJob, build_bar
from pexeso.build.lake_source.source import LISTING, SKIPPED, Source, source_of
from pexeso.build.recorded import described
from pexeso.build.spark.class_archive import make_archive_later
from pexeso.build.spark.failures import reason_of_failure
from pexeso.build.spark.session import spark_session
from pexeso.build.workers import Workers, has_session
from pexeso.errors import LakeError, OutputError, SparkError
from pexeso.lake.containers.formats import READERS
from pexeso.lake.left_out.groups import groups_in, in_words
from pexeso.options import BuildOptions
from pexeso.runtime.checks import require_flag
from pexeso.runtime.progress import with_bar
from pexeso.store.io.location import Location
from pexeso.store.local.build_writer import BuildWriter
from pexeso.store.manifest import Manifest
from pexeso.store.opening import open_writer

SMALL_LAKE_SETTINGS = {
    # Java's best compiler and its parallel collector cost more than they save in a build of a
    # minute.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
}
"""Spark settings for small lakes; the caller's own go before them."""

Progress = Callable[[str], None]


@with_bar(build_bar)
def build(
    lake: Any,
    path: str | os.PathLike[str] | Location,
    options: BuildOptions,
    *,
    overwrite: bool = False,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    only_spark: bool = False,
) -> Manifest:
    """Index a lake; parameters and errors as for `pexeso.build_index`.

    With `only_spark` all is done on Spark, as where a master is named.

    A build that was killed or interrupted is taken up by the next one with the same lake, options
    and path, after the last stage that it finished and with the partitions that it wrote; unless
    the lake has changed since.
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
        workers_for(source, writer, master, conf, only_spark=only_spark) as workers,
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


@contextmanager
def workers_for(
    source: Source | None,
    writer: BuildWriter,
    master: str | None,
    conf: Mapping[str, Any] | None,
    *,
    only_spark: bool = False,
) -> Iterator[Workers]:
    """Return what runs the tasks of work on an index, and turn what it raises into errors of ours.

    A master, settings, or a session that is there say that the work is for Spark.
    """
    small = source is None or source.is_small()
    settings = {**(SMALL_LAKE_SETTINGS if small else {}), **(conf or {})}
    only_spark |= master is not None or bool(conf) or not small or has_session()
    workers = Workers(partial(spark_session, master, conf=settings), only_spark=only_spark)
    try:
        with (
            workers,
            worker_errors_made_plain(
                f"building '{writer.name}'",
                f"the index '{writer.name}' was not written. Free some space and run the command "
                "again, which goes on with the stages that are finished, or choose another place.",
            ),
        ):
            yield workers
    except SparkError:
        if not workers.has_spark and not writer.resumed:
            writer.keep = False  # it could not be started, and little was done before
        raise
    if workers.has_spark:
        make_archive_later()


@contextmanager
def worker_errors_made_plain(doing: str, if_full: str) -> Iterator[None]:
    """Convert Spark's error for a failed task into the pexeso error that the task raised.

    Without such an error, one sentence states the reason. So it does for a full disk in this
    process.
    """
    try:
        yield
    except _errors_of_spark() as error:
        text = str(error)
        if (task_error := tasks.error_in(text)) is not None:
            raise task_error from error
        if "No space left on device" in text:
            raise OutputError(f"The disk is full: {if_full}") from error
        raise SparkError(
            f"A Spark task failed while {doing}: {reason_of_failure(error)}."
        ) from error
    except OSError as error:
        # Arrow writes the tables of small lakes in the driver.
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OutputError(f"The disk is full: {if_full}") from error
        raise


def _errors_of_spark() -> tuple[type[Exception], ...]:
    """Return what Spark raises: nothing where it was never started, which takes half a second."""
    if "pyspark.sql" not in sys.modules:
        return ()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError, ConnectionError)
