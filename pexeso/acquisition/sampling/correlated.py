"""Correlated samples: the rows whose join keys are at positions up to a rate.

Symbols of the paper: p the rate, h(t[J]) the position of the key of row t (`hashing`). The sample
of D at p has the rows with h(t[J]) <= p. The position depends on the key alone, so all rows of a
key are kept or none, in each table, and a sample is a part of that at any higher rate.

A table that joins along several edges keeps the rows that pass the test of each. Edges on the same
columns share one test. The join of such samples holds each row of the full join with the product of
the rates of its distinct tests, which falls quickly along a path; and a table of a hundred states
sampled at 0.1 is no table of states any more. So an edge with a side of few distinct keys is not
thinned: its rate is 1 (`edge_rate`).

Rows with a missing cell in a key join nothing. They are in no sample, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pexeso.acquisition.sampling.hashing import hash_positions, key_tokens, sorted_names
from pexeso.errors import InputError

SMALL_DOMAIN = 1000
"""Most distinct keys of a side of an edge that is not thinned."""


@dataclass(frozen=True)
class KeyTest:
    """The test of one edge: rows with keys at positions up to the rate pass.

    Attributes
    ----------
    names : tuple of str
        J, the columns of the join; kept sorted.
    rate : float
        p, above 0 and up to 1.

    Raises
    ------
    InputError
        If no column is named, one is named twice, or the rate is out of range.

    Examples
    --------
    >>> KeyTest(("zip", "age"), 0.1)
    KeyTest(names=('age', 'zip'), rate=0.1)
    """

    names: tuple[str, ...]
    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise InputError(f"The rate of a sample must be above 0 and up to 1, got {self.rate}.")
        object.__setattr__(self, "names", tuple(sorted_names(self.names)))


@dataclass(frozen=True)
class CorrelatedSample:
    """A sample of a table and what it was drawn from.

    Attributes
    ----------
    rows : pyarrow.Table
        The rows that pass, in the order of the table.
    n_rows : int
        The rows of the whole table, or of the part that was read.
    null_rows : int
        Those of them with a missing cell in a key; none is in the sample.
    """

    rows: pa.Table
    n_rows: int
    null_rows: int


def correlated_sample(
    table: pa.Table | pa.RecordBatch,
    tests: Sequence[KeyTest],
    *,
    seed: int = 0,
    bought: Sequence[KeyTest] = (),
) -> CorrelatedSample:
    """Return the rows of a table that pass the tests of all its edges.

    Each row is judged by itself, so a table can be read in parts, as in a Spark task. Memory: that
    of `hashing.hash_positions` for one test at a time, and the sample.

    Parameters
    ----------
    table : pyarrow.Table or pyarrow.RecordBatch
        The table, or a part of it.
    tests : sequence of KeyTest
        One for each edge of the table; without any, all rows pass. Of several tests of the same
        columns the lowest rate counts.
    seed : int
        Different seeds give independent samples.
    bought : sequence of KeyTest
        The tests of the sample that is there already, on the same columns at lower or equal rates:
        only rows that are not in it are returned.

    Returns
    -------
    CorrelatedSample

    Raises
    ------
    InputError
        If values have no token, or the earlier sample has other columns or a higher rate.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> table = pa.table({"k": [1, 1, 2, 3, None], "age": [20, 30, 40, 50, 60]})
    >>> sample = correlated_sample(table, [KeyTest(("k",), 0.8)])
    >>> sample.rows.to_pydict(), sample.null_rows
    ({'k': [2, 3], 'age': [40, 50]}, 1)
    >>> more = correlated_sample(table, [KeyTest(("k",), 1.0)], bought=[KeyTest(("k",), 0.8)])
    >>> more.rows["age"].to_pylist()
    [20, 30]
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    rates, earlier = _lowest_rates(tests), _lowest_rates(bought)
    if bought and (
        set(rates) != set(earlier) or any(earlier[names] > rates[names] for names in rates)
    ):
        raise InputError(
            "A sample can be enlarged only at the same columns and rates that are not lower, got "
            f"{earlier} and then {rates}."
        )
    selected, known = np.ones((2, table.num_rows), bool)
    old = np.full(table.num_rows, bool(bought))
    for names, rate in rates.items():
        positions = _positions(table, names, seed=seed, rate=min(rate, earlier.get(names, rate)))
        known &= ~np.isnan(positions)
        selected &= positions <= rate
        if bought:
            old &= positions <= earlier[names]
    rows = table.filter(pa.array(selected & ~old))
    return CorrelatedSample(rows, table.num_rows, int((~known).sum()))


def distinct_keys(table: pa.Table, names: Sequence[str]) -> int:
    """Return the number of distinct join keys of a table, without those with a missing cell.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    names : sequence of str
        J, at least one column.

    Returns
    -------
    int

    Raises
    ------
    InputError
        If no column is named, one is named twice, or values have no token.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> distinct_keys(pa.table({"k": ["1", "1.0", "2", None]}), ["k"])
    2
    """
    positions = hash_positions(table, names)
    return len(np.unique(positions[~np.isnan(positions)]))


def edge_rate(
    left_keys: int, right_keys: int, rate: float, *, small_domain: int = SMALL_DOMAIN
) -> float:
    """Return the rate at which an edge is sampled.

    Parameters
    ----------
    left_keys, right_keys : int
        The numbers of distinct keys of its sides, in the whole tables.
    rate : float
        p, the rate of edges between many keys.
    small_domain : int
        Most distinct keys of a side of an edge that is not thinned; 0 to thin each edge.

    Returns
    -------
    float
        `rate`, or 1.

    Examples
    --------
    >>> edge_rate(50, 100_000, 0.1), edge_rate(5000, 100_000, 0.1)
    (1.0, 0.1)
    """
    return 1.0 if min(left_keys, right_keys) <= small_domain else rate


def _lowest_rates(tests: Sequence[KeyTest]) -> dict[tuple[str, ...], float]:
    rates: dict[tuple[str, ...], float] = {}
    for test in tests:
        rates[test.names] = min(test.rate, rates.get(test.names, 1.0))
    return rates


def _positions(table: pa.Table, names: Sequence[str], *, seed: int, rate: float) -> np.ndarray:
    """Return the positions of keys, or 0 for all complete keys where each of them is kept."""
    if rate < 1:
        return hash_positions(table, names, seed=seed)
    missing = np.zeros(table.num_rows, bool)
    for column in key_tokens(table, names):
        missing |= column.is_null().to_numpy(zero_copy_only=False)
    return np.where(missing, np.nan, 0.0)
