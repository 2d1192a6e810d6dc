"""Joins by equal values, before any program is learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.texts import TextTable


def by_equality(
    reading: TextTable, keyed: TextTable, candidates: Sequence[int]
) -> tuple[np.ndarray, int, int]:
    """Join rows by the columns that have most values in common.

    Columns of digits equal each other by chance, and count where a table has no others.
    """
    best = np.full(reading.n_rows, -1, np.int32), 0, candidates[0] if candidates else 0
    max_hits = 0
    may_be_chance = all(
        not all(column.is_digits for column in table.columns) for table in (reading, keyed)
    )
    for key_column in candidates:
        values = keyed.columns[key_column].values
        for number, column in enumerate(reading.columns):
            if may_be_chance and column.is_digits and keyed.columns[key_column].is_digits:
                continue
            numbers = places(column.values, values)
            hits = int((numbers >= 0).sum())
            if hits > max_hits:
                max_hits = hits
                at = np.where(column.codes >= 0, numbers[column.codes], -1)
                best = at.astype(np.int32), number, key_column
    return best


def places(texts: pa.Array, values: pa.Array) -> np.ndarray:
    """Return the number of each text among distinct values, or -1."""
    numbers = pc.index_in(texts.cast(values.type), values)
    return pc.fill_null(numbers, -1).to_numpy(zero_copy_only=False)
