"""Aggregation of the cells of several rows into one cell.

The ways are first, list, distinct and count, and the mean, sum, minimum and maximum of numbers.
Which numbers cells of text hold says `pexeso.lake.numbers`; signs of currencies and shares are left
out: ``$5`` is 5 and ``12 %`` is 12.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.numbers import numbers_in


@dataclass(frozen=True)
class Groups:
    """Rows in groups, those of one together: the first row of each, the group of each row."""

    starts: np.ndarray
    of_row: np.ndarray

    @classmethod
    def of(cls, sorted_ids: np.ndarray) -> Groups:
        if not len(sorted_ids):
            return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        is_start = np.concatenate([[True], np.diff(sorted_ids) != 0])
        return cls(np.flatnonzero(is_start), np.cumsum(is_start) - 1)

    def __len__(self) -> int:
        return len(self.starts)


def type_of(way: str) -> pa.DataType:
    return {
        "first": pa.string(),
        "list": pa.list_(pa.string()),
        "distinct": pa.list_(pa.string()),
        "count": pa.int64(),
    }.get(way, pa.float64())


def aggregated(cells: pa.StringArray, groups: Groups, way: str) -> pa.Array:
    """Aggregate the cells of each group, one a row and null where empty, as `type_of(way)`.

    ``first`` takes the cell of the first row, also an empty one, so that all columns aggregated so
    come from the same row. ``list``, ``distinct`` and ``count`` are of the cells that are not
    empty; ``mean``, ``sum``, ``min`` and ``max`` of those that hold numbers, null where there are
    none: they may be given as numbers, read from the whole column.
    """
    if way == "first":
        return cells.take(pa.array(groups.starts))
    if way in ("list", "distinct", "count"):
        return _listed(cells, groups, way)
    return _computed(cells, groups, way)


def differing(cells: pa.StringArray, groups: Groups) -> tuple[np.ndarray, pa.StringArray]:
    """Return the different cells of the groups with several; empty cells do not count."""
    row = _first_rows(cells, groups)
    counts = np.bincount(groups.of_row[row], minlength=len(groups))
    row = row[counts[groups.of_row[row]] > 1]
    return groups.of_row[row], cells.take(pa.array(row))


def _first_rows(cells: pa.StringArray, groups: Groups) -> np.ndarray:
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
    numbers = cells if pa.types.is_floating(cells.type) else read_numbers(cells)
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


def doubtful_numbers(cells: pa.StringArray) -> tuple[pa.Array, pa.Array]:
    """Return the distinct cells that are neither empty nor numbers, and amounts that are unlike.

    Those are structs of ``values`` and ``counts``; these the first cells with signs of different
    currencies or shares, where there are several.
    """
    is_number = read_numbers(cells).is_valid()
    others = cells.filter(pc.and_(cells.is_valid(), pc.invert(is_number))).value_counts()
    amounts = cells.filter(is_number).unique()
    signs = _signs(amounts)
    known = pc.unique(signs.filter(pc.not_equal(signs, "")))
    return others, amounts.take(pc.index_in(known, signs))[: len(known) if len(known) > 1 else 0]


def read_numbers(cells: pa.StringArray) -> pa.DoubleArray:
    """Read the numbers in cells, as the rule of this module says."""
    encoded = cells.dictionary_encode()
    return _read(encoded.dictionary.cast(pa.string())).take(encoded.indices)


# Signs of currencies and of shares, of which two different ones tell amounts apart.
_NO_SIGN = r"[^\p{Sc}%‰‱]+"


def _signs(amounts: pa.StringArray) -> pa.StringArray:
    return pc.replace_substring_regex(amounts, _NO_SIGN, "")


def are_unlike(ours: pa.StringArray, theirs: pa.StringArray) -> pa.BooleanArray:
    """Return for pairs of numbers which differ in their sign, or have other currencies."""
    one, other = read_numbers(ours), read_numbers(theirs)
    negated = pc.and_(pc.equal(one, pc.negate(other)), pc.not_equal(one, 0))
    one, other = _signs(ours), _signs(theirs)
    known = pc.and_(pc.not_equal(one, ""), pc.not_equal(other, ""))
    converted = pc.and_(known, pc.not_equal(one, other))
    return pc.or_(pc.fill_null(negated, False), converted)


def _read(cells: pa.StringArray) -> pa.DoubleArray:
    _, plain, is_minus = numbers_in(pc.utf8_trim_whitespace(cells))
    numbers = pc.cast(plain, pa.float64())
    numbers = pc.if_else(is_minus, pc.negate(numbers), numbers)
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))
