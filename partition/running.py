"""Running sums over sorted columns that no single task can hold.

The functions process the share of one task.

The columns stand in one order over all tasks: by cluster, those that are large after the others,
then outwards from the centre. A first pass adds up every task's share of each group
(:func:`part_sums`), a few numbers a task. From these the driver computes where each share begins
(:func:`shares_before`), and a second pass keys every column with its piece (:func:`key_pieces`), as
:func:`partition.balance.cut` does for columns held in memory. Memory of a task: one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from partition.balance import Limits

ORDER = ("cluster", "own", "divergence", "tie", "column_id")
"""What the columns must be sorted by; ``own`` says that a column is a piece of its own."""

PART_SUMS = pa.schema(
    [
        ("part", pa.int32()),
        ("cluster", pa.int32()),
        ("own", pa.bool_()),
        ("n_bytes", pa.int64()),
        ("n_columns", pa.int64()),
    ]
)
KEYED = pa.schema(
    [
        (name, pa.int64())
        for name in (
            *("column_id", "n_bytes"),
            *("cluster", "own_column", "size_step", "column_step"),
        )
    ]
)

Share = tuple[int, int, bool]
"""A task's part of a group: part, cluster, own."""

Before = Mapping[Share, tuple[int, int]]
"""Bytes and columns of the same group that lie in earlier parts."""


def part_sums(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Compute :data:`PART_SUMS` from sorted columns.

    It has the bytes and number of the columns of each group, with a row for each run of a group.
    """
    for batch in batches:
        if not batch.num_rows:
            continue
        starts = _run_starts(batch)
        counts = np.diff(starts, append=batch.num_rows).astype(np.int64)
        sums = np.add.reduceat(batch.column("n_bytes").to_numpy(), starts)
        groups = [batch.column(name).take(pa.array(starts)) for name in ("part", "cluster", "own")]
        yield pa.RecordBatch.from_arrays(
            [*groups, pa.array(sums), pa.array(counts)], schema=PART_SUMS
        )


def shares_before(sums: pa.Table) -> Before:
    """Add up, for each part of a group, what lies in the parts before it.

    Parameters
    ----------
    sums : pa.Table
        Of :data:`PART_SUMS`, in any order, several rows of a share allowed. There are at most as
        many shares as parts and groups together.

    Returns
    -------
    dict
        (part, cluster, own) to (bytes, columns) before.
    """
    totals = sums.group_by(["cluster", "own", "part"]).aggregate(
        [("n_bytes", "sum"), ("n_columns", "sum")]
    )
    before: dict[Share, tuple[int, int]] = {}
    group, n_bytes, n_columns = None, 0, 0
    for row in totals.sort_by(
        [(name, "ascending") for name in ("cluster", "own", "part")]
    ).to_pylist():
        if group != (row["cluster"], row["own"]):
            group, n_bytes, n_columns = (row["cluster"], row["own"]), 0, 0
        before[row["part"], *group] = n_bytes, n_columns
        n_bytes, n_columns = n_bytes + row["n_bytes_sum"], n_columns + row["n_columns_sum"]
    return before


def key_pieces(
    batches: Iterable[pa.RecordBatch], before: Before, limits: Limits
) -> Iterator[pa.RecordBatch]:
    """Sorted columns to :data:`KEYED`: every column's size, and the key of its piece.

    A part may run over any number of batches: what is carried from one to the next is where its
    last group stands.
    """
    share: Share | None = None
    bytes_so_far = columns_so_far = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        starts = _run_starts(batch)
        lengths = np.diff(starts, append=batch.num_rows)
        n_bytes = batch.column("n_bytes").to_numpy()
        first_bytes, first_columns = (
            np.zeros(len(starts), np.int64),
            np.zeros(len(starts), np.int64),
        )
        cumulative = np.concatenate([[0], np.cumsum(n_bytes)])
        for run, begins in enumerate(_shares(batch, starts)):
            if begins != share:
                share, (bytes_so_far, columns_so_far) = begins, before[begins]
            first_bytes[run], first_columns[run] = bytes_so_far, columns_so_far
            bytes_so_far += int(cumulative[starts[run] + lengths[run]] - cumulative[starts[run]])
            columns_so_far += int(lengths[run])
        bytes_before = cumulative[:-1] - np.repeat(cumulative[starts] - first_bytes, lengths)
        rank = np.arange(batch.num_rows) - np.repeat(starts - first_columns, lengths)
        yield _keyed(batch, bytes_before, rank, limits)


def _keyed(
    batch: pa.RecordBatch, bytes_before: np.ndarray, rank: np.ndarray, limits: Limits
) -> pa.RecordBatch:
    is_large = batch.column("own").to_numpy(zero_copy_only=False)
    column_ids = batch.column("column_id").to_numpy()
    keys = [
        batch.column("cluster").to_numpy().astype(np.int64),
        np.where(is_large, column_ids, -1),
        np.where(is_large, 0, bytes_before // max(1, limits.piece_bytes)),
        np.where(is_large, 0, rank // limits.piece_columns),
    ]
    columns = [batch.column(name) for name in ("column_id", "n_bytes")]
    return pa.RecordBatch.from_arrays([*columns, *map(pa.array, keys)], schema=KEYED)


def _run_starts(batch: pa.RecordBatch) -> np.ndarray:
    """Find where a new group begins."""
    part, cluster = (batch.column(name).to_numpy() for name in ("part", "cluster"))
    is_large = batch.column("own").to_numpy(zero_copy_only=False)
    changes = (
        (part[1:] != part[:-1]) | (cluster[1:] != cluster[:-1]) | (is_large[1:] != is_large[:-1])
    )
    return np.concatenate([[0], np.flatnonzero(changes) + 1])


def _shares(batch: pa.RecordBatch, starts: np.ndarray) -> list[Share]:
    rows = pa.array(starts)
    columns = [batch.column(name).take(rows).to_pylist() for name in ("part", "cluster", "own")]
    return list(zip(*columns, strict=True))
