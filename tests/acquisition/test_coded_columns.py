import numpy as np
import pyarrow as pa
import pytest

from pexeso.acquisition.coded_columns import CodedColumns
from pexeso.acquisition.tables import MarketTable
from pexeso.errors import ColumnNotFoundError, InputError


def table(name, **columns):
    return MarketTable.of(name, pa.table(columns))


def test_keys_are_equal_where_their_tokens_are():
    left = table("left", a=["x", "y", None, "x"], b=[1, 2, 3, 1])
    right = table("right", c=["y", "x", "x"], d=["2", "1.0", "7"])
    keys = CodedColumns().keys(left, right, [("a", "c"), ("b", "d")])
    assert keys.left[2] == -1
    assert keys.left[0] == keys.left[3] == keys.right[1]
    assert keys.left[1] == keys.right[0]
    assert keys.right[2] not in keys.left
    assert max(keys.left.max(), keys.right.max()) < keys.n_codes


def test_both_directions_are_the_same_keys():
    left, right = table("left", a=[1, 2]), table("right", a=[2, 3])
    coded = CodedColumns()
    there, back = coded.keys(left, right, [("a", "a")]), coded.keys(right, left, [("a", "a")])
    assert np.array_equal(there.left, back.right)
    assert np.array_equal(there.right, back.left)


def test_values_have_a_code_for_what_is_missing():
    column = CodedColumns().values(table("t", a=["x", None, "x"]), "a")
    assert column.codes[0] == column.codes[2] != column.codes[1]
    assert column.values.to_pylist()[column.codes[1]] is None


def test_what_was_used_longest_ago_is_read_again():
    reads = []

    def read(names):
        reads.append(tuple(names))
        return pa.table({name: list(range(1000)) for name in names})

    big = MarketTable("big", ("a", "b"), 1000, read)
    coded = CodedColumns(max_bytes=20_000)
    coded.values(big, "a")
    coded.values(big, "a")
    assert reads == [("a",)]
    coded.values(big, "b")
    coded.values(big, "a")
    assert reads == [("a",), ("b",), ("a",)]


def test_what_is_refused():
    left, right = table("left", a=[1]), table("right", a=[1])
    with pytest.raises(InputError, match="needs a pair of columns"):
        CodedColumns().keys(left, right, [])
    with pytest.raises(ColumnNotFoundError, match="'left' has no column 'z'"):
        CodedColumns().keys(left, right, [("z", "a")])
    with pytest.raises(ColumnNotFoundError, match="'left' has no column 'z'"):
        CodedColumns().values(left, "z")
