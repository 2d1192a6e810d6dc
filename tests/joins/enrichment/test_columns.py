"""Columns of enrichment with texts that are too many for offsets of 32 bits, by a small bound."""

import pyarrow as pa

from pexeso.joins.enrichment.gathering import Column, column_by_key, column_of_lists, trimmed
from pexeso.store import arrays

TEXTS = pa.array(["oslo", " rome ", "", None])


def test_columns_are_the_same_with_wide_offsets(monkeypatch):
    rows, key = pa.array([1, 0, 0, None, 3]), pa.array([0, 0, 0, None, 1], pa.int32())
    lists = pa.array([["a", "b"], [], None, ["c"]], pa.list_(pa.string()))

    def columns():
        own = Column("text", trimmed(TEXTS)).take(rows)
        again = Column("text", trimmed(own.cells))
        return own, again, column_by_key(own, key), column_of_lists(lists, 0.5)

    plain = columns()
    monkeypatch.setattr(arrays, "MAX_BYTES", 1)
    wide = columns()
    assert [column.cells.to_pylist() for column in wide] == [
        column.cells.to_pylist() for column in plain
    ]
    assert {column.cells.type for column in plain} == {pa.string()}
    assert {column.cells.type for column in wide} == {pa.large_string()}
