"""From a folder of tables to an index: the one module that runs the Spark stages.

Each stage reads and writes Parquet in the build's scratch folder, next to the index. The driver holds the list of files, the training sample and the
codebook; values, vectors and postings pass between tasks only. What a task does with its Arrow batches is in `pexeso.tasks`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from embed.corpus import MAX_TOKENS, CorpusOptions, write_corpus
from embed.protocol import Embedder
from embed.registry import check_model, create_embedder
from embed.spark import embed_values
from partition.spark import plan_partitions
from pexeso import __version__, tasks
from pexeso.engine.grid_options import LAYOUT_VERSION, GridOptions
from pexeso.errors import LakeError, OutputError, SparkError
from pexeso.lake import catalog, records
from pexeso.lake.files import SkippedFile, TableFile, find_tables
from pexeso.options import BuildOptions
from pexeso.session import spark_session
from pexeso.store.manifest import FolderEntry, Manifest
from pexeso.store.writer import IndexWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAGES = ("list", "read", "catalog", "train", "embed", "partition", "index", "commit")
"""The steps of a build in order, as given to `progress`."""

SMALL_LAKE_BYTES = 256 << 20
SMALL_LAKE_SETTINGS = {
    # Java's best compiler and its parallel collector cost more than they save in a build of a minute.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Spark settings for lakes of up to `SMALL_LAKE_BYTES`; the caller's own go before them."""

READ_BYTES_PER_TASK = 32 << 20
MADE_FROM_CORPUS = ("fasttext", "hashing")
"""Models made here: one is trained on the lake's values, the other weighs words by how rare they are in the lake."""

VALUES_PER_CORPUS = MAX_TOKENS // 2
Progress = Callable[[str], None]


def build(
    lake: str | os.PathLike[str],
    path: str | os.PathLike[str],
    options: BuildOptions,
    *,
    overwrite: bool = False,
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Index a lake.

    Parameters
    ----------
    lake : path
        A folder of tables, or one table.
    path : path
        The index folder to write; on a cluster a place that all machines see.
    options : BuildOptions
    overwrite : bool
        Replace an index that is there; it stays in use until the new one is complete.
    master, conf
        See `pexeso.session.spark_session`.
    progress : callable, optional
        Called with the name of each stage as it starts.

    Returns
    -------
    Manifest

    Raises
    ------
    LakeError
        When there is no table, or no column that can be a join key.
    OutputError, SparkError, EmbedderError, MissingPackageError
        See `pexeso.errors`.
    """
    tell = progress or (lambda stage: None)
    tell("list")
    check_model(options.model)
    files, skipped = find_tables(lake)
    if not files:
        raise LakeError(
            f"There is no table in '{lake}': it holds no file of CSV, TSV, Parquet or JSON lines ({len(skipped)} other files)."
        )
    with (
        IndexWriter(path, overwrite=overwrite) as writer,
        spark_session(master, conf=_settings(files, conf or {})) as spark,
        _worker_errors_made_plain(path),
    ):
        run = _Build(spark, writer, options, Path(lake).absolute())
        tell("read")
        run.read(files)
        tell("catalog")
        run.write_catalog(skipped)
        tell("train")
        embedder = run.make_embedder()
        tell("embed")
        run.embed()
        tell("partition")
        n_partitions = run.plan(embedder.dimensions)
        tell("index")
        partitions = run.write_partitions(n_partitions)
        tell("commit")
        return run.commit(embedder, partitions)


@dataclass(frozen=True)
class _Build:
    """One build: the stages, each reading what the ones before left in the scratch folder."""

    spark: SparkSession
    writer: IndexWriter
    options: BuildOptions
    lake: Path

    def read(self, files: list[TableFile]) -> None:
        """Read every table in tasks, into one row a table, column and distinct value."""
        # Largest first, so that dealing them out in turn spreads the bytes evenly.
        files = sorted(files, key=lambda file: -file.n_bytes)
        listing = pa.table(
            {
                "table": [file.table for file in files],
                "path": [str(file.path.absolute()) for file in files],
                "format": [file.format for file in files],
                "n_bytes": pa.array([file.n_bytes for file in files], pa.int64()),
            }
        )
        total = sum(file.n_bytes for file in files)
        n_tasks = min(len(files), max(self._cores * 4, total // READ_BYTES_PER_TASK))
        read = partial(
            tasks.read_tables,
            rules=self.options.rules,
            normaliser=self.options.normaliser,
            max_table_bytes=self.options.max_table_bytes,
        )
        frame = self.spark.createDataFrame(listing).repartition(n_tasks).mapInArrow(read, _spark_schema(records.SCHEMA))
        frame.write.partitionBy("record").parquet(self._uri("records"))

    def write_catalog(self, skipped: list[SkippedFile]) -> None:
        """Write the catalog, number the columns that are kept, and put their values under these numbers."""
        folder = str(self.writer.catalog_folder)
        left = [(file.path, file.reason) for file in skipped]
        self._stream("table", ["table"], partial(tasks.write_tables, folder=folder, skipped=left))
        self._stream("column", ["table", "name", "position"], partial(tasks.write_columns, folder=folder))
        numbered = self.spark.read.parquet(Path(folder, catalog.COLUMNS_FILE).as_uri()).where("column_id is not null")
        keys = numbered.selectExpr("table", "position", "cast(column_id as long) as column_id")
        if not Path(self._folder("records"), "record=value").is_dir():
            raise LakeError(self._no_column())
        values = self._records("value").join(keys, ["table", "position"])
        values.select("column_id", "value", "text", "count").write.parquet(self._uri("postings"))
        distinct = self._frame("postings").select("value").distinct()
        distinct.write.parquet(self._uri("values"))

    def make_embedder(self) -> Embedder:
        """Train the model or read it, and save it into the index."""
        options = self.options
        corpus = None
        if options.model in MADE_FROM_CORPUS:
            corpus = Path(self._folder("corpus.txt"))
            self._write_corpus(corpus)
        embedder = create_embedder(options.model, corpus=corpus, dimensions=options.dimensions, seed=options.seed)
        embedder.save(self.writer.embedder_folder)
        return embedder

    def _write_corpus(self, path: Path) -> None:
        """Write a sample of (column, value) pairs as text; Spark takes the sample where the lake is larger than it."""
        from pyspark.sql import functions as sql

        pairs = self._frame("postings").select(sql.col("column_id").alias("group"), "value")
        n_pairs = pairs.count()
        if n_pairs > VALUES_PER_CORPUS:
            share = VALUES_PER_CORPUS / n_pairs
            drawn = sql.xxhash64("group", "value", sql.lit(self.options.seed)) % 1_000_000
            pairs = pairs.where(sql.abs(drawn) < int(share * 1_000_000))
        pairs.write.parquet(self._uri("corpus"))
        batches = ds.dataset(self._folder("corpus"), format="parquet").to_batches()
        write_corpus(batches, path, CorpusOptions(seed=self.options.seed))

    def embed(self) -> None:
        """Embed each distinct value once."""
        frame = embed_values(self._frame("values"), self.writer.embedder_folder)
        frame.write.parquet(self._uri("vectors"))

    def plan(self, dimensions: int) -> int:
        """Divide the columns into partitions and lay out what each needs; give the number of partitions."""
        options = self.options
        postings = self._frame("postings")
        plan, summary = plan_partitions(
            postings.select("column_id", "value"),
            self._frame("vectors"),
            dimensions=dimensions,
            n_partitions=options.n_partitions,
            partition_bytes=None if options.n_partitions else options.partition_bytes,
            method=options.clustering,
            seed=options.seed,
        )
        placed = postings.join(plan, "column_id")
        placed.repartition("partition").write.partitionBy("partition").parquet(self._uri("placed_postings"))
        values = self._frame("placed_postings").select("partition", "value").distinct()
        vectors = values.join(self._frame("vectors"), "value")
        vectors.repartition("partition").write.partitionBy("partition").parquet(self._uri("placed_vectors"))
        columns = self.spark.read.parquet(Path(self.writer.catalog_folder, catalog.COLUMNS_FILE).as_uri())
        columns = columns.selectExpr("cast(column_id as long) as column_id", "table", "label").join(plan, "column_id")
        columns.repartition("partition").write.partitionBy("partition").parquet(self._uri("placed_columns"))
        plan.unpersist()
        return summary.n_partitions

    def write_partitions(self, n_partitions: int) -> list[FolderEntry]:
        """Build each partition's arrays in the task that owns it."""
        numbers = self.spark.range(0, n_partitions, 1, n_partitions)
        write = partial(
            tasks.write_partitions,
            scratch=self._folder(""),
            folders=[str(self.writer.partition_folder(number)) for number in range(n_partitions)],
            options=self.grid_options,
        )
        rows = numbers.mapInArrow(write, "number long, facts string, files string").sort("number").collect()
        return [
            self.writer.seal_folder(
                self.writer.partition_folder(row.number), tasks.facts_of(row.facts), known=tasks.files_of(row.files)
            )
            for row in rows
        ]

    @property
    def grid_options(self) -> GridOptions:
        """The engine's share of the options."""
        return GridOptions(**self.options.grid())

    def commit(self, embedder: Embedder, partitions: list[FolderEntry]) -> Manifest:
        """Make it the index."""
        writer, options = self.writer, self.options
        return writer.commit(
            written_by=f"pexeso {__version__}",
            catalog=writer.seal_folder(writer.catalog_folder),
            embedder=writer.seal_folder(writer.embedder_folder),
            partitions=partitions,
            options={
                "model": options.model,
                "grid": vars(self.grid_options),
                "layout": LAYOUT_VERSION,
                "clustering": options.clustering,
                "n_partitions": options.n_partitions,
                "partition_bytes": options.partition_bytes,
                "rules": options.rules.to_dict(),
                "normaliser": options.normaliser.to_json(),
                "max_table_bytes": options.max_table_bytes,
                "seed": options.seed,
            },
            fingerprints={"normaliser": options.normaliser.fingerprint, "embedder": embedder.fingerprint},
            facts={
                "lake": str(self.lake),
                "embedder": embedder.kind,
                "dimensions": embedder.dimensions,
                "values": self._frame("values").count(),
                "postings": sum(entry.facts["postings"] for entry in partitions),
            },
        )

    @property
    def _cores(self) -> int:
        return self.spark.sparkContext.defaultParallelism

    def _folder(self, name: str) -> str:
        return str(self.writer.scratch / name)

    def _uri(self, name: str) -> str:
        return Path(self._folder(name)).as_uri()

    def _frame(self, name: str) -> DataFrame:
        return self.spark.read.parquet(self._uri(name))

    def _records(self, kind: str) -> DataFrame:
        """Rows of one kind; the schema is given, since a lake without any value leaves no file of that kind."""
        schema = _spark_schema(records.SCHEMA)
        return self.spark.read.schema(schema).parquet(self._uri("records")).where(f"record = '{kind}'")

    def _stream(self, kind: str, order: list[str], task: Callable[[tasks.Batches], tasks.Batches]) -> None:
        """Run a task over the sorted records of one kind, as one stream; Spark sorts on disk what memory does not hold."""
        self._records(kind).coalesce(1).sortWithinPartitions(*order).mapInArrow(task, "rows long").collect()

    def _no_column(self) -> str:
        tables, columns = catalog.read_catalog(self.writer.catalog_folder)
        reasons = [reason for name in (tables, columns) for reason in pc.drop_null(name["reason"]).unique().to_pylist()]
        shown = "; ".join(reasons[:3]) or "there is no column"
        return f"No column of the {tables.num_rows} files in '{self.lake}' can be a join key: {shown}. The rules that choose columns can be changed."


def _spark_schema(schema: pa.Schema):
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _settings(files: list[TableFile], conf: Mapping[str, Any]) -> dict[str, Any]:
    small = sum(file.n_bytes for file in files) <= SMALL_LAKE_BYTES
    return {**(SMALL_LAKE_SETTINGS if small else {}), **conf}


@contextmanager
def _worker_errors_made_plain(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what Spark raises for a failed task into the error of ours that the task raised, or one sentence."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        if (own := tasks.error_in(text)) is not None:
            raise own from error
        if "No space left on device" in text:
            raise OutputError(
                f"The disk is full: the index '{path}' was not written. Free some space, or choose another place."
            ) from error
        cause = next(
            (line.strip() for line in reversed(text.splitlines()) if "Error" in line or "Exception" in line), text
        )
        raise SparkError(f"A Spark task failed while building '{path}': {cause}") from error
