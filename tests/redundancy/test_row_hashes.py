"""Rows hashed on any of their columns, and counted in other tables: held against plain counting."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from pexeso.errors import InputError
from pexeso.redundancy.containment import contained_rows, counted_rows
from pexeso.redundancy.row_hashes import MIN_ROWS_PER_VALUE, hashed_column, row_hashes

KINDS = (pa.int64(), pa.string(), pa.float64())
VALUES = ([0, 1, 2], [None, "a", "b"], [0.0, float("inf"), None])
N_LAKES = 500


def table(rng, n):
    return [[values[place] for place in rng.integers(0, len(values), n)] for values in VALUES]


def counted(columns, chosen):
    hashed = [hashed_column(pa.array(columns[place], KINDS[place])) for place in chosen]
    return counted_rows(row_hashes(len(columns[0]), hashed, [f"column {c}" for c in chosen]))


def test_counts_are_those_of_plain_tuples():
    rng = np.random.default_rng(16)
    for _ in range(N_LAKES):
        parent, child = table(rng, int(rng.integers(0, 30))), table(rng, int(rng.integers(0, 12)))
        chosen = rng.permutation(3)[: rng.integers(1, 4)].tolist()
        there, here = (
            Counter(zip(*(columns[c] for c in chosen), strict=True)) for columns in (parent, child)
        )
        ours, theirs = counted(child, chosen[::-1]), counted(parent, chosen)
        as_set = sum(n for row, n in here.items() if row in there)
        as_bag = sum(min(n, there[row]) for row, n in here.items())
        n = sum(here.values())
        assert contained_rows(ours, theirs) == as_set
        assert contained_rows(ours, theirs, "bag") == as_bag
        for max_missing in range(n + 1):
            expected = as_bag if n - as_bag <= max_missing else -1
            assert contained_rows(ours, theirs, "bag", max_missing=max_missing) == expected


def test_equal_columns_but_other_rows_have_nothing_in_common():
    june = [hashed_column(pa.array(values)) for values in (["June", "May"], [20, 12])]
    other = [hashed_column(pa.array(values)) for values in (["June", "May"], [12, 20])]
    names = ["month", "day"]
    ours, theirs = (counted_rows(row_hashes(2, columns, names)) for columns in (june, other))
    assert contained_rows(ours, theirs) == 0


@pytest.mark.parametrize("n_distinct", [1, 200, 300, 70_000])
def test_columns_with_few_values_are_coded_and_mean_the_same(n_distinct):
    values = pa.array(np.arange(MIN_ROWS_PER_VALUE * (n_distinct + 1)) % n_distinct)
    values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    column = hashed_column(values)
    widths = {1: 1, 200: 1, 300: 2, 70_000: 4}
    assert column.codes.dtype.itemsize == widths[n_distinct]
    assert len(column.hashes) == n_distinct + 1
    plain = hashed_column(pa.array(np.arange(n_distinct)))
    assert plain.codes is None or n_distinct == 1
    rows = row_hashes(len(values), [column], ["a"])
    again = row_hashes(n_distinct, [plain], ["a"])
    np.testing.assert_array_equal(rows[:n_distinct], again)
    np.testing.assert_array_equal(rows[-1:], row_hashes(1, [None], ["a"]))


def test_other_semantics_are_refused():
    nothing = counted_rows(np.empty((0, 2), np.uint64))
    with pytest.raises(InputError, match="set, bag"):
        contained_rows(nothing, nothing, "multiset")
