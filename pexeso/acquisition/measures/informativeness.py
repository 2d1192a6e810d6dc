"""Join informativeness: how much of a full outer join of two tables is left without a partner.

Symbols of the paper: D and D' the tables, J the columns of the join, which have equal names in
both. Each row of the full outer join of D and D' gives a pair (D.J, D'.J), where the side without a
partner is missing; H is the entropy of these pairs, I their mutual information, and

    JI(D, D') = (H(D.J, D'.J) - I(D.J, D'.J)) / H(D.J, D'.J),

between 0 and 1, smaller for a better connection. The outer join is never formed: a value that n1
rows of D and n2 rows of D' have gives n1 * n2 equal pairs where both have it, n1 or n2 otherwise.
With M matched pairs, L pairs of D alone and R of D' alone, H - I is the entropy that is left within
the pairs of D alone and within those of D' alone.

JI alone does not say that anything matches: two tables with one value each that differ have
JI = 0. `JoinInformativeness.matched` says it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pexeso.acquisition.measures.codes import checked_counts, key_codes
from pexeso.acquisition.measures.sums import exact_sum, information
from pexeso.errors import InputError


@dataclass(frozen=True)
class JoinInformativeness:
    """The join informativeness of two tables and what it rests on.

    Attributes
    ----------
    value : float
        JI, from 0 to 1, smaller is better; NaN without a row. Where all rows of the outer join are
        equal, 0/0 by definition: 0 if they match, 1 otherwise.
    matched : float
        M, the rows of the inner join.
    left_only, right_only : float
        L and R, the rows without a partner.
    null_rows : int
        The rows of both tables with a missing cell in J; they match nothing and do not count.
    """

    value: float
    matched: float
    left_only: float
    right_only: float
    null_rows: int = 0


def join_informativeness(
    left_counts: np.ndarray, right_counts: np.ndarray, null_rows: int = 0
) -> JoinInformativeness:
    """Return the join informativeness of two columns from the counts of their values.

    Parameters
    ----------
    left_counts, right_counts : numpy.ndarray
        How many rows of D and of D' have each value: position i stands for the same value in both,
        0 where it is absent.
    null_rows : int
        Rows that are left out, to be reported.

    Returns
    -------
    JoinInformativeness

    Raises
    ------
    InputError
        If the counts differ in length, or one is below 0.

    Examples
    --------
    >>> join_informativeness([1, 1, 0, 0], [0, 0, 1, 1]).value
    0.5
    >>> join_informativeness([3, 2], [1, 5]).value
    0.0
    """
    matched, left_only, right_only = outer_join_counts(left_counts, right_counts)
    dangling = information(left_only) + information(right_only)
    whole = information(np.concatenate([matched, left_only, right_only]))
    n_matched, n_left, n_right = map(exact_sum, (matched, left_only, right_only))
    if not n_matched + n_left + n_right:
        value = math.nan
    elif whole == 0:
        value = 0.0 if n_matched else 1.0
    else:
        value = min(dangling / whole, 1.0)
    return JoinInformativeness(value, n_matched, n_left, n_right, null_rows)


def outer_join_counts(
    left_counts: np.ndarray, right_counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how often each distinct pair of the full outer join of two columns is there.

    Parameters
    ----------
    left_counts, right_counts : numpy.ndarray
        How many rows of D and of D' have each value, in the same order.

    Returns
    -------
    tuple of numpy.ndarray of float64
        Of the matched pairs, of those of D alone, and of those of D' alone.

    Raises
    ------
    InputError
        If the counts differ in length, or one is below 0.

    Examples
    --------
    >>> [counts.tolist() for counts in outer_join_counts([2, 1, 0], [3, 0, 1])]
    [[6.0], [1.0], [1.0]]
    """
    # As doubles, since products may exceed int64.
    left, right = checked_counts(left_counts), checked_counts(right_counts)
    if len(left) != len(right):
        raise InputError(
            f"Both columns need a count for the same values, got {left.shape} and {right.shape}. "
            "Write 0 where a column lacks a value."
        )
    matched = (left * right)[(left > 0) & (right > 0)]
    return matched, left[(left > 0) & (right == 0)], right[(left == 0) & (right > 0)]


def table_informativeness(
    left: pa.Table, right: pa.Table, names: Sequence[str]
) -> JoinInformativeness:
    """Return the join informativeness of two tables on columns of equal names.

    Parameters
    ----------
    left, right : pyarrow.Table
        D and D'.
    names : sequence of str
        J, at least one column.

    Returns
    -------
    JoinInformativeness

    Raises
    ------
    InputError
        If no column is named, or one has values of different types in the two tables.
    ColumnNotFoundError
        If a table lacks a column.

    Examples
    --------
    >>> left = pa.table({"state": ["NJ", "NJ", "NY"]})
    >>> right = pa.table({"state": ["NJ", "MA", "CA", None]})
    >>> found = table_informativeness(left, right, ["state"])
    >>> round(found.value, 3), found.matched, found.null_rows
    (0.208, 2.0, 1)
    """
    codes = key_codes(left, right, names)
    n_codes = max(int(side.max(initial=-1)) for side in codes) + 1
    counts = [np.bincount(side[side >= 0], minlength=n_codes) for side in codes]
    null_rows = sum(int((side < 0).sum()) for side in codes)
    return join_informativeness(*counts, null_rows=null_rows)
