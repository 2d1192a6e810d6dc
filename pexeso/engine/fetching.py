"""Prefetching of the parts of mapped arrays that a search will read.

The parts are reported to whoever can fetch them before they are read.

A page of a mapped file that is not in memory is read when it is touched, and the search waits for
it: some 100 microseconds on a solid-state disk, for 4 KiB. A disk answers many questions in hardly
more time than one. So where pages turn out to be missing, the blocks and vectors that are about to
be read are asked for together. Nothing else is: a search that looks into few blocks must not read a
partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch

from pexeso.engine.arrays import expand_ranges

if TYPE_CHECKING:
    from pexeso.engine.interface import Kernel, Pairs, Query, Threshold
    from pexeso.engine.layout.partition import Partition

ROWS_AT_ONCE = 1 << 20
"""Rows of pairs that are looked at together while their pages are asked for."""


class Pages(Protocol):
    """What brings parts of a partition's arrays into memory."""

    def missing(self) -> bool:
        """Return whether parts that were read lately were not in memory."""

    def want(self, name: str, rows: torch.Tensor) -> None:
        """Request rows of an array, int64, ascending.

        The call returns immediately and never fails because rows are missing.
        """


def fetch_summary(partition: Partition, n_groups: int) -> None:
    """Ask for the first groups of boxes, which every search reads."""
    if partition.pages is not None:
        partition.pages.want("boxes", torch.arange(n_groups))


def fetch_cells(partition: Partition, query: Query, threshold: Threshold, kernel: Kernel) -> None:
    """Ask for the parts of a partition's cells that query values will walk."""
    if (
        partition.pages is None
        or not partition.pages.missing()
        or not len(query)
        or not partition.n_values
    ):
        return
    partition.cells.fetch(partition, query, threshold, kernel)


def fetch_coordinates(partition: Partition, rows: torch.Tensor) -> None:
    """Ask for the mapped coordinates of rows, int64, ascending."""
    if partition.pages is not None and partition.pages.missing():
        partition.pages.want("mapped", rows)


def fetch_postings(partition: Partition, pairs: Pairs) -> None:
    """Ask for the columns of all rows in candidate pairs."""
    if partition.pages is None or not partition.pages.missing():
        return
    rows = _rows_of(pairs.rows)
    csr = partition.value_columns
    partition.pages.want("value_columns_offsets", rows)
    partition.pages.want("value_columns_offsets", rows + 1)
    partition.pages.want("value_columns_members", csr.offsets[rows])


def fetch_vectors(
    partition: Partition, pairs: Pairs, members: torch.Tensor, possible: torch.Tensor, needed: int
) -> None:
    """Request the vectors of candidates that stand in a column that can still be found.

    Only the candidates of the query values `members` are requested.

    Parameters
    ----------
    members : int64 (m,)
    possible : int64 (C,)
        Of each column, the rows that may match.
    """
    if partition.pages is None or not partition.pages.missing():
        return
    _, position = expand_ranges(pairs.offsets[members], pairs.sizes[members])
    candidates = pairs.rows[position]
    rows = _rows_of(candidates[candidates >= 0])
    csr = partition.value_columns
    requested = []
    for some in torch.split(rows, ROWS_AT_ONCE):
        owner, posting = expand_ranges(csr.offsets[some], csr.sizes_of(some))
        alive = possible[csr.members[posting].long()] >= needed
        requested.append(some[torch.unique(owner[alive])])
    partition.pages.want("vectors", torch.cat([rows[:0], *requested]))


def fetch_columns(partition: Partition, rows: torch.Tensor) -> None:
    """Ask for the vectors of rows, int32 or int64, ascending."""
    if partition.pages is not None and partition.pages.missing():
        partition.pages.want("vectors", rows)


def _rows_of(candidates: torch.Tensor) -> torch.Tensor:
    """Return the distinct stored rows of candidates, int64, ascending.

    Candidates that surely match are given as complements.
    """
    rows = candidates.long()
    return torch.unique(torch.where(rows < 0, ~rows, rows))
