"""The order of what a search finds, held against sorting everything at once."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pexeso.results.query import ColumnNames
from pexeso.semantic.passes import Ranking

COLUMN = st.tuples(
    st.integers(1, 3),
    st.sampled_from(["a", "b", "é", "\uffee", "\U0001f600"]),
    st.sampled_from(["x", "X", "y"]),
)


@given(st.lists(st.lists(COLUMN, max_size=6), max_size=4), st.one_of(st.none(), st.integers(1, 5)))
def test_the_best_over_partitions_are_the_best_of_all(partitions, k):
    ranking, everything = Ranking(k), []
    for number, columns in enumerate(partitions):
        ids = np.arange(len(columns)) * 2 + 100 * number
        tables, labels = (
            pa.array([column[place] for column in columns], pa.string()) for place in (1, 2)
        )
        counts = np.array([column[0] for column in columns], dtype=np.int64)
        positions = np.flatnonzero(counts >= ranking.floor)
        ranking.add(number, ColumnNames(ids, tables, labels), positions, counts[positions])
        everything += [
            (-c, table, label, int(i)) for (c, table, label), i in zip(columns, ids, strict=True)
        ]
    best = sorted(everything)[:k]
    hits = ranking.hits()
    assert [(-hit.matched, hit.table, hit.label, hit.column_id) for hit in hits] == best
    assert all(hit.column_id == hit.partition * 100 + 2 * hit.position for hit in hits)
    if k is not None:
        assert ranking.floor == (-best[k - 1][0] if len(best) == k else 0)
