"""What is done to the tables of a market: join columns are added, and values made wrong.

The paper does both without saying how. Here join columns hold whole numbers of domains of 50 to
5,000, of which each table has a share; in damaged tables 30 % of the rows have one wrong value, in
an attribute that a dependency of the table determines.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.acquisition.draws import Draws
from pexeso.acquisition.quality import Dependency

JOIN_COLUMNS = ("H1", "H2", "H3", "H4")
DAMAGED_PERCENT = 30

_SMALLEST_DOMAIN, _STEPS, _STEP_THOUSANDTHS = 50, 100, 1047
_LEAST_COVERED, _MOST_COVERED = 60, 100


def domain_size(seed: int, market: str, column: str) -> int:
    """Return how many values a join column can have, from 50 to 5,000, logarithms alike likely.

    Examples
    --------
    >>> 50 <= domain_size(0, "tpch", "H1") <= 5000
    True
    """
    size = _SMALLEST_DOMAIN * 10**6
    # Powers of floating-point numbers differ between processors.
    for _ in range(int(Draws(seed, market, column, "domain").below(1, _STEPS + 1)[0])):
        size = size * _STEP_THOUSANDTHS // 1000
    return size // 10**6


def with_join_columns(
    table: pa.Table, names: Collection[str], *, seed: int, market: str, table_name: str
) -> pa.Table:
    """Add join columns to a table."""
    for name in names:
        size = domain_size(seed, market, name)
        draws = Draws(seed, market, table_name, name)
        percent = int(draws.between(1, _LEAST_COVERED, _MOST_COVERED)[0])
        covered = draws.order(size)[: -(-size * percent // 100)]
        values = covered[draws.below(table.num_rows, len(covered))]
        table = table.append_column(name, pa.array(values))
    return table


def with_wrong_values(
    table: pa.Table,
    dependencies: Sequence[Dependency],
    *,
    seed: int,
    market: str,
    table_name: str,
    percent: int = DAMAGED_PERCENT,
) -> pa.Table:
    """Make one value wrong in some rows."""
    n = table.num_rows
    draws = Draws(seed, market, table_name, "wrong values")
    rows = np.sort(draws.order(n)[: n * percent // 100])
    encoded = {}
    for name in sorted({dependency.right for dependency in dependencies}):
        column = table.column(name).combine_chunks().dictionary_encode()
        if len(column.dictionary) > 1:
            encoded[name] = column
    if not encoded:
        return table
    chosen = draws.below(len(rows), len(encoded))
    for at, (name, column) in enumerate(encoded.items()):
        wrong = rows[chosen == at]
        codes = column.indices.to_numpy().astype(np.int64)
        size = len(column.dictionary)
        other = Draws(seed, market, table_name, name, "wrong").between(len(wrong), 1, size - 1)
        codes[wrong] = (codes[wrong] + other) % size
        position = table.schema.get_field_index(name)
        table = table.set_column(position, name, pc.take(column.dictionary, pa.array(codes)))
    return table
