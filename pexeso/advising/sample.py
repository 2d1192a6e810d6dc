"""A bounded sample of an index's columns with their vectors, from which advice on thresholds is learnt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from pexeso.engine.metrics import Metric
from pexeso.scanning import PartitionScan

LEAST_VALUES = 5
"""A column with fewer distinct values says too little about how far its values lie apart."""

MOST_VALUES = 1 << 15
"""Values of all sampled columns together: 32 MiB of vectors at 256 dimensions."""

MOST_OF_A_COLUMN = 1 << 12
"""A longer column is cut to so many of its values, drawn at random."""

ROWS_AT_ONCE = 1 << 8
"""Rows compared with all sampled values at a time: 32 MiB of distances."""

SEED = 0


@dataclass(frozen=True)
class SampledColumns:
    """Some columns of an index.

    Attributes
    ----------
    vectors : float32 (n, d)
        The values of all columns, one column after the other; none is zero.
    offsets : int64 (c + 1,)
        Column i has the rows from ``offsets[i]`` to ``offsets[i + 1]``.
    ids : int64 (c,)
        Numbers of the columns in the index.
    metric : Metric
    n_cut : int
        Columns that had more than `MOST_OF_A_COLUMN` values.
    n_usable : int
        An estimate of how many columns the index has that could have been drawn.
    """

    vectors: torch.Tensor
    offsets: np.ndarray
    ids: np.ndarray
    metric: Metric
    n_cut: int
    n_usable: int

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def sizes(self) -> np.ndarray:
        """Values of each column, int64 (c,)."""
        return np.diff(self.offsets)

    def column(self, place: int) -> torch.Tensor:
        """Give the vectors of a column, float32 (its values, d)."""
        return self.vectors[self.offsets[place] : self.offsets[place + 1]]

    @property
    def share(self) -> float:
        """The share of the index's usable columns that is in the sample, in (0, 1]."""
        return min(1.0, len(self) / max(self.n_usable, 1))


def sample_columns(scan: PartitionScan, seed: int = SEED) -> SampledColumns:
    """Draw columns of an index, each with the same chance, until `MOST_VALUES` values are together.

    Parameters
    ----------
    scan : PartitionScan
        Partitions are memory-mapped: of them the drawn rows are read.
    seed : int
        Another seed, another sample.

    Returns
    -------
    SampledColumns
        Empty where no column has `LEAST_VALUES` values.
    """
    generator = np.random.default_rng(seed)
    numbers = range(scan.store.n_partitions)
    starts = np.cumsum([0, *(scan.mapped(number).n_columns for number in numbers)])
    deleted = {number: scan.store.deleted_mask(number) for number in numbers}
    parts, sizes, ids, n_seen, n_cut, n_values = [], [], [], 0, 0, 0
    for drawn in _drawn(int(starts[-1]), generator):
        number = int(np.searchsorted(starts, drawn, side="right")) - 1
        place, mask = int(drawn - starts[number]), deleted[number]
        n_seen += 1
        rows = _rows_of(scan, number, place)
        if len(rows) < LEAST_VALUES or (mask is not None and mask[place]):
            continue
        if len(rows) > MOST_OF_A_COLUMN:
            rows, n_cut = np.sort(generator.choice(rows, MOST_OF_A_COLUMN, replace=False)), n_cut + 1
        if n_values + len(rows) > MOST_VALUES:
            break
        vectors = scan.mapped(number).vectors[torch.from_numpy(rows)]
        vectors = vectors[(vectors != 0).any(1)]
        if len(vectors) < LEAST_VALUES:
            continue
        parts.append(vectors)
        sizes.append(len(vectors))
        ids.append(int(scan.store.array(number, "column_ids")[place]))
        n_values += len(vectors)
    return _put_together(scan, parts, sizes, ids, n_cut, round(len(ids) / max(n_seen, 1) * int(starts[-1])))


def distances(metric: Metric, left: torch.Tensor, right: torch.Tensor) -> np.ndarray:
    """Give all distances between two sets of vectors as fractions of the largest, right to about 0.0005.

    Parameters
    ----------
    left : float32 (n, d)
    right : float32 (m, d)

    Returns
    -------
    numpy.ndarray, float32 (n, m)
    """
    if metric.name not in ("euclidean", "angular"):
        return metric.fraction(metric.quick_distances(left, right), left.shape[1]).numpy()
    # The vectors have unit length: one product says it all, where a general distance would copy both sides.
    chords = (2 - 2 * (left @ right.T)).clamp_(min=0).sqrt_()
    return metric.fraction(chords, left.shape[1]).numpy()


def nearest_distances(metric: Metric, left: torch.Tensor, right: torch.Tensor) -> np.ndarray:
    """Give the distance of each vector to the nearest of others, float32 (n,); infinite where there is no other.

    Examples
    --------
    >>> corners = torch.eye(2)
    >>> nearest_distances(Metric("euclidean"), corners, corners).round(2).tolist()
    [0.0, 0.0]
    """
    nearest = np.full(len(left), np.inf, np.float32)
    for mine in range(0, len(left), ROWS_AT_ONCE):
        some = slice(mine, mine + ROWS_AT_ONCE)
        for theirs in range(0, len(right), MOST_VALUES):
            near = distances(metric, left[some], right[theirs : theirs + MOST_VALUES]).min(1)
            nearest[some] = np.minimum(nearest[some], near)
    return nearest


def _drawn(n_columns: int, generator: np.random.Generator) -> Iterator[int]:
    """Give numbers of columns in an order drawn at random, none twice: of more columns than a sample can hold, so many as it can."""
    yield from generator.choice(n_columns, min(n_columns, MOST_VALUES), replace=False).tolist()


def _rows_of(scan: PartitionScan, number: int, place: int) -> np.ndarray:
    values = scan.mapped(number).column_values
    start = int(values.offsets[place])
    (size,) = values.sizes_of(torch.tensor([place])).tolist()
    return values.members[start : start + size].long().numpy()


def _put_together(
    scan: PartitionScan, parts: list[torch.Tensor], sizes: list[int], ids: list[int], n_cut: int, n_usable: int
) -> SampledColumns:
    vectors = torch.cat(parts) if parts else torch.zeros((0, 1))
    metric = scan.mapped(0).metric if scan.store.n_partitions else Metric()
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return SampledColumns(vectors, offsets, np.array(ids, np.int64), metric, n_cut, max(n_usable, len(ids)))
