"""The partitioner over a lake: frames in, plan out. The only module here that uses Spark, and only inside functions.

Two frames come in: ``postings(column_id: long, value: string)``, one row for each distinct normalised value of a
column, and ``vectors(value: string, vector: array<float>)``, one row for each distinct value.

Nothing is collected in proportion to the lake. The driver holds a sample of the vectors (for the codebook), a sample of
the columns (for the first centres), the centres and one sum a centre (at most :data:`partition.balance.MAX_CLUSTERS` x
regions numbers), a sum for each task and cluster, and a list of pieces, a few for each partition. A task holds one slice
of a batch and one table of centres. Frames used more than once are persisted, and spill to disk where memory ends.

Every step spreads over all machines, also the running sum that cuts clusters into pieces: the columns are sorted by
ranges, each task adds up its own range, and goes on from the sum of those before (:mod:`partition.running`).

The same frames and options give the same plan, whatever the number of machines and the order of rows: samples are taken
by hash, sums are kept in fixed point. The one exception is a value that lies within a rounding error of the border
between two regions of the codebook, whose region may depend on the values that stand in the same batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from partition import balance, batches, running
from partition.balance import Limits, Pieces, place
from partition.batches import features_of, matrix_of
from partition.clustering import (
    METHODS,
    SCALE,
    Centres,
    Method,
    Partials,
    iterate,
    iterate_in_memory,
    method_named,
    seed_centres,
)
from partition.codebook import MAX_CODES, Codebook, fit_codebook
from partition.options import PlanOptions
from partition.plan import COLUMNS_FILE, PartitionSize, PlanSummary, plan_notes, prepare_folder, write_summary
from pexeso.errors import InputError, LakeError, OutputError, SparkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CODEBOOK_SAMPLE = 40_000
"""Vectors that the codebook is fitted on: more than 150 for each of 256 centroids."""

CODEBOOK_SAMPLE_BYTES = 256 << 20
"""Most bytes of these on the driver: above 1,677 dimensions there are fewer of them."""

SEEDING_COLUMNS = 10_000
"""Columns that the first centres are drawn from, or ten for each centre where that is more.

A lake of no more columns is clustered on the driver, which holds them anyway; the result is the same.
"""

PIECE_KEY = ["cluster", "own_column", "size_step", "column_step"]


def plan_partitions(
    postings: DataFrame,
    vectors: DataFrame,
    *,
    dimensions: int,
    n_partitions: int | None = None,
    partition_bytes: int | None = None,
    method: str = next(iter(METHODS)),
    n_codes: int = MAX_CODES,
    max_iterations: int = 20,
    seed: int = 0,
    max_imbalance: float = 2.0,
) -> tuple[DataFrame, PlanSummary]:
    """Divide the columns of a lake into partitions of similar content and bounded size.

    Parameters
    ----------
    postings : DataFrame
        ``column_id: long, value: string``, each pair once.
    vectors : DataFrame
        ``value: string, vector: array<float>``, each value once. Zero vectors, and values that are missing here, count
        as values without meaning.
    dimensions, n_partitions, partition_bytes, method, n_codes, max_iterations, seed, max_imbalance
        See :class:`partition.options.PlanOptions`.

    Returns
    -------
    plan : DataFrame
        ``column_id: long, partition: int``, one row a column. It is persisted; call ``unpersist()`` when done with it.
    summary : PlanSummary

    Raises
    ------
    InputError
        If an option is out of range, a frame lacks a column, or vectors have another number of dimensions.
    LakeError
        If there is no posting.
    SparkError
        If Spark had to compute a part again, after it had lost a machine, and a column got lost over it.
    """
    options = PlanOptions(
        dimensions, n_partitions, partition_bytes, method, n_codes, max_iterations, seed, max_imbalance
    )
    _check_frame("postings", postings, {"column_id", "value"})
    _check_frame("vectors", vectors, {"value", "vector"})
    sizes = _column_sizes(postings)
    n_columns, n_values = _totals(sizes)
    limits = options.limits(n_columns, _bytes(n_values, options))
    if limits.n_bins == 1:
        return _single_partition(sizes, n_columns, n_values, limits, options)
    features = _features(postings, vectors, sizes, options)
    features.frame.persist()
    try:
        found = _centres(features, n_columns, limits, options)
        outwards = _outwards(_assign(features, found.centres, limits, options), limits).persist()
        try:
            return _place(_cut(outwards, limits), found, limits, options, n_columns)
        finally:
            outwards.unpersist()
    finally:
        features.frame.unpersist()


def write_plan(plan: DataFrame, summary: PlanSummary, folder: str) -> None:
    """Write a plan, for :class:`partition.plan.PartitionPlan` to read, into a folder that all workers see.

    Raises
    ------
    OutputError
        If the folder holds a plan already, or cannot be written.
    """
    from pyspark.errors import PySparkException

    path = prepare_folder(folder)
    try:
        plan.write.parquet((path / COLUMNS_FILE).absolute().as_uri())
    except PySparkException as error:
        raise OutputError(f"The partition plan cannot be written to {path}.") from error
    write_summary(summary, path)


def column_histograms(postings: DataFrame, vectors: DataFrame, codebook: Codebook, dimensions: int) -> DataFrame:
    """Count every column's values by region of the codebook.

    Parameters
    ----------
    postings, vectors : DataFrame
        As for :func:`plan_partitions`.
    codebook : Codebook
    dimensions : int

    Returns
    -------
    DataFrame
        ``column_id: long, n_values: long, codes: array<int>, counts: array<long>``, one row a column, at most
        ``codebook.n_regions`` codes in a row, in rising order.
    """
    from pyspark.sql import functions as sql

    shared = vectors.sparkSession.sparkContext.broadcast(codebook)

    def encode(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches.encode_values(parts, shared.value, dimensions)

    codes = vectors.select("value", "vector").mapInArrow(encode, "value string, code int")
    code = sql.coalesce("code", sql.lit(codebook.no_meaning)).alias("code")
    counted = postings.join(codes, "value", "left").groupBy("column_id", code).agg(sql.count("*").alias("n"))
    bins = sql.sort_array(sql.collect_list(sql.struct("code", "n"))).alias("bins")
    rows = counted.groupBy("column_id").agg(sql.sum("n").alias("n_values"), bins)
    return rows.select("column_id", "n_values", sql.col("bins.code").alias("codes"), sql.col("bins.n").alias("counts"))


def column_vector_sums(postings: DataFrame, vectors: DataFrame, dimensions: int) -> DataFrame:
    """Add up every column's vectors, in fixed point.

    Returns
    -------
    DataFrame
        ``column_id: long, n_values: long, sums: array<long>`` in units of 1 / :data:`partition.clustering.SCALE`.
    """
    joined = postings.join(vectors, "value", "left").select("column_id", "vector")
    together = joined.repartition("column_id").sortWithinPartitions("column_id")
    add_up = partial(batches.sum_vectors, dimensions=dimensions)
    return together.mapInArrow(add_up, "column_id long, n_values long, sums array<long>")


def _column_sizes(postings: DataFrame) -> DataFrame:
    from pyspark.sql import functions as sql

    return postings.groupBy("column_id").agg(sql.count("*").alias("n_values"))


def _totals(sizes: DataFrame) -> tuple[int, int]:
    from pyspark.sql import functions as sql

    n_columns, n_values = sizes.agg(sql.count("*"), sql.sum("n_values")).first()
    if not n_columns:
        raise LakeError("There is no column with a value, so there is nothing to divide into partitions.")
    return n_columns, n_values


def _single_partition(
    sizes: DataFrame, n_columns: int, n_values: int, limits: Limits, options: PlanOptions
) -> tuple[DataFrame, PlanSummary]:
    from pyspark.sql import functions as sql

    plan = sizes.select("column_id", sql.lit(0).cast("int").alias("partition")).persist()
    size = PartitionSize(n_columns, n_values, _bytes(n_values, options), 0.0)
    notes = plan_notes(options, (size,), limits)
    return plan, PlanSummary(options, (size,), limits.limit_bytes, 0, True, notes)


@dataclass(frozen=True)
class _Features:
    """One row a column: what the method compares, ``n_values``, and the hash ``tie`` that orders equals."""

    frame: DataFrame
    method: Method
    width: int

    def matrix(self, rows: pa.Table) -> np.ndarray:
        """Read the features of the few columns that were brought to the driver."""
        parts = [features_of(part, self.method, self.width) for part in rows.to_batches()]
        return np.vstack([np.empty((0, self.width)), *parts])

    def with_centres(self, function: Callable[..., Any], schema: str, centres: np.ndarray) -> DataFrame:
        """Run a function of :mod:`partition.batches` over all columns, with the centres broadcast."""
        shared, method = self.frame.sparkSession.sparkContext.broadcast(centres), self.method

        def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return function(parts, shared.value, method)

        return self.frame.mapInArrow(run, schema)


def _features(postings: DataFrame, vectors: DataFrame, sizes: DataFrame, options: PlanOptions) -> _Features:
    method = method_named(options.method)
    if method.features == "histogram":
        codebook = fit_codebook(_sample_vectors(vectors, options), n_codes=options.n_codes, seed=options.seed)
        frame, width = column_histograms(postings, vectors, codebook, options.dimensions), codebook.n_regions
    elif method.features == "mean":
        frame, width = column_vector_sums(postings, vectors, options.dimensions), options.dimensions
    else:
        frame, width = sizes, 0
    add_ties = partial(batches.add_ties, seed=options.seed)
    return _Features(frame.mapInArrow(add_ties, f"{_schema_of(frame)}, tie bigint"), method, width)


def _sample_vectors(vectors: DataFrame, options: PlanOptions) -> np.ndarray:
    """At most CODEBOOK_SAMPLE vectors, those of least hash."""
    from pyspark.sql import functions as sql

    n_wanted = min(CODEBOOK_SAMPLE, CODEBOOK_SAMPLE_BYTES // (4 * options.dimensions))
    tie = sql.shiftrightunsigned(sql.xxhash64("value", sql.lit(options.seed).cast("long")), 1)
    least = _least_ties(vectors.withColumn("tie", tie), vectors.count(), n_wanted).select("vector")
    parts = [matrix_of(part.column("vector"), options.dimensions) for part in least.toArrow().to_batches()]
    return np.vstack([np.empty((0, options.dimensions), dtype=np.float32), *parts])


def _least_ties(frame: DataFrame, n_rows: int, n_wanted: int) -> DataFrame:
    """Rows of least ``tie``, a hash in [0, 2**63).

    Each task of a sort with a limit sends all it may need. The filter lets hardly more rows than wanted through, so
    that the driver does not receive the limit once a task; the margin makes a shortfall a matter of ten standard
    deviations.
    """
    from pyspark.sql import functions as sql

    expected = n_wanted + 10 * n_wanted**0.5 + 100
    if n_rows > expected:
        frame = frame.filter(sql.col("tie") < int(expected / n_rows * 2.0**63))
    return frame.orderBy("tie").limit(n_wanted)


def _centres(features: _Features, n_columns: int, limits: Limits, options: PlanOptions) -> Centres:
    """K-means: every pass is a job over the features, of which only the sums of each cluster come back."""
    from pyspark.sql import functions as sql

    method = features.method
    if method.between is None:
        return Centres(np.empty((0, 0)), 0, True)

    def measure(centres: np.ndarray) -> Partials:
        rows = features.with_centres(batches.partials_of, "cluster int, slot int, total long", centres)
        table = rows.groupBy("cluster", "slot").agg(sql.sum("total").alias("total")).toArrow()
        return batches.partials_from(table, *centres.shape)

    def farthest(centres: np.ndarray, n: int) -> np.ndarray:
        schema = f"{_schema_of(features.frame)}, divergence double"
        rows = features.with_centres(batches.add_divergences, schema, centres)
        return features.matrix(rows.orderBy(sql.desc("divergence"), "tie").limit(n).toArrow())

    n_sample = max(SEEDING_COLUMNS, 10 * limits.n_clusters)
    rows = _least_ties(features.frame, n_columns, n_sample).toArrow().sort_by("column_id")
    sample = features.matrix(rows)
    first = seed_centres(sample, limits.n_clusters, method, seed=options.seed)
    if n_columns <= n_sample:
        # The sample is the lake: the same passes over the same columns, without a job for each.
        ties = rows["tie"].to_numpy()
        return iterate_in_memory(sample, ties, first, method, max_iterations=options.max_iterations)
    return iterate(measure, farthest, first, method, max_iterations=options.max_iterations)


def _assign(features: _Features, centres: np.ndarray, limits: Limits, options: PlanOptions) -> DataFrame:
    schema = "column_id long, n_values long, n_bytes long, tie long, cluster int, divergence double"
    if features.method.between is not None:
        function = partial(batches.assign_columns, dimensions=options.dimensions)
        return features.with_centres(function, schema, centres)
    at_random = partial(
        batches.assign_at_random,
        n_clusters=limits.n_clusters,
        seed=options.seed,
        dimensions=options.dimensions,
    )
    return features.frame.mapInArrow(at_random, schema)


def _outwards(assigned: DataFrame, limits: Limits) -> DataFrame:
    """Sort the columns of each cluster outwards from its centre, large ones apart: one order over all tasks.

    Persist it before it is used: a second computation might divide the order at other places.
    """
    from pyspark.sql import functions as sql

    own = (sql.col("n_bytes") > limits.piece_bytes).alias("own")
    ranges = assigned.select("*", own).repartitionByRange(*running.ORDER).sortWithinPartitions(*running.ORDER)
    return ranges.withColumn("part", sql.spark_partition_id())


def _cut(outwards: DataFrame, limits: Limits) -> DataFrame:
    """Key every column with its piece, as :func:`partition.balance.cut` does for columns held in memory."""
    sums = outwards.mapInArrow(running.part_sums, "part int, cluster int, own boolean, n_bytes long, n_columns long")
    totals = sums.groupBy("part", "cluster", "own").sum("n_bytes", "n_columns").toArrow()
    before = running.shares_before(totals.rename_columns(running.PART_SUMS.names).cast(running.PART_SUMS))
    shared = outwards.sparkSession.sparkContext.broadcast(before)

    def key(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return running.key_pieces(parts, shared.value, limits)

    return outwards.mapInArrow(key, ", ".join(f"{name} long" for name in running.KEYED.names))


def _place(
    cut: DataFrame, found: Centres, limits: Limits, options: PlanOptions, n_columns: int
) -> tuple[DataFrame, PlanSummary]:
    """Choose a partition for each piece on the driver, and send the choice back to the columns."""
    from pyspark.sql import functions as sql

    measures = ("n_bytes", "n_columns", "n_values", "cost")
    totals = [sql.sum(sql.lit(1) if name == "n_columns" else name).alias(name) for name in measures]
    table = cut.groupBy(*PIECE_KEY).agg(*totals).toArrow().sort_by([(name, "ascending") for name in PIECE_KEY])
    pieces = Pieces(*(table[name].to_numpy() for name in (*PIECE_KEY, "n_bytes", "n_columns")))
    partitions = place(pieces, limits, _divergence_from(found.centres, limits, method_named(options.method)))
    choice = table.select(PIECE_KEY).append_column("partition", pa.array(partitions.astype(np.int32)))
    chosen = cut.sparkSession.createDataFrame(choice)
    plan = cut.join(sql.broadcast(chosen), PIECE_KEY).select("column_id", "partition").persist()
    # Filled now, while the frames that it comes from are persisted.
    n_placed = plan.count()
    if n_placed != n_columns:
        raise SparkError(
            f"Of {n_columns} columns {n_placed} were given a partition: a part of the plan was lost and computed again with other "
            "rounding. Run the build again."
        )
    sizes = _sizes(table, partitions)
    notes = plan_notes(options, sizes, limits)
    return plan, PlanSummary(options, sizes, limits.limit_bytes, found.iterations, found.converged, notes)


def _sizes(pieces: pa.Table, partitions: np.ndarray) -> tuple[PartitionSize, ...]:
    sums = {}
    for name in ("n_columns", "n_values", "n_bytes", "cost"):
        sums[name] = np.zeros(partitions.max() + 1, dtype=np.int64)
        np.add.at(sums[name], partitions, pieces[name].to_numpy())
    divergences = sums["cost"] / (SCALE * sums["n_columns"])
    whole = (sums[name].tolist() for name in ("n_columns", "n_values", "n_bytes"))
    return tuple(PartitionSize(*size) for size in zip(*whole, divergences.tolist(), strict=True))


def _divergence_from(centres: np.ndarray, limits: Limits, method: Method) -> Callable[[int], np.ndarray]:
    if method.between is None:
        return lambda cluster: np.zeros(limits.n_clusters)
    return lambda cluster: method.between(centres[cluster : cluster + 1], centres)[0]


def _bytes(n_values: int, options: PlanOptions) -> int:
    return balance.partition_bytes(n_values, n_values, options.dimensions)


def _schema_of(frame: DataFrame) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema)


def _check_frame(name: str, frame: DataFrame, needed: set[str]) -> None:
    missing = sorted(needed - set(frame.columns))
    if missing:
        raise InputError(
            f"The frame {name} must have the columns {', '.join(sorted(needed))}. "
            f"Got {', '.join(frame.columns)}; missing: {', '.join(missing)}."
        )
