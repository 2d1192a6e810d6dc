"""A build, and what it shares with updates: stages, folders that tasks write, and one commit.

Each stage reads what the stages before it left. The driver holds summaries, the training sample and
the codebook; file names, values, vectors and postings pass between tasks only, through files in the
scratch folder. What each part of an index adds is in `pexeso.build.parts`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embed.registry import check_model
from pexeso import __version__, registry
from pexeso.build.catalog_writer import record_files, write_catalog
from pexeso.build.parts.base import Filled, IndexPart, Written
from pexeso.build.parts.metadata import described, models_of, put_models
from pexeso.build.report import REPORT_FILE, BuildReport, StageReport, stage_report
from pexeso.build.source import LISTING, SKIPPED, Source, source_of
from pexeso.build.spark.session import plain_task_errors, spark_session
from pexeso.build.workers import (
    Attempt,
    Facts,
    LocalWorkers,
    Needs,
    SparkWorkers,
    Stages,
    Task,
    Workers,
    added,
    empty_sums,
    run_tasks,
)
from pexeso.errors import InputError, LakeError, MissingPackageError, SparkError
from pexeso.lake.catalog import REMOVED, REMOVED_SCHEMA, TABLES, Catalog, files_in, write_rows
from pexeso.lake.containers.formats import READERS
from pexeso.lake.hashed_values import key_check, require_key, value_key
from pexeso.lake.left_out import ReasonGroup, groups_in, in_words, left_out
from pexeso.options import HASHED, BuildOptions
from pexeso.runtime.checks import require_choice, require_flag
from pexeso.runtime.extras import lack_of
from pexeso.runtime.progress import StageProgress, stage_bar, with_bar
from pexeso.runtime.ranges import Ranges
from pexeso.store.files import write_document
from pexeso.store.io.location import Location
from pexeso.store.local.reader import Store
from pexeso.store.local.writer import BuildWriter, PartitionTarget
from pexeso.store.manifest import FolderEntry, Manifest
from pexeso.store.opening import open_writer

_WRITTEN, RECORDS = "partitions.parquet", "records"
# The fact of a stage that says which listing of the lake it was made from.
_LISTING = "listing"

# Folders of parts, by the name of the part.
Folders = Mapping[str, Sequence[FolderEntry]]


def write_folder(
    item: tuple[int, PartitionTarget], attempt: Attempt, *, fill: Callable[[int, Path], Filled]
) -> FolderEntry:
    """Write a folder of an index, unless it is complete already, and return its manifest entry."""
    number, target = item
    return target.written() or target.write(partial(fill, number))


def stage_names(n_models: int = 1) -> tuple[str, ...]:
    """Return the stages of builds and updates of an index of some models, in order."""
    parts = registry.requested_parts(registry.choices(), n_models)
    part_stages = [stage for part in parts for stage in part.stages]
    return ("list", "changes", "read", "catalog", *part_stages, "commit")


def build_bar() -> AbstractContextManager[StageProgress]:
    return stage_bar(stage_names())


class BuildJob:
    """A build, or an update of the index in `store`; a finished stage is not done again."""

    def __init__(
        self,
        writer: BuildWriter,
        options: BuildOptions,
        *,
        store: Store | None = None,
        workers: Workers | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.writer, self.options, self.store = writer, options, store
        self.index = cast("Store", store)
        self.workers = cast("Workers", workers)
        self.tell = progress or (lambda stage: None)
        self.stages = Stages(writer.scratch, progress, self._keep)
        # Models of the index that were made again, and where they are.
        self.renewed_models: dict[int, Path] = {}
        self._digest: str | None = None
        self._n_folders = 0
        self._sums = empty_sums()

    def _keep(self) -> None:
        self.writer.keep = True

    @property
    def parts(self) -> list[IndexPart]:
        return registry.requested_parts(self.options.parts, len(self.options.models))

    def makes_model(self, model: int) -> bool:
        """Return whether the index is to get the model at a position in this job."""
        return self.store is None or model >= len(models_of(self.store.manifest))

    def stage(self, name: str, work: Callable[[Path], Facts | None]) -> Facts:
        """Do a stage, unless it is finished, and keep what its tasks measured among its facts."""

        def measured(folder: Path) -> Facts:
            self._sums, started = empty_sums(), time.perf_counter()
            facts = work(folder) or {}
            report = stage_report(name, time.perf_counter() - started, self._sums)
            made_from = {} if self._digest is None else {_LISTING: self._digest}
            return {**facts, **made_from, "report": report.to_dict()}

        return self.stages.run(name, measured)

    def run(
        self, task: Task, items: Sequence[Any], folder: Path, *, n_bytes: int, alone: bool = False
    ) -> list[Any]:
        needs = Needs(n_bytes, alone)
        results, sums = run_tasks(self.workers, task, items, folder, needs)
        self.measure(sums)
        return results

    def measure(self, sums: Facts) -> None:
        self._sums = added(self._sums, sums)

    def report(self) -> BuildReport:
        """Return what the stages did, those that an earlier attempt finished included."""
        finished = [self.stages.finished(stage) or {} for stage in self.stages.names]
        stages = [StageReport.from_dict(facts["report"]) for facts in finished if "report" in facts]
        facts = {**self.workers.facts, "taken_up": self.stages.resumed}
        return BuildReport(tuple(stages), facts)

    def list_tables(self, source: Source, known: Store | None = None) -> Facts:
        """List the tables of the lake, `known` ones unopened; forget stages of another listing."""

        def work(folder: Path) -> Facts:
            return source.list_into(self.workers, folder, known)

        self.stages.forget("list")  # a listing of another time says nothing of the lake as it is
        listing = self.stage("list", work)
        digests = [facts.get(_LISTING) for facts in self.stages.all_finished().values()]
        if any(digest not in (None, listing["digest"]) for digest in digests):
            self.writer.restart()
            listing = self.stage("list", work)
        self._digest = listing["digest"]
        return listing

    def read(self, source: Source, listing: Path, n_bytes: int) -> Facts:
        """Read tables in tasks, into the records that the catalog and the parts want of each."""

        def work(folder: Path) -> Facts:
            if self.options.values == HASHED and self.store is not None:
                require_key(self.store.manifest.facts["key"])
            part_records = [part.records for part in self.parts]
            options = replace(self.options, normaliser=self.options.normaliser.kept_in(folder))
            records = folder / RECORDS
            records.mkdir()
            sums = source.read_into(self.workers, records, listing, n_bytes, options, part_records)
            self.measure(sums)
            return {"bytes": n_bytes}

        return self.stage("read", work)

    def record_files(self, kind: str) -> list[Path]:
        return record_files(self.stages.folder("read") / RECORDS, kind)

    def write_catalog(self, first_id: int, skipped: Path) -> Facts:
        """Write the catalog, number the kept columns, and store their values by these numbers."""

        def work(folder: Path) -> Facts:
            records, catalog = self.stages.folder("read") / RECORDS, self.writer.catalog_folder
            return write_catalog(self.workers, records, skipped, catalog, folder, first_id)

        return self.stage("catalog", work)

    def write_parts(self) -> dict[str, Written]:
        return {part.name: part.write(self) for part in self.parts}

    def write_folders(
        self,
        stage: str,
        n_folders: int,
        fill: Callable[[int, Path], Filled],
        *,
        n_bytes: int,
        alone: bool = False,
    ) -> list[FolderEntry]:
        """Write each folder in a task of its own, unless an earlier attempt completed it."""
        first, self._n_folders = self._n_folders, self._n_folders + n_folders

        def work(folder: Path) -> Facts:
            targets = [self.writer.partition_target(first + number) for number in range(n_folders)]
            items = list(enumerate(targets))
            write = partial(write_folder, fill=fill)
            entries = self.run(write, items, folder, n_bytes=n_bytes, alone=alone)
            rows = {"entry": [entry.to_json() for entry in entries]}
            pq.write_table(pa.table(rows, pa.schema([("entry", pa.string())])), folder / _WRITTEN)
            return {}

        if self.stages.finished(stage) and not self.writer.has_partitions(self._written(stage)):
            self.stages.forget(stage)
        self.stage(stage, work)
        return [self.writer.seal_partition(entry) for entry in self._written(stage)]

    def _written(self, stage: str) -> list[FolderEntry]:
        entries = pq.read_table(self.stages.folder(stage) / _WRITTEN, partitioning=None)
        return [FolderEntry.from_json(text) for text in entries["entry"].to_pylist()]

    def left_out(self) -> tuple[ReasonGroup, ...]:
        return left_out(Catalog(files_in([self.writer.catalog_folder])))

    def no_column(self, lake: str) -> str:
        reasons = in_words(sorted(self.left_out(), key=lambda group: group.kind == TABLES))
        return (
            f"No column in '{lake}' can be a join key. Left out: {reasons}. The rules "
            "that choose columns can be changed; overlap, containment and composite (--include) "
            "index columns of every kind."
        )

    def next_column(self) -> int:
        """Return the lowest column id that no column ever had."""
        if self.store is None:
            return 0
        known = self.store.manifest.facts.get("next_column")
        if known is not None:
            return known
        ids = Catalog(self.store.catalog_files).columns(["column_id"])["column_id"]
        highest = pc.max(ids).as_py()
        return 0 if highest is None else highest + 1

    def commit(
        self,
        folders: Folders,
        written: Mapping[str, Written],
        *,
        facts: Mapping[str, Any] | None = None,
        removed: pa.Array | None = None,
        deleted: Ranges | None = None,
    ) -> Manifest:
        """Put what was written in place, as the next generation of the index."""
        self.tell("commit")
        writer, before = self.writer, None if self.store is None else self.store.manifest
        if self.stages.names:
            path = writer.catalog_folder / REPORT_FILE
            path.unlink(missing_ok=True)
            write_document(path, self.report().to_dict())
        if removed is not None:
            write_rows(writer.catalog_folder, REMOVED, pa.table([removed], schema=REMOVED_SCHEMA))
        elif (aliases := self.options.normaliser.aliases) is not None:
            aliases.save(writer.catalog_folder)
        options, embedder = described(self.options), None
        renews_models = makes_models = self.makes_model(len(self.options.models) - 1)
        if self.renewed_models:
            put_models(self.index, writer.embedder_folder, self.renewed_models)
            renews_models = True
        catalogs: list[FolderEntry] = []
        parts: dict[str, Sequence[FolderEntry]] = dict(folders)
        facts = dict(facts or {})
        fingerprints = {"normaliser": self.options.normaliser.fingerprint}
        if before is not None:
            catalogs = [*before.catalogs] if removed is not None else []
            parts, facts = {**before.parts, **parts}, {**before.facts, **facts}
            fingerprints, embedder = dict(before.fingerprints), before.embedder
            changed = ("model", "grid", "parts") if makes_models else ("parts",)
            options = {**before.options, **{name: options[name] for name in changed}}
            deleted = before.deleted_columns if deleted is None else deleted
        for name, output in written.items():
            parts[name] = [*parts.get(name, ()), *output.folders]
            facts.update(output.facts)
            fingerprints.update(output.fingerprints)
        return writer.commit(
            written_by=f"pexeso {__version__}",
            catalogs=[*catalogs, writer.seal_folder(writer.catalog_folder)],
            embedder=writer.seal_folder(writer.embedder_folder) if renews_models else embedder,
            parts=parts,
            options=options,
            fingerprints=fingerprints,
            facts=facts,
            deleted_columns=deleted or (),
        )


def ids_of(store: Store, tables: pa.Array) -> np.ndarray:
    """Return the ids of the indexed columns of some tables, int64, ascending."""
    chosen = Catalog(store.catalog_files).columns(["column_id"], among=tables)["column_id"]
    return np.sort(chosen.drop_null().to_numpy())


# Spark settings where Java does no more than hand out tasks; the caller's own go before them.
SMALL_LAKE_SETTINGS = {
    # Java's best compiler and its parallel collector cost more than they save in a minute.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
}

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
    source, options = source_of(lake, options), options.with_aliases_read()
    key = key_check(value_key()) if options.values == HASHED else None
    request = {
        **({} if key is None else {"key": key}),
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
        if key is not None:
            facts["key"] = key
        return job.commit({}, written, facts=facts)


@contextmanager
def workers_for(
    source: Source | None,
    writer: BuildWriter,
    engine: str,
    master: str | None,
    conf: Mapping[str, Any] | None,
) -> Iterator[Workers]:
    """Yield what runs tasks: Spark for its settings, session or tables, else this machine."""
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
    workers: LocalWorkers | SparkWorkers = LocalWorkers()
    if on_spark:
        _require_spark(is_of_spark or master is not None)
        settings = {**({} if is_of_spark else SMALL_LAKE_SETTINGS), **(conf or {})}
        workers = SparkWorkers(partial(spark_session, master, conf=settings))
    if_full = (
        f"the index '{writer.name}' was not written. Free some space and run the command again, "
        "which goes on with the stages that are finished, or choose another place."
    )
    try:
        with workers, plain_task_errors(f"building '{writer.name}'", if_full):
            yield workers
    except SparkError:
        if isinstance(workers, SparkWorkers) and not (workers.has_spark or writer.resumed):
            writer.keep = False  # it could not be started, and little was done before
        raise


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


def has_session() -> bool:
    """Return whether this process has a session of Spark already, or was started by Spark."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # under `spark-submit`
        return True
    if "pyspark.sql" not in sys.modules:
        return False
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None
