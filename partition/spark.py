"""The partitioner over a lake: frames in, plan out.

The only module here that uses Spark, and only inside functions.

Two frames come in: ``postings(column_id: long, value: string)``, one row for each distinct
normalised value of a column, and ``vectors(value: string, vector: array<float>)``, one row for each
distinct value.

Nothing is collected in proportion to the lake. The driver holds a sample of the vectors (for the
codebook), a sample of the columns (for the first centres), the centres and one sum a centre (at
most :data:`partition.balance.MAX_CLUSTERS` x regions numbers), a sum for each task and cluster, and
a list of pieces, a few for each partition. A task holds one slice of a batch and one table of
centres. Frames used more than once are persisted, and spill to disk where memory ends.

Every step spreads over all machines, also the running sum that cuts clusters into pieces: the
columns are sorted by ranges, each task adds up its own range, and goes on from the sum of those
before (:mod:`partition.running`).

The same frames and options give the same plan, whatever the number of machines and the order of
rows: samples are taken by hash, sums are kept in fixed point, and vectors are compared as whole
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from partition import balance, batches, running
from partition.balance import Limits, Pieces, fixed_limits, place, size_limits
from partition.batches import features_of, matrix_of
from partition.clustering import Partials, iterate, iterate_in_memory, seed_centres
from partition.codebook import MAX_CODES, Codebook, fit_codebook
from partition.divergence import jensen_shannon
from pexeso.errors import InputError, LakeError, SparkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CODEBOOK_SAMPLE = 40_000
"""Vectors that the codebook is fitted on: more than 150 for each of 256 centroids."""

CODEBOOK_SAMPLE_BYTES = 256 << 20
"""Most bytes of these on the driver: above 1,677 dimensions there are fewer of them."""

SEEDING_COLUMNS = 10_000
"""Columns that the first centres are drawn from, or ten for each centre where that is more.

A lake of no more columns is clustered on the driver, which holds them anyway; the result is the
same.
"""

PIECE_KEY = ["cluster", "own_column", "size_step", "column_step"]


def plan_partitions(
    postings: DataFrame,
    vectors: DataFrame,
    *,
    dimensions: int,
    entry_bytes: int = 4,
    n_partitions: int | None = None,
    partition_bytes: int | None = None,
    min_partitions: int = 1,
    n_codes: int = MAX_CODES,
    seed: int = 0,
) -> tuple[DataFrame, int]:
    """Divide the columns of a lake into partitions of similar content and bounded size.

    Parameters
    ----------
    vectors : DataFrame
        ``value: string, vector: array<float>``, each value once. Zero vectors, and values that are
        missing here, count as values without meaning.
    n_partitions : int or None
        So many partitions, or one a column where there are fewer columns. Exactly one of this and
        `partition_bytes` is given.
    partition_bytes : int or None
        No partition larger than so many bytes, by the estimate of
        :func:`partition.balance.partition_bytes`.
    min_partitions : int, default 1
        With `partition_bytes`: so many clusters at least are looked for.
    n_codes : int, default 256
        Regions of the histograms, 1 to 256.

    Returns
    -------
    n_partitions : int
        How many there are.
    """
    if (n_partitions is None) == (partition_bytes is None):
        raise InputError(
            "Exactly one of n_partitions and partition_bytes must be given. "
            f"Got n_partitions={n_partitions!r} and partition_bytes={partition_bytes!r}."
        )
    from pyspark.sql import functions as sql

    _check_frame("postings", postings, {"column_id", "value"})
    _check_frame("vectors", vectors, {"value", "vector"})
    sizes = _column_sizes(postings)
    n_columns, n_values = _totals(sizes)
    limits = limits_of(
        n_columns,
        n_values,
        dimensions,
        n_partitions,
        partition_bytes,
        entry_bytes,
        min_partitions=min_partitions,
    )
    if limits.n_bins == 1:
        return sizes.select("column_id", sql.lit(0).cast("int").alias("partition")).persist(), 1
    sample = _sample_vectors(vectors, dimensions, seed)
    features = _features(
        postings, vectors, fit_codebook(sample, n_codes=n_codes, seed=seed), dimensions, seed
    )
    features.frame.persist()
    try:
        centres = _centres(features, n_columns, limits, seed)
        outwards = _outwards(_assign(features, centres, dimensions, entry_bytes), limits).persist()
        try:
            return _place(_cut(outwards, limits), centres, limits, n_columns)
        finally:
            outwards.unpersist()
    finally:
        features.frame.unpersist()


def limits_of(
    n_columns: int,
    n_values: int,
    dimensions: int,
    n_partitions: int | None = None,
    partition_bytes: int | None = None,
    entry_bytes: int = 4,
    *,
    min_partitions: int = 1,
) -> Limits:
    """Return how many partitions `plan_partitions` begins with, and how large they may be.

    With one there is nothing to plan: it gets every column.

    Parameters
    ----------
    n_columns : int
    n_values : int
        Of all columns together.
    dimensions, n_partitions, partition_bytes, entry_bytes, min_partitions
        See `plan_partitions`; `partition_bytes` counts where `n_partitions` is None.
    """
    total_bytes = balance.partition_bytes(n_values, n_values, dimensions, entry_bytes)
    if n_partitions is None:
        return size_limits(partition_bytes, n_columns, total_bytes, min_partitions=min_partitions)
    return fixed_limits(n_partitions, n_columns, total_bytes)


def column_histograms(
    postings: DataFrame, vectors: DataFrame, codebook: Codebook, dimensions: int
) -> DataFrame:
    """Count every column's values by region of the codebook.

    Returns
    -------
    DataFrame
        ``column_id: long, n_values: long, codes: array<int>, counts: array<long>``, one row a
        column, at most ``codebook.n_regions`` codes in a row, in rising order.
    """
    from pyspark.sql import functions as sql

    shared = vectors.sparkSession.sparkContext.broadcast(codebook)

    def encode(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches.encode_values(parts, shared.value, dimensions)

    codes = vectors.select("value", "vector").mapInArrow(encode, "value string, code int")
    code = sql.coalesce("code", sql.lit(codebook.no_meaning)).alias("code")
    counted = (
        postings.join(codes, "value", "left")
        .groupBy("column_id", code)
        .agg(sql.count("*").alias("n"))
    )
    bins = sql.sort_array(sql.collect_list(sql.struct("code", "n"))).alias("bins")
    rows = counted.groupBy("column_id").agg(sql.sum("n").alias("n_values"), bins)
    return rows.select(
        "column_id",
        "n_values",
        sql.col("bins.code").alias("codes"),
        sql.col("bins.n").alias("counts"),
    )


def _column_sizes(postings: DataFrame) -> DataFrame:
    from pyspark.sql import functions as sql

    return postings.groupBy("column_id").agg(sql.count("*").alias("n_values"))


def _totals(sizes: DataFrame) -> tuple[int, int]:
    from pyspark.sql import functions as sql

    n_columns, n_values = sizes.agg(sql.count("*"), sql.sum("n_values")).first()
    if not n_columns:
        raise LakeError(
            "There is no column with a value, so there is nothing to divide into partitions."
        )
    return n_columns, n_values


@dataclass(frozen=True)
class _Features:
    """One row a column: its histogram, ``n_values``, and the hash ``tie`` that orders equals."""

    frame: DataFrame
    width: int

    def matrix(self, rows: pa.Table) -> np.ndarray:
        """Read the features of the few columns that were brought to the driver."""
        parts = [features_of(part, self.width) for part in rows.to_batches()]
        return np.vstack([np.empty((0, self.width)), *parts])

    def with_centres(
        self, function: Callable[..., Any], schema: str, centres: np.ndarray
    ) -> DataFrame:
        """Apply a function of :mod:`partition.batches` to all columns, with centres broadcast."""
        shared = self.frame.sparkSession.sparkContext.broadcast(centres)

        def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return function(parts, shared.value)

        return self.frame.mapInArrow(run, schema)


def _features(
    postings: DataFrame, vectors: DataFrame, codebook: Codebook, dimensions: int, seed: int
) -> _Features:
    frame = column_histograms(postings, vectors, codebook, dimensions)
    add_ties = partial(batches.add_ties, seed=seed)
    return _Features(
        frame.mapInArrow(add_ties, f"{_schema_of(frame)}, tie bigint"), codebook.n_regions
    )


def _sample_vectors(vectors: DataFrame, dimensions: int, seed: int) -> np.ndarray:
    """At most CODEBOOK_SAMPLE vectors, those of least hash."""
    from pyspark.sql import functions as sql

    n_wanted = min(CODEBOOK_SAMPLE, CODEBOOK_SAMPLE_BYTES // (4 * dimensions))
    tie = sql.shiftrightunsigned(sql.xxhash64("value", sql.lit(seed).cast("long")), 1)
    sample = _least_ties(vectors.withColumn("tie", tie), vectors.count(), n_wanted).select("vector")
    parts = [matrix_of(part.column("vector"), dimensions) for part in sample.toArrow().to_batches()]
    return np.vstack([np.empty((0, dimensions), dtype=np.float32), *parts])


def _least_ties(frame: DataFrame, n_rows: int, n_wanted: int) -> DataFrame:
    """Rows of least ``tie``, a hash in [0, 2**63).

    Each task of a sort with a limit sends all it may need. The filter lets hardly more rows than
    wanted through, so that the driver does not receive the limit once a task; the margin makes a
    shortfall a matter of ten standard deviations.
    """
    from pyspark.sql import functions as sql

    expected = n_wanted + 10 * n_wanted**0.5 + 100
    if n_rows > expected:
        frame = frame.filter(sql.col("tie") < int(expected / n_rows * 2.0**63))
    return frame.orderBy("tie").limit(n_wanted)


def _centres(features: _Features, n_columns: int, limits: Limits, seed: int) -> np.ndarray:
    """Compute the centres by k-means.

    Every pass is a job over the features that returns only the sums of each cluster.
    """
    from pyspark.sql import functions as sql

    def measure(centres: np.ndarray) -> Partials:
        rows = features.with_centres(
            batches.partials_of, "cluster int, slot int, total long", centres
        )
        table = rows.groupBy("cluster", "slot").agg(sql.sum("total").alias("total")).toArrow()
        return batches.partials_from(table, *centres.shape)

    def farthest(centres: np.ndarray, n: int) -> np.ndarray:
        schema = f"{_schema_of(features.frame)}, divergence double"
        rows = features.with_centres(batches.add_divergences, schema, centres)
        return features.matrix(rows.orderBy(sql.desc("divergence"), "tie").limit(n).toArrow())

    n_sample = max(SEEDING_COLUMNS, 10 * limits.n_clusters)
    rows = _least_ties(features.frame, n_columns, n_sample).toArrow().sort_by("column_id")
    sample = features.matrix(rows)
    first = seed_centres(sample, limits.n_clusters, seed=seed)
    if n_columns <= n_sample:
        # The sample is the lake: the same passes over the same columns, without a job for each.
        ties = rows["tie"].to_numpy()
        return iterate_in_memory(sample, ties, first)
    return iterate(measure, farthest, first)


def _assign(
    features: _Features, centres: np.ndarray, dimensions: int, entry_bytes: int
) -> DataFrame:
    schema = "column_id long, n_bytes long, tie long, cluster int, divergence double"
    return features.with_centres(
        partial(batches.assign_columns, dimensions=dimensions, entry_bytes=entry_bytes),
        schema,
        centres,
    )


def _outwards(assigned: DataFrame, limits: Limits) -> DataFrame:
    """Sort the columns of each cluster outwards from its centre, with large ones apart.

    There is one order over all tasks.

    Persist it before it is used: a second computation might divide the order at other places.
    """
    from pyspark.sql import functions as sql

    is_large = (sql.col("n_bytes") > limits.piece_bytes).alias("own")
    ranges = (
        assigned.select("*", is_large)
        .repartitionByRange(*running.ORDER)
        .sortWithinPartitions(*running.ORDER)
    )
    return ranges.withColumn("part", sql.spark_partition_id())


def _cut(outwards: DataFrame, limits: Limits) -> DataFrame:
    """Add the key of its piece to every column.

    This is what :func:`partition.balance.cut` does for columns held in memory.
    """
    sums = outwards.mapInArrow(
        running.part_sums, "part int, cluster int, own boolean, n_bytes long, n_columns long"
    )
    totals = sums.groupBy("part", "cluster", "own").sum("n_bytes", "n_columns").toArrow()
    before = running.shares_before(
        totals.rename_columns(running.PART_SUMS.names).cast(running.PART_SUMS)
    )
    shared = outwards.sparkSession.sparkContext.broadcast(before)

    def key(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return running.key_pieces(parts, shared.value, limits)

    return outwards.mapInArrow(key, ", ".join(f"{name} long" for name in running.KEYED.names))


def _place(
    cut: DataFrame, centres: np.ndarray, limits: Limits, n_columns: int
) -> tuple[DataFrame, int]:
    """Choose a partition for each piece on the driver, and send the choice back to the columns."""
    from pyspark.sql import functions as sql

    totals = [sql.sum("n_bytes").alias("n_bytes"), sql.count("*").alias("n_columns")]
    table = (
        cut.groupBy(*PIECE_KEY)
        .agg(*totals)
        .toArrow()
        .sort_by([(name, "ascending") for name in PIECE_KEY])
    )
    pieces = Pieces(*(table[name].to_numpy() for name in (*PIECE_KEY, "n_bytes", "n_columns")))
    partitions = place(
        pieces, limits, lambda cluster: jensen_shannon(centres[cluster : cluster + 1], centres)[0]
    )
    choice = table.select(PIECE_KEY).append_column(
        "partition", pa.array(partitions.astype(np.int32))
    )
    chosen = cut.sparkSession.createDataFrame(choice)
    plan = cut.join(sql.broadcast(chosen), PIECE_KEY).select("column_id", "partition").persist()
    # Filled now, while the frames that it comes from are persisted.
    n_placed = plan.count()
    if n_placed != n_columns:
        raise SparkError(
            f"Of {n_columns} columns {n_placed} were given a partition: a part of the plan was "
            "lost and computed again with other "
            "rounding. Run the build again."
        )
    return plan, int(partitions.max()) + 1


def _schema_of(frame: DataFrame) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema)


def _check_frame(name: str, frame: DataFrame, needed: set[str]) -> None:
    missing = sorted(needed - set(frame.columns))
    if missing:
        raise InputError(
            f"The frame {name} must have the columns {', '.join(sorted(needed))}. "
            f"Got {', '.join(frame.columns)}; missing: {', '.join(missing)}."
        )
