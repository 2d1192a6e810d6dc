"""Names of sets: a table's sets are found by halving."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pexeso.sets.part.open import SetNames

tables = st.sampled_from(["a", "a/b", "b", "ä", "éa", "z", "𝄞"])


@given(
    rows=st.lists(st.tuples(tables, st.integers(0, 99)), unique=True),
    requested=st.lists(tables, unique=True),
)
def test_rows_of_tables_are_those_that_a_look_at_all_names_finds(rows, requested):
    rows = sorted((table, f"c{number}") for table, number in rows)
    columns = ([row[place] for row in rows] for place in (0, 1))
    names = SetNames(*(pa.array(column, pa.string()) for column in columns))
    expected = [number for number, (table, _) in enumerate(rows) if table in requested]
    assert names.rows_of_tables(pa.array(requested, pa.string())).tolist() == expected
    assert names.of(np.arange(len(rows))) == rows
