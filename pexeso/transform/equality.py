"""Joins by equal values, before any program is learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.learning.chance import bound_on_luck, hits_by_chance
from pexeso.transform.texts import TextTable

_MAX_LUCK = 1e-6
"""Bound on the probability that numbers have as many in common by chance."""


def by_equality(
    reading: TextTable, keyed: TextTable, candidates: Sequence[int]
) -> tuple[np.ndarray, int, int]:
    """Join rows by the columns that have most values in common.

    Numbers equal each other by chance: of several columns two of numbers count only where they
    have more in common than their digits explain.
    """
    best = np.full(reading.n_rows, -1, np.int32), 0, candidates[0] if candidates else 0
    max_hits = 0
    may_be_chance = len(reading.columns) > 1 or len(keyed.columns) > 1
    for key_column in candidates:
        values = keyed.columns[key_column].values
        for number, column in enumerate(reading.columns):
            numbers = places(column.values, values)
            hits = int((numbers >= 0).sum())
            both_numbers = column.is_number and keyed.columns[key_column].is_number
            if hits > max_hits and not (
                may_be_chance and both_numbers and _is_chance(hits, column.values, values)
            ):
                max_hits = hits
                at = np.where(column.codes >= 0, numbers[column.codes], -1)
                best = at.astype(np.int32), number, key_column
    return best


def _is_chance(hits: int, texts: pa.Array, keys: pa.Array) -> bool:
    """Return whether numbers drawn from either column would hit as many of the other's."""
    expected = (hits_by_chance(*sides) for sides in ((texts, keys), (keys, texts)))
    return all(bound_on_luck(hits, number) > _MAX_LUCK for number in expected)


def places(texts: pa.Array, values: pa.Array) -> np.ndarray:
    """Return the number of each text among distinct values, or -1."""
    numbers = pc.index_in(texts.cast(values.type), values)
    return pc.fill_null(numbers, -1).to_numpy(zero_copy_only=False)
