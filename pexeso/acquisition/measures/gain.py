"""What a joined column tells of a target beyond chance.

A column with many values seems to explain anything: one with a value of its own for each key says
no more than the key. So the gain of a column is

    share of the rows that have a cell * (CORR(target, column) - chance),

chance the correlation with the column shuffled among the keys that it was joined on, which keeps
how many values there are and how often, and loses what they say.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from pexeso.acquisition.measures.correlation import correlation
from pexeso.errors import InputError

N_SHUFFLES = 3
"""Chance is the mean of so many shuffles."""


def gain_of_column(
    target: pa.Array,
    column: pa.Array,
    keys: np.ndarray,
    *,
    numeric_target: bool,
    numeric_column: bool,
    seed: int = 0,
) -> float:
    """Return what a column that was joined on keys tells of a target beyond chance.

    Parameters
    ----------
    target, column : pyarrow.Array of length n
        The two in each row; rows where either is missing tell nothing.
    keys : numpy.ndarray of int64 (n,)
        A number for the key of each row: rows of one key have equal cells of the column.
    numeric_target, numeric_column : bool
        Whether they are measured as numbers; see `correlation`.
    seed : int
        Of the shuffles, at least 0.

    Returns
    -------
    float
        In bits, times the unit of the target where that is numeric; below 0 where chance tells
        more.

    Raises
    ------
    InputError
        If the three differ in length.

    Examples
    --------
    >>> days, continent = pa.array(["few", "many"] * 40), pa.array(["Europe", "Asia"] * 40)
    >>> kinds = {"numeric_target": False, "numeric_column": False}
    >>> round(gain_of_column(days, continent, np.arange(80), **kinds), 1)
    1.0
    >>> names = pa.array([str(number) for number in range(80)])
    >>> gain_of_column(days, names, np.arange(80), **kinds)
    0.0
    """
    n_rows = len(target)
    if not n_rows == len(column) == len(keys):
        raise InputError(
            f"Target, column and keys must have one entry a row, got {n_rows}, {len(column)} and "
            f"{len(keys)}."
        )
    known = np.flatnonzero(
        target.is_valid().to_numpy(zero_copy_only=False)
        & column.is_valid().to_numpy(zero_copy_only=False)
    )
    if not len(known):
        return 0.0
    rows = pa.table({"target": target, "column": column}).take(pa.array(known))
    _, first, key_of_row = np.unique(keys[known], return_index=True, return_inverse=True)
    numeric = [
        *(["target"] if numeric_target else []),
        *(["column"] if numeric_column else []),
    ]

    def measured(table: pa.Table) -> float:
        return correlation(table, ["target"], ["column"], numeric=numeric)

    by_chance = []
    of_key = rows.column("column").take(pa.array(first))
    for number in range(N_SHUFFLES):
        random = np.random.Generator(np.random.Philox(key=[seed, number]))
        shuffled = of_key.take(pa.array(random.permutation(len(first))))
        cells = shuffled.take(pa.array(key_of_row))
        by_chance.append(measured(rows.set_column(1, "column", cells)))
    chance = math.fsum(by_chance) / N_SHUFFLES
    return len(known) / n_rows * (measured(rows) - chance)
