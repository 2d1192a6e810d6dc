"""A column of a Spark DataFrame, collected as its distinct values with their counts.

Nothing of Spark is imported: its objects are known by their classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import QueryError
from pexeso.lake.frames.columns import column_texts
from pexeso.lake.typed.value_texts import in_utc

MAX_SPARK_VALUES = 1_000_000
"""Most distinct values of a column of Spark that are collected."""

_NESTED = ("array", "map", "struct", "variant")


def is_spark_frame(table: Any) -> bool:
    """Return whether something is a Spark DataFrame, of a session here or of Spark Connect."""
    return hasattr(type(table), "sparkSession")


def is_spark_column(values: Any) -> bool:
    """Return whether something is a column of Spark: an expression without any rows."""
    return any(
        base.__name__ == "Column" and base.__module__.startswith("pyspark.")
        for base in type(values).__mro__
    )


@dataclass(frozen=True)
class CountedValues:
    """The distinct values of a column.

    Attributes
    ----------
    counts : int64 (n,)
        Rows of each.
    """

    values: pa.StringArray
    counts: np.ndarray


def distinct_values(frame: Any, position: int) -> CountedValues:
    """Collect the distinct values of a column, and no other column.

    Memory: at most `MAX_SPARK_VALUES` values and counts.
    """
    name, kind = frame.columns[position], frame.schema[position].dataType.typeName()
    if kind in _NESTED:
        raise QueryError(
            f"A query column must be one column of values. The Spark column {name!r} holds a value "
            f"of the type {kind} in each row: take a field of it, or explode it."
        )
    # Named by position, so that no name needs quotes and none stands for two.
    column = frame.toDF(*(f"c{at}" for at in range(len(frame.columns)))).select(f"c{position}")
    counted = column.groupBy(f"c{position}").count().limit(MAX_SPARK_VALUES + 1).toArrow()
    if counted.num_rows > MAX_SPARK_VALUES:
        raise QueryError(
            f"The Spark column {name!r} has more than {MAX_SPARK_VALUES:,} distinct values, and no "
            "more are collected for a query. Search with a sample of it, such as "
            "frame.sample(0.01), or write it to a file."
        )
    texts = column_texts(in_utc(counted.column(0)))
    order = pc.sort_indices(texts)
    counts = counted.column(1).take(order).to_numpy().astype(np.int64)
    return CountedValues(texts.take(order), counts)
