"""A bounded sample of an index's columns with their vectors, to learn thresholds from.

Samples are drawn by hashes of texts: of a value, and of a column's table and label. The row that a
value is stored in plays no part, since rows are laid out along axes whose last bits and signs are
those of the processor; nor does a column's id, so that an updated index gives the advice of a fresh
one. Distances come from whole numbers, exact in any order of the sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from embed.vocabulary import hash_strings
from pexeso.build.parts.encode import known_vectors
from pexeso.engine.vector_space import Vectors, VectorSpace
from pexeso.runtime.mixing import mixed
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.store.texts import take_texts

LEAST_VALUES = 5
"""A column with fewer distinct values says too little about how far its values lie apart."""

MOST_VALUES = 1 << 15
"""Values of all sampled columns together: 32 MiB of vectors at 256 dimensions."""

MOST_OF_A_COLUMN = 1 << 12
"""A longer column is cut to so many of its values, those of the smallest hashes."""

COLUMNS_AT_ONCE = 1 << 16
"""Columns whose names are hashed at a time: some megabytes."""

ROWS_AT_ONCE = 1 << 8
"""Rows compared with all sampled values at a time: 64 MiB of distances."""

SEED = 0


@dataclass(frozen=True)
class SampledColumns:
    """Some columns of an index.

    Attributes
    ----------
    vectors : Vectors
        The values of all columns, one column after the other; within a column in the order of
        `value_order`. None is zero.
    offsets : int64 (c + 1,)
        Column i has the rows from ``offsets[i]`` to ``offsets[i + 1]``.
    ids : int64 (c,)
        Numbers of the columns in the index.
    n_cut : int
        Columns that had more than `MOST_OF_A_COLUMN` values.
    n_usable : int
        An estimate of how many columns the index has that could have been drawn.
    """

    vectors: Vectors
    offsets: np.ndarray
    ids: np.ndarray
    space: VectorSpace
    n_cut: int
    n_usable: int

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def comparable(self) -> Vectors:
        """The vectors in the form in which they are compared."""
        return self.space.comparable(self.vectors)

    @property
    def sizes(self) -> np.ndarray:
        """Values of each column, int64 (c,)."""
        return np.diff(self.offsets)

    def column(self, position: int) -> Vectors:
        """Return the vectors of a column."""
        return self.vectors[self.offsets[position] : self.offsets[position + 1]]

    @property
    def share(self) -> float:
        """The share of the index's usable columns that is in the sample, in (0, 1]."""
        return min(1.0, len(self) / max(self.n_usable, 1))


def sample_columns(scan: PartitionLoader, seed: int = SEED) -> SampledColumns:
    """Draw columns of an index with equal chances until they have `MOST_VALUES` values.

    Returns
    -------
    SampledColumns
        Empty where no column has `LEAST_VALUES` values.
    """
    every = _columns_by_hash(scan, seed)
    parts, sizes, ids, n_seen, n_cut, n_values = [], [], [], 0, 0, 0
    for number, position, column_id in every[:MOST_VALUES].tolist():
        n_seen += 1
        rows = _rows_of(scan, number, position)
        if len(rows) < LEAST_VALUES:
            continue
        is_cut = len(rows) > MOST_OF_A_COLUMN
        if n_values + min(len(rows), MOST_OF_A_COLUMN) > MOST_VALUES:
            break
        vectors = vectors_by_hash(scan, number, rows, MOST_OF_A_COLUMN, seed)
        if len(vectors) < LEAST_VALUES:
            continue
        parts.append(vectors)
        sizes.append(len(vectors))
        ids.append(column_id)
        n_values, n_cut = n_values + len(vectors), n_cut + is_cut
    return _put_together(
        scan, parts, sizes, ids, n_cut, round(len(ids) / max(n_seen, 1) * len(every))
    )


def value_order(values: pa.Array, seed: int = SEED) -> np.ndarray:
    """Return the order of values by a hash of their texts, equal hashes by the texts: int64 (n,).

    Its beginning is a sample of them.
    """
    texts = values.cast(pa.large_string())
    hashes = _mixed_hashes(texts, seed)
    if len(np.unique(hashes)) == len(hashes):
        return np.argsort(hashes, kind="stable")
    return np.lexsort((np.array(texts.to_pylist(), object), hashes))


def vectors_by_hash(
    scan: PartitionLoader, number: int, rows: np.ndarray, limit: int | None = None, seed: int = SEED
) -> Vectors:
    """Return the vectors of stored rows in the order of `value_order`, at most `limit` rows.

    Zero vectors among these rows are left out.
    """
    order = value_order(take_texts(scan.store.texts(number, "values"), rows), seed)[:limit]
    vectors = scan.space.stored(scan.mapped(number), rows[order])
    return vectors[known_vectors(vectors)]


def nearest_distances(space: VectorSpace, left: Vectors, right: Vectors) -> np.ndarray:
    """Return the distance of each vector to the nearest vector of another set.

    The result is float32 (n,). It is infinite if the other set is empty.
    """
    nearest, left = np.full(len(left), np.inf, np.float32), space.comparable(left)
    for right_start in range(0, len(right), MOST_VALUES):
        others = space.comparable(right[right_start : right_start + MOST_VALUES])
        for left_start in range(0, len(left), ROWS_AT_ONCE):
            some = slice(left_start, left_start + ROWS_AT_ONCE)
            nearest[some] = np.minimum(nearest[some], space.distances(left[some], others).min(1))
    return nearest


def _columns_by_hash(scan: PartitionLoader, seed: int) -> np.ndarray:
    """Return the columns that are not deleted, in the order of a hash of their names.

    The result is int64 (columns, 3): partition, position and id of each column.
    """
    parts, hashes = [np.zeros((0, 3), np.int64)], [np.zeros(0, np.uint64)]
    for number in range(scan.store.n_partitions):
        ids, deleted = (
            np.asarray(scan.store.array(number, "column_ids")),
            scan.store.deleted_mask(number),
        )
        positions = np.arange(len(ids)) if deleted is None else np.flatnonzero(~deleted)
        tables, labels = (scan.store.texts(number, name) for name in ("tables", "labels"))
        for begin in range(0, len(positions), COLUMNS_AT_ONCE):
            rows = positions[begin : begin + COLUMNS_AT_ONCE]
            parts.append(np.stack([np.full(len(rows), number), rows, ids[rows]], 1))
            hashes.append(
                _mixed_hashes(
                    take_texts(labels, rows), _mixed_hashes(take_texts(tables, rows), seed)
                )
            )
    every = np.concatenate(parts)
    return every[np.lexsort((every[:, 2], np.concatenate(hashes)))]


def _mixed_hashes(texts: pa.Array, seed: int | np.ndarray) -> np.ndarray:
    """Hash texts, each with a seed of its own or all with one: uint64 (n,)."""
    return mixed(
        hash_strings(texts.cast(pa.large_string()))
        ^ mixed(np.atleast_1d(np.asarray(seed, np.uint64)))
    )


def _rows_of(scan: PartitionLoader, number: int, position: int) -> np.ndarray:
    return scan.mapped(number).column_lists[position]


def _put_together(
    scan: PartitionLoader,
    parts: list[Vectors],
    sizes: list[int],
    ids: list[int],
    n_cut: int,
    n_usable: int,
) -> SampledColumns:
    vectors = scan.space.concatenate(parts)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return SampledColumns(
        vectors, offsets, np.array(ids, np.int64), scan.space, n_cut, max(n_usable, len(ids))
    )
