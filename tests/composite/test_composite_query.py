"""Keys of a query: distinct ones, counted, and what is refused."""

import pyarrow as pa
import pytest
from composite_lakes import rows_of
from composite_oracle import as_integers, keys_of, xash
from hypothesis import given
from hypothesis import strategies as st

from pexeso.composite.row_keys import Xash, build_row_keys
from pexeso.composite.search import key_query
from pexeso.errors import QueryError


@given(st.integers(1, 3).flatmap(lambda m: rows_of(m).filter(len)))
def test_keys_are_distinct_counted_and_hashed_together(query_rows):
    columns = [pa.array(column) for column in zip(*query_rows, strict=True)]
    query = key_query(columns)
    texts = query.values.to_pylist()
    keys = [tuple(texts[value] for value in key) for key in query.keys.tolist()]
    assert dict(zip(keys, query.row_counts.tolist(), strict=True)) == keys_of(query_rows)
    assert len(set(keys)) == query.n_keys
    expected = []
    for key in keys:
        bits = 0
        for value in key:
            bits |= xash(value)
        expected.append(bits)
    assert as_integers(query.super_keys(Xash())) == expected


def test_keys_as_numbers_of_the_lake():
    rows = build_row_keys([pa.table({"c": ["b", "d"]})])
    query = key_query([pa.array(["d", "a"]), pa.array(["b", "b"])])
    assert query.keys.tolist() == [[0, 1], [2, 1]]
    assert query.numbers_in(rows).tolist() == [[-1, 0], [1, 0]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "all of the same length. Got no column"),
        ([["a"], ["a", "b"]], "all of the same length. Got 1 rows, 2 rows"),
        ([["a"], [1]], "Column 1 of the query's key must hold normalised texts. Got int64"),
    ],
)
def test_what_is_no_key_is_refused(columns, message):
    with pytest.raises(QueryError, match=message):
        key_query([pa.array(column) for column in columns])
