"""Quick plausibility check of a partition before it is searched.

It checks whether the vectors are those that the cells were made for.

`pexeso.engine.layout.validation` looks at everything and reads everything. What it would find is
rarely subtle: vectors that were shuffled, zeroed or scaled, boxes that are not finite. A few rows
and the coarse boxes tell of these in well under a millisecond, and a search would answer wrongly
without a word. What is wrong in one place only is left to ``pexeso check``.
"""

from __future__ import annotations

import torch

from pexeso.engine.layout.partition import Partition
from pexeso.errors import IndexCorruptError

ROWS = 16
"""Stored rows that are looked at, evenly spread."""

_LENGTH_ERROR = 1e-3


def require_plausible_cells(partition: Partition, where: str) -> None:
    """Refuse a partition whose coarse boxes are not finite: a search would skip it.

    Parameters
    ----------
    partition : Partition
        On the CPU. Of its arrays the boxes of the summary are read, as every search does.
    """
    if partition.n_values and not partition.cells.is_finite():
        _refuse(where, "Boxes are not finite, or the wrong way round")


def require_plausible_rows(partition: Partition, where: str) -> None:
    """Refuse a partition whose vectors are not of unit length, or do not lie in their cells."""
    n = min(ROWS, partition.n_values)
    if not n:
        return
    rows = torch.arange(n) * partition.n_values // n
    partition.cells.fetch_rows(partition, rows)
    vectors = partition.vectors_of(rows)
    lengths = vectors.double().square().sum(1).sqrt()
    # Written so that NaN, which compares false with everything, is wrong.
    n_wrong = int((~((lengths - 1.0).abs() <= _LENGTH_ERROR)).sum())
    if n_wrong:
        _refuse(where, f"Of {n} vectors looked at {n_wrong} are not of unit length")
    mapped = partition.map.map(vectors)
    lower, upper = (
        corner[:, : mapped.shape[1]] for corner in partition.cells.corners_of_rows(rows)
    )
    inside = (mapped >= lower - partition.slack) & (mapped <= upper + partition.slack)
    n_wrong = int((~inside.all(1)).sum())
    if n_wrong:
        _refuse(where, f"Of {n} vectors looked at {n_wrong} do not lie in their cells")


def _refuse(where: str, what: str) -> None:
    raise IndexCorruptError(
        f"{where} cannot be searched: {what}. It was changed; 'pexeso check' tells more."
    )
