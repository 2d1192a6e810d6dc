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

from embed.words import hash_strings
from pexeso.engine.lists import damage_made_plain, distinct_numbers, offsets_of
from pexeso.engine.vector_space import Vectors, VectorSpace, known_vectors
from pexeso.runtime.ranges import mixed
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.semantic.thresholds.advice import HALF
from pexeso.store.arrays import take_texts

MIN_VALUES = 5
"""A column with fewer distinct values says too little about how far its values lie apart."""

MAX_VALUES = 1 << 15
"""Values of all sampled columns together: 32 MiB of vectors at 256 dimensions."""

MAX_COLUMN_VALUES = 1 << 12
"""A longer column is cut to so many of its values, those of the smallest hashes."""

NAMES_CHUNK_SIZE = 1 << 16
"""Columns whose names are hashed at a time: some megabytes."""

CHUNK_SIZE = 1 << 8
"""Rows compared with all sampled values at a time: 64 MiB of distances."""

SEED = 0


@dataclass(frozen=True)
class SampledColumns:
    """Some columns of an index."""

    vectors: Vectors  # of all columns in turn, each in the order of `value_order`; none is zero
    offsets: np.ndarray  # int64 (c + 1,): where the rows of each column begin and end
    ids: np.ndarray  # int64 (c,): numbers of the columns in the index
    space: VectorSpace
    n_cut: int  # columns that had more than `MAX_COLUMN_VALUES` values
    n_usable: int  # an estimate of how many columns of the index could have been drawn

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def comparable(self) -> Vectors:
        return self.space.comparable(self.vectors)

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.offsets)

    def column(self, position: int) -> Vectors:
        return self.vectors[self.offsets[position] : self.offsets[position + 1]]

    @property
    def share(self) -> float:
        """The share of the index's usable columns that is in the sample, in (0, 1]."""
        return min(1.0, len(self) / max(self.n_usable, 1))


def sample_columns(scan: PartitionLoader, seed: int = SEED) -> SampledColumns:
    """Draw columns of an index with equal chances until they have `MAX_VALUES` values."""
    every = _columns_by_hash(scan, seed)
    parts, sizes, ids, n_seen, n_cut, n_values = [], [], [], 0, 0, 0
    for number, position, column_id in every[:MAX_VALUES].tolist():
        n_seen += 1
        rows = scan.mapped(number).column_lists[position]
        if len(rows) < MIN_VALUES:
            continue
        is_cut = len(rows) > MAX_COLUMN_VALUES
        if n_values + min(len(rows), MAX_COLUMN_VALUES) > MAX_VALUES:
            break
        vectors = vectors_by_hash(scan, number, rows, MAX_COLUMN_VALUES, seed)
        if len(vectors) < MIN_VALUES:
            continue
        parts.append(vectors)
        sizes.append(len(vectors))
        ids.append(column_id)
        n_values, n_cut = n_values + len(vectors), n_cut + is_cut
    return SampledColumns(
        scan.space.concatenate(parts),
        offsets_of(np.array(sizes, np.int64)),
        np.array(ids, np.int64),
        scan.space,
        n_cut,
        max(round(len(ids) / max(n_seen, 1) * len(every)), len(ids)),
    )


def value_order(values: pa.Array, seed: int = SEED) -> np.ndarray:
    """Return the order of values by a hash of their texts, of which any beginning is a sample."""
    texts = values.cast(pa.large_string())
    hashes = _mixed_hashes(texts, seed)
    if len(distinct_numbers(hashes)) == len(hashes):
        return np.argsort(hashes, kind="stable")
    return np.lexsort((np.array(texts.to_pylist(), object), hashes))


def vectors_by_hash(
    scan: PartitionLoader, number: int, rows: np.ndarray, limit: int | None = None, seed: int = SEED
) -> Vectors:
    """Return the vectors of some stored rows that are not zero, in the order of `value_order`."""
    order = value_order(take_texts(scan.store.texts(number, "values"), rows), seed)[:limit]
    vectors = scan.space.stored(scan.mapped(number), rows[order])
    return vectors[known_vectors(vectors)]


def nearest_distances(
    space: VectorSpace, left: Vectors, right: Vectors, *, beyond: float | None = None
) -> np.ndarray:
    """Return the distance of vectors to the nearest of others: float32 (n,), infinite for none."""
    nearest, left = np.full(len(left), np.inf, np.float32), space.comparable(left)
    for right_start in range(0, len(right), MAX_VALUES):
        others = space.comparable(right[right_start : right_start + MAX_VALUES])
        for left_start in range(0, len(left), CHUNK_SIZE):
            some = slice(left_start, left_start + CHUNK_SIZE)
            apart = space.distances(left[some], others)
            if beyond is not None:
                apart[apart <= beyond] = np.inf
            nearest[some] = np.minimum(nearest[some], apart.min(1))
    return nearest


def _columns_by_hash(scan: PartitionLoader, seed: int) -> np.ndarray:
    """Return partition, position and id of columns, by a hash of their names: int64 (c, 3)."""
    parts, hashes = [np.zeros((0, 3), np.int64)], [np.zeros(0, np.uint64)]
    for number in range(scan.store.n_partitions):
        ids = np.asarray(scan.store.array(number, "column_ids"))
        deleted = scan.store.deleted_mask(number)
        positions = np.arange(len(ids)) if deleted is None else np.flatnonzero(~deleted)
        tables, labels = (scan.store.texts(number, name) for name in ("tables", "labels"))
        for begin in range(0, len(positions), NAMES_CHUNK_SIZE):
            rows = positions[begin : begin + NAMES_CHUNK_SIZE]
            parts.append(np.stack([np.full(len(rows), number), rows, ids[rows]], 1))
            of_tables = _mixed_hashes(take_texts(tables, rows), seed)
            hashes.append(_mixed_hashes(take_texts(labels, rows), of_tables))
    every = np.concatenate(parts)
    return every[np.lexsort((every[:, 2], np.concatenate(hashes)))]


def _mixed_hashes(texts: pa.Array, seed: int | np.ndarray) -> np.ndarray:
    """Hash texts, each with a seed of its own or all with one: uint64 (n,)."""
    return mixed(
        hash_strings(texts.cast(pa.large_string()))
        ^ mixed(np.atleast_1d(np.asarray(seed, np.uint64)))
    )


STEPS = 64
"""Distances that are tried, from 0 to the largest at which unrelated neighbours are few enough."""

EQUAL = 1e-3
"""Vectors no farther apart than this are those of one text in two forms; the rounding of the
vectors keeps them from 0."""


def unrelated_distances(
    space: VectorSpace, vectors: Vectors, n_asked: int | None = None
) -> np.ndarray:
    """Return for values of a column the distance of the nearest other thing in it."""
    return nearest_distances(space, vectors[:n_asked], vectors, beyond=EQUAL)


def unrelated_distances_of(sample: SampledColumns) -> list[np.ndarray]:
    """Return the `unrelated_distances` of the first values of every sampled column, sorted."""
    columns = (sample.column(position) for position in range(len(sample)))
    return [np.sort(unrelated_distances(sample.space, column, CHUNK_SIZE)) for column in columns]


def shares_within(unrelated: list[np.ndarray], limits: np.ndarray) -> np.ndarray:
    """Return the share of values with an unrelated one in reach: float64 (columns, limits)."""
    shares = [
        np.searchsorted(distances, limits, side="right") / len(distances) for distances in unrelated
    ]
    return np.stack(shares)


def tried_distances(largest: float) -> np.ndarray:
    """Return the distances that are tried, from 0 to the largest, with three decimals."""
    return np.floor(np.linspace(0.0, largest, STEPS + 1) * 1000 + 1e-6) / 1000


def distance_reaching(unrelated: list[np.ndarray], share: float) -> float:
    """Return the largest distance at which at most `share` of values meet an unrelated one."""
    apart = np.concatenate(unrelated)
    order = np.argsort(apart, kind="stable")
    weights = np.concatenate(
        [np.full(len(distances), 1 / len(distances) / len(unrelated)) for distances in unrelated]
    )[order]
    position = int(np.searchsorted(np.cumsum(weights), share + 1e-9, side="right"))
    if position == len(apart) or not np.isfinite(apart[order[position]]):
        return 1.0
    # Just below the first distance at which the share is passed.
    return float(apart[order[position]]) - 1e-6


def effective_size(counts: np.ndarray) -> float:
    """Return how many equally frequent values would say as much as values with these counts do."""
    squares = float((counts**2).sum())
    return float(counts.sum()) ** 2 / squares if squares else 0.0


@dataclass(frozen=True)
class Learnt:
    sample: SampledColumns
    unrelated: list[np.ndarray]

    @property
    def median(self) -> float:
        return distance_reaching(self.unrelated, HALF)


@damage_made_plain("the index")
def learn(scan: PartitionLoader) -> Learnt | None:
    """Draw a sample and measure unrelated distances; None of fewer than two usable columns."""
    sample = sample_columns(scan)
    return Learnt(sample, unrelated_distances_of(sample)) if len(sample) > 1 else None
