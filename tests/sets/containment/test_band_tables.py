"""Candidates: tables, and banding as it is defined."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import IndexCorruptError
from pexeso.sets.containment.bands import BandTables, band_hits, build_tables


def by_definition(signatures, query, ranges, settings):
    """Count whole bands in common, value by value."""
    hits = {}
    for (_, end, first), (bands, rows) in zip(ranges.tolist(), settings.tolist(), strict=True):
        for row in range(first, end):
            agree = [
                all(signatures[row][j * rows + i] == query[j * rows + i] for i in range(rows))
                for j in range(bands)
            ]
            if any(agree):
                hits[row] = sum(agree)
    return list(hits), list(hits.values())


@st.composite
def band_queries(draw):
    """Draw signatures with many common values, two partitions, their settings and a query."""
    n, m, max_rows = draw(st.integers(1, 40)), draw(st.integers(1, 24)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    signatures = rng.choice(
        np.array([0, 1, 2**31, 2**32 - 1], np.uint32)[: draw(st.integers(2, 4))], (n, m)
    )
    cut = draw(st.integers(0, n))
    ranges = np.array([[0, cut, draw(st.integers(0, cut))], [cut, n, draw(st.integers(cut, n))]])
    settings = []
    for _ in range(2):
        rows = draw(st.integers(1, min(max_rows, m)))
        settings.append((draw(st.integers(1, m // rows)), rows))
    return signatures, ranges, np.array(settings), signatures[draw(st.integers(0, n - 1))]


@given(band_queries())
def test_acceptance_7_tables_and_definition_give_the_same_candidates(case):
    signatures, ranges, settings, query = case
    tables = build_tables(signatures)
    rows, hits = band_hits(tables, signatures, query, ranges, settings)
    assert (rows.tolist(), hits.tolist()) == by_definition(signatures, query, ranges, settings)


@given(band_queries())
def test_tables_are_in_the_order_of_values_then_rows(case):
    signatures = case[0]
    tables = build_tables(signatures)
    for place, (values, sets) in enumerate(zip(tables.values, tables.sets, strict=True)):
        assert sets.tolist() == sorted(
            range(len(signatures)), key=lambda row, k=place: (signatures[row, k], row)
        )
        assert (values == signatures[sets, place]).all()


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("by", [4, -4])
def test_a_table_that_leads_out_of_the_index_is_refused(rows, by):
    signatures = np.ones((4, 2), np.uint32)
    tables = build_tables(signatures)
    damaged = BandTables(tables.values, tables.sets + np.int32(by))
    with pytest.raises(IndexCorruptError, match="names a set that there is not"):
        band_hits(damaged, signatures, signatures[0], np.array([[2, 4, 2]]), np.array([[1, rows]]))
