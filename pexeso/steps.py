"""What a build and an update are made of: stages that read what the ones before left, and leave the rest to Spark's tasks.

The driver holds summaries, the training sample and the codebook; file names, values, vectors and postings pass between
tasks only, through Parquet in the scratch folder. What a task does with its Arrow batches is in `pexeso.tasks`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from embed.corpus import MAX_TOKENS, CorpusOptions, write_corpus
from embed.registry import create_embedder, load_embedder
from embed.spark import embed_values
from partition.spark import plan_partitions
from pexeso import tasks
from pexeso.engine.grid_options import GridOptions
from pexeso.lake import record_schema
from pexeso.lake.catalog import COLUMNS, COLUMNS_SCHEMA, Catalog, files_in
from pexeso.numbering import number_columns, write_tables
from pexeso.options import BuildOptions
from pexeso.report import REPORT_FILE, BuildReport, StageReport, TaskMeter
from pexeso.source import Source, spark_schema
from pexeso.stages import Facts, Stages
from pexeso.store.build_writer import BuildWriter
from pexeso.store.files import write_document
from pexeso.store.manifest import FolderEntry
from pexeso.store.reader import Store
from pexeso.store.removal import remove_tree
from pexeso.store.target import entry_from_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MADE_FROM_CORPUS = ("fasttext", "hashing")
"""Models made here: one is trained on the lake's values, the other weighs words by how rare they are in the lake."""

_WRITTEN = "partitions.parquet"
_LISTING = "listing"
"""The fact of a stage that says which listing of the lake it was made from."""

VALUES_PER_CORPUS = MAX_TOKENS // 2


class Steps:
    """The stages of one build or update; each is skipped where an earlier attempt finished it.

    Parameters
    ----------
    spark : SparkSession
    writer : BuildWriter
    options : BuildOptions
    progress : callable, optional
        Called with the name of each stage as it starts.
    """

    def __init__(
        self,
        spark: SparkSession,
        writer: BuildWriter,
        options: BuildOptions,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.spark, self.writer, self.options = spark, writer, options
        self.tell = progress or (lambda stage: None)
        self.stages = Stages(writer.scratch, progress, self._keep)
        self._digest: str | None = None

    def _keep(self) -> None:
        self.writer.keep = True

    @property
    def grid_options(self) -> GridOptions:
        """The engine's share of the options."""
        return GridOptions(**self.options.grid())

    def frame(self, stage: str, name: str) -> DataFrame:
        """Read what a finished stage left under a name."""
        return self.spark.read.parquet((self.stages.folder(stage) / name).as_uri())

    def stage(self, name: str, work: Callable[[Path, TaskMeter], Facts | None]) -> Facts:
        """Do a stage, unless it is finished, and keep what its tasks measured among its facts."""

        def measured(folder: Path) -> Facts:
            meter, started = TaskMeter(self.spark.sparkContext), time.perf_counter()
            facts = work(folder, meter) or {}
            report = meter.report(name, time.perf_counter() - started)
            made_from = {} if self._digest is None else {_LISTING: self._digest}
            return {**facts, **made_from, "report": report.to_dict()}

        return self.stages.run(name, measured)

    def report(self) -> BuildReport:
        """Say what the stages did, those that an earlier attempt finished included."""
        context = self.spark.sparkContext
        found = (self.stages.finished(stage) for stage in self.stages.names)
        stages = tuple(StageReport.from_dict(facts["report"]) for facts in found if facts and "report" in facts)
        return BuildReport(
            stages, {"master": context.master, "cores": context.defaultParallelism, "taken_up": self.stages.resumed}
        )

    def write_report(self) -> None:
        """Write the report of this build or update beside its catalog."""
        path = self.writer.catalog_folder / REPORT_FILE
        path.unlink(missing_ok=True)
        write_document(path, self.report().to_dict())

    def list_tables(self, source: Source) -> Facts:
        """List the tables of the lake; where an earlier attempt made its stages from another list, all are forgotten."""

        def work(folder: Path, meter: TaskMeter) -> Facts:
            return source.list_into(self.spark, folder)

        self.stages.forget("list")  # a listing of another time says nothing of the lake as it is
        found = self.stage("list", work)
        if any(
            facts.get(_LISTING) != found["digest"] for facts in self.stages.all_finished().values() if _LISTING in facts
        ):
            self.writer.restart()
            found = self.stage("list", work)
        self._digest = found["digest"]
        return found

    def read(self, source: Source, listing: DataFrame) -> Facts:
        """Read tables in tasks, into one row a table, column and distinct value."""

        def work(folder: Path, meter: TaskMeter) -> Facts:
            from pyspark.sql import functions as sql

            n_bytes = listing.agg(sql.sum("n_bytes")).first()[0] or 0
            frame = source.records(self.spark, listing, n_bytes, self.options, meter.measured)
            frame.write.partitionBy("record").parquet((folder / "records").as_uri())
            return {"bytes": n_bytes}

        return self.stage("read", work)

    def write_catalog(self, first_id: int, skipped: DataFrame) -> Facts:
        """Write the catalog, number the columns that are kept, and put their values under these numbers.

        Parameters
        ----------
        first_id : int
            The number of the first column.
        skipped : DataFrame
            ``table, reason``: files that are no tables, for the catalog.
        """

        def work(folder: Path, meter: TaskMeter) -> Facts:
            place, source = self.writer.catalog_folder, self.stages.folder("read") / "records"
            self.empty_catalog()
            write_tables(self._records_in(source, "table").unionByName(skipped, allowMissingColumns=True), place)
            columns = number_columns(self._records_in(source, "column"), place, first_id=first_id)
            keys = self.kept_columns().select("table", "position", "column_id")
            values = self._records_in(source, "value").join(keys, ["table", "position"])
            values.select("column_id", "value", "text", "count").write.parquet((folder / "postings").as_uri())
            postings = self.spark.read.parquet((folder / "postings").as_uri())
            postings.select("value").distinct().write.parquet((folder / "values").as_uri())
            n_values = self.spark.read.parquet((folder / "values").as_uri()).count()
            return {"columns": columns.n_kept, "postings": postings.count(), "values": n_values}

        return self.stage("catalog", work)

    def make_embedder(self) -> Facts:
        """Train the model or read it, and save it into the index."""

        def work(folder: Path, meter: TaskMeter) -> Facts:
            options, corpus = self.options, None
            if options.model in MADE_FROM_CORPUS:
                corpus = folder / "corpus.txt"
                self._write_corpus(folder / "pairs", corpus)
            embedder = create_embedder(options.model, corpus=corpus, dimensions=options.dimensions, seed=options.seed)
            empty_folder(self.writer.embedder_folder)
            embedder.save(self.writer.embedder_folder)
            return {"kind": embedder.kind, "dimensions": embedder.dimensions, "fingerprint": embedder.fingerprint}

        return self.stage("train", work)

    def _write_corpus(self, pairs_folder: Path, path: Path) -> None:
        """Write a sample of (column, value) pairs as text; Spark takes the sample where the lake is larger than it."""
        from pyspark.sql import functions as sql

        pairs = self.frame("catalog", "postings").select(sql.col("column_id").alias("group"), "value")
        n_pairs = self.stages.finished("catalog")["postings"]
        if n_pairs > VALUES_PER_CORPUS:
            share = VALUES_PER_CORPUS / n_pairs
            drawn = sql.xxhash64("group", "value", sql.lit(self.options.seed)) % 1_000_000
            pairs = pairs.where(sql.abs(drawn) < int(share * 1_000_000))
        pairs.write.parquet(pairs_folder.as_uri())
        batches = ds.dataset(pairs_folder, format="parquet").to_batches()
        write_corpus(batches, path, CorpusOptions(seed=self.options.seed))

    def embed(self, embedder_folder: Path) -> Facts:
        """Embed each distinct value once."""

        def work(folder: Path, meter: TaskMeter) -> Facts:
            frame = embed_values(self.frame("catalog", "values"), embedder_folder, measured=meter.measured)
            frame.write.parquet((folder / "vectors").as_uri())
            return {"dimensions": load_embedder(embedder_folder).dimensions}

        return self.stage("embed", work)

    def plan_new(self, dimensions: int, n_partitions: int | None) -> Facts:
        """Divide the columns of this build's catalog into partitions; see `plan`."""
        postings, vectors = self.frame("catalog", "postings"), self.frame("embed", "vectors")
        return self.plan(postings, vectors, dimensions, n_partitions)

    def plan(self, postings: DataFrame, vectors: DataFrame, dimensions: int, n_partitions: int | None) -> Facts:
        """Divide columns into partitions and lay out what each needs.

        Parameters
        ----------
        postings : DataFrame
            ``column_id, value, text``.
        vectors : DataFrame
            ``value, vector``.
        dimensions : int
        n_partitions : int or None
            None: as many as ``partition_bytes`` asks for.
        """
        options = self.options

        def work(folder: Path, meter: TaskMeter) -> Facts:
            plan, summary = plan_partitions(
                postings.select("column_id", "value"),
                vectors,
                dimensions=dimensions,
                n_partitions=n_partitions,
                partition_bytes=None if n_partitions else options.partition_bytes,
                method=options.clustering,
                seed=options.seed,
            )
            place = partial(self._place, folder)
            placed = place("postings", postings.join(plan, "column_id"))
            values = placed.select("partition", "value").distinct()
            place("vectors", values.join(vectors, "value"))
            place("columns", self.kept_columns().select("column_id", "table", "label").join(plan, "column_id"))
            plan.unpersist()
            return {"partitions": summary.n_partitions}

        return self.stage("partition", work)

    def _place(self, folder: Path, name: str, frame: DataFrame) -> DataFrame:
        uri = (folder / name).as_uri()
        frame.repartition("partition").write.partitionBy("partition").parquet(uri)
        return self.spark.read.parquet(uri)

    def write_partitions(self) -> list[FolderEntry]:
        """Build each partition's arrays in the task that owns it; those that are there whole are left as they are."""
        writer = self.writer
        n_partitions = self.stages.finished("partition")["partitions"]

        def work(folder: Path, meter: TaskMeter) -> Facts:
            numbers = self.spark.range(0, n_partitions, 1, n_partitions)
            write = partial(
                tasks.write_partitions,
                placed=str(self.stages.folder("partition")),
                targets=[writer.partition_target(number) for number in range(n_partitions)],
                options=self.grid_options,
            )
            found = numbers.mapInArrow(meter.measured(write), "number long, entry string")
            pq.write_table(found.toArrow().sort_by("number"), folder / _WRITTEN)
            return {}

        if self.stages.finished("index") and not writer.has_partitions(self._written()):
            self.stages.forget("index")
        self.stage("index", work)
        return [writer.seal_partition(entry) for entry in self._written()]

    def _written(self) -> list[FolderEntry]:
        found = pq.read_table(self.stages.folder("index") / _WRITTEN)
        return [entry_from_json(text) for text in found["entry"].to_pylist()]

    def empty_catalog(self) -> None:
        """Remove what an earlier attempt left of the catalog's folder."""
        empty_folder(self.writer.catalog_folder)

    def from_partitions(self, numbers: Sequence[int], store: Store, kind: str, schema: pa.Schema) -> DataFrame:
        """Read postings or vectors (``kind``) of the columns that hold back from partitions, in tasks; see `tasks.read_partitions`."""
        frame = self.spark.createDataFrame(pa.table({"number": pa.array(numbers, pa.int64())}))
        read = partial(tasks.read_partitions, store=store, kind=kind)
        found = frame.repartition(max(1, len(numbers))).mapInArrow(read, spark_schema(schema))
        return found if kind == "postings" else found.dropDuplicates(["value"])

    def no_column(self, lake: str) -> str:
        """Say why no column of a lake can be a join key."""
        found = Catalog(files_in([self.writer.catalog_folder]))
        tables, columns = found.tables(["reason"]), found.columns(["reason"])
        reasons = [reason for rows in (tables, columns) for reason in pc.drop_null(rows["reason"]).unique().to_pylist()]
        shown = "; ".join(reasons[:3]) or "there is no column"
        return f"No column of the {tables.num_rows} files in '{lake}' can be a join key: {shown}. The rules that choose columns can be changed."

    def kept_columns(self) -> DataFrame:
        """Read the columns that this build's catalog has and the index will hold: ``column_id, table, position, label``."""
        [paths] = files_in([self.writer.catalog_folder])(COLUMNS)
        schema = spark_schema(COLUMNS_SCHEMA)
        # There may be none at all, when an update adds no table.
        frame = (
            self.spark.read.schema(schema).parquet(*(path.as_uri() for path in paths))
            if paths
            else self.spark.createDataFrame([], schema)
        )
        return frame.where("column_id is not null").select("column_id", "table", "position", "label")

    def _records_in(self, folder: Path, kind: str) -> DataFrame:
        """Rows of one kind; the schema is given, since a lake without any value leaves no file of that kind."""
        schema = spark_schema(record_schema.SCHEMA)
        return self.spark.read.schema(schema).parquet(folder.as_uri()).where(f"record = '{kind}'")


def empty_folder(folder: Path) -> None:
    """Remove what an earlier attempt left in a folder."""
    remove_tree(folder)
    folder.mkdir(parents=True)
