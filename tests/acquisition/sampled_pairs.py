"""Samples of tables whose rows are kept by the positions of their keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pexeso.acquisition.key_hashes import KeyTest, hash_positions


def correlated_sample(table: pa.Table, tests: Sequence[KeyTest], *, seed: int = 0) -> pa.Table:
    """Return the rows of a table that pass the tests of all its edges."""
    selected = np.ones(table.num_rows, bool)
    for test in tests:
        # A missing key has no position, and NaN is below no rate.
        selected &= hash_positions(table, test.names, seed=seed) <= test.rate
    return table.filter(pa.array(selected))
