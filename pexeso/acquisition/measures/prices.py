"""Entropy-based prices of projections of a table.

The paper prices projections pi_A(D) by an entropy-based, arbitrage-free model without its details.
Here the price of the attributes A of a table D is

    price(D, A) = scale * sum for a in A of H(D.a)        (model "sum")
    price(D, A) = scale * H(D.A)                          (model "joint")

with Shannon entropies, numbers by their exact value. Both never fall with a further attribute, and
a set is never dearer than two sets that cover it, so nothing is gained by buying in parts. In the
paper's results an attribute bought in addition to a key raises the price, which it does only in the
model "sum", the default.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
import pyarrow as pa

from pexeso.acquisition.measures.codes import row_codes, row_weights
from pexeso.acquisition.measures.entropy import entropy
from pexeso.errors import InputError

MODELS = ("sum", "joint")
"""Entropies of the attributes added up, or that of the rows of the projection."""


def projection_price(
    table: pa.Table,
    names: Collection[str],
    *,
    scale: float = 1.0,
    model: str = "sum",
    counts: np.ndarray | None = None,
) -> float:
    """Return the price of a projection of a table.

    Parameters
    ----------
    table : pyarrow.Table
        D.
    names : collection of str
        A; an attribute that is named twice is paid once.
    scale : float
        The price of a bit, 0 for tables of one's own.
    model : {"sum", "joint"}
        See above.
    counts : numpy.ndarray of int, optional
        How often each row is there, once if not given.

    Returns
    -------
    float
        0 without attributes or rows.

    Raises
    ------
    InputError
        If an option is not one of those allowed, or values cannot be compared.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> table = pa.table({"a": [1, 2, 3, 4], "b": ["x", "x", "y", "y"]})
    >>> projection_price(table, ["a", "b"]), projection_price(table, ["a", "b"], model="joint")
    (3.0, 2.0)
    """
    if model not in MODELS:
        raise InputError(f"model must be one of {MODELS}, got {model!r}.")
    if not 0 <= scale < math.inf:
        raise InputError(f"scale must be a finite number from 0, got {scale}.")
    weights = row_weights(table.num_rows, counts)
    distinct = sorted(set(names))
    parts = [[name] for name in distinct] if model == "sum" else [distinct]
    bits = math.fsum(entropy(np.bincount(row_codes(table, part), weights)) for part in parts)
    return scale * bits
