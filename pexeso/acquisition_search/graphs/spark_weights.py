"""Joins weighed by Spark: the counts of `pexeso.acquisition.graph.building.weighed`.

For each table and set of columns the rows of each key are counted; the counts of both tables of a
join are outer-joined by key, and each key is left with one number, the rows that it has in the
outer join of the tables. Entropies are sums over these, so that neither join is ever formed.

A task holds the columns of one table that joins use; the driver holds one row for each join. Keys
are compared whole, by the tokens of all their columns.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pexeso.acquisition.graph.joins import JoinSet
from pexeso.acquisition.graph.tables import MarketTable
from pexeso.acquisition.measures.informativeness import JoinInformativeness
from pexeso.acquisition_search.graphs.stored_graph import JoinOf, Weigh
from pexeso.acquisition_search.market.lake_rows import LakeRows
from pexeso.build.lake_source.source import spark_schema
from pexeso.lake.tokens import tokens_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS_PER_CORE = 4

_COUNTS = pa.schema([("side", pa.int64()), ("key", pa.list_(pa.string())), ("n", pa.int64())])
_SIDES = pa.schema([("join", pa.int64()), ("side", pa.int64())])


def weighed_by_spark(spark: SparkSession, rows: LakeRows) -> Weigh:
    """Return what weighs joins of tables of a lake by Spark.

    Parameters
    ----------
    spark : SparkSession
    rows : LakeRows
        Reads the tables, of files that all tasks see.

    Returns
    -------
    callable
        For `pexeso.acquisition_search.graphs.stored_graph.updated_graph`.
    """

    def weigh(tables: Mapping[str, MarketTable], joins: list[JoinOf]) -> Iterable[JoinSet]:
        if not joins:
            return []
        sides: dict[tuple[str, tuple[str, ...]], int] = {}
        ends = []
        for left, right, chosen in joins:
            left_columns, right_columns = (tuple(pair[end] for pair in chosen) for end in (0, 1))
            ends.append(
                [
                    sides.setdefault(side, len(sides))
                    for side in ((left, left_columns), (right, right_columns))
                ]
            )
        counts = _counts(spark, rows, tables, sides).persist()
        try:
            sums = _weighed(spark, counts, ends).toArrow().to_pylist()
        finally:
            counts.unpersist()
        by_join = {row["join"]: row for row in sums}
        return [_join_set(chosen, by_join.get(at)) for at, (_, _, chosen) in enumerate(joins)]

    return weigh


def key_counts(rows: pa.Table, columns: list[str]) -> tuple[pa.Array, pa.Array, int]:
    """Return the distinct keys of a table, how many rows have each, and how many have none.

    Parameters
    ----------
    rows : pyarrow.Table
    columns : list of str
        Of the key.

    Returns
    -------
    (list_(string) array (k,), int64 array (k,), int)

    Examples
    --------
    >>> rows = pa.table({"a": ["x", "x", None], "b": [1, 1, 2]})
    >>> keys, counts, missing = key_counts(rows, ["a", "b"])
    >>> keys.to_pylist(), counts.to_pylist(), missing
    ([['x', '1']], [2], 1)
    """
    names = [str(at) for at in range(len(columns))]
    tokens = pa.table(
        [tokens_of(rows[column]).cast(pa.string()) for column in columns], names=names
    )
    whole = tokens.drop_null()
    counted = whole.group_by(names).aggregate([([], "count_all")]).combine_chunks()
    n = counted.num_rows
    chunks = [chunk for name in names for chunk in counted[name].chunks]
    values = pa.concat_arrays([pa.array([], pa.string()), *chunks])
    # Of all columns one after the other, taken row by row.
    order = (np.arange(n)[:, None] + n * np.arange(len(names))).reshape(-1)
    offsets = pa.array(np.arange(n + 1) * len(names), pa.int32())
    keys = pa.ListArray.from_arrays(offsets, values.take(pa.array(order, pa.int64())))
    return keys, counted["count_all"].combine_chunks(), rows.num_rows - whole.num_rows


def _counts(
    spark: SparkSession,
    rows: LakeRows,
    tables: Mapping[str, MarketTable],
    sides: Mapping[tuple[str, tuple[str, ...]], int],
) -> DataFrame:
    """Count the keys of each side: ``side, key, n``, where the key is null for rows without one."""
    of_table: dict[str, list[tuple[int, tuple[str, ...]]]] = defaultdict(list)
    for (table, columns), side in sides.items():
        of_table[table].append((side, columns))
    units = [
        json.dumps([table, tables[table].n_rows, chosen])
        for table, chosen in sorted(of_table.items())
    ]
    n_tasks = min(len(units), TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    frame = spark.createDataFrame(pa.table({"unit": pa.array(units, pa.string())}))
    task = partial(_count, rows=rows)
    return frame.repartition(n_tasks).mapInArrow(task, spark_schema(_COUNTS))


def _count(batches: Iterator[pa.RecordBatch], *, rows: LakeRows) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for unit in batch.column(0).to_pylist():
            table, n_rows, sides = json.loads(unit)
            needed_columns = sorted({column for _, columns in sides for column in columns})
            read = rows.read(table, n_rows, needed_columns, ())
            for side, columns in sides:
                keys, counts, missing = key_counts(read, columns)
                number = pa.array(np.full(len(keys), side), pa.int64())
                yield pa.record_batch([number, keys, counts], schema=_COUNTS)
                if missing:
                    row = {"side": side, "key": None, "n": missing}
                    yield pa.RecordBatch.from_pylist([row], schema=_COUNTS)


def _weighed(spark: SparkSession, counts: DataFrame, ends: list[list[int]]) -> DataFrame:
    """Return one row for each join that has rows: sums over the keys of both sides."""
    from pyspark.sql import functions as f

    numbers = pa.array(np.arange(len(ends)))
    of_end = [
        spark.createDataFrame(
            pa.table([numbers, pa.array([end[at] for end in ends], pa.int64())], schema=_SIDES)
        )
        for at in (0, 1)
    ]
    keyed = counts.where(f.col("key").isNotNull())
    left, right = (
        keyed.join(sides, "side").select("join", "key", f.col("n").cast("double").alias(name))
        for sides, name in zip(of_end, ("n_left", "n_right"), strict=True)
    )
    # Keys that have as many rows in the outer join count alike.
    weights = (
        left.join(right, ["join", "key"], "full_outer")
        .na.fill(0.0, ["n_left", "n_right"])
        .withColumn(
            "part",
            f.when((f.col("n_left") > 0) & (f.col("n_right") > 0), "matched")
            .when(f.col("n_left") > 0, "left_only")
            .otherwise("right_only"),
        )
        .withColumn(
            "weight",
            f.when(f.col("part") == "matched", f.col("n_left") * f.col("n_right")).otherwise(
                f.col("n_left") + f.col("n_right")
            ),
        )
    )
    alike = weights.groupBy("join", "part", "weight").agg(
        f.count("*").alias("n_keys"),
        f.max("n_left").alias("left_most"),
        f.max("n_right").alias("right_most"),
    )

    def of_part(name: str, column: Any) -> Any:
        return f.sum(f.when(f.col("part") == name, column).otherwise(f.lit(0.0)))

    rows = f.col("weight") * f.col("n_keys")
    matched = f.col("part") == "matched"
    totals = alike.groupBy("join").agg(
        *(of_part(name, rows).alias(name) for name in ("matched", "left_only", "right_only")),
        f.sum(f.when(matched, f.col("n_keys")).otherwise(0)).alias("matched_keys"),
        f.max(f.when(matched, f.col("left_most")).otherwise(0.0)).alias("most_left"),
        f.max(f.when(matched, f.col("right_most")).otherwise(0.0)).alias("most_right"),
    )
    whole = f.col("matched") + f.col("left_only") + f.col("right_only")
    both = alike.join(totals, "join")
    information = both.groupBy("join").agg(
        f.sum(rows * f.log2(whole / f.col("weight"))).alias("whole"),
        *(
            of_part(name, rows * f.log2(f.col(name) / f.col("weight"))).alias(f"in_{name}")
            for name in ("left_only", "right_only")
        ),
    )
    missing = counts.where(f.col("key").isNull())
    nulls = missing.join(of_end[0].unionByName(of_end[1]), "side")
    nulls = nulls.groupBy("join").agg(f.sum("n").alias("null_rows"))
    return totals.join(information, "join", "full_outer").join(nulls, "join", "full_outer")


def _join_set(pairs: tuple[tuple[str, str], ...], row: Mapping[str, Any] | None) -> JoinSet:
    figures = defaultdict(float, {name: figure or 0 for name, figure in (row or {}).items()})
    sums = [float(figures[name]) for name in ("matched", "left_only", "right_only")]
    if not math.fsum(sums):
        value = math.nan
    elif figures["whole"] == 0:
        value = 0.0 if sums[0] else 1.0
    else:
        value = min((figures["in_left_only"] + figures["in_right_only"]) / figures["whole"], 1.0)
    informativeness = JoinInformativeness(value, *sums, int(figures["null_rows"]))
    return JoinSet(
        tuple(left for left, _ in pairs),
        tuple(right for _, right in pairs),
        informativeness,
        *(int(figures[name]) for name in ("matched_keys", "most_left", "most_right")),
    )
