"""What whole tables tell of their join keys, in a few kilobytes: how many, and which are heavy.

A sample of one key in ten lacks the heaviest key nine times in ten, and nothing in it shows that
most rows of the join are missing. Who draws the sample reads the whole table anyway and can tell
the positions of the heaviest keys and their numbers of rows, as end-biased samples do (C. Estan and
J. Naughton, "End-biased Samples for Join Cardinality Estimation", ICDE 2006). With the summaries of
both sides the rows of heavy keys that a sample lacks are bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pexeso.acquisition.measures.sums import exact_sum
from pexeso.acquisition.sampling.hashing import hash_positions
from pexeso.errors import InputError

N_HEAVIEST = 1000
"""Keys that a summary lists, 16 bytes each."""


@dataclass(frozen=True, eq=False)
class KeySummary:
    """What a whole table tells of its keys on the columns of a join.

    Attributes
    ----------
    keys : int
        The number of distinct keys.
    rows : int
        The rows with a key.
    null_rows : int
        The rows with a missing cell in the key.
    positions : numpy.ndarray of float64, shape (k,)
        The positions of the heaviest keys, ascending.
    counts : numpy.ndarray of int64, shape (k,)
        Their numbers of rows.
    most_unlisted : int
        The most rows of a key that is not listed, 0 if all are.
    """

    keys: int
    rows: int
    null_rows: int
    positions: np.ndarray
    counts: np.ndarray
    most_unlisted: int


def key_summary(
    table: pa.Table, names: Sequence[str], *, seed: int = 0, n_heaviest: int = N_HEAVIEST
) -> KeySummary:
    """Return the summary of the keys of a table.

    Memory: that of `hashing.hash_positions`, and 16 bytes for each row.

    Parameters
    ----------
    table : pyarrow.Table
        The whole table.
    names : sequence of str
        J, at least one column.
    seed : int
        That of the samples.
    n_heaviest : int
        Keys to list, 0 or more; of equally heavy ones those at the lowest positions.

    Returns
    -------
    KeySummary

    Raises
    ------
    InputError
        If no column is named, one is named twice, values have no token, or `n_heaviest` is below 0.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> table = pa.table({"k": ["a", "a", "a", "b", "b", "c", None]})
    >>> found = key_summary(table, ["k"], n_heaviest=1)
    >>> found.keys, found.rows, found.null_rows, found.counts.tolist(), found.most_unlisted
    (3, 6, 1, [3], 2)
    """
    if n_heaviest < 0:
        raise InputError(f"n_heaviest must be 0 or more, got {n_heaviest}.")
    positions = hash_positions(table, names, seed=seed)
    known = positions[~np.isnan(positions)]
    distinct, counts = np.unique(known, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    listed = np.sort(order[:n_heaviest])
    rest = counts[order[n_heaviest:]]
    max_rest = int(rest.max(initial=0))
    n_null = len(positions) - len(known)
    return KeySummary(len(distinct), len(known), n_null, distinct[listed], counts[listed], max_rest)


def unsampled_squares(
    left: KeySummary, right: KeySummary, rate: float, *, outer: bool = False
) -> float:
    """Return a bound on the squares of the rows of heavy keys that samples of two tables lack.

    Parameters
    ----------
    left, right : KeySummary
        Of the tables, on the same columns and with the same seed.
    rate : float
        p, the rate of the samples.
    outer : bool
        Rows of the full outer join, not of the inner one.

    Returns
    -------
    float
        The sum over the keys that a summary lists and that are at positions above the rate, of the
        square of the most rows that the key can have in the join.

    Examples
    --------
    >>> one, two = pa.table({"k": ["a"] * 9 + ["b"]}), pa.table({"k": ["a", "a", "c"]})
    >>> summaries = [key_summary(table, ["k"]) for table in (one, two)]
    >>> unsampled_squares(*summaries, 1e-9), unsampled_squares(*summaries, 1.0)
    (324.0, 0.0)
    """
    heavy = np.union1d(left.positions, right.positions)
    heavy = heavy[heavy > rate]
    listed, max_rows = zip(*(_most_rows(summary, heavy) for summary in (left, right)), strict=True)
    rows = max_rows[0] * max_rows[1]
    if outer:
        rows = np.maximum.reduce([rows, listed[0], listed[1]])
    return exact_sum(rows * rows)


def _most_rows(summary: KeySummary, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the listed rows of keys, 0 where they are not, and the most that they can have."""
    at = np.searchsorted(summary.positions, positions)
    if not len(summary.positions):
        return np.zeros(len(at)), np.full(len(at), float(summary.most_unlisted))
    at = np.minimum(at, len(summary.positions) - 1)
    is_listed = summary.positions[at] == positions
    counts = summary.counts[at].astype(np.float64)
    return np.where(is_listed, counts, 0.0), np.where(is_listed, counts, summary.most_unlisted)
