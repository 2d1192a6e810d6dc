"""How many rows a join makes, counted before any is made, and when that is refused.

A key that repeats in both tables joins each row with each: a thousand rows with a thousand make a
million. A join of more than `MAX_GROWTH` times the rows of your table, and more than `MAX_ROWS`, is
refused unless ``many_to_many`` allows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.joins.options import JoinOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAX_GROWTH = 10
"""Most rows that a join makes of each row of yours, on average."""

MAX_ROWS = 5_000
"""Joins of at most so many rows are never refused."""


def may_grow(options: JoinOptions) -> bool:
    """Return whether a join keeps no row one and was not allowed to multiply rows."""
    return options.aggregate is None and not options.many_to_many


def is_multiplied(n_rows: int, n_joined: int) -> bool:
    """Return whether a join makes more than `MAX_GROWTH` rows of each, on average."""
    return n_joined > MAX_GROWTH * n_rows


def is_large(n_rows: int, n_joined: int) -> bool:
    """Return whether a join makes more rows than are made without being asked for."""
    return is_multiplied(n_rows, n_joined) and n_joined > MAX_ROWS


def require_moderate_growth(
    texts: pa.StringArray, text: np.ndarray, counts: np.ndarray, table: str, options: JoinOptions
) -> None:
    """Raise InputError where a join would make far more rows than your table has.

    Parameters
    ----------
    text : int64 (r,)
        The position of that of each row of yours, -1 for none.
    counts : int64 (t,)
        Rows of the found table that each text is joined with.
    """
    if not may_grow(options):
        return
    own = np.bincount(text[text >= 0], minlength=len(texts))
    unmatched = len(text) - int(own[counts > 0].sum())
    joined = own * counts
    n_joined = int(joined.sum()) + (unmatched if options.how == "left" else 0)
    if is_large(len(text), n_joined):
        largest = int(joined.argmax())
        example = texts[largest].as_py(), int(own[largest]), int(counts[largest])
        raise _too_large(len(text), n_joined, table, *example)


def require_moderate_growth_on_spark(
    texts: DataFrame, counted: DataFrame, table: str, options: JoinOptions
) -> None:
    """Raise InputError as `require_moderate_growth` does.

    Notes
    -----
    Your table is counted by text only where a text is joined with more than `MAX_GROWTH` rows.
    """
    from pyspark.sql import functions as sql

    if not may_grow(options):
        return
    (name,), (key, number) = texts.columns, counted.columns
    in_driver = counted.toArrow()
    if (pc.max(in_driver[number]).as_py() or 0) <= MAX_GROWTH:
        return
    known = texts.sparkSession.createDataFrame(in_driver)
    own = texts.groupBy(name).agg(sql.count("*").alias("own"))
    pairs = own.join(known, sql.col(name).eqNullSafe(sql.col(key)), "left")
    unmatched = sql.col("own") if options.how == "left" else sql.lit(0)
    rows = sql.when(sql.col(number) > 0, sql.col("own") * sql.col(number)).otherwise(unmatched)
    best = sql.max_by(sql.struct(name, "own", number), rows)
    n_rows, n_joined, example = pairs.agg(sql.sum("own"), sql.sum(rows), best).first()
    if n_rows is not None and is_large(n_rows, n_joined):
        raise _too_large(n_rows, n_joined, table, *example)


def _too_large(
    n_rows: int, n_joined: int, table: str, text: str | None, own: int, their: int | None
) -> InputError:
    return InputError(
        f"The join would make {n_joined:,} rows of the {n_rows:,} of your table: "
        f"{text!r} is in {own:,} of them, each of which is joined with {their or 0:,} rows of "
        f"'{table}'. Keep each row of yours one by aggregate (--aggregate), join by a column that "
        "tells rows apart, or allow it by many_to_many (--many-to-many)."
    )
