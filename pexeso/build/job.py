"""One build or update: stages, folders that tasks write, and one commit.

Each stage reads what the stages before it left.

The driver holds summaries, the training sample and the codebook; file names, values, vectors and
postings pass between tasks only, through Parquet in the scratch folder; but what a small lake holds
is put together in the driver (`pexeso.build.in_driver`). What a task does with its Arrow batches is
in `pexeso.build.tasks`; what each part of an index adds is in `pexeso.build.parts`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso import __version__, registry
from pexeso.build import in_driver, tasks
from pexeso.build.lake_source.source import Source, spark_schema
from pexeso.build.numbering import number_columns, write_tables
from pexeso.build.parts.base import IndexPart, Written
from pexeso.build.parts.models import models_of, put_models
from pexeso.build.recorded import described
from pexeso.build.report import REPORT_FILE, BuildReport, StageReport, TaskMeter
from pexeso.build.stages import Facts, Stages
from pexeso.build.workers import Workers
from pexeso.errors import InputError
from pexeso.lake import record_schema
from pexeso.lake.catalog import (
    COLUMNS,
    COLUMNS_SCHEMA,
    REMOVED,
    REMOVED_SCHEMA,
    TABLES,
    Catalog,
    files_in,
    write_rows,
)
from pexeso.lake.left_out.groups import ReasonGroup, in_words, left_out
from pexeso.options import BuildOptions
from pexeso.runtime.progress import StageProgress, stage_bar
from pexeso.store.files import write_document
from pexeso.store.id_ranges import Ranges
from pexeso.store.io.location import read_parquet, spark_path
from pexeso.store.local.build_writer import BuildWriter
from pexeso.store.local.reader import Store
from pexeso.store.local.removal import empty_folder
from pexeso.store.local.target import entry_from_json
from pexeso.store.manifest import FolderEntry, Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WRITTEN = "partitions.parquet"
_LISTING = "listing"
"""The fact of a stage that says which listing of the lake it was made from."""

Folders = Mapping[str, Sequence[FolderEntry]]
"""Folders of parts, by the name of the part."""


def write_counted(frame: DataFrame, folder: Path) -> int:
    """Write a frame as Parquet and return its number of rows, which Spark counts as it writes."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as sql

    rows = Observation()
    frame.observe(rows, sql.count(sql.lit(1)).alias("n")).write.parquet(spark_path(folder))
    return rows.get["n"]


def stage_names(n_models: int = 1) -> tuple[str, ...]:
    """Return the stages of builds and updates of an index of some models, in order.

    They are passed to `progress`. Each command runs some of them.
    """
    parts = registry.requested_parts(registry.choices(), n_models)
    of_parts = [stage for part in parts for stage in part.stages]
    return ("list", "changes", "read", "catalog", *of_parts, "commit")


def build_bar() -> AbstractContextManager[StageProgress]:
    """Return a bar of the stages of a build or an update."""
    return stage_bar(stage_names())


class BuildJob:
    """A build or an update of an index.

    Each of its stages is skipped where an earlier attempt finished it.
    """

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
        self._workers = workers
        self.tell = progress or (lambda stage: None)
        self.stages = Stages(writer.scratch, progress, self._keep)
        self.renewed_models: dict[int, Path] = {}
        """Models of the index that were made anew, and where they are."""
        self._digest: str | None = None
        self._n_folders = 0

    def _keep(self) -> None:
        self.writer.keep = True

    @property
    def index(self) -> Store:
        """The index that is updated."""
        if self.store is None:
            raise InputError("This job builds an index, and updates none.")
        return self.store

    @property
    def workers(self) -> Workers:
        """What runs the tasks."""
        if self._workers is None:
            raise InputError("This job has no workers: it can do no stage.")
        return self._workers

    @workers.setter
    def workers(self, workers: Workers) -> None:
        self._workers = workers

    @property
    def spark(self) -> SparkSession:
        """The session of Spark, started where no stage has needed it so far."""
        return self.workers.spark

    @property
    def parts(self) -> list[IndexPart]:
        """The parts that the index has, or is to have."""
        return registry.requested_parts(self.options.parts, len(self.options.models))

    def makes_model(self, model: int) -> bool:
        """Return whether the index is to get the model at a position in this job."""
        return self.store is None or model >= len(models_of(self.store.manifest))

    def frame(self, stage: str, name: str) -> DataFrame:
        """Read what a finished stage left under a name."""
        return read_parquet(self.spark, self.stages.folder(stage) / name)

    def stage(self, name: str, work: Callable[[Path, TaskMeter], Facts | None]) -> Facts:
        """Do a stage, unless it is finished, and keep what its tasks measured among its facts."""

        def measured(folder: Path) -> Facts:
            meter, started = self.workers.meter(), time.perf_counter()
            facts = work(folder, meter) or {}
            report = meter.report(name, time.perf_counter() - started)
            made_from = {} if self._digest is None else {_LISTING: self._digest}
            return {**facts, **made_from, "report": report.to_dict()}

        return self.stages.run(name, measured)

    def report(self) -> BuildReport:
        """Return what the stages did, those that an earlier attempt finished included."""
        stage_facts = (self.stages.finished(stage) for stage in self.stages.names)
        stages = tuple(
            StageReport.from_dict(facts["report"])
            for facts in stage_facts
            if facts and "report" in facts
        )
        return BuildReport(
            stages,
            {**self.workers.facts, "taken_up": self.stages.resumed},
        )

    def list_tables(self, source: Source) -> Facts:
        """List the tables of the lake.

        If an earlier attempt made its stages from another list, all stages are forgotten.
        """

        def work(folder: Path, meter: TaskMeter) -> Facts:
            return source.list_into(None if source.is_small() else self.spark, folder)

        self.stages.forget("list")  # a listing of another time says nothing of the lake as it is
        listing = self.stage("list", work)
        if any(
            facts.get(_LISTING) != listing["digest"]
            for facts in self.stages.all_finished().values()
            if _LISTING in facts
        ):
            self.writer.restart()
            listing = self.stage("list", work)
        self._digest = listing["digest"]
        return listing

    def read(
        self, source: Source, listing: DataFrame | pa.Table | Path, n_bytes: int | None = None
    ) -> Facts:
        """Read tables in tasks, into the records that the catalog and the parts want of each.

        Parameters
        ----------
        n_bytes : int, optional
            Of all files; added up unless it is known.
        """

        def work(folder: Path, meter: TaskMeter) -> Facts:
            total = self._bytes_of(listing) if n_bytes is None else n_bytes
            part_records = [part.records for part in self.parts]
            options = replace(self.options, normaliser=self.options.normaliser.kept_in(folder))
            records = folder / "records"
            records.mkdir()
            source.read_into(self.workers, records, listing, total, options, part_records, meter)
            return {"bytes": total}

        return self.stage("read", work)

    def _bytes_of(self, listing: DataFrame | pa.Table | Path) -> int:
        if isinstance(listing, pa.Table):
            return pc.sum(listing["n_bytes"]).as_py() or 0
        from pyspark.sql import functions as sql

        files = read_parquet(self.spark, listing) if isinstance(listing, Path) else listing
        return files.agg(sql.sum("n_bytes")).first()[0] or 0

    def write_catalog(self, first_id: int, skipped: Path) -> Facts:
        """Write the catalog, number the kept columns, and store their values by these numbers."""

        def work(folder: Path, meter: TaskMeter) -> Facts:
            catalog_folder = self.writer.catalog_folder
            self.empty_catalog()
            if in_driver.fits_the_driver(self.stages.finished("read") or {}, skipped):
                records = self.stages.folder("read") / "records"
                return in_driver.write_catalog(records, skipped, catalog_folder, folder, first_id)
            others = read_parquet(self.spark, skipped)
            tables = self.records("table").unionByName(others, allowMissingColumns=True)
            write_tables(tables, catalog_folder)
            columns = number_columns(self.records("column"), catalog_folder, first_id=first_id)
            keys = self.kept_columns().select("table", "position", "column_id")
            values = self.records("value").join(keys, ["table", "position"])
            postings = values.select("column_id", "value", "text", "count")
            n_postings = write_counted(postings, folder / "postings")
            postings = read_parquet(self.spark, folder / "postings")
            n_values = write_counted(postings.select("value").distinct(), folder / "values")
            return {"columns": columns.n_kept, "postings": n_postings, "values": n_values}

        return self.stage("catalog", work)

    def write_parts(self) -> dict[str, Written]:
        """Have every part write its folders of what was read."""
        return {part.name: part.write(self) for part in self.parts}

    def write_folders(
        self,
        stage: str,
        n_folders: int,
        fill: Callable[[int, Path], tasks.Filled],
        *,
        placed: Path | None = None,
    ) -> list[FolderEntry]:
        """Write each folder in a task of its own.

        Folders that are already complete are left as they are.
        """
        writer, first = self.writer, self._n_folders
        self._n_folders += n_folders

        def work(folder: Path, meter: TaskMeter) -> Facts:
            targets = [writer.partition_target(first + number) for number in range(n_folders)]
            write = partial(tasks.write_folders, targets=targets, fill=fill)
            works_here = (
                placed is not None and self.workers.may_work_here and in_driver.folder_fits(placed)
            )
            measured = (meter.measured_here if works_here else meter.measured)(write)
            entries = self.workers.run(measured, tasks.ENTRIES, n_folders, here=works_here)
            pq.write_table(entries.sort_by("number"), folder / _WRITTEN)
            return {}

        if self.stages.finished(stage) and not writer.has_partitions(self._written(stage)):
            self.stages.forget(stage)
        self.stage(stage, work)
        return [writer.seal_partition(entry) for entry in self._written(stage)]

    def _written(self, stage: str) -> list[FolderEntry]:
        entries = pq.read_table(self.stages.folder(stage) / _WRITTEN)
        return [entry_from_json(text) for text in entries["entry"].to_pylist()]

    def empty_catalog(self) -> None:
        """Remove what an earlier attempt left of the catalog's folder."""
        empty_folder(self.writer.catalog_folder)

    def read_folders(
        self,
        numbers: Sequence[int],
        read: Callable[[tasks.Batches], tasks.Batches],
        schema: pa.Schema,
    ) -> DataFrame:
        """Read folders of an index in Spark tasks, one task for each number.

        `read` receives the numbers in batches.
        """
        frame = self.spark.createDataFrame(pa.table({"number": pa.array(numbers, pa.int64())}))
        return frame.repartition(max(1, len(numbers))).mapInArrow(read, spark_schema(schema))

    def records_at_hand(self, kind: str, names: Sequence[str]) -> pa.Table | None:
        """Return some fields of the records of one kind where this process is to do with them.

        None where there are many, or where Spark was started: `records` has them then.
        """
        read = self.stages.finished("read") or {}
        if not self.workers.may_work_here or not in_driver.fits_the_driver(read):
            return None
        return in_driver.read_records(self.stages.folder("read") / "records", kind, names)

    def left_out(self) -> tuple[ReasonGroup, ...]:
        """Count what this job read and left out, by reason."""
        return left_out(Catalog(files_in([self.writer.catalog_folder])))

    def no_column(self, lake: str) -> str:
        """Return why no column of a lake can be a join key."""
        reasons = in_words(sorted(self.left_out(), key=lambda group: group.kind == TABLES))
        return (
            f"No column in '{lake}' can be a join key. Left out: {reasons}. The rules "
            "that choose columns can be changed; overlap, containment and composite (--include) "
            "index columns of every kind."
        )

    def kept_columns(self) -> DataFrame:
        """Read the columns that this build's catalog has and the index will hold.

        Each row has ``column_id, table, position, label``.
        """
        [paths] = files_in([self.writer.catalog_folder])(COLUMNS)
        schema = spark_schema(COLUMNS_SCHEMA)
        # There may be none at all, when an update adds no table.
        frame = (
            read_parquet(self.spark, *paths, schema=schema)
            if paths
            else self.spark.createDataFrame([], schema)
        )
        return frame.where("column_id is not null").select(
            "column_id", "table", "position", "label"
        )

    def records(self, kind: str) -> DataFrame:
        """Read the records of one kind that the reading stage left.

        The schema is given, since a lake without any of that kind leaves no file of it.
        """
        folder, schema = self.stages.folder("read") / "records", spark_schema(record_schema.SCHEMA)
        return read_parquet(self.spark, folder, schema=schema).where(f"record = '{kind}'")

    def next_column(self) -> int:
        """Return the lowest column id that no column ever had."""
        if self.store is None:
            return 0
        known = self.store.manifest.facts.get("next_column")
        if known is not None:
            return known
        highest = pc.max(
            Catalog(self.store.catalog_files).columns(["column_id"])["column_id"]
        ).as_py()
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
        if removed is None and (aliases := self.options.normaliser.aliases) is not None:
            aliases.save(writer.catalog_folder)
        catalogs = [
            *(before.catalogs if before and removed is not None else ()),
            writer.seal_folder(writer.catalog_folder),
        ]
        parts: dict[str, Sequence[FolderEntry]] = {**(before.parts if before else {}), **folders}
        facts = {**(before.facts if before else {}), **(facts or {})}
        fingerprints = (
            dict(before.fingerprints)
            if before
            else {"normaliser": self.options.normaliser.fingerprint}
        )
        for name, output in written.items():
            parts[name] = [*parts.get(name, ()), *output.folders]
            facts.update(output.facts)
            fingerprints.update(output.fingerprints)
        if self.renewed_models:
            put_models(self.index, writer.embedder_folder, self.renewed_models)
        embedder, options, more = before and before.embedder, described(self.options), {}
        makes_models = self.makes_model(len(self.options.models) - 1)
        if makes_models or self.renewed_models:
            embedder = writer.seal_folder(writer.embedder_folder)
        if makes_models:
            more = {name: options[name] for name in ("model", "grid", "layout")}
        if before:
            options = {**before.options, **more, "parts": list(self.options.parts)}
        return writer.commit(
            written_by=f"pexeso {__version__}",
            catalogs=catalogs,
            embedder=embedder,
            parts=parts,
            options=options,
            fingerprints=fingerprints,
            facts=facts,
            deleted_columns=before.deleted_columns if before and deleted is None else deleted or (),
        )


def ids_of(store: Store, tables: pa.Array) -> np.ndarray:
    """Return the ids of the indexed columns of some tables, int64, ascending."""
    chosen = Catalog(store.catalog_files).columns(["column_id"], among=tables)["column_id"]
    return np.sort(chosen.drop_null().to_numpy())
