"""Aggregation of the cells of several rows into one cell.

The ways are first, list, distinct and count, and the mean, sum, minimum and maximum of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.join.numbers import read_numbers


@dataclass(frozen=True)
class Groups:
    """Rows in groups, the rows of a group together.

    Attributes
    ----------
    starts : int64 (g,)
        The first row of each group.
    of_row : int64 (p,)
        The group of each row, from 0.
    """

    starts: np.ndarray
    of_row: np.ndarray

    @classmethod
    def of(cls, sorted_ids: np.ndarray) -> Groups:
        """Make groups of rows whose ids are in order."""
        if not len(sorted_ids):
            return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        is_start = np.concatenate([[True], np.diff(sorted_ids) != 0])
        return cls(np.flatnonzero(is_start), np.cumsum(is_start) - 1)

    def __len__(self) -> int:
        return len(self.starts)


def type_of(way: str) -> pa.DataType:
    """Return the result type of an aggregation: text, lists of text, whole numbers or float64."""
    return {
        "first": pa.string(),
        "list": pa.list_(pa.string()),
        "distinct": pa.list_(pa.string()),
        "count": pa.int64(),
    }.get(way, pa.float64())


def aggregated(cells: pa.StringArray, groups: Groups, way: str) -> pa.Array:
    """Aggregate the cells of each group.

    Parameters
    ----------
    cells : pyarrow.StringArray
        One a row of the groups, null where empty.
    way : str
        ``first``: the cell of the first row, also an empty one, so that all columns aggregated so
        come from the same row. ``list``: the cells that are not empty, in order; ``distinct``: each
        of them once; ``count``: their number. ``mean``, ``sum``, ``min``, ``max``: of the cells
        that hold numbers (`pexeso.join.numbers`); null where there are none.

    Returns
    -------
    pyarrow.Array
        Length g, of `type_of(way)`.
    """
    if way == "first":
        return cells.take(pa.array(groups.starts))
    if way in ("list", "distinct", "count"):
        return _listed(cells, groups, way)
    return _computed(cells, groups, way)


def differing(cells: pa.StringArray, groups: Groups) -> tuple[np.ndarray, pa.StringArray]:
    """Return the different cells of the groups that have more than one; empty cells do not count.

    Returns
    -------
    group : int64 (d,)
    cells : pyarrow.StringArray, d of them
        By group, in the order of the rows.
    """
    row = _first_rows(cells, groups)
    counts = np.bincount(groups.of_row[row], minlength=len(groups))
    row = row[counts[groups.of_row[row]] > 1]
    return groups.of_row[row], cells.take(pa.array(row))


def _first_rows(cells: pa.StringArray, groups: Groups) -> np.ndarray:
    """Return the rows whose cell is the first of its text in its group."""
    row = _present(cells)
    encoded = cells.take(pa.array(row)).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first = np.unique(
        groups.of_row[row] * max(1, len(encoded.dictionary)) + codes, return_index=True
    )
    return row[np.sort(first)]


def _present(cells: pa.StringArray) -> np.ndarray:
    return np.flatnonzero(cells.is_valid().to_numpy(zero_copy_only=False))


def _listed(cells: pa.StringArray, groups: Groups, way: str) -> pa.Array:
    row = _first_rows(cells, groups) if way == "distinct" else _present(cells)
    counts = np.bincount(groups.of_row[row], minlength=len(groups))
    if way == "count":
        return pa.array(counts, pa.int64())
    ends = np.cumsum(counts)
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), cells.take(pa.array(row)))


def _computed(cells: pa.StringArray, groups: Groups, way: str) -> pa.DoubleArray:
    numbers = read_numbers(cells)
    row = _present(numbers)
    values, group = numbers.to_numpy(zero_copy_only=False)[row], groups.of_row[row]
    counts = np.bincount(group, minlength=len(groups))
    if way in ("mean", "sum"):
        # Without any number numpy counts in whole ones.
        results = np.bincount(group, weights=values, minlength=len(groups)).astype(np.float64)
        if way == "mean":
            results = results / np.maximum(counts, 1)
    else:
        results = np.zeros(len(groups))
        of_some = Groups.of(group)
        if len(of_some):
            reduce = np.minimum.reduceat if way == "min" else np.maximum.reduceat
            results[group[of_some.starts]] = reduce(values, of_some.starts)
    return pa.array(results, mask=counts == 0)


def not_numbers(cells: pa.StringArray) -> tuple[pa.StringArray, np.ndarray]:
    """Return the cells that are neither empty nor numbers, with the count of each text.

    Each text is listed once.
    """
    left = cells.filter(pc.and_(cells.is_valid(), read_numbers(cells).is_null()))
    counts = left.value_counts()
    return counts.field("values"), counts.field("counts").to_numpy(zero_copy_only=False)
